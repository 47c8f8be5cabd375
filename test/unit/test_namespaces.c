/* Setting `namespaces`: what an operator says of the pods of some namespaces. */
#include <codec/wishes.h>
#include <numafit/arena.h>
#include <numafit/namespaces.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

enum { ARENA = 1 << 16 };

static struct settings settings_with(const char *namespaces)
{
	struct settings s;
	struct err e;

	settings_init(&s);
	if (settings_set(&s, "namespaces", namespaces, &e))
		fail_msg("%s", e.text);
	return s;
}

static void text_of(const struct settings *s, char buf[SETTING_TEXT_MAX])
{
	struct setting_doc doc;
	unsigned i = 0;

	while (settings_doc(i, &doc) && strcmp(doc.key, "namespaces"))
		i++;
	assert_true(settings_get(s, i, buf, SETTING_TEXT_MAX));
}

static void patterns_fit_names_of_namespaces(void **state)
{
	static const struct {
		const char *names, *ns;
		bool fits;
	} table[] = {
		{"kube-system", "kube-system", true},
		{"kube-system", "kube-systems", false},
		{"kube-*", "kube-system", true},
		{"kube-*", "kube-", true},
		{"kube-*", "kub", false},
		{"a,b-?,*-c*", "b-x", true},
		{"a,b-?,*-c*", "b-", false},
		{"a,b-?,*-c*", "team-c1", true},
		{"*", "", true},
		{"**a**", "bab", true},
		{"*a*b*c", "aXbXbXc", true},
		{"*a*b*c", "aXbXbX", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct namespace_section n = {0};

		(void)strcpy(n.names, table[i].names);
		assert_int_equal(namespace_section_is_for(&n, table[i].ns), table[i].fits);
	}
}

static void what_is_set_is_printed_and_read_back(void **state)
{
	static const char *const table[] = {
		"names=kube-system reserved=true",
		"names=a,b-* cpus=shared spread=one-node; names=c cpus=untouched force=true",
		("names=* cores=whole memory-policy=local rdt-class=gold blockio-class=slow "
		 "quiet=irq allowed=cpus=untouched,cores"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct settings s = settings_with(table[i]);
		char text[SETTING_TEXT_MAX];

		text_of(&s, text);
		assert_string_equal(text, table[i]);
	}
}

static void the_longest_is_printed_whole(void **state)
{
	char names[NAMESPACE_NAMES_MAX], text[SETTING_TEXT_MAX], key[64];
	struct settings s;

	(void)state;
	settings_init(&s);
	memset(names, 'n', sizeof names - 1);
	names[sizeof names - 1] = '\0';
	for (unsigned i = 0; i < NAMESPACES_MAX; i++) {
		static const struct {
			const char *key, *value;
		} all[] = {
			{"wishes.cpus", "own+shared"},
			{"wishes.cores", "one-thread"},
			{"wishes.isolated", "require"},
			{"wishes.spread", "one-node,strict-memory"},
			{"wishes.memory-policy", "interleave"},
			{"wishes.rdt-class", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"},
			{"wishes.blockio-class", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"},
			{"wishes.quiet", "irq,frequency=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"},
			{"allowed",
				"cpus,cpus=shared,cpus=untouched,cores,isolated,numa-nodes,spread,memory-"
				"policy,rdt-class,blockio-class,quiet"},
			{"force", "true"},
			{"reserved", "true"},
		};

		(void)snprintf(key, sizeof key, "namespaces.%u.names.0", i);
		assert_int_equal(settings_set(&s, key, names, NULL), 0);
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			(void)snprintf(key, sizeof key, "namespaces.%u.%s", i, all[k].key);
			assert_int_equal(settings_set(&s, key, all[k].value, NULL), 0);
		}
	}
	text_of(&s, text);
	assert_true(strlen(text) < SETTING_TEXT_MAX - 1);
	const struct settings again = settings_with(text);
	assert_memory_equal(&again.namespaces, &s.namespaces, sizeof s.namespaces);
}

static void what_is_wrong_is_named_and_changes_nothing(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} table[] = {
		{"namespaces.0.names.0", "Kube", "namespaces.0.names.0: \"Kube\" can be no namespace"},
		{"namespaces.0.names.0", "a,b", "\"a,b\" can be no namespace"},
		{"namespaces.0.names.0", "", "\"\" can be no namespace"},
		{"namespaces.0.wishes.cpus", "mine",
			"\"mine\" is none of own, shared, own+shared, untouched"},
		{"namespaces.0.wishes.cpus", "reserved", "\"reserved\" is none of own"},
		{"namespaces.0.wishes.cpus", "untouched-unbounded", "is none of own"},
		{"namespaces.0.wishes.numa-nodes", "0",
			"\"numa-nodes\" is no wish: cpus, cores, isolated, spread, memory-policy, "
			"movable, rdt-class, blockio-class, quiet"},
		{"namespaces.0.wishes.quiet", "irq,", "\"irq,\" is none of irq, frequency=PROFILE"},
		{"namespaces.0.wishes.rdt-class", "../x", "\"../x\" is no name of a class"},
		{"namespaces.0.wishes", "shared", "a section has names (a list)"},
		{"namespaces.0.allowed", "cpu", "\"cpu\" is none of cpus, cpus=shared"},
		{"namespaces.0.force", "perhaps", "perhaps"},
		{"namespaces.0.forced", "true", "a section has names (a list)"},
		{"namespaces.0.force.x", "true", "a section has names (a list)"},
		{"namespaces.x.force", "true", "a list of at most 16 sections"},
		{"namespaces.16.force", "true", "a list of at most 16 sections"},
		{"namespaces.2.force", "true", "section 0 is missing"},
		{"namespaces", "names", "\"names\": KEY=VALUE is expected"},
		{"namespaces", "names=a x=1", "\"x\" is no wish"},
		{"namespaces", "names=a wishes=cpus", "\"wishes\" is no wish"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = settings_with(""), before = s;
		struct err e = {0};

		assert_true(settings_set(&s, table[i].key, table[i].value, &e) < 0);
		if (!strstr(e.text, table[i].text))
			fail_msg("%s=%s: %s", table[i].key, table[i].value, e.text);
		assert_memory_equal(&s, &before, sizeof s);
	}
}

static void a_section_without_names_and_one_without_reserved_cpus_are_mistakes(void **state)
{
	struct settings s = settings_with("cpus=shared");
	struct err e;

	(void)state;
	assert_int_equal(settings_check(&s, NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "namespaces.0: which namespaces it is for is missing: names"));
	s = settings_with("names=kube-system reserved=true");
	assert_int_equal(settings_check(&s, NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "namespaces.0.reserved: no CPU is reserved"));
	assert_int_equal(settings_set(&s, "reservedSystemCPUs", "0", NULL), 0);
	assert_int_equal(settings_check(&s, NULL, &e), 0);
	s = settings_with("");
	assert_int_equal(settings_set(&s, "podWishes.allowed", "cpus=untouched", NULL), 0);
	assert_int_equal(settings_check(&s, NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cpus=untouched is not for all pods"));
}

/* What a container of that namespace comes to that says so itself. */
static struct ask taken(struct settings *s, const char *ns, const char *key, const char *value,
	struct wishes_ignored *ignored)
{
	static const struct node_ids ids = {.nr = 1};
	static struct arena a;
	const struct key_value annotation = {key, value};
	const struct pod pod = {
		.ns = ns, .annotations = &annotation, .nr_annotations = key ? 1 : 0};
	const struct wishes_reader reader = {s, &ids, false};
	struct ask ask = {.name = "web"};

	arena_init(&a, ARENA);
	wishes_take(&reader, &pod, &ask, &a, ignored);
	ask.odd_wish = ask.odd_wish ? "odd" : NULL;
	arena_fini(&a);
	return ask;
}

static void a_sections_wishes_are_defaults_or_forced(void **state)
{
	static const struct {
		const char *namespaces, *ns, *key, *value;
		struct wishes want;
		bool ignored;
	} table[] = {
		{"names=a cpus=shared", "a", NULL, NULL, {.cpus = WISH_CPUS_SHARED}, false},
		{"names=a cpus=shared", "b", NULL, NULL, {0}, false},
		{"names=a cpus=shared", "a", "numafit.io/cpus", "own", {.cpus = WISH_CPUS_OWN}, false},
		{"names=a cpus=shared force=true", "a", "numafit.io/cpus", "own",
			{.cpus = WISH_CPUS_SHARED}, false},
		{"names=a cpus=own+shared", "a", "numafit.io/spread", "any",
			{.cpus = WISH_CPUS_OWN_SHARED, .spread = WISH_SPREAD_ANY}, false},
		{"names=* cpus=shared; names=a cpus=own", "a", NULL, NULL, {.cpus = WISH_CPUS_OWN},
			false},
		{"names=* cpus=shared force=true; names=a cpus=own", "a", NULL, NULL,
			{.cpus = WISH_CPUS_SHARED}, false},
		/* what may be wished for */
		{"names=a allowed=cores", "a", "numafit.io/cores", "whole",
			{.cores = WISH_CORES_WHOLE}, false},
		{"names=a allowed=cores", "b", "numafit.io/cores", "whole", {0}, true},
		{"names=a allowed=cpus=untouched", "a", "numafit.io/cpus", "untouched",
			{.cpus = WISH_CPUS_UNTOUCHED}, false},
		{"names=a allowed=cpus", "a", "numafit.io/cpus", "untouched", {0}, true},
		/* and how far it goes */
		{"names=a cpus=untouched", "a", NULL, NULL, {.cpus = WISH_CPUS_UNTOUCHED}, false},
		{"names=a cpus=untouched force=true", "a", NULL, NULL,
			{.cpus = WISH_CPUS_UNBOUNDED}, false},
		{"names=a allowed=cpus=untouched force=true", "a", "numafit.io/cpus", "untouched",
			{.cpus = WISH_CPUS_UNBOUNDED}, false},
		{"names=a allowed=cpus=untouched force=true", "a", NULL, NULL, {0}, false},
		{"names=a allowed=cpus=untouched; names=* spread=any force=true", "a",
			"numafit.io/cpus", "untouched",
			{.cpus = WISH_CPUS_UNTOUCHED, .spread = WISH_SPREAD_ANY}, false},
		{"names=a reserved=true", "a", "numafit.io/cpus", "own",
			{.cpus = WISH_CPUS_RESERVED}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = settings_with(table[i].namespaces);
		struct wishes_ignored ignored;
		const struct ask ask = taken(&s, table[i].ns, table[i].key, table[i].value, &ignored);

		assert_memory_equal(&ask.wishes, &table[i].want, sizeof ask.wishes);
		assert_int_equal(ignored.annotation != NULL, table[i].ignored);
		assert_null(ask.odd_wish);
	}
}

/* Words that only an operator has are none for a pod's author, whatever is allowed. */
static void an_author_cannot_say_what_is_an_operators(void **state)
{
	static const char *const words[] = {"reserved", "untouched-unbounded"};
	struct settings s = settings_with("names=* allowed=cpus,cpus=untouched force=true");

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct wishes_ignored ignored;
		const struct ask ask = taken(&s, "a", "numafit.io/cpus", words[i], &ignored);

		assert_int_equal(ask.wishes.cpus, WISH_CPUS_UNSAID);
		assert_true(ask.odd_wish || ignored.annotation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_fit_names_of_namespaces),
		cmocka_unit_test(what_is_set_is_printed_and_read_back),
		cmocka_unit_test(the_longest_is_printed_whole),
		cmocka_unit_test(what_is_wrong_is_named_and_changes_nothing),
		cmocka_unit_test(a_section_without_names_and_one_without_reserved_cpus_are_mistakes),
		cmocka_unit_test(a_sections_wishes_are_defaults_or_forced),
		cmocka_unit_test(an_author_cannot_say_what_is_an_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
