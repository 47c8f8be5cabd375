/* Ids and sets of tokens, what the kubelet is sent of them, and which ones it is advised to take.
 */
#include <numafit/tokens.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261121, ROUNDS = 3000, IDS_MAX = 64 };

/* Kernel ids with gaps, as on POWER. */
static const struct node_ids gaps = {.nr = 3, .id = {0, 8, 255}};

static void an_id_has_only_one_spelling(void **state)
{
	static const struct {
		const char *id;
		int rc;
		struct token want;
	} table[] = {
		{"node0-0000", 0, {0, 0}},
		{"node8-0003", 0, {1, 3}},
		{"node255-1023", 0, {2, 1023}},
		{"node1-0000", -ENOENT, {0}},
		{"node8-1024", -EINVAL, {0}},
		{"node08-0003", -EINVAL, {0}},
		{"node8-003", -EINVAL, {0}},
		{"node8-00003", -EINVAL, {0}},
		{"node8-0003 ", -EINVAL, {0}},
		{"node8-+003", -EINVAL, {0}},
		{"node-8-0003", -EINVAL, {0}},
		{"node-0003", -EINVAL, {0}},
		{"Node8-0003", -EINVAL, {0}},
		{"node8_0003", -EINVAL, {0}},
		{"node1024-0003", -EINVAL, {0}},
		{"node99999999999999999999-0003", -EINVAL, {0}},
		{"node8", -EINVAL, {0}},
		{"-", -EINVAL, {0}},
		{"", -EINVAL, {0}},
		{"no\xff", -EINVAL, {0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct token k = {9, 9};
		char again[TOKEN_ID_MAX];
		int rc = tokens_parse(&gaps, table[i].id, &k, NULL);

		if (rc != table[i].rc)
			fail_msg("\"%s\": %d", table[i].id, rc);
		if (rc) {
			assert_true(k.node == 9 && k.number == 9);
			continue;
		}
		assert_true(k.node == table[i].want.node && k.number == table[i].want.number);
		assert_string_equal(tokens_format(&gaps, k, again, sizeof again), table[i].id);
	}
}

static void a_set_of_tokens_has_only_one_spelling(void **state)
{
	static const struct {
		const char *text;
		int rc;
		unsigned nr;
	} table[] = {
		{"", 0, 0},
		{"0=0-3,5;8=2", 0, 6},
		{"255=1023", 0, 1},
		{"8=2;0=0-3", -EINVAL, 0},
		{"0=0;0=1", -EINVAL, 0},
		{"0=1;0=1", -EINVAL, 0},
		{"0=0,1", -EINVAL, 0},
		{"0=", -EINVAL, 0},
		{"0", -EINVAL, 0},
		{"=1", -EINVAL, 0},
		{"00=1", -EINVAL, 0},
		{"0=1;", -EINVAL, 0},
		{";0=1", -EINVAL, 0},
		{" 0=1", -EINVAL, 0},
		{"0= 1", -EINVAL, 0},
		{"0=1024", -EINVAL, 0},
		{"1=0", -ENOENT, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct tokenset s = {0};
		char again[TOKENSET_TEXT_MAX];
		int rc = tokenset_parse(&s, &gaps, table[i].text, NULL);

		if (rc != table[i].rc || tokenset_count(&s) != table[i].nr)
			fail_msg("\"%s\": %d", table[i].text, rc);
		if (!rc)
			assert_string_equal(
				tokenset_format(&s, &gaps, again, sizeof again), table[i].text);
	}
}

static void the_tokens_of_any_machine_fit_into_the_text(void **state)
{
	static struct tokenset s, back;
	static char text[TOKENSET_TEXT_MAX];
	struct node_ids ids = {.nr = NODES_MAX};

	(void)state;
	for (unsigned n = 0; n < NODES_MAX; n++)
		ids.id[n] = (uint16_t)(NODE_ID_MAX - NODES_MAX + 1 + n);
	for (unsigned n = 0; n < NODES_MAX; n++) /* two of three, the longest lists there are */
		for (unsigned i = 0; i < CPUSET_BITS / NODES_MAX; i++)
			if (i % 3 < 2)
				tokenset_add(&s, (struct token){(uint16_t)n, (uint16_t)i});
	assert_int_equal(
		tokenset_parse(&back, &ids, tokenset_format(&s, &ids, text, sizeof text), NULL), 0);
	assert_int_equal(tokenset_count(&s), tokenset_count(&back));
	memset(&s, 0, sizeof s);
	for (unsigned i = 0; i < CPUSET_BITS; i++)
		if (i % 3 < 2)
			tokenset_add(&s, (struct token){NODES_MAX - 1, (uint16_t)i});
	assert_int_equal(
		tokenset_parse(&back, &ids, tokenset_format(&s, &ids, text, sizeof text), NULL), 0);
	assert_memory_equal(&s, &back, sizeof s);
}

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

static struct tokenset tokens_of(const struct topo *t, const char *text)
{
	struct tokenset s;

	assert_int_equal(tokenset_parse(&s, &t->ids, text, NULL), 0);
	return s;
}

/* The first node's tokens as a word: H healthy, u not. */
static void report_word(const struct token_reports *r, unsigned node_id, char *word)
{
	size_t len = 0;

	for (size_t i = 0; i < r->nr; i++)
		if (r->at[i].node_id == node_id)
			word[len++] = r->at[i].healthy ? 'H' : 'u';
	word[len] = '\0';
}

static void as_many_tokens_are_healthy_as_there_are_free_cpus(void **state)
{
	static const struct {
		const char *held, *leased, *claimed, *want;
	} table[] = {
		/* node 0 has CPUs 0-3 and 32-35; 0 and 32 are reserved */
		{"", "", "", "HHHHHH"}, {"1-2", "", "", "HHHHuu"}, /* by NRI alone */
		{"1-2", "0=0-1", "0=0-1", "HHHHHH"},               /* by tokens */
		{"", "0=0-1", "", "HHHHHH"},                       /* promised */
		{"1-2", "0=4-5", "", "HHuuHH"}, /* promised, and others by NRI alone */
		{"1-3,33-35", "", "", "uuuuuu"},
		{"1-3,33-35", "0=2-3", "", "uuHHuu"},   /* more is promised than there is */
		{"1-3,33-35", "0=7", "0=7", "uuuuuuH"}, /* its CPU has gone offline */
		{"4-7", "", "", "HHHHHH"},              /* another node's */
	};
	struct topo *t = machine_of_eight();
	struct settings s = settings_of(POLICY_RESTRICTED);
	static char work[64 << 10];

	(void)state;
	s.reserved_cpus = list("0,32");
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct cpuset held = list(table[i].held);
		struct tokenset leased = tokens_of(t, table[i].leased);
		struct tokenset claimed = tokens_of(t, table[i].claimed);
		struct tokens_state now = {t, &s, &held, &leased, &claimed, CPUSET_BITS};
		struct token_reports r;
		struct arena a;
		char word[IDS_MAX];

		arena_init_fixed(&a, work, sizeof work);
		assert_int_equal(tokens_report(&now, &a, &r), 0);
		report_word(&r, 0, word);
		if (strcmp(word, table[i].want) != 0)
			fail_msg("case %zu: %s, not %s", i, word, table[i].want);
	}
	free(t);
}

static void the_list_is_ascending_and_names_the_node_of_each_token(void **state)
{
	struct topo *t = machine_of_eight();
	struct settings s = settings_of(POLICY_RESTRICTED);
	struct cpuset held = {0};
	struct tokenset none = {0};
	struct tokens_state now = {t, &s, &held, &none, &none, CPUSET_BITS};
	struct token_reports r;
	static char work[64 << 10];
	struct arena a;

	(void)state;
	arena_init_fixed(&a, work, sizeof work);
	assert_int_equal(tokens_report(&now, &a, &r), 0);
	assert_int_equal(r.nr, 64);
	for (unsigned i = 0; i < r.nr; i++) {
		char want[2 * TOKEN_ID_MAX];

		(void)snprintf(want, sizeof want, "node%u-%04u", i / 8, i % 8);
		assert_string_equal(r.at[i].id, want);
		assert_int_equal(r.at[i].node_id, i / 8);
	}
	arena_init_fixed(&a, work, 100);
	assert_int_equal(tokens_report(&now, &a, &r), -ENOMEM);
	free(t);
}

/* One question, and the answer in a set and as a list. */
struct question {
	struct topo *t;
	char text[IDS_MAX][TOKEN_ID_MAX];
	const char *available[IDS_MAX], *must[IDS_MAX], *answer[2 * IDS_MAX];
	struct token_wish w;
	char *work;
};
enum { WORK_BYTES = TOKENS_PREFER_BYTES + 8 * IDS_MAX * TOKENS_PREFER_BYTES_PER_ID };

static size_t ask_once(struct question *q)
{
	struct arena a;

	arena_init_fixed(&a, q->work, WORK_BYTES);
	q->w.available = q->available;
	q->w.must_include = q->must;
	return tokens_prefer(
		q->t, &q->w, &(struct budget){.given = 10000, .left = 10000}, &a, q->answer);
}

static void the_preferred_answer_has_few_nodes_then_close_nodes_then_low_ids(void **state)
{
	static const struct {
		const char *available, *must;
		size_t size;
		const char *want;
	} table[] = {
		{"0=0-3;1=0-3", "", 4, "0=0-3"},
		{"0=0-2;1=0-3", "", 4, "1=0-3"},             /* one node instead of two */
		{"0=0-2;1=0-3", "0=1", 4, "0=0-2;1=0"},      /* one of node 0's must be in it */
		{"0=0-3;4=0-3;5=0-3", "", 6, "4=0-3;5=0-1"}, /* 4 and 5 are neighbours */
		{"0=0-3;2=0-3;3=0-3", "3=3", 8, "2=0-3;3=0-3"},
		{"0=5,7;1=3,9", "", 3, "0=5,7;1=3"},
		{"7=0", "", 1, "7=0"},
		{"0=0-3", "", 0, ""},
		{"0=0-3", "0=3", 1, "0=3"},
		{"0=0-1;1=0-1", "0=1;1=1", 2, "0=1;1=1"},
	};
	struct question q = {.t = machine_of_eight(), .work = malloc(WORK_BYTES)};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct tokenset available = tokens_of(q.t, table[i].available), got = {0};
		struct tokenset must = tokens_of(q.t, table[i].must);
		char text[TOKENSET_TEXT_MAX];
		unsigned nr = 0;

		q.w = (struct token_wish){.size = table[i].size};
		tokenset_each (k, &available) {
			q.available[q.w.nr_available++] =
				tokens_format(&q.t->ids, k, q.text[nr], TOKEN_ID_MAX);
			if (tokenset_has(&must, k))
				q.must[q.w.nr_must_include++] = q.text[nr];
			nr++;
		}
		size_t got_nr = ask_once(&q);
		assert_int_equal(got_nr, table[i].size);
		for (size_t a = 0; a < got_nr; a++) {
			struct token k;

			assert_int_equal(tokens_parse(&q.t->ids, q.answer[a], &k, NULL), 0);
			tokenset_add(&got, k);
		}
		if (strcmp(tokenset_format(&got, &q.t->ids, text, sizeof text), table[i].want) != 0)
			fail_msg("case %zu: %s, not %s", i, text, table[i].want);
	}
	free(q.t);
	free(q.work);
}

static void a_preference_that_cannot_be_met_is_still_answered(void **state)
{
	static const struct {
		const char *available[4], *must[3];
		size_t size;
		const char *want[5];
	} table[] = {
		{{"node1-0001", "node0-0000"}, {NULL}, 5, {"node1-0001", "node0-0000"}},
		{{"node0-0000", "node1-0001"}, {"node1-0001", "node2-0000"}, 1, {"node1-0001"}},
		{{"gpu", "node0-0001", "gpu"}, {NULL}, 2, {"gpu", "node0-0001"}},
		{{"gpu", "node0-0001", "node0-0000"}, {NULL}, 2, {"node0-0000", "node0-0001"}},
		{{"node0-0001", "node0-0001"}, {NULL}, 2, {"node0-0001"}},
		{{"a", "b"}, {"b"}, 2, {"b", "a"}},
		{{"node0-0001"}, {"gpu"}, 1, {"gpu"}},
		{{"node99-0001"}, {NULL}, 1, {"node99-0001"}},
		{{NULL}, {NULL}, 3, {NULL}},
		{{"node1-0001"}, {"node0-0001"}, 2, {"node0-0001", "node1-0001"}},
		{{"node0-0000", "node0-0001"}, {"node0-0001", "node0-0000"}, 1, {"node0-0001"}},
	};
	struct question q = {.t = machine_of_eight(), .work = malloc(WORK_BYTES)};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		size_t nr, want = 0;

		q.w = (struct token_wish){.size = table[i].size};
		for (const char *const *id = table[i].available; *id; id++)
			q.available[q.w.nr_available++] = *id;
		for (const char *const *id = table[i].must; *id; id++)
			q.must[q.w.nr_must_include++] = *id;
		nr = ask_once(&q);
		while (table[i].want[want])
			want++;
		if (nr != want)
			fail_msg("case %zu: %zu ids", i, nr);
		for (size_t a = 0; a < nr; a++)
			if (strcmp(q.answer[a], table[i].want[a]) != 0)
				fail_msg("case %zu: %s", i, q.answer[a]);
	}
	free(q.t);
	free(q.work);
}

