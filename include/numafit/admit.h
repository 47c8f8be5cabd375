#ifndef NUMAFIT_ADMIT_H
#define NUMAFIT_ADMIT_H

#include <numafit/decision.h>
#include <numafit/ledger.h>
#include <numafit/request.h>
#include <numafit/settings.h>

/* What is to be decided, from which state; all borrowed. */
struct admit_question {
	const struct ledger *ledger;
	const struct settings *settings;
	const struct request *container; /* one of a pod whose others are not known; or NULL: */
	const struct pod *pod;           /* a pod as a whole */
	/* As if the node were another than the ledger says; zeros: as it is. */
	struct admit_supposition {
		bool empty;       /* nothing runs on it, nor is anything promised */
		bool any_pool;    /* the shared pool may be left without a CPU */
		const bool *gone; /* these entries are not there, by place (ledger_at()); or NULL */
		/* Of a container: this is its affinity, whatever else would do; nothing is merged.
		 * NULL: as the merge finds. */
		const struct hint *settled;
	} suppose;
};

/* Decide it: collect hints, merge them, ask the policy, assign CPUs and memory (admission.h). It
 * changes nothing but its outputs, so a what-if is this very call. Refused is an answer (d->admit
 * false, with reason and message).
 *
 * A container: *d is what it gets. In pod scope the pod's first container is aligned for as much as
 * its sandbox sums up, the others follow it.
 *
 * A pod whose containers are known (pod->container), as the kubelet does: either *d is refused,
 * with the name of the container that was in the way (none when the pod was aligned as a whole)
 * before the kubelet's message, or (*parts)[i], from *a, is what container i gets; behind
 * these is what the pod has as one, where it shares its own resources out (admit_nr_parts()). What
 * an init container leaves to later ones is in both: CPUs that two parts have, and of memory only
 * what the later does not take over is in the earlier one's blocks. Refused with d->apart is one
 * that takes a larger arena to decide. A pod that asks for tokens of numafit.io/cpu is only checked
 * for asking for as many CPUs, in which case *parts is NULL: each container comes with its own.
 *
 * A pod of which only sums are known: it is refused when no way to share them out can fit: a
 * Guaranteed pod's memory, in pod scope with the policy's verdict on it. *d holds nothing for
 * anybody.
 *
 * Working memory and the decisions' reasons come from *a, a fixed
 * arena (arena_init_fixed(), ADMIT_ARENA_BYTES are plenty for a container); when that is too small
 * the refusal says so. All searches spend *b; d->cut_short when one had too few steps. parts may be
 * NULL for anything but a pod whose containers are known. */
void admit(const struct admit_question *q, struct budget *b, struct arena *a, struct decision *d,
	struct decision **parts);

/* How many parts these are: one a container, and one more where they are within_pod. */
size_t admit_nr_parts(const struct pod *pod, const struct decision *parts);

/* What such a decision is made on: what nobody holds. From *a; NULL when its limit is reached. */
struct books;
const struct books *admit_books(const struct admit_question *q, struct arena *a);

/* Whether the container comes with tokens of numafit.io/cpu: admit() then gives it CPUs of their
 * NUMA nodes, as many of each, or refuses it when admit_tokens() does. */
struct lease_claim;
bool admit_has_tokens(const struct settings *s, const struct request *req);
/* What its annotation entitles it to. 0; as lease_user_of(), leases_examine() and
 * admit_token_owner(). */
int admit_tokens(
	const struct ledger *l, const struct request *req, struct lease_claim *c, struct err *e);
/* Whether the tokens, which are leased, can be the container's: an annotation may be forged. By
 * req->owner where PodResources has shown them; else they must not wait for another pod. 0; -EPERM:
 * they are another's; -EBUSY: they wait for another pod; -EAGAIN: that is not known yet, and the
 * kubelet tries again. */
struct tokenset;
int admit_token_owner(const struct ledger *l, const struct request *req,
	const struct tokenset *tokens, struct err *e);

enum { ADMIT_ARENA_BYTES = 2 << 20 };

#endif
