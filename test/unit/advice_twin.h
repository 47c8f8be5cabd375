#ifndef ADVICE_TWIN_H
#define ADVICE_TWIN_H

#include <numafitd/daemon.h>

#include "core_pods_random.h"

#include <codec/journal_json.h>
#include <io/log.h>
#include <numafit-cli/again.h>

#include "advice_random.h"

/* An engine that sees annotations beside one in the same state that sees none, and what must be
 * alike in their answers: for test_advice_random.c. */

enum { ANNOTATIONS_DEFAULT = 12000, WORLDS = 64, NODES = 8, GENERATION = 4711, HOUR_S = 3600 };

/* What one world knows. */
struct tally {
	unsigned annotations, verdict[NR_ADVICE_VERDICTS], conflicts, refused, records;
};

struct advised {
	struct world *w;
	struct daemon d; /* of which hints.c sees these: settings, topo, engine, names, order */
	struct made made[PODS_MAX];
	struct key_value note[PODS_MAX][2];
	struct random r;
	struct tally *tally;
};

/* An engine in the state of another one. */
struct twin {
	struct engine *g;
	struct advised *x;
	struct engine *folded; /* NULL: nothing is written down */
};

static bool is_accepted(enum advice_verdict v)
{
	return v == ADVICE_ACCEPTED || v == ADVICE_ACCEPTED_STALE;
}

static void same_advice(const struct advice_result *a, const struct advice_result *b)
{
	assert_int_equal(a->looked_at, b->looked_at);
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->cause, b->cause);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->asked.bits, b->asked.bits);
	assert_int_equal(a->given.bits, b->given.bits);
}

/* What is written down is read, decided again from the state before, and written the same; then it
 * is folded. */
static int write_down(void *ctx, const struct record *r, struct err *e)
{
	static char line[JOURNAL_LINE_MAX], again[JOURNAL_LINE_MAX], work[ADMIT_ARENA_BYTES];
	static struct decoded_record back;
	struct twin *twin = ctx;
	const struct world *w = twin->x->w;
	struct answer answer;
	struct arena read, decide;

	if (!twin->folded)
		return 0;
	int len = journal_json_record(r, &w->t->ids, line, sizeof line, e);
	assert_true(len > 0);
	arena_init(&read, sizeof work);
	arena_init_fixed(&decide, work, sizeof work);
	assert_int_equal(journal_json_parse(line, (size_t)len, &w->t->ids, &read, &back, NULL), 0);
	if (decide_again(engine_ledger(twin->folded), &w->s, &back.record, &decide, &answer)) {
		twin->x->tally->records++;
		assert_true(journal_json_record(
				    &answer.record, &w->t->ids, again, sizeof again, NULL) > 0);
		assert_string_equal(line, again);
	}
	assert_int_equal(engine_replay(twin->folded, &back.record, NULL), 0);
	arena_fini(&read);
	return 0;
}

static struct engine *copy_of(struct advised *x, const struct engine_hooks *hooks)
{
	struct engine *g = engine_new(x->w->t, &x->w->s, hooks);

	assert_int_equal(engine_dump(x->w->g, 0, fold_into, g, NULL), 0);
	if (!ledger_count(engine_ledger(g))) /* as a journal of nothing starts */
		assert_int_equal(engine_replay(g,
					 &(const struct record){.op = RECORD_RELEASE,
						 .cause = "snapshot",
						 .container_id = "",
						 .pool = ledger_view(engine_ledger(x->w->g))->pool},
					 NULL),
			0);
	return g;
}

static void twin_init(struct twin *twin, struct advised *x, bool writes)
{
	const struct engine_hooks hooks = {.ctx = twin, .record = write_down};

	*twin = (struct twin){.x = x};
	twin->g = copy_of(x, &hooks);
	if (writes)
		twin->folded = copy_of(x, &hooks);
}

static void twin_fini(struct twin *twin)
{
	engine_free(twin->g);
	engine_free(twin->folded);
}

/* Properties */

static bool refused_by_require(const struct decision *d)
{
	return !d->admit && d->advice.mode == ADVICE_REQUIRE &&
	       strstr(d->message, "the scheduler's hint cannot be followed");
}

static uint64_t bytes_of(const struct decision *d, unsigned kind)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < d->nr_blocks; i++)
		bytes += d->blocks[i].kind == kind ? d->blocks[i].bytes : 0;
	return bytes;
}