/* Random offers, against trying all sets of nodes. */
static void random_question(struct random *r, struct question *q)
{
	unsigned nr = 0, most = 1 + random_below(r, 6);

	q->w = (struct token_wish){0};
	for (unsigned n = 0; n < 8; n++)
		for (unsigned i = 0; i < most; i++) {
			struct token k = {(uint16_t)n, (uint16_t)i};

			if (random_chance(r, 40))
				continue;
			q->available[q->w.nr_available++] =
				tokens_format(&q->t->ids, k, q->text[nr], TOKEN_ID_MAX);
			if (random_chance(r, 5))
				q->must[q->w.nr_must_include++] = q->text[nr];
			nr++;
		}
	for (size_t i = q->w.nr_available; i > 1; i--) { /* the kubelet's lists have no order */
		size_t j = random_below(r, (unsigned)i);
		const char *id = q->available[j];

		q->available[j] = q->available[i - 1];
		q->available[i - 1] = id;
	}
	q->w.size = q->w.nr_must_include +
		    random_below(r, (unsigned)(q->w.nr_available - q->w.nr_must_include) + 1);
}

static struct nodeset best_by_trying(
	const struct question *q, const struct tokenset *available, const struct tokenset *must)
{
	const struct hint_space space = {.all = q->t->nodes, .distance = q->t->distance};
	struct nodeset best = {0};

	for (uint64_t bits = 1; bits < 256; bits++) {
		struct nodeset m = {bits};
		size_t nr = 0;

		nodeset_each (n, m)
			nr += cpuset_count(&available->on[n]);
		if (nr < q->w.size || !nodeset_within(must->nodes, m))
			continue;
		if (nodeset_empty(best) || hint_compare_masks(&space, m, best) < 0)
			best = m;
	}
	return best;
}

