#ifndef NUMAFIT_DIAGNOSIS_H
#define NUMAFIT_DIAGNOSIS_H

#include <numafit/admit.h>
#include <numafit/text.h>

/* Why a container, or a pod, was refused, and what would have it admitted. A refusal is of exactly
 * one class, with the amounts that show it; a remedy is a change after which the very decision that
 * refused it admits it: it was decided again with that change. Nothing here changes an answer. */

/* The first of them that holds, in this order. */
enum refusal_class {
	REFUSAL_DAEMON, /* numafit itself: the record could not be kept, or the decision needs more
			   working memory than there is */
	REFUSAL_TOKENS, /* its tokens of numafit.io/cpu are not its own, or not as many as its CPUs
			 */
	REFUSAL_CLAIM,  /* a ResourceClaim that it comes with is not there, or not for it */
	REFUSAL_WISH,   /* it has a wish that cannot be read */
	REFUSAL_SHARES, /* what the pod has as one cannot be shared out among its containers */
	REFUSAL_ABSENT, /* more than this machine has for containers */
	REFUSAL_STAYS,  /* it runs, and stays where it is: there is not as much for it there */
	REFUSAL_POOL,   /* the shared pool would be left with less than sharedPoolMinimum */
	REFUSAL_POLICY, /* policy and options would not admit it even if nothing else ran here */
	REFUSAL_TAKEN,  /* this machine has as much, but less is free on all NUMA nodes together */
	REFUSAL_HINT,   /* without its scheduler's hint it would be admitted */
	REFUSAL_CUT,    /* a search for NUMA nodes was cut short by mergeVisitBudget */
	REFUSAL_POD,    /* each of its containers would be admitted alone, not all of them */
	REFUSAL_NOT_TOGETHER, /* as much is free, but not together on NUMA nodes that the policy
				 allows */
	NR_REFUSAL_CLASSES
};
/* "does-not-exist", "not-free", "not-together", "policy", ...: for programs. */
extern const char *const refusal_class_words[NR_REFUSAL_CLASSES];
/* "it asks for more than this machine has for containers", ...: for people. */
extern const char *const refusal_class_texts[NR_REFUSAL_CLASSES];

/* One resource that is asked for: whole CPUs of one's own, or bytes of one kind of memory. */
struct diagnosis_amount {
	bool cpus;           /* else memory, */
	unsigned kind;       /* of this kind; one that the machine does not have has TOPO_KINDS, */
	uint64_t page_bytes; /* and huge pages of this size */
	uint64_t asked, exists, free;    /* on all NUMA nodes together */
	uint64_t node_exists, node_free; /* the most that one NUMA node has */
	unsigned nodes; /* fewest NUMA nodes that have so much if nothing runs; 0: all have not */
};

enum remedy_kind {
	REMEDY_ENDS,  /* these pods end */
	REMEDY_LESS,  /* less is asked for */
	REMEDY_CORES, /* each container asks for whole cores, the next number of CPUs or the last */
	REMEDY_ANEW,  /* the container is started anew, and not resized where it runs */
	REMEDY_TOKENS,  /* as many tokens are asked for as CPUs; or none */
	REMEDY_NO_HINT, /* it comes without its scheduler's hint, or that need not be followed */
	REMEDY_NODES_POLICY, /* it comes without the topology policy of its own */
	REMEDY_MINIMUM,      /* sharedPoolMinimum is less */
	REMEDY_BUDGET,       /* mergeVisitBudget is the most that there may be */
	REMEDY_SCOPE,        /* topologyManagerScope is container */
	REMEDY_POLICY,       /* topologyManagerPolicy is best-effort */
	NR_REMEDIES
};
/* "pods-end", "ask-for-less", "start-anew", ...: for programs. */
extern const char *const remedy_kind_words[NR_REMEDIES];
enum { REMEDY_PODS = 16 };

struct remedy {
	enum remedy_kind kind;
	/* Pods that end: how many, and of each of the first ones an entry, borrowed from the
	 * ledger, and what all its containers hold. REMEDY_LESS may have some, too. */
	unsigned nr_pods;
	struct remedy_pod {
		const struct holding *entry;
		unsigned cpus;
		struct nodeset nodes;
	} pod[REMEDY_PODS];
	/* What the container asks for then; or, of a pod of which only sums are known, the pod. */
	const char *container; /* borrowed; NULL: it is the only one */
	struct ask ask, asked; /* `asked` before */
	bool in_place;         /* REMEDY_LESS: resized so, the container stays where it runs */
	bool no_hint;          /* and it comes without its scheduler's hint */
	bool fewer_pods;       /* and fewer pods run here; which, is not known */
	struct nodeset nodes;  /* where it would be; empty: anywhere */
	uint64_t value;        /* tokens, or the setting's: a number, or an enum's */
};

/* NUMA nodes, and how much they have of each amount. */
struct diagnosis_place {
	struct nodeset nodes;
	uint64_t has[1 + TOPO_KINDS];
};
struct diagnosis_places {
	unsigned nr;
	bool has_most; /* of one place: no NUMA node has more of anything */
	struct diagnosis_place at[1 + TOPO_KINDS];
};

