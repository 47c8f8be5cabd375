#include <numafit-sim/play.h>

#include <errno.h>
#include <nri/session.h>
#include <numafit-sim/node.h>
#include <numafit-sim/play_state.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* containerd's plugin_request_timeout */
enum { REQUEST_TIMEOUT_MS = 2000, SOCKET_MODE = 0600 };

void play_end(struct play *p, int rc)
{
	p->rc = rc;
	p->over = p->busy = true;
	loop_timer_stop(p->timer);
	loop_stop(p->loop);
}

void play_refuse_rest(struct play *p, const struct container *of, const char *why)
{
	script_drop(&p->script, of->sandbox_id);
	for (size_t i = 0; i < p->node->nr; i++) {
		struct container *c = p->node->at[i];

		if (c->state != CONTAINER_CREATING || !text_equal(c->sandbox_id, of->sandbox_id))
			continue;
		c->state = CONTAINER_REFUSED;
		advised_note(p->node, c, why);
		report_create(p->report, c, why, 0);
	}
}

/* What a runtime shows of a container; the texts are in here. */
struct view {
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct key_value annotations[PLAY_ANNOTATIONS_MAX];
};

static struct nri_container show_container(const struct play *p, const struct container *c,
	const struct confinement *as, struct view *v)
{
	const struct topo *t = p->node->topo;

	return (struct nri_container){
		.sandbox_id = c->sandbox_id,
		.pod_uid = c->pod_uid,
		.pod_ns = c->ns,
		.pod_name = c->pod,
		.cgroup_parent = c->cgroup_parent,
		.pod_annotations = c->annotations,
		.nr_pod_annotations = c->nr_annotations,
		.id = c->id,
		.name = c->name,
		.resources = as->resources,
		.cpus = as->pinned ? cpuset_format(&as->cpus, v->cpus, sizeof v->cpus) : "",
		.mems = as->mems_pinned ? nodeset_format(as->mems, &t->ids, v->mems, sizeof v->mems)
					: "",
		.annotations = v->annotations,
		.nr_annotations = play_annotations(p, c, v->annotations),
		.created_at_ns = c->created_at_ns,
	};
}

static unsigned count_running(const struct sim_node *n)
{
	unsigned nr = 0;

	for (size_t i = 0; i < n->nr; i++)
		nr += n->at[i]->state == CONTAINER_RUNNING;
	return nr;
}

static void call_synchronize(struct play *p)
{
	size_t nr = count_running(p->node), at = 0;
	auto_free struct nri_container *shown = xcalloc(nr + 1, sizeof *shown);
	auto_free struct view *views = xcalloc(nr + 1, sizeof *views);

	for (size_t i = 0; i < p->node->nr; i++)
		if (p->node->at[i]->state == CONTAINER_RUNNING) {
			const struct container *c = p->node->at[i];

			shown[at] = show_container(p, c, &c->known, &views[at]);
			at++;
		}
	nri_runtime_synchronize(p->runtime, shown, nr);
}

/* What the container would become were the step's wishes all that counts. */
static int wish_container(
	const struct play *p, const struct task *k, struct container *c, struct err *e)
{
	const struct trace_step *s = k->step;

	*c = *k->c;
	int rc = container_resize(p->node->topo, c, s->asked.cpu_milli, s->asked.memory_bytes, e);
	if (!rc)
		rc = container_set(p->node->topo, c, s->cpus, s->mems, e);
	return rc ? err_add(e, rc, "line %u", s->line) : 0;
}

static void make_call(struct play *p, const struct task *k)
{
	struct container c;
	struct nri_container shown;
	struct view view;

	loop_timer_set(p->timer, REQUEST_TIMEOUT_MS);
	if (k->call == NRI_CALL_SYNCHRONIZE) {
		call_synchronize(p);
		return;
	}
	if (k->call == NRI_CALL_CREATE)
		k->c->created_at_ns = loop_wall_ms() * NS_PER_MS;
	c = *k->c;
	if (k->call == NRI_CALL_UPDATE) {
		int rc = wish_container(p, k, &c, p->e);

		if (rc) {
			play_end(p, rc);
			return;
		}
	}
	shown = show_container(p, &c, &c.now, &view);
	nri_runtime_call(p->runtime, k->call, &shown);
}