static unsigned read_ids(
	const struct question *q, const char *const *ids, size_t nr, struct tokenset *s)
{
	struct token k;

	memset(s, 0, sizeof *s);
	for (size_t i = 0; i < nr; i++)
		if (!tokens_parse(&q->t->ids, ids[i], &k, NULL))
			tokenset_add(s, k);
	return tokenset_count(s);
}

static bool is_best_answer(const struct question *q, size_t nr)
{
	struct tokenset available, must, want = {0};
	size_t needed = q->w.size - read_ids(q, q->must, q->w.nr_must_include, &must);
	char id[TOKEN_ID_MAX];
	size_t i = 0;

	(void)read_ids(q, q->available, q->w.nr_available, &available);
	struct nodeset best = best_by_trying(q, &available, &must);
	tokenset_each (k, &must)
		tokenset_add(&want, k);
	tokenset_each (k, &available) /* the lowest ones on these nodes */
		if (needed && nodeset_has(best, k.node) && !tokenset_has(&must, k)) {
			tokenset_add(&want, k);
			needed--;
		}
	tokenset_each (k, &want)
		if (i >= nr ||
			strcmp(q->answer[i++], tokens_format(&q->t->ids, k, id, sizeof id)) != 0)
			return false;
	return nr == q->w.size && i == nr;
}

