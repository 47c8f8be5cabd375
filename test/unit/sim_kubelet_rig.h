#ifndef NUMAFIT_TEST_SIM_KUBELET_RIG_H
#define NUMAFIT_TEST_SIM_KUBELET_RIG_H

#include <numafit-sim/sim_kubelet.h>

#include <errno.h>
#include <fcntl.h>
#include <kubelet/device_plugin.h>
#include <kubelet/grpc_client.h>
#include <kubelet/pod_resources_pb.h>
#include <kubelet/registration_pb.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

/* The kubelet of numafit-sim, and a device plugin that does what a test wants. */

enum { PATIENCE_MS = 60000, NR_NODES = 4, PER_NODE = 4, PATH_BYTES = 108, TEXT_MAX = 512 };
enum { NR_TOKENS = NR_NODES * PER_NODE, LOG_MAX = 2048, ARENA_MAX = 1 << 20 };

static const char cpu[] = "numafit.io/cpu", gpu[] = "gpu.example/gpu";

/* A plugin of numafit.io/cpu with four devices on each node, "t-NODE-NUMBER". */
struct peer {
	struct rig *rig;
	struct rpc_server *server;
	struct acceptor *door;
	struct device_plugin *plugin;
	char path[PATH_BYTES], id[NR_TOKENS][16];
	struct plugin_device device[NR_TOKENS];
	size_t nr;
	bool prefers_too_few, prefers_first_again, refuses;
	unsigned not_yet; /* times that PreStartContainer fails */
	unsigned nr_preferred, nr_allocated, nr_started, watched;
	char log[LOG_MAX]; /* ids of each Allocate, ended by ';' */
};

struct rig {
	struct loop *loop;
	struct loop_timer *deadline;
	struct rpc_pump *pump;
	struct sim_kubelet *kubelet;
	char root[64], plugins[80];
	struct topo topo;
	struct trace trace;
	struct peer peer[2];
	unsigned nr_changed, nr_done, nr_broken;
	char refusal[TEXT_MAX], broken[TEXT_MAX], reply[TEXT_MAX];
	bool refused;
};

/* Callbacks stop the loop, so that the condition is looked at again. */
#define UNTIL(r, condition)                                                                        \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((r)->loop);                                                       \
	} while (0)

static inline void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", PATIENCE_MS);
}

/* The plugin */

static inline int peer_devices(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	struct peer *p = ctx;

	(void)a, (void)e;
	*out = p->device;
	*nr = p->nr;
	return 0;
}

/* What it must, and then the last ones: not what the kubelet would take by itself. */
static inline size_t peer_prefer(
	void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out)
{
	struct peer *p = ctx;
	size_t nr = 0;

	(void)a;
	p->nr_preferred++;
	if (p->prefers_first_again && p->nr_preferred > 1) {
		for (; nr < ask->size; nr++)
			out[nr] = ask->available.id[nr];
		return nr;
	}
	while (nr < ask->must_include.nr && nr < ask->size) {
		out[nr] = ask->must_include.id[nr];
		nr++;
	}
	for (size_t i = ask->available.nr; i-- > 0 && nr < ask->size;) {
		bool there = false;

		for (size_t k = 0; k < ask->must_include.nr; k++)
			there = there || text_equal(out[k], ask->available.id[i]);
		if (!there)
			out[nr++] = ask->available.id[i];
	}
	return p->prefers_too_few ? nr - 1 : nr;
}

static inline int peer_allocate(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	struct peer *p = ctx;
	struct text t = {.at = p->log, .cap = sizeof p->log, .len = strlen(p->log)};
	struct key_value *note = arena_alloc(a, sizeof *note);
	char value[32];

	if (p->refuses)
		return err_set(e, EAGAIN, "not today");
	for (size_t i = 0; i < ids->nr; i++)
		text_add(&t, "%s%s", i ? "," : "", ids->id[i]);
	text_add(&t, ";");
	snprintf(value, sizeof value, "lease-%u", ++p->nr_allocated);
	*note = (struct key_value){"numafit.io/allocated", arena_strndup(a, value, strlen(value))};
	*out = (struct allocate_answer){.annotation = note, .nr_annotations = 1};
	return 0;
}

static inline int peer_pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	struct peer *p = ctx;

	(void)ids;
	p->nr_started++;
	if (!p->not_yet)
		return 0;
	p->not_yet--;
	return err_set(e, EAGAIN, "not yet");
}

static inline void peer_watched(void *ctx, unsigned nr_streams)
{
	struct peer *p = ctx;

	p->watched = nr_streams;
	loop_stop(p->rig->loop);
}

