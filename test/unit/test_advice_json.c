#include <codec/advice_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/quantity.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "advice_rig.h"

enum { SKEW_MS = 5000, LINE_MAX = 4096 };

static struct topo machine;
static const struct advice_source *ours;

static int set_up(void **state)
{
	(void)state;
	rig_machine(2, &machine);
	ours = advice_source_of(ADVICE_KEY);
	return !ours;
}

#define HEAD       "{\"v\":1,\"node\":\"n\",\"uid\":\"u\""
#define WHEN       ",\"at\":1000,\"ttl\":60"
#define ALL(entry) ",\"containers\":{\"*\":" entry "}}"

static const char *const both_ways[] = {
	HEAD WHEN ",\"mode\":\"prefer\",\"scope\":\"container\"" ALL("{\"numa\":\"0\"}"),
	HEAD ",\"gen\":4711,\"pfp\":\"pfp0v001\"" WHEN
	     ",\"mode\":\"require\",\"scope\":\"pod\",\"containers\":{\"pg\":{\"numa\":\"0-1\","
	     "\"dist\":1550,\"res\":[{\"node\":0,\"resources\":{\"cpu\":\"4\",\"memory\":"
	     "\"8Gi\"}},{\"node\":1,\"resources\":{\"cpu\":\"1500m\"}}]},\"*\":{\"numa\":"
	     "\"1\"}}}",
	HEAD ",\"gen\":\"18446744073709551615\"" WHEN
	     ",\"mode\":\"prefer\",\"scope\":\"container\"" ALL("{\"numa\":\"0-1\"}"),
};

static void what_is_written_is_what_was_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++) {
		struct arena a;
		const struct advice_context c = rig_context(&machine, &a);
		struct advice h;
		auto_free char *again = NULL;

		assert_int_equal(advice_read(ours, both_ways[i], &c, &h, NULL), 0);
		assert_int_equal(advice_json_write(&h, &machine, &again, NULL), 0);
		assert_string_equal(again, both_ways[i]);
		arena_fini(&a);
	}
}

static void every_member_of_a_hint_is_read(void **state)
{
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;

	(void)state;
	assert_int_equal(advice_read(ours, both_ways[1], &c, &h, NULL), 0);
	assert_int_equal(h.format, ADVICE_NUMAFIT);
	assert_string_equal(h.node, "n");
	assert_string_equal(h.uid, "u");
	assert_string_equal(h.fingerprint, "pfp0v001");
	assert_int_equal(h.version, 1);
	assert_int_equal(h.generation, 4711);
	assert_int_equal(h.at_ms, 1000);
	assert_int_equal(h.ttl_s, 60);
	assert_int_equal(h.mode, ADVICE_REQUIRE);
	assert_int_equal(h.scope, SCOPE_POD);
	assert_int_equal(h.nr_containers, 2);
	assert_string_equal(h.container[0].name, "pg");
	assert_int_equal(h.container[0].nodes.bits, 3);
	assert_int_equal(h.container[0].distance_x100, 1550);
	assert_int_equal(h.container[0].nr_amounts, 3);
	assert_int_equal(h.container[0].amount[1].node, 0);
	assert_string_equal(h.container[0].amount[1].resource, "memory");
	assert_int_equal(h.container[0].amount[1].amount, UINT64_C(8) << 30);
	assert_int_equal(h.container[0].amount[2].node, 1);
	assert_int_equal(h.container[0].amount[2].amount, 1500);
	assert_int_equal(h.container[1].nr_amounts, 0);
	arena_fini(&a);
}

static void a_hint_may_name_a_numa_node_that_the_machine_lacks(void **state)
{
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;

	(void)state;
	assert_int_equal(advice_read(ours,
				 HEAD WHEN ALL("{\"numa\":\"1,7,9\",\"res\":[{\"node\":7,"
					       "\"resources\":{\"cpu\":1}}]}"),
				 &c, &h, NULL),
		0);
	assert_true(h.container->has_unknown);
	assert_int_equal(h.container->unknown_id, 7);
	assert_int_equal(h.container->nodes.bits, 2);
	assert_int_equal(h.container->nr_amounts, 0);
	arena_fini(&a);
}

