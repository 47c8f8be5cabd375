#ifndef NUMAFIT_LEASES_H
#define NUMAFIT_LEASES_H

#include <numafit/request.h>
#include <numafit/tokens.h>

/* Which tokens the kubelet has given out (Allocate), and which containers have come for them.
 *
 * The kubelet does not say for which container it asks. The answer to its Allocate is an annotation
 * that it puts on the container (numafit.io/allocated: "v1:", a lease's name, ":", the tokens); a
 * container that comes with it claims those tokens. Others can read it. It counts only where just
 * those tokens are leased, the latest of them under just that name, and nobody else runs on them;
 * its reader must take it from a container's annotations, which the kubelet writes, never from a
 * pod's; and whose the tokens are is asked of others (enum token_owner, leases_wait_for()).
 *
 * A token is in one lease, from when it is given out until it is given up. An Allocate for tokens
 * that are leased gives their lease again; with others among them, those are a lease of their own,
 * and the annotation names the latest. Example: an init container's tokens. Before any
 * container of a pod is created the kubelet asks for each of them, and for some of the init
 * container's tokens once more, with others or without, for a later one. Both come, one after the
 * other.
 *
 * Nobody says that tokens are free again. A container that ends leaves its tokens to its pod, where
 * a successor will come with the same annotation: they wait until the pod is gone, whatever
 * PodResources shows, for it never shows plain init containers, and a kubelet that has just started
 * shows nobody. Tokens of no known pod that PodResources does not show are stale (leases_stale()).
 *
 * All changes follow from the state and the arguments alone: a journal that holds the arguments, or
 * the leases as they are (leases_next(), leases_enter()), leads to the same state. Invariants, all
 * checked by leases_check(): tokens are of NUMA nodes of the machine, each leased once, under a
 * name that was given out, or none; each user has tokens, and no container is two users. */

enum { LEASE_TEXT_MAX = sizeof "v1:18446744073709551615:" + TOKENSET_TEXT_MAX };
/* The annotation's value into buf of LEASE_TEXT_MAX bytes; returns buf. */
const char *lease_annotation(
	uint64_t name, const struct tokenset *tokens, const struct node_ids *ids, char *buf);

/* A container that uses tokens. Names have the lengths that Kubernetes grants. */
enum { LEASE_ID_MAX = 128, LEASE_NAME_MAX = 254 };
struct lease_user {
	char container_id[LEASE_ID_MAX], container_name[LEASE_NAME_MAX];
	char pod_uid[LEASE_ID_MAX], pod_ns[LEASE_NAME_MAX], pod_name[LEASE_NAME_MAX];
};
/* The container of that request. 0; -ENAMETOOLONG: no Kubernetes name is that long; -EINVAL: it has
 * no id. */
int lease_user_of(const struct request *req, struct lease_user *out, struct err *e);

/* A lease, or the part of one for which all this is the same. A plain value. */
struct lease {
	uint64_t name;          /* 0: not known (leases_adopt()) */
	int64_t since_ms;       /* when it was last asked for, or its container or pod went */
	bool claimed;           /* the user runs */
	bool shown;             /* PodResources has shown it */
	struct lease_user user; /* who had it last; empty: nobody has come for it yet */
	struct tokenset tokens;
};

/* What a container may have. */
struct lease_claim {
	uint64_t name;
	struct tokenset tokens;
	struct nodeset nodes;
	unsigned on[NODES_MAX]; /* CPUs on each of them, by dense index */
};

/* More than a machine has: some may be left from before its CPUs went offline. */
enum { LEASES_TOKENS_MAX = 2 * CPUSET_BITS };
struct leases;

/* No lease at all. t and s are borrowed and outlive it. */
struct leases *leases_new(const struct topo *t, const struct settings *s);
void leases_free(struct leases *l);
/* The machine has become *t: the same NUMA nodes with other CPUs online. */
void leases_set_topo(struct leases *l, const struct topo *t);

/* Whether the kubelet may give these tokens to some container. 0, with the *name that a new lease
 * of them would have: `from`, or the next one that no lease has had; -EINVAL: none are asked for;
 * -ENOENT: one that the machine lacks (and nobody has leased); -ENOSPC: LEASES_TOKENS_MAX. Nothing
 * is changed. */
int leases_may_allocate(const struct leases *l, int64_t from, const struct tokenset *tokens,
	uint64_t *name, struct err *e);
/* They are given out: those that are in no lease are a new one of that name now. It cannot fail
 * after leases_may_allocate(). Returns the latest lease that any of them is in, for the annotation.
 */
