#include <numafit-sim/play_state.h>

#include <errno.h>
#include <nri/session.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>

/* Kubelets wait for plugins without end. */
enum { KUBELET_TIMEOUT_MS = 10 * MS_PER_S, POD_BYTES_MAX = 16 << 20 };
static const char cpu_resource[] = "numafit.io/cpu";

/* The pod as the kubelet knows it */

static bool is_in_pod_spec(const struct container *c, const struct container *of)
{
	return of->state == CONTAINER_CREATING && text_equal(of->sandbox_id, c->sandbox_id);
}

static int compare_resource_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The resources that its containers ask for, ascending, each once. */
static unsigned list_pod_resources(
	const struct sim_node *n, const struct container *c, const char **name)
{
	unsigned nr = 0, kept = 0;

	for (size_t i = 0; i < n->nr; i++)
		for (unsigned k = 0; is_in_pod_spec(c, n->at[i]) && k < n->at[i]->nr_devices; k++)
			name[nr++] = n->at[i]->device[k].resource;
	if (nr)
		qsort(name, nr, sizeof *name, compare_resource_names);
	for (unsigned i = 0; i < nr; i++)
		if (!kept || !text_equal(name[kept - 1], name[i]))
			name[kept++] = name[i];
	return kept;
}

static void ask_add_memory(struct ask *ask, uint64_t page_bytes, uint64_t bytes)
{
	if (bytes)
		ask->memory[ask->nr_memory++] = (struct memory_ask){page_bytes, bytes};
}

static struct ask ask_of_container(const struct container *c, const struct known_pod *pod)
{
	struct ask ask = {.name = c->name, .kind = c->kind, .cpu_milli = c->asked.cpu_milli};

	ask_add_memory(&ask, 0, c->asked.memory_bytes);
	for (unsigned i = 0; i < c->asked.nr_hugepages; i++)
		ask_add_memory(&ask, c->asked.hugepages[i].page_bytes, c->asked.hugepages[i].bytes);
	for (unsigned r = 0; r < pod->nr_resources; r++)
		for (unsigned k = 0; k < c->nr_devices; k++)
			if (text_equal(c->device[k].resource, pod->resource[r]))
				ask.device[ask.nr_devices++] =
					(struct device_ask){r, c->device[k].count};
	return ask;
}

/* The pod of *c as its spec has it: the containers of its sandbox that are still to be created, in
 * the order of the trace. Parts of *out come from *a, strings are the node's. 0; -E2BIG, -ENOMEM
 * with text. */
static int sim_pod_spec(const struct sim_node *n, const struct container *c, struct arena *a,
	struct known_pod *out, struct err *e)
{
	struct known_pod pod = {.pod = {
					.uid = c->pod_uid,
					.ns = c->ns,
					.name = c->pod,
					.qos = c->asked.qos,
					.source = POD_FROM_KUBELET,
				}};
	size_t nr = 0;

	for (size_t i = 0; i < n->nr; i++)
		nr += is_in_pod_spec(c, n->at[i]);
	const char **name = arena_array(a, nr * POD_DEVICES_MAX, sizeof *name);
	struct ask *list = arena_array(a, nr, sizeof *list);
	if (!name || !list)
		return err_set(
			e, ENOMEM, "pod %s/%s: %zu containers are too many", c->ns, c->pod, nr);
	pod.resource = name;
	pod.nr_resources = list_pod_resources(n, c, name);
	if (pod.nr_resources > POD_DEVICES_MAX)
		return err_set(e, E2BIG, "pod %s/%s asks for more than %d resources", c->ns, c->pod,
			POD_DEVICES_MAX);
	pod.pod.container = list;
	for (size_t i = 0; i < n->nr; i++)
		if (is_in_pod_spec(c, n->at[i]))
			list[pod.pod.nr++] = ask_of_container(n->at[i], &pod);
	*out = pod;
	return 0;
}

/* Its admission */

static void admitted(void *ctx, const char *refusal)
{
	struct play *p = ctx;
	char text[REPORT_DEVICES_MAX];

	if (p->over)
		return;
	if (refusal) {
		snprintf(text, sizeof text, "by the kubelet: %s", refusal);
		play_refuse_rest(p, p->asked.c, text);
	}
	play_go_on(p);
}

static void admit_pod_of(struct play *p, const struct container *c)
{
	struct known_pod pod;
	struct arena a;

	arena_init(&a, POD_BYTES_MAX);
	int rc = sim_pod_spec(p->node, c, &a, &pod, p->e);
	if (rc)
		play_end(p, rc);
	else
		sim_kubelet_admit(p->kubelet, &pod, admitted, p);
	arena_fini(&a);
}

static void devices_changed(void *ctx)
{
	struct play *p = ctx;

	if (!p->lacks_devices || p->over || !play_kubelet_ready(p))
		return;
	p->lacks_devices = false;
	play_go_on(p);
}

static void plugin_broken(void *ctx, const char *text)
{
	struct play *p = ctx;

	if (!p->over)
		play_end(p, err_set(p->e, EPROTO, "a device plugin: %s", text));
}