/* Set the running containers that the answer names. Their number, or -EINVAL. */
static int apply_updates(struct play *p, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++) {
		struct container *c = sim_node_find(p->node, a->updates[i].container_id);
		int rc;

		if (!c || c->state != CONTAINER_RUNNING)
			return err_set(p->e, EINVAL, "the plugin updates %s, which does not run",
				a->updates[i].container_id);
		rc = container_set(p->node->topo, c, a->updates[i].cpus, a->updates[i].mems, p->e);
		if (rc)
			return rc;
		container_remember(c, false);
	}
	return (int)a->nr_updates;
}

static int on_run_pod_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	if (!a->status)
		return 0;
	play_refuse_rest(p, k->c, a->message);
	sim_kubelet_forget(p->kubelet, k->c->pod_uid);
	return 0;
}

static int on_remove_pod_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	(void)a;
	sim_kubelet_forget(p->kubelet, k->c->pod_uid);
	return 0;
}

/* What follows a create: of an init container all, for the next one starts when it is done. */
static void queue_life(struct script *s, struct container *c)
{
	static const enum nri_call life[] = {
		NRI_CALL_POST_CREATE, NRI_CALL_POST_START, NRI_CALL_STOP, NRI_CALL_REMOVE};
	size_t nr = c->kind == CONTAINER_INIT ? sizeof life / sizeof *life : 2;

	for (size_t i = 0; i < nr; i++)
		script_queue(s, i, life[i], c, NULL);
}

static int on_create_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	struct container *c = k->c;

	if (a->status) {
		c->state = CONTAINER_REFUSED;
		advised_note(p->node, c, a->message);
		report_create(p->report, c, a->message, 0);
		if (c->kind == CONTAINER_INIT)
			play_refuse_rest(p, c, "its pod's init container was refused");
		if (sim_node_shares_sandbox(p->node, c))
			return 0;
		script_queue(&p->script, 0, NRI_CALL_STOP_POD, c, NULL);
		script_queue(&p->script, 1, NRI_CALL_REMOVE_POD, c, NULL);
		return 0;
	}
	int moved = apply_updates(p, a);
	int rc = moved < 0 ? moved : container_set(p->node->topo, c, a->cpus, a->mems, p->e);

	if (!rc)
		rc = container_annotate(p->node->topo, c, a->annotations, a->nr_annotations, p->e);
	if (!rc)
		rc = play_check_devices(p, c);
	if (rc)
		return rc;
	c->state = CONTAINER_RUNNING;
	c->first = c->known = c->now;
	play_note_devices(p, c);
	advised_note(p->node, c, NULL);
	report_create(p->report, c, NULL, (unsigned)moved);
	queue_life(&p->script, c);
	return 0;
}

static int on_update_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	struct container wished;
	int rc = wish_container(p, k, &wished, p->e);

	if (rc)
		return rc;
	if (a->status) { /* and nothing has changed */
		report_update(p->report, &wished, a->message, 0);
		return 0;
	}
	/* the plugin's word comes on top of what was asked for */
	*k->c = wished;
	container_remember(k->c, k->step->asked.cpu_milli || k->step->asked.memory_bytes);
	int moved = apply_updates(p, a);

	if (moved >= 0)
		report_update(p->report, k->c, NULL, (unsigned)moved);
	return moved;
}

static int on_stop_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	k->c->state = CONTAINER_GONE;
	int moved = apply_updates(p, a);

	if (moved >= 0)
		report_stop(p->report, k->c, k->c->kind == CONTAINER_INIT ? "done" : "stopped",
			(unsigned)moved);
	return moved;
}

/* The containers that still ran in the sandbox run no more. */
static int on_stop_pod_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	(void)a; /* it carries no updates */
	for (size_t i = 0; i < p->node->nr; i++) {
		struct container *c = p->node->at[i];

		if (c->state != CONTAINER_RUNNING || !text_equal(c->sandbox_id, k->c->sandbox_id))
			continue;
		c->state = CONTAINER_GONE;
		report_stop(p->report, c, "stopped with its pod", 0);
	}
	return 0;
}

static int on_synchronize_answer(struct play *p, const struct task *k, const struct nri_answer *a)
{
	int moved = apply_updates(p, a);

	(void)k;
	if (moved >= 0 && p->came_before)
		report_restart(p->report, count_running(p->node), (unsigned)moved);
	p->came_before = true;
	return moved;
}

