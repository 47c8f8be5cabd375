#ifndef NUMAFIT_CORE_LEDGER_STATE_H
#define NUMAFIT_CORE_LEDGER_STATE_H

#include <numafit/ledger.h>
#include <numafit/vec.h>

/* What ledger.c and its helpers share. */

/* What an index sorts by: up to three strings. */
struct key {
	const char *part[3];
};

/* Entries are found by id, by pod and name, and by sandbox, each through its own sorted array: a
 * create costs the same on a full node as on an empty one. */
struct index {
	struct key (*key_of)(const struct holding *h);
	VEC(struct holding *);
};

struct ledger {
	const struct topo *t;
	const struct settings *s;
	struct cpuset held, pool;
	struct cpuset left; /* that containers are confined to which are left as they run */
	struct memory_state memory;
	struct index by_id, by_name, by_sandbox;
	struct leases *leases;
	size_t nr_misplaced;
};

/* Whether its pod was decided as a whole, and keeps it until the pod goes. */
static inline bool holding_is_kept(const struct holding *h)
{
	return h->decision.source == SOURCE_HELD;
}

/* CPUs that other parts of the pod than *but (NULL: all) hold, and that one of its parts may hold
 * as well. */
struct cpuset ledger_held_by_pod(
	const struct ledger *l, const char *pod_uid, const struct holding *but);
/* What other containers than *self (NULL: nobody) are left on. */
struct cpuset ledger_left_by_others(const struct ledger *l, const struct holding *self);
/* ledger_pool.c */
/* Whether they are the pool's, but for reserved ones: those are what strict-cpu-reservation made of
 * them when the pool moved last. */
bool ledger_is_of_pool(const struct ledger *l, const struct cpuset *cpus);
/* 0, or -EINVAL with what is wrong with such a pool. */
int ledger_pool_is_sound(const struct ledger *l, const struct cpuset *pool, struct err *e);

#endif
