/* The simulator as runtime and kubelet at once, against a plugin of both: a child process that
 * gives containers the CPUs that their devices stand for, over real sockets. */
#include <numafit-sim/play.h>

#include <errno.h>
#include <io/loop.h>
#include <kubelet/device_plugin.h>
#include <kubelet/registration.h>
#include <nri/nri_conn.h>
#include <numafit/text.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NR_NODES = 4, PER_NODE = 4, NR_CPUS = NR_NODES * PER_NODE, PATH_BYTES = 108 };
enum { OUTPUT_MAX = 16 << 10 };

/* What is wrong with the plugin. */
enum fault {
	FAULT_NONE,
	FAULT_ELSEWHERE,   /* CPUs are not those of the devices */
	FAULT_SHARED,      /* no own CPUs */
	FAULT_NO_SANDBOX,  /* refuses pods of the name "late" */
	FAULT_NO_INIT,     /* refuses init containers */
	FAULT_UNREGISTERED /* no device plugin */
};

/* The child: device "cpu-07" stands for CPU 7. */
struct child {
	enum fault fault;
	struct registration *registration;
	struct device_plugin *devices;
	struct plugin_device device[NR_CPUS];
	char id[NR_CPUS][8];
};
static struct child child;

static int give_devices(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	(void)ctx, (void)a, (void)e;
	for (unsigned cpu = 0; cpu < NR_CPUS; cpu++) {
		snprintf(child.id[cpu], sizeof child.id[cpu], "cpu-%02u", cpu % 100);
		child.device[cpu] =
			(struct plugin_device){child.id[cpu], true, (int)(cpu / PER_NODE)};
	}
	*out = child.device;
	*nr = NR_CPUS;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t prefer_lowest(
	void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out)
{
	const char **sorted = arena_array(a, ask->available.nr, sizeof *sorted);
	size_t nr = 0;

	(void)ctx;
	memcpy(sorted, ask->available.id, ask->available.nr * sizeof *sorted);
	qsort(sorted, ask->available.nr, sizeof *sorted, compare_ids);
	for (; nr < ask->must_include.nr; nr++)
		out[nr] = ask->must_include.id[nr];
	for (size_t i = 0; i < ask->available.nr && nr < ask->size; i++) {
		bool there = false;

		for (size_t k = 0; k < ask->must_include.nr; k++)
			there = there || text_equal(out[k], sorted[i]);
		if (!there)
			out[nr++] = sorted[i];
	}
	return nr;
}

/* The annotation is the list of CPUs. */
static int allocate(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	struct key_value *note = arena_alloc(a, sizeof *note);
	char *list = arena_alloc(a, CPUSET_TEXT_MAX);
	struct cpuset cpus = {0};

	(void)ctx, (void)e;
	for (size_t i = 0; i < ids->nr; i++)
		cpuset_add(&cpus, (unsigned)strtoul(ids->id[i] + strlen("cpu-"), NULL, 10));
	*note = (struct key_value){
		"numafit.io/allocated", cpuset_format(&cpus, list, CPUSET_TEXT_MAX)};
	*out = (struct allocate_answer){.annotation = note, .nr_annotations = 1};
	return 0;
}

static int pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	(void)ctx, (void)ids, (void)e;
	return 0;
}

static void watched(void *ctx, unsigned nr_streams)
{
	(void)ctx;
	if (child.registration)
		registration_watched(child.registration, nr_streams);
}

static void end_streams(void *ctx)
{
	(void)ctx;
	device_plugin_end_streams(child.devices);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx, (void)bad, (void)event, (void)text;
}

