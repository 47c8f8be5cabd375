/* The simulated kubelet against a device plugin of ours, over real sockets, with made-up devices of
 * somebody else's beside it. */
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

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", PATIENCE_MS);
}

/* The plugin */

static int peer_devices(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	struct peer *p = ctx;

	(void)a, (void)e;
	*out = p->device;
	*nr = p->nr;
	return 0;
}

/* What it must, and then the last ones: not what the kubelet would take by itself. */
static size_t peer_prefer(
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

static int peer_allocate(void *ctx, const struct device_ids *ids, struct arena *a,
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

static int peer_pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	struct peer *p = ctx;

	(void)ids;
	p->nr_started++;
	if (!p->not_yet)
		return 0;
	p->not_yet--;
	return err_set(e, EAGAIN, "not yet");
}

static void peer_watched(void *ctx, unsigned nr_streams)
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

static void on_reply(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
}

static void on_registered(void *ctx, enum rpc_code code, const char *text)
{
	struct rig *r = ctx;

	snprintf(r->reply, sizeof r->reply, "%d %s", code, text);
	loop_stop(r->loop);
}

/* Register; the answer is in r->reply. */
static void register_as(struct rig *r, const char *endpoint, const char *resource)
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

static void peer_open(struct rig *r, unsigned nr)
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

static void peer_close(struct peer *p)
{
	acceptor_close(p->door);
	rpc_server_free(p->server);
	device_plugin_free(p->plugin);
	*p = (struct peer){.rig = p->rig};
}

/* A plugin that is registered and whose devices are known. */
static struct peer *peer_up(struct rig *r)
{
	unsigned changed = r->nr_changed;

	peer_open(r, 0);
	register_as(r, "peer-0.sock", cpu);
	assert_string_equal(r->reply, "0 ");
	UNTIL(r, r->nr_changed > changed);
	return &r->peer[0];
}

/* The kubelet */

static void on_changed(void *ctx)
{
	struct rig *r = ctx;

	r->nr_changed++;
	loop_stop(r->loop);
}

static void on_broken(void *ctx, const char *text)
{
	struct rig *r = ctx;

	r->nr_broken++;
	snprintf(r->broken, sizeof r->broken, "%s", text);
	loop_stop(r->loop);
}

static void open_kubelet(struct rig *r)
{
	const struct sim_kubelet_options o = {r->root, &r->topo, &r->trace, 1};
	const struct sim_kubelet_events ev = {r, on_changed, on_broken};
	struct err e;

	r->kubelet = sim_kubelet_new(r->loop, r->pump, &o, &ev, &e);
	if (!r->kubelet)
		fail_msg("%s", e.text);
}

static void make_machine(struct topo *t)
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
static int rig_up(void **state)
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

static int rig_down(void **state)
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

static void on_admitted(void *ctx, const char *refusal)
{
	struct rig *r = ctx;

	r->nr_done++;
	r->refused = refusal;
	snprintf(r->refusal, sizeof r->refusal, "%s", refusal ? refusal : "");
	loop_stop(r->loop);
}

static void on_prepared(void *ctx)
{
	struct rig *r = ctx;

	r->nr_done++;
	loop_stop(r->loop);
}

static void admit_containers(
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
static void admit(struct rig *r, const char *name, unsigned gpus, unsigned cpus)
{
	struct ask c = {
		.name = "main", .cpu_milli = 1000, .nr_memory = 1, .memory = {{0, 1 << 20}}};

	if (gpus)
		c.device[c.nr_devices++] = (struct device_ask){0, gpus};
	if (cpus)
		c.device[c.nr_devices++] = (struct device_ask){1, cpus};
	admit_containers(r, name, &c, 1);
}

static void assert_on(struct rig *r, const char *pod, const char *container, const char *resource,
	const char *want)
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

/* Tests */

static void a_plugin_that_registers_is_known_once_its_devices_are(void **state)
{
	struct rig *r = *state;

	assert_true(sim_kubelet_has(r->kubelet, gpu));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	struct peer *p = peer_up(r);
	assert_true(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, p->watched == 1);
}

static void a_malformed_registration_is_refused(void **state)
{
	struct rig *r = *state;

	register_as(r, "nobody.sock", "no-domain");
	assert_string_equal(r->reply, "2 the ResourceName \"no-domain\" is invalid");
	register_as(r, "nobody.sock", cpu);
	assert_non_null(strstr(r->reply, "2 "));
	assert_non_null(strstr(r->reply, "nobody.sock"));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
}

static void tokens_are_taken_on_the_nodes_of_the_gpus(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);
	struct key_value note[2];

	admit(r, "train", 2, 4);
	assert_false(r->refused);
	assert_on(r, "train", "main", gpu, "0 2 0 0");
	assert_on(r, "train", "main", cpu, "0 4 0 0");
	assert_string_equal(p->log, "t-1-0,t-1-1,t-1-2,t-1-3;");
	assert_int_equal(p->nr_preferred, 0); /* the node has no more */
	assert_int_equal(sim_kubelet_annotations(r->kubelet, "train", "main", note, 2), 1);
	assert_string_equal(note[0].key, "numafit.io/allocated");
	assert_string_equal(note[0].value, "lease-1");
	assert_true(sim_kubelet_knows(r->kubelet, "train"));
	admit(r, "next", 1, 1);
	assert_on(r, "next", "main", cpu, "0 0 0 1");
}

static void the_plugin_chooses_where_there_is_a_choice(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 0, 2);
	assert_int_equal(p->nr_preferred, 1);
	assert_string_equal(p->log, "t-0-2,t-0-3;");
	assert_on(r, "train", "main", cpu, "2 0 0 0");
}

