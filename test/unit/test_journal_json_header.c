/* The first line of a journal: machine, format and settings. */
#include "journal_json_rig.h"

static void the_header_comes_back(void **state)
{
	struct journal_header h = {.version = "0.1.0",
		.boot_id = "b",
		.machine = "kep\"3545",
		.fingerprint = UINT32_MAX,
		.says_placed_by = true,
		.core_rule = CORES_WHOLE,
		.topology = "machine a\nnode 0 memory 1Gi cpus 0-1\n"};
	struct journal_header back;
	struct settings s;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	settings_init(&s);
	assert_int_equal(words_of_settings(&s, &a, &h.settings, NULL), 0);
	assert_true(h.settings.nr > 0);
	int len = journal_json_header(&h, line, sizeof line, NULL);
	assert_true(len > 0);
	assert_null(strchr(line, '\n'));
	assert_int_equal(journal_json_parse_header(line, (size_t)len, &a, &back, NULL), 0);
	assert_string_equal(back.version, h.version);
	assert_string_equal(back.boot_id, h.boot_id);
	assert_string_equal(back.machine, h.machine);
	assert_int_equal(back.fingerprint, h.fingerprint);
	assert_true(back.says_placed_by);
	assert_int_equal(back.core_rule, h.core_rule);
	assert_string_equal(back.topology, h.topology);
	assert_int_equal(back.settings.nr, h.settings.nr);
	for (size_t i = 0; i < h.settings.nr; i++) {
		assert_string_equal(back.settings.at[i].key, h.settings.at[i].key);
		assert_string_equal(back.settings.at[i].value, h.settings.at[i].value);
	}
	arena_fini(&a);
}

static void a_header_of_another_format_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		struct journal_header back;
		struct arena a;
		struct err e = {0};

		arena_init(&a, ARENA_BYTES);
		assert_int_equal(journal_json_parse_header(
					 headers[i].line, strlen(headers[i].line), &a, &back, &e),
			headers[i].rc);
		if (!strstr(e.text, headers[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.text, headers[i].says);
		arena_fini(&a);
	}
}

static void settings_are_read_back_from_their_words(void **state)
{
	static const char *const given[][2] = {
		{"topologyManagerPolicy", "single-numa-node"},
		{"topologyManagerPolicyOptions.prefer-closest-numa-nodes", "false"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "12"},
		{"cpuManagerPolicyOptions.full-pcpus-only", "true"},
		{"systemReserved.cpu", "1500m"},
		{"reservedSystemCPUs", "0,64"},
		{"reservedMemory.0.numaNode", "0"},
		{"reservedMemory.0.limits.memory", "1Gi"},
		{"reservedMemory.0.limits.hugepages-1Gi", "2Gi"},
		{"reservedMemory.1.numaNode", "8"},
		{"reservedMemory.1.limits.memory", "1500"},
		{"mergeVisitBudget", "0"},
		{"journalMaxBytes", "1Gi"},
	};
	struct word_list words, back_words;
	struct settings s, back;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	settings_init(&s);
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		assert_int_equal(settings_set(&s, given[i][0], given[i][1], NULL), 0);
	assert_int_equal(words_of_settings(&s, &a, &words, NULL), 0);
	assert_int_equal(settings_of_words(&words, &a, &back, NULL), 0);
	assert_int_equal(words_of_settings(&back, &a, &back_words, NULL), 0);
	assert_int_equal(words.nr, back_words.nr);
	for (size_t i = 0; i < words.nr; i++)
		assert_string_equal(words.at[i].value, back_words.at[i].value);
	assert_int_equal(back.nr_reserved_memory, 3);
	assert_memory_equal(back.reserved_memory, s.reserved_memory, sizeof s.reserved_memory);
	assert_int_equal(back.options_given, s.options_given);
	arena_fini(&a);
}

static void unknown_words_for_settings_are_refused(void **state)
{
	static const struct {
		struct key_value word;
		int rc;
	} cases[] = {
		{{"mode", "manage"}, 0},
		{{"mode", ""}, 0},
		{{"mode", "on"}, -EINVAL},
		{{"colour", "red"}, -ENOENT},
		{{"reservedMemory", "0:memory=1Gi"}, 0},
		{{"reservedMemory", "0"}, 0},
		{{"reservedMemory", "x:memory=1Gi"}, -EINVAL},
		{{"reservedMemory", "0:memory"}, -EINVAL},
		{{"reservedMemory", ":"}, -EINVAL},
		{{"reservedMemory", "0:memory=x"}, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings s;
		struct arena a;

		arena_init(&a, ARENA_BYTES);
		assert_int_equal(
			settings_of_words(&(struct word_list){&cases[i].word, 1}, &a, &s, NULL),
			cases[i].rc);
		arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_comes_back),
		cmocka_unit_test(a_header_of_another_format_is_refused),
		cmocka_unit_test(settings_are_read_back_from_their_words),
		cmocka_unit_test(unknown_words_for_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
