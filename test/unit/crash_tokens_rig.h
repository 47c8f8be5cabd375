#ifndef NUMAFIT_TEST_CRASH_TOKENS_RIG_H
#define NUMAFIT_TEST_CRASH_TOKENS_RIG_H

#include <codec/fields_json.h>
#include <io/journal.h>
#include <numafit/tokens.h>

#include "crash_rig.h"

#include "crash_kubelet.h"

/* Pods that a kubelet gives tokens to, while the daemon is killed again and again: what must hold
 * of them whatever happens, and where the daemon dies next. */

enum {
	ROUNDS = 170, /* of all cases together */
	MORE = 4,
	PODS = 24,
	CALLS = 28,
	LINE = 120, /* of the journal, where records are to have several */
	LOOK_AGAIN_MS = 2,
	KILL_US = 1500,
	ANSWERS = 4, /* of PodResources, until what it never shows is given up */
	SLOW_MS = 20
};
/* Longer than any grace of the core's for tokens that nobody comes for. */
static const int64_t much_later_ms = INT64_C(60) * 60 * 1000;

/* A pod of one container, as the kubelet and the runtime have it. */
struct pod_here {
	struct fake_container c; /* its cpu_milli is of whole CPUs */
	bool admitted, sandboxed;
	bool left;          /* it runs unpinned: its tokens still wait for it */
	struct given given; /* tokens: none, or as many as CPUs */
};

/* What a life's last step was. */
enum step { STEP_START, STEP_CREATE, STEP_ALLOCATE, STEP_OTHER, NR_STEPS };

struct rig {
	struct crash_rig crash;
	struct crash_kubelet kubelet;
	struct loop_timer *look;
	bool synchronized, settled;
	bool busy_kubelet; /* this life sees hardly anything but Allocates */
	unsigned hits[NR_DEATHS + 1][NR_STEPS];
	enum step step;
	struct {
		unsigned creates, pinned, on_tokens, unpinned, left, whole, allocates, again,
			denied, unanswered;
	} count;
	struct topo topo;
	struct pod_here pod[PODS];
	struct pod_here *asked; /* its create, RunPodSandbox or Allocate is unanswered */
	struct given wanted;    /* by that Allocate */
};

static inline bool has_tokens(const struct pod_here *p)
{
	return p->given.nr > 0;
}

/* What must hold whatever happens */

static inline void no_cpu_is_given_twice(const struct rig *r)
{
	for (unsigned i = 0; i < PODS; i++)
		for (unsigned j = 0; j < PODS; j++)
			fake_container_assert_apart(&r->pod[i].c, &r->pod[j].c);
}

static inline unsigned cpus_of(const struct pod_here *p)
{
	return p->c.cpu_milli / FAKE_MILLI_PER_CPU;
}

static inline struct token token_of(const struct rig *r, unsigned i)
{
	struct token k;

	assert_int_equal(tokens_parse(&r->topo.ids, r->kubelet.token[i].id, &k, NULL), 0);
	return k;
}

static inline void it_has_the_cpus_of_its_tokens(const struct rig *r, const struct pod_here *p)
{
	struct cpuset cpus = fake_container_cpus(&p->c);
	unsigned on[NODES_MAX] = {0};

	assert_int_equal(cpuset_count(&cpus), cpus_of(p));
	for (unsigned i = 0; i < p->given.nr; i++)
		on[token_of(r, p->given.token[i]).node]++;
	for (unsigned n = 0; n < r->topo.ids.nr && has_tokens(p); n++)
		if (cpuset_count_and(&cpus, &r->topo.node[n].cpus) != on[n])
			fail_msg("%s has %s and got CPUs %s", p->c.id, p->c.allocated, p->c.cpus);
}

/* The tokens that pods have been given or, of those, the ones that somebody runs on. */
static inline struct tokenset tokens_of_pods(const struct rig *r, bool running)
{
	struct tokenset all = {0};

	for (unsigned i = 0; i < PODS; i++)
		for (unsigned k = 0; k < r->pod[i].given.nr; k++)
			if ((r->pod[i].c.runs && !r->pod[i].left) || !running)
				tokenset_add(&all, token_of(r, r->pod[i].given.token[k]));
	return all;
}

