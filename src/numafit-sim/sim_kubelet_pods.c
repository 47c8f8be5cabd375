#include <numafit-sim/sim_kubelet_state.h>

#include <errno.h>
#include <kubelet/pod_resources_server_pb.h>
#include <kubelet/pods_server_pb.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

/* PodResources and the Pods API. */

/* What pods hold */

static int compare_held(const void *a, const void *b)
{
	const struct held_device *x = a, *y = b;
	int rc = strcmp(x->resource, y->resource);

	return rc ? rc : strcmp(x->id, y->id);
}

static struct held_device held_device_of(
	const struct sim_kubelet *k, unsigned row, const char *id, struct arena *a)
{
	const struct device_row *from = &k->table.row[row];
	const struct node_ids *ids = &k->o.topo->ids;
	struct held_device d = {.resource = from->name, .id = id};
	int64_t *node = arena_array(a, ids->nr, sizeof *node);
	int i = device_row_find(from, id);

	if (i < 0 || !node)
		return d;
	d.has_topology = from->device[i].has_topology;
	d.nodes.id = node;
	nodeset_each (n, from->device[i].nodes)
		node[d.nodes.nr++] = ids->id[n];
	return d;
}

static struct container_held container_held_of(
	const struct sim_kubelet *k, const struct sim_pod *p, unsigned container, struct arena *a)
{
	struct container_held c = {.name = p->spec.pod.container[container].name};
	size_t room = 0;

	for (size_t g = 0; g < p->given.nr; g++)
		room += p->given.at[g].container == container ? p->given.at[g].ids.nr : 0;
	struct held_device *list = arena_array(a, room, sizeof *list);
	for (size_t g = 0; g < p->given.nr && list; g++)
		for (size_t i = 0; i < p->given.at[g].ids.nr; i++)
			if (p->given.at[g].container == container)
				list[c.nr_devices++] = held_device_of(
					k, p->given.at[g].row, p->given.at[g].ids.id[i], a);
	if (c.nr_devices)
		qsort(list, c.nr_devices, sizeof *list, compare_held);
	c.device = list;
	return c;
}

/* Plain init containers are never shown. */
static struct pod_held pod_held_of(
	const struct sim_kubelet *k, const struct sim_pod *p, struct arena *a)
{
	const struct pod *ask = &p->spec.pod;
	struct container_held *list = arena_array(a, ask->nr, sizeof *list);
	struct pod_held held = {.ns = p->spec.pod.ns, .name = p->spec.pod.name, .container = list};

	for (unsigned i = 0; i < ask->nr && list; i++)
		if (ask->container[i].kind != CONTAINER_INIT)
			list[held.nr++] = container_held_of(k, p, i, a);
	return held;
}

static void answer_rpc(struct rpc *r, int rc, struct blob message, const struct err *e)
{
	if (rc)
		rpc_end(r, RPC_UNKNOWN, e->text);
	else
		rpc_answer(r, message.data, message.len);
}

static void on_list_call(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct sim_kubelet *k = ctx;
	struct pods_held held = {0};
	struct blob message;
	struct arena a;
	struct err e;

	(void)request, (void)len;
	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	struct pod_held *list = arena_array(&a, k->table.nr, sizeof *list);
	for (size_t i = 0; i < k->table.nr && list; i++)
		list[held.nr++] = pod_held_of(k, k->table.at[i], &a);
	held.pod = list;
	answer_rpc(r, pod_resources_list_encode(&held, &a, &message, &e), message, &e);
	arena_fini(&a);
	k->nr_lists++;
	sim_kubelet_visited(k);
}

/* What can be given out: the healthy devices, held or not. */
static void on_allocatable_call(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct sim_kubelet *k = ctx;
	struct devices_allocatable all = {0};
	struct blob message;
	size_t room = 0;
	struct arena a;
	struct err e;

	(void)request, (void)len;
	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	for (unsigned row = 0; row < k->table.nr_rows; row++)
		room += k->table.row[row].nr;
	struct held_device *list = arena_array(&a, room, sizeof *list);
	for (unsigned row = 0; row < k->table.nr_rows && list; row++)
		for (unsigned i = 0; i < k->table.row[row].nr; i++)
			if (k->table.row[row].device[i].healthy)
				list[all.nr++] =
					held_device_of(k, row, k->table.row[row].device[i].id, &a);
	all.device = list;
	answer_rpc(r, pod_resources_allocatable_encode(&all, &a, &message, &e), message, &e);
	arena_fini(&a);
}