static void a_wrong_choice_of_the_plugin_is_a_fault(void **state)
{
	struct rig *r = *state;

	peer_up(r)->prefers_too_few = true;
	admit(r, "train", 0, 2);
	assert_true(r->refused);
	assert_string_equal(r->broken, "numafit.io/cpu: GetPreferredAllocation: 1 devices for 2");
}

static void a_pod_that_cannot_be_aligned_is_refused(void **state)
{
	struct rig *r = *state;
	static const char affinity[] = "TopologyAffinityError: Resources cannot be allocated with "
				       "Topology locality";

	(void)peer_up(r);
	admit(r, "three", 3, 3); /* GPUs of two nodes, and CPUs of one */
	assert_string_equal(r->refusal, affinity);
	assert_false(sim_kubelet_knows(r->kubelet, "three"));
	admit(r, "many", 5, 0);
	assert_string_equal(r->refusal, affinity);
	r->trace.kubelet.topology_policy = POLICY_NONE;
	admit(r, "many", 5, 0);
	assert_string_equal(r->refusal,
		"UnexpectedAdmissionError: Allocate failed due to requested number of devices "
		"unavailable for gpu.example/gpu. Requested: 5, Available: 4, which is unexpected");
	admit(r, "three", 3, 3);
	assert_string_equal(r->refusal, "");
	assert_int_equal(r->nr_broken, 0);
}

static void a_refusal_by_the_plugin_ends_the_pod(void **state)
{
	struct rig *r = *state;

	peer_up(r)->refuses = true;
	admit(r, "train", 1, 1);
	assert_string_equal(r->refusal,
		"UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = "
		"not today, which is unexpected");
	admit(r, "other", 2, 0);
	assert_on(r, "other", "main", gpu, "0 2 0 0"); /* its GPU is free again */
}

static void devices_of_an_init_container_are_used_again(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);
	const struct ask c[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{1, 3}}},
		{.name = "watch", .kind = CONTAINER_SIDECAR, .nr_devices = 1, .device = {{1, 1}}},
		{.name = "main", .nr_devices = 1, .device = {{1, 3}}},
	};

	admit_containers(r, "train", c, 3);
	assert_string_equal(r->refusal, "");
	/* the sidecar takes one of the three for good, two are the app's, and one more */
	assert_string_equal(p->log, "t-0-1,t-0-2,t-0-3;t-0-1;t-0-0,t-0-2,t-0-3;");
	assert_on(r, "train", "fetch", cpu, "3 0 0 0");
	assert_on(r, "train", "main", cpu, "3 0 0 0");
	admit(r, "other", 0, 4);
	assert_on(r, "other", "main", cpu, "0 4 0 0");
}

static void the_plugin_cannot_leave_out_devices_that_a_container_must_have(void **state)
{
	struct rig *r = *state;
	const struct ask c[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{1, 2}}},
		{.name = "main", .nr_devices = 1, .device = {{1, 3}}},
	};

	peer_up(r)->prefers_first_again = true;
	admit_containers(r, "train", c, 2);
	assert_string_equal(r->peer[0].log, "t-0-2,t-0-3;");
	assert_string_equal(r->broken, "numafit.io/cpu: GetPreferredAllocation: of those it must "
				       "have, 1 of 2");
	assert_true(r->refused);
}

