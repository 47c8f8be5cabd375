/* The simulator against a plugin with fixed answers, good and bad ones, over a real socket. The
 * plugin is a child process. */
#include <numafit-sim/play.h>

#include <errno.h>
#include <io/loop.h>
#include <nri/nri_conn.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What is wrong with the plugin. */
enum fault {
	FAULT_NONE,
	FAULT_TWICE,
	FAULT_NOT_A_LIST,
	FAULT_NO_CONTAINER,
	FAULT_LEAVES,
	FAULT_LETS_UPDATE
};

static enum fault fault; /* in the child */

/* Whole CPUs get 2-3, the rest 0-1; 64 CPUs and more are refused, as a resize too. */
static int plugin_create(
	void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	static const struct nri_cpuset nobody = {"nobody", "0", "0", false};
	bool own = request_exclusive_cpus(req) > 0;

	(void)ctx;
	if (req->ask.cpu_milli >= 64000)
		return err_set(e, EPERM, "TopologyAffinityError: no room");
	if (fault == FAULT_LEAVES)
		_exit(0);
	reply->adjust = true;
	reply->cpus = own || fault == FAULT_TWICE ? "2-3" : "0-1";
	reply->mems = "0";
	if (fault == FAULT_NOT_A_LIST)
		reply->cpus = "all";
	if (fault == FAULT_NO_CONTAINER) {
		reply->updates = &nobody;
		reply->nr_updates = 1;
	}
	reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION,
		own ? "{\"v\":1,\"policy\":\"restricted\",\"exclusive\":true,\"cpus\":\"2-3\","
		      "\"mems\":\"0\",\"nodes\":\"0\",\"preferred\":true}"
		    : "{\"v\":1,\"policy\":\"restricted\",\"exclusive\":false,\"cpus\":\"0-1\","
		      "\"mems\":\"0\",\"preferred\":true}"};
	return 0;
}

/* After a restart everything is set anew: whoever came with an annotation gets what it says. */
static void plugin_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct nri_cpuset *sets = arena_array(reply->arena, what->nr + 1, sizeof *sets);

	(void)ctx;
	for (size_t i = 0; i < what->nr; i++)
		if (what->containers[i].placement)
			sets[reply->nr_updates++] = (struct nri_cpuset){
				what->containers[i].container_id, what->containers[i].cpus, "0", false};
	reply->updates = sets;
}

static void plugin_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct nri_cpuset *keep = arena_array(reply->arena, 1, sizeof *keep);

	(void)ctx;
	if (fault == FAULT_LETS_UPDATE)
		return;
	if (req->ask.cpu_milli >= 64000) {
		reply->refusal = "no room to grow";
		return;
	}
	*keep = (struct nri_cpuset){
		req->container_id, req->ask.cpu_milli == 1000 ? "2" : "0-1", "", false};
	reply->updates = keep;
	reply->nr_updates = 1;
}

static void plugin_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)ctx, (void)req, (void)reply;
}

static void plugin_informed(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

static void plugin_remove_pod(void *ctx, const struct pod *pod)
{
	(void)ctx, (void)pod;
}

static int plugin_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx, (void)pod, (void)e;
	return 0;
}

static void be_the_plugin(const char *socket)
{
	static const struct nri_handler handler = {
		.synchronize = plugin_synchronize,
		.run_pod = plugin_run_pod,
		.create = plugin_create,
		.update = plugin_update,
		.stop = plugin_stop,
		.remove = plugin_informed,
		.live = plugin_informed,
		.started = plugin_informed,
		.remove_pod = plugin_remove_pod,
	};
	struct nri_conn_options o = {.socket = socket,
		.plugin = {.name = "test", .index = "10"},
		.retry_min_ms = 1,
		.retry_max_ms = 1};
	struct loop *l = loop_new();

	(void)nri_conn_new(l, &o, &handler);
	loop_run(l);
}

static const struct topo *machine(void)
{
	static struct topo t;

	topo_init(&t, "test");
	assert_int_equal(topo_add_node(&t, 0, NULL), 0);
	for (unsigned cpu = 0; cpu < 4; cpu++)
		assert_int_equal(topo_add_cpu(&t, cpu, 0, cpu, 0, 0, NULL), 0);
	assert_int_equal(topo_set_memory(&t, 0, 0, UINT64_C(16) << 30, NULL), 0);
	assert_int_equal(topo_seal(&t, NULL), 0);
	return &t;
}

/* Play the trace against a plugin with that fault; *out is what was printed, for the caller to
 * free. */
static int play_text(const char *text, enum fault f, bool state_change, char **out, struct err *e)
{
	char dir[] = "/tmp/numafit-test.XXXXXX", socket[sizeof dir + sizeof "/nri.sock"];
	struct play_options o = {.socket = socket, .wait_ms = 10000, .state_change = state_change};
	struct sim_node node;
	struct trace trace;
	size_t len;

	assert_non_null(mkdtemp(dir));
	snprintf(socket, sizeof socket, "%s/nri.sock", dir);
	assert_int_equal(trace_yaml_read(&trace, text, strlen(text), e), 0);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		fault = f;
		be_the_plugin(socket);
		_exit(0);
	}
	sim_node_init(&node, machine());
	struct report report = {.out = open_memstream(out, &len), .node = &node};
	int rc = play(&trace, &node, &report, &o, e);

	fclose(report.out);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	sim_node_fini(&node);
	trace_fini(&trace);
	assert_int_equal(rmdir(dir), 0); /* the socket went with the listener */
	return rc;
}