/* Watches of pods */

static void free_message(struct blob message)
{
	free((void *)(uintptr_t)message.data);
}

static void watcher_send_next(struct watcher *w)
{
	while (!w->busy && w->nr) {
		struct blob next = w->at[0];

		vec_remove(w, 0);
		w->busy = rpc_send(w->r, next.data, next.len) == 0;
		free_message(next);
	}
}

static void watcher_send(struct watcher *w, enum pods_event_type type, const struct known_pod *pod)
{
	struct pods_event event = {.type = type};
	struct blob bytes;
	struct arena a;

	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	if ((!pod || pods_pod_encode(pod, &a, &event.pod, NULL) == 0) &&
		pods_event_encode(&event, &a, &bytes, NULL) == 0) {
		void *copy = xcalloc(bytes.len + 1, 1);

		memcpy(copy, bytes.data, bytes.len);
		*vec_push(w) = (struct blob){copy, bytes.len};
	}
	arena_fini(&a);
	watcher_send_next(w);
}

void sim_kubelet_send_event(
	struct sim_kubelet *k, enum pods_event_type type, const struct known_pod *pod)
{
	for (size_t i = 0; i < k->watchers.nr; i++)
		watcher_send(k->watchers.at[i], type, pod);
}

static void on_watch_call(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct sim_kubelet *k = ctx;
	struct watcher *w = xcalloc(1, sizeof *w);

	(void)request, (void)len;
	w->r = r;
	*vec_push(&k->watchers) = w;
	for (size_t i = 0; i < k->table.nr; i++)
		if (k->table.at[i]->admitted)
			watcher_send(w, PODS_ADDED, &k->table.at[i]->spec);
	watcher_send(w, PODS_SYNCED, NULL);
	sim_kubelet_visited(k);
}

static struct watcher *watcher_of(const struct sim_kubelet *k, const struct rpc *r)
{
	size_t i = 0;

	while (k->watchers.at[i]->r != r)
		i++;
	return k->watchers.at[i];
}

static void on_pods_watch_sendable(void *ctx, struct rpc *r)
{
	struct watcher *w = watcher_of(ctx, r);

	w->busy = false;
	watcher_send_next(w);
}

static void free_watcher(struct watcher *w)
{
	for (size_t i = 0; i < w->nr; i++)
		free_message(w->at[i]);
	vec_fini(w);
	free(w);
}

static void on_pods_watch_closed(void *ctx, struct rpc *r)
{
	struct sim_kubelet *k = ctx;
	struct watcher *w = watcher_of(k, r);

	for (size_t i = 0; i < k->watchers.nr; i++)
		if (k->watchers.at[i] == w)
			vec_remove(&k->watchers, i--);
	free_watcher(w);
}

void sim_kubelet_end_watches(struct sim_kubelet *k)
{
	for (size_t i = 0; i < k->watchers.nr; i++)
		rpc_end(k->watchers.at[i]->r, RPC_UNAVAILABLE, NULL);
}

void sim_kubelet_drop_watches(struct sim_kubelet *k)
{
	for (size_t i = 0; i < k->watchers.nr; i++)
		free_watcher(k->watchers.at[i]);
	vec_fini(&k->watchers);
}

void sim_kubelet_serve_pods(struct sim_kubelet *k)
{
	static const struct rpc_method methods[] = {
		{.path = POD_RESOURCES_PATH("List"), .kind = RPC_UNARY, .called = on_list_call},
		{.path = POD_RESOURCES_PATH("GetAllocatableResources"),
			.kind = RPC_UNARY,
			.called = on_allocatable_call},
		{PODS_WATCH_PATH, RPC_STREAM, on_watch_call, on_pods_watch_sendable,
			on_pods_watch_closed},
	};

	rpc_server_add(k->server, methods, sizeof methods / sizeof *methods, k);
}