static const struct {
	const char *text;
	int rc;
	const char *says;
} refused[] = {
	{"", -EINVAL, "not JSON"},
	{"bad-format", -EINVAL, "not JSON"},
	{"7", -EINVAL, "should be an object, is an integer"},
	{"{}", -EINVAL, "v: should be an integer, is nothing"},
	{"{\"v\":\"1\"}", -EINVAL, "v: should be an integer, is a string"},
	{"{\"v\":1.0}", -EINVAL, "v: should be an integer, is a fraction"},
	{"{\"v\":2,\"containers\":7,\"more\":1}", -ENOTSUP, "v: version 2 is not known, only 1"},
	{"{\"v\":-1}", -ENOTSUP, "version -1"},
	{"{\"v\":1}", -EINVAL, "node is missing"},
	{HEAD "}", -EINVAL, "at is missing"},
	{HEAD WHEN "}", -EINVAL, "containers: should be an object, is nothing"},
	{HEAD WHEN ",\"containers\":{}}", -EINVAL, "containers: there is none"},
	{HEAD WHEN ",\"Mode\":\"require\"" ALL("{\"numa\":\"0\"}"), -EINVAL,
		"unknown key \"Mode\""},
	{HEAD WHEN ",\"mode\":\"off\"" ALL("{\"numa\":\"0\"}"), -EINVAL,
		"mode: there is no \"off\""},
	{HEAD WHEN ",\"scope\":\"all\"" ALL("{\"numa\":\"0\"}"), -EINVAL, "scope: there is no"},
	{HEAD WHEN WHEN ALL("{\"numa\":\"0\"}"), -EINVAL, "duplicate"},
	{"{\"v\":1,\"node\":\"\",\"uid\":\"u\"" WHEN ALL("{\"numa\":\"0\"}"), -EINVAL,
		"node: is empty"},
	{"{\"v\":1,\"node\":\"n\",\"uid\":\"\"" WHEN ALL("{\"numa\":\"0\"}"), -EINVAL,
		"uid: is empty"},
	{HEAD ",\"at\":0,\"ttl\":1" ALL("{\"numa\":\"0\"}"), -ERANGE, "at: 0 is no time"},
	{HEAD ",\"at\":-5,\"ttl\":1" ALL("{\"numa\":\"0\"}"), -ERANGE, "at: -5 is no time"},
	{HEAD ",\"at\":5,\"ttl\":0" ALL("{\"numa\":\"0\"}"), -ERANGE, "ttl: should be 1 at least"},
	{HEAD ",\"at\":5,\"ttl\":86401" ALL("{\"numa\":\"0\"}"), -ERANGE, "ttl: 86401 is above"},
	{HEAD ",\"at\":5,\"ttl\":-1" ALL("{\"numa\":\"0\"}"), -ERANGE, "ttl: -1 is below 0"},
	{HEAD ",\"at\":99999999999999999999,\"ttl\":1" ALL("{\"numa\":\"0\"}"), -EINVAL,
		"not JSON"},
	{HEAD ",\"gen\":-1" WHEN ALL("{\"numa\":\"0\"}"), -ERANGE, "gen: -1 is below 0"},
	{HEAD ",\"pfp\":1" WHEN ALL("{\"numa\":\"0\"}"), -EINVAL, "pfp: should be a string"},
	{HEAD WHEN ",\"containers\":{\"\":{\"numa\":\"0\"}}}", -EINVAL, "it has no name"},
	{HEAD WHEN ALL("7"), -EINVAL, "container \"*\": should be an object"},
	{HEAD WHEN ALL("{}"), -EINVAL, "numa: should be a string, is nothing"},
	{HEAD WHEN ALL("{\"numa\":0}"), -EINVAL, "numa: should be a string, is an integer"},
	{HEAD WHEN ALL("{\"numa\":\"\"}"), -EINVAL, "numa: names no NUMA node"},
	{HEAD WHEN ALL("{\"numa\":\"4c\"}"), -EINVAL, "containers: container \"*\": numa: list"},
	{HEAD WHEN ALL("{\"numa\":\"2000\"}"), -ERANGE, "numa: "},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"cpus\":\"0\"}"), -EINVAL, "unknown key \"cpus\""},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"dist\":15.5}"), -EINVAL, "dist: should be an integer"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"dist\":-1}"), -ERANGE, "dist: -1 is not between"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"dist\":25401}"), -ERANGE, "dist: 25401 is not between"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":{}}"), -EINVAL, "res: should be a list"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[7]}"), -EINVAL, "res: element 0: should be"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0}]}"), -EINVAL,
		"resources of NUMA node 0"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":1,\"resources\":{}}]}"), -EINVAL,
		"node: 1 is not in numa"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":-1,\"resources\":{}}]}"), -EINVAL,
		"node: -1 is not in numa"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0,\"resources\":{}},{\"node\":0,"
		       "\"resources\":{}}]}"),
		-EINVAL, "node: 0 is not in numa, or is here twice"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0,\"resources\":{\"cpu\":\"4x\"}}]}"),
		-EINVAL, "cpu of NUMA node 0: \"4x\" is not a quantity"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0,\"resources\":{\"cpu\":-1}}]}"),
		-ERANGE, "cpu of NUMA node 0"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0,\"resources\":{\"cpu\":[]}}]}"),
		-EINVAL, "cpu of NUMA node 0: should be a quantity, is a list"},
	{HEAD WHEN ALL("{\"numa\":\"0\",\"res\":[{\"node\":0,\"resources\":{\"\":\"1\"}}]}"),
		-EINVAL, "a resource without a name"},
	{HEAD WHEN ALL("{\"numa\":\"0\"}") "}", -EINVAL, "not JSON"},
	{"[[[[[[[[[", -EINVAL, "nests deeper than 8 levels"},
};

