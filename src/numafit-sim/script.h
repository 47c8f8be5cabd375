#ifndef NUMAFIT_SIM_SCRIPT_H
#define NUMAFIT_SIM_SCRIPT_H

#include <numafit-sim/trace_yaml.h>
#include <numafit-sim/node.h>

/* A trace's steps as the calls that a runtime makes for them, and the queue of these. */

/* What the kubelet does before the runtime is called: the pod's way in, and what comes between its
 * sandbox and a container. */
enum task_kind { TASK_CALL, TASK_ADMIT, TASK_PREPARE };

struct task {
	enum task_kind kind;
	enum nri_call call;
	struct container *c;           /* NULL with Synchronize */
	const struct trace_step *step; /* that asked for it, or NULL */
};

struct script {
	const struct trace *trace;
	struct sim_node *node;
	bool has_kubelet;
	size_t next_step;
	VEC(struct task); /* the first one is next; vec_fini() ends them */
};

/* Put a call in at place `at` of the queue. */
void script_queue(struct script *s, size_t at, enum nri_call call, struct container *c,
	const struct trace_step *step);
/* Forget what is queued for containers of that sandbox. */
void script_drop(struct script *s, const char *sandbox_id);
/* Queue the calls of the next step; a create enters its containers into the node. Returns its
 * operation, NR_TRACE_OPS when there are no more steps, or -EINVAL, -EEXIST: it cannot be done. */
int script_step(struct script *s, struct err *e);

#endif
