/* The fingerprint of pods against golden values of podfingerprint and of xxHash
 * (test/golden/nrt_fingerprint.json). */
#include "nrt_rows.h"

#include <errno.h>
#include <numafit/nrt_fingerprint.h>

static uint64_t hex(json_t *row, const char *key)
{
	return strtoull(row_string(row, key, ""), NULL, 16);
}

static void the_hash_is_xxh64(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "xxh64", i, row)
	{
		const char *data = row_string(row, "data", "");

		if (xxh64(data, strlen(data), hex(row, "seed")) != hex(row, "expect"))
			fail_msg("xxh64 of \"%s\"", data);
	}
}

enum { PODS_MAX = 300, NAMESPACES = 7 };

/* The rows that have no list say how one is made: so. */
static size_t pods_of(json_t *row, uint64_t *pods)
{
	json_t *list = json_object_get(row, "pods"), *pod;
	char ns[16], name[16];
	size_t nr = 0;

	json_array_foreach(list, nr, pod)
	{
		pods[nr] = fingerprint_pod(
			row_string(pod, "namespace", ""), row_string(pod, "name", ""));
		assert_true(pods[nr] == hex(pod, "hash"));
	}
	for (; !list && nr < PODS_MAX; nr++) {
		(void)snprintf(ns, sizeof ns, "ns-%02u", (unsigned)(nr % NAMESPACES));
		(void)snprintf(name, sizeof name, "pod-%03u", (unsigned)nr);
		pods[nr] = fingerprint_pod(ns, name);
	}
	return nr;
}

static void the_fingerprint_is_the_one_that_exporters_write(void **state)
{
	struct rows *r = *state;
	uint64_t pods[PODS_MAX];
	char text[FINGERPRINT_TEXT_MAX];
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		size_t nr = pods_of(row, pods);

		assert_string_equal(
			fingerprint_text(text, pods, nr), row_string(row, "expect", ""));
		assert_int_equal(nr, pods_of(row, pods));
		assert_int_equal(fingerprint_check(text, pods, nr, NULL), 0);
	}
}

static void another_fingerprint_is_refused_with_its_reason(void **state)
{
	static const struct {
		const char *word;
		int rc;
	} reasons[] = {
		{"malformed", -EINVAL}, {"incompatible version", -ENOTSUP}, {"mismatch", -ESTALE}};
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "checkErrors", i, row)
	{
		uint64_t pods[] = {fingerprint_pod("default", "a")};
		int rc = fingerprint_check(row_string(row, "input", ""), pods, 1, NULL);
		unsigned k = 0;

		while (strcmp(reasons[k].word, row_string(row, "error", "")))
			assert_true(++k < sizeof reasons / sizeof *reasons);
		assert_int_equal(rc, reasons[k].rc);
	}
}

static int open_rows(void **state)
{
	return rows_open(state, "test/golden/nrt_fingerprint.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_hash_is_xxh64, open_rows, rows_close),
		cmocka_unit_test_setup_teardown(
			the_fingerprint_is_the_one_that_exporters_write, open_rows, rows_close),
		cmocka_unit_test_setup_teardown(
			another_fingerprint_is_refused_with_its_reason, open_rows, rows_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
