#ifndef NUMAFIT_TEST_CRASH_CLAIMS_RIG_H
#define NUMAFIT_TEST_CRASH_CLAIMS_RIG_H

#include <codec/fields_json.h>
#include <kubelet/grpc_client.h>
#include <numafit/shares.h>

#include "crash_rig.h"

#include "dra_wire.h"
#include "fake_claims.h"

#include <dirent.h>
#include <sys/stat.h>

/* Claims that a kubelet prepares and unprepares, and containers on them and beside them, while the
 * daemon is killed again and again: what must hold of them whatever happens, and where the daemon
 * dies next. */

enum {
	ROUNDS = 60, /* of all cases together */
	MORE = 4,
	CLAIMS = 8,
	PLAIN = 4, /* containers without claims */
	CALLS = 32,
	NODES = 4,
	CLAIMED_MAX = 7, /* CPUs of each NUMA node: then there is always room for all */
	SHARE_CPUS_MAX = 3,
	PLAIN_CPUS_MAX = 2,
	LOOK_AGAIN_MS = 2,
	KILL_US = 1500,
	TEXT_BYTES = 24,
	ARENA_BYTES = 1 << 20
};

/* What the kubelet knows of a claim. */
enum stage {
	UNKNOWN,     /* there is none, or its Unprepare was answered */
	PREPARING,   /* its Prepare is not answered */
	PREPARED,    /* it is */
	UNPREPARING, /* its Unprepare is not answered */
};

/* A claim, and the one container that runs on it or not. */
struct claim_here {
	enum stage stage;
	struct api_claim api;
	char uid[TEXT_BYTES], name[TEXT_BYTES], device[2][TEXT_BYTES];
	char cdi[2][SHARE_CDI_MAX];
	struct fake_container c;
	struct cpuset cpus; /* once it has been seen what it holds: it does not change */
};

struct rig {
	struct crash_rig crash;
	struct fake_api api;
	struct rpc_pump *pump;
	struct rpc_call *call;     /* of the kubelet */
	struct claim_here *called; /* its claim */
	struct loop_timer *look;
	char root[PATH_MAX], plugin[2 * PATH_MAX], cdi[PATH_MAX + 16];
	bool synchronized, over;
	bool drains; /* all is to end */
	unsigned hits[NR_DEATHS + 1];
	struct {
		unsigned prepares, again, unprepares, creates, pinned, unpinned, cut_off;
	} count;
	struct claim_here claim[CLAIMS];
	struct fake_container plain[PLAIN];
	struct fake_container *asked; /* its create or stop is not answered */
	bool is_create;
	unsigned char message[4096];
	size_t len;
};

static inline struct claim_here *claim_of(struct rig *r, const struct fake_container *c)
{
	for (unsigned i = 0; i < CLAIMS; i++)
		if (&r->claim[i].c == c)
			return &r->claim[i];
	return NULL;
}

/* Containers by numbers: first those on claims. */
static inline struct fake_container *container(struct rig *r, unsigned i)
{
	return i < CLAIMS ? &r->claim[i].c : &r->plain[i - CLAIMS];
}

static inline unsigned nr_shares(const struct claim_here *k)
{
	unsigned nr = 0;

	while (nr < 2 && k->api.device[nr])
		nr++;
	return nr;
}

/* What must hold whatever happens */

static inline void no_cpu_is_given_twice(struct rig *r)
{
	for (unsigned i = 0; i < CLAIMS + PLAIN; i++)
		for (unsigned j = 0; j < CLAIMS + PLAIN; j++)
			fake_container_assert_apart(container(r, i), container(r, j));
	for (unsigned i = 0; i < CLAIMS; i++)
		for (unsigned j = 0; j < i; j++)
			if (r->claim[i].stage == PREPARED && r->claim[j].stage == PREPARED)
				assert_false(
					cpuset_intersects(&r->claim[i].cpus, &r->claim[j].cpus));
}

/* The CPUs of the claim in the ledger: what its container has. */
static inline void is_held_as_before(struct claim_here *k, const struct journal_fold *f)
{
	const struct ledger *l = engine_ledger(f->engine);
	struct cpuset cpus = {0};

	for (unsigned i = 0; i < nr_shares(k); i++) {
		const struct holding *h = shares_find(l, k->uid, i);

		if (!h)
			fail_msg(
				"claim %s was prepared, and share %u of it is not held", k->uid, i);
		assert_int_equal(cpuset_count(&h->decision.cpus), k->api.cpus[i]);
		cpus = cpuset_or(cpus, &h->decision.cpus);
	}
	if (cpuset_empty(&k->cpus))
		k->cpus = cpus;
	assert_true(cpuset_equal(&k->cpus, &cpus));
}

