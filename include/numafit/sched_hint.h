#ifndef NUMAFIT_SCHED_HINT_H
#define NUMAFIT_SCHED_HINT_H

#include <numafit/policy.h>
#include <numafit/text.h>
#include <numafit/topo.h>

/* What a scheduler has left on a pod about NUMA nodes, and what becomes of it.
 *
 * A hint is a claim that anybody who may write annotations can make. It decides nothing but which
 * one of several equally good answers is taken, so that it can do no harm:
 *   - it is read (codec/hints.h) and checked against what needs no ledger (sched_hint_check());
 *   - admission merges as if there were none, and then asks sched_hint_judge() whether the answer
 *     may be the hinted set instead: one that satisfies every resource, that the policy admits, and
 *     that is no worse: as preferred, as narrow and, with prefer-closest-numa-nodes, as close.
 *     (numa-allocation-strategy, which would otherwise choose among those, comes after the hint.)
 * So amounts never change, nor does anything of another container. Its own amounts are what the
 * scheduler reckoned with; they are reported, and no answer depends on them.
 *
 * A container that is started again keeps what its predecessor had: its hint has been judged once,
 * and will have expired. */

/* Whose form it came in, in the default order of precedence. */
enum sched_hint_format {
	SCHED_HINT_NUMAFIT,
	SCHED_HINT_KOORDINATOR,
	SCHED_HINT_KATALYST,
	SCHED_HINT_VOLCANO,
	SCHED_HINT_CRANE,
	SCHED_HINT_GODEL,
	NR_SCHED_HINT_FORMATS
};
const char *sched_hint_format_name(enum sched_hint_format f); /* "numafit", "koordinator", ... */
int sched_hint_format_from_name(const char *name);            /* or -1 */
/* schedulerHint.order, as "numafit,godel": names, each once at most, into format[]. Returns how
 * many, or -EINVAL: the text says which word is wrong. */
int sched_hint_order_parse(
	const char *order, enum sched_hint_format format[NR_SCHED_HINT_FORMATS], struct err *e);

const char *sched_hint_mode_name(enum sched_hint_mode m); /* "off", "prefer", "require" */
int sched_hint_mode_from_name(const char *name);          /* or -1 */
/* What holds when the node is set so and the hint asks for that: never looser than the node, and
 * off stays off. */
enum sched_hint_mode sched_hint_mode_of(enum sched_hint_mode node, enum sched_hint_mode asked);
/* The same for topology policies: a pod may ask for a stricter one than its node's. */
enum topology_policy sched_hint_policy_of(enum topology_policy node, enum topology_policy asked);

/* How a container's CPUs are to lie (Koordinator's resource-spec). */
enum sched_hint_cpus {
	SCHED_HINT_CPUS_ANY,
	SCHED_HINT_CPUS_FULL_CORES,
	SCHED_HINT_CPUS_SPREAD,
	SCHED_HINT_CPUS_BURST
};
/* What they are not to be shared with. */
enum sched_hint_apart { SCHED_HINT_APART_NONE, SCHED_HINT_APART_CORE, SCHED_HINT_APART_NODE };

struct sched_hint_amount {
	unsigned node; /* dense index */
	const char *resource;
	uint64_t amount; /* of "cpu" thousandths, of others units (bytes, pieces) */
};

struct sched_hint_container {
	const char *name;     /* "*": any container without an entry of its own, or the whole pod */
	struct nodeset nodes; /* those of the machine; empty only with has_unknown or
				 cpus */
	bool has_unknown;     /* it names a NUMA node that the machine lacks, */
	unsigned unknown_id;  /* the first one is this */
	unsigned distance_x100; /* average distance times 100, as the scheduler saw it; 0: not said
				 */
	size_t nr_amounts;
	const struct sched_hint_amount *amount; /* by node */
};

/* A plain value; strings and lists are borrowed from whoever read it. Zeros: says nothing. */
struct sched_hint {
	enum sched_hint_format format;
	unsigned version;        /* of our own form */
	const char *node, *uid;  /* whom it was written for; NULL: not said */
	uint64_t generation;     /* of the node's state that it is based on; 0: not said */
	const char *fingerprint; /* of the pods that it is based on; NULL: not said */
	int64_t at_ms;           /* when it was made, since the epoch; 0: not said */
	unsigned ttl_s;          /* and for how long it is good */
	enum sched_hint_mode mode;
	enum topology_scope scope;
	size_t nr_containers;
	const struct sched_hint_container *container;
	const struct cpuset *cpus; /* the very CPUs (Koordinator), or NULL: a set of CPUs is never
				      followed as such, only the NUMA nodes that it lies on */
	bool has_policy;           /* a topology policy for this pod */
	enum topology_policy policy;
	enum sched_hint_cpus cpus_required, cpus_preferred;
	enum sched_hint_apart apart;
};

enum { SCHED_HINT_VERSION = 1, SCHED_HINT_TTL_MAX_S = 24 * 60 * 60 };

/* The entry for that container, or NULL. */
const struct sched_hint_container *sched_hint_for(const struct sched_hint *h, const char *name);
/* The entry for a pod that is placed as a whole: "*", or any when all name the same NUMA nodes.
 * NULL: they go apart, which no policy gives to a pod that is placed as a whole
 * (SCHED_HINT_REJECTED_POLICY), or there is none. */
const struct sched_hint_container *sched_hint_for_pod(const struct sched_hint *h);

