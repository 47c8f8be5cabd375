/* Names and ids of pods that are replaced in documents and lines of the log, and what is left. */
#include <numafit-cli/redact_json.h>

#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define UID "8d9b1c2d-1111-4222-8333-444455556666"
#define ID  "642ad0a100080000000000000000000000000000000000000000000000000008"

static void check(struct redaction *r, const char *text, const char *want)
{
	char *got = redaction_apply(r, text);

	assert_string_equal(got, want);
	free(got);
}

static void names_have_words_and_all_other_text_is_left_out(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"{\"pod_namespace\":\"shop\",\"pod_name\":\"ab\",\"container_name\":\"ab\","
		 "\"pod_uid\":\"" UID "\",\"container_id\":\"" ID "\"}",
			"{\"pod_namespace\":\"namespace-1\",\"pod_name\":\"pod-1\","
			"\"container_name\":\"container-1\",\"pod_uid\":\"id-1\","
			"\"container_id\":\"id-2\"}"},
		{"{\"op\":\"hold\",\"message\":\"ab of shop\",\"why\":[\"ab\",\"shop\"],\"n\":1.5,"
		 "\"b\":true,\"other\":{\"deep\":\"ab\"}}",
			"{\"op\":\"hold\",\"message\":\"\",\"why\":[\"\",\"\"],\"n\":1.5,\"b\":true,"
			"\"other\":{\"deep\":\"\"}}"},
		{"{\"core_rule\":\"whole\",\"decision\":{\"placed_by\":\"shadow\"}}",
			"{\"core_rule\":\"whole\",\"decision\":{\"placed_by\":\"shadow\"}}"},
		{"{\"journal\":\"/ab/journal: No space left on device\",\"quiet\":{"
		 "\"interrupts_not\":\"/ab: x\",\"frequencies_not\":\"/ab: x\"}}",
			"{\"journal\":\"\",\"quiet\":{\"interrupts_not\":\"\","
			"\"frequencies_not\":\"\"}}"},
		{"{\"name\":\"ab\",\"uid\":\"" UID "\"}", "{\"name\":\"pod-1\",\"uid\":\"id-1\"}"},
		{"{\"name\":\"ab\",\"cpu_milli\":1}", "{\"name\":\"container-1\",\"cpu_milli\":1}"},
		{"{\"name\":\"a/gpu\",\"devices\":[{\"id\":\"GPU-1\",\"has_topology\":true}]}",
			"{\"name\":\"resource-1\",\"devices\":[{\"id\":\"device-1\","
			"\"has_topology\":true}]}"},
		{"[{\"resource\":\"cpu\"},{\"resource\":\"hugepages-1Gi\"},{\"resource\":\"a/gpu\"}]",
			"[{\"resource\":\"cpu\"},{\"resource\":\"hugepages-1Gi\"},"
			"{\"resource\":\"resource-1\"}]"},
		{"{\"shares\":\"" UID "/0 other/12\",\"for_pods\":\"" UID " x\","
		 "\"container_id\":\"~" UID "/ab\",\"id\":\"3\"}",
			"{\"shares\":\"id-1/0 id-3/12\",\"for_pods\":\"id-1 id-4\","
			"\"container_id\":\"~id-1/container-1\",\"id\":\"3\"}"},
		{"{\"wish_quiet\":\"irq,frequency=fast\",\"wish_rdt_class\":\"fast\",\"odd_wish\":\"x\","
		 "\"allocated\":\"v1:5000:0=0-1\"}",
			"{\"wish_quiet\":\"irq,frequency=class-1\",\"wish_rdt_class\":\"class-1\","
			"\"odd_wish\":\"an annotation that numafit does not follow (left-out)\","
			"\"allocated\":\"v1:5000:0=0-1\"}"},
		{"{\"allocated\":\"v1:ab\",\"admit\":false,\"reason\":\"TopologyAffinityError\"}",
			"{\"allocated\":\"\",\"admit\":false,\"reason\":\"TopologyAffinityError\"}"},
		{"{\"topology\":\"node 0\",\"machine\":\"/ab\",\"settings\":{\"nodeName\":\"ab\","
		 "\"mode\":\"manage\",\"namespaces\":\"names=shop,x-* cpus=shared; names=y "
		 "rdt-class=fast force=true\"}}",
			"{\"topology\":\"node 0\",\"machine\":\"\",\"settings\":{\"mode\":\"manage\","
			"\"namespaces\":\"names=namespace-1,pattern-1 cpus=shared; "
			"names=namespace-2 rdt-class=class-1 force=true\"}}"},
		{"<6>time=T level=warn event=decision pod=ab id=642ad0a10008 verdict=admitted "
		 "why=\"ab \\\"of\\\" shop\" cpus=0-3 reason=ab new=",
			"<6>time=T level=warn event=decision pod=pod-1 id=id-2 verdict=admitted "
			"why=\"(left-out)\" cpus=0-3 reason=(left-out) new="},
		{"time=T event=x error=\"ab", "time=T event=x error=\"(left-out)\""},
		{"hwloc: ab=shop", ""},
		{"", ""},
		{"{\"torn\":\"ab", ""},
	};
	struct redaction *r = redaction_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(r, cases[i].text, cases[i].want);
	const size_t names = redaction_names(r);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(r, cases[i].text, cases[i].want);
	assert_int_equal(redaction_names(r), names);
	redaction_free(r);
}

/* Each byte is looked at a few times, however the text is cut: a mebibyte takes 0.1 s at most. */
static void a_mebibyte_takes_no_time_that_grows_with_its_square(void **state)
{
	static const struct {
		const char *head, *again, *tail;
	} cases[] = {
		{"", "\\u0041", ""},
		{"time=1 error=\"", "\\u0041", "\""},
		{"time=1 pod=\"", "\\u0041", "\""},
		{"time=1 pod=", "\\u0041", ""},
		{"time=1 ", "\\u0041", "="},
		{"{\"pod\":\"", "\\u0041", "\"}"},
		{"{\"text\":\"", "\\u0041", "\"}"},
		{"time=1 pod=\"", "\\", "\""},
		{"time=1 ", "a=b ", ""},
		{"time=1 ", " =", ""},
		{"time=1 uid=\"", "~/a ", "\""},
		{"{\"settings\":{\"namespaces\":\"names=", "a*,", "\"}}"},
		{"{\"settings\":{\"namespaces\":\"", "names=a; ", "\"}}"},
	};
	enum { BYTES = 1 << 20, ROOM = 64 };
	auto_free char *text = malloc(BYTES + 2 * ROOM);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const size_t each = strlen(cases[i].again);
		char *at = stpcpy(text, cases[i].head);

		for (size_t n = 0; n < BYTES / each; n++)
			at = stpcpy(at, cases[i].again);
		(void)stpcpy(at, cases[i].tail);
		struct redaction *r = redaction_new();
		const clock_t before = clock();
		free(redaction_apply(r, text));
		/* 0.12 s at most; with the square of the length minutes */
		assert_true(clock() - before < 20 * CLOCKS_PER_SEC);
		redaction_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_words_and_all_other_text_is_left_out),
		cmocka_unit_test(a_mebibyte_takes_no_time_that_grows_with_its_square),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
