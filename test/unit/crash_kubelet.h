#ifndef NUMAFIT_TEST_CRASH_KUBELET_H
#define NUMAFIT_TEST_CRASH_KUBELET_H

#include <kubelet/device_manager_pb.h>
#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>
#include <kubelet/pod_resources_server_pb.h>
#include <kubelet/pods_server_pb.h>
#include <kubelet/registration_pb.h>
#include <nri/session.h>
#include <numafit/leases.h>
#include <numafit/mem.h>
#include <numafit/vec.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A kubelet that lives on while its device plugin dies and comes back: it takes registrations,
 * watches the devices, allocates them, and answers PodResources and the Pods API. It knows which
 * devices are given out, and fails when one of them is missing in a list, or not healthy. */

enum {
	KUBELET_MEMORY_MAX = 16 << 20,
	TOKENS_MAX = 128,
	GIVEN_MAX = 4, /* tokens of one container */
	WATCHERS_MAX = 4
};

struct plugin_token {
	char id[TOKEN_ID_MAX];
	int node; /* kernel id */
	bool healthy, given;
};

/* What a pod's only container has been given. */
struct given {
	unsigned nr, token[GIVEN_MAX]; /* indexes, ascending */
};

struct crash_kubelet;
struct crash_kubelet_events {
	void *ctx;
	/* all mandatory: there is a first list in this life of the plugin, */
	void (*listed)(void *ctx);
	/* an Allocate has ended, with its annotation or without (the plugin said no, or died), */
	void (*allocated)(void *ctx, const char *annotation, enum rpc_code code, const char *text);
	/* the plugin has died and nothing waits for it any more, */
	void (*lost)(void *ctx);
	/* pod nr as PodResources shows it, and as the Pods API does: false when there is none */
	bool (*held)(void *ctx, unsigned nr, const char **pod, const struct given **given);
	bool (*shown)(void *ctx, unsigned nr, struct known_pod *pod);
};

struct pods_watcher {
	struct rpc *r; /* NULL: free */
	bool busy;
	VEC(struct blob); /* owned */
};

struct crash_kubelet {
	struct loop *loop;
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct acceptor *plugins_door, *resources_door, *pods_door;
	struct crash_kubelet_events events;
	unsigned nr_pods; /* at most */
	pid_t pid;        /* of the plugin that lives */
	char root[PATH_MAX], plugins[PATH_MAX + 64], plugin[2 * PATH_MAX];
	struct rpc *registering;
	struct rpc_call *options, *watch, *allocate;
	char annotation[LEASE_TEXT_MAX];
	bool listed;
	unsigned nr_tokens, nr_lists;
	unsigned answer_ms; /* so long PodResources takes for an answer */
	struct rpc *listing;
	struct loop_timer *late;
	struct plugin_token token[TOKENS_MAX];
	struct pods_watcher watcher[WATCHERS_MAX];
};

static inline void crash_kubelet_lost(struct crash_kubelet *k)
{
	if (!k->registering && !k->options && !k->watch && !k->allocate)
		k->events.lost(k->events.ctx);
}

static inline bool crash_kubelet_has_plugin(const struct crash_kubelet *k)
{
	return k->registering || k->options || k->watch || k->allocate;
}

/* The list of devices */

static inline void take_first_list(
	struct crash_kubelet *k, const struct plugin_device *device, size_t nr)
{
	assert_true(nr > 0 && nr <= TOKENS_MAX);
	k->nr_tokens = (unsigned)nr;
	for (size_t i = 0; i < nr; i++) {
		assert_true(text_copy(k->token[i].id, sizeof k->token[i].id, device[i].id));
		k->token[i].node = device[i].node;
	}
}

static inline void take_list(void *ctx, const void *data, size_t len)
{
	struct crash_kubelet *k = ctx;
	struct plugin_device *device;
	struct arena a;
	struct err e;
	size_t nr;
	bool first = !k->listed;

	arena_init(&a, KUBELET_MEMORY_MAX);
	if (device_list_decode((struct blob){data, len}, &a, &device, &nr, &e) < 0)
		fail_msg("%s", e.text);
	if (!k->nr_tokens)
		take_first_list(k, device, nr);
	assert_int_equal(nr, k->nr_tokens); /* the same ids whatever happens */
	for (unsigned i = 0; i < nr; i++) {
		struct plugin_token *t = &k->token[i];

		assert_string_equal(t->id, device[i].id);
		assert_int_equal(t->node, device[i].node);
		t->healthy = device[i].healthy;
		if (t->given && !t->healthy)
			fail_msg("token %s is given out, and list %u of this life of numafitd has "
				 "it Unhealthy",
				t->id, k->nr_lists);
	}
	arena_fini(&a);
	k->listed = true;
	k->nr_lists++;
	if (first)
		k->events.listed(k->events.ctx);
}