/* What became of a hint. These words are used everywhere: "accepted", "rejected:not-fit", ... */
enum sched_hint_verdict {
	SCHED_HINT_NONE,           /* there was none, or nothing that it could be about */
	SCHED_HINT_ACCEPTED,       /* the NUMA nodes asked for are given */
	SCHED_HINT_ACCEPTED_STALE, /* so they are, though the node has changed since */
	SCHED_HINT_REPAIRED,       /* others are given: as few or fewer, and no farther apart */
	SCHED_HINT_REJECTED_FORMAT,
	SCHED_HINT_REJECTED_VERSION,
	SCHED_HINT_REJECTED_UID,
	SCHED_HINT_REJECTED_NODE,
	SCHED_HINT_REJECTED_CLOCK,
	SCHED_HINT_REJECTED_EXPIRED,
	SCHED_HINT_REJECTED_NUMA,
	SCHED_HINT_REJECTED_NOT_FIT,
	SCHED_HINT_REJECTED_NOT_NARROWEST,
	SCHED_HINT_REJECTED_FARTHER,
	SCHED_HINT_REJECTED_POLICY,
	SCHED_HINT_REJECTED_FOREIGN_CPUSET,
	NR_SCHED_HINT_VERDICTS
};
const char *sched_hint_verdict_name(enum sched_hint_verdict v);
int sched_hint_verdict_from_name(const char *name); /* or -1 */
static inline bool sched_hint_is_rejection(enum sched_hint_verdict v)
{
	return v >= SCHED_HINT_REJECTED_FORMAT;
}

/* Where and when a hint is looked at. */
struct sched_hint_facts {
	const char *node, *uid; /* this node's name and the pod's uid */
	int64_t now_ms;
	int64_t skew_ms;         /* how far ahead of ours its writer's clock may be */
	uint64_t generation;     /* of the node's state now; 0: not known */
	const char *fingerprint; /* of its pods now; NULL: not known */
	const struct topo *t;
	const struct cpuset *foreign; /* CPUs that the pod cannot have: reserved ones, those that
					 others hold; NULL: none */
};

/* All that can be said without the ledger, in this order: version, uid, node, clock, expired, numa,
 * foreign-cpuset. SCHED_HINT_NONE for a hint that names no NUMA nodes; SCHED_HINT_ACCEPTED or
 * SCHED_HINT_ACCEPTED_STALE: so far, sched_hint_judge() has the last word; else a rejection, with
 * what is wrong in *e. */
enum sched_hint_verdict sched_hint_check(
	const struct sched_hint *h, const struct sched_hint_facts *facts, struct err *e);

/* A hint for one container on its way into the admission. */
struct sched_hint_ask {
	enum sched_hint_verdict so_far; /* as in struct sched_hint_terms */
	enum sched_hint_mode mode;
	bool repair;
	struct nodeset asked;
};

/* What came of it, as a decision keeps it. Zeros: there was none. */
struct sched_hint_result {
	bool looked_at;
	enum sched_hint_verdict verdict, cause;
	enum sched_hint_mode mode;
	struct nodeset asked, given;
};

/* How the message of a refusal for a hint's sake begins. */
#define SCHED_HINT_REFUSES "the scheduler's hint cannot be followed"

/* How a hint is to be judged. */
struct sched_hint_terms {
	enum sched_hint_verdict so_far; /* what reading and sched_hint_check() gave; a rejection
					   stays one */
	enum sched_hint_mode mode;      /* in force (sched_hint_mode_of()) */
	bool repair;                    /* false: what would be repaired is rejected; so it is with
					   SCHED_HINT_REQUIRE */
	struct nodeset fixed; /* where CPUs of the container lie by somebody else's decision (its
				 tokens'): what it is given must contain them */
	enum sched_hint_verdict overruled; /* when it is not to change the answer: the rejection of
					      one that would; else SCHED_HINT_NONE */
};

enum { SCHED_HINT_RESOURCE_MAX = 48 };
struct sched_hint_ruling {
	enum sched_hint_verdict verdict;
	enum sched_hint_verdict cause; /* why the NUMA nodes asked for are not given: a rejection;
					  SCHED_HINT_NONE: they are */
	struct nodeset asked, given; /* given is empty when the container is refused, all nodes when
					it has no affinity */
	char lacking[SCHED_HINT_RESOURCE_MAX]; /* not-fit: the first resource that there is not
					      enough of; else "" */
	bool refuse;                           /* SCHED_HINT_REQUIRE, and it cannot be followed */
	struct policy_answer answer; /* to go on with: the hinted one or the one without a hint */
};

/* A merge, and what came of it without a hint (policy_merge_families()). */
struct sched_hint_merge {
	enum topology_policy policy;
	const struct hint_space *space;
	const struct family *family;
	size_t nr;
	struct policy_answer without;
};

/* Judge a hint for `asked`. Takes no searching: each family is asked about one set. Where the
 * search was complete, a hint is accepted exactly when every family has that set, and it equals the
 * answer without it, or is a result that the kubelet's order holds for equal but for its number. */
void sched_hint_judge(const struct sched_hint_merge *m, struct nodeset asked,
	const struct sched_hint_terms *terms, struct sched_hint_ruling *out);

/* The ruling in a sentence: "asked for NUMA nodes 1, given 0: there is not enough of memory on
 * them". */
void sched_hint_explain(
	const struct sched_hint_ruling *r, const struct node_ids *ids, struct text *t);

#endif
