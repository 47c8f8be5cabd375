/* Reasons as the journal keeps them and as `numafit decide` prints them. */
#include <codec/reasons_json.h>

#include <codec/fields_json.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 16 << 10 };

/* NUMA nodes 0, 8 and 255. */
static void power_like(struct topo *t)
{
	static const unsigned ids[] = {0, 8, 255};

	topo_init(t, "power");
	for (unsigned i = 0; i < 3; i++)
		assert_true(topo_add_node(t, ids[i], NULL) >= 0);
}

static const struct reasons some = {
	.nr = 3,
	.resource = {{.resource = "cpu",
			     .kind = FAMILY_CAPACITY,
			     .masks = 5,
			     .smallest = 1,
			     .preferred_size = 1,
			     .nr_best = 2,
			     .best = {{4}, {5}}},
		{.resource = "hugepages-2Mi",
			.kind = FAMILY_CAPACITY,
			.masks = UINT64_MAX,
			.more_masks = true,
			.smallest = 2,
			.preferred_size = 1},
		{.resource = "example.com/\"x\"", .kind = FAMILY_NONE}},
	.affinity = {.mask = {6}, .preferred = false},
	.admit = true,
	.cut_short = true,
	.has_runner_up = true,
	.runner_up = {.mask = {3}, .preferred = true},
};

static void check_json(const struct reasons *r, const char *want)
{
	static struct topo t;

	power_like(&t);
	json_t *got = reasons_json(r, &t);
	char *text = json_dumps(got, JSON_ENCODE_ANY);

	assert_string_equal(text, want);
	free(text);
	json_decref(got);
}

static void decide_prints_reasons_with_the_ids_of_the_kernel(void **state)
{
	(void)state;
	check_json(&some,
		"{\"verdict\": \"admitted\", \"affinity\": [8, 255], \"preferred\": false, "
		"\"runner_up\": {\"affinity\": [0, 8], \"preferred\": true}, \"cut_short\": true, "
		"\"resources\": [{\"resource\": \"cpu\", \"kind\": \"capacity\", \"masks\": 5, "
		"\"masks_at_least\": false, \"smallest\": 1, \"preferred_size\": 1, \"best\": "
		"[[255], [0, 255]]}, {\"resource\": \"hugepages-2Mi\", \"kind\": \"capacity\", "
		"\"masks\": \"18446744073709551615\", \"masks_at_least\": true, \"smallest\": 2, "
		"\"preferred_size\": 1, \"best\": []}, {\"resource\": \"example.com/\\\"x\\\"\", "
		"\"kind\": \"none\", \"masks\": 0, \"masks_at_least\": false, \"smallest\": 0, "
		"\"preferred_size\": 0, \"best\": []}]}");
	check_json(&(struct reasons){.affinity = {.any = true}},
		"{\"verdict\": \"refused\", \"affinity\": null, \"preferred\": false, "
		"\"runner_up\": null, \"cut_short\": false, \"resources\": []}");
	check_json(NULL, "null");
}

static void reasons_in_the_form_of_the_journal_read_back_as_they_were(void **state)
{
	static const struct node_ids ids = {.nr = 3, .id = {0, 8, 255}};
	static struct reasons back;
	char once[TEXT_BYTES], twice[TEXT_BYTES];
	struct text t;
	struct err e = {0};

	(void)state;
	memset(&back, 0, sizeof back);
	text_init(&t, once, sizeof once);
	fields_write(&t, &reasons_fields, &some, &ids);
	assert_false(t.cut);
	if (fields_parse(
		    once, t.len, &reasons_fields, &back, &(struct fields_context){.ids = &ids}, &e))
		fail_msg("%s", e.text);
	text_init(&t, twice, sizeof twice);
	fields_write(&t, &reasons_fields, &back, &ids);
	assert_string_equal(once, twice);
	assert_memory_equal(&back, &some, sizeof some);
}

static void impossible_reasons_are_refused(void **state)
{
	static const struct node_ids ids = {.nr = 1, .id = {0}};
	static const char resource[] =
		"{\"admit\":true,\"affinity\":{\"nodes\":\"0\",\"any\":false,"
		"\"preferred\":true},\"cut_short\":false,\"resources\":[{"
		"\"resource\":\"cpu\",\"kind\":\"%s\",\"masks\":1,"
		"\"masks_at_least\":false,\"smallest\":%u,"
		"\"preferred_size\":1,\"best\":[{\"nodes\":\"%u\"}]}]}";
	static const struct {
		const char *kind;
		unsigned smallest, node;
		bool good;
	} cases[] = {{"capacity", 1, 0, true}, {"many", 1, 0, false}, {"capacity", 65, 0, false},
		{"capacity", 1, 3, false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[TEXT_BYTES];
		struct reasons r = {0};
		int len = snprintf(text, sizeof text, resource, cases[i].kind, cases[i].smallest,
			cases[i].node);
		int rc = fields_parse(text, (size_t)len, &reasons_fields, &r,
			&(struct fields_context){.ids = &ids}, NULL);

		assert_int_equal(rc == 0, cases[i].good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decide_prints_reasons_with_the_ids_of_the_kernel),
		cmocka_unit_test(reasons_in_the_form_of_the_journal_read_back_as_they_were),
		cmocka_unit_test(impossible_reasons_are_refused),
	};
	json_object_seed(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
