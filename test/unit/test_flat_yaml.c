#include <codec/flat_yaml.h>

#include <errno.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NOTED_MAX = 4096, ENOUGH = -1000 };

/* Writes each scalar as "LINE PATH=VALUE;", an empty map or list as "LINE PATH;". */
static int note_scalar(void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct text *noted = ctx;

	(void)e;
	text_add(noted, "%u %s%s%s;", line, path, value ? "=" : "", value ? value : "");
	return 0;
}

static int stop_at_second(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	unsigned *calls = ctx;

	(void)path;
	(void)value;
	(void)line;
	return ++*calls == 2 ? err_set(e, -ENOUGH, "enough") : 0;
}

static int read_bytes(const char *yaml, size_t len, char *noted, struct err *e)
{
	struct text t;

	text_init(&t, noted, NOTED_MAX);
	return flat_yaml_read(yaml, len, note_scalar, &t, NULL, e);
}

static int refuse_no(void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	if (text_equal(value, "no"))
		return err_set(e, ERANGE, "line %u: %s: no", line, path);
	return note_scalar(ctx, path, value, line, e);
}

static void with_a_list_the_reading_goes_on_after_a_mistake(void **state)
{
	static const struct {
		const char *yaml, *want, *mistakes;
		int rc;
		bool unread;
	} table[] = {
		{"a: 1\nb: 2\n", "1 a=1;2 b=2;", "", 0, false},
		{"a: no\nb: 2\nc: [no, 3]\n", "2 b=2;3 c.1=3;", "1: a: no;3: c.0: no;", -ERANGE,
			false},
		{"a: 1\na: 2\nb: 3\n", "1 a=1;3 b=3;", "2: a: the key is there twice;", -EINVAL,
			false},
		{"a: 1\na: {b: [1, {c: 2}], d: 3}\nb: {a: 4}\n", "1 a=1;3 b.a=4;",
			"2: a: the key is there twice;", -EINVAL, false},
		{"a: {x y: {x y: 1, b: 2}, c: 3}\n", "1 a.c=3;",
			"1: \"x y\" is not a key: letters, digits, '-' and '_' are;", -EINVAL,
			false},
		{"a: {x y: {}, c: 3}\nb: {x y: []}\n", "1 a.c=3;",
			"1: \"x y\" is not a key: letters, digits, '-' and '_' are;2: \"x y\" is not a key: "
			"letters, digits, '-' and '_' are;",
			-EINVAL, false},
		{"a: &x 1\nb: *x\nc: [*x, 2]\n*x : 3\nd: !t 4\n", "1 a=1;3 c.1=2;5 d=4;",
			"1: anchors (&x) are not supported;2: aliases (*x) are not supported;3: aliases (*x) "
			"are not supported;4: aliases (*x) are not supported;5: tags (!t) are not supported;",
			-EINVAL, false},
		{"a: no\nb: [1, 2\n", "", "3: did not find expected ',' or ']';", -EINVAL, true},
		{"a: 1\n--- \nb: no\n", "1 a=1;", "2: a second document begins;", -EINVAL, true},
		{"[no]\n", "", "1: a key with a colon is expected, not a list;", -EINVAL, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char noted[NOTED_MAX], found[NOTED_MAX] = "";
		struct mistakes all = {0};
		struct text t, mistakes;
		struct err e = {0};

		text_init(&t, noted, sizeof noted);
		text_init(&mistakes, found, sizeof found);
		int rc = flat_yaml_read(
			table[i].yaml, strlen(table[i].yaml), refuse_no, &t, &all, &e);
		for (size_t m = 0; m < all.found.nr; m++)
			text_add(&mistakes, "%s;", all.found.at[m].text + strlen("line "));
		assert_string_equal(noted, table[i].want);
		assert_string_equal(found, table[i].mistakes);
		assert_int_equal(rc, table[i].rc);
		assert_int_equal(all.unread, table[i].unread);
		if (rc)
			assert_string_equal(e.text, all.found.at[0].text);
		mistakes_fini(&all);
	}
}

static void scalars_are_reported_in_order_with_path_and_line(void **state)
{
	static const struct {
		const char *yaml, *want;
	} good[] = {
		{"", ""},
		{"# only words\n", ""},
		{"---\n", ""},
		{"---\n...\n", ""},
		{"{}\n", ""},
		{"a: 1\n", "1 a=1;"},
		{"\xef\xbb\xbf"
		 "a: 1\n",
			"1 a=1;"},
		{"# c\n---\na: 1 # c\n\nb: two words\n", "3 a=1;5 b=two words;"},
		{"nri:\n  socketPath: /a\n  pluginIndex: 05\nmode: off\n",
			"2 nri.socketPath=/a;3 nri.pluginIndex=05;4 mode=off;"},
		{"steps:\n- create: {cpu: 2,\n    pod: web}\n- restart-runtime\n",
			"2 steps.0.create.cpu=2;3 steps.0.create.pod=web;4 "
			"steps.1=restart-runtime;"},
		{"a:\nb:\n  c:\nd: ''\n", "1 a=;3 b.c=;4 d=;"},
		{"a: {}\nb: []\nc: [[], x]\n", "1 a;2 b;3 c.0;3 c.1=x;"},
		{"a: [x, [y, z]]\nb: w\n", "1 a.0=x;1 a.1.0=y;1 a.1.1=z;2 b=w;"},
		{"a: {x: 1}\nb: {x: 2}\n", "1 a.x=1;2 b.x=2;"},
		{"a: {b: 1}\nb: 2\n", "1 a.b=1;2 b=2;"},
		{"'a': \"x\\ty\"\n\"b\": 'it''s'\n", "1 a=x\ty;2 b=it's;"},
		{"a: |\n  one\n  two\nb: >-\n  folded\n  text\n",
			"1 a=one\ntwo\n;4 b=folded text;"},
		{"a: \xc3\xa9\n", "1 a=\xc3\xa9;"},
		{"? a\n: 1\n", "2 a=1;"},
		{"labels: {a.b/c-d: x, e: y}\n", "1 labels.a.b/c-d=x;1 labels.e=y;"},
		{"n:\n- labels: {a.b: x}\n", "2 n.0.labels.a.b=x;"},
		{"a: {b: {c: {d: {e: {f: {g: 1}}}}}}\n", "1 a.b.c.d.e.f.g=1;"},
	};
	char noted[NOTED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct err e = {0};

		if (read_bytes(good[i].yaml, strlen(good[i].yaml), noted, &e))
			fail_msg("%s: %s", good[i].yaml, e.text);
		assert_string_equal(noted, good[i].want);
	}
}

static void unsupported_yaml_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *yaml, *says[2];
	} bad[] = {
		{"word\n", {"line 1", "a key with a colon"}},
		{"\n- a\n", {"line 2", "not a list"}},
		{"a: &x 1\n", {"line 1", "anchors (&x)"}},
		{"a: &x {b: 1}\n", {"line 1", "anchors (&x)"}},
		{"a: &x [b]\n", {"line 1", "anchors (&x)"}},
		{"&x a: 1\n", {"line 1", "anchors (&x)"}},
		{"a: 1\nb: *x\n", {"line 2", "aliases (*x)"}},
		{"a: 1\nb: !!int 1\n", {"line 2", "tags (tag:yaml.org,2002:int)"}},
		{"a: ! 1\n", {"line 1", "tags"}},
		{"a: !x {b: 1}\n", {"line 1", "tags"}},
		{"a: !x [b]\n", {"line 1", "tags"}},
		{"a: 1\nb: 2\na: 3\n", {"line 3: a:", "twice"}},
		{"x:\n  a: 1\n  b: {c: 1}\n  a: 3\n", {"line 4: x.a:", "twice"}},
		{"- a\n", {"line 1", "not a list"}},
		{"<<: {a: 1}\n", {"line 1", "\"<<\" is not a key"}},
		{"a.b: 1\n", {"line 1", "\"a.b\" is not a key"}},
		{"a/b: 1\n", {"line 1", "\"a/b\" is not a key"}},
		{"labels: {a.b: 1, a.b: 2}\n", {"line 1: labels.a.b:", "twice"}},
		{"labels: {x: {a.b: 1}}\n", {"line 1", "\"a.b\" is not a key"}},
		{"labels: {.a: 1}\n", {"line 1", "\".a\" is not a key"}},
		{"labels: {a.: 1}\n", {"line 1", "\"a.\" is not a key"}},
		{"xlabels: {a.b: 1}\n", {"line 1", "\"a.b\" is not a key"}},
		{"a b: 1\n", {"line 1", "\"a b\" is not a key"}},
		{"'': 1\n", {"line 1", "\"\" is not a key"}},
		{"? {a: 1}\n: 2\n", {"line 1", "is no key"}},
		{"? [a]\n: 2\n", {"line 1", "is no key"}},
		{"a: 1\n---\nb: 1\n", {"line 2", "second document"}},
		{"a: \"\\0\"\n", {"line 1", "NUL"}},
		{"a: [1, 2\nb: 3\n", {"line 2", "did not find expected ',' or ']'"}},
		{"a: 1\n b: 2\n", {"line 2", "mapping values are not allowed"}},
		{"a: 1\n\tb: 2\n", {"line 2", "a tab character"}},
		{"a: 1\nb: \xff\n", {"line 2", "UTF-8"}},
		{"a: 1\nb: \xed\xa0\x80\n", {"line 2", "Unicode"}},
		{"a: 1\n\nb: \x01\n", {"line 3", "control characters"}},
		{"a: 1\n'b\xc2\xa0': 1\n", {"line 2", "is not a key"}},
	};
	char noted[NOTED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = {0};

		if (read_bytes(bad[i].yaml, strlen(bad[i].yaml), noted, &e) != -EINVAL)
			fail_msg("%s: code %d: %s", bad[i].yaml, e.code, noted);
		for (unsigned k = 0; k < 2; k++)
			if (!strstr(e.text, bad[i].says[k]))
				fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].yaml, e.text,
					bad[i].says[k]);
	}
}

