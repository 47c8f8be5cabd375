#ifndef NUMAFIT_NODE_DEFRAG_STATE_H
#define NUMAFIT_NODE_DEFRAG_STATE_H

#include <numafit/defrag.h>
#include <numafit/ledger.h>

/* What the planner's files share: a copy of the node's state, on which moves are tried. */

/* One that may move. */
struct defrag_mover {
	size_t entry; /* its place in both ledgers */
	const struct holding *from;
	struct request request; /* the same, with the NUMA node to try as advice */
	struct advice_ask advice;
	struct nodeset nodes; /* that it is on */
	struct defrag_cost cost;
	unsigned cpus;   /* that it needs */
	uint64_t memory; /* that it has booked, of ordinary pages */
	bool gains;      /* it is not preferred where it is, and no pod is asked about */
	unsigned at;     /* NUMA node that it was moved to, and 1 more; 0: where it was */
};

/* CPUs and ordinary memory of one NUMA node. */
struct defrag_room {
	unsigned cpus;
	uint64_t memory;
};

struct seen_state;
enum { GUESTS_MAX = 8 };

struct defrag_search {
	const struct defrag_question *q;
	struct ledger *ledger;      /* the copy's, which moves are tried on */
	struct defrag_mover *mover; /* the cheapest first */
	size_t nr;
	unsigned nr_gaining; /* of these, that would gain */
	bool *gone;
	unsigned char *where;
	void *work; /* of one decision */
	struct seen_state *seen;
	/* What each of the pod's containers needs of one NUMA node, the largest first. 0: there is
	 * no pod, or it is one of another kind. */
	struct defrag_room guest[GUESTS_MAX];
	unsigned nr_guests;
	unsigned moves;  /* at most, by now */
	uint64_t trials; /* likewise */
	/* The state: */
	unsigned gained; /* movers that have become preferred; the pod's admission is one */
	unsigned free[NODES_MAX];                /* CPUs of each NUMA node */
	struct defrag_room set_aside[NODES_MAX]; /* of what is free: for containers of the pod */
	struct defrag_cost cost;
	struct defrag_move path[DEFRAG_MOVES_MAX];
	/* What the best so far has gained, and it. */
	unsigned best;
	struct defrag_plan *out;
};

/* defrag.c, to the last but one. -1, 0 or 1. */
int defrag_compare(const struct defrag_cost *a, const struct defrag_cost *b);
struct defrag_cost defrag_sum(const struct defrag_cost *a, const struct defrag_cost *b);
/* CPUs and memory of that NUMA node that are free once it has left it. */
unsigned defrag_cpus_on(const struct defrag_search *p, const struct defrag_mover *m, unsigned node);
uint64_t defrag_memory_on(const struct defrag_mover *m, unsigned node);
/* Whether that NUMA node may have so much for one container, when so much has left it. Memory that
 * is booked on several NUMA nodes together is of each of them. */
bool defrag_has_room(const struct defrag_search *p, unsigned node, const struct defrag_room *need,
	const struct defrag_room *gone);
/* The same for the mover, which may be there in part. */
bool defrag_may_go(const struct defrag_search *p, const struct defrag_mover *m, unsigned node);
/* It goes to that NUMA node, as move number `depth` of the path. False: there is no room for it, or
 * no trial is left (out->cut); nothing has changed. */
bool defrag_go(struct defrag_search *p, struct defrag_mover *m, unsigned node, unsigned depth);
/* It is where it was again; *pool as it was then. */
void defrag_back(struct defrag_search *p, struct defrag_mover *m, const struct cpuset *pool);
/* Keep the path's first `depth` moves if the state that they have led to is the best so far. */
void defrag_look(struct defrag_search *p, unsigned depth);

/* defrag_direct.c: plans in which nothing is moved out of the way but what lies on the NUMA node
 * that somebody is to have. True: there is no better plan than the best so far, if there is one. */
bool defrag_search_direct(struct defrag_search *p);

#endif
