/* The real daemon between a runtime that creates a container with a device of a claim, and a
 * kubelet that shows late what the claim has come to: the answer waits, and no longer than it may.
 */
#include "live_rig.h"

#include <kubelet/grpc_pump.h>
#include <kubelet/grpc_server.h>
#include <kubelet/pod_resources_server_pb.h>

#include <sys/stat.h>

enum { REQUEST_MAX = 1 << 20, ARENA_MAX = 1 << 20 };

/* The kubelet's PodResources, which answers when the test says so. */
struct pod_resources_side {
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct acceptor *door;
	struct loop *loop;
	struct rpc *asked; /* not answered yet */
	char root[PATH_MAX], socket[PATH_MAX + 64];
};

static void on_list(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct pod_resources_side *k = ctx;

	(void)request, (void)len;
	assert_null(k->asked);
	k->asked = r;
	loop_stop(k->loop);
}

static const struct rpc_method methods[] = {
	{.path = POD_RESOURCES_PATH("List"), .kind = RPC_UNARY, .called = on_list}};

static void serve(struct pod_resources_side *k, struct rig *r)
{
	const struct rpc_server_options options = {.request_max = REQUEST_MAX};
	struct err e = {0};

	*k = (struct pod_resources_side){.loop = r->loop};
	(void)snprintf(k->root, sizeof k->root, "%.*s/kubelet", PATH_MAX - 16, r->daemon.dir);
	(void)snprintf(k->socket, sizeof k->socket, "%s/pod-resources", k->root);
	assert_int_equal(mkdir(k->root, 0700), 0);
	assert_int_equal(mkdir(k->socket, 0700), 0);
	(void)snprintf(k->socket, sizeof k->socket, "%s/pod-resources/kubelet.sock", k->root);
	k->pump = rpc_pump_new(r->loop, &e);
	assert_non_null(k->pump);
	k->server = rpc_server_new(k->pump, &options);
	rpc_server_add(k->server, methods, 1, k);
	k->door = rpc_server_listen(k->server, k->socket, &e);
	assert_string_equal(e.text, "");
}

static void stop_serving(struct pod_resources_side *k)
{
	acceptor_close(k->door);
	rpc_server_free(k->server);
	rpc_pump_free(k->pump);
}

static void await_question(struct rig *r, struct pod_resources_side *k)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!k->asked)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
}

/* It shows no pod: what a container of one would have by claims, it does not have. */
static void answer_question(struct pod_resources_side *k)
{
	const struct pods_held none = {0};
	struct blob out;
	struct arena a;

	arena_init(&a, ARENA_MAX);
	assert_int_equal(pod_resources_list_encode(&none, &a, &out, NULL), 0);
	rpc_answer(k->asked, out.data, out.len);
	k->asked = NULL;
	arena_fini(&a);
}

static struct rig *rig_with(const char *wait)
{
	static char wait_setting[64], root_setting[PATH_MAX + 32];
	struct rig *r = rig_new();

	(void)snprintf(wait_setting, sizeof wait_setting, "deviceClaims.wait=%s", wait);
	(void)snprintf(root_setting, sizeof root_setting, "kubeletRootDirectory=%.*s/kubelet",
		PATH_MAX - 16, r->daemon.dir);
	r->daemon.setting[0] = "podResources.enabled=true";
	r->daemon.setting[1] = "deviceClaims.enabled=true";
	r->daemon.setting[2] = wait_setting;
	r->daemon.setting[3] = root_setting;
	r->daemon.setting[4] = "podsAPI.enabled=false";
	return r;
}

/* The runtime asks for a container of that pod with a CDI device, and does not wait. */
static struct fake_container *ask_for(struct rig *r, unsigned i, const char *id, const char *pod)
{
	static const char *const cdi[] = {"gpu.example.com/claim=1-0"};
	struct fake_container *b = &r->box[i];
	struct key_value annotation[2];

	*b = (struct fake_container){.cpu_milli = 2 * FAKE_MILLI_PER_CPU};
	assert_true(text_copy(b->id, sizeof b->id, id));
	assert_true(text_copy(b->pod, sizeof b->pod, pod));
	struct nri_container c = fake_container_shown(b, annotation);
	c.name = id;
	c.cdi = cdi;
	c.nr_cdi = 1;
	r->answered = false;
	r->asked = b;
	fake_runtime_call(&r->runtime, NRI_CALL_CREATE, &c);
	return b;
}

static const char unknown[] = "not all devices of its claims were looked at";

static void without_an_answer_of_the_kubelet_the_create_is_answered_all_the_same(void **state)
{
	struct rig *r = rig_with("100ms");

	(void)state;
	begin(r, NULL);
	for (unsigned i = 0; i < 2; i++) { /* the second one of the pod does not wait again */
		const struct fake_container *b = ask_for(r, i, i ? "c1" : "c0", "p");

		run_until(r, &r->answered);
		assert_true(b->runs);
	}
	await_log(r, "container=c1 id=c1");
	assert_int_equal(count_log(r, unknown), 2);
	end(r, SIGTERM);
	rig_free(r);
}

static void the_answer_waits_for_the_kubelet_and_other_events_behind_it(void **state)
{
	struct pod_resources_side k;
	struct rig *r = rig_with("1500ms");

	(void)state;
	serve(&k, r);
	begin(r, NULL);
	await_question(r, &k); /* the first one, as it starts */
	struct fake_container *b = ask_for(r, 0, "c0", "p");
	await_log(r, "event=synchronized");
	assert_false(r->answered);
	answer_question(&k);
	run_until(r, &r->answered);
	assert_true(b->runs);
	await_log(r, "id=c0");
	assert_int_equal(count_log(r, unknown), 0);
	end(r, SIGTERM);
	stop_serving(&k);
	rig_free(r);
}

static void a_connection_that_ends_while_an_answer_waits_is_made_anew(void **state)
{
	struct rig *r = rig_with("1500ms");

	(void)state;
	begin(r, NULL);
	(void)ask_for(r, 0, "c0", "p");
	r->box[0] = (struct fake_container){0}; /* the runtime has given up */
	r->synchronized = false;
	fake_runtime_hang_up(&r->runtime);
	run_until(r, &r->synchronized);
	assert_non_null(create(r, "c1", 2));
	end(r, SIGTERM);
	rig_free(r);
}

/* The call and the signal reach the daemon at once, or the call does first. */
static void a_daemon_that_is_stopped_answers_what_waits_before_it_ends(void **state)
{
	struct rig *r = rig_with("1500ms");

	(void)state;
	begin(r, NULL);
	const struct fake_container *b = ask_for(r, 0, "c0", "p");
	int status = rig_end(&r->daemon, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	run_until(r, &r->answered);
	assert_true(b->runs);
	await_log(r, "event=stopped containers=1");
	assert_int_equal(count_log(r, unknown), 1);
	fake_runtime_hang_up(&r->runtime);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			without_an_answer_of_the_kubelet_the_create_is_answered_all_the_same),
		cmocka_unit_test(the_answer_waits_for_the_kubelet_and_other_events_behind_it),
		cmocka_unit_test(a_connection_that_ends_while_an_answer_waits_is_made_anew),
		cmocka_unit_test(a_daemon_that_is_stopped_answers_what_waits_before_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
