#ifndef NUMAFIT_LEDGER_H
#define NUMAFIT_LEDGER_H

#include <numafit/cfs_quota.h>
#include <numafit/kept.h>
#include <numafit/decision.h>
#include <numafit/request.h>

/* Who holds what. The ledger is the only state of the decision core; everything that is free is
 * derived from it. Invariants, all checked by ledger_check():
 *   - no CPU is held by two containers, except that later containers of a pod take over from its
 *     init containers, when it was decided as a whole; and none of the reserved CPUs by any;
 *   - the shared pool and the held CPUs have no CPU in common;
 *   - no CPU is held that a container is left on (decision.left_on);
 *   - the shared pool holds all reserved CPUs (none with strict-cpu-reservation) and is never
 * empty;
 *   - a container without CPUs of its own has the pool's;
 *   - the memory booked on every node is the sum of the containers' blocks;
 *   - a container that is being moved has what it comes from and what it goes to;
 *   - what is within a pod is of what the pod has as one, and no two containers have a CPU of it of
 *     which one has it for itself, unless an init container leaves it to a later one, or has for
 *     itself what sidecars share. */

enum holding_state {
	HOLDING_WAITING,   /* decided with its pod; the container is still to come, or to come again
			    */
	HOLDING_TENTATIVE, /* answered */
	HOLDING_LIVE       /* seen to have been created */
};

/* One container's entry; the ledger owns the strings. An entry of a pod that was decided as a whole
 * (decision.source is SOURCE_HELD) stays until the pod goes: while it waits for a container its id
 * is one of the ledger's own, which no container has. So it always is for what a pod has as one
 * (ask.whole_pod), of which its containers' entries have parts (decision.within_pod): it is booked,
 * and they are not. */
struct holding {
	/* What the container asked for, as far as it lasts: nothing of it is an event's. */
	struct request request;
	enum holding_state state;
	bool aged;      /* tentative for a while; see ledger_age() */
	bool misplaced; /* it runs with another cpuset than decision says, and was not updated yet
			 */
	bool starting; /* its process does not run yet: the runtime may pass over an update of it */
	bool on_reserved; /* it runs on the CPUs that are reserved for the system, by its wish */
	/* admit is true. Where it is not `exclusive` its CPUs are the shared pool's, whichever
	 * these are by now, and decision.cpus is empty: ledger_cpus_of(). */
	struct decision decision;
};

/* Whether it is a share of a claim, which waits for good: containers come and go on its CPUs, which
 * are booked with it (decision.within_claims). */
static inline bool holding_is_share(const struct holding *h)
{
	return !nodeset_empty(h->request.ask.share_of);
}

/* Whether its container came with shares and has none of what they hold: they were not there. */
static inline bool holding_lacks_shares(const struct holding *h)
{
	return h->request.shares && !h->decision.within_claims;
}

/* Whether the container shares CPUs of its pod, which others have not, with containers of it. */
bool request_shares_in_pod(const struct request *req, const struct decision *d);

/* A container that is being moved to other CPUs and memory: until that has ended its entry has what
 * both say. */
struct moving {
	const char *container_id;
	struct decision from, to;
};

struct bounds;
struct ledger;
struct leases;
struct token_reports;

/* An empty ledger of the machine. t and s are borrowed and outlive it. */
struct ledger *ledger_new(const struct topo *t, const struct settings *s);
void ledger_free(struct ledger *l);

/* What a ledger says, beside its entries. */
struct ledger_view {
	const struct topo *topo;
	struct cpuset held; /* all CPUs held exclusively */
	struct cpuset pool; /* the CPUs that containers without CPUs of their own run on */
	/* All CPUs that containers are confined to which are left as they run (decision.left_on).
	 * They stay in the shared pool. */
	struct cpuset left;
	struct memory_state memory;
	/* The tokens that the kubelet has given out; part of the same state. A container whose
	 * decision has a lease runs on them, and no other does. */
	struct leases *leases;
	size_t nr_misplaced; /* entries whose containers are to get an update */
	/* The cgroups of all containers that are there, where settings have the pool enforced by
	 * cgroups; else NULL. The pool is one of what they are to be allowed. */
	struct bounds *bounds;
	size_t nr_shared;               /* containers that are there and share the pool */
	size_t nr_unbounded;            /* of these: no cgroup bounds them, they are updated */
	size_t nr_shares;               /* entries that are shares of claims */
	size_t nr_without_shares;       /* entries of containers that lack their shares */
	struct moving *moving;          /* NULL: no container is */
	struct kept_list kept[NR_KEPT]; /* what values of the kernel were */
};
/* Borrowed; always as the ledger is now. */
const struct ledger_view *ledger_view(const struct ledger *l);
/* Whether the entry's container runs on CPUs of the shared pool, be it beside its own. */
bool holding_is_in_pool(const struct holding *h);
/* The set that the entry's container is to run on: its own CPUs, the shared pool, or what its
 * wishes make of them. */