static void in_pod_scope_the_containers_are_on_the_same_nodes(void **state)
{
	struct rig *r = *state;
	const struct ask c[] = {
		{.name = "a", .nr_devices = 1, .device = {{1, 3}}},
		{.name = "b", .nr_devices = 2, .device = {{0, 1}, {1, 1}}},
	};

	(void)peer_up(r);
	admit_containers(r, "apart", c, 2);
	assert_on(r, "apart", "a", cpu, "3 0 0 0");
	assert_on(r, "apart", "b", cpu, "0 1 0 0");
	sim_kubelet_forget(r->kubelet, "apart");
	r->trace.kubelet.topology_scope = SCOPE_POD;
	admit_containers(r, "together", c, 2);
	assert_on(r, "together", "a", cpu, "0 3 0 0");
	assert_on(r, "together", "b", cpu, "0 1 0 0");
}

static void the_devices_of_a_removed_pod_are_free(void **state)
{
	struct rig *r = *state;

	admit(r, "one", 4, 0);
	assert_false(r->refused);
	admit(r, "two", 1, 0);
	assert_true(r->refused);
	sim_kubelet_forget(r->kubelet, "one");
	admit(r, "two", 1, 0);
	assert_false(r->refused);
	sim_kubelet_forget(r->kubelet, "nobody");
}

static void a_container_waits_until_its_plugin_is_ready(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 1);
	p->not_yet = 2;
	unsigned done = r->nr_done;
	sim_kubelet_prepare(r->kubelet, "train", "main", on_prepared, r);
	UNTIL(r, r->nr_done > done);
	assert_int_equal(p->nr_started, 3);
	admit(r, "gpus", 1, 0);
	sim_kubelet_prepare(r->kubelet, "gpus", "main", on_prepared, r);
	assert_int_equal(r->nr_done, done + 3); /* at once: nobody wants to know */
	assert_int_equal(p->nr_started, 3);
}

static void a_device_that_is_given_out_must_stay_and_stay_healthy(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 2, 4); /* all of node 1 */
	p->device[0].healthy = false;
	unsigned changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	assert_int_equal(r->nr_broken, 0); /* that one is nobody's */
	p->device[PER_NODE].healthy = false;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_broken == 1);
	assert_string_equal(r->broken, "ListAndWatch: numafit.io/cpu: device t-1-0 of pod train "
				       "has become unhealthy");
	p->nr = PER_NODE;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_broken == 2);
	assert_non_null(strstr(r->broken, "t-1-0 of pod train has become missing"));
}

static void devices_that_are_not_healthy_are_not_given_out(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	for (unsigned i = 0; i < PER_NODE - 1; i++)
		p->device[PER_NODE + i].healthy = false; /* one is left on node 1 */
	unsigned changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	admit(r, "train", 1, 2);
	assert_on(r, "train", "main", gpu, "0 0 0 1");
	assert_on(r, "train", "main", cpu, "0 0 0 2");
}

static void a_resource_without_its_plugin_is_not_available(void **state)
{
	struct rig *r = *state;
	unsigned changed;

	(void)peer_up(r);
	changed = r->nr_changed;
	peer_close(&r->peer[0]);
	UNTIL(r, r->nr_changed > changed);
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	admit(r, "train", 0, 1);
	assert_true(r->refused);
	(void)peer_up(r);
	admit(r, "train", 0, 1);
	assert_false(r->refused);
}

/* Seen with kubelets up to 1.36.3 at least. */
static void the_end_of_an_old_stream_takes_a_newer_registration_with_it(void **state)
{
	struct rig *r = *state;
	unsigned changed;

	(void)peer_up(r);
	changed = r->nr_changed;
	peer_open(r, 1);
	register_as(r, "peer-1.sock", cpu);
	UNTIL(r, r->nr_changed > changed);
	changed = r->nr_changed;
	peer_close(&r->peer[0]);
	UNTIL(r, r->nr_changed > changed);
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, r->peer[1].watched == 0);
}

static void a_start_wipes_the_sockets_of_plugins_and_nothing_else(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char file[PATH_BYTES];
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	sim_kubelet_free(r->kubelet);
	snprintf(at.sun_path, sizeof at.sun_path, "%s/old.sock", r->plugins);
	assert_int_equal(bind(s, (const struct sockaddr *)&at, sizeof at), 0);
	snprintf(file, sizeof file, "%s/checkpoint", r->plugins);
	int fd = open(file, O_CREAT | O_WRONLY, 0600);
	open_kubelet(r);
	assert_int_equal(access(at.sun_path, F_OK), -1);
	assert_int_equal(unlink(file), 0);
	close(s);
	close(fd);
}