static inline void are_the_same_tokens(
	const struct rig *r, const char *what, const struct tokenset *got, struct tokenset want)
{
	char a[TOKENSET_TEXT_MAX], b[TOKENSET_TEXT_MAX];

	(void)tokenset_format(got, &r->topo.ids, a, sizeof a);
	(void)tokenset_format(&want, &r->topo.ids, b, sizeof b);
	if (strcmp(a, b) != 0)
		fail_msg("%s are %s, not %s", what, a, b);
}

static inline int enter(void *ctx, const struct record *record, struct err *e)
{
	return engine_replay(ctx, record, e);
}

static inline int forget(void *ctx, const struct record *record, struct err *e)
{
	(void)ctx, (void)record, (void)e;
	return 0;
}

/* What the daemon has written down, in an engine that may look into the future. */
static inline void no_token_is_lost_for_ever(struct rig *r, struct journal_fold *f)
{
	const struct engine_hooks hooks = {.record = forget};
	struct engine *later = engine_new(&f->topo, &f->settings, &hooks);
	struct tokenset shown = tokens_of_pods(r, false), leased, claimed;
	struct err e = {0};

	if (engine_dump(f->engine, f->last_ms, enter, later, &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < ANSWERS; i++)
		(void)engine_see_tokens(later, f->last_ms + i * much_later_ms, &shown);
	if (ledger_check(engine_ledger(later), &e) < 0)
		fail_msg("%s", e.text);
	leases_tokens(ledger_view(engine_ledger(later))->leases, &leased, &claimed);
	are_the_same_tokens(r, "tokens that are leased", &leased, shown);
	are_the_same_tokens(r, "tokens that containers run on", &claimed, tokens_of_pods(r, true));
	engine_free(later);
}

static inline void is_as_held(struct rig *r, struct pod_here *p, const struct journal_fold *f)
{
	const struct holding *h = ledger_find(engine_ledger(f->engine), p->c.id);

	if (!h)
		fail_msg("%s runs, and the ledger lacks it", p->c.id);
	p->left = decision_is_left(&h->decision);
	if (p->left) { /* it was started unpinned, and has had no update */
		assert_false(*p->c.placement || *p->c.cpus);
		assert_true(cpuset_empty(&h->decision.left_on));
		r->count.left++;
		return;
	}
	crash_assert_as_held(&p->c, h, f);
	if (*p->c.placement)
		assert_int_equal(p->c.exclusive, h->decision.exclusive);
	p->c.exclusive = h->decision.exclusive; /* of one that was started unpinned: from now on */
	r->count.whole += h->decision.source == SOURCE_HELD;
	if (has_tokens(p) && p->c.exclusive)
		it_has_the_cpus_of_its_tokens(r, p);
}

/* What the daemon holds once it has answered Synchronize; all of it is in its journal. */
static inline void the_ledger_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	unsigned nr = 0;

	crash_read_journal(&r->crash, &f);
	r->topo = f.topo;
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].c.runs) {
			is_as_held(r, &r->pod[i], &f);
			nr++;
		}
	for (size_t i = 0; i < ledger_count(engine_ledger(f.engine)); i++)
		nr -= ledger_at(engine_ledger(f.engine), i)->state != HOLDING_WAITING;
	assert_int_equal(nr, 0);
	no_token_is_lost_for_ever(r, &f);
	journal_fold_fini(&f);
}

/* Where the daemon dies */

/* Whether an Allocate passes there. */
static inline bool is_of_allocate(unsigned fault)
{
	return fault >= NR_FAULTS || (fault >= FAULT_TO_APPEND && fault <= FAULT_COMMITTED);
}

#ifdef NUMAFIT_FAULTS
static inline int count_one(void *ctx, const struct record *record, struct err *e)
{
	unsigned *nr = ctx;

	(void)record, (void)e;
	(*nr)++;
	return 0;
}

