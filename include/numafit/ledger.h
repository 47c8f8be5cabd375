#ifndef NUMAFIT_LEDGER_H
#define NUMAFIT_LEDGER_H

#include <numafit/decision.h>
#include <numafit/request.h>

/* Who holds what. The ledger is the only state of the decision core; everything that is free is
 * derived from it. Invariants, all checked by ledger_check():
 *   - no CPU is held by two containers, and none of the reserved CPUs by any;
 *   - the shared pool and the held CPUs have no CPU in common;
 *   - the shared pool holds all reserved CPUs (none with strict-cpu-reservation) and is never
 * empty;
 *   - the memory booked on every node is the sum of the containers' blocks. */

enum holding_state { HOLDING_TENTATIVE, HOLDING_LIVE }; /* answered; seen to have been created */

/* One container's entry; the ledger owns the strings. */
struct holding {
	char *container_id, *container_name, *sandbox_id, *pod_uid, *pod_ns, *pod_name;
	enum qos qos;
	uint64_t cpu_milli, cpu_limit_milli;
	unsigned nr_memory;
	struct memory_ask memory[TOPO_KINDS];
	int64_t created_at_ns;
	enum holding_state state;
	bool misplaced; /* it runs with another cpuset than decision says, and was not told yet */
	struct decision decision; /* admit is true */
};

/* What the container asked for, once more as a request; it borrows the entry's strings. */
struct request holding_request(const struct holding *h);

struct ledger;

/* An empty ledger of the machine. t and s are borrowed and outlive it. */
struct ledger *ledger_new(const struct topo *t, const struct settings *s);
void ledger_free(struct ledger *l);

const struct topo *ledger_topo(const struct ledger *l);
/* The CPUs that may still be held exclusively: neither held nor reserved. */
struct cpuset ledger_free_cpus(const struct ledger *l);
/* The CPUs that the shared pool may have at all: with strict-cpu-reservation not the reserved ones.
 */
struct cpuset ledger_shareable_cpus(const struct ledger *l);
/* All CPUs held exclusively. */
const struct cpuset *ledger_held_cpus(const struct ledger *l);
/* The CPUs that containers without CPUs of their own run on. */
const struct cpuset *ledger_pool(const struct ledger *l);
const struct memory_state *ledger_memory(const struct ledger *l);

size_t ledger_count(const struct ledger *l);
/* Entry i in order of container id, or NULL; valid until the ledger changes. */
const struct holding *ledger_at(const struct ledger *l, size_t i);
const struct holding *ledger_find(const struct ledger *l, const char *container_id);
/* The entry of that container of the pod (uid) under any other id, or NULL. */
const struct holding *ledger_find_named(const struct ledger *l, const char *pod_uid,
	const char *container_name, const char *not_container_id);

/* Any entry of that pod, or NULL. */
const struct holding *ledger_find_of_pod(const struct ledger *l, const char *pod_uid);

/* Enter the admitted decision for the request, replacing an entry of the same id. It cannot fail:
 * a decision that admit() made from this ledger always fits, once the pool was moved out of the
 * way of its CPUs (ledger_pool_without(), ledger_set_pool()). */
void ledger_commit(struct ledger *l, const struct request *req, const struct decision *d);
/* Whether a decision from elsewhere (a journal, a running container) would keep the invariants.
 * 0; -EBUSY when CPUs or memory of it are held or reserved, -EINVAL when the machine lacks them,
 * with the text saying which and by whom. */
int ledger_fits(
	const struct ledger *l, const char *container_id, const struct decision *d, struct err *e);
void ledger_set_state(struct ledger *l, const char *container_id, enum holding_state state);
/* Note that the container must be told its cpuset with the next reply that can carry it, or that it
 * was. */
void ledger_set_misplaced(struct ledger *l, const char *container_id, bool misplaced);
size_t ledger_nr_misplaced(const struct ledger *l);
/* Remove the entry; false when there was none. */
bool ledger_release(struct ledger *l, const char *container_id);

/* What the pool becomes once *held are taken from it: unchanged when they are not in it, else less
 * by them and by a step ahead of need on the nodes concerned. */
struct cpuset ledger_pool_without(const struct ledger *l, const struct cpuset *held);
/* What the pool may grow to once *released are held no more: unchanged until more than two steps of
 * CPUs lie idle on a node. */
struct cpuset ledger_pool_grown(const struct ledger *l, const struct cpuset *released);
/* Move the pool, and with it cpus of all entries without CPUs of their own. 0, or -EINVAL when
 * *pool would break an invariant. */
int ledger_set_pool(struct ledger *l, const struct cpuset *pool, struct err *e);

/* Walk every invariant. 0, or -EINVAL with the first that is broken. */
int ledger_check(const struct ledger *l, struct err *e);

#endif
