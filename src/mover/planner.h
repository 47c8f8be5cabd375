#ifndef NUMAFIT_MOVER_PLANNER_H
#define NUMAFIT_MOVER_PLANNER_H

#include <host/cgroup.h>
#include <io/loop.h>
#include <numafit/defrag.h>

/* Plans of moves, on a thread of its own: containers do not wait for them. It owns a copy of the
 * node's state, and reads there how much memory each container uses. One plan at a time. */
struct planner;

/* What a plan is asked for. */
struct plan_question {
	const char *record; /* a record of a pod, or of a container, that is refused, as the journal
			       has it: room is to be made for that; NULL: for none */
	unsigned moves;     /* at most */
	uint64_t trials;    /* at most */
	bool by_itself;     /* nobody has asked for moves (defrag_may_move()) */
	uint64_t generation; /* of what is free, as the plan will find it; it is not looked at */
};

/* The answer: valid until planned() returns. */
struct planned {
	const struct plan_question *question; /* its record is a copy */
	struct err error; /* code 0: there is a plan, if only one of not found */
	struct defrag_plan plan;
	const struct topo *topo;
	const struct pod *pod; /* what the record was about; NULL: none */
	const struct defrag_figure *figures;
	size_t nr_figures;
};

/* memory: the hierarchy with the memory controller, borrowed; NULL: what containers have asked for
 * counts. planned() is called on the loop, once for each question that was taken. */
struct planner *planner_new(struct loop *l, const struct cgroup_tree *memory,
	void (*planned)(void *ctx, const struct planned *p), void *ctx);
/* Before loop_free(). It waits for the plan at hand, which is not reported. NULL is fine. */
void planner_free(struct planner *p);
bool planner_is_busy(const struct planner *p);

/* 0; -EAGAIN with text: another plan is being made; -E2BIG: more containers than
 * PLANNER_ENTRIES_MAX are held, to copy them takes longer than some 3 ms; or the error of
 * engine_copy(). */
enum { PLANNER_ENTRIES_MAX = 1024 };
int planner_ask(struct planner *p, struct engine *g, const struct settings *s,
	const struct plan_question *q, struct err *e);

#endif
