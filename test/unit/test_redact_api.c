/* numafit bundle --redact of a node that has spoken with an API server: evictions, moves that would
 * help, events, objects and patches of pods, and an API server that refuses each of them with a
 * text of its own. Every name, uid, annotation and text from outside has the letters zq, and no
 * part of the archive has them. */
#include "reload_rig.h"

enum { FORBIDDEN = 403, CREATED = 201, MAX_HERE = 8192 };

/* The last two are evicted: the API server lets the first one of these go. */
static const char *const pods[] = {"zqpod-0", "zqpod-1", "zqpod-2", "zqpod-3", "zqpod-4", "zqpod-5",
	"zqpod-6", "zqpod-7", "zqroom", "zqfirst", "zqsecond"};
enum { PODS = sizeof pods / sizeof *pods, SMALL = 8, LARGE = PODS - 2 };

static void list_pods(struct fake_ask *q)
{
	char list[MAX_HERE];
	struct text t;

	text_init(&t, list, sizeof list);
	text_add(&t, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
	for (size_t i = 0; i < PODS; i++)
		text_add(&t,
			"%s{\"metadata\":{\"uid\":\"%s\",\"name\":\"%s\",\"namespace\":\"zqns\","
			"\"labels\":{\"zqlabel\":\"zqlabelled\"},\"ownerReferences\":[{"
			"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"zqset\","
			"\"uid\":\"zqsetuid\",\"controller\":true}]},\"spec\":{\"containers\":["
			"{\"name\":\"main\"},{\"name\":\"zqside\"}]}}",
			i ? "," : "", pods[i], pods[i]);
	text_add(&t, "]}");
	assert_false(t.cut);
	fake_api_answer(q, FAKE_OK, NULL, list);
}

static void serve(void *ctx, struct fake_ask *q)
{
	static const char no[] =
		"{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"user "
		"\\\"zqaccount\\\" cannot do zqverb on zqobject in zqnamespace\"}";
	struct rig *r = ctx;

	if (strstr(q->path, "watch=1")) {
		r->api->watches++;
		fake_api_begin(q);
	} else if (strncmp(q->path, "/api/v1/pods?", 13) == 0) {
		list_pods(q);
	} else if (strstr(q->path, "/zqfirst/eviction")) {
		fake_api_answer(q, CREATED, NULL, "{}");
	} else {
		fake_api_answer(q, FORBIDDEN, NULL, no);
	}
}

static struct fake_container *create_for(
	struct rig *r, const char *ns, const char *id, unsigned cpus, const char *key)
{
	const struct key_value note = {key, "zqvalue"};
	struct fake_container *b = r->box;

	while (*b->id)
		b++;
	*b = (struct fake_container){.cpu_milli = cpus * FAKE_MILLI_PER_CPU,
		.pod_annotations = &note,
		.nr_pod_annotations = 1};
	(void)text_copy(b->id, sizeof b->id, id);
	(void)text_copy(b->ns, sizeof b->ns, ns);
	call(r, NRI_CALL_RUN_POD, b);
	if (!*r->message)
		call(r, NRI_CALL_CREATE, b);
	b->pod_annotations = NULL;
	b->nr_pod_annotations = 0;
	if (!b->runs) {
		*b->id = '\0';
		return NULL;
	}
	call(r, NRI_CALL_POST_CREATE, b);
	call(r, NRI_CALL_POST_START, b);
	return b;
}

/* Whether the command succeeds, with $BIN, $RUN and $DIR of the rig. */
static bool shell(const struct rig *r, const char *command)
{
	const char *build = getenv("BUILD");

	(void)setenv("BIN", build ? build : "build/debug", 1);
	(void)setenv("RUN", r->daemon.run, 1);
	(void)setenv("DIR", r->daemon.dir, 1);
	return system(command) == 0; /* commands of this test alone */
}

static void no_text_of_an_api_server_and_no_evicted_or_moved_pod_is_named(void **state)
{
	static const char *const events[] = {"event=wish-ignored", "event=moves-would-help",
		"event=pod-evicted", "event=pod-eviction-refused", "event=events-refused",
		"event=node-unknown"};
	struct rig *r = *state;
	struct fake_container *gone[2];
	char set[PATH_MAX + 64];

	r->api = calloc(1, sizeof *r->api);
	fake_api_init_on(&r->api->server, r->loop);
	r->api->server.ctx = r;
	r->api->server.serve = serve;
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	hold_config(r,
		"nodeName: zqnode\ntopologyManagerPolicy: single-numa-node\nrefusalAction: evict\n"
		"podsWatch: {enabled: true}\nevents: {enabled: true}\nobservedPlacement: kai\n"
		"podResources: {enabled: true}\npodWishes: {unknown: ignore, allowed: cores}\n"
		"nodeResourceTopology: {enabled: true, interval: 20ms}\n"
		"nodes:\n- {labels: {zqpool: zqa}, settings: {}}\n");
	begin(r, NULL);
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!r->api->watches)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
	for (unsigned i = 0; i < SMALL; i++) { /* two on each NUMA node */
		struct fake_container *b = create_for(
			r, "zqns", pods[i], 7, i ? "cores.numafit.io/zqgone" : "numafit.io/zqkey");

		assert_non_null(b);
		if (i == 3 || i == 5)
			gone[i == 5] = b;
	}
	stop(r, gone[0]);
	stop(r, gone[1]);
	assert_null(create_for(r, "zqns", "zqroom", 10, "numafit.io/cores"));
	for (size_t i = LARGE; i < PODS; i++)
		assert_null(create_for(r, "zqns", pods[i], 65, "numafit.io/zqodd"));
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		r->seen = 0;
		(void)await_line(r, events[i]);
	}
	assert_true(shell(r, "$BIN/numafit bundle --run-directory $RUN -o $DIR/all.tar"));
	assert_true(shell(r, "$BIN/numafit bundle --redact --run-directory $RUN -o $DIR/none.tar"));
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		(void)setenv("WHAT", events[i], 1);
		assert_true(shell(r, "tar -xOf $DIR/none.tar | grep -q $WHAT"));
	}
	assert_true(shell(r, "tar -xOf $DIR/all.tar | grep -q zqaccount"));
	assert_false(shell(r, "tar -xOf $DIR/none.tar | grep -aoi '.\\{0,60\\}zq.*' >&2"));
	end(r, SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			no_text_of_an_api_server_and_no_evicted_or_moved_pod_is_named, setup,
			teardown),
	};

	return cmocka_run_group_tests_name("redact-api", tests, NULL, NULL);
}