static int create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	bool own = req->allocated && child.fault != FAULT_SHARED;
	char *placement = arena_alloc(reply->arena, 2 * CPUSET_TEXT_MAX);

	(void)ctx;
	if (child.fault == FAULT_NO_INIT && text_equal(req->ask.name, "fetch"))
		return err_set(e, EPERM, "no fetching");
	reply->adjust = true;
	reply->mems = "0-3";
	reply->cpus =
		own ? arena_strndup(reply->arena, req->allocated, strlen(req->allocated)) : "8-11";
	if (own && child.fault == FAULT_ELSEWHERE)
		reply->cpus = "12-14";
	snprintf(placement, 2 * CPUSET_TEXT_MAX,
		"{\"v\":1,\"policy\":\"restricted\",\"exclusive\":%s,\"cpus\":\"%s\","
		"\"mems\":\"0-3\",\"preferred\":true}",
		own ? "true" : "false", reply->cpus);
	reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, placement};
	return 0;
}

static int run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx;
	if (child.fault == FAULT_NO_SANDBOX && text_equal(pod->name, "late"))
		return err_set(e, EPERM, "it is too late");
	return 0;
}

static void synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	(void)ctx, (void)what, (void)reply;
}

static void update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)ctx, (void)req, (void)reply;
}

