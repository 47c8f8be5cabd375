#include "journal_json_rig.h"

#include <stdio.h>

static const struct node_ids ids = {.nr = 6, .id = {0, 8, 250, 251, 254, 255}};

static const char grant_line[] =
	"{\"seq\":3,\"time_ms\":1700000000000,\"op\":\"grant\",\"cause\":\"create\",\"container_"
	"id\":\"c1\","
	"\"request\":{\"container_name\":\"web\",\"kind\":\"app\",\"place\":0,\"sandbox_id\":"
	"\"s1\",\"pod_uid\":\"u1\",\"pod_"
	"namespace\":\"default\","
	"\"pod_name\":\"p1\",\"qos\":\"Guaranteed\",\"created_at_ns\":7,\"cpu_milli\":2000,\"cpu_"
	"limit_milli\":2000,"
	"\"memory\":[{\"page_bytes\":0,\"bytes\":1048576}],\"cpus\":\"\",\"mems\":\"\"},"
	"\"decision\":{\"admit\":true,\"source\":\"decided\",\"policy\":\"restricted\","
	"\"exclusive\":true,\"cpus\":\"2-3\","
	"\"mems\":\"8\",\"nodes\":\"8\",\"preferred\":true,\"blocks\":[{\"kind\":0,\"nodes\":\"8\","
	"\"bytes\":1048576}],"
	"\"message\":\"\"},"
	"\"pool\":\"0-1\"}";

static void the_members_of_a_record_are_written_in_a_fixed_order(void **state)
{
	(void)state;
	assert_int_equal(
		journal_json_record(&grant, &ids, line, sizeof line, NULL), sizeof grant_line - 1);
	assert_string_equal(line, grant_line);
}

static void a_line_that_does_not_fit_is_an_error_at_every_size(void **state)
{
	(void)state;
	for (size_t cap = 1; cap < sizeof grant_line; cap++)
		assert_int_equal(journal_json_record(&grant, &ids, line, cap, NULL), -EMSGSIZE);
	assert_int_equal(journal_json_record(&grant, &ids, line, sizeof grant_line, NULL),
		sizeof grant_line - 1);
}

static void a_line_that_is_cut_at_any_byte_is_an_error(void **state)
{
	(void)state;
	for (size_t len = 0; len + 1 < sizeof grant_line; len++) {
		struct decoded_record back;
		struct arena a;

		arena_init(&a, ARENA_BYTES);
		assert_true(journal_json_parse(grant_line, len, &ids, &a, &back, NULL) < 0);
		arena_fini(&a);
	}
}

static void a_message_cut_within_a_character_can_be_read_back(void **state)
{
	struct decision d = granted;
	struct record r = grant;
	struct decoded_record back;
	struct arena a;

	(void)state;
	r.decision = &d;
	for (size_t len = 7; len < sizeof d.message; len += sizeof d.message - 8) {
		char want[sizeof d.message];

		memset(d.message, 'e', len);
		memcpy(d.message + len - 2, "\xe2\x82", 3);
		memset(want, 'e', len);
		memcpy(want + len - 2, "??", 3);
		int written = journal_json_record(&r, &ids, line, sizeof line, NULL);
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(
			journal_json_parse(line, (size_t)written, &ids, &a, &back, NULL), 0);
		assert_string_equal(back.decision.message, want);
		arena_fini(&a);
	}
}

/* A numafit that is older than a verdict sets a journal aside that has the verdict's word. */
static void a_verdict_that_older_versions_lack_is_written_by_a_word_of_theirs(void **state)
{
	static const char *const of_0_2_0[] = {"none", "accepted", "accepted-stale", "repaired",
		"rejected:format", "rejected:version", "rejected:uid", "rejected:node",
		"rejected:clock", "rejected:expired", "rejected:numa", "rejected:not-fit",
		"rejected:not-narrowest", "rejected:farther", "rejected:policy",
		"rejected:foreign-cpuset"};
	struct decision d = granted;
	struct record r = grant;

	(void)state;
	r.decision = &d;
	for (unsigned v = 0; v < NR_ADVICE_VERDICTS; v++) {
		struct decoded_record back;
		struct arena a;
		char word[64];

		d.advice = (struct advice_result){.looked_at = true, .verdict = v};
		int len = journal_json_record(&r, &ids, line, sizeof line, NULL);
		const char *hint = strstr(line, "\"hint\":{\"verdict\":\"");
		assert_non_null(hint);
		assert_int_equal(sscanf(hint, "\"hint\":{\"verdict\":\"%63[^\"]", word), 1);
		if (text_index(of_0_2_0, sizeof of_0_2_0 / sizeof *of_0_2_0, word) < 0)
			fail_msg("numafit 0.2.0 does not know the verdict %s", word);
		assert_int_equal(
			!!strstr(line, "\"repaired_cpus\":true"), v == ADVICE_REPAIRED_CPUS);
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(journal_json_parse(line, (size_t)len, &ids, &a, &back, NULL), 0);
		assert_int_equal(back.decision.advice.verdict, v);
		arena_fini(&a);
	}
}