static void random_answers_are_the_best_possible_ones(void **state)
{
	struct random r = {SEED};
	struct question q = {.t = machine_of_eight(), .work = malloc(WORK_BYTES)};

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t seed = r.state;

		random_question(&r, &q);
		size_t nr = ask_once(&q);
		if (!is_best_answer(&q, nr))
			fail_msg("seed %llu", (unsigned long long)seed);
	}
	free(q.t);
	free(q.work);
}

/* A node as it may be at any time, and by counting what must be reported of it. */
struct moment {
	struct settings s;
	struct cpuset held;
	struct tokenset leased, claimed;
	unsigned nr[8], promised[8], free_cpus[8];
};

static void random_moment(struct random *r, struct moment *m)
{
	memset(m, 0, sizeof *m);
	m->s.reserved_cpus.w[0] = random_next(r) & random_next(r) & random_next(r);
	m->held.w[0] = random_next(r) & ~m->s.reserved_cpus.w[0];
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		unsigned n = cpu % 32 / 4;

		m->nr[n] += !cpuset_has(&m->s.reserved_cpus, cpu);
		m->free_cpus[n] +=
			!cpuset_has(&m->s.reserved_cpus, cpu) && !cpuset_has(&m->held, cpu);
	}
	for (uint16_t n = 0; n < 8; n++)
		for (uint16_t i = 0; i < 9; i++) {
			if (!random_chance(r, 30))
				continue;
			tokenset_add(&m->leased, (struct token){n, i});
			if (random_chance(r, 50))
				tokenset_add(&m->claimed, (struct token){n, i});
			else
				m->promised[n]++;
		}
}