static void scalars_before_a_mistake_are_reported(void **state)
{
	static const char yaml[] = "a: 1\nb: 2\na: 3\n";
	char noted[NOTED_MAX];

	(void)state;
	assert_int_equal(read_bytes(yaml, strlen(yaml), noted, NULL), -EINVAL);
	assert_string_equal(noted, "1 a=1;2 b=2;");
}

static void a_refused_scalar_ends_the_reading(void **state)
{
	static const char *const yamls[] = {
		"a: 1\nb: 2\nc: 3\n", "a: {x: 1, y: 2}\nc: 3\n", "a: [1, []]\nc: 3\n"};

	(void)state;
	for (size_t i = 0; i < sizeof yamls / sizeof *yamls; i++) {
		unsigned calls = 0;
		struct err e = {0};

		assert_int_equal(flat_yaml_read(yamls[i], strlen(yamls[i]), stop_at_second, &calls,
					 NULL, &e),
			ENOUGH);
		assert_int_equal(calls, 2);
		assert_string_equal(e.text, "enough");
	}
}

/* Room for a file of the greatest size and what we put around it. */
static char big[FLAT_YAML_BYTES_MAX + 64];
static char big_noted[sizeof big + NOTED_MAX];

static int read_big(size_t len, struct err *e)
{
	struct text t;

	*e = (struct err){0};
	text_init(&t, big_noted, sizeof big_noted);
	return flat_yaml_read(big, len, note_scalar, &t, NULL, e);
}

