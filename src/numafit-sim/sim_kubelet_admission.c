#include <numafit-sim/sim_kubelet_state.h>

#include <errno.h>
#include <kubelet/device_manager_pb.h>
#include <numafit-sim/device_table.h>
#include <numafit/text.h>
#include <stdio.h>

/* A pod's way in: container by container its affinity, then for each resource the devices, which
 * its plugin may choose among and is asked to allocate. And what follows before a container is
 * created. */

enum {
	DECIDE_BYTES = 8 << 20,
	CHOICE_BYTES_MAX = 16 << 20,
	REFUSAL_TEXT_MAX = 400,
	TAKEN_IN_MS = 20, /* for others to take in what they were sent, over other sockets */
	SANDBOX_MS = 150, /* for others to ask what a pod was given; a kubelet takes 280 */
	PRE_START_AGAIN_MS = 50
};

static void admission_go_on(struct sim_kubelet *k);

static void finish_admission(struct sim_kubelet *k, const char *refusal)
{
	struct admission *a = &k->admission;
	struct sim_pod *pod = steal(a->pod);

	arena_fini(&a->arena);
	if (refusal) {
		device_table_remove_pod(&k->table, pod);
	} else {
		pod->admitted = true;
		sim_kubelet_send_event(k, PODS_ADDED, &pod->spec);
	}
	sim_kubelet_take_lists(k);
	if (refusal || !k->watchers.nr)
		a->done(a->ctx, refusal);
	else
		loop_timer_set(k->timer, TAKEN_IN_MS); /* and then it is done */
}

static void refuse_admission(struct sim_kubelet *k, const char *what)
{
	char text[REFUSAL_TEXT_MAX];

	snprintf(text, sizeof text,
		"UnexpectedAdmissionError: Allocate failed due to %s, which is unexpected", what);
	finish_admission(k, text);
}

/* The affinity of the container, or of the pod. False: it was refused. */
static bool align_container(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	bool by_pod = k->table.settings->topology_scope == SCOPE_POD;
	struct policy_answer answer;
	struct arena fixed;

	if (a->aligned)
		return true;
	arena_init_fixed(&fixed, k->memory, DECIDE_BYTES);
	if (device_table_align(&k->table, a->pod, a->container, by_pod, &fixed, &answer) < 0) {
		refuse_admission(k, "more devices than there is room for");
		return false;
	}
	if (!answer.admit) {
		finish_admission(k,
			"TopologyAffinityError: Resources cannot be allocated with Topology "
			"locality");
		return false;
	}
	a->affinity = answer.affinity;
	a->aligned = true;
	return true;
}

static void give_chosen_devices(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	struct device_ids ids =
		device_table_ids(&k->table, a->choice.row, a->choice.chosen, NULL, &a->arena);

	sim_pod_give(a->pod, a->container, a->choice.row, &ids);
	a->ask++;
}

static void on_allocated(void *ctx, struct blob reply, const char *text)
{
	struct sim_kubelet *k = ctx;
	struct admission *a = &k->admission;
	const struct allocate_answer *answer;
	char problem[REFUSAL_TEXT_MAX];
	struct err e;
	size_t nr;

	if (text) {
		snprintf(problem, sizeof problem, "rpc error: code = Unknown desc = %s", text);
		refuse_admission(k, problem);
		return;
	}
	int rc = allocate_response_decode(reply, &a->arena, &answer, &nr, &e);
	if (!rc && nr != 1)
		rc = err_set(&e, EBADMSG, "an answer for %zu containers", nr);
	if (rc) {
		sim_kubelet_broken(k, "Allocate: %s", e.text);
		refuse_admission(k, e.text);
		return;
	}
	sim_pod_annotate(a->pod, a->container, answer->annotation, answer->nr_annotations);
	give_chosen_devices(k);
	admission_go_on(k);
}

/* Call the plugin of the choice, unless the request could not be written. */
static void call_plugin(struct sim_kubelet *k, int rc, const char *method, struct blob request,
	void (*done)(void *ctx, struct blob reply, const char *text), const struct err *e)
{
	if (rc < 0)
		refuse_admission(k, e->text);
	else
		plugin_call_start(&k->call, k->plugin[k->admission.choice.row], method, request,
			SIM_KUBELET_CALL_MS, done, k);
}

static void call_allocate(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	struct device_ids ids =
		device_table_ids(&k->table, a->choice.row, a->choice.chosen, NULL, &a->arena);
	const struct allocate_request request = {&ids, 1};
	struct blob message = {0};
	struct err e;
	int rc = allocate_request_encode(&request, &a->arena, &message, &e);

	call_plugin(k, rc, DEVICE_PLUGIN_PATH("Allocate"), message, on_allocated, &e);
}

static void on_preference(void *ctx, struct blob reply, const char *text)
{
	struct sim_kubelet *k = ctx;
	struct admission *a = &k->admission;
	const struct device_ids *answer;
	struct err e;
	size_t nr;
	int rc = 0;

	if (text)
		rc = err_set(&e, EINVAL, "GetPreferredAllocation: %s", text);
	if (!rc)
		rc = preferred_response_decode(reply, &a->arena, &answer, &nr, &e);
	if (!rc && nr != 1)
		rc = err_set(&e, EBADMSG, "an answer for %zu containers", nr);
	if (!rc)
		rc = device_table_prefer(&k->table, &a->choice, answer, &e);
	if (rc) {
		sim_kubelet_broken(k, "%s: %s", k->table.row[a->choice.row].name, e.text);
		refuse_admission(k, e.text);
	} else if (!k->plugin[a->choice.row]) {
		refuse_admission(k, "its endpoint having been stopped");
	} else {
		call_allocate(k);
	}
}