static const char whole_day[] = "steps:\n"
				"- create: {pod: web, qos: burstable, cpu: 500m, count: 2}\n"
				"- create: {pod: db, qos: guaranteed, cpu: 2, memory: 1Gi}\n"
				"- create: {pod: giant, qos: guaranteed, cpu: 64, memory: 1Gi}\n"
				"- update: {pod: web-1, cpus: 0-3}\n"
				"- update: {pod: db, cpu: 1}\n"
				"- update: {pod: db, cpu: 64}\n"
				"- restart-runtime\n"
				"- stop: {pod: web-0}\n"
				"- stop-pod: {pod: web}\n";

static const char whole_day_printed[] =
	"POD/CONTAINER           QOS        CPU   MEMORY       GIVEN CPUS         NODES MEMS  "
	"DIST PREF MOVED\n"
	"web-0/main              Burstable  500m  -            shared (2)         -     0     -   "
	" -\n"
	"web-1/main              Burstable  500m  -            shared (2)         -     0     -   "
	" -\n"
	"db/main                 Guaranteed 2     1Gi          2-3                0     0     10  "
	" yes\n"
	"giant/main              Guaranteed 64    1Gi          refused: TopologyAffinityError: no "
	"room\n"
	"web-1/main              Burstable  500m  -            updated: cpus 0-1, mems 0 in "
	"force\n"
	"db/main                 Guaranteed 1     1Gi          updated: cpus 2, mems 0 in force\n"
	"db/main                 Guaranteed 64    1Gi          update refused: no room to grow\n"
	"-- the runtime came back: 3 running containers listed, 3 set anew\n"
	"web-0/main              Burstable  500m  -            stopped\n"
	"web-1/main              Burstable  500m  -            stopped with its pod\n";

static void a_whole_trace_is_played(void **state)
{
	(void)state;
	for (int old_style = 0; old_style < 2; old_style++) {
		auto_free char *out = NULL;
		struct err e = {0};

		if (play_text(whole_day, FAULT_NONE, old_style, &out, &e) < 0)
			fail_msg("%s\n%s", e.text, out);
		out[strlen(whole_day_printed)] = '\0';
		assert_string_equal(out, whole_day_printed);
	}
}

static void mistakes_of_the_plugin_are_printed(void **state)
{
	static const struct {
		enum fault fault;
		int code;
		const char *says;
	} rows[] = {
		{FAULT_TWICE, -EINVAL,
			"CPU 2 is default/db/main's own and in the cpuset of default/web-0/main"},
		{FAULT_NOT_A_LIST, -EINVAL, "container default/web-0/main: "},
		{FAULT_NO_CONTAINER, -EINVAL, "the plugin updates nobody, which does not run"},
		{FAULT_LETS_UPDATE, -EINVAL,
			"CPU 2 is default/db/main's own and in the cpuset of default/web-1/main"},
		{FAULT_LEAVES, -ECONNRESET, "the plugin closed the connection"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *out = NULL;
		struct err e = {0};

		assert_int_equal(
			play_text(whole_day, rows[i].fault, false, &out, &e), rows[i].code);
		if (!strstr(e.text, rows[i].says))
			fail_msg("\"%s\" lacks \"%s\"", e.text, rows[i].says);
	}
}

static void an_update_with_cpus_that_the_machine_lacks_names_its_line(void **state)
{
	static const char text[] = "steps:\n"
				   "- create: {pod: web, qos: besteffort}\n"
				   "- update: {pod: web, cpus: 0-99}\n";
	auto_free char *out = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(play_text(text, FAULT_NONE, false, &out, &e), -EINVAL);
	assert_non_null(strstr(e.text, "line 3: "));
}

static void without_a_plugin_the_wait_ends(void **state)
{
	char dir[] = "/tmp/numafit-test.XXXXXX", socket[sizeof dir + sizeof "/nri.sock"];
	struct play_options o = {.socket = socket, .wait_ms = 1};
	struct trace_step step = {.op = TRACE_RESTART_RUNTIME};
	struct trace trace = {.at = &step, .nr = 1};
	auto_free char *out = NULL;
	struct sim_node node;
	struct err e = {0};
	size_t len;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(socket, sizeof socket, "%s/nri.sock", dir);
	sim_node_init(&node, machine());
	struct report report = {.out = open_memstream(&out, &len), .node = &node};

	assert_int_equal(play(&trace, &node, &report, &o, &e), -ETIMEDOUT);
	fclose(report.out);
	assert_non_null(strstr(e.text, "no plugin registered on /tmp/numafit-test."));
	sim_node_fini(&node);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_trace_is_played),
		cmocka_unit_test(mistakes_of_the_plugin_are_printed),
		cmocka_unit_test(an_update_with_cpus_that_the_machine_lacks_names_its_line),
		cmocka_unit_test(without_a_plugin_the_wait_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