/* The same in amount, and no worse a place. */
static void as_good(const struct advised *x, const struct decision *with,
	const struct decision *without, bool same_bytes)
{
	const struct world *w = x->w;
	const struct hint_space space = {
		.distance = w->s.prefer_closest_numa_nodes ? w->t->distance : NULL};

	assert_int_equal(with->exclusive, without->exclusive);
	if (with->exclusive)
		assert_int_equal(cpuset_count(&with->cpus), cpuset_count(&without->cpus));
	for (unsigned k = 0; k < w->t->nr_kinds && same_bytes; k++)
		assert_int_equal(bytes_of(with, k), bytes_of(without, k));
	assert_int_equal(with->has_affinity, without->has_affinity);
	assert_true(with->preferred >= without->preferred);
	if (with->has_affinity)
		assert_true(hint_compare_fit(&space, with->nodes, without->nodes) <= 0);
	if (with->exclusive)
		assert_false(cpuset_intersects(&with->cpus, &w->s.reserved_cpus));
}

/* By counting: whether those NUMA nodes have less than it needs. */
static bool is_conflict(const struct advised *x, const struct request *req, struct nodeset asked)
{
	const struct ledger *l = engine_ledger(x->w->g);
	struct cpuset there = topo_cpus_of(x->w->t, asked);

	there = cpuset_minus(there, &ledger_view(l)->held);
	there = cpuset_minus(there, &x->w->s.reserved_cpus);
	if (cpuset_count(&there) < request_exclusive_cpus(req))
		return true;
	for (unsigned i = 0; i < req->ask.nr_memory; i++) {
		int kind = topo_kind_of_page(x->w->t, req->ask.memory[i].page_bytes);
		uint64_t bytes = 0;

		nodeset_each (n, asked)
			bytes += ledger_view(l)->memory.node[n].free[kind];
		if (bytes < req->ask.memory[i].bytes)
			return true;
	}
	return false;
}

/* What it says of the hint is true. */
static void is_true(struct advised *x, const struct made *made, const struct decision *d)
{
	const struct advice_result *h = &d->advice;

	if (!h->looked_at)
		return;
	x->tally->verdict[h->verdict]++;
	assert_int_equal(advice_is_rejection(h->cause),
		advice_is_rejection(h->verdict) || h->verdict == ADVICE_REPAIRED);
	if (made->known && advice_is_rejection(made->want))
		assert_int_equal(h->verdict, made->want);
	else if (made->known && is_accepted(h->verdict))
		assert_int_equal(h->verdict, made->want);
	if (!is_accepted(h->verdict))
		return;
	assert_true(d->admit);
	assert_int_equal(h->given.bits, h->asked.bits);
	assert_int_equal(d->nodes.bits, h->asked.bits);
	if (d->exclusive)
		assert_true(nodeset_within(topo_nodes_of(x->w->t, &d->cpus), h->asked));
	if (d->nr_blocks)
		assert_true(nodeset_within(d->mems, h->asked));
}

/* All that is not of this pod. */
static void others_are_the_same(
	const struct ledger *with, const struct ledger *without, const char *uid)
{
	unsigned nr = 0;

	for (size_t i = 0; i < ledger_count(without); i++)
		nr += strcmp(ledger_at(without, i)->request.pod.uid, uid) != 0;
	for (size_t i = 0; i < ledger_count(with); i++) {
		const struct holding *a = ledger_at(with, i), *b;

		if (strcmp(a->request.pod.uid, uid) == 0)
			continue;
		nr--;
		b = ledger_find(without, a->request.container_id);
		assert_non_null(b);
		assert_int_equal(a->decision.exclusive, b->decision.exclusive);
		if (a->decision.exclusive)
			assert_true(cpuset_equal(&a->decision.cpus, &b->decision.cpus));
		assert_int_equal(a->decision.mems.bits, b->decision.mems.bits);
		assert_memory_equal(
			a->decision.blocks, b->decision.blocks, sizeof a->decision.blocks);
		assert_int_equal(a->state, b->state);
	}
	assert_int_equal(nr, 0);
	assert_false(cpuset_intersects(&ledger_view(with)->pool, &ledger_view(with)->held));
}

static void only_the_pool_moves(const struct ledger *l, const struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++) {
		const struct holding *h = ledger_find(l, ups->at[i].container_id);

		assert_false(h->decision.exclusive);
		assert_true(cpuset_equal(&ups->at[i].cpus, &ledger_view(l)->pool));
		assert_int_equal(ups->at[i].mems.bits, h->decision.mems.bits);
	}
}

static void both_are_sound(const struct twin *with, const struct twin *without)
{
	struct err e;

	if (ledger_check(engine_ledger(with->g), &e) ||
		ledger_check(engine_ledger(with->folded), &e) ||
		ledger_check(engine_ledger(without->g), &e))
		fail_msg("%s", e.text);
	assert_same_ledger(engine_ledger(with->g), engine_ledger(with->folded));
}

#endif