static inline void watch_over(void *ctx, enum rpc_code code, const char *text)
{
	struct crash_kubelet *k = ctx;

	(void)code, (void)text;
	k->watch = NULL;
	crash_kubelet_lost(k);
}

/* Registration */

static inline void ignore_bytes(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
}

static inline struct rpc_call *call_plugin(struct crash_kubelet *k, const char *method,
	enum rpc_kind kind, struct blob request, void (*message)(void *, const void *, size_t),
	void (*ended)(void *, enum rpc_code, const char *))
{
	const struct rpc_request r = {.socket = k->plugin,
		.method = method,
		.kind = kind,
		.data = request.data,
		.len = request.len};
	const struct rpc_call_events events = {k, message, ended};

	return rpc_call_start(k->pump, &r, &events, NULL); /* NULL: it is dead */
}

static inline void options_came(void *ctx, enum rpc_code code, const char *text)
{
	struct crash_kubelet *k = ctx;

	k->options = NULL;
	if (code != RPC_OK) {
		rpc_end(steal(k->registering), RPC_UNKNOWN, text);
		crash_kubelet_lost(k);
		return;
	}
	rpc_answer(steal(k->registering), "", 0);
	k->watch = call_plugin(k, DEVICE_PLUGIN_PATH("ListAndWatch"), RPC_STREAM, (struct blob){0},
		take_list, watch_over);
	crash_kubelet_lost(k);
}

static inline void plugin_registers(void *ctx, struct rpc *r, const void *data, size_t len)
{
	struct crash_kubelet *k = ctx;
	struct plugin_registration plugin;
	char ours[32];
	struct arena a;
	struct err e;

	arena_init(&a, KUBELET_MEMORY_MAX);
	if (registration_decode((struct blob){data, len}, &a, &plugin, &e) < 0)
		fail_msg("%s", e.text);
	(void)snprintf(ours, sizeof ours, "numafit-%d-", (int)k->pid);
	if (strncmp(plugin.endpoint, ours, strlen(ours)) != 0) { /* of one that is dead */
		rpc_end(r, RPC_UNKNOWN, "it is gone");
		arena_fini(&a);
		return;
	}
	assert_string_equal(plugin.resource, TOKEN_RESOURCE);
	assert_null(k->registering);
	assert_null(k->watch);
	(void)unlink(k->plugin); /* of the life before */
	(void)snprintf(k->plugin, sizeof k->plugin, "%s/%s", k->plugins, plugin.endpoint);
	arena_fini(&a);
	k->registering = r;
	k->options = call_plugin(k, DEVICE_PLUGIN_PATH("GetDevicePluginOptions"), RPC_UNARY,
		(struct blob){0}, ignore_bytes, options_came);
	if (!k->options)
		rpc_end(steal(k->registering), RPC_UNKNOWN, "it is gone");
}

/* Allocate */