/* Leased tokens are there and healthy; of the others the lowest are, as many as can be. */
static bool is_right_of(const struct moment *m, unsigned node, const char *word)
{
	unsigned left =
		m->free_cpus[node] > m->promised[node] ? m->free_cpus[node] - m->promised[node] : 0;

	for (uint16_t i = 0; i < 9; i++) {
		bool leased = tokenset_has(&m->leased, (struct token){(uint16_t)node, i});

		if (i >= m->nr[node] && !leased)
			continue;
		if (*word++ != (leased || left ? 'H' : 'u'))
			return false;
		left -= !leased && left;
	}
	return *word == '\0';
}

static void random_reports_keep_their_promises(void **state)
{
	struct random r = {SEED + 1};
	struct topo *t = machine_of_eight();
	struct moment *m = malloc(sizeof *m);
	static char work[64 << 10];

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t seed = r.state;
		struct tokens_state now = {
			t, &m->s, &m->held, &m->leased, &m->claimed, CPUSET_BITS};
		struct token_reports list;
		struct arena a;

		random_moment(&r, m);
		arena_init_fixed(&a, work, sizeof work);
		assert_int_equal(tokens_report(&now, &a, &list), 0);
		for (unsigned n = 0; n < 8; n++) {
			char word[IDS_MAX];

			report_word(&list, n, word);
			if (!is_right_of(m, n, word))
				fail_msg("seed %llu: %s", (unsigned long long)seed, word);
		}
	}
	free(m);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_has_only_one_spelling),
		cmocka_unit_test(a_set_of_tokens_has_only_one_spelling),
		cmocka_unit_test(the_tokens_of_any_machine_fit_into_the_text),
		cmocka_unit_test(as_many_tokens_are_healthy_as_there_are_free_cpus),
		cmocka_unit_test(the_list_is_ascending_and_names_the_node_of_each_token),
		cmocka_unit_test(the_preferred_answer_has_few_nodes_then_close_nodes_then_low_ids),
		cmocka_unit_test(a_preference_that_cannot_be_met_is_still_answered),
		cmocka_unit_test(random_answers_are_the_best_possible_ones),
		cmocka_unit_test(random_reports_keep_their_promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
