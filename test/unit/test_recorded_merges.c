/* Merges of lists of hints with the answers of the kubelet's own code: what merges lists in tests
 * gives them, and so does core where rules say the same as the lists. */
#include <questions/policy_json.h>

#include "hint_lists.h"

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20 };

/* A recorded question: beside the keys of policy_json.h it has
 *   "providers": [{resource: [{"mask": [ids]|null, "preferred": bool}] | [] | null} | null] */
struct question {
	json_t *item;
	unsigned strange[NODES_MAX]; /* nodes that masks name and the machine lacks */
	unsigned nr_strange;
	struct policy_question put_to;
	struct hint_list *lists;
	size_t nr_lists;
	bool refused; /* the kubelet would not start; its words are in e */
	struct arena a;
	struct err e;
};

static void add_list(struct question *q, const struct hint *hint, size_t nr)
{
	struct hint *copy = arena_array(&q->a, nr, sizeof *copy);

	memcpy(copy, hint, nr * sizeof *copy);
	q->lists[q->nr_lists++] = (struct hint_list){copy, nr};
}

/* A machine's node has its own bit, each further one the next above: what counts is which are the
 * same. */
static unsigned bit_of(struct question *q, unsigned id)
{
	int node = node_index(&q->put_to.ids, id);
	unsigned i = 0;

	if (node >= 0)
		return (unsigned)node;
	while (i < q->nr_strange && q->strange[i] != id)
		i++;
	assert_true(q->put_to.ids.nr + i < NODES_MAX);
	q->strange[i] = id;
	q->nr_strange += i == q->nr_strange;
	return q->put_to.ids.nr + i;
}

static struct nodeset read_mask(struct question *q, const json_t *ids)
{
	struct nodeset mask = {0};

	for (size_t i = 0; i < json_array_size(ids); i++) {
		unsigned id = (unsigned)json_integer_value(json_array_get(ids, i));

		mask = nodeset_or(mask, nodeset_of(bit_of(q, id)));
	}
	return mask;
}

/* One resource: null has no preference, an empty list cannot be satisfied (kubelet
 * filterProvidersHints). */
static void read_list(struct question *q, json_t *list)
{
	size_t nr = json_array_size(list);
	auto_free struct hint *hint = xcalloc(nr + 1, sizeof *hint);

	hint[0] = (struct hint){.any = true, .preferred = json_is_null(list)};
	for (size_t i = 0; i < nr; i++) {
		const json_t *v = json_array_get(list, i), *mask = json_object_get(v, "mask");

		hint[i] = (struct hint){.any = json_is_null(mask),
			.mask = read_mask(q, mask),
			.preferred = json_is_true(json_object_get(v, "preferred"))};
	}
	add_list(q, hint, nr ? nr : 1);
}

/* A provider: null or {} has no preference, else one list for each resource. */
static void read_provider(struct question *q, json_t *provider)
{
	const char *resource;
	json_t *list;

	if (!json_object_size(provider))
		add_list(q, &(struct hint){.any = true, .preferred = true}, 1);
	json_object_foreach(provider, resource, list) read_list(q, list);
}

static struct question *read_question(const char *text)
{
	struct question *q = xcalloc(1, sizeof *q);
	const json_t *providers;
	size_t room = 0;

	arena_init(&q->a, ARENA_BYTES);
	assert_int_equal(json_parse(text, strlen(text), &q->item, NULL), 0);
	providers = json_object_get(q->item, "providers");
	assert_int_equal(policy_json_machine(q->item, &q->put_to, NULL), 0);
	for (size_t i = 0; i < json_array_size(providers); i++)
		room += 1 + json_object_size(json_array_get(providers, i));
	q->lists = arena_array(&q->a, room + 1, sizeof *q->lists);
	for (size_t i = 0; i < json_array_size(providers); i++)
		read_provider(q, json_array_get(providers, i));
	int rc = policy_json_start(q->item, &q->put_to, &q->e);
	assert_true(rc >= 0);
	q->refused = rc;
	return q;
}

static void forget(struct question *q)
{
	json_decref(q->item);
	arena_fini(&q->a);
	free(q);
}

static void check(
	const struct question *q, const char *how, size_t line, const struct policy_answer *answer)
{
	json_t *got = q->refused ? policy_json_refusal(q->e.text)
				 : policy_json_result(&q->put_to, answer);
	const json_t *want = json_object_get(q->item, "expected");

	if (!json_equal(want, got)) {
		auto_free char *w = json_dumps(want, 0), *g = json_dumps(got, 0);

		fail_msg("line %zu, %s: wanted %s, got %s", line, how, w, g);
	}
	json_decref(got);
}

static void check_lists(struct question *q, size_t line)
{
	const struct hint_space space = policy_question_space(&q->put_to);
	struct policy_answer answer = {0};

	if (!q->refused)
		answer = policy_merge_lists(q->put_to.policy, &space, q->lists, q->nr_lists);
	check(q, "as lists", line, &answer);
}

/* By rules, made of each list by `rule`. False: one of the lists has none. */
static bool check_families(struct question *q, const char *how, size_t line,
	bool (*rule)(const struct hint_list *list, struct family *f))
{
	const struct hint_space space = policy_question_space(&q->put_to);
	struct family *f = arena_array(&q->a, q->nr_lists + 1, sizeof *f);
	struct policy_answer answer;

	if (q->refused)
		return false;
	for (size_t i = 0; i < q->nr_lists; i++)
		if (!rule(&q->lists[i], &f[i]) || !nodeset_within(f[i].ground, space.all))
			return false;
	assert_int_equal(policy_merge_families(q->put_to.policy, &space, f, q->nr_lists,
				 &(struct budget){.endless = true}, &q->a, &answer),
		0);
	check(q, how, line, &answer);
	return true;
}