enum { DIAGNOSIS_REMEDIES = 2 };
struct diagnosis {
	enum refusal_class class;
	enum topology_policy policy;
	unsigned nr; /* at least one is asked for */
	struct diagnosis_amount of[1 + TOPO_KINDS];
	/* How many NUMA nodes the policy would have it on; 0: any number, or no number will do. */
	unsigned allowed;
	unsigned kept; /* CPUs of those that are free which stay shared (sharedPoolMinimum) */
	bool resize;   /* of a container that runs: what it has counts as free here */
	/* What is free: on one place, the NUMA nodes (as many as are allowed) that come nearest to
	 * having all of it; or where no NUMA node has most of each, on those that have most of one.
	 * Of a container that is resized, for each amount, on the NUMA nodes that it has it of. Of
	 * one that comes with tokens, on the NUMA nodes of these. */
	struct diagnosis_places free;
	struct diagnosis_places empty; /* the same if nothing ran here */
	bool has_tokens;
	unsigned nr_containers; /* of the pod; 1 for a container */
	unsigned nr_remedies;
	struct remedy remedy[DIAGNOSIS_REMEDIES];
	bool remedies_left_out; /* the budget of the whole answer ended the search for remedies */
};

/* Why that decision, which *q got, refuses it. Decides a few times more; the searches spend *b,
 * working memory and *out's texts come from *a, which must be fixed and have ADMIT_ARENA_BYTES. For
 * a container that is resized, entry and request have one id, and deciding again means to place it
 * anew. */
void diagnose(const struct admit_question *q, const struct decision *refused, struct budget *b,
	struct arena *a, struct diagnosis *out);

/* Look for remedies: within the settings where there is one, else another setting, the policy last.
 * At most so many decisions, which together spend *b. One that was found holds; that none was found
 * means that there is none only where neither ended first. */
void diagnosis_find_remedies(const struct admit_question *q, unsigned decisions, struct budget *b,
	struct arena *a, struct diagnosis *out);

/* The same with memory and budgets of their own: the class and its numbers alone, for the answer to
 * a runtime; or with remedies: quickly, for a daemon, which has others to answer (some ten
 * milliseconds), or thoroughly, for a person who waits. The strings in *out are borrowed from *q.
 * An answer about several refusals hands its own budget to each of them; NULL: the answer is about
 * this refusal alone. */
void diagnose_in_numbers(
	const struct admit_question *q, const struct decision *refused, struct diagnosis *out);
enum remedy_effort { REMEDIES_QUICKLY, REMEDIES_THOROUGHLY };
struct remedies_budget;
void diagnose_with_remedies(const struct admit_question *q, const struct decision *refused,
	enum remedy_effort effort, struct remedies_budget *answer, struct diagnosis *out);
enum { DIAGNOSIS_STEPS = 1 << 20 }; /* of the former two */

/* What the refusals of one answer may spend together on remedies, in steps (budget.h), however many
 * refusals there are. The refusals come in the journal's order, and people ask for the latest:
 * most of the budget is kept for these, and the refusals before them share the rest, first come
 * first served. */
struct remedies_budget {
	uint64_t given, left; /* steps */
	size_t to_come;       /* refusals of the answer that have not spent anything yet */
};
struct remedies_budget remedies_budget_of(enum remedy_effort effort, size_t nr_refusals);
/* Steps that the refusal which is explained now may spend; 0: none. */
uint64_t remedies_budget_may(const struct remedies_budget *b);
void remedies_budget_spend(struct remedies_budget *b, uint64_t steps);

/* "12 CPUs, 40Gi of memory": an ask as people read it. */
void diagnosis_add_ask(struct text *t, const struct ask *ask);
/* What shows the class, in numbers: "NUMA node 2 has most free: 10 CPUs, 96Gi of memory; policy
 * restricted allows 1 NUMA node". */
void diagnosis_add_numbers(struct text *t, const struct diagnosis *d,
	const struct decision *refused, const struct admit_question *q);
/* The setting that the remedy changes, with its value, for which there is room in the buffer.
 * False: it changes none. */
enum { REMEDY_VALUE_MAX = 24 };
bool remedy_setting(const struct remedy *r, struct key_value *out, char value[REMEDY_VALUE_MAX]);
/* One remedy: "when trainer-3 (8 CPUs, NUMA node 2) ends", "with 10 CPUs". Pods that `names` keeps
 * from the author of the refused pod are counted: "when 2 pods of other namespaces (12 CPUs, NUMA
 * nodes 2-3) end". */
void diagnosis_add_remedy(struct text *t, const struct remedy *r, const struct admit_question *q,
	enum pod_names names);
/* What would help, as a sentence without its full stop: "Fits when trainer-3 ends, or with 10
 * CPUs"; or that nothing was found. */
void diagnosis_add_remedies(struct text *t, const struct diagnosis *d,
	const struct admit_question *q, enum pod_names names);

/* The refusal in one line, into buf: "numafit: cannot place container triton (12 CPUs, 40Gi of
 * memory): NUMA node 2 has most free: 10 CPUs, 96Gi of memory; policy restricted allows 1 NUMA
 * node. (TopologyAffinityError)"; with remedies what would help, and how to ask for more. The pod's
 * author sees the line: pods in it are named as the setting events.podNames says. What does
 * not fit into cap bytes is cut between words; the reason in brackets always stands. */
const char *diagnosis_line(const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q, bool with_remedies, char *buf, size_t cap);
enum { DIAGNOSIS_LINE_MAX = 1024 };

#endif