/* What is called, whether a plugin may refuse it, and what follows its answer; NULL: nothing. */
static const struct {
	const char *name;
	bool may_refuse;
	int (*answered)(struct play *p, const struct task *k, const struct nri_answer *a);
} calls[] = {
	[NRI_CALL_SYNCHRONIZE] = {"Synchronize", false, on_synchronize_answer},
	[NRI_CALL_RUN_POD] = {"RunPodSandbox", true, on_run_pod_answer},
	[NRI_CALL_CREATE] = {"CreateContainer", true, on_create_answer},
	[NRI_CALL_POST_CREATE] = {"PostCreateContainer", false, NULL},
	[NRI_CALL_POST_START] = {"PostStartContainer", false, NULL},
	[NRI_CALL_UPDATE] = {"UpdateContainer", true, on_update_answer},
	[NRI_CALL_STOP] = {"StopContainer", false, on_stop_answer},
	[NRI_CALL_REMOVE] = {"RemoveContainer", false, NULL},
	[NRI_CALL_STOP_POD] = {"StopPodSandbox", false, on_stop_pod_answer},
	[NRI_CALL_REMOVE_POD] = {"RemovePodSandbox", false, on_remove_pod_answer},
};

static void on_plugin_answer(void *ctx, enum nri_call which, const struct nri_answer *a)
{
	struct play *p = ctx;
	struct task k = p->asked;
	int rc = 0;

	if (p->over)
		return;
	p->busy = false;
	loop_timer_stop(p->timer);
	if (a->status && !calls[which].may_refuse)
		rc = err_set(p->e, EPROTO, "%s: the plugin answers with error %d: %s",
			calls[which].name, a->status, a->message ? a->message : "");
	else if (calls[which].answered)
		rc = calls[which].answered(p, &k, a);
	if (rc >= 0)
		rc = sim_node_check(p->node, p->e);
	if (rc < 0)
		play_end(p, rc);
}

static void on_plugin_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct play *p = ctx;

	(void)name, (void)index, (void)events;
	p->waiting = p->busy = false;
	script_queue(&p->script, 0, NRI_CALL_SYNCHRONIZE, NULL, NULL);
}

static void play_advance(struct play *p);

static void on_plugin_data(void *ctx, const void *data, size_t len)
{
	struct play *p = ctx;

	if (p->over)
		return;
	if (nri_runtime_feed(p->runtime, data, len) < 0)
		play_end(p, err_set(p->e, EPROTO, "the plugin broke the protocol: %s",
				    nri_runtime_error(p->runtime)));
	else
		play_advance(p);
}

static void expect_plugin(struct play *p);

static void on_plugin_closed(void *ctx, int error)
{
	struct play *p = ctx;

	p->stream = NULL;
	if (p->over)
		return;
	if (p->waiting) /* a client only looked whether there is a socket */
		expect_plugin(p);
	else
		play_end(p, err_set(p->e, ECONNRESET, "the plugin closed the connection%s%s",
				    error ? ": " : "", error ? strerror(-error) : ""));
}

static struct stream_events on_plugin_accepted(void *ctx, struct stream *s)
{
	struct play *p = ctx;

	if (!p->stream) {
		p->stream = s;
	} else {
		stream_close(s);
		if (!p->over)
			play_end(p, err_set(p->e, EPROTO, "a second plugin connected to %s",
					    p->options->socket));
	}
	return (struct stream_events){.ctx = p, .data = on_plugin_data, .closed = on_plugin_closed};
}

static void on_timeout(void *ctx)
{
	struct play *p = ctx;
	int rc;

	if (p->lacks_devices)
		rc = err_set(p->e, ETIMEDOUT,
			"no device plugin registered %s with the kubelet in %s within %u s",
			play_lacks(p), p->options->kubelet_root, p->options->wait_ms / MS_PER_S);
	else if (!p->waiting && p->asked.kind != TASK_CALL)
		rc = play_kubelet_is_late(p);
	else if (p->waiting)
		rc = err_set(p->e, ETIMEDOUT,
			"no plugin registered on %s within %u s: is the daemon running, with that "
			"path as nri.socketPath",
			p->options->socket, p->options->wait_ms / MS_PER_S);
	else
		rc = err_set(p->e, ETIMEDOUT,
			"%s was not answered within %d ms: a runtime would drop the plugin and "
			"start containers unpinned",
			calls[p->asked.call].name, REQUEST_TIMEOUT_MS);
	play_end(p, rc);
}