static void a_file_is_bounded_in_bytes(void **state)
{
	struct err e;

	(void)state;
	memset(big, '#', sizeof big);
	memcpy(big, "a: 1\n", 5);
	assert_int_equal(read_big(FLAT_YAML_BYTES_MAX, &e), 0);
	assert_string_equal(big_noted, "1 a=1;");
	assert_int_equal(read_big(FLAT_YAML_BYTES_MAX + 1, &e), -E2BIG);
	assert_non_null(strstr(e.text, "262144"));
}

static void maps_and_lists_are_bounded_in_depth(void **state)
{
	(void)state;
	for (unsigned depth = FLAT_YAML_DEPTH_MAX; depth <= FLAT_YAML_DEPTH_MAX + 1; depth++) {
		char *at = big;
		struct err e;

		/* a map, and lists in it */
		at = stpcpy(at, "a:\n ");
		for (unsigned i = 1; i < depth; i++)
			at = stpcpy(at, "[");
		at = stpcpy(at, "x");
		for (unsigned i = 1; i < depth; i++)
			at = stpcpy(at, "]");
		if (depth <= FLAT_YAML_DEPTH_MAX) {
			assert_int_equal(read_big((size_t)(at - big), &e), 0);
			assert_string_equal(big_noted, "2 a.0.0.0.0.0.0.0=x;");
			continue;
		}
		assert_int_equal(read_big((size_t)(at - big), &e), -EINVAL);
		assert_non_null(strstr(e.text, "line 2: more than 8"));
	}
}

static void a_map_is_bounded_in_keys_and_a_list_is_not(void **state)
{
	char *at = big;
	struct err e;

	(void)state;
	for (unsigned i = 0; i < FLAT_YAML_KEYS_MAX; i++)
		at += sprintf(at, "k%u: 1\n", i);
	assert_int_equal(read_big((size_t)(at - big), &e), 0);
	at = stpcpy(at, "one-more: 1\n");
	assert_int_equal(read_big((size_t)(at - big), &e), -EINVAL);
	assert_non_null(strstr(e.text, "line 1025: more than 1024 keys"));

	at = stpcpy(big, "a:\n");
	for (unsigned i = 0; i <= FLAT_YAML_KEYS_MAX; i++)
		at = stpcpy(at, "- 1\n");
	assert_int_equal(read_big((size_t)(at - big), &e), 0);
	assert_non_null(strstr(big_noted, ";1026 a.1024=1;"));
}

static void a_path_is_bounded_in_bytes(void **state)
{
	(void)state;
	for (unsigned len = FLAT_YAML_PATH_MAX - 3; len < FLAT_YAML_PATH_MAX; len++) {
		char *at = stpcpy(big, "a: {");
		struct err e;

		/* with "a." in front, LEN bytes and a NUL */
		memset(at, 'b', len - 2);
		at = stpcpy(at + len - 2, "bb: 1}");
		int want = len + 2 < FLAT_YAML_PATH_MAX ? 0 : -EINVAL;

		assert_int_equal(read_big((size_t)(at - big), &e), want);
		assert_true(!want || strstr(e.text, "exceed 512 bytes"));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_a_list_the_reading_goes_on_after_a_mistake),
		cmocka_unit_test(scalars_are_reported_in_order_with_path_and_line),
		cmocka_unit_test(unsupported_yaml_is_refused_with_its_line),
		cmocka_unit_test(scalars_before_a_mistake_are_reported),
		cmocka_unit_test(a_refused_scalar_ends_the_reading),
		cmocka_unit_test(a_file_is_bounded_in_bytes),
		cmocka_unit_test(maps_and_lists_are_bounded_in_depth),
		cmocka_unit_test(a_map_is_bounded_in_keys_and_a_list_is_not),
		cmocka_unit_test(a_path_is_bounded_in_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