/* No share is held of a claim that nobody has asked for, or of which the end was answered. */
static inline void nothing_else_is_held(struct rig *r, const struct journal_fold *f)
{
	const struct ledger *l = engine_ledger(f->engine);
	size_t nr = 0;

	for (unsigned i = 0; i < CLAIMS; i++)
		for (unsigned place = 0;
			r->claim[i].stage != UNKNOWN && place < nr_shares(&r->claim[i]); place++)
			nr += shares_find(l, r->claim[i].uid, place) != NULL;
	assert_int_equal(ledger_view(l)->nr_shares, nr);
}

/* What the journal of the daemon leads to, dead or alive: what was answered is held. */
static inline void what_was_answered_is_held(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	for (unsigned i = 0; i < CLAIMS; i++)
		if (r->claim[i].stage == PREPARED)
			is_held_as_before(&r->claim[i], &f);
	nothing_else_is_held(r, &f);
	journal_fold_fini(&f);
	no_cpu_is_given_twice(r);
}

/* Once Synchronize is answered all that runs is in the ledger as it runs. */
static inline void the_ledger_is_what_runs(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	for (unsigned i = 0; i < CLAIMS + PLAIN; i++) {
		struct fake_container *c = container(r, i);
		const struct holding *h = ledger_find(engine_ledger(f.engine), c->id);

		if (!c->runs)
			continue;
		if (!h)
			fail_msg("%s runs, and the ledger lacks it", c->id);
		else if (!decision_is_left(&h->decision))
			crash_assert_as_held(c, h, &f);
		c->exclusive = h && h->decision.exclusive && !decision_is_left(&h->decision);
	}
	journal_fold_fini(&f);
	what_was_answered_is_held(r);
}

static inline void container_has_its_claim(const struct claim_here *k)
{
	const struct cpuset cpus = fake_container_cpus(&k->c);
	char ours[CPUSET_TEXT_MAX];

	if (!cpuset_empty(&k->cpus) && !cpuset_equal(&k->cpus, &cpus))
		fail_msg("%s is to have CPUs %s of claim %s, and got %s", k->c.id,
			cpuset_format(&k->cpus, ours, sizeof ours), k->uid, k->c.cpus);
}

/* Files of claims that the runtime would find. */
static inline unsigned count_files(const struct rig *r)
{
	DIR *dir = opendir(r->cdi);
	unsigned nr = 0;

	for (const struct dirent *e; dir && (e = readdir(dir));)
		nr += *e->d_name != '.';
	if (dir)
		(void)closedir(dir);
	return nr;
}

/* Where the daemon dies */

#ifdef NUMAFIT_FAULTS
static const enum fault deaths[] = {FAULT_TO_PREPARE, FAULT_PREPARED, FAULT_TO_APPEND,
	FAULT_HALF_LINE, FAULT_APPENDED, FAULT_COMMITTED};
enum { NR_DEATHS_HERE = sizeof deaths / sizeof *deaths };

/* The lines that a life begins with, about. */
static inline unsigned lines_at_start(const struct rig *r)
{
	struct journal_fold f;
	unsigned nr = 1;

	if (access(r->crash.daemon.journal, F_OK) != 0)
		return nr;
	crash_read_journal(&r->crash, &f);
	nr += (unsigned)ledger_count(engine_ledger(f.engine));
	journal_fold_fini(&f);
	return nr;
}

static inline void choose_fault(struct rig *r, unsigned fault)
{
	struct crash_rig *c = &r->crash;
	unsigned pass = 1 + random_below(&c->random, CALLS / 4);

	c->fault = fault;
	c->daemon.fault = NULL;
	if (fault == NR_DEATHS)
		return;
	if (fault == FAULT_HALF_LINE && random_chance(&c->random, 75))
		pass += lines_at_start(r);
	(void)snprintf(c->fault_text, sizeof c->fault_text, "%s:%u", fault_name(fault), pass);
	c->daemon.fault = c->fault_text;
}
#else
static inline void choose_fault(struct rig *r, unsigned fault)
{
	r->crash.fault = fault; /* any moment: there is no other one */
}
#endif

#endif
