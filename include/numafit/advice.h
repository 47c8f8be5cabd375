#ifndef NUMAFIT_ADVICE_H
#define NUMAFIT_ADVICE_H

#include <numafit/policy.h>
#include <numafit/text.h>
#include <numafit/topo.h>

/* What a scheduler has left on a pod about NUMA nodes, and what becomes of it.
 *
 * Advice is a claim that anybody who may write annotations can make. It decides nothing but which
 * one of several equally good answers is taken, so that it can do no harm:
 *   - it is read (codec/advice.h) and checked against what needs no ledger (advice_check());
 *   - admission merges as if there were none, and then asks advice_judge() whether the answer
 *     may be the advised set instead: one that satisfies every resource, that the policy admits,
 *     and that is no worse: as preferred, as narrow and, with prefer-closest-numa-nodes, as
 *     close. (numa-allocation-strategy, which would otherwise choose among those, comes after
 *     the advice.)
 * So amounts never change, nor does anything of another container. Its own amounts are what the
 * scheduler counted on; they are reported, and no answer depends on them.
 *
 * A container that is started again keeps what its predecessor had: its advice has been judged
 * once, and will have expired. */

/* The scheduler that has this form, in the default order of precedence. */
enum advice_format {
	ADVICE_NUMAFIT,
	ADVICE_KOORDINATOR,
	ADVICE_KATALYST,
	ADVICE_VOLCANO,
	ADVICE_CRANE,
	ADVICE_GODEL,
	NR_ADVICE_FORMATS
};
extern const char *const advice_format_words[NR_ADVICE_FORMATS]; /* "numafit", "koordinator", ... */
/* schedulerHint.order, as "numafit,godel": names, each once at most, into format[]. Returns how
 * many, or -EINVAL: the text says which word is wrong. */
int advice_order_parse(
	const char *order, enum advice_format format[NR_ADVICE_FORMATS], struct err *e);

extern const char *const advice_mode_words[NR_ADVICE_MODES]; /* "off", "prefer", "require" */
/* What holds when the node is set so and the advice asks for that: never looser than the node, and
 * off stays off. */
enum advice_mode advice_mode_of(enum advice_mode node, enum advice_mode asked);
/* The same for topology policies: a pod may ask for a stricter one than its node's. */
enum topology_policy advice_policy_of(enum topology_policy node, enum topology_policy asked);

/* How a container's CPUs are to lie (Koordinator's resource-spec). */
enum advice_cpus { ADVICE_CPUS_ANY, ADVICE_CPUS_FULL_CORES, ADVICE_CPUS_SPREAD, ADVICE_CPUS_BURST };
/* What they are not to be shared with. */
enum advice_apart { ADVICE_APART_NONE, ADVICE_APART_CORE, ADVICE_APART_NODE };

struct advice_amount {
	unsigned node; /* dense index */
	const char *resource;
	uint64_t amount; /* of "cpu" thousandths, of others units (bytes, pieces) */
};

struct advice_container {
	const char *name;     /* "*": any container without an entry of its own, or the whole pod */
	struct nodeset nodes; /* those of the machine; empty only with has_unknown or cpus */
	bool has_unknown;     /* it names a NUMA node that the machine lacks, */
	unsigned unknown_id;  /* the first one is this */
	unsigned distance_x100; /* average one times 100, as the scheduler saw it; 0: not said */
	size_t nr_amounts;
	const struct advice_amount *amount; /* by node */
};

/* A plain value; strings and lists are borrowed from its reader. Zeros: says nothing. */
struct advice {
	enum advice_format format;
	unsigned version;        /* of our own form */
	const char *node, *uid;  /* that it was written for; NULL: not said */
	uint64_t generation;     /* of the node's state that it is based on; 0: not said */
	const char *fingerprint; /* of the pods that it is based on; NULL: not said */
	int64_t at_ms;           /* when it was made, since the epoch; 0: not said */
	unsigned ttl_s;          /* and for how long it is good */
	enum advice_mode mode;
	enum topology_scope scope;
	size_t nr_containers;
	const struct advice_container *container;
	const struct cpuset *cpus; /* the very CPUs (Koordinator), or NULL: a set of CPUs is never
				      followed as such, only the NUMA nodes that it lies on */
	bool has_policy;           /* a topology policy for this pod */
	enum topology_policy policy;
	enum advice_cpus cpus_required, cpus_preferred;
	enum advice_apart apart;
};

enum { ADVICE_VERSION = 1, ADVICE_TTL_MAX_S = 24 * 60 * 60 };

/* The entry for that container, or NULL. */
const struct advice_container *advice_for(const struct advice *h, const char *name);
/* The entry for a pod that is placed as a whole: "*", or any when all name the same NUMA nodes.
 * NULL: they go apart, which no policy gives to a pod that is placed as a whole
 * (ADVICE_REJECTED_POLICY), or there is none. */
const struct advice_container *advice_for_pod(const struct advice *h);

