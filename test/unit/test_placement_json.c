#include <codec/placement_json.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct node_ids ids = {.nr = 3, .id = {0, 1, 8}};

static struct cpuset cpus(const char *list)
{
	struct cpuset set;

	assert_int_equal(cpuset_parse(&set, list, strlen(list), NULL), 0);
	return set;
}

static const struct {
	const char *text;
	struct placement p;
	const char *cpus;
} both_ways[] = {
	{"{\"v\":1,\"policy\":\"restricted\",\"exclusive\":true,\"cpus\":\"8-15\",\"mems\":\"1\","
	 "\"nodes\":\"1\",\"preferred\":true}",
		{.exclusive = true,
			.preferred = true,
			.policy = POLICY_RESTRICTED,
			.mems = {2},
			.nodes = {2},
			.has_nodes = true},
		"8-15"},
	{"{\"v\":1,\"policy\":\"none\",\"exclusive\":false,\"cpus\":\"0,1023\",\"mems\":\"0-1,8\","
	 "\"preferred\":false}",
		{.policy = POLICY_NONE, .mems = {7}}, "0,1023"},
	{"{\"v\":1,\"policy\":\"best-effort\",\"exclusive\":true,\"cpus\":\"\",\"mems\":\"\","
	 "\"nodes\":\"\",\"preferred\":false}",
		{.exclusive = true, .policy = POLICY_BEST_EFFORT, .has_nodes = true}, ""},
};

static void assert_same(const struct placement *a, const struct placement *b)
{
	assert_int_equal(a->exclusive, b->exclusive);
	assert_int_equal(a->preferred, b->preferred);
	assert_int_equal(a->policy, b->policy);
	assert_true(cpuset_equal(&a->cpus, &b->cpus));
	assert_int_equal(a->mems.bits, b->mems.bits);
	assert_int_equal(a->has_nodes, b->has_nodes);
	assert_int_equal(a->nodes.bits, b->nodes.bits);
}

static void a_placement_is_the_same_after_writing_and_reading(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++) {
		struct placement p = both_ways[i].p, back = {0};
		char buf[PLACEMENT_JSON_MAX];

		p.cpus = cpus(both_ways[i].cpus);
		assert_string_equal(
			placement_json_format(&p, &ids, buf, sizeof buf), both_ways[i].text);
		assert_int_equal(placement_json_parse(both_ways[i].text, &ids, &back, NULL), 0);
		assert_same(&back, &p);
	}
}

static void the_largest_placement_fits_into_its_maximum(void **state)
{
	struct placement p = {.policy = POLICY_SINGLE_NUMA_NODE, .has_nodes = true};
	struct node_ids many = {.nr = NODES_MAX};
	struct placement back = {0};
	char buf[PLACEMENT_JSON_MAX];

	(void)state;
	for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu += 2)
		cpuset_add(&p.cpus, cpu);
	for (unsigned n = 0; n < NODES_MAX; n++)
		many.id[n] = (uint16_t)(n * 16);
	p.mems = p.nodes = nodeset_first(NODES_MAX);
	(void)placement_json_format(&p, &many, buf, sizeof buf);
	assert_int_equal(placement_json_parse(buf, &many, &back, NULL), 0);
	assert_same(&back, &p);
}

static void a_text_that_does_not_fit_is_cut_and_terminated(void **state)
{
	struct placement p = both_ways[0].p;
	char buf[16];

	(void)state;
	memset(buf, 'x', sizeof buf);
	(void)placement_json_format(&p, &ids, buf, sizeof buf);
	assert_true(strlen(buf) < sizeof buf);
}

#define PLACED(cpus, mems)                                                                         \
	"{\"v\":1,\"policy\":\"none\",\"exclusive\":true,\"cpus\":" cpus ",\"mems\":" mems         \
	",\"preferred\":true}"