/* The lines that a life begins with: a header and what is known, or what is found. */
static inline unsigned lines_at_start(const struct rig *r)
{
	unsigned lines = 1;
	struct journal_fold f;

	if (access(r->crash.daemon.journal, F_OK) == 0) {
		crash_read_journal(&r->crash, &f);
		(void)engine_dump(f.engine, f.last_ms, count_one, &lines, NULL);
		journal_fold_fini(&f);
	}
	for (unsigned i = 0; i < PODS && r->crash.memory == ANNOTATIONS_ONLY; i++)
		lines += 2 * r->pod[i].c.runs;
	return lines;
}

struct counting {
	const struct journal_fold *f;
	unsigned nr;
};

static inline int count_between(void *ctx, const struct record *record, struct err *e)
{
	static char text[JOURNAL_TEXT_MAX];
	struct counting *c = ctx;
	int len = journal_json_record(record, &c->f->topo.ids, text, sizeof text, e);

	assert_true(len > 0);
	c->nr += (unsigned)(len - 1) / LINE;
	return 0;
}

static inline int measure_header(void *ctx, char *text, size_t len, struct err *e)
{
	unsigned *bytes = ctx;

	(void)text;
	*bytes = (unsigned)len;
	return err_set(e, ECANCELED, "the first line is enough");
}

/* The passes between lines of one record that a life begins with, about. */
static inline unsigned between_lines_at_start(const struct rig *r)
{
	static unsigned header_bytes; /* of the journal that there was last */
	struct journal_fold f;
	struct counting c = {&f, 0};

	(void)journal_read(r->crash.daemon.journal, measure_header, &header_bytes, NULL);
	c.nr = header_bytes / LINE;
	if (access(r->crash.daemon.journal, F_OK) == 0) {
		crash_read_journal(&r->crash, &f);
		(void)engine_dump(f.engine, f.last_ms, count_between, &c, NULL);
		journal_fold_fini(&f);
	}
	for (unsigned i = 0; i < PODS && r->crash.memory == ANNOTATIONS_ONLY; i++)
		c.nr += 8 * r->pod[i].c.runs;
	return c.nr;
}

/* At which pass it dies: at its start, or in a call. */
static inline unsigned random_pass(struct rig *r)
{
	if (r->crash.fault == FAULT_BETWEEN_LINES)
		return random_chance(&r->crash.random, 25)
			       ? 1 + random_below(&r->crash.random, between_lines_at_start(r))
			       : between_lines_at_start(r) + 1 +
					 random_below(&r->crash.random, 3 * CALLS);
	unsigned before = r->crash.fault == FAULT_HALF_LINE ? lines_at_start(r) : 0;

	if (r->crash.fault == FAULT_TO_DECIDE || r->crash.fault == FAULT_ENCODED ||
		r->crash.fault >= NR_FAULTS)
		return 1 + random_below(&r->crash.random, CALLS / 4); /* few steps pass there */
	if (before && random_chance(&r->crash.random, 25))
		return 1 + random_below(&r->crash.random, before);
	return before + 1 + random_below(&r->crash.random, CALLS / 2);
}

static inline void choose_fault(struct rig *r, unsigned fault)
{
	r->crash.fault = fault;
	r->crash.daemon.fault = NULL;
	r->crash.daemon.line = 0;
	if (r->crash.fault == FAULT_BETWEEN_LINES ||
		(r->crash.fault != FAULT_HALF_LINE && random_chance(&r->crash.random, 30)))
		r->crash.daemon.line = LINE;
	if (r->crash.fault == NR_DEATHS)
		return;
	(void)snprintf(r->crash.fault_text, sizeof r->crash.fault_text, "%s:%u",
		fault_name(r->crash.fault), random_pass(r));
	r->crash.daemon.fault = r->crash.fault_text;
}
#else
static inline void choose_fault(struct rig *r, unsigned fault)
{
	r->crash.fault = fault; /* any moment: there is no other one */
}
#endif

#endif
