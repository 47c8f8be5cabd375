/* Recorded answers of the released kubelet, and questions that cannot be read. */
#include <questions/cpu_json.h>

#include <questions/diff_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_BYTES = 1 << 20 };

static int answer(const char *text, json_t **item, json_t **result, struct err *e)
{
	struct arena a;

	assert_int_equal(json_parse(text, strlen(text), item, e), 0);
	arena_init(&a, ARENA_BYTES);
	int rc = cpu_json_answer(*item, &a, result, e);
	arena_fini(&a);
	return rc;
}

static void print_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	print_message("%s: %s: wanted %s, got %s\n", (const char *)ctx, path, wanted, got);
}

/* Returns how many lines were compared; the rest, takes_unavailable, had only to be answered. */
static unsigned check_all(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;
	unsigned compared = 0, differ = 0;

	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		json_t *item, *result = NULL;
		struct err e = {0};
		int rc = answer(line, &item, &result, &e);
		json_t *expected = json_object_get(item, "expected");
		json_t *got = json_is_array(expected) ? json_object_get(result, "cpus") : result;
		const char *name = json_string_value(json_object_get(item, "name"));

		if (rc)
			fail_msg("%s: %s", name, e.text);
		if (!json_is_true(json_object_get(item, "takes_unavailable"))) {
			char copy[80];

			(void)snprintf(copy, sizeof copy, "%s", name);
			differ += json_diff(expected, got, print_difference, copy) != 0;
			compared++;
		}
		json_decref(result);
		json_decref(item);
	}
	free(line);
	(void)fclose(f);
	assert_int_equal(differ, 0);
	return compared;
}

static void recorded_assignments_of_the_released_policy_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(check_all("test/golden/cpu.jsonl"), 199);
}

static void assignments_that_were_checked_by_hand_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(check_all("test/golden/cpu_assign.jsonl"), 10);
}

/* Sockets, nodes and cores of different sizes, answered by the released code, without the cases in
 * which it gives CPUs that are not free, too few of them, or what a changed slice says. */
static void recorded_assignments_on_uneven_machines_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(check_all("test/golden/cpu_uneven.jsonl"), 240);
}

#define MACHINE(rows)                                                                              \
	"{\"cpus_fields\": [\"cpu\", \"core\", \"socket\", \"numa\", \"uncore\"], \"cpus\": " rows \
	", \"num_cores\": 2, \"num_sockets\": 1, "
#define TWO  MACHINE("[[0, 0, 0, 0, 0], [1, 1, 0, 0, 0]]")
#define TAKE "\"mode\": \"packed\", \"cpu_group_size\": 1, \"spread\": false, \"uncore\": false, "
#define GRANT(options, reserved)                                                                   \
	"\"mode\": \"policy\", \"want\": 1, \"topology_policy\": \"none\", \"assigned\": [], "     \
	"\"reusable\": [], \"affinity\": null, \"options\": " options                              \
	", \"reserved_count\": " reserved "}"

static void an_unreadable_question_is_an_error_with_its_place(void **state)
{
	static const struct {
		const char *in, *text;
	} cases[] = {
		{TWO "\"mode\": \"tight\"}", "mode: should be packed, distributed or policy, "},
		{TWO "\"mode\": \"packed\", \"whant\": 1}", "unknown key \"whant\""},
		{TWO "\"mode\": \"packed\", \"affinity\": null}", "unknown key \"affinity\""},
		{TWO TAKE "\"available\": [0]}", "want: "},
		{TWO TAKE "\"want\": 1, \"available\": [0, -1]}", "available: element 1: "},
		{TWO TAKE "\"want\": 1, \"available\": [1024]}", "available: element 0: "},
		{TWO TAKE "\"want\": 1}", "available: "},
		{MACHINE("[]") TAKE "\"want\": 1, \"available\": []}", "cpus: "},
		{MACHINE("[[0, 0, 0, 0]]") TAKE "\"want\": 1, \"available\": []}", "cpus: "},
		{MACHINE("[[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]") TAKE "\"want\": 1, \"available\": "
								    "[]}",
			"cpus: "},
		{MACHINE("[[0, 0, 0, 0, 0]]") TAKE "\"want\": 1, \"available\": []}",
			"num_cores: "},
		{TWO GRANT("{\"full-pcpus-only\": 3}", "1"), "options: full-pcpus-only: "},
		{TWO GRANT("[]", "1"), "options: should be an object, "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *item, *result = NULL;
		struct err e = {0};

		assert_true(answer(cases[i].in, &item, &result, &e) < 0);
		if (strncmp(e.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%zu: %s", i, e.text);
		json_decref(item);
	}
}

static void options_that_the_policy_refuses_give_an_error_answer(void **state)
{
	static const struct {
		const char *in, *text;
	} cases[] = {
		{TWO GRANT("{}", "0"),
			"[cpumanager] the static policy requires systemreserved.cpu + "
			"kubereserved.cpu to be greater than zero"},
		{TWO GRANT("{}", "3"), "[cpumanager] unable to reserve the required amount of CPUs "
				       "(size of  did not equal 3)"},
		{TWO GRANT("{\"full-pcpus\": \"true\"}", "1"),
			"unknown CPU Manager Policy option: \"full-pcpus\""},
		{TWO GRANT("{\"full-pcpus-only\": \"yes\"}", "1"),
			"bad value for option \"full-pcpus-only\": strconv.ParseBool: parsing "
			"\"yes\": invalid syntax"},
		{TWO GRANT("{\"full-pcpus-only\": true, \"distribute-cpus-across-cores\": true}",
			 "1"),
			"static policy options full-pcpus-only and distribute-cpus-across-cores "
			"can not be used at the same time"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *item, *result = NULL;
		struct err e = {0};

		if (answer(cases[i].in, &item, &result, &e))
			fail_msg("%zu: %s", i, e.text);
		assert_int_equal(json_object_size(result), 2);
		assert_true(json_is_null(json_object_get(result, "cpus")));
		assert_string_equal(
			json_string_value(json_object_get(result, "error")), cases[i].text);
		json_decref(result);
		json_decref(item);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_assignments_of_the_released_policy_are_the_same),
		cmocka_unit_test(assignments_that_were_checked_by_hand_are_the_same),
		cmocka_unit_test(recorded_assignments_on_uneven_machines_are_the_same),
		cmocka_unit_test(an_unreadable_question_is_an_error_with_its_place),
		cmocka_unit_test(options_that_the_policy_refuses_give_an_error_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