static inline void allocation_came(void *ctx, const void *data, size_t len)
{
	struct crash_kubelet *k = ctx;
	const struct allocate_answer *answer;
	struct arena a;
	struct err e;
	size_t nr;

	arena_init(&a, KUBELET_MEMORY_MAX);
	if (allocate_response_decode((struct blob){data, len}, &a, &answer, &nr, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(nr, 1);
	assert_int_equal(answer->nr_annotations, 1);
	assert_string_equal(answer->annotation->key, NRI_ALLOCATED_ANNOTATION);
	assert_true(text_copy(k->annotation, sizeof k->annotation, answer->annotation->value));
	arena_fini(&a);
}

static inline void allocation_over(void *ctx, enum rpc_code code, const char *text)
{
	struct crash_kubelet *k = ctx;

	k->allocate = NULL;
	k->events.allocated(k->events.ctx, code == RPC_OK ? k->annotation : NULL, code, text);
	crash_kubelet_lost(k);
}

/* allocated() comes, now or later. */
static inline void crash_kubelet_allocate(struct crash_kubelet *k, const struct given *g)
{
	const char *id[GIVEN_MAX];
	const struct device_ids ids = {id, g->nr};
	const struct allocate_request request = {&ids, 1};
	struct blob message;
	struct arena a;

	for (unsigned i = 0; i < g->nr; i++)
		id[i] = k->token[g->token[i]].id;
	arena_init(&a, KUBELET_MEMORY_MAX);
	assert_int_equal(allocate_request_encode(&request, &a, &message, NULL), 0);
	k->allocate = call_plugin(k, DEVICE_PLUGIN_PATH("Allocate"), RPC_UNARY, message,
		allocation_came, allocation_over);
	arena_fini(&a);
	if (!k->allocate)
		k->events.allocated(k->events.ctx, NULL, RPC_UNAVAILABLE, "it is gone");
}

/* PodResources */

static inline struct pod_held show_held(
	const struct crash_kubelet *k, const char *pod, const struct given *g, struct arena *a)
{
	struct held_device *device = arena_array(a, GIVEN_MAX, sizeof *device);
	struct container_held *c = arena_alloc(a, sizeof *c);
	int64_t *node = arena_array(a, GIVEN_MAX, sizeof *node);

	for (unsigned i = 0; i < g->nr; i++) {
		const struct plugin_token *t = &k->token[g->token[i]];

		node[i] = t->node;
		device[i] = (struct held_device){TOKEN_RESOURCE, t->id, true, {&node[i], 1}};
	}
	*c = (struct container_held){.name = "main", .device = device, .nr_devices = g->nr};
	return (struct pod_held){.ns = "default", .name = pod, .container = c, .nr = 1};
}

static inline void answer_list(struct crash_kubelet *k, struct rpc *r)
{
	struct pods_held held = {0};
	struct blob message;
	struct arena a;

	arena_init(&a, KUBELET_MEMORY_MAX);
	struct pod_held *list = arena_array(&a, k->nr_pods, sizeof *list);
	for (unsigned i = 0; i < k->nr_pods; i++) {
		const struct given *g;
		const char *pod;

		if (k->events.held(k->events.ctx, i, &pod, &g))
			list[held.nr++] = show_held(k, pod, g, &a);
	}
	held.pod = list;
	assert_int_equal(pod_resources_list_encode(&held, &a, &message, NULL), 0);
	rpc_answer(r, message.data, message.len);
	arena_fini(&a);
}

static inline void answer_late(void *ctx)
{
	struct crash_kubelet *k = ctx;

	answer_list(k, steal(k->listing));
}

static inline void list_pods(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct crash_kubelet *k = ctx;

	(void)request, (void)len;
	if (k->listing) { /* of one that is dead */
		loop_timer_stop(k->late);
		answer_list(k, steal(k->listing));
	}
	if (!k->answer_ms) {
		answer_list(k, r);
		return;
	}
	k->listing = r;
	loop_timer_set(k->late, k->answer_ms);
}

/* The Pods API */

static inline void send_event(struct pods_watcher *w)
{
	if (w->busy || !w->nr)
		return;
	auto_free void *owned = (void *)(uintptr_t)w->at[0].data;
	w->busy = rpc_send(w->r, owned, w->at[0].len) == 0;
	vec_remove(w, 0);
}

static inline void queue_event(
	struct pods_watcher *w, enum pods_event_type type, const struct known_pod *pod)
{
	struct pods_event event = {.type = type};
	struct blob bytes;
	struct arena a;

	arena_init(&a, KUBELET_MEMORY_MAX);
	if (pod)
		assert_int_equal(pods_pod_encode(pod, &a, &event.pod, NULL), 0);
	assert_int_equal(pods_event_encode(&event, &a, &bytes, NULL), 0);
	void *copy = xcalloc(1, bytes.len);
	memcpy(copy, bytes.data, bytes.len);
	*vec_push(w) = (struct blob){copy, bytes.len};
	arena_fini(&a);
	send_event(w);
}

static inline void crash_kubelet_send(
	struct crash_kubelet *k, enum pods_event_type type, const struct known_pod *pod)
{
	for (struct pods_watcher *w = k->watcher; w < k->watcher + WATCHERS_MAX; w++)
		if (w->r)
			queue_event(w, type, pod);
}

static inline void pods_watched(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct crash_kubelet *k = ctx;
	struct pods_watcher *w = k->watcher;
	struct known_pod pod;

	(void)request, (void)len;
	while (w < k->watcher + WATCHERS_MAX && w->r)
		w++;
	assert_true(w < k->watcher + WATCHERS_MAX);
	*w = (struct pods_watcher){.r = r};
	for (unsigned i = 0; i < k->nr_pods; i++)
		if (k->events.shown(k->events.ctx, i, &pod))
			queue_event(w, PODS_ADDED, &pod);
	queue_event(w, PODS_SYNCED, NULL);
}

static inline struct pods_watcher *watcher_of(struct crash_kubelet *k, const struct rpc *r)
{
	struct pods_watcher *w = k->watcher;

	while (w->r != r)
		w++;
	return w;
}

static inline void event_left(void *ctx, struct rpc *r)
{
	struct pods_watcher *w = watcher_of(ctx, r);

	w->busy = false;
	send_event(w);
}

static inline void free_events(struct pods_watcher *w)
{
	for (size_t i = 0; i < w->nr; i++)
		free((void *)(uintptr_t)w->at[i].data);
	vec_fini(w);
	*w = (struct pods_watcher){0};
}

static inline void watcher_gone(void *ctx, struct rpc *r)
{
	free_events(watcher_of(ctx, r));
}

/* All of it */

static const struct rpc_method crash_kubelet_methods[] = {
	{.path = REGISTRATION_REGISTER_PATH, .kind = RPC_UNARY, .called = plugin_registers},
	{.path = POD_RESOURCES_PATH("List"), .kind = RPC_UNARY, .called = list_pods},
	{.path = PODS_WATCH_PATH,
		.kind = RPC_STREAM,
		.called = pods_watched,
		.sendable = event_left,
		.closed = watcher_gone},
};

static inline struct acceptor *open_kubelet_door(
	struct crash_kubelet *k, const char *directory, const char *name)
{
	char path[2 * PATH_MAX];
	struct err e = {0};

	(void)snprintf(path, sizeof path, "%s/%s", k->root, directory);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/%s/%s", k->root, directory, name);
	struct acceptor *door = rpc_server_listen(k->server, path, &e);
	assert_string_equal(e.text, "");
	return door;
}

static inline void crash_kubelet_init(struct crash_kubelet *k, struct loop *l, const char *root,
	unsigned nr_pods, const struct crash_kubelet_events *events)
{
	const struct rpc_server_options options = {.request_max = DEVICE_PLUGIN_MESSAGE_MAX};

	*k = (struct crash_kubelet){.loop = l, .events = *events, .nr_pods = nr_pods};
	assert_true(text_copy(k->root, sizeof k->root, root));
	(void)snprintf(k->plugins, sizeof k->plugins, "%s/device-plugins", root);
	assert_int_equal(mkdir(root, 0700), 0);
	k->pump = rpc_pump_new(l, NULL);
	k->late = loop_timer_new(l, answer_late, k);
	k->server = rpc_server_new(k->pump, &options);
	rpc_server_add(k->server, crash_kubelet_methods,
		sizeof crash_kubelet_methods / sizeof *crash_kubelet_methods, k);
	k->plugins_door = open_kubelet_door(k, "device-plugins", "kubelet.sock");
	k->resources_door = open_kubelet_door(k, "pod-resources", "kubelet.sock");
	k->pods_door = open_kubelet_door(k, "pods-api", "pods-api.sock");
}

static inline void crash_kubelet_fini(struct crash_kubelet *k)
{
	acceptor_close(k->plugins_door);
	acceptor_close(k->resources_door);
	acceptor_close(k->pods_door);
	loop_timer_close(k->late);
	if (k->listing)
		answer_list(k, steal(k->listing));
	rpc_server_free(k->server);
	for (struct pods_watcher *w = k->watcher; w < k->watcher + WATCHERS_MAX; w++)
		free_events(w);
	rpc_pump_free(k->pump);
}

#endif