static void an_unknown_key_is_skipped(void **state)
{
	struct placement p;

	(void)state;
	assert_int_equal(placement_json_parse(
				 "{\"v\":1,\"policy\":\"none\",\"exclusive\":true,\"cpus\":\"3\","
				 "\"mems\":\"8\",\"preferred\":true,\"later\":{\"a\":[1]}}",
				 &ids, &p, NULL),
		0);
	assert_true(cpuset_has(&p.cpus, 3));
	assert_int_equal(p.mems.bits, 4);
}

static const struct {
	const char *text;
	int rc;
	const char *says;
} refused[] = {
	{"", -EINVAL, "not JSON"},
	{"{", -EINVAL, "not JSON"},
	{"[]", -EINVAL, "should be an object, is a list"},
	{"null", -EINVAL, "should be an object, is null"},
	{"{}", -EINVAL, "v is missing"},
	{"{\"v\":1} x", -EINVAL, "not JSON"},
	{"{\"v\":1,\"v\":1}", -EINVAL, "duplicate"},
	{"{\"v\":true}", -EINVAL, "v: should be an integer, is true"},
	{"{\"v\":-1}", -ERANGE, "v: -1 is below 0"},
	{"{\"v\":4294967296}", -ERANGE, "v: 4294967296 is above 4294967295"},
	{"{\"v\":1e3}", -EINVAL, "v: should be an integer, is a fraction"},
	{"{\"v\":1,\"policy\":\"best\"}", -EINVAL, "policy: there is no \"best\""},
	{"{\"v\":1,\"policy\":2}", -EINVAL, "policy: should be a string, is an integer"},
	{"{\"v\":1,\"policy\":\"none\",\"exclusive\":1}", -EINVAL,
		"exclusive: should be true or false, is an integer"},
	{PLACED("5", "\"0\""), -EINVAL, "cpus: should be a string, is an integer"},
	{PLACED("\"1-\"", "\"0\""), -EINVAL, "cpus: list \"1-\""},
	{PLACED("\"1024\"", "\"0\""), -ERANGE, "cpus: list \"1024\""},
	{PLACED("\"0-4294967295\"", "\"0\""), -ERANGE, "cpus: list"},
	{PLACED("\"1\"", "\"0,2\""), -ENOENT, "mems: there is no NUMA node 2"},
	{PLACED("\"1\"", "[0]"), -EINVAL, "mems: should be a string, is a list"},
	{"{\"v\":2,\"policy\":\"none\",\"exclusive\":true,\"cpus\":\"\",\"mems\":\"\","
	 "\"preferred\":true}",
		-EINVAL, "version 2 is not known"},
	{"{\"v\":1,\"policy\":\"no\\u0000ne\"}", -EINVAL, "not JSON"},
	{"{\"v\":1,\"policy\":\"\xff\"}", -EINVAL, "not JSON"},
};

static void a_hostile_value_is_an_error_without_output(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct placement p = both_ways[0].p;
		struct err e = {0};

		assert_int_equal(
			placement_json_parse(refused[i].text, &ids, &p, &e), refused[i].rc);
		if (!strstr(e.text, refused[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.text, refused[i].says);
		assert_same(&p, &both_ways[0].p);
	}
}

static void a_value_that_is_too_long_or_too_deep_is_refused(void **state)
{
	static char text[PLACEMENT_READ_MAX * 2];
	struct placement p;
	struct err e;

	(void)state;
	memset(text, '[', sizeof text - 1);
	assert_int_equal(placement_json_parse(text, &ids, &p, &e), -E2BIG);
	text[PLACEMENT_READ_MAX] = '\0'; /* short enough, and far too deep */
	assert_int_equal(placement_json_parse(text, &ids, &p, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_placement_is_the_same_after_writing_and_reading),
		cmocka_unit_test(the_largest_placement_fits_into_its_maximum),
		cmocka_unit_test(a_text_that_does_not_fit_is_cut_and_terminated),
		cmocka_unit_test(an_unknown_key_is_skipped),
		cmocka_unit_test(a_hostile_value_is_an_error_without_output),
		cmocka_unit_test(a_value_that_is_too_long_or_too_deep_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