static void a_malformed_hint_is_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct arena a;
		const struct advice_context c = rig_context(&machine, &a);
		struct advice h, untouched;
		struct err e = {0};

		memset(&h, 'x', sizeof h);
		memcpy(&untouched, &h, sizeof h);
		int rc = advice_read(ours, refused[i].text, &c, &h, &e);
		if (rc != refused[i].rc || !strstr(e.text, refused[i].says))
			fail_msg("%s: %d: %s", refused[i].text, rc, e.text);
		assert_memory_equal(&h, &untouched, sizeof h);
		arena_fini(&a);
	}
}

static void brackets_within_strings_do_not_count_as_nesting(void **state)
{
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;

	(void)state;
	assert_int_equal(
		advice_read(ours,
			HEAD ",\"pfp\":\"[[[[[[[[[[\\\"[[[[[[[[[[\"" WHEN ALL("{\"numa\":\"0\"}"),
			&c, &h, NULL),
		0);
	arena_fini(&a);
}

/* A text of len bytes that is well formed: spaces follow it. */
static int read_padded(size_t len)
{
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	auto_free char *text = xcalloc(len + 1, 1);
	struct advice h;

	memset(text, ' ', len);
	memcpy(text, both_ways[0], strlen(both_ways[0]));
	int rc = advice_read(ours, text, &c, &h, NULL);
	arena_fini(&a);
	return rc;
}

static void a_hint_has_at_most_64_kib(void **state)
{
	(void)state;
	assert_int_equal(read_padded(ADVICE_TEXT_MAX), 0);
	assert_int_equal(read_padded(ADVICE_TEXT_MAX + 1), -E2BIG);
}

static int read_filled(const char *before, const char *value, const char *after)
{
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	auto_free char *text = xcalloc(ADVICE_TEXT_MAX + 1, 1);
	size_t room = ADVICE_TEXT_MAX - strlen(after) - strlen(value) - TEXT_SIZE_MAX;
	struct advice h;
	struct text t;

	text_init(&t, text, ADVICE_TEXT_MAX + 1);
	text_add(&t, "%s", before);
	for (unsigned i = 0; t.len < room; i++)
		text_add(&t, "%s\"%x\":%s", i ? "," : "", i, value);
	text_add(&t, "%s", after);
	assert_false(t.cut);
	int rc = advice_read(ours, text, &c, &h, NULL);
	arena_fini(&a);
	return rc;
}

static void every_hint_of_up_to_64_kib_can_be_read(void **state)
{
	(void)state;
	assert_int_equal(read_filled(HEAD WHEN ",\"containers\":{", "{\"numa\":\"0\"}", "}}"), 0);
	assert_int_equal(read_filled(HEAD WHEN ",\"containers\":{\"*\":{\"numa\":\"0\",\"res\":[{"
					       "\"node\":0,\"resources\":{",
				 "1", "}}]}}}"),
		0);
}

static void a_hint_that_could_not_be_read_back_is_not_written(void **state)
{
	static const struct advice_container bad[] = {{.name = "*"},
		{.name = "*", .nodes = {1}, .has_unknown = true}, {.name = "\xff", .nodes = {1}},
		{.name = "", .nodes = {1}}};
	char *out = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct advice h = {.node = "n",
			.uid = "u",
			.at_ms = 1,
			.ttl_s = 1,
			.mode = ADVICE_PREFER,
			.container = &bad[i],
			.nr_containers = 1};
		struct err e = {0};

		assert_int_equal(advice_json_write(&h, &machine, &out, &e), -EINVAL);
		assert_true(e.text[0]);
		assert_null(out);
	}
	assert_int_equal(
		advice_json_write(&(struct advice){.node = "n"}, &machine, &out, NULL), -EINVAL);
}

/* The recorded verdicts: each hint against what was free when it came. */

static uint64_t quantity(const json_t *v, bool cpu)
{
	uint64_t n;

	assert_int_equal(quantity_parse_count(json_string_value(v),
				 cpu ? QUANTITY_MILLI : QUANTITY_WHOLE, &n, NULL),
		0);
	return n;
}

