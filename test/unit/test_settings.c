#include "settings_cases.h"

enum { KEY_MAX = 64 }; /* what a suggestion is looked for in */

static const char *value_of(const struct settings *s, const char *key)
{
	static char buf[CPUSET_TEXT_MAX];
	struct setting_doc doc;

	for (unsigned i = 0; settings_doc(i, &doc) && settings_get(s, i, buf, sizeof buf); i++)
		if (text_equal(doc.key, key))
			return buf;
	fail_msg("no row %s", key);
	return NULL;
}

static void settings_start_with_their_defaults(void **state)
{
	const struct settings s = defaults();

	(void)state;
	assert_int_equal(s.mode, MODE_MANAGE);
	assert_int_equal(s.topology_policy, POLICY_BEST_EFFORT);
	assert_int_equal(s.topology_scope, SCOPE_CONTAINER);
	assert_false(s.prefer_closest_numa_nodes);
	assert_int_equal(s.max_allowable_numa_nodes, 0);
	assert_int_equal(s.cpu_manager_policy, MANAGER_STATIC);
	assert_int_equal(s.memory_manager_policy, MANAGER_STATIC);
	assert_int_equal(s.allocation_strategy, ALLOCATION_NONE);
	assert_false(s.cpu_options.full_pcpus_only);
	assert_true(s.gates.topology_options && s.gates.topology_beta_options);
	assert_true(s.gates.cpu_options && s.gates.cpu_beta_options);
	assert_false(s.gates.topology_alpha_options || s.gates.cpu_alpha_options);
	assert_false(s.gates.pod_level_resource_managers);
	assert_int_equal(s.options_given, 0);
	assert_int_equal(s.merge_visit_budget, 3 << 20);
	assert_true(cpuset_empty(&s.reserved_cpus));
	assert_int_equal(settings_reserved_cpu_count(&s), 0);
	assert_int_equal(s.nr_reserved_memory, 0);
	assert_int_equal(s.pool_enforced, POOL_BY_EITHER);
	assert_int_equal(s.shared_pool_step, SHARED_POOL_STEP_AUTO);
	assert_int_equal(s.shared_pool_minimum, 1);
	assert_string_equal(s.nri_socket, "/var/run/nri/nri.sock");
	assert_string_equal(s.nri_index, "50");
	assert_string_equal(s.run_directory, "/run/numafit");
	assert_int_equal(s.journal_max_bytes, 16 << 20);
	assert_string_equal(s.machine, "this");
	assert_int_equal(s.log_level, LOG_INFO);
}

static void each_row_prints_its_default_and_reads_it_back(void **state)
{
	struct settings s = defaults();
	const struct settings before = s;
	struct setting_doc doc;
	char buf[SETTING_TEXT_MAX];
	unsigned nr = 0;

	(void)state;
	for (; settings_doc(nr, &doc); nr++) {
		assert_true(settings_get(&s, nr, buf, sizeof buf));
		assert_string_equal(buf, doc.fallback);
		assert_true(*doc.type && *doc.help);
		assert_true(strlen(doc.type) + 1 < sizeof doc.type);
		assert_true(strlen(doc.key) < KEY_MAX);
		if (*buf)
			assert_int_equal(settings_set(&s, doc.key, buf, NULL), 0);
	}
	assert_int_equal(nr, 98);
	assert_false(settings_get(&s, nr, buf, sizeof buf));
	assert_memory_equal(&s, &before, sizeof s);
}

