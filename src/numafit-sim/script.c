#include <numafit-sim/script.h>

#include <errno.h>
#include <numafit-sim/node.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

void script_queue(struct script *s, size_t at, enum nri_call call, struct container *c,
	const struct trace_step *step)
{
	*vec_insert(s, at) = (struct task){TASK_CALL, call, c, step};
}

void script_drop(struct script *s, const char *sandbox_id)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->at[i].c && text_equal(s->at[i].c->sandbox_id, sandbox_id))
			vec_remove(s, i--);
}

static void script_append(
	struct script *s, enum nri_call call, struct container *c, const struct trace_step *step)
{
	script_queue(s, s->nr, call, c, step);
}

static void script_append_task(struct script *s, enum task_kind kind, struct container *c)
{
	if (s->has_kubelet)
		*vec_push(s) = (struct task){.kind = kind, .c = c};
}

/* A kubelet knows what its pods consist of: another container cannot join. */
static int check_known(const struct script *s, const struct container *c, struct err *e)
{
	for (size_t i = 0; i < s->node->nr; i++) {
		const struct container *o = s->node->at[i];

		if (o != c && text_equal(o->sandbox_id, c->sandbox_id) &&
			text_equal(o->name, c->name))
			return 0;
	}
	return err_set(e, EINVAL, "pod %s/%s runs already, without a container %s", c->ns, c->pod,
		c->name);
}

static struct container *script_enter_container(
	struct script *s, const struct trace_step *step, const char *pod, struct err *e)
{
	bool annotates = step->advice.numa || step->nr_annotations;
	struct container c = {
		.ns = step->ns,
		.name = step->container,
		.base = step->pod,
		.kind = step->kind,
		.device = step->device,
		.nr_devices = step->nr_devices,
		.asked = step->asked,
	};

	snprintf(c.pod, sizeof c.pod, "%s", pod);
	struct container *new = sim_node_add(s->node, &c, e);

	if (!new || container_set(s->node->topo, new, step->cpus, step->mems, e) < 0)
		return NULL;
	if (annotates && sim_node_shares_sandbox(s->node, new)) {
		err_set(e, EINVAL,
			"pod %s/%s is there: hint and annotations come with its first container",
			new->ns, pod);
		return NULL;
	}
	if (annotates && advised_annotate(s->node, new, step, e) < 0)
		return NULL;
	advised_read(s->node, new);
	new->first = new->known = new->now;
	if (step->unasked) /* a later Synchronize lists it */
		new->state = CONTAINER_RUNNING;
	return new;
}

/* The containers of nr steps, in that pod. */
static int create_pod(
	struct script *s, const struct trace_step *step, size_t nr, const char *pod, struct err *e)
{
	struct container probe = {.ns = step->ns};

	snprintf(probe.pod, sizeof probe.pod, "%s", pod);
	bool joins = sim_node_shares_sandbox(s->node, &probe);
	size_t from = s->node->nr;

	for (size_t i = 0; i < nr; i++) {
		const struct container *new = script_enter_container(s, &step[i], pod, e);
		int rc = new ? 0 : -EINVAL;

		if (!rc && joins && s->has_kubelet && !step[i].unasked)
			rc = check_known(s, new, e);
		if (rc)
			return i ? err_add(e, rc, "line %u", step[i].line) : rc;
	}
	if (!joins && !step->unasked) {
		script_append_task(s, TASK_ADMIT, s->node->at[from]);
		script_append(s, NRI_CALL_RUN_POD, s->node->at[from], step);
	}
	for (size_t i = from; i < s->node->nr; i++) {
		if (step[i - from].unasked)
			continue;
		script_append_task(s, TASK_PREPARE, s->node->at[i]);
		script_append(s, NRI_CALL_CREATE, s->node->at[i], &step[i - from]);
	}
	return 0;
}

static bool steps_share_pod(const struct trace_step *a, const struct trace_step *b)
{
	return b->op == TRACE_CREATE && text_equal(a->ns, b->ns) && text_equal(a->pod, b->pod) &&
	       a->count == b->count && a->unasked == b->unasked;
}

/* A kubelet has the whole pod at once: the steps that follow for it are taken, too. */
static int take_pod_steps(
	struct script *s, const struct trace_step *step, size_t *nr, struct err *e)
{
	const struct trace *t = s->trace;