static void strings_beyond_the_arena_are_refused(void **state)
{
	struct decoded_record back;
	size_t limit = 0;
	int rc = -ENOMEM;

	(void)state;
	for (; rc; limit += 16) {
		struct arena a;

		arena_init(&a, limit);
		rc = journal_json_parse(grant_line, sizeof grant_line - 1, &ids, &a, &back, NULL);
		arena_fini(&a);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	/* nine strings of 16 bytes, "default" among them */
	assert_true(limit > 9 * 16);
}

static void a_pods_quota_comes_back_as_it_was_written(void **state)
{
	const struct kept_note note = {"/kubepods/podu1", "400000 100000"};
	struct record r = {.seq = 4,
		.op = RECORD_QUOTA,
		.cause = "quota",
		.container_id = "u1",
		.quota = &note,
		.pool = {{3}}};
	struct decoded_record back;
	struct arena a;
	int len = journal_json_record(&r, &ids, line, sizeof line, NULL);

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(journal_json_parse(line, (size_t)len, &ids, &a, &back, NULL), 0);
	assert_int_equal(back.record.op, RECORD_QUOTA);
	assert_string_equal(back.record.container_id, "u1");
	assert_string_equal(back.record.quota->place, note.place);
	assert_string_equal(back.record.quota->was, note.was);
	arena_fini(&a);
}

static void what_a_file_of_the_kernel_had_comes_back_as_it_was_written(void **state)
{
	const struct kept_note note = {NULL, "0-3,8"};
	struct record r = {.seq = 4,
		.op = RECORD_QUIET,
		.cause = "quiet",
		.container_id = "proc/irq/5/smp_affinity_list",
		.quiet = &note,
		.pool = {{3}}};
	struct decoded_record back;
	struct arena a;
	int len = journal_json_record(&r, &ids, line, sizeof line, NULL);

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(journal_json_parse(line, (size_t)len, &ids, &a, &back, NULL), 0);
	assert_int_equal(back.record.op, RECORD_QUIET);
	assert_string_equal(back.record.container_id, r.container_id);
	assert_null(back.record.quiet->place);
	assert_string_equal(back.record.quiet->was, note.was);
	arena_fini(&a);
}

static void a_line_that_is_not_a_record_is_an_error_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct decoded_record back;
		struct arena a;
		struct err e = {0};

		arena_init(&a, ARENA_BYTES);
		assert_int_equal(journal_json_parse(refused[i].line, strlen(refused[i].line), &ids,
					 &a, &back, &e),
			refused[i].rc);
		if (!strstr(e.text, refused[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.text, refused[i].says);
		arena_fini(&a);
	}
}

static void a_record_that_contradicts_itself_is_an_error_with_the_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
		const char *at = strstr(grant_line, changed[i].from);
		struct decoded_record back;
		struct arena a;
		struct err e = {0};
		struct text t;

		assert_non_null(at);
		text_init(&t, line, sizeof line);
		text_add(&t, "%.*s%s%s", (int)(at - grant_line), grant_line, changed[i].to,
			at + strlen(changed[i].from));
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(
			journal_json_parse(t.at, t.len, &ids, &a, &back, &e), changed[i].rc);
		if (!strstr(e.text, changed[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.text, changed[i].says);
		arena_fini(&a);
	}
}

/* What a line says that was written before there were flags, and with them. */
static void an_old_line_with_its_verdict_only_in_the_message_sets_the_flags(void **state)
{
	static const struct {
		const char *flags, *message;
		bool left, lost_cpus;
	} cases[] = {
		{"", "left as it ran: onAdopt is leave", true, false},
		{"", "CPUs are offline: 1,33; not replaced: no room", false, true},
		{"", "unaligned: CPUs are offline: 1", false, false},
		{"", "", false, false},
		{"\"left\":true,", "in other words", true, false},
		{"\"lost_cpus\":true,", "in other words", false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static const char from[] = "\"message\":\"\"";
		const char *at = strstr(grant_line, from);
		struct decoded_record back;
		struct arena a;
		struct text t;

		text_init(&t, line, sizeof line);
		text_add(&t, "%.*s%s\"message\":\"%s\"%s", (int)(at - grant_line), grant_line,
			cases[i].flags, cases[i].message, at + sizeof from - 1);
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(journal_json_parse(t.at, t.len, &ids, &a, &back, NULL), 0);
		assert_int_equal(decision_is_left(&back.decision), cases[i].left);
		assert_int_equal(back.decision.lost_cpus, cases[i].lost_cpus);
		arena_fini(&a);
	}
}

static void an_old_line_of_a_pod_sets_the_flags_of_its_parts(void **state)
{
	const struct record_part part = {
		web, {.admit = true,
			     .source = SOURCE_HELD,
			     .message = "CPUs are offline: 2; not replaced: no room"}};
	const struct record hold = {.op = RECORD_HOLD,
		.cause = "run-pod",
		.container_id = "s1",
		.parts = &part,
		.nr_parts = 1};
	struct decoded_record back;
	struct arena a;
	int len = journal_json_record(&hold, &ids, line, sizeof line, NULL);

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(journal_json_parse(line, (size_t)len, &ids, &a, &back, NULL), 0);
	assert_true(back.record.parts[0].decision.lost_cpus);
	arena_fini(&a);
}

/* As long as a journal takes it, and read with as much memory as the daemon has for it
 * (recorder.c). */
static void the_longest_line_can_be_read_again(void **state)
{
	enum { NR = 512, MEMORY = 16 * LINE_MAX_BYTES };
	struct ask *asks = calloc(NR, sizeof *asks);
	struct record_part *parts = calloc(NR, sizeof *parts);
	struct pod pod = {.container = asks};
	unsigned nr = 0;
	int len = 1;

	(void)state;
	while (nr < NR && len > 0) {
		asks[nr].name = "c";
		parts[nr] = (struct record_part){web, {.admit = true, .source = SOURCE_HELD}};
		parts[nr].request.container_id = parts[nr].request.pod.uid = "";
		nr++;
		pod.nr = nr;
		const struct record r = {.seq = 1,
			.op = RECORD_HOLD,
			.cause = "run-pod",
			.container_id = "s1",
			.pod = &pod,
			.parts = parts,
			.nr_parts = nr};
		struct decoded_record back;
		struct arena a;

		len = journal_json_record(&r, &ids, line, LINE_MAX_BYTES, NULL);
		arena_init(&a, MEMORY);
		if (len > 0 && nr % 32 == 0)
			assert_int_equal(
				journal_json_parse(line, (size_t)len, &ids, &a, &back, NULL), 0);
		arena_fini(&a);
	}
	assert_true(nr > 256);
	free(parts);
	free(asks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_members_of_a_record_are_written_in_a_fixed_order),
		cmocka_unit_test(a_line_that_does_not_fit_is_an_error_at_every_size),
		cmocka_unit_test(a_line_that_is_cut_at_any_byte_is_an_error),
		cmocka_unit_test(a_message_cut_within_a_character_can_be_read_back),
		cmocka_unit_test(a_verdict_that_older_versions_lack_is_written_by_a_word_of_theirs),
		cmocka_unit_test(strings_beyond_the_arena_are_refused),
		cmocka_unit_test(a_pods_quota_comes_back_as_it_was_written),
		cmocka_unit_test(what_a_file_of_the_kernel_had_comes_back_as_it_was_written),
		cmocka_unit_test(a_line_that_is_not_a_record_is_an_error_with_a_reason),
		cmocka_unit_test(a_record_that_contradicts_itself_is_an_error_with_the_place),
		cmocka_unit_test(an_old_line_with_its_verdict_only_in_the_message_sets_the_flags),
		cmocka_unit_test(an_old_line_of_a_pod_sets_the_flags_of_its_parts),
		cmocka_unit_test(the_longest_line_can_be_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