static const struct device_plugin_handler peer_handler = {
	.devices = peer_devices,
	.prefer = peer_prefer,
	.allocate = peer_allocate,
	.pre_start = peer_pre_start,
	.watched = peer_watched,
};

static inline void on_reply(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
}

static inline void on_registered(void *ctx, enum rpc_code code, const char *text)
{
	struct rig *r = ctx;

	snprintf(r->reply, sizeof r->reply, "%d %s", code, text);
	loop_stop(r->loop);
}

/* Register; the answer is in r->reply. */
static inline void register_as(struct rig *r, const char *endpoint, const char *resource)
{
	const struct plugin_registration what = {.endpoint = endpoint, .resource = resource};
	char path[PATH_BYTES];
	struct blob bytes;
	struct arena a;
	struct err e;

	arena_init(&a, ARENA_MAX);
	snprintf(path, sizeof path, "%s/kubelet.sock", r->plugins);
	assert_int_equal(registration_encode(&what, &a, &bytes, NULL), 0);
	const struct rpc_request call = {
		path, REGISTRATION_REGISTER_PATH, RPC_UNARY, bytes.data, bytes.len, PATIENCE_MS};
	const struct rpc_call_events ev = {r, on_reply, on_registered};
	r->reply[0] = '\0';
	if (!rpc_call_start(r->pump, &call, &ev, &e))
		fail_msg("%s", e.text);
	UNTIL(r, r->reply[0]);
	arena_fini(&a);
}

static inline void peer_open(struct rig *r, unsigned nr)
{
	const struct rpc_server_options options = {.request_max = ARENA_MAX};
	struct peer *p = &r->peer[nr];
	static struct device_plugin_handler handlers[2];

	handlers[nr] = peer_handler;
	handlers[nr].ctx = p;
	p->rig = r;
	p->nr = NR_TOKENS;
	for (unsigned i = 0; i < NR_TOKENS; i++) {
		snprintf(p->id[i], sizeof p->id[i], "t-%u-%u", i / PER_NODE, i % PER_NODE);
		p->device[i] = (struct plugin_device){p->id[i], true, (int)(i / PER_NODE)};
	}
	snprintf(p->path, sizeof p->path, "%s/peer-%u.sock", r->plugins, nr);
	p->server = rpc_server_new(r->pump, &options);
	p->plugin = device_plugin_new(p->server, &handlers[nr]);
	p->door = rpc_server_listen(p->server, p->path, NULL);
	assert_non_null(p->door);
}

static inline void peer_close(struct peer *p)
{
	acceptor_close(p->door);
	rpc_server_free(p->server);
	device_plugin_free(p->plugin);
	*p = (struct peer){.rig = p->rig};
}

/* A plugin that is registered and whose devices are known. */
static inline struct peer *peer_up(struct rig *r)
{
	unsigned changed = r->nr_changed;

	peer_open(r, 0);
	register_as(r, "peer-0.sock", cpu);
	assert_string_equal(r->reply, "0 ");
	UNTIL(r, r->nr_changed > changed);
	return &r->peer[0];
}

/* The kubelet */

static inline void on_changed(void *ctx)
{
	struct rig *r = ctx;

	r->nr_changed++;
	loop_stop(r->loop);
}

static inline void on_broken(void *ctx, const char *text)
{
	struct rig *r = ctx;

	r->nr_broken++;
	snprintf(r->broken, sizeof r->broken, "%s", text);
	loop_stop(r->loop);
}

static inline void open_kubelet(struct rig *r)
{
	const struct sim_kubelet_options o = {r->root, &r->topo, &r->trace, 1};
	const struct sim_kubelet_events ev = {r, on_changed, on_broken};
	struct err e;

	r->kubelet = sim_kubelet_new(r->loop, r->pump, &o, &ev, &e);
	if (!r->kubelet)
		fail_msg("%s", e.text);
}

static inline void make_machine(struct topo *t)
{
	topo_init(t, "test");
	for (unsigned n = 0; n < NR_NODES; n++) {
		assert_int_equal(topo_add_node(t, n, NULL), (int)n);
		for (unsigned i = 0; i < PER_NODE; i++)
			assert_int_equal(
				topo_add_cpu(t, n * PER_NODE + i, n, n * PER_NODE + i, 0, n, NULL),
				0);
		assert_int_equal(topo_set_memory(t, n, 0, UINT64_C(16) << 30, NULL), 0);
	}
	assert_int_equal(topo_seal(t, NULL), 0);
}