struct cpuset ledger_cpus_of(const struct ledger *l, const struct holding *h);
/* What a container without CPUs of its own runs on, with those wishes, when the pool is that: the
 * pool, or the reserved CPUs that are online. */
struct cpuset ledger_common_cpus(
	const struct ledger *l, const struct wishes *w, const struct cpuset *pool);
/* Its whole decision, with the CPUs that it holds, or the shared pool's. */
struct decision ledger_decision_of(const struct ledger *l, const struct holding *h);
/* Whether the entry's container shares the pool, and a cgroup keeps it there: it needs no update
 * when the pool moves. *exact: as bounds_shares(). */
bool ledger_is_bounded(const struct ledger *l, const struct holding *h, bool *exact);
/* The CPUs that may still be held exclusively: neither held nor reserved, nor is a container left
 * on them. */
struct cpuset ledger_free_cpus(const struct ledger *l);
/* The CPUs that containers may have at all: with strict-cpu-reservation not the reserved ones. */
struct cpuset ledger_all_cpus(const struct ledger *l);
/* Of these the CPUs that the shared pool may have: not isolated ones, unless all are. */
struct cpuset ledger_shareable_cpus(const struct ledger *l);

/* Where the request of an entry has its strings, each of which may be NULL, for whoever copies
 * them.
 */
enum { HOLDING_STRINGS = 10 };
void holding_strings(struct request *req, const char **text[HOLDING_STRINGS]);

/* CPUs that nobody holds and no newcomer gets; they stay in the shared pool. First those that
 * containers are left on. Then, with the device plugin, as many as the tokens stand for that are
 * given out and that no container has come for, without those of `but` (NULL: all count); whole
 * cores where that can be. */
struct tokenset;
struct cpuset ledger_promised_cpus(const struct ledger *l, const struct tokenset *but);
/* CPUs that the shared pool can still give up, beside those that are promised. */
unsigned ledger_spare_cpus(const struct ledger *l, const struct cpuset *promised);
/* Whether the kubelet may give out these tokens, as far as CPUs go: there is one left for each that
 * is new, on its NUMA node and beside what the shared pool needs. 0; -EBUSY; or, with
 * full-pcpus-only, -EINVAL when those of a node are not whole cores. */
int ledger_may_promise(const struct ledger *l, const struct tokenset *tokens, struct err *e);
/* All tokens as the kubelet is to see them now (tokens_report()). 0 or -ENOMEM. */
int ledger_report_tokens(const struct ledger *l, struct arena *a, struct token_reports *out);

size_t ledger_count(const struct ledger *l);
/* Entry i in order of container id, or NULL; valid until the ledger changes. */
const struct holding *ledger_at(const struct ledger *l, size_t i);
const struct holding *ledger_find(const struct ledger *l, const char *container_id);
/* Entry i in order of pod (uid) and container name, or NULL: a pod's stand together. */
const struct holding *ledger_at_by_pod(const struct ledger *l, size_t i);
/* Where the pod's entries begin in that order, or would begin. */
size_t ledger_first_of_pod(const struct ledger *l, const char *pod_uid);
/* The entry that comes next behind that id, which need not be there, or NULL. */
const struct holding *ledger_after(const struct ledger *l, const char *container_id);
/* The entry of that container of the pod (uid) under any other id, be it waiting, or NULL. */
const struct holding *ledger_find_named(const struct ledger *l, const char *pod_uid,
	const char *container_name, const char *not_container_id);

/* What waits for that container of the pod, or NULL. */
const struct holding *ledger_find_waiting(
	const struct ledger *l, const char *pod_uid, const char *container_name);

/* Any entry of the pod with that sandbox, or NULL. */
const struct holding *ledger_find_in_sandbox(const struct ledger *l, const char *sandbox_id);
/* Any entry of that pod, or NULL. */
const struct holding *ledger_find_of_pod(const struct ledger *l, const char *pod_uid);

/* A value of the kernel is to be changed, or was given back. */
void ledger_note_kept(
	struct ledger *l, enum kept_kind kind, const char *key, const struct kept_note *n);

/* Take out what such an entry would replace: one of the same id, and what waits for it. */
void ledger_make_way(struct ledger *l, const struct request *req, const struct decision *d);
/* Enter the admitted decision for the request, replacing an entry of the same id, and the one that
 * waits for this container when that is what was decided (SOURCE_HELD). It cannot fail: a decision
 * that admit() made from this ledger always fits, once the pool was moved out of the way of its
 * CPUs (ledger_pool_without(), ledger_set_pool()). d->reasons is not kept. */
