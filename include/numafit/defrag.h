#ifndef NUMAFIT_DEFRAG_H
#define NUMAFIT_DEFRAG_H

#include <numafit/engine.h>
#include <numafit/pod.h>
#include <numafit/settings.h>

/* Room by moving: which running containers would have to be moved so that a pod is admitted as
 * preferred, that is, on as few NUMA nodes as on an empty machine; or, without a pod, so that as
 * many as can be of those with CPUs of their own that are not preferred are it again. It only
 * plans. */

/* What a plan costs; compared member by member, in this order. */
struct defrag_cost {
	uint64_t bytes; /* of memory that moves to other NUMA nodes */
	unsigned cpus;  /* of the containers that move */
	unsigned moves;
};

struct defrag_move {
	const struct holding *from; /* the entry of the ledger that was asked about */
	struct decision to;         /* what it would have instead */
	struct defrag_cost cost;
};

struct defrag_plan {
	bool found; /* without moves: the pod is admitted as preferred as it is */
	bool cut;   /* trials ran out: there may be a better plan, or one at all */
	unsigned nr;
	struct defrag_move
		move[DEFRAG_MOVES_MAX]; /* in this order, each into what is free by then */
	struct defrag_cost cost;
	/* Containers with CPUs of their own that are not preferred, before and after it. */
	unsigned not_preferred_before, not_preferred_after;
	uint64_t trials; /* that were made */
};

struct defrag_question {
	struct engine *engine; /* its state; it is copied, and not changed */
	const struct topo *topo;
	const struct settings *settings;
	const struct pod *pod; /* whose containers are known; NULL: those that are not preferred */
	unsigned moves;        /* at most so many, up to DEFRAG_MOVES_MAX */
	/* At most. One is whether a container may go to a NUMA node, in some state: some 10 us on a
	 * small machine, 30 us on one of 64 NUMA nodes; whether the pod is admitted counts as ten
	 * for each of its containers. */
	uint64_t trials;
	/* By id (strcmp()): these containers alone may move, and use so many bytes. Whoever answers
	 * anew with the same list and state answers the same. NULL: any may, as below. */
	const struct defrag_figure *figures;
	size_t nr_figures;
	/* Whether that entry may move, besides defrag_can_move(); NULL: any. */
	bool (*may_move)(void *ctx, const struct holding *h);
	/* Bytes of memory that it uses now; NULL: what it has asked for. */
	uint64_t (*bytes_of)(void *ctx, const struct holding *h);
	void *ctx;
};

/* Whether the entry is one that can move at all: CPUs of its own, booked, no devices
 * (ask.has_devices), tokens, shares or huge pages, and not left as another program has it; nor does
 * it lie where a scheduler that requires it, or a wish for NUMA nodes, has put it. What a scheduler
 * has required of a container that was adopted, without its entry, is not known. */
bool defrag_can_move(const struct holding *h);
/* Whether it may be moved now: it can, it was seen to have been created, its author does not
 * forbid it (numafit.io/movable), and it was not moved within defragment.minInterval; a moment that
 * is still to come counts as now. by_itself: nobody asked for it (defragment.mode: auto), so that
 * its author must have allowed it, unless defragment.movable is all. */
bool defrag_may_move(
	const struct holding *h, const struct settings *s, int64_t now_ms, bool by_itself);

/* The cheapest sequence of moves after which the pod is admitted as preferred; without a pod: of
 * the sequences after which most containers are preferred. Each move is to one NUMA node, which a
 * container that is spread over several may be on already in part; it is preferred there, and moves
 * once at most.
 *
 * The moves can be made one after the other, and in each the container can have its new place
 * beside the old one: CPUs that it does not have yet are free, and the shared pool keeps
 * sharedPoolMinimum and what tokens are promised without them; memory on a NUMA node that it has
 * none on is free. On one that it has some on already what it is to have there is free when it
 * gives that up: its pages there stay.
 *
 * 0, also when there is none; the error of engine_copy(). */
int defrag_plan(const struct defrag_question *q, struct defrag_plan *out, struct err *e);

/* Its moves in words, for people: "moving default/trainer-3/app to NUMA node 5 (8 CPUs, 11Gi of
 * memory), then ..."; nothing without moves. For an author of pod `reader` containers that `names`
 * keeps from this author are "a container of another namespace"; NULL: for an operator. */
struct text;
void defrag_print(const struct topo *t, const struct defrag_plan *plan, const struct pod *reader,
	enum pod_names names, struct text *to);

#endif