/* A fresh engine for the plugin that comes next. */
static void expect_plugin(struct play *p)
{
	struct nri_runtime_options o = {
		.name = "numafit-sim", .version = "v1", .state_change = p->options->state_change};
	struct nri_runtime_events ev = {
		.ctx = p, .configured = on_plugin_configured, .answered = on_plugin_answer};

	nri_runtime_free(p->runtime);
	p->runtime = nri_runtime_new(&o, &ev);
}

static int runtime_appear(struct play *p)
{
	p->waiting = p->busy = true;
	expect_plugin(p);
	loop_timer_set(p->timer, p->options->wait_ms);
	p->listener =
		listener_new(p->loop, p->options->socket, SOCKET_MODE, p, on_plugin_accepted, p->e);
	return p->listener ? 0 : -p->e->code;
}

static void runtime_disappear(struct play *p)
{
	stream_close(p->stream);
	p->stream = NULL;
	listener_close(p->listener);
	p->listener = NULL;
	nri_runtime_free(p->runtime);
	p->runtime = NULL;
}

static void play_begin_step(struct play *p)
{
	int op = script_step(&p->script, p->e);

	if (op < 0 || op == NR_TRACE_OPS) {
		play_end(p, op < 0 ? op : 0);
	} else if (op == TRACE_RESTART_KUBELET) {
		play_restart_kubelet(p);
	} else if (op == TRACE_RESTART_RUNTIME) {
		runtime_disappear(p);
		for (size_t i = 0; p->options->forgets && i < p->node->nr; i++)
			p->node->at[i]->known = p->node->at[i]->first;
		int rc = runtime_appear(p);

		if (rc)
			play_end(p, rc);
	}
}

/* Do what there is until something has to be waited for. Some is done at once: so a loop. */
static void play_advance(struct play *p)
{
	const void *data;
	size_t len;

	while (!p->busy) {
		if (!p->script.nr && !play_kubelet_ready(p)) {
			p->busy = p->lacks_devices = true;
			loop_timer_set(p->timer, p->options->wait_ms);
			continue;
		}
		if (!p->script.nr) {
			play_begin_step(p);
			continue;
		}
		struct task k = p->script.at[0];

		vec_remove(&p->script, 0);
		p->busy = true;
		p->asked = k;
		if (k.kind == TASK_CALL)
			make_call(p, &k);
		else
			play_kubelet_task(p, &k);
	}
	while (p->stream && (len = nri_runtime_take(p->runtime, &data)))
		if (stream_write(p->stream, data, len) < 0)
			return; /* on_plugin_closed() follows */
}

void play_go_on(void *ctx)
{
	struct play *p = ctx;

	if (p->over)
		return;
	loop_timer_stop(p->timer);
	p->busy = false;
	play_advance(p);
}

static void on_signal(void *ctx)
{
	struct play *p = ctx;

	if (!p->over)
		play_end(p, err_set(p->e, EINTR, "interrupted"));
}

int play(const struct trace *t, struct sim_node *n, struct report *r, const struct play_options *o,
	struct err *e)
{
	struct play p = {
		.script = {.trace = t, .node = n},
		.node = n,
		.report = r,
		.options = o,
		.loop = loop_new(),
		.e = e,
	};

	p.timer = loop_timer_new(p.loop, on_timeout, &p);
	(void)loop_on_signal(p.loop, SIGINT, on_signal, &p);
	(void)loop_on_signal(p.loop, SIGTERM, on_signal, &p);
	report_begin(r);
	p.rc = play_start_kubelet(&p);
	if (!p.rc)
		p.rc = runtime_appear(&p);
	if (!p.rc)
		loop_run(p.loop);
	if (!p.rc)
		report_end(r);
	runtime_disappear(&p);
	sim_kubelet_free(p.kubelet);
	rpc_pump_free(p.pump);
	loop_free(p.loop);
	vec_fini(&p.script);
	return p.rc;
}