void ledger_commit(struct ledger *l, const struct request *req, const struct decision *d);
/* Enter a part of a pod's decision (SOURCE_HELD) for a container that is to come; what its id will
 * be is not known, req->container_id is not looked at. */
void ledger_hold(struct ledger *l, const struct request *req, const struct decision *d);
/* Whether a decision from elsewhere (a journal, a running container) would keep the invariants.
 * 0; -EBUSY when CPUs or memory of it are held or reserved, -EINVAL when the machine lacks them,
 * or nothing like it is held for it (SOURCE_HELD), with the text saying which and by which
 * container. */
int ledger_fits(
	const struct ledger *l, const struct request *req, const struct decision *d, struct err *e);
/* The same for a part of a pod's decision that is to be held. */
int ledger_may_hold(
	const struct ledger *l, const struct request *req, const struct decision *d, struct err *e);
/* The container was seen to have been created: plain init containers before it in a pod that was
 * decided as a whole have ended, and their memory is free again. */
void ledger_set_live(struct ledger *l, const char *container_id);
/* Note that the container's cpuset must be updated with the next reply that can carry it, or that
 * it was. */
void ledger_set_misplaced(struct ledger *l, const char *container_id, bool misplaced);
/* Note whether its process is still to come, as it is for an entry just made. */
void ledger_set_starting(struct ledger *l, const char *container_id, bool starting);
/* Note that the entry has been there for a while. */
void ledger_age(struct ledger *l, const char *container_id);
/* The CPUs that the entry holds, but for those that other parts of its pod hold as well. */
struct cpuset ledger_held_alone_by(const struct ledger *l, const struct holding *h);
/* The CPUs that would be free once more if the entry were released now. */
struct cpuset ledger_released_by(const struct ledger *l, const struct holding *h);
/* Remove the entry, or let it wait again when its pod holds it; false when there was none. With
 * what a pod has as one its parts go, too. */
bool ledger_release(struct ledger *l, const char *container_id);

/* What the pool becomes once *held are taken from it: unchanged when they are not in it, else less
 * by them and by a step ahead of need on the nodes concerned. */
struct cpuset ledger_pool_without(const struct ledger *l, const struct cpuset *held);
/* What the pool may grow to once *released are held no more: unchanged until more than two steps of
 * CPUs lie idle on a node. */
struct cpuset ledger_pool_grown(const struct ledger *l, const struct cpuset *released);
/* Move the pool, and with it all entries without CPUs of their own. 0, or -EINVAL when *pool would
 * break an invariant. */
int ledger_set_pool(struct ledger *l, const struct cpuset *pool, struct err *e);
/* strict-cpu-reservation may have been switched: the pool has the reserved CPUs that it should
 * have. 0, or -EBUSY: none would be left in it, and it stays as it was. */
int ledger_settings_changed(struct ledger *l, struct err *e);

/* The machine has become *t, borrowed like the one before: the same NUMA nodes and kinds of memory,
 * but other CPUs online or other amounts; and the settings may reserve others than before. Entries
 * lose the CPUs that are gone or reserved now, one that has none
 * left runs in the shared pool, and so do those that hold most when no CPU is left for it; what is
 * booked beyond what there is now is booked no more. New CPUs join the pool. */
void ledger_set_topo(struct ledger *l, const struct topo *t);
/* Enter other CPUs and memory for an entry that is there, pool and all as for ledger_commit(); its
 * state stays. */
void ledger_move(struct ledger *l, const char *container_id, const struct decision *d);

/* Whether the container's move from what it has to *to can begin: there is room for both together,
 * in the shared pool as well. 0; -EAGAIN: another one is being moved; -ENOENT: it is not there;
 * -EINVAL: it has no CPUs of its own, or others
 * beside them, or what it has is part of something; or as ledger_fits(),
 * with text. */
int ledger_may_move(
	const struct ledger *l, const char *container_id, const struct decision *to, struct err *e);
/* It begins: the entry has both, the pool was moved out of the way before. */
void ledger_begin_move(struct ledger *l, const char *container_id, const struct decision *to);
/* It ends, where it was to go or where it came from. Where an entry is released its move ends with
 * it. */
void ledger_end_move(struct ledger *l, bool back, int64_t now_ms);
bool ledger_is_moving(const struct ledger *l, const char *container_id);

/* Walk every invariant. 0, or -EINVAL with the first that is broken. */
int ledger_check(const struct ledger *l, struct err *e);

#endif
