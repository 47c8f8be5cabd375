#ifndef NUMAFIT_SHARES_H
#define NUMAFIT_SHARES_H

#include <numafit/arena.h>
#include <numafit/ledger.h>
#include <numafit/resource_claim.h>

/* Shares of ResourceClaims in the ledger. A share is an entry without a container
 * (holding_is_share()): its CPUs and memory are booked with it, from its claim's Prepare to its
 * Unprepare. Containers that come with it have its CPUs (decision.within_claims). Its entry stands
 * for the claim where others stand for a pod: pod.uid, ns and name are the claim's, and its name is
 * its place in the claim ("0").
 *
 * Who may use a share: a container that comes with the share's CDI device, which the kubelet gives
 * to containers that name the claim, and whose pod the claim is reserved for, by its uid. */

enum { SHARE_ID_MAX = CLAIM_UID_MAX + sizeof "/31" };
/* The id of the share in the ledger, into buf; returns buf. Container ids have no slash. */
const char *share_id(const char *claim_uid, size_t place, char buf[SHARE_ID_MAX]);
/* The name of its CDI device, "UID-PLACE", and the whole, "numafit.io/claim=UID-PLACE". */
enum { SHARE_CDI_MAX = sizeof CLAIM_CDI_KIND "=" + SHARE_ID_MAX };
const char *share_cdi(const char *claim_uid, size_t place, char buf[SHARE_CDI_MAX]);
/* The shares among the names of CDI devices, by their ids, with spaces between: for request.shares,
 * from *a. NULL: there is none. "": one of ours cannot be read, or the arena's limit is reached; no
 * share is called so. */
const char *shares_of_cdi(const char *const *cdi, size_t nr, struct arena *a);

/* The dense index of the NUMA node that the share's device is, or -1. */
int share_node(const struct topo *t, const struct claim_share *s);
/* What the share asks for, as a request: its NUMA node's dense index is node, of which the caller
 * has made sure. Texts are the claim's, and for_pods is (shares_for_pods()). */
struct request share_request(const struct resource_claim *c, size_t place, unsigned node,
	const char *id, const char *place_text, const char *for_pods);
/* The uids of its pods, with spaces between, from *a; NULL: the arena's limit. */
const char *shares_for_pods(const struct resource_claim *c, struct arena *a);

/* What a container has that comes with shares: *d is admitted with all their CPUs and NUMA nodes;
 * or refused (REFUSED_FOR_CLAIM), as one is not there, is not for its pod, or another container
 * runs on it that it is not to be shared with. It does not matter what the container asks for. */
void shares_decide(const struct ledger *l, const struct request *req, struct decision *d);
/* All CPUs of these shares; those that are not there have none. */
struct cpuset shares_cpus(const struct ledger *l, const char *shares);
/* What all shares hold: CPUs, and bytes by NUMA node (dense index) and kind. */
struct shares_held {
	struct cpuset cpus;
	uint64_t bytes[NODES_MAX][TOPO_KINDS];
};
void shares_add_up(const struct ledger *l, struct shares_held *out);
/* Whether any share is there for that pod. */
bool shares_has_pod(const struct ledger *l, const char *pod_uid);
/* Of the shares that the container comes with, all of which are there, the first one that is not
 * known to be for its pod: its claim may be reserved for another pod since it was read. NULL: there
 * is none. */
const struct holding *shares_unknown_pod(const struct ledger *l, const struct request *req);
/* Any share of the claim, or of a claim of that namespace; NULL: none is held. */
const struct holding *shares_any(const struct ledger *l, const char *claim_uid);
const struct holding *shares_in_namespace(const struct ledger *l, const char *ns);
/* Whether other containers may run on the shares, beside the one that has them. */
bool shares_are_for_many(const struct ledger *l, const char *shares);
/* The claim's share of that place, or NULL. */
const struct holding *shares_find(const struct ledger *l, const char *claim_uid, size_t place);
/* How many containers run on the share of that id. */
size_t shares_count_users(const struct ledger *l, const char *share);
/* The entry of a container that has any share of the claim, or NULL. A container that was created
 * and does not run yet is a user: its start may be under way, and its cpuset is set by then. */
const struct holding *shares_user(const struct ledger *l, const char *claim_uid);

/* What claims may have of a NUMA node, those included that are there: a scheduler subtracts these
 * itself. */
struct share_offer {
	unsigned total;                      /* CPUs that are online and not reserved */
	unsigned cpus;                       /* of these what claims may have */
	unsigned claimed;                    /* of these what claims have */
	uint64_t memory[TOPO_KINDS];         /* bytes, by kind */
	uint64_t claimed_memory[TOPO_KINDS]; /* of these what claims have */
	bool closed; /* no claim is to come here, although there are CPUs: its memory is shared out
			with that of other NUMA nodes */
};
/* By NUMA node (dense index), NODES_MAX of them. By settings claims.capacity: dynamic: what other
 * containers and tokens have not; share: a fixed part, claims.share per cent. What the shared pool
 * needs (sharedPoolMinimum) is left out. */
void shares_offer(const struct ledger *l, const struct settings *s, struct share_offer *offer);
/* These NUMA nodes (dense indexes), which stand as they were published last, in the order in which
 * schedulers are to fill them now. Small differences change nothing. */
void shares_order(
	enum claims_order order, const struct share_offer *offer, unsigned *nodes, unsigned nr);
/* Whether a scheduler would give the share, of the NUMA node with that offer, to a claim. */
bool share_is_offered(
	const struct topo *t, const struct claim_share *s, const struct share_offer *offer);

/* Whether each NUMA node has, in numbers, what all of the claim's shares on it are to have
 * together, if nothing else is there. */
bool shares_fit_alone(
	const struct ledger *l, const struct settings *s, const struct resource_claim *c);
/* The same of the shares that are not held, and what is free now. */
bool shares_fit_now(const struct ledger *l, const struct resource_claim *c);
/* Why the claim, which the decision refuses, has no room here: what it asks for of its NUMA nodes,
 * and what they have. Into buf; returns buf. */
const char *shares_no_room(const struct ledger *l, const struct settings *s,
	const struct resource_claim *c, const struct decision *d, char *buf, size_t cap);

#endif