/* Of some masks: whether mask is one of them. */
static bool is_listed(const struct family *f, struct nodeset mask)
{
	for (unsigned i = 0; i < f->nr_extra; i++)
		if (nodeset_equal(f->extra[i], mask))
			return true;
	return false;
}

/* Where all masks with more of the same nodes are listed too, "touches one of the nodes that this
 * largest mask which is not listed lacks", for each of these, says the same as the list. */
static bool family_of_demands(const struct hint_list *list, struct family *f)
{
	static struct family_cover cover[64][FAMILY_DEMANDS];
	static unsigned next;
	struct family_cover *lacks = cover[next++ % 64];
	struct family listed;

	if (!family_of_list(list, &listed))
		return false;
	*f = listed;
	f->nr_extra = 0;
	for (unsigned i = 0; i < listed.nr_extra; i++)
		f->ground = nodeset_or(f->ground, listed.extra[i]);
	if (f->ground.bits >> NODES_WRITTEN)
		return false;
	for (uint64_t m = 0; m < f->ground.bits; m++) {
		struct nodeset mask = {m}, rest = nodeset_minus(f->ground, mask);
		bool listed_now = is_listed(&listed, mask), largest = !listed_now;

		if (!nodeset_within(mask, f->ground))
			continue;
		nodeset_each (n, rest) {
			bool more = is_listed(&listed, nodeset_or(mask, nodeset_of(n)));

			if (listed_now && !more)
				return false;
			largest = largest && more;
		}
		if (!largest)
			continue;
		if (f->nr_demands == FAMILY_DEMANDS)
			return false;
		*lacks = (struct family_cover){.nodes = rest, .count = 1};
		f->demand[f->nr_demands++] =
			(struct family_demand){.cover = lacks++, .nr_covers = 1, .need = 1};
	}
	return f->kind != FAMILY_CAPACITY || is_listed(&listed, f->ground);
}

/* Every line of the file. */
static void check_recorded(const char *path, unsigned lines, unsigned extras, unsigned demands)
{
	unsigned by_extras = 0, by_demands = 0;
	FILE *f = fopen(path, "re");
	auto_free char *text = NULL;
	size_t cap = 0, line = 0;

	assert_non_null(f);
	while (getline(&text, &cap, f) > 0) {
		struct question *q = read_question(text);

		check_lists(q, ++line);
		by_extras += check_families(q, "as masks", line, family_of_list);
		by_demands += check_families(q, "as demands", line, family_of_demands);
		forget(q);
	}
	(void)fclose(f);
	assert_int_equal(line, lines); /* and so many of them are rules, too */
	assert_int_equal(by_extras, extras);
	assert_int_equal(by_demands, demands);
}

static void worked_examples_and_recorded_merges_come_out_as_in_the_kubelet(void **state)
{
	(void)state;
	check_recorded("test/golden/merge.jsonl", 237, 145, 97);
}

static void random_merges_come_out_as_in_the_kubelet(void **state)
{
	(void)state;
	check_recorded("test/golden/merge_random.jsonl", 300, 198, 185);
}

/* The kubelet's filterProvidersHints, each list as its hints: any+ any- or a mask. */
#define HINT(mask) "{\"mask\":" mask ",\"preferred\":true}"
static const struct {
	const char *providers;
	const char *lists;
} filtered[] = {
	{"[]", ""},
	{"[null]", "[any+]"},
	{"[{}]", "[any+]"},
	{"[{\"a\":null}]", "[any+]"},
	{"[{\"a\":[]}]", "[any-]"},
	{"[{\"a\":[" HINT("[1]") "," HINT("null") "]}]", "[2+ any+]"},
	{"[{\"a\":[" HINT(
		 "[]") "]},null,{\"b\":null,\"c\":[{\"mask\":[0,1],\"preferred\":false}]}]",
		"[0+] [any+] [any+] [3-]"},
	/* nodes that the machine lacks, each its own bit above the machine's */
	{"[{\"a\":[" HINT("[9,0]") "," HINT("[5]") "," HINT("[9]") "]}]", "[5+ 8+ 4+]"},
};

static void print_lists(const struct question *q, struct text *t)
{
	for (size_t i = 0; i < q->nr_lists; i++) {
		text_add(t, "%s[", i ? " " : "");
		for (size_t k = 0; k < q->lists[i].nr; k++) {
			const struct hint *h = &q->lists[i].hint[k];

			text_add(t, k ? " " : "");
			if (h->any)
				text_add(t, "any");
			else
				text_add(t, "%llx", (unsigned long long)h->mask.bits);
			text_add(t, h->preferred ? "+" : "-");
		}
		text_add(t, "]");
	}
}

static void providers_become_lists_as_in_the_kubelet(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof filtered / sizeof *filtered; i++) {
		char question[1024], lists[256];
		struct text t;

		text_init(&t, question, sizeof question);
		text_add(&t, "{\"nodes\":[1,0],\"policy\":\"restricted\",\"providers\":%s}",
			filtered[i].providers);
		struct question *q = read_question(question);
		text_init(&t, lists, sizeof lists);
		print_lists(q, &t);
		assert_string_equal(lists, filtered[i].lists);
		forget(q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_examples_and_recorded_merges_come_out_as_in_the_kubelet),
		cmocka_unit_test(random_merges_come_out_as_in_the_kubelet),
		cmocka_unit_test(providers_become_lists_as_in_the_kubelet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