/* What the entry asks for of one resource, against what each NUMA node has free. */
static struct family family_of(const struct advice_container *c, const char *resource,
	const json_t *available, uint64_t *free_on)
{
	struct family f = {.kind = FAMILY_CAPACITY, .ground = machine.nodes, .nr_demands = 1};
	uint64_t most = 0, sum = 0;

	(void)text_copy(f.resource, sizeof f.resource, resource);
	for (size_t i = 0; i < c->nr_amounts; i++)
		if (text_equal(c->amount[i].resource, resource))
			f.demand[0].need += c->amount[i].amount;
	nodeset_each (n, machine.nodes) {
		char id[TEXT_SIZE_MAX];

		(void)snprintf(id, sizeof id, "%u", n);
		free_on[n] = (uint64_t)quantity(
			json_object_get(json_object_get(available, id), resource),
			text_equal(resource, "cpu"));
		most = free_on[n] > most ? free_on[n] : most;
		sum += free_on[n];
	}
	assert_true(f.demand[0].need <= sum);
	f.demand[0].weight = free_on;
	f.preferred_size = f.demand[0].need <= most ? 1 : 2;
	return f;
}

static enum advice_verdict judge(const struct advice_container *c, const json_t *available,
	enum advice_verdict so_far, bool repair)
{
	const struct hint_space space = {.all = machine.nodes};
	uint64_t cpus[NODES_MAX] = {0}, memory[NODES_MAX] = {0};
	const struct family f[] = {
		family_of(c, "cpu", available, cpus), family_of(c, "memory", available, memory)};
	struct advice_merge m = {.policy = POLICY_RESTRICTED, .space = &space, .family = f};
	const struct advice_terms terms = {
		.so_far = so_far, .mode = ADVICE_PREFER, .repair = repair};
	struct advice_ruling r;
	struct arena a;

	m.nr = f[1].demand[0].need ? 2 : 1; /* what is not asked for has no hints */
	arena_init(&a, ADVICE_ARENA_BYTES);
	assert_int_equal(policy_merge_families(m.policy, &space, f, m.nr,
				 &(struct budget){.endless = true}, &a, &m.without),
		0);
	arena_fini(&a);
	advice_judge(&m, c->nodes, &terms, &r);
	return r.verdict;
}

static enum advice_verdict verdict_of(const json_t *record, bool repair)
{
	const json_t *x = json_object_get(record, "context");
	const char *value = json_string_value(json_object_get(record, "value"));
	const struct advice_facts facts = {
		.node = json_string_value(json_object_get(x, "nodeName")),
		.uid = json_string_value(json_object_get(x, "podUID")),
		.now_ms = json_integer_value(json_object_get(x, "now")),
		.generation = (uint64_t)json_integer_value(json_object_get(x, "generation")),
		.skew_ms = SKEW_MS,
		.t = &machine};
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;
	int rc = advice_read(ours, value, &c, &h, NULL);
	enum advice_verdict v = rc ? advice_read_verdict(rc) : advice_check(&h, &facts, NULL);

	if (!advice_is_rejection(v))
		v = judge(h.container, json_object_get(x, "available"), v, repair);
	arena_fini(&a);
	return v;
}

static void recorded_hints_get_the_recorded_verdicts(void **state)
{
	FILE *in = fopen("test/golden/hints.jsonl", "re");
	char line[LINE_MAX];
	unsigned nr = 0;

	(void)state;
	assert_non_null(in);
	for (; fgets(line, sizeof line, in); nr++) {
		json_t *record = NULL;

		assert_int_equal(json_parse(line, strlen(line), &record, NULL), 0);
		const char *name = json_string_value(json_object_get(record, "name"));
		const char *want = json_string_value(json_object_get(record, "verdict"));
		const char *got = advice_verdict_words[verdict_of(record, false)];
		if (!text_equal(got, want))
			fail_msg("%s: wanted %s, got %s", name, want, got);
		/* of all of them only what no longer fits can be mended */
		if (text_equal(want, "rejected:not-fit"))
			want = "repaired";
		assert_string_equal(advice_verdict_words[verdict_of(record, true)], want);
		json_decref(record);
	}
	(void)fclose(in);
	assert_int_equal(nr, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_what_was_read),
		cmocka_unit_test(every_member_of_a_hint_is_read),
		cmocka_unit_test(a_hint_may_name_a_numa_node_that_the_machine_lacks),
		cmocka_unit_test(a_malformed_hint_is_refused_with_a_reason),
		cmocka_unit_test(brackets_within_strings_do_not_count_as_nesting),
		cmocka_unit_test(a_hint_has_at_most_64_kib),
		cmocka_unit_test(every_hint_of_up_to_64_kib_can_be_read),
		cmocka_unit_test(a_hint_that_could_not_be_read_back_is_not_written),
		cmocka_unit_test(recorded_hints_get_the_recorded_verdicts),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
