/* Of a pod with very many annotations: how often they are looked at, which is counted. */
#include <numafit/text.h>

#include <string.h>

static unsigned looked, compared;

static const char *counted_behind(const char *s, const char *prefix)
{
	looked++;
	return text_behind(s, prefix);
}

static int counted_strcmp(const char *s, const char *t)
{
	compared++;
	return strcmp(s, t);
}

#define text_behind counted_behind
#define strcmp      counted_strcmp
#include <codec/wishes.c> /* in the place of the library's */
#undef text_behind
#undef strcmp

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NOTES = 500, KEY_BYTES = 48, ARENA = 1 << 20 };

static char key[NOTES][KEY_BYTES];
static struct key_value notes[NOTES];

/* What is taken of a pod that has wishes for others, c0, c1, ..., and its last annotation. */
static struct ask taken(const char *of_others, const char *last)
{
	static const struct node_ids ids = {.nr = 1};
	static struct settings s;
	const struct wishes_reader reader = {&s, &ids, false};
	struct pod pod = {.ns = "", .annotations = notes, .nr_annotations = NOTES};
	struct ask ask = {.name = "web"};
	struct wishes_ignored ignored;
	struct arena a;

	for (unsigned i = 0; i < NOTES; i++) {
		(void)snprintf(key[i], sizeof *key, "%s/c%u", of_others, i);
		notes[i] = (struct key_value){key[i], "shared"};
	}
	notes[NOTES - 1].key = last;
	settings_init(&s);
	assert_int_equal(settings_set(&s, "podWishes.allowed", "cpus", NULL), 0);
	arena_init(&a, ARENA);
	looked = 0;
	wishes_take(&reader, &pod, &ask, &a, &ignored);
	arena_fini(&a);
	return ask;
}

static void wishes_of_other_containers_are_looked_at_once(void **state)
{
	(void)state;
	assert_int_equal(
		taken("cpus.numafit.io", "cpus.numafit.io/web").wishes.cpus, WISH_CPUS_SHARED);
	assert_in_range(looked, 1, 2 * NOTES);
	assert_int_equal(
		taken("cpu-shared.crio.io", "numafit.io/cpus").wishes.cpus, WISH_CPUS_SHARED);
	assert_in_range(looked, 1, 2 * NOTES);
}

/* 500 annotations and 400 containers: 200,000 comparisons, if each name were looked at each time.
 */
static void containers_are_not_searched_for_each_annotation(void **state)
{
	enum { CONTAINERS = 400, NAME_BYTES = 16 };
	static char name[CONTAINERS][NAME_BYTES];
	static struct ask containers[CONTAINERS];
	const struct pod pod = {.annotations = notes,
		.nr_annotations = NOTES,
		.container = containers,
		.nr = CONTAINERS};
	struct arena a;

	(void)state;
	for (unsigned i = 0; i < CONTAINERS; i++) {
		(void)snprintf(name[i], NAME_BYTES, "c%u", (i * 7) % CONTAINERS);
		containers[i].name = name[i];
	}
	(void)taken("cpus.numafit.io", "cpus.numafit.io/c1");
	arena_init(&a, ARENA);
	compared = 0;
	assert_string_equal(wishes_of_no_container(&pod, &a),
		"annotation cpus.numafit.io/c400 names a container that the pod does not have; did "
		"you mean c100? (so do 98 more)");
	assert_in_range(compared, 1, (NOTES + CONTAINERS) * 10);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_of_other_containers_are_looked_at_once),
		cmocka_unit_test(containers_are_not_searched_for_each_annotation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