/* Two GPUs on node 1 and two on node 3; the policy is restricted. */
static inline int rig_up(void **state)
{
	static const char text[] = "kubelet:\n"
				   "  topologyManagerPolicy: restricted\n"
				   "  devices: [{resource: gpu.example/gpu, node: 1, count: 2},\n"
				   "            {resource: gpu.example/gpu, node: 3, count: 2}]\n"
				   "steps:\n- restart-runtime\n";
	struct rig *r = xcalloc(1, sizeof *r);
	const char *tmp = getenv("TMPDIR");
	struct err e;

	make_machine(&r->topo);
	if (trace_yaml_read(&r->trace, text, sizeof text - 1, &e) < 0)
		fail_msg("%s", e.text);
	snprintf(r->root, sizeof r->root, "%.40s/numafit-sim.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(r->root));
	snprintf(r->plugins, sizeof r->plugins, "%s/device-plugins", r->root);
	r->loop = loop_new();
	r->deadline = loop_timer_new(r->loop, too_late, NULL);
	loop_timer_set(r->deadline, PATIENCE_MS);
	r->pump = rpc_pump_new(r->loop, &e);
	assert_non_null(r->pump);
	open_kubelet(r);
	UNTIL(r, sim_kubelet_ready(r->kubelet));
	*state = r;
	return 0;
}

static inline int rig_down(void **state)
{
	static const char *const directories[] = {
		"device-plugins", "pod-resources", "pods-api", ""};
	struct rig *r = *state;
	char path[PATH_BYTES];

	sim_kubelet_free(r->kubelet);
	for (unsigned i = 0; i < 2; i++)
		if (r->peer[i].server)
			peer_close(&r->peer[i]);
	rpc_pump_free(r->pump);
	loop_free(r->loop);
	for (unsigned i = 0; i < sizeof directories / sizeof *directories; i++) {
		snprintf(path, sizeof path, "%s/%s", r->root, directories[i]);
		assert_int_equal(rmdir(path), 0); /* its sockets are gone */
	}
	trace_fini(&r->trace);
	free(r);
	return 0;
}

#define ON_RIG(test) cmocka_unit_test_setup_teardown(test, rig_up, rig_down)

/* Pods */

static inline void on_admitted(void *ctx, const char *refusal)
{
	struct rig *r = ctx;

	r->nr_done++;
	r->refused = refusal;
	snprintf(r->refusal, sizeof r->refusal, "%s", refusal ? refusal : "");
	loop_stop(r->loop);
}

static inline void admit_containers(
	struct rig *r, const char *name, const struct ask *container, unsigned nr)
{
	static const char *const resources[] = {gpu, cpu};
	const struct known_pod pod = {
		.pod = {.uid = name, .ns = "ml", .name = name, .nr = nr, .container = container},
		.resource = resources,
		.nr_resources = 2,
	};
	unsigned done = r->nr_done;

	sim_kubelet_admit(r->kubelet, &pod, on_admitted, r);
	UNTIL(r, r->nr_done > done);
}

/* A pod with one container "main" that asks for so many of each. */
static inline void admit(struct rig *r, const char *name, unsigned gpus, unsigned cpus)
{
	struct ask c = {
		.name = "main", .cpu_milli = 1000, .nr_memory = 1, .memory = {{0, 1 << 20}}};

	if (gpus)
		c.device[c.nr_devices++] = (struct device_ask){0, gpus};
	if (cpus)
		c.device[c.nr_devices++] = (struct device_ask){1, cpus};
	admit_containers(r, name, &c, 1);
}

static inline void assert_on(struct rig *r, const char *pod, const char *container,
	const char *resource, const char *want)
{
	unsigned on[NODES_MAX];
	char got[64];
	struct text t;

	(void)sim_kubelet_devices(r->kubelet, pod, container, resource, on);
	text_init(&t, got, sizeof got);
	for (unsigned n = 0; n < NR_NODES; n++)
		text_add(&t, "%s%u", n ? " " : "", on[n]);
	assert_string_equal(got, want);
}

/* What clients of the other two services see. */
struct client {
	struct rig *r;
	struct arena a;
	struct pods_held held;
	struct devices_allocatable allocatable;
	unsigned nr_events, nr_ended;
	struct {
		enum pods_event_type type;
		struct known_pod pod;
	} event[8];
};

static inline void on_client_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct client *c = ctx;

	(void)code, (void)text;
	c->nr_ended++;
	loop_stop(c->r->loop);
}

static inline struct rpc_call *call(struct client *c, const char *socket, const char *method,
	enum rpc_kind kind, void (*message)(void *ctx, const void *data, size_t len))
{
	const struct rpc_call_events ev = {c, message, on_client_ended};
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", c->r->root, socket);
	const struct rpc_request request = {path, method, kind, "", 0, 0};
	struct rpc_call *started = rpc_call_start(c->r->pump, &request, &ev, NULL);
	assert_non_null(started);
	return started;
}

#endif