static void a_fitting_value_is_taken(void **state)
{
	static const struct {
		const char *key, *value, *printed;
	} table[] = {
		{"mode", "off", "off"},
		{"topologyManagerPolicy", "single-numa-node", "single-numa-node"},
		{"topologyManagerScope", "pod", "pod"},
		{"topologyManagerPolicyOptions.prefer-closest-numa-nodes", "T", "true"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "8", "8"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "+16", "16"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "9223372036854775807",
			"4294967295"},
		{"topologyManagerPolicyOptions.numa-allocation-strategy", "least-allocated",
			"least-allocated"},
		{"topologyManagerPolicyOptions.numa-allocation-strategy", "", "none"},
		{"cpuManagerPolicy", "none", "none"},
		{"cpuManagerPolicyOptions.align-by-socket", "1", "true"},
		{"cpuManagerPolicyOptions.distribute-cpus-across-cores", "TRUE", "true"},
		{"cpuManagerPolicyOptions.distribute-cpus-across-numa", "t", "true"},
		{"cpuManagerPolicyOptions.full-pcpus-only", "true", "true"},
		{"cpuManagerPolicyOptions.full-pcpus-only", "F", "false"},
		{"cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache", "True", "true"},
		{"cpuManagerPolicyOptions.strict-cpu-reservation", "T", "true"},
		{"featureGates.CPUManagerPolicyAlphaOptions", "true", "true"},
		{"featureGates.CPUManagerPolicyBetaOptions", "false", "false"},
		{"featureGates.CPUManagerPolicyOptions", "true", "true"},
		{"featureGates.PodLevelResourceManagers", "1", "true"},
		{"featureGates.TopologyManagerPolicyAlphaOptions", "true", "true"},
		{"featureGates.TopologyManagerPolicyBetaOptions", "0", "false"},
		{"featureGates.TopologyManagerPolicyOptions", "T", "true"},
		{"memoryManagerPolicy", "None", "None"},
		{"reservedSystemCPUs", "0,2,1,64-65", "0-2,64-65"},
		{"reservedSystemCPUs", "", ""},
		{"systemReserved.cpu", "500m", "500m"},
		{"systemReserved.cpu", "2000m", "2"},
		{"kubeReserved.cpu", "1.5", "1500m"},
		{"kubeReserved.cpu", "1024", "1024"},
		{"kubeReserved.cpu", "0", ""},
		{"mergeVisitBudget", "0", "0"},
		{"mergeVisitBudget", "5000000000", "5000000000"},
		{"sharedPoolStep", "0", "0"},
		{"sharedPoolStep", "1024", "1024"},
		{"sharedPoolMinimum", "0", "0"},
		{"sweepInterval", "0", "0"},
		{"sweepInterval", "0s", "0"},
		{"sweepInterval", "90s", "90s"},
		{"sweepInterval", "1m30s", "90s"},
		{"sweepInterval", "0h2m", "2m"},
		{"sweepInterval", "1500ms", "1500ms"},
		{"sweepInterval", "1h", "1h"},
		{"nri.socketPath", "/x.sock", "/x.sock"},
		{"nri.pluginIndex", "07", "07"},
		{"kubeletConfigFile", "/k.yaml", "/k.yaml"},
		{"refusalAction", "evict", "evict"},
		{"apiServer.kubeconfig", "/etc/numafit/kubeconfig", "/etc/numafit/kubeconfig"},
		{"apiServer.kubeconfig", "", ""},
		{"apiServer.context", "here", "here"},
		{"nodeResourceTopology.interval", "20ms", "20ms"},
		{"nodeResourceTopology.heartbeat", "60s", "1m"},
		{"nodeResourceTopology.podsFingerprint", "all", "all"},
		{"metrics.address", ":9465", ":9465"},
		{"metrics.address", "", ""},
		{"ui.address", "127.0.0.1:9466", "127.0.0.1:9466"},
		{"runDirectory", "/tmp/run", "/tmp/run"},
		{"journalMaxBytes", "64Ki", "64Ki"},
		{"journalMaxBytes", "1073741824", "1Gi"},
		{"journalMaxBytes", "1M", "1000000"},
		{"machine", "epyc-2s", "epyc-2s"},
		{"logLevel", "debug", "debug"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		struct err e = {0};

		if (settings_set(&s, table[i].key, table[i].value, &e) < 0)
			fail_msg("%s", e.text);
		assert_string_equal(value_of(&s, table[i].key), table[i].printed);
	}
}

static void a_wrong_value_is_named_with_what_was_expected(void **state)
{
	static const struct {
		const char *key, *value;
		int rc;
		const char *text;
	} table[] = {
		{"topologyManagerPolicy", "single-node", -EINVAL,
			"topologyManagerPolicy: \"single-node\" is not one of none, best-effort, "
			"restricted, single-numa-node"},
		{"memoryManagerPolicy", "static", -EINVAL,
			"memoryManagerPolicy: \"static\" is not one of None, Static"},
		{"mode", "", -EINVAL, "mode: \"\" is not one of off, manage, shadow, release"},
		{"mode", "off\n", -EINVAL, "mode: the value holds a control character"},
		{"machine", "\xff", -EINVAL, "machine: the value is not UTF-8"},
		{"topologyManagerPolicyOptions.prefer-closest-numa-nodes", "yes", -EINVAL,
			"bad value for option \"prefer-closest-numa-nodes\": strconv.ParseBool: "
			"parsing \"yes\": invalid syntax"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "x", -EINVAL,
			"unable to convert policy option to integer \"max-allowable-numa-nodes\": "
			"strconv.Atoi: parsing \"x\": invalid syntax"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "9223372036854775808",
			-ERANGE,
			"unable to convert policy option to integer \"max-allowable-numa-nodes\": "
			"strconv.Atoi: parsing \"9223372036854775808\": value out of range"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "7", -ERANGE,
			"the minimum value of \"max-allowable-numa-nodes\" should not be less than "
			"8"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "-9", -ERANGE,
			"the minimum value of \"max-allowable-numa-nodes\" should not be less than "
			"8"},
		{"topologyManagerPolicyOptions.x", "true", -ENOENT,
			"unknown Topology Manager Policy option: \"x\""},
		{"topologyManagerPolicyOptions.numa-allocation-strategy", "most", -EINVAL,
			"bad value for option \"numa-allocation-strategy\": \"most\" must be one "
			"of "
			"[\"least-allocated\" \"most-allocated\" \"none\"]"},
		{"cpuManagerPolicyOptions.full-pcpus-only", "", -EINVAL,
			"bad value for option \"full-pcpus-only\": strconv.ParseBool: parsing "
			"\"\": "
			"invalid syntax"},
		{"cpuManagerPolicyOptions.shiny", "true", -ENOENT,
			"unknown CPU Manager Policy option: \"shiny\""},
		{"cpuManagerPolicyOptions", "true", -EINVAL,
			"cpuManagerPolicyOptions: a map is expected, not \"true\""},
		{"featureGates.Shiny", "true", -ENOENT, "unrecognized feature gate: Shiny"},
		{"featureGates.PodLevelResourceManagers", "on", -EINVAL,
			"invalid value of PodLevelResourceManagers=on, err: strconv.ParseBool: "
			"parsing \"on\": invalid syntax"},
		{"featureGates.CPUManagerPolicyOptions", "false", -EINVAL,
			"cannot set feature gate CPUManagerPolicyOptions to false, feature is "
			"locked to true"},
		{"featureGates.TopologyManagerPolicyOptions", "0", -EINVAL,
			"cannot set feature gate TopologyManagerPolicyOptions to false, feature is "
			"locked to true"},
		{"systemReserved.cpu", "1025", -ERANGE,
			"systemReserved.cpu: \"1025\" is not a quantity of CPUs, at most 1024"},
		{"kubeReserved.cpu", "one", -EINVAL,
			"kubeReserved.cpu: \"one\" is not a quantity of CPUs, at most 1024"},
		{"kubeReserved.memory", "1Gi", -ENOENT, "kubeReserved.memory: unknown key"},
		{"mergeVisitBudget", "-1", -EINVAL,
			"mergeVisitBudget: \"-1\" is not a number from 0 to 9223372036854775807"},
		{"sharedPoolStep", "1025", -ERANGE,
			"sharedPoolStep: \"1025\" is not auto or a number from 0 to 1024"},
		{"sharedPoolStep", "four", -EINVAL,
			"sharedPoolStep: \"four\" is not auto or a number from 0 to 1024"},
		{"sharedPoolMinimum", "1025", -ERANGE,
			"sharedPoolMinimum: \"1025\" is not a number from 0 to 1024"},
		{"sweepInterval", "61m", -ERANGE,
			"sweepInterval: \"61m\" is not a duration from 0 to 1h"},
		{"sweepInterval", "10", -EINVAL,
			"sweepInterval: \"10\" is not a duration from 0 to 1h"},
		{"sweepInterval", "", -EINVAL,
			"sweepInterval: \"\" is not a duration from 0 to 1h"},
		{"sweepInterval", "4294967295h4294967295h", -ERANGE,
			"sweepInterval: \"4294967295h4294967295h\" is not a duration from 0 to "
			"1h"},
		{"nodeResourceTopology.interval", "19ms", -ERANGE,
			"nodeResourceTopology.interval: \"19ms\" is not a duration from 20ms to "
			"1m"},
		{"nodeResourceTopology.heartbeat", "0", -ERANGE,
			"nodeResourceTopology.heartbeat: \"0\" is not a duration from 1s to 1h"},
		{"journalMaxBytes", "1Ki", -ERANGE,
			"journalMaxBytes: \"1Ki\" is not a quantity from 64Ki to 1Gi"},
		{"journalMaxBytes", "much", -EINVAL,
			"journalMaxBytes: \"much\" is not a quantity from 64Ki to 1Gi"},
		{"nri.failurePolicy", "keep", -EINVAL,
			"nri.failurePolicy: \"keep\" is not one of drop-and-proceed, "
			"drop-and-fail, "
			"keep-and-proceed, keep-and-fail"},
		{"nri.pluginIndex", "5", -EINVAL, "nri.pluginIndex: \"5\" is not two digits"},
		{"nri.pluginIndex", "5a", -EINVAL, "nri.pluginIndex: \"5a\" is not two digits"},
		{"nri.socketPath", "nri.sock", -EINVAL,
			"nri.socketPath: \"nri.sock\" is not a path that begins with /"},
		{"nri.socketPath",
			"/var/run/a-path-of-more-than-one-hundred-and-seven-bytes-is-more-than-"
			"the-kernel-takes/in-an-address/of-a-socket",
			-ERANGE,
			"nri.socketPath: \"/var/run/a-path-of-more-than-one-hundred-and-seven-"
			"bytes-is-more...\" is longer than 107 bytes"},
		{"machine", "", -EINVAL, "machine: \"\" is not enough"},
		{"nri", "x", -EINVAL, "nri: a map is expected, not \"x\""},
		{"reservedMemory", "1Gi", -EINVAL,
			"reservedMemory: a list is expected, not \"1Gi\""},
		{"reservedMemory.x.numaNode", "0", -EINVAL,
			"reservedMemory.x.numaNode: a list of at most 128 entries is expected"},
		{"reservedMemory.128.numaNode", "0", -EINVAL,
			"reservedMemory.128.numaNode: a list of at most 128 entries is expected"},
		{"reservedMemory.1.numaNode", "0", -EINVAL,
			"reservedMemory.1.numaNode: entry 0 is missing"},
		{"reservedMemory.0.numaNode", "-1", -EINVAL,
			"reservedMemory.0.numaNode: \"-1\" is not the number of a NUMA node, 0 to "
			"1023"},
		{"reservedMemory.0.node", "1", -ENOENT,
			"reservedMemory.0.node: an entry has numaNode and limits.TYPE"},
		{"reservedMemory.0.limits.cpu", "1", -EINVAL,
			"reservedMemory.0.limits.cpu: \"cpu\" is not memory or hugepages-SIZE"},
		{"reservedMemory.0.limits.hugepages-0", "1", -EINVAL,
			"reservedMemory.0.limits.hugepages-0: \"hugepages-0\" is not memory or "
			"hugepages-SIZE"},
		{"reservedMemory.0.limits.memory", "0", -EINVAL,
			"reservedMemory.0.limits.memory: \"0\" is not a quantity above 0"},
		{"reservedMemory.0.limits.memory", "1GiB", -EINVAL,
			"reservedMemory.0.limits.memory: \"1GiB\" is not a quantity above 0"},
		{"topologyMangerPolicy", "none", -ENOENT,
			"topologyMangerPolicy: unknown key, did you mean topologyManagerPolicy?"},
		{"loglevel", "info", -ENOENT, "loglevel: unknown key, did you mean logLevel?"},
		{"pluginIndex", "50", -ENOENT,
			"pluginIndex: unknown key, did you mean nri.pluginIndex?"},
		{"LOGLEVEL", "info", -ENOENT, "LOGLEVEL: unknown key, did you mean logLevel?"},
		{"kubeReserved", "x", -EINVAL, "kubeReserved: a map is expected, not \"x\""},
		{"apiVersion", "v1", -ENOENT, "apiVersion: unknown key"},
		{"", "x", -ENOENT, ": unknown key"},
		{"a", "x", -ENOENT, "a: unknown key"},
		{"mode.x", "y", -ENOENT, "mode: one value is expected, not a map or a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		const struct settings before = s;
		struct err e = {0};

		assert_int_equal(settings_set(&s, table[i].key, table[i].value, &e), table[i].rc);
		assert_string_equal(e.text, table[i].text);
		assert_memory_equal(&s, &before, sizeof s);
		assert_int_equal(settings_set(&s, table[i].key, table[i].value, NULL), table[i].rc);
	}
}

static void a_malformed_cpu_list_is_reported_with_key_and_value(void **state)
{
	struct settings s = defaults();
	struct err e = {0};

	(void)state;
	assert_int_equal(settings_set(&s, "reservedSystemCPUs", "3-1", &e), -EINVAL);
	assert_ptr_equal(strstr(e.text, "reservedSystemCPUs: \"3-1\": "), e.text);
	assert_int_equal(settings_set(&s, "reservedSystemCPUs", "1024", &e), -ERANGE);
}

static void reserved_memory_is_set_entry_by_entry_in_any_order(void **state)
{
	static const char *const pairs[][2] = {
		{"reservedMemory.0.limits.memory", "1Gi"},
		{"reservedMemory.0.limits.hugepages-1024Mi", "2Gi"},
		{"reservedMemory.0.numaNode", "8"},
		{"reservedMemory.1.numaNode", "3"},
		{"reservedMemory.1.limits.memory", "512Mi"},
		{"reservedMemory.1.limits.memory", "1536Mi"},
		{"reservedMemory.1.limits.hugepages-2Mi", "4Mi"},
	};
	static const unsigned nodes[] = {8, 8, 3, 3};
	struct settings s = defaults();

	(void)state;
	set_all(&s, pairs, sizeof pairs / sizeof *pairs);
	assert_int_equal(s.nr_reserved_memory, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_true(s.reserved_memory[i].has_node);
		assert_int_equal(s.reserved_memory[i].node_id, nodes[i]);
	}
	assert_string_equal(value_of(&s, "reservedMemory"),
		"8:memory=1Gi,hugepages-1Gi=2Gi;3:memory=1536Mi,hugepages-2Mi=4Mi");
	assert_int_equal(settings_check(&s, NULL, NULL), 0);
}

static void reserved_memory_has_a_maximum_number_of_entries(void **state)
{
	struct settings s = defaults();
	struct err e = {0};
	char key[64];

	(void)state;
	for (unsigned i = 0; i < RESERVED_MEMORY_MAX; i++) {
		snprintf(key, sizeof key, "reservedMemory.%u.limits.memory", i);
		assert_int_equal(settings_set(&s, key, "1", &e), 0);
	}
	assert_int_equal(
		settings_set(&s, "reservedMemory.0.limits.hugepages-2Mi", "1", &e), -ERANGE);
	assert_string_equal(e.text, "reservedMemory.0.limits.hugepages-2Mi: more than 128 amounts");
	assert_int_equal(settings_set(&s, "reservedMemory.9.limits.memory", "2", &e), 0);
}

static void a_group_of_settings_is_not_accepted_as_a_value(void **state)
{
	static const struct {
		const char *key;
		bool is;
	} table[] = {
		{"nri", true},
		{"topologyManagerPolicyOptions", true},
		{"cpuManagerPolicyOptions", true},
		{"featureGates", true},
		{"systemReserved", true},
		{"reservedMemory", true},
		{"reservedMemory.0", true},
		{"reservedMemory.127.limits", true},
		{"reservedMemory.0.numaNode", false},
		{"reservedMemory.x", false},
		{"reservedMemory.128", false},
		{"nri.socketPath", false},
		{"nr", false},
		{"mode", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_int_equal(settings_is_group(table[i].key), table[i].is);
}

static void the_order_of_hints_names_each_form_once(void **state)
{
#define FORMS "numafit, koordinator, katalyst, volcano, crane, godel"
	static const struct {
		const char *order, *text; /* text NULL: it will do */
	} table[] = {
		{"numafit,koordinator,katalyst,volcano,crane,godel", NULL},
		{"godel, numafit", NULL},
		{"godel,", NULL},
		{"Godel", "schedulerHint.order: \"Godel\" is none of " FORMS},
		{"numafit;godel", "schedulerHint.order: \"numafit;godel\" is none of " FORMS},
		{",numafit", "schedulerHint.order: \"\" is none of " FORMS},
		{"crane,godel,crane", "schedulerHint.order: \"crane\" is there twice; it takes "
				      "each once: " FORMS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		struct err e = {0};
		const char *const set[][2] = {{"schedulerHint.order", table[i].order}};

		set_all(&s, set, 1);
		assert_int_equal(settings_check(&s, NULL, &e), table[i].text ? -EINVAL : 0);
		assert_string_equal(e.text, table[i].text ? table[i].text : "");
	}
}

static void the_status_page_is_for_loopback_addresses_unless_an_operator_insists(void **state)
{
	static const struct {
		const char *address;
		bool loopback;
	} table[] = {
		{"", true},
		{"127.0.0.1:9466", true},
		{"127.8.9.10:0", true},
		{"[::1]:9466", true},
		{"localhost:9466", true},
		{":9466", false},
		{"0.0.0.0:9466", false},
		{"[::]:9466", false},
		{"10.0.0.1:9466", false},
		{"127.0.0.1.example.com:9466", false},
		{"nonsense", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		const char *const set[][2] = {{"ui.address", table[i].address}};
		const char *const insecure[][2] = {{"ui.insecure", "true"}};
		struct err e = {0};

		set_all(&s, set, 1);
		assert_int_equal(settings_check(&s, NULL, &e), table[i].loopback ? 0 : -EINVAL);
		if (!table[i].loopback)
			assert_non_null(strstr(e.text, "is no loopback address"));
		set_all(&s, insecure, 1);
		assert_int_equal(settings_check(&s, NULL, &e), 0);
	}
}

static void settings_have_the_names_of_the_config_file(void **state)
{
	(void)state;
	assert_string_equal(mode_words[MODE_OFF], "off");
	assert_string_equal(topology_scope_words[SCOPE_POD], "pod");
	for (int p = 0; p < NR_POLICIES; p++)
		assert_int_equal(text_index(topology_policy_words, NR_POLICIES,
					 topology_policy_words[(enum topology_policy)p]),
			p);
	assert_int_equal(text_index(topology_policy_words, NR_POLICIES, "None"), -1);
}

/* Any other value of each row. */
static const char *another(const char *key)
{
	static const char *const values[][2] = {
		{"mode", "off"},
		{"onAdopt", "leave"},
		{"besideStaticKubelet", "manage"},
		{"kubernetesVersion", "1.36"},
		{"topologyManagerPolicy", "none"},
		{"topologyManagerScope", "pod"},
		{TOPOLOGY "max-allowable-numa-nodes", "9"},
		{TOPOLOGY "numa-allocation-strategy", "none"},
		{"cpuManagerPolicy", "none"},
		{"memoryManagerPolicy", "None"},
		{"reservedSystemCPUs", "1"},
		{"systemReserved.cpu", "1"},
		{"kubeReserved.cpu", "1"},
		{"mergeVisitBudget", "9"},
		{"sharedPoolStep", "9"},
		{"sharedPoolMinimum", "9"},
		{"schedulerHint.mode", "off"},
		{"schedulerHint.order", "volcano"},
		{"nri.pluginIndex", "07"},
		{"nri.failurePolicy", "drop-and-fail"},
		{"refusalAction", "evict"},
		{"events.podNames", "all"},
		{"observedPlacement", "kai"},
		{"nodeResourceTopology.podsFingerprint", "all"},
		{"deviceClaims.wait", "1s"},
		{"journalMaxBytes", "1Mi"},
		{"logLevel", "debug"},
		{"reservedMemory", NULL},
		{"featureGates.CPUManagerPolicyOptions", NULL},
		{"featureGates.TopologyManagerPolicyOptions", NULL},
	};

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (text_equal(values[i][0], key))
			return values[i][1];
	return "";
}

/* A value that the row takes and has not now; false: it takes none. */
static bool set_another(struct settings *s, const struct setting_doc *doc)
{
	static const char *const any[] = {"true", "false", "3s", "/other", "other"};
	const char *value = another(doc->key);

	if (!value || *value)
		return value && settings_set(s, doc->key, value, NULL) == 0;
	for (size_t i = 0; i < sizeof any / sizeof *any; i++)
		if (!text_equal(any[i], doc->fallback) &&
			settings_set(s, doc->key, any[i], NULL) == 0)
			return true;
	return false;
}

static void settings_that_need_a_restart_stay_at_a_reload(void **state)
{
	struct setting_doc doc;
	unsigned changed = 0, stayed = 0;

	(void)state;
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		struct settings s = defaults(), wanted = defaults();
		char value[SETTING_TEXT_MAX], was[SETTING_TEXT_MAX];

		if (!set_another(&wanted, &doc))
			continue;
		(void)settings_get(&wanted, i, value, sizeof value);
		if (text_equal(value, doc.fallback))
			fail_msg("%s is not another value than before", doc.key);
		settings_reload(&s, &wanted);
		(void)settings_get(&s, i, was, sizeof was);
		assert_string_equal(was, doc.reloadable ? value : doc.fallback);
		changed += doc.reloadable;
		stayed += !doc.reloadable;
		wanted = s;
		s = defaults(); /* and back */
		settings_reload(&wanted, &s);
		assert_memory_equal(&wanted, &s, sizeof s);
	}
	assert_int_equal(changed, 48);
	assert_int_equal(stayed, 29);
}

static void the_basic_settings_of_the_daemon_need_a_restart(void **state)
{
	static const char *const restart[] = {"mode", "reservedSystemCPUs", "reservedMemory",
		"nodeName", "nri.socketPath", "devicePlugin.enabled", "runDirectory", "machine"};
	struct setting_doc doc;
	unsigned nr = 0;

	(void)state;
	for (unsigned i = 0; settings_doc(i, &doc); i++)
		for (size_t k = 0; k < sizeof restart / sizeof *restart; k++)
			nr += text_equal(doc.key, restart[k]) && !doc.reloadable;
	assert_int_equal(nr, sizeof restart / sizeof *restart);
}

static void a_reset_undoes_a_key_or_all_of_a_map(void **state)
{
	static const char *const pairs[][2] = {
		{CPU "full-pcpus-only", "true"},
		{CPU "strict-cpu-reservation", "true"},
		{"cpuManagerPolicy", "none"},
		{"reservedMemory.0.numaNode", "8"},
		{"reservedMemory.0.limits.memory", "1Gi"},
		{"nri.pluginIndex", "07"},
	};
	static const char *const keys[] = {
		"cpuManagerPolicyOptions", "cpuManagerPolicy", "reservedMemory", "nri"};
	const struct settings want = defaults();
	struct settings s = defaults();

	(void)state;
	set_all(&s, pairs, sizeof pairs / sizeof *pairs);
	settings_reset(&s, "cpuManagerPolicyOptions");
	assert_int_equal(s.options_given, 0);
	assert_int_equal(s.cpu_manager_policy, MANAGER_NONE);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		settings_reset(&s, keys[i]);
	assert_memory_equal(&s, &want, sizeof s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_that_need_a_restart_stay_at_a_reload),
		cmocka_unit_test(the_basic_settings_of_the_daemon_need_a_restart),
		cmocka_unit_test(a_reset_undoes_a_key_or_all_of_a_map),
		cmocka_unit_test(settings_start_with_their_defaults),
		cmocka_unit_test(each_row_prints_its_default_and_reads_it_back),
		cmocka_unit_test(a_fitting_value_is_taken),
		cmocka_unit_test(a_wrong_value_is_named_with_what_was_expected),
		cmocka_unit_test(a_malformed_cpu_list_is_reported_with_key_and_value),
		cmocka_unit_test(reserved_memory_is_set_entry_by_entry_in_any_order),
		cmocka_unit_test(reserved_memory_has_a_maximum_number_of_entries),
		cmocka_unit_test(a_group_of_settings_is_not_accepted_as_a_value),
		cmocka_unit_test(the_order_of_hints_names_each_form_once),
		cmocka_unit_test(
			the_status_page_is_for_loopback_addresses_unless_an_operator_insists),
		cmocka_unit_test(settings_have_the_names_of_the_config_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