static void a_device_on_a_node_that_the_machine_lacks_is_reported(void **state)
{
	struct rig *r = *state;
	const struct sim_kubelet_options o = {r->root, &r->topo, &r->trace, 1};
	const struct sim_kubelet_events ev = {r, on_changed, on_broken};
	struct err e;

	sim_kubelet_free(r->kubelet);
	r->trace.devices.at[1].node_id = 7;
	r->kubelet = sim_kubelet_new(r->loop, r->pump, &o, &ev, &e);
	assert_null(r->kubelet);
	assert_string_equal(e.text, "gpu.example/gpu: machine test has no NUMA node 7");
	r->trace.devices.at[1].node_id = 3;
	open_kubelet(r); /* its directories are there to be removed */
}

static void a_kubelet_that_restarts_knows_what_it_gave(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 2);
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	assert_int_equal(access(p->path, F_OK), -1); /* its socket was wiped */
	assert_true(sim_kubelet_has(r->kubelet, gpu));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, p->watched == 0);
	peer_close(p);
	(void)peer_up(r);
	assert_on(r, "train", "main", cpu, "0 2 0 0");
	admit(r, "next", 1, 2);
	assert_on(r, "next", "main", cpu, "0 2 0 0");
	assert_string_equal(p->log, "t-1-0,t-1-1;");
	assert_int_equal(r->nr_broken, 0);
}

/* Kubelets of 1.36.3 die of it. */
static void after_a_restart_no_device_that_it_gave_may_be_missing(void **state)
{
	struct rig *r = *state;

	(void)peer_up(r);
	admit(r, "train", 1, 2);
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	peer_close(&r->peer[0]);
	peer_open(r, 0);
	r->peer[0].nr = PER_NODE;
	register_as(r, "peer-0.sock", cpu);
	UNTIL(r, r->nr_broken == 1);
	assert_non_null(strstr(r->broken, "of pod train has become missing"));
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

static void on_held(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);

	memcpy(copy, data, len);
	assert_int_equal(
		pod_resources_list_decode((struct blob){copy, len}, &c->a, &c->held, NULL), 0);
}

static void on_event(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);
	struct pods_event event;

	memcpy(copy, data, len);
	assert_int_equal(pods_event_decode((struct blob){copy, len}, &c->a, &event, NULL), 0);
	c->event[c->nr_events].type = event.type;
	if (event.type != PODS_SYNCED)
		assert_int_equal(
			pods_pod_decode(event.pod, &c->a, &c->event[c->nr_events].pod, NULL), 0);
	c->nr_events++;
	loop_stop(c->r->loop);
}

static void on_client_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct client *c = ctx;

	(void)code, (void)text;
	c->nr_ended++;
	loop_stop(c->r->loop);
}

static struct rpc_call *call(struct client *c, const char *socket, const char *method,
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

static void pod_resources_show_the_devices_of_running_containers(void **state)
{
	struct rig *r = *state;
	struct client c = {.r = r};
	const struct ask pod[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{0, 1}}},
		{.name = "watch", .kind = CONTAINER_SIDECAR},
		{.name = "main", .nr_devices = 2, .device = {{0, 1}, {1, 1}}},
	};

	(void)peer_up(r);
	admit_containers(r, "train", pod, 3);
	arena_init(&c.a, ARENA_MAX);
	(void)call(
		&c, "pod-resources/kubelet.sock", POD_RESOURCES_PATH("List"), RPC_UNARY, on_held);
	UNTIL(r, c.nr_ended);
	assert_int_equal(c.held.nr, 1);
	assert_string_equal(c.held.pod[0].name, "train");
	assert_string_equal(c.held.pod[0].ns, "ml");
	assert_int_equal(c.held.pod[0].nr, 2);
	assert_string_equal(c.held.pod[0].container[0].name, "watch");
	const struct container_held *main_held = &c.held.pod[0].container[1];
	assert_string_equal(main_held->name, "main");
	assert_int_equal(main_held->nr_devices, 2);
	assert_string_equal(main_held->device[0].id, "gpu-1-0");
	assert_int_equal(main_held->device[0].nodes.nr, 1);
	assert_int_equal(main_held->device[0].nodes.id[0], 1);
	assert_string_equal(main_held->device[1].resource, cpu);
	arena_fini(&c.a);
}