int play_start_kubelet(struct play *p)
{
	const struct sim_kubelet_options o = {
		.root = p->options->kubelet_root,
		.topo = p->node->topo,
		.trace = p->script.trace,
	};
	const struct sim_kubelet_events ev = {p, devices_changed, plugin_broken};

	if (!o.root)
		return 0;
	p->pump = rpc_pump_new(p->loop, p->e);
	if (p->pump)
		p->kubelet = sim_kubelet_new(p->loop, p->pump, &o, &ev, p->e);
	p->script.has_kubelet = p->kubelet;
	return p->kubelet ? 0 : -p->e->code;
}

void play_restart_kubelet(struct play *p)
{
	int rc = p->kubelet ? sim_kubelet_restart(p->kubelet, p->e) : 0;

	if (rc)
		play_end(p, rc);
	else
		report_restart_kubelet(p->report);
}

void play_kubelet_task(struct play *p, const struct task *k)
{
	loop_timer_set(p->timer, KUBELET_TIMEOUT_MS);
	if (k->kind == TASK_ADMIT)
		admit_pod_of(p, k->c);
	else
		sim_kubelet_prepare(p->kubelet, k->c->pod_uid, k->c->name, play_go_on, p);
}

const char *play_lacks(const struct play *p)
{
	for (size_t i = 0; i < p->script.trace->nr && p->kubelet; i++) {
		const struct trace_step *s = &p->script.trace->at[i];

		for (unsigned k = 0; k < s->nr_devices; k++)
			if (!sim_kubelet_has(p->kubelet, s->device[k].resource))
				return s->device[k].resource;
	}
	return NULL;
}

bool play_kubelet_ready(const struct play *p)
{
	return !p->kubelet || (sim_kubelet_ready(p->kubelet) && !play_lacks(p));
}

int play_kubelet_is_late(const struct play *p)
{
	const struct container *c = p->asked.c;

	return err_set(p->e, ETIMEDOUT,
		p->asked.kind == TASK_ADMIT
			? "pod %s/%s: device plugins did not let it be admitted within %d s"
			: "pod %s/%s: a device plugin held its container back for %d s",
		c->ns, c->pod, KUBELET_TIMEOUT_MS / MS_PER_S);
}

size_t play_annotations(
	const struct play *p, const struct container *c, struct key_value out[PLAY_ANNOTATIONS_MAX])
{
	size_t nr = 0, room = PLAY_ANNOTATIONS_MAX - 1;

	if (c->placement)
		out[nr++] = (struct key_value){NRI_PLACEMENT_ANNOTATION, c->placement};
	if (!p->kubelet)
		return nr;
	size_t given = sim_kubelet_annotations(p->kubelet, c->pod_uid, c->name, &out[nr], room);
	return nr + (given < room ? given : room);
}

int play_check_devices(const struct play *p, const struct container *c)
{
	const struct topo *t = p->node->topo;
	unsigned on[NODES_MAX], nr = 0;

	if (p->kubelet)
		nr = sim_kubelet_devices(p->kubelet, c->pod_uid, c->name, cpu_resource, on);
	if (nr && !container_exclusive(c))
		return err_set(p->e, EINVAL, "%s/%s/%s has %u of %s, and no CPUs of its own", c->ns,
			c->pod, c->name, nr, cpu_resource);
	for (unsigned n = 0; n < t->ids.nr && nr; n++)
		if (cpuset_count_and(&c->now.cpus, &t->node[n].cpus) != on[n])
			return err_set(p->e, EINVAL,
				"%s/%s/%s has %u CPUs of NUMA node %u, and %u of %s there", c->ns,
				c->pod, c->name, cpuset_count_and(&c->now.cpus, &t->node[n].cpus),
				t->ids.id[n], on[n], cpu_resource);
	return 0;
}

void play_note_devices(const struct play *p, struct container *c)
{
	char buf[REPORT_DEVICES_MAX], nodes_text[NODESET_TEXT_MAX];
	const struct topo *t = p->node->topo;
	unsigned on[NODES_MAX];
	struct text text;

	text_init(&text, buf, sizeof buf);
	for (unsigned i = 0; i < c->nr_devices && p->kubelet; i++) {
		struct nodeset nodes = {0};
		unsigned nr = sim_kubelet_devices(
			p->kubelet, c->pod_uid, c->name, c->device[i].resource, on);

		for (unsigned n = 0; n < t->ids.nr; n++)
			if (on[n])
				nodes = nodeset_or(nodes, nodeset_of(n));
		text_add(&text, "%s%u %s of ", i ? ", " : "", nr, c->device[i].resource);
		if (nodeset_empty(nodes))
			text_add(&text, "no node");
		else
			text_add(&text, "node%s %s", text_plural(nodeset_count(nodes)),
				nodeset_format(nodes, &t->ids, nodes_text, sizeof nodes_text));
	}
	free(c->devices);
	c->devices = text.len ? xstrdup(buf) : NULL;
}