	*nr = 1;
	while (s->has_kubelet && s->next_step < t->nr &&
		steps_share_pod(step, &t->at[s->next_step])) {
		if (step[*nr - 1].kind == CONTAINER_APP && step[*nr].kind != CONTAINER_APP)
			return err_set(e, EINVAL, "line %u: %s comes after the pod's containers",
				step[*nr].line, container_kind_words[step[*nr].kind]);
		s->next_step++;
		++*nr;
	}
	return 0;
}

static int expand_create(struct script *s, const struct trace_step *step, struct err *e)
{
	char pod[SIM_NAME_MAX];
	size_t nr;
	int rc = take_pod_steps(s, step, &nr, e);

	if (!step->count)
		return rc ? rc : create_pod(s, step, nr, step->pod, e);
	for (unsigned i = 0; i < step->count && !rc; i++) {
		snprintf(pod, sizeof pod, "%s-%u", step->pod, i);
		rc = create_pod(s, step, nr, pod, e);
	}
	return rc;
}

/* Whether the step means that running container: by its pod's name, or by that of all replicas. */
static bool step_means(const struct trace_step *step, const struct container *c)
{
	return c->state == CONTAINER_RUNNING &&
	       (text_equal(step->pod, c->pod) || text_equal(step->pod, c->base)) &&
	       (!step->container || text_equal(step->container, c->name));
}

static int expand_update(struct script *s, const struct trace_step *step, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < s->node->nr; i++)
		if (step_means(step, s->node->at[i]))
			script_append(s, NRI_CALL_UPDATE, s->node->at[i], step);
	return 0;
}

/* Whether the sandbox of *c goes with this step and is not queued to go yet. */
static bool sandbox_ends(
	const struct script *s, const struct trace_step *step, const struct container *c)
{
	for (size_t i = 0; i < s->node->nr; i++) {
		const struct container *o = s->node->at[i];

		if (o->state == CONTAINER_RUNNING && text_equal(o->sandbox_id, c->sandbox_id) &&
			!step_means(step, o))
			return false;
	}
	for (size_t i = 0; i < s->nr; i++)
		if (s->at[i].call == NRI_CALL_STOP_POD &&
			text_equal(s->at[i].c->sandbox_id, c->sandbox_id))
			return false;
	return true;
}

/* The sandboxes in which the step leaves nothing. */
static int expand_stop_pod(struct script *s, const struct trace_step *step, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < s->node->nr; i++)
		if (step_means(step, s->node->at[i]) && sandbox_ends(s, step, s->node->at[i])) {
			script_append(s, NRI_CALL_STOP_POD, s->node->at[i], step);
			script_append(s, NRI_CALL_REMOVE_POD, s->node->at[i], step);
		}
	return 0;
}

/* Containers first. */
static int expand_stop(struct script *s, const struct trace_step *step, struct err *e)
{
	for (size_t i = 0; i < s->node->nr; i++)
		if (step_means(step, s->node->at[i])) {
			script_append(s, NRI_CALL_STOP, s->node->at[i], step);
			script_append(s, NRI_CALL_REMOVE, s->node->at[i], step);
		}
	return expand_stop_pod(s, step, e);
}

static int (*const expand[NR_TRACE_OPS])(
	struct script *s, const struct trace_step *step, struct err *e) = {
	[TRACE_CREATE] = expand_create,
	[TRACE_UPDATE] = expand_update,
	[TRACE_STOP] = expand_stop,
	[TRACE_STOP_POD] = expand_stop_pod,
	[TRACE_RESTART_RUNTIME] = NULL, /* not a call: the connection's matter */
	[TRACE_RESTART_KUBELET] = NULL,
};

int script_step(struct script *s, struct err *e)
{
	const struct trace_step *step = &s->trace->at[s->next_step];
	int rc = 0;

	if (s->next_step == s->trace->nr)
		return NR_TRACE_OPS;
	s->next_step++;
	if (expand[step->op])
		rc = expand[step->op](s, step, e);
	return rc ? err_add(e, rc, "line %u: %s", step->line, trace_op_name(step->op))
		  : (int)step->op;
}