uint64_t leases_allocate(
	struct leases *l, int64_t now_ms, const struct tokenset *tokens, uint64_t name);
/* Those of the tokens that leases_adopt() would change something of. */
struct tokenset leases_news(const struct leases *l, const struct tokenset *shown);
/* Whether these tokens can be leased: 0; -ENOENT: a NUMA node that the machine lacks; -ENOSPC:
 * LEASES_TOKENS_MAX. */
int leases_may_adopt(const struct leases *l, const struct tokenset *shown, struct err *e);
/* PodResources shows these tokens as given out: those that are in no lease (a journal was lost) are
 * leased now, be they beyond what their node has, but without a name; an annotation may name any
 * lease for them. 0, or as leases_may_adopt(). */
int leases_adopt(struct leases *l, int64_t now_ms, const struct tokenset *shown, struct err *e);
/* Whether the container may have what the annotation says; it asks for nr_cpus. 0 with *c; -EINVAL:
 * that is no annotation of ours; -ENOENT: that is not leased; -ERANGE: it is for another number of
 * CPUs; -EBUSY: another container runs on a token of it. Who runs on them already is not asked for
 * the name once more. */
#define LEASE_ANY_NUMBER UINT64_MAX /* for nr_cpus: it was looked at before */
int leases_examine(const struct leases *l, const char *annotation, const struct lease_user *user,
	uint64_t nr_cpus, struct lease_claim *c, struct err *e);
/* Which user of these leased tokens is known, by the containers that came for them before and have
 * ended: 1: all of them wait for the user's pod; 0: some for nobody that is known; -EBUSY with
 * text: one waits for another pod. */
int leases_wait_for(const struct leases *l, const struct tokenset *tokens,
	const struct lease_user *user, struct err *e);
/* The tokens that the annotation names, whether they are leased or not. 0 or -EINVAL, -ENOENT. */
int lease_annotation_tokens(
	const char *annotation, const struct node_ids *ids, struct tokenset *out, struct err *e);
/* The container has it now. It cannot fail after leases_examine() of the same user. */
void leases_claim(struct leases *l, const struct lease_user *user, const struct lease_claim *c);
/* The container has ended. False: it had none. */
bool leases_release(struct leases *l, int64_t now_ms, const char *container_id);
/* The pod has no sandbox any more, nor containers. Unless the kubelet makes it a new one they come
 * to an end: what it had waits for leases_reclaim(). */
void leases_pod_gone(struct leases *l, int64_t now_ms, const char *pod_uid);
/* What can be given up: tokens of no pod that is known, which PodResources does not show, and
 * either has shown before, or they were given out, or their pod went, longer than grace_ms ago.
 * They may be an init container's, which it never shows and whose image is still on its way: the
 * grace must be as long as that may take. To wait costs little: the kubelet, which knows that they
 * are free, may give them out again all the same. */
struct tokenset leases_stale(
	const struct leases *l, int64_t now_ms, int64_t grace_ms, const struct tokenset *shown);
/* Give up those of the tokens on which nobody runs. */
void leases_give_up(struct leases *l, const struct tokenset *tokens);

/* Whether no token is leased. */
bool leases_empty(const struct leases *l);
/* On how many tokens the container runs, and how many containers run on any. */
unsigned leases_count_of(const struct leases *l, const char *container_id);
size_t leases_nr_running(const struct leases *l);
/* Whether any token is kept for the pod, or one of its containers runs on it. */
bool leases_has_pod(const struct leases *l, const char *pod_uid);
/* The uid of a pod that tokens are kept for and none of whose containers runs on any; *at is 0 for
 * the first one and is moved on. A pod may come more than once. NULL: there are no more. Borrowed
 * until the next change. */
const char *leases_next_idle_pod(const struct leases *l, size_t *at);
/* The leased tokens, and those on which a container runs. */
void leases_tokens(const struct leases *l, struct tokenset *leased, struct tokenset *claimed);
/* The latest lease that any of the tokens is in, or 0. */
uint64_t leases_latest(const struct leases *l, const struct tokenset *tokens);
/* The lease that comes next in order of lowest tokens, each split into parts that are alike; *at is
 * 0 for the first one and is moved on. False: there are no more. */
bool leases_next(const struct leases *l, size_t *at, struct lease *out);
/* Enter a part as leases_next() gave it. 0; -EEXIST: a token of it is leased already; -EINVAL: it
 * cannot be one; -ENOENT, -ENOSPC as above. */
int leases_enter(struct leases *l, const struct lease *part, struct err *e);

/* Walk every invariant. 0, or -EINVAL with the first that is broken. */
int leases_check(const struct leases *l, struct err *e);

#endif