static void log_request(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

static void remove_pod(void *ctx, const struct pod *pod)
{
	(void)ctx, (void)pod;
}

static void serve_devices(struct loop *l, const char *root)
{
	static const struct device_plugin_handler handler = {.devices = give_devices,
		.prefer = prefer_lowest,
		.allocate = allocate,
		.pre_start = pre_start,
		.watched = watched};
	static const struct registration_handler events = {
		.end_streams = end_streams, .on_event = on_event};
	static const struct rpc_server_options server = {.request_max = 1 << 20};
	static char directory[PATH_BYTES];
	struct rpc_pump *pump = rpc_pump_new(l, NULL);
	struct rpc_server *s = rpc_server_new(pump, &server);

	snprintf(directory, sizeof directory, "%s/device-plugins", root);
	child.devices = device_plugin_new(s, &handler);
	const struct registration_options o = {.directory = directory,
		.endpoint = "test.sock",
		.resource = "numafit.io/cpu",
		.options = device_plugin_options(child.devices)};
	child.registration = registration_new(l, pump, s, &o, &events);
}

static void be_the_plugin(const char *socket, const char *root)
{
	static const struct nri_handler handler = {
		.synchronize = synchronize,
		.run_pod = run_pod,
		.create = create,
		.update = update,
		.stop = update,
		.remove = log_request,
		.live = log_request,
		.started = log_request,
		.remove_pod = remove_pod,
	};
	struct nri_conn_options o = {.socket = socket,
		.plugin = {.name = "test", .index = "10"},
		.retry_min_ms = 1,
		.retry_max_ms = 1};
	struct loop *l = loop_new();

	if (child.fault != FAULT_UNREGISTERED)
		serve_devices(l, root);
	(void)nri_conn_new(l, &o, &handler);
	loop_run(l);
}

static const struct topo *machine(void)
{
	static struct topo t;

	topo_init(&t, "test");
	for (unsigned n = 0; n < NR_NODES; n++)
		assert_int_equal(topo_add_node(&t, n, NULL), (int)n);
	for (unsigned cpu = 0; cpu < NR_CPUS; cpu++)
		assert_int_equal(topo_add_cpu(&t, cpu, cpu / PER_NODE, cpu, 0, 0, NULL), 0);
	for (unsigned n = 0; n < NR_NODES; n++)
		assert_int_equal(topo_set_memory(&t, n, 0, UINT64_C(16) << 30, NULL), 0);
	assert_int_equal(topo_seal(&t, NULL), 0);
	return &t;
}

static void remove_directories(const char *root)
{
	static const char *const directories[] = {
		"device-plugins", "pod-resources", "pods-api", ""};
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/device-plugins/test.sock", root);
	(void)unlink(path); /* the child was killed */
	for (unsigned i = 0; i < sizeof directories / sizeof *directories; i++) {
		snprintf(path, sizeof path, "%s/%s", root, directories[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

/* What comes out of a play. */
struct outcome {
	int rc;
	struct err e;
	char out[OUTPUT_MAX];
};

static void play_here(const char *text, const struct play_options *o, struct outcome *to)
{
	struct sim_node node;
	struct trace trace;

	to->rc = trace_yaml_read(&trace, text, strlen(text), &to->e);
	if (to->rc)
		return;
	sim_node_init(&node, machine());
	struct report report = {.out = fmemopen(to->out, OUTPUT_MAX - 1, "w"), .node = &node};
	to->rc = play(&trace, &node, &report, o, &to->e);
	fclose(report.out);
	sim_node_fini(&node);
	trace_fini(&trace);
}

/* Play the trace against a plugin with that fault. Each side is a process of its own, for gRPC does
 * not bear a fork once it was used. *to is the caller's to free. */
static void play_text(const char *text, enum fault f, struct outcome **to)
{
	char root[] = "/tmp/numafit-test.XXXXXX", socket[sizeof root + sizeof "/nri.sock"];
	struct play_options o = {.socket = socket,
		.wait_ms = f == FAULT_UNREGISTERED ? 1000 : 10000,
		.kubelet_root = root};
	struct outcome *shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_non_null(mkdtemp(root));
	snprintf(socket, sizeof socket, "%s/nri.sock", root);
	pid_t plugin = fork();
	assert_true(plugin >= 0);
	if (plugin == 0) {
		child.fault = f;
		be_the_plugin(socket, root);
		_exit(0);
	}
	pid_t player = fork();
	assert_true(player >= 0);
	if (player == 0) {
		play_here(text, &o, shared);
		exit(0);
	}
	assert_int_equal(waitpid(player, &status, 0), player);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
	assert_int_equal(status, 0);
	remove_directories(root);
	*to = xcalloc(1, sizeof **to);
	**to = *shared;
	munmap(shared, sizeof *shared);
}

static const char text[] =
	"kubelet:\n"
	"  topologyManagerPolicy: restricted\n"
	"  devices:\n"
	"  - {resource: gpu.example/gpu, node: 0, count: 2}\n"
	"  - {resource: gpu.example/gpu, node: 3, count: 1}\n"
	"steps:\n"
	"- create: {pod: web, qos: burstable, cpu: 500m}\n"
	"- create: {pod: train, container: fetch, kind: init, qos: guaranteed, cpu: 2,\n"
	"           memory: 1Gi, devices: [numafit.io/cpu=2]}\n"
	"- create: {pod: train, container: watch, kind: sidecar, qos: guaranteed, cpu: 250m,\n"
	"           memory: 1Gi}\n"
	"- create: {pod: train, container: main, qos: guaranteed, cpu: 3, memory: 1Gi,\n"
	"           devices: [numafit.io/cpu=3, gpu.example/gpu=2]}\n"
	"- create: {pod: late, qos: guaranteed, cpu: 2, memory: 1Gi,\n"
	"           devices: [numafit.io/cpu=2, gpu.example/gpu=2]}\n"
	"- restart-runtime\n"
	"- stop: {pod: train}\n"
	"- create: {pod: late, qos: guaranteed, cpu: 2, memory: 1Gi,\n"
	"           devices: [numafit.io/cpu=2, gpu.example/gpu=2]}\n";

static const char printed_text[] =
	"POD/CONTAINER           QOS        CPU   MEMORY       GIVEN CPUS         NODES MEMS  "
	"DIST PREF MOVED\n"
	"web/main                Burstable  500m  -            shared (4)         -     0-3   -   "
	" -\n"
	"train/fetch             Guaranteed 2     1Gi          0-1                0     0-3   10  "
	" yes\n"
	"  with 2 numafit.io/cpu of node 0\n"
	"train/fetch             Guaranteed 2     1Gi          done\n"
	"train/watch             Guaranteed 250m  1Gi          shared (4)         -     0-3   -   "
	" -\n"
	"train/main              Guaranteed 3     1Gi          0-2                0     0-3   10  "
	" yes\n"
	"  with 3 numafit.io/cpu of node 0, 2 gpu.example/gpu of node 0\n"
	"late/main               Guaranteed 2     1Gi          refused: by the kubelet:\n"
	"                                                      TopologyAffinityError: Resources "
	"cannot be\n"
	"                                                      allocated with Topology locality\n"
	"-- the runtime came back: 3 running containers listed, 0 set anew\n"
	"train/watch             Guaranteed 250m  1Gi          stopped\n"
	"train/main              Guaranteed 3     1Gi          stopped\n"
	"late/main               Guaranteed 2     1Gi          0-1                0     0-3   10  "
	" yes\n"
	"  with 2 numafit.io/cpu of node 0, 2 gpu.example/gpu of node 0\n";

static void pods_with_devices_are_played_to_their_end(void **state)
{
	auto_free struct outcome *got = NULL;

	(void)state;
	play_text(text, FAULT_NONE, &got);
	if (got->rc)
		fail_msg("%s\n%s", got->e.text, got->out);
	got->out[strlen(printed_text)] = '\0';
	assert_string_equal(got->out, printed_text);
}

static void mistakes_of_the_plugin_are_printed(void **state)
{
	static const struct {
		enum fault fault;
		int code;
		const char *says;
	} rows[] = {
		{FAULT_ELSEWHERE, -EINVAL,
			"default/train/fetch has 0 CPUs of NUMA node 0, and 2 of numafit.io/cpu "
			"there"},
		{FAULT_SHARED, -EINVAL,
			"default/train/fetch has 2 of numafit.io/cpu, and no CPUs of its own"},
		{FAULT_UNREGISTERED, -ETIMEDOUT,
			"no device plugin registered numafit.io/cpu with the kubelet in /tmp/"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free struct outcome *got = NULL;

		play_text(text, rows[i].fault, &got);
		assert_int_equal(got->rc, rows[i].code);
		if (!strstr(got->e.text, rows[i].says))
			fail_msg("\"%s\" lacks \"%s\"", got->e.text, rows[i].says);
	}
}

static void a_pod_whose_sandbox_is_refused_holds_nothing(void **state)
{
	static const char late[] =
		"kubelet:\n"
		"  devices: [{resource: gpu.example/gpu, node: 1, count: 2}]\n"
		"steps:\n"
		"- create: {pod: late, qos: guaranteed, cpu: 2, memory: 1Gi,\n"
		"    devices: [gpu.example/gpu=2]}\n"
		"- create: {pod: other, qos: guaranteed, cpu: 500m, memory: 1Gi,\n"
		"    devices: [gpu.example/gpu=2]}\n";
	auto_free struct outcome *got = NULL;

	(void)state;
	play_text(late, FAULT_NO_SANDBOX, &got);
	if (got->rc)
		fail_msg("%s\n%s", got->e.text, got->out);
	assert_non_null(strstr(got->out, "refused: it is too late\n"));
	assert_non_null(strstr(got->out, "with 2 gpu.example/gpu of node 1\n"));
}

static void a_device_may_be_on_no_numa_node(void **state)
{
	static const char tpm[] = "kubelet:\n"
				  "  topologyManagerPolicy: single-numa-node\n"
				  "  devices:\n"
				  "  - {resource: tpm.example/tpm, node: none, count: 2}\n"
				  "  - {resource: gpu.example/gpu, node: 1, count: 1}\n"
				  "steps:\n"
				  "- create: {pod: web, qos: guaranteed, cpu: 500m, memory: 1Gi,\n"
				  "    devices: [tpm.example/tpm=2, gpu.example/gpu=1]}\n";
	auto_free struct outcome *got = NULL;

	(void)state;
	play_text(tpm, FAULT_NONE, &got);
	if (got->rc)
		fail_msg("%s\n%s", got->e.text, got->out);
	assert_non_null(strstr(
		got->out, "with 2 tpm.example/tpm of no node, 1 gpu.example/gpu of node 1\n"));
}

static void nothing_runs_after_an_init_container_that_was_refused(void **state)
{
	static const char pods[] =
		"kubelet:\n"
		"  devices: [{resource: gpu.example/gpu, node: 1, count: 2}]\n"
		"steps:\n"
		"- create: {pod: train, container: fetch, kind: init, qos: besteffort}\n"
		"- create: {pod: train, qos: besteffort, devices: [gpu.example/gpu=2]}\n"
		"- create: {pod: other, qos: besteffort, devices: [gpu.example/gpu=2]}\n";
	auto_free struct outcome *got = NULL;

	(void)state;
	play_text(pods, FAULT_NO_INIT, &got);
	if (got->rc)
		fail_msg("%s\n%s", got->e.text, got->out);
	assert_non_null(strstr(got->out, "train/fetch             BestEffort -     -            "
					 "refused: no fetching\n"));
	assert_non_null(strstr(got->out, "train/main              BestEffort -     -            "
					 "refused: its pod's init container was refused\n"));
	assert_non_null(strstr(got->out, "with 2 gpu.example/gpu of node 1\n"));
}

static void a_container_that_the_spec_lacks_is_refused(void **state)
{
	static const struct {
		const char *steps, *says;
	} rows[] = {
		{"- create: {pod: a, qos: besteffort}\n- restart-runtime\n"
		 "- create: {pod: a, container: b, qos: besteffort}\n",
			"line 5: create: pod default/a runs already, without a container b"},
		{"- create: {pod: a, qos: besteffort}\n"
		 "- create: {pod: a, container: b, kind: init, qos: besteffort}\n",
			"line 3: create: line 4: init comes after the pod's containers"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free struct outcome *got = NULL;
		char trace[512];

		snprintf(trace, sizeof trace, "kubelet: {topologyManagerPolicy: none}\nsteps:\n%s",
			rows[i].steps);
		play_text(trace, FAULT_NONE, &got);
		assert_int_equal(got->rc, -EINVAL);
		assert_string_equal(got->e.text, rows[i].says);
	}
}

static void a_restarted_container_has_the_devices_that_it_had(void **state)
{
	static const char again[] =
		"kubelet: {topologyManagerPolicy: restricted}\n"
		"steps:\n"
		"- create: {pod: a, qos: guaranteed, cpu: 2, memory: 1Gi,\n"
		"    devices: [numafit.io/cpu=2]}\n"
		"- create: {pod: a, container: b, qos: guaranteed, cpu: 250m, memory: 1Gi}\n"
		"- stop: {pod: a, container: main}\n"
		"- create: {pod: a, qos: guaranteed, cpu: 2, memory: 1Gi,\n"
		"    devices: [numafit.io/cpu=2]}\n";
	static const char row[] = "a/main                  Guaranteed 2     1Gi          0-1 ";
	auto_free struct outcome *got = NULL;

	(void)state;
	play_text(again, FAULT_NONE, &got);
	if (got->rc)
		fail_msg("%s\n%s", got->e.text, got->out);
	const char *first = strstr(got->out, row);
	assert_non_null(first);
	assert_non_null(strstr(first + 1, row));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_with_devices_are_played_to_their_end),
		cmocka_unit_test(mistakes_of_the_plugin_are_printed),
		cmocka_unit_test(a_pod_whose_sandbox_is_refused_holds_nothing),
		cmocka_unit_test(a_device_may_be_on_no_numa_node),
		cmocka_unit_test(nothing_runs_after_an_init_container_that_was_refused),
		cmocka_unit_test(a_container_that_the_spec_lacks_is_refused),
		cmocka_unit_test(a_restarted_container_has_the_devices_that_it_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
