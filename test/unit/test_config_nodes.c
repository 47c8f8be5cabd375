/* Sections of the config file that are for some nodes. */
#include <codec/config_yaml.h>

#include <errno.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct key_value labels[] = {
	{"pool", "latency"}, {"node.kubernetes.io/instance-type", "m5.metal"}};
static const struct config_node known = {"gpu-07.example", true, labels, 2},
				unknown = {"gpu-07.example", false, NULL, 0};

struct outcome {
	struct settings s;
	struct config_sections sections;
};

static struct outcome read_for(const struct config_node *node, const char *yaml)
{
	struct outcome o;
	struct err e = {0};

	settings_init(&o.s);
	if (config_yaml_read(&o.s, yaml, strlen(yaml), node, &o.sections, &e))
		fail_msg("%s: %s", yaml, e.text);
	return o;
}

static void a_section_applies_to_nodes_whose_name_and_labels_match(void **state)
{
	static const struct {
		const char *selector;
		enum config_match known, unknown;
	} table[] = {
		{"names: [gpu-07.example]", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: [gpu-07]", CONFIG_OTHER_NODES, CONFIG_OTHER_NODES},
		{"names: ['*']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: ['gpu-*']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: ['*ex*le']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: ['*-0?.e*e*']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: ['gpu-??.example']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"names: ['gpu-???.example']", CONFIG_OTHER_NODES, CONFIG_OTHER_NODES},
		{"names: ['gpu-*.exampl']", CONFIG_OTHER_NODES, CONFIG_OTHER_NODES},
		{"names: [cpu-1, 'gpu-07.*']", CONFIG_THIS_NODE, CONFIG_THIS_NODE},
		{"labels: {pool: latency}", CONFIG_THIS_NODE, CONFIG_NEEDS_LABELS},
		{"labels: {pool: batch}", CONFIG_OTHER_NODES, CONFIG_NEEDS_LABELS},
		{"labels: {node.kubernetes.io/instance-type: m5.metal, pool: latency}",
			CONFIG_THIS_NODE, CONFIG_NEEDS_LABELS},
		{"labels: {pool: latency, zone: a}", CONFIG_OTHER_NODES, CONFIG_NEEDS_LABELS},
		{"labels: {pool: latency}, names: [cpu-1]", CONFIG_OTHER_NODES, CONFIG_OTHER_NODES},
		{"names: ['gpu*'], labels: {pool: latency}", CONFIG_THIS_NODE, CONFIG_NEEDS_LABELS},
		{"names: ['gpu*'], labels: {pool: x}", CONFIG_OTHER_NODES, CONFIG_NEEDS_LABELS},
	};
	char yaml[256];

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		(void)snprintf(yaml, sizeof yaml,
			"nodes:\n- {settings: {mode: shadow}, %s}\nmode: 'off'\n",
			table[i].selector);
		struct outcome o = read_for(&known, yaml);

		assert_int_equal(o.sections.nr, 1);
		assert_int_equal(o.sections.at[0].line, 2);
		assert_int_equal(o.sections.by_labels, strstr(table[i].selector, "labels") != NULL);
		if (o.sections.at[0].match != table[i].known)
			fail_msg("%s", table[i].selector);
		assert_int_equal(
			o.s.mode, table[i].known == CONFIG_THIS_NODE ? MODE_SHADOW : MODE_OFF);
		o = read_for(&unknown, yaml);
		if (o.sections.at[0].match != table[i].unknown)
			fail_msg("labels unknown: %s", table[i].selector);
		assert_int_equal(
			o.s.mode, table[i].unknown == CONFIG_THIS_NODE ? MODE_SHADOW : MODE_OFF);
		o = read_for(NULL, yaml);
		assert_int_equal(o.sections.at[0].match, CONFIG_OTHER_NODES);
		assert_int_equal(o.s.mode, MODE_OFF);
	}
}

static void a_later_section_overrides_an_earlier_one_and_the_top_of_the_file(void **state)
{
	static const char yaml[] = "nodes:\n"
				   "- names: ['*']\n"
				   "  settings: {topologyManagerPolicy: restricted, "
				   "sharedPoolStep: 2, logLevel: warn}\n"
				   "- names: [other]\n"
				   "  settings: {sharedPoolStep: 3, sharedPoolMinimum: 9}\n"
				   "- settings: {topologyManagerPolicy: single-numa-node}\n"
				   "  labels: {pool: latency}\n"
				   "topologyManagerPolicy: none\n"
				   "sharedPoolStep: 1\n"
				   "schedulerHint: {repair: false}\n";
	const struct outcome o = read_for(&known, yaml), u = read_for(&unknown, yaml);

	(void)state;
	assert_int_equal(o.s.topology_policy, POLICY_SINGLE_NUMA_NODE);
	assert_int_equal(u.s.topology_policy, POLICY_RESTRICTED);
	assert_int_equal(o.s.shared_pool_step, 2);
	assert_int_equal(o.s.shared_pool_minimum, 1);
	assert_int_equal(o.s.log_level, LOG_WARN);
	assert_false(o.s.advice_repair);
}

static void a_list_replaces_the_inherited_one_and_an_empty_map_clears_it(void **state)
{
	static const char yaml[] =
		"reservedMemory:\n"
		"- {numaNode: 0, limits: {memory: 1Gi}}\n"
		"- {numaNode: 1, limits: {memory: 1Gi}}\n"
		"cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
		"nodes:\n"
		"- names: ['gpu-*']\n"
		"  settings:\n"
		"    reservedMemory:\n"
		"    - {numaNode: 3, limits: {memory: 2Gi, hugepages-1Gi: 1Gi}}\n"
		"    cpuManagerPolicy: none\n"
		"    cpuManagerPolicyOptions: {}\n";
	struct outcome o = read_for(&known, yaml);
	const struct config_node cpu = {"cpu-1", true, NULL, 0};
	char text[sizeof yaml + 128];

	(void)state;
	assert_int_equal(o.s.nr_reserved_memory, 2);
	assert_int_equal(o.s.reserved_memory[0].node_id, 3);
	assert_int_equal(o.s.reserved_memory[1].node_id, 3);
	assert_int_equal(o.s.options_given, 0);
	assert_int_equal(settings_check(&o.s, NULL, NULL), 0);
	o = read_for(&cpu, yaml);
	assert_int_equal(o.s.nr_reserved_memory, 2);
	assert_int_equal(o.s.reserved_memory[1].node_id, 1);
	assert_true(o.s.cpu_options.full_pcpus_only);
	(void)snprintf(text, sizeof text,
		"%s- names: ['*']\n  settings: {reservedMemory: [{numaNode: 5, limits: {memory: "
		"1}}]}\n",
		yaml);
	o = read_for(&known, text);
	assert_int_equal(o.s.nr_reserved_memory, 1);
	assert_int_equal(o.s.reserved_memory[0].node_id, 5);
	(void)snprintf(
		text, sizeof text, "%s- {names: ['*'], settings: {reservedMemory: []}}\n", yaml);
	o = read_for(&known, text);
	assert_int_equal(o.s.nr_reserved_memory, 0);
}

static void a_node_without_a_section_can_be_off(void **state)
{
	static const char off[] = "unmatchedNodes: off\nnodes:\n- names: [gpu-07.example]\n",
			  by_label[] = "nodes:\n- labels: {pool: latency}\nunmatchedNodes: off\n",
			  as_above[] = "unmatchedNodes: as-above\nnodes:\n- names: [x]\n",
			  alone[] = "unmatchedNodes: off\n";
	static const struct {
		const char *yaml;
		const struct config_node *node;
		bool off;
	} table[] = {
		{off, &known, false},
		{off, NULL, false},
		{by_label, &known, false},
		{by_label, &unknown, true},
		{as_above, &known, false},
		{alone, &known, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct outcome o = read_for(table[i].node, table[i].yaml);
		char text[CONFIG_SECTIONS_TEXT_MAX];

		assert_int_equal(o.sections.off, table[i].off);
		assert_int_equal(o.s.mode, table[i].off ? MODE_OFF : MODE_MANAGE);
		(void)config_sections_text(&o.sections, text);
		assert_int_equal(strstr(text, "mode off") != NULL, table[i].off);
	}
}

static void a_mistake_in_any_section_refuses_the_file_with_its_line(void **state)
{
	static const struct {
		const char *yaml, *says;
		int code;
	} bad[] = {
		{"nodes:\n- names: [other]\n  settings:\n    mode: on\n",
			"line 4: mode: \"on\" is not one of off, manage, shadow, release", -EINVAL},
		{"nodes:\n- names: [other]\n  settings:\n    modes: off\n",
			"line 4: modes: unknown key, did you mean mode?", -ENOENT},
		{"nodes:\n- names: [a]\n- settings: {mode: off}\n",
			"line 3: nodes.1: which nodes it is for is missing: names or labels",
			-EINVAL},
		{"nodes:\n- {}\n", "line 2: nodes.0: a section has names, labels and settings",
			-ENOENT},
		{"nodes: [a]\n", "line 1: nodes.0: a section has names, labels and settings",
			-ENOENT},
		{"nodes: all\n", "line 1: nodes: a list of sections is expected", -EINVAL},
		{"nodes: {a: b}\n", "line 1: nodes: a list of sections is expected", -EINVAL},
		{"nodes: {a: {}}\n", "line 1: nodes: a list of sections is expected", -EINVAL},
		{"nodes:\n- name: a\n",
			"line 2: nodes.0: name: a section has names, labels and settings", -ENOENT},
		{"nodes:\n- names: a\n",
			"line 2: nodes.0: names: a list of nodes' names is expected", -EINVAL},
		{"nodes:\n- names: []\n",
			"line 2: nodes.0: names: a list of nodes' names is expected", -EINVAL},
		{"nodes:\n- names: [Worker]\n",
			"line 2: nodes.0: \"Worker\" can be no node's name: small letters, digits, "
			"'-' and '.', and * and ? for any",
			-EINVAL},
		{"nodes:\n- labels: pool\n",
			"line 2: nodes.0: labels: a map of nodes' labels is expected", -EINVAL},
		{"nodes:\n- names: [a]\n  settings: none\n",
			"line 3: nodes.0: settings: a map is expected", -EINVAL},
		{"nodes:\n- names: [a]\n  settings:\n    nodeName: b\n",
			"line 4: nodeName: it belongs to the top of the file: what is for a node "
			"is "
			"found by it",
			-EINVAL},
		{"nodes:\n- names: [a]\n  settings:\n    runDirectory: /b\n",
			"line 4: runDirectory: it belongs to the top of the file: what is for a "
			"node "
			"is found by it",
			-EINVAL},
		{"nodes:\n- names: [a]\n  settings:\n    mode: {}\n",
			"line 4: mode: an empty map or list does not belong here", -EINVAL},
		{"unmatchedNodes: on\n",
			"line 1: unmatchedNodes: \"on\" is not one of as-above, off", -EINVAL},
		{"nodes:\n- names: [a]\n  settings: {nodes: []}\n",
			"line 3: nodes: an empty map or list does not belong here", -EINVAL},
		{"labels: {a.b: c}\n", "line 1: labels.a.b: unknown key", -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings s, before;
		struct config_sections sections;
		struct err e = {0};

		settings_init(&s);
		before = s;
		assert_int_equal(config_yaml_read(&s, bad[i].yaml, strlen(bad[i].yaml), &known,
					 &sections, &e),
			bad[i].code);
		assert_string_equal(e.text, bad[i].says);
		assert_memory_equal(&s, &before, sizeof s);
	}
}

static void the_number_of_sections_is_limited(void **state)
{
	static char yaml[64 * CONFIG_SECTIONS_MAX + 128];
	struct config_sections sections;
	struct settings s;
	struct err e;
	struct text t;

	(void)state;
	text_init(&t, yaml, sizeof yaml);
	text_add(&t, "nodes:\n");
	for (unsigned i = 0; i < CONFIG_SECTIONS_MAX; i++)
		text_add(&t, "- {names: ['*'], settings: {sharedPoolStep: %u}}\n", i);
	const struct outcome o = read_for(&known, yaml);
	char text[CONFIG_SECTIONS_TEXT_MAX];

	assert_int_equal(o.sections.nr, CONFIG_SECTIONS_MAX);
	assert_int_equal(o.s.shared_pool_step, CONFIG_SECTIONS_MAX - 1);
	assert_non_null(
		strstr(config_sections_text(&o.sections, text), "nodes.63 (line 65): for this"));
	text_add(&t, "- names: ['*']\n");
	settings_init(&s);
	assert_int_equal(config_yaml_read(&s, yaml, strlen(yaml), &known, &sections, &e), -E2BIG);
	assert_string_equal(e.text, "line 66: nodes: more than 64 sections");
}

static void the_command_line_overrides_sections_and_may_name_the_node(void **state)
{
	static const char yaml[] = "nodeName: file-1\n"
				   "nodes:\n"
				   "- {names: [file-1], settings: {sharedPoolStep: 1}}\n"
				   "- {names: [set-1], settings: {sharedPoolStep: 2, mode: off}}\n"
				   "- {names: [host-1], settings: {sharedPoolStep: 3}}\n",
			  unnamed[] = "nodes: [{names: [host-1], settings: {mode: shadow}}]\n";
	static const char *const sets[] = {"nodeName=set-1", "mode=shadow"}, *const bad[] = {"x=1"},
				 *const worse[] = {"mode"};
	const struct config_node host = {"host-1", true, NULL, 0};
	struct config_source from = {.file = "f", .text = yaml, .len = sizeof yaml - 1};
	struct config_sections sections;
	struct settings s;
	struct err e = {0};

	(void)state;
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), 0);
	assert_int_equal(s.shared_pool_step, 1);
	from.sets = sets;
	from.nr_sets = 2;
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), 0);
	assert_int_equal(s.shared_pool_step, 2);
	assert_int_equal(s.mode, MODE_SHADOW);
	from = (struct config_source){.file = "f", .text = unnamed, .len = sizeof unnamed - 1};
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), 0);
	assert_int_equal(s.mode, MODE_SHADOW);
	from = (struct config_source){.sets = bad, .nr_sets = 1};
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), -ENOENT);
	assert_string_equal(e.text, "--set: x: unknown key");
	from.sets = worse;
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), -EINVAL);
	assert_string_equal(e.text, "--set mode: KEY=VALUE is expected");
	from = (struct config_source){.file = "f", .text = "mode: x", .len = 7};
	assert_int_equal(config_settings(&s, &from, &host, &sections, &e), -EINVAL);
	assert_non_null(strstr(e.text, "config file f: line 1: mode"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_section_applies_to_nodes_whose_name_and_labels_match),
		cmocka_unit_test(a_later_section_overrides_an_earlier_one_and_the_top_of_the_file),
		cmocka_unit_test(a_list_replaces_the_inherited_one_and_an_empty_map_clears_it),
		cmocka_unit_test(a_node_without_a_section_can_be_off),
		cmocka_unit_test(a_mistake_in_any_section_refuses_the_file_with_its_line),
		cmocka_unit_test(the_number_of_sections_is_limited),
		cmocka_unit_test(the_command_line_overrides_sections_and_may_name_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
