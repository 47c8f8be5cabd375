#ifndef NUMAFIT_DECISION_H
#define NUMAFIT_DECISION_H

#include <numafit/cpuset.h>
#include <numafit/memory.h>
#include <numafit/nodeset.h>
#include <numafit/pod.h>
#include <numafit/reasons.h>
#include <numafit/advice.h>
#include <numafit/settings.h>

/* The whole answer for one container, with the reasons as data. A plain value. */

enum decision_source {
	SOURCE_DECIDED,   /* by us, at create */
	SOURCE_ADOPTED,   /* it ran already: its cpuset was taken over */
	SOURCE_INHERITED, /* a restarted container keeps what its predecessor had */
	SOURCE_HELD, /* decided with its pod, and held for it since the pod's sandbox started */
	NR_DECISION_SOURCES
};
extern const char *const decision_source_words[NR_DECISION_SOURCES]; /* "decided", "adopted", ... */

/* Who has placed the container of an entry. Only what numafitd has placed is in force because the
 * entry says so. */
enum placed_by {
	PLACED_BY_NUMAFIT, /* the entry is in force, or numafitd puts it in force */
	PLACED_IN_SHADOW,  /* a mode that puts nothing in force made the entry (shadow, off): what
			      runs is the kubelet's, and not the entry's */
	PLACED_AS_FOUND,   /* another program, or numafitd before its journal was lost: the entry is
			      the cpuset that the container was found with */
	PLACED_LEFT,       /* the container runs on as it was found, and gets no update */
	NR_PLACED_BY
};
extern const char *const placed_by_words[NR_PLACED_BY]; /* "numafit", "shadow", ... */

enum { DECISION_MESSAGE_MAX = 256 };

/* What a refusal came of. Not in the journal: deciding again says it. */
enum refusal_cause {
	REFUSED_BY_DAEMON, /* nothing that admit() looks at: the decision could not be recorded */
	REFUSED_FOR_ROOM,  /* deciding it takes more working memory than there is */
	REFUSED_FOR_TOKENS,
	REFUSED_FOR_CLAIM,  /* a share that it comes with is not there, or not for it */
	REFUSED_FOR_WISH,   /* its pod's author has made one that cannot be read */
	REFUSED_FOR_SHARES, /* what a pod has as one cannot be shared out among its containers */
	REFUSED_ON_BOOKS,   /* what is asked for, what is free, and the rules */
	/* A container that runs keeps what it has: */
	REFUSED_BESIDE_CPUS,   /* the policy would not have more CPUs beside those */
	REFUSED_BESIDE_MEMORY, /* there is no more memory where its memory is */
	REFUSED_WHILE_MOVED,   /* it is on its way from there */
};

struct decision {
	bool admit;
	enum decision_source source;
	enum topology_policy policy;
	bool exclusive; /* cpus are the container's own; else it runs in the shared pool */
	/* What it holds for itself; else the shared pool as it was then. cpuset.cpus is that, but
	 * for wishes: ledger_cpus_of(). */
	struct cpuset cpus;
	struct nodeset spread; /* of the shared pool it has the CPUs of these NUMA nodes alone, as
				  long as there are any; empty: all */
	struct nodeset mems;   /* what cpuset.mems is to be */
	bool has_affinity;     /* nodes is what the merge chose; false: no NUMA affinity */
	struct nodeset nodes;
	bool preferred;
	unsigned nr_blocks;
	struct memory_block blocks[TOPO_KINDS];
	struct advice_result advice;
	enum placed_by placed_by;
	struct cpuset left_on; /* left, and confined to these CPUs by another program: no container
				  gets any of them for its own. Empty: it is not confined */
	/* Its CPUs, unless it runs in the shared pool, and its memory are of what its pod has as
	 * one, and booked there; containers without CPUs for themselves share what others of the
	 * pod leave, and are `exclusive` likewise. */
	bool within_pod;
	/* Its CPUs are those of the shares that it came with (request.shares), and booked there,
	 * with their memory. */
	bool within_claims;
	bool lost_cpus; /* CPUs of its own have gone offline since: as long as it has fewer than it
			   asks for, others are looked for when CPUs come or go */
	/* When its container was last moved to other NUMA nodes while it ran, in ms since the
	 * epoch; 0: never. */
	int64_t moved_ms;
	enum pod_apart apart; /* decided container by container, although its pod was known */
	bool cut_short; /* a search ran out of steps: it is the best that was found until then */
	uint64_t steps; /* it had so many where others of the same event had had theirs (budget.h);
			   0: those of a whole event */
	uint64_t lease; /* of the tokens that it has come for (leases.h); 0: none */
	enum refusal_cause cause;           /* when refused */
	const struct ask *in_the_way;       /* of a pod that is refused: this container of it, of
					       the question; NULL: all together */
	const char *reason;                 /* when refused: one of decision_reason() */
	char message[DECISION_MESSAGE_MAX]; /* when refused: the kubelet's message; else what was
					       assumed, or "" */
	/* What the merge had to choose from; NULL: nothing was merged, or it is not kept.
	 * Borrowed: it lives as long as the arena of the decision. */
	const struct reasons *reasons;
};

/* Whether its container is left as it runs: onAdopt is leave, or its namespace's section says so.
 */
static inline bool decision_is_left(const struct decision *d)
{
	return d->placed_by == PLACED_LEFT;
}

/* Whether its CPUs and memory are booked; else they are with what they are part of. */
static inline bool decision_is_booked(const struct decision *d)
{
	return !d->within_pod && !d->within_claims;
}

/* Bytes of memory of all kinds that it books. */
static inline uint64_t decision_booked_bytes(const struct decision *d)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < d->nr_blocks; i++)
		bytes += d->blocks[i].bytes;
	return bytes;
}

/* What was said of an earlier one does not hold for what becomes of *d now: the message,
 * left_on and lost_cpus are cleared, and numafitd places the container (but in shadow). */
void decision_begin_anew(struct decision *d);

/* The reasons for a refusal, as literals: the one equal to name, or NULL. */
const char *decision_reason(const char *name);
/* Refuse, with a reason of those and a message that is cut where it is too long. -EPERM, for the
 * caller to return. */
int decision_refuse(struct decision *d, enum refusal_cause cause, const char *reason,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The memory policy that the runtime is to set for the container: the one that it wishes for, else
 * that of setting memoryPolicyAcrossNodes; none where the runtime cannot set one, or where it is
 * left untouched. */
struct request;
enum wish_memory decision_memory_policy(
	const struct settings *s, const struct request *req, const struct decision *d);

/* The NUMA nodes that the container's own CPUs and memory really lie on (not what was aimed at). */
struct nodeset decision_nodes_used(const struct topo *t, const struct decision *d);

#endif