static void ask_preference(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	const struct device_choice *c = &a->choice;
	const struct preferred_ask ask = {
		device_table_ids(&k->table, c->row, c->candidates, c->taken, &a->arena),
		device_table_ids(&k->table, c->row, c->taken, NULL, &a->arena), c->size};
	const struct preferred_request request = {&ask, 1};
	struct blob message = {0};
	struct err e;
	int rc = preferred_request_encode(&request, &a->arena, &message, &e);

	call_plugin(
		k, rc, DEVICE_PLUGIN_PATH("GetPreferredAllocation"), message, on_preference, &e);
}

/* The devices for what is asked for next. False: that goes on later, or the pod was refused. */
static bool choose_devices(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	struct err e;

	if (device_table_choose(&k->table, a->pod, a->container, a->ask, &a->affinity, &a->arena,
		    &a->choice, &e) < 0) {
		refuse_admission(k, e.text);
		return false;
	}
	const struct plugin *p = k->plugin[a->choice.row];
	if (!p) {
		give_chosen_devices(k);
		return true;
	}
	if (p->options.preferred_allocation && a->choice.open)
		ask_preference(k);
	else
		call_allocate(k);
	return false;
}

static void admission_go_on(struct sim_kubelet *k)
{
	struct admission *a = &k->admission;
	bool by_pod = k->table.settings->topology_scope == SCOPE_POD;

	while (a->container < a->pod->spec.pod.nr) {
		if (!align_container(k))
			return;
		if (a->ask == a->pod->spec.pod.container[a->container].nr_devices) {
			a->container++;
			a->ask = 0;
			a->aligned = by_pod;
		} else if (!choose_devices(k)) {
			return;
		}
	}
	finish_admission(k, NULL);
}

void sim_kubelet_admit(struct sim_kubelet *k, const struct known_pod *pod,
	void (*done)(void *ctx, const char *refusal), void *ctx)
{
	struct err e;
	struct sim_pod *new = device_table_add_pod(&k->table, pod, &e);

	if (!new) {
		done(ctx, e.text);
		return;
	}
	k->admission = (struct admission){.pod = new, .done = done, .ctx = ctx};
	arena_init(&k->admission.arena, CHOICE_BYTES_MAX);
	if (!k->memory)
		k->memory = xcalloc(1, DECIDE_BYTES);
	admission_go_on(k);
}

/* Before a container is created */

static void call_pre_start(struct sim_kubelet *k);

static void on_pre_started(void *ctx, struct blob reply, const char *text)
{
	struct sim_kubelet *k = ctx;

	(void)reply;
	if (text) {
		loop_timer_set(k->timer, PRE_START_AGAIN_MS);
		return;
	}
	k->preparation.at++;
	call_pre_start(k);
}

/* Ask the next plugin that wants it. */
static void call_pre_start(struct sim_kubelet *k)
{
	struct preparation *p = &k->preparation;
	const struct given *g = NULL;
	struct blob message;
	struct arena a;

	for (; p->at < p->pod->given.nr; p->at++) {
		g = &p->pod->given.at[p->at];
		if (g->container == p->container && k->pre_start[g->row])
			break;
	}
	if (!g || p->at == p->pod->given.nr) {
		p->pod = NULL;
		p->done(p->ctx);
		return;
	}
	if (!k->plugin[g->row]) { /* its endpoint has been stopped: the container waits */
		loop_timer_set(k->timer, PRE_START_AGAIN_MS);
		return;
	}
	arena_init(&a, CHOICE_BYTES_MAX);
	if (pre_start_request_encode(&g->ids, &a, &message, NULL) == 0)
		plugin_call_start(&k->call, k->plugin[g->row],
			DEVICE_PLUGIN_PATH("PreStartContainer"), message, SIM_KUBELET_CALL_MS,
			on_pre_started, k);
	arena_fini(&a);
}

void sim_kubelet_prepare(struct sim_kubelet *k, const char *uid, const char *container,
	void (*done)(void *ctx), void *ctx)
{
	struct sim_pod *pod = device_table_pod(&k->table, uid);
	int place = pod ? sim_pod_container(pod, container) : -1;

	if (place < 0) {
		done(ctx);
		return;
	}
	k->preparation = (struct preparation){
		.pod = pod, .container = (unsigned)place, .done = done, .ctx = ctx};
	if (k->nr_lists && pod->given.nr && !pod->has_sandbox)
		loop_timer_set(k->timer, SANDBOX_MS);
	else
		call_pre_start(k);
}

/* Time for what comes next. */
void sim_kubelet_timer(void *ctx)
{
	struct sim_kubelet *k = ctx;

	if (k->preparation.pod) {
		k->preparation.pod->has_sandbox = true;
		call_pre_start(k);
	} else {
		k->admission.done(k->admission.ctx, NULL);
	}
}