/* What became of advice. These words are used everywhere: "accepted", "rejected:not-fit", ... */
enum advice_verdict {
	ADVICE_NONE,           /* there was none, or nothing that it could be about */
	ADVICE_ACCEPTED,       /* the NUMA nodes asked for are given */
	ADVICE_ACCEPTED_STALE, /* so they are, though the node has changed since */
	ADVICE_REPAIRED,       /* others are given: as few or fewer, and no farther apart */
	ADVICE_REPAIRED_CPUS,  /* the NUMA nodes are given, and other CPUs of them than it names */
	ADVICE_REJECTED_FORMAT,
	ADVICE_REJECTED_VERSION,
	ADVICE_REJECTED_UID,
	ADVICE_REJECTED_NODE,
	ADVICE_REJECTED_CLOCK,
	ADVICE_REJECTED_EXPIRED,
	ADVICE_REJECTED_NUMA,
	ADVICE_REJECTED_NOT_FIT,
	ADVICE_REJECTED_NOT_NARROWEST,
	ADVICE_REJECTED_FARTHER,
	ADVICE_REJECTED_POLICY,
	ADVICE_REJECTED_FOREIGN_CPUSET,
	NR_ADVICE_VERDICTS
};
extern const char *const advice_verdict_words[NR_ADVICE_VERDICTS];
static inline bool advice_is_rejection(enum advice_verdict v)
{
	return v >= ADVICE_REJECTED_FORMAT;
}

/* Where and when advice is looked at. */
struct advice_facts {
	bool any_origin; /* for which pod and node it was written, and when, is not looked at */
	const char *node, *uid; /* this node's name and the pod's uid */
	int64_t now_ms;
	int64_t skew_ms;         /* how far ahead of ours its writer's clock may be */
	uint64_t generation;     /* of the node's state now; 0: not known */
	const char *fingerprint; /* of its pods now; NULL: not known */
	const struct topo *t;
	const struct cpuset *foreign; /* CPUs that the pod cannot have: reserved CPUs, and CPUs
					 of other containers; NULL: none */
};

/* All that can be said without the ledger, in this order: version, uid, node, clock, expired, numa,
 * foreign-cpuset (facts->any_origin leaves out the second to the fifth). ADVICE_NONE for advice
 * that names no NUMA nodes; ADVICE_ACCEPTED or ADVICE_ACCEPTED_STALE: so far, advice_judge() has
 * the last word; else a rejection, with what is wrong in *e. */
enum advice_verdict advice_check(
	const struct advice *h, const struct advice_facts *facts, struct err *e);

/* Advice for one container on its way into the admission. */
struct advice_ask {
	enum advice_verdict so_far; /* as in struct advice_terms */
	enum advice_mode mode;
	bool repair;
	struct nodeset asked;
	struct cpuset cpus; /* that it names, for all containers of the pod; empty: none */
};

/* What came of it, as a decision keeps it. Zeros: there was none. */
struct advice_result {
	bool looked_at;
	enum advice_verdict verdict, cause;
	enum advice_mode mode;
	struct nodeset asked, given;
};

/* How the message of a refusal for advice's sake begins. */
#define ADVICE_REFUSES "the scheduler's hint cannot be followed"

/* How advice is to be judged. */
struct advice_terms {
	enum advice_verdict so_far;    /* what reading and advice_check() gave; a rejection
					      stays one */
	enum advice_mode mode;         /* in force (advice_mode_of()) */
	bool repair;                   /* false: what would be repaired is rejected; so it is with
					  ADVICE_REQUIRE */
	struct nodeset fixed;          /* where CPUs of the container lie by another's decision (its
					  tokens'): what it is given must contain them */
	enum advice_verdict overruled; /* when it is not to change the answer: the rejection of
					      one that would; else ADVICE_NONE */
};

enum { ADVICE_RESOURCE_MAX = 48 };
struct advice_ruling {
	enum advice_verdict verdict;
	enum advice_verdict cause;   /* why the NUMA nodes asked for are not given: a rejection;
					    ADVICE_NONE: they are */
	struct nodeset asked, given; /* given is empty when the container is refused, all nodes when
					it has no affinity */
	char lacking[ADVICE_RESOURCE_MAX]; /* not-fit: the first resource that there is not
					      enough of; else "" */
	bool refuse;                       /* ADVICE_REQUIRE, and it cannot be followed */
	struct policy_answer answer; /* to go on with: the advised one or the one without advice */
};

/* A merge, and what came of it without advice (policy_merge_families()). */
struct advice_merge {
	enum topology_policy policy;
	const struct hint_space *space;
	const struct family *family;
	size_t nr;
	struct policy_answer without;
};

/* Judge advice for `asked`. Takes no searching: each family is asked about one set. Where the
 * search was complete, advice is accepted exactly when every family has that set, and it equals the
 * answer without it, or is a result that the kubelet's order holds for equal but for its number. */
void advice_judge(const struct advice_merge *m, struct nodeset asked,
	const struct advice_terms *terms, struct advice_ruling *out);

/* The ruling in a sentence: "asked for NUMA nodes 1, given 0: there is not enough of memory on
 * them". */
void advice_explain(const struct advice_ruling *r, const struct node_ids *ids, struct text *t);

#endif
