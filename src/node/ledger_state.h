#ifndef NUMAFIT_NODE_LEDGER_STATE_H
#define NUMAFIT_NODE_LEDGER_STATE_H

#include <numafit/bounds.h>
#include <numafit/ledger.h>
#include <numafit/vec.h>

/* What ledger.c and its helpers share. */

/* Entries are found by id, by pod and name, and by sandbox, each through its own sorted array: a
 * create costs the same on a full node as on an empty one. The first characters of what an order
 * sorts by stand in the array itself, as a number: whoever searches reads little else. */
enum ledger_order { BY_ID, BY_NAME, BY_SANDBOX, NR_LEDGER_ORDERS };
struct ledger_slot {
	uint64_t begins;
	struct holding *h;
};

struct ledger {
	struct ledger_view now;
	const struct settings *s;
	struct ledger_index {
		VEC(struct ledger_slot);
	} by[NR_LEDGER_ORDERS];
};

/* Whether its pod was decided as a whole, and keeps it until the pod goes. */
static inline bool holding_is_kept(const struct holding *h)
{
	return h->decision.source == SOURCE_HELD;
}

/* Whether it is what a pod has as one, of which its containers have parts (decision.within_pod). */
static inline bool holding_is_pod(const struct holding *h)
{
	return h->request.ask.whole_pod;
}
static inline bool holding_is_booked(const struct holding *h)
{
	return decision_is_booked(&h->decision);
}
/* What the pod of that part has as one, or NULL. */
const struct holding *ledger_pod_of(const struct ledger *l, const struct request *req);

/* What other containers than *self (NULL: nobody) are left on. */
struct cpuset ledger_left_by_others(const struct ledger *l, const struct holding *self);
/* Entries have changed where they are: bounds and counts of those that share the pool follow. */
void ledger_bound_all(struct ledger *l);
/* The same for one entry, which is changed between the two. NULL: there is none. */
struct holding *ledger_take_up(struct ledger *l, const char *container_id);
void ledger_put_down(struct ledger *l, struct holding *h);
/* ledger_moving.c */
void moving_free(struct moving *m);
/* ledger_pool.c */
/* The pool with *more CPUs, as far as it may have them: none that is held. */
struct cpuset ledger_pool_of(const struct ledger *l, const struct cpuset *more);
/* 0, or -EINVAL with what is wrong with such a pool. */
int ledger_pool_is_sound(const struct ledger *l, const struct cpuset *pool, struct err *e);

#endif