static void on_allocatable(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);

	memcpy(copy, data, len);
	assert_int_equal(pod_resources_allocatable_decode(
				 (struct blob){copy, len}, &c->a, &c->allocatable, NULL),
		0);
}

/* Healthy ones, whoever has them. */
static void pod_resources_show_the_allocatable_devices(void **state)
{
	enum { NR_GPUS = 4 };
	struct rig *r = *state;
	struct client c = {.r = r};
	unsigned nr_gpus = 0, nr_tokens = 0, changed;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 2);
	p->device[0].healthy = false;
	changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	arena_init(&c.a, ARENA_MAX);
	(void)call(&c, "pod-resources/kubelet.sock", POD_RESOURCES_PATH("GetAllocatableResources"),
		RPC_UNARY, on_allocatable);
	UNTIL(r, c.nr_ended);
	for (size_t i = 0; i < c.allocatable.nr; i++) {
		const struct held_device *d = &c.allocatable.device[i];

		assert_int_equal(d->nodes.nr, 1);
		nr_gpus += strcmp(d->resource, gpu) == 0;
		nr_tokens += strcmp(d->resource, cpu) == 0;
	}
	assert_int_equal(nr_gpus, NR_GPUS);
	assert_int_equal(nr_tokens, NR_TOKENS - 1);
	arena_fini(&c.a);
}

static void a_watcher_of_pods_gets_a_pod_before_it_runs(void **state)
{
	struct rig *r = *state;
	struct client c = {.r = r};

	arena_init(&c.a, ARENA_MAX);
	admit(r, "first", 1, 0);
	(void)call(&c, "pods-api/pods-api.sock", PODS_WATCH_PATH, RPC_STREAM, on_event);
	UNTIL(r, c.nr_events == 2);
	assert_int_equal(c.event[0].type, PODS_ADDED);
	assert_string_equal(c.event[0].pod.pod.uid, "first");
	assert_int_equal(c.event[1].type, PODS_SYNCED);
	admit(r, "second", 1, 0);
	assert_int_equal(c.nr_events, 3); /* before it is done */
	assert_int_equal(c.event[2].type, PODS_ADDED);
	assert_string_equal(c.event[2].pod.resource[0], gpu);
	assert_int_equal(c.event[2].pod.pod.container[0].device[0].count, 1);
	admit(r, "third", 9, 0);
	assert_true(r->refused);
	sim_kubelet_forget(r->kubelet, "first");
	UNTIL(r, c.nr_events == 4);
	assert_int_equal(c.event[3].type, PODS_DELETED);
	assert_string_equal(c.event[3].pod.pod.uid, "first");
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	UNTIL(r, c.nr_ended);
	arena_fini(&c.a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_RIG(a_plugin_that_registers_is_known_once_its_devices_are),
		ON_RIG(a_malformed_registration_is_refused),
		ON_RIG(tokens_are_taken_on_the_nodes_of_the_gpus),
		ON_RIG(the_plugin_chooses_where_there_is_a_choice),
		ON_RIG(a_wrong_choice_of_the_plugin_is_a_fault),
		ON_RIG(a_pod_that_cannot_be_aligned_is_refused),
		ON_RIG(a_refusal_by_the_plugin_ends_the_pod),
		ON_RIG(devices_of_an_init_container_are_used_again),
		ON_RIG(the_plugin_cannot_leave_out_devices_that_a_container_must_have),
		ON_RIG(in_pod_scope_the_containers_are_on_the_same_nodes),
		ON_RIG(the_devices_of_a_removed_pod_are_free),
		ON_RIG(a_container_waits_until_its_plugin_is_ready),
		ON_RIG(a_device_that_is_given_out_must_stay_and_stay_healthy),
		ON_RIG(devices_that_are_not_healthy_are_not_given_out),
		ON_RIG(a_resource_without_its_plugin_is_not_available),
		ON_RIG(the_end_of_an_old_stream_takes_a_newer_registration_with_it),
		ON_RIG(a_start_wipes_the_sockets_of_plugins_and_nothing_else),
		ON_RIG(a_device_on_a_node_that_the_machine_lacks_is_reported),
		ON_RIG(a_kubelet_that_restarts_knows_what_it_gave),
		ON_RIG(after_a_restart_no_device_that_it_gave_may_be_missing),
		ON_RIG(pod_resources_show_the_devices_of_running_containers),
		ON_RIG(pod_resources_show_the_allocatable_devices),
		ON_RIG(a_watcher_of_pods_gets_a_pod_before_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
