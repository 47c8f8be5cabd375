/* The decisions that the status page shows: the last ones, the newest first. */
#include <ui/recent.h>

#include <numafit/mem.h>
#include <numafit/nodeset.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void add(struct recent *r, unsigned nr, const struct decision *d, const char *why)
{
	char name[32];
	const struct recent_note n = {nr, "create", why};
	struct request req = {.pod = {.ns = "shop", .name = "web"}, .ask.name = name};

	(void)snprintf(name, sizeof name, "c%u.", nr);
	recent_add(r, &n, &req, d);
}

/* The place of the container in the document; -1: it is not there. */
static long place_of(const char *document, unsigned nr)
{
	char name[32];

	(void)snprintf(name, sizeof name, "\"c%u.\"", nr);
	const char *at = strstr(document, name);
	return at ? at - document : -1;
}

static void the_last_ones_are_there_and_the_newest_comes_first(void **state)
{
	const struct decision d = {.admit = true};
	const struct node_ids ids = {0};
	struct recent *r = recent_new();
	unsigned nr = 0;

	(void)state;
	for (unsigned all = 1; all <= 2 * RECENT_MAX + 1; all += RECENT_MAX) {
		while (nr < all)
			add(r, nr++, &d, "");
		auto_free char *document = recent_json(r, &ids);
		char count[32];

		(void)snprintf(count, sizeof count, "\"count\":%u", all);
		assert_non_null(strstr(document, count));
		for (unsigned i = 0; i < nr; i++) {
			assert_int_equal(place_of(document, i) >= 0, i + RECENT_MAX >= nr);
			if (i && i + RECENT_MAX > nr)
				assert_true(place_of(document, i) < place_of(document, i - 1));
		}
	}
	recent_free(r);
}

static void a_refusal_has_its_reason_and_its_line_and_is_escaped(void **state)
{
	const struct decision d = {.reason = "TopologyAffinityError", .message = "no room"};
	const struct node_ids ids = {0};
	struct recent *r = recent_new();

	(void)state;
	add(r, 1, &d, "a \"line\" of <b>\n");
	auto_free char *document = recent_json(r, &ids);
	assert_non_null(strstr(document, "\"admitted\":false"));
	assert_non_null(strstr(document, "TopologyAffinityError"));
	assert_non_null(strstr(document, "a \\\"line\\\" of <b>\\n"));
	recent_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_ones_are_there_and_the_newest_comes_first),
		cmocka_unit_test(a_refusal_has_its_reason_and_its_line_and_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
