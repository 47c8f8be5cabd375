#include <kubelet/pods.h>

#include <kubelet/pods_server_pb.h>
#include <numafit/vec.h>

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kubelet_server.h"

/* The watch against a server of ours that sends what the case wants. */

enum { NEVER_MS = 20 * SERVER_PATIENCE_MS, SLOW_MS = NEVER_MS / 2 };

struct world {
	struct kubelet k;
	struct pods *p;
	struct pods_options options;
	struct pods_handler handler;
	struct arena memory; /* of what is sent */
	struct {
		VEC(struct blob);
	} script;            /* sent to each watcher; it may grow */
	size_t at;           /* the next one of the script */
	struct rpc *watcher; /* NULL: nobody watches */
	bool sending;        /* a message has not left yet */
	enum rpc_code code;  /* not RPC_OK: the watch is refused with it */
	enum rpc_code end;   /* not RPC_OK: it ends so after the script */
	unsigned nr_watched, nr_changed;
	char changed[SERVER_LOG_MAX]; /* uids, each after a blank */
};

static void tell_next(struct world *w)
{
	if (!w->watcher || w->sending)
		return;
	if (w->at < w->script.nr) {
		const struct blob *b = &w->script.at[w->at++];

		w->sending = true;
		assert_int_equal(rpc_send(w->watcher, b->data, b->len), 0);
	} else if (w->end != RPC_OK) {
		rpc_end(w->watcher, w->end, "the kubelet's words");
	}
}

static void on_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_watched++;
	loop_stop(w->k.loop);
	if (w->code != RPC_OK) {
		rpc_end(r, w->code, "the kubelet's words");
		return;
	}
	w->watcher = r;
	w->sending = false;
	w->at = 0;
	tell_next(w);
}

static void on_sendable(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	if (w->watcher != r)
		return;
	w->sending = false;
	tell_next(w);
	loop_stop(w->k.loop);
}

static void on_closed(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	if (w->watcher == r)
		w->watcher = NULL;
	loop_stop(w->k.loop);
}

static const struct rpc_method methods[] = {
	{PODS_WATCH_PATH, RPC_STREAM, on_watch, on_sendable, on_closed},
};

static void on_changed(void *ctx, const struct known_pod *pod)
{
	struct world *w = ctx;
	size_t len = strlen(w->changed);

	w->nr_changed++;
	assert_ptr_equal(pods_find(w->p, pod->pod.uid), pod);
	if (len + strlen(pod->pod.uid) + 2 < sizeof w->changed)
		(void)snprintf(w->changed + len, sizeof w->changed - len, " %s", pod->pod.uid);
	loop_stop(w->k.loop);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	kubelet_log(&w->k, bad, event, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	kubelet_init(&w->k, methods, sizeof methods / sizeof methods[0], w);
	arena_init(&w->memory, SIZE_MAX);
	w->handler = (struct pods_handler){w, on_changed, on_event};
	w->options = (struct pods_options){w->k.path, 1, NEVER_MS};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	pods_close(w->p);
	w->watcher = NULL;
	kubelet_fini(&w->k);
	vec_fini(&w->script);
	arena_fini(&w->memory);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	w->p = pods_new(w->k.loop, w->k.pump, &w->options, &w->handler);
}

static void tell_bytes(struct world *w, struct blob message)
{
	*vec_push(&w->script) = message;
	tell_next(w);
}

static void send_event(struct world *w, enum pods_event_type type, struct blob pod)
{
	const struct pods_event event = {type, pod};
	struct blob message;

	assert_int_equal(pods_event_encode(&event, &w->memory, &message, NULL), 0);
	tell_bytes(w, message);
}

static const struct key_value annotations[] = {
	{"numafit.io/numa-hint", "{\"v\":1}"}, {"someone.else/says", "a lot"}};

static struct blob encoded(struct world *w, const struct known_pod *pod)
{
	struct blob b;

	assert_int_equal(pods_pod_encode(pod, &w->memory, &b, NULL), 0);
	return b;
}

/* A Guaranteed pod with one container that asks for that many CPUs. */
static void send_pod(struct world *w, enum pods_event_type type, const char *uid, unsigned cpus)
{
	const struct ask app = {.name = "app",
		.kind = CONTAINER_APP,
		.cpu_milli = cpus * UINT64_C(1000),
		.nr_memory = 1,
		.memory = {{0, 1 << 30}}};
	const struct known_pod pod = {.pod = {.uid = uid,
					      .ns = "ml",
					      .name = uid,
					      .qos = QOS_GUARANTEED,
					      .nr = type == PODS_DELETED ? 0 : 1,
					      .container = type == PODS_DELETED ? NULL : &app,
					      .annotations = annotations,
					      .nr_annotations = 2}};

	send_event(w, type, encoded(w, &pod));
}

static void tell_synced(struct world *w)
{
	send_event(w, PODS_SYNCED, (struct blob){0});
}

/* The kubelet dies, and has nothing to send when it comes back. */
static void die(struct world *w)
{
	kubelet_die(&w->k);
	w->watcher = NULL;
	w->script.nr = 0;
}

static uint64_t cpus_of(const struct world *w, const char *uid)
{
	const struct known_pod *pod = pods_find(w->p, uid);

	return pod ? pod->pod.container[0].cpu_milli / 1000 : 0;
}

static void pods_that_the_kubelet_reports_can_be_found(void **state)
{
	static const char *const resources[] = {"another.example/nic", "vendor.example/gpu"};
	static const struct ask asks[] = {
		{.name = "setup", .kind = CONTAINER_INIT, .cpu_milli = 500},
		{.name = "proxy", .kind = CONTAINER_SIDECAR, .cpu_milli = 1500},
		{.name = "app",
			.kind = CONTAINER_APP,
			.cpu_milli = 4000,
			.nr_memory = 2,
			.memory = {{0, 1 << 30}, {2 << 20, 64 << 20}},
			.nr_devices = 2,
			.device = {{0, 1}, {1, 2}}},
	};
	const struct pod ask = {.uid = "u", .qos = QOS_BURSTABLE, .nr = 3, .container = asks};
	const struct known_pod sent = {.pod = {.uid = "u",
					       .ns = "ml",
					       .name = "train",
					       .qos = QOS_BURSTABLE,
					       .pod_level = ask.pod_level,
					       .nr = ask.nr,
					       .container = ask.container,
					       .annotations = annotations,
					       .nr_annotations = 2},
		.resource = resources,
		.nr_resources = 2};
	struct world *w = *state;

	send_event(w, PODS_ADDED, encoded(w, &sent));
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	assert_null(pods_find(w->p, "u"));
	UNTIL(&w->k, pods_synced(w->p));
	const struct known_pod *got = pods_find(w->p, "u");
	assert_non_null(got);
	assert_string_equal(w->changed, " u");
	assert_string_equal(w->k.log, " pods-api-synced");
	assert_string_equal(w->k.last_text, "1 pods");
	assert_string_equal(got->pod.uid, "u");
	assert_string_equal(got->pod.ns, "ml");
	assert_string_equal(got->pod.name, "train");
	assert_int_equal(got->pod.source, POD_FROM_KUBELET);
	assert_int_equal(got->pod.nr_annotations, 1);
	assert_string_equal(pod_annotation(&got->pod, "numafit.io/numa-hint"), "{\"v\":1}");
	assert_int_equal(got->pod.qos, QOS_BURSTABLE);
	assert_string_equal(got->pod.uid, "u");
	assert_int_equal(got->pod.nr, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct ask *c = &got->pod.container[i];

		assert_string_equal(c->name, asks[i].name);
		assert_int_equal(c->kind, asks[i].kind);
		assert_int_equal(c->cpu_milli, asks[i].cpu_milli);
		assert_int_equal(c->nr_memory, asks[i].nr_memory);
		assert_int_equal(c->nr_devices, asks[i].nr_devices);
	}
	assert_int_equal(got->nr_resources, 2);
	assert_string_equal(got->resource[1], "vendor.example/gpu");
}

static void pods_are_added_changed_and_removed(void **state)
{
	struct world *w = *state;

	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	send_pod(w, PODS_ADDED, "b", 2);
	UNTIL(&w->k, cpus_of(w, "b") == 2);
	send_pod(w, PODS_MODIFIED, "b", 2); /* its status, say */
	send_pod(w, PODS_ADDED, "a", 1);
	UNTIL(&w->k, cpus_of(w, "a") == 1);
	send_pod(w, PODS_MODIFIED, "b", 3);
	UNTIL(&w->k, cpus_of(w, "b") == 3);
	send_pod(w, PODS_MODIFIED, "c", 4); /* not sent before: as good as added */
	UNTIL(&w->k, cpus_of(w, "c") == 4);
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->changed, " b a b c");
	send_pod(w, PODS_DELETED, "b", 0);
	send_pod(w, PODS_DELETED, "nobody", 0);
	send_pod(w, PODS_ADDED, "z", 5);
	UNTIL(&w->k, pods_find(w->p, "z"));
	assert_null(pods_find(w->p, "b"));
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->k.log, " pods-api-synced");
}

static void any_change_of_the_requests_is_reported(void **state)
{
	static const char *const some[] = {"another.example/nic", "vendor.example/gpu"},
				 *const others[] = {"another.example/nic", "vendor.example/tpu"};
	/* so that every pod has the same resources */
	static const struct ask beside = {.name = "beside",
		.cpu_milli = 1,
		.nr_memory = 1,
		.memory = {{0, 1}},
		.nr_devices = 2,
		.device = {{0, 1}, {1, 1}}};
	static const struct {
		struct ask ask;
		const char *const *resource;
		enum qos qos;
	} cases[] = {
		{{.name = "x", .cpu_milli = 1}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 1}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{0, 1}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{0, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{1, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{1, 2}}}, others,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 1}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 2}}}, some,
			QOS_GUARANTEED},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{2 << 20, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .kind = CONTAINER_INIT}, some, QOS_BURSTABLE},
		{{.name = "y", .kind = CONTAINER_SIDECAR}, some, QOS_BURSTABLE},
	};
	enum { NR = sizeof cases / sizeof cases[0] };
	struct world *w = *state;

	for (unsigned i = 0; i < 2 * NR; i++) { /* each a second time as it was */
		const struct ask both[] = {cases[i / 2].ask, beside};
		const struct known_pod pod = {.pod = {.uid = "u",
						      .ns = "n",
						      .name = "n",
						      .qos = cases[i / 2].qos,
						      .nr = 2,
						      .container = both},
			.resource = cases[i / 2].resource,
			.nr_resources = 2};

		send_event(w, PODS_MODIFIED, encoded(w, &pod));
	}
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(w->nr_changed, NR);
	assert_int_equal(pods_count(w->p), 1);
}

static void a_pod_that_a_new_watch_lacks_is_gone(void **state)
{
	struct world *w = *state;

	send_pod(w, PODS_ADDED, "stays", 1);
	send_pod(w, PODS_ADDED, "goes", 1);
	send_pod(w, PODS_ADDED, "grows", 1);
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	die(w);
	UNTIL(&w->k, strstr(w->k.log, "waiting"));
	assert_false(pods_synced(w->p));
	assert_int_equal(pods_count(w->p), 3); /* better than nothing */
	w->changed[0] = '\0';
	send_pod(w, PODS_ADDED, "comes", 1);
	send_pod(w, PODS_ADDED, "grows", 2);
	send_pod(w, PODS_ADDED, "stays", 1);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_watched == 2 && cpus_of(w, "grows") == 2 && !w->sending);
	assert_non_null(pods_find(w->p, "goes")); /* not all is sent yet */
	tell_synced(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_null(pods_find(w->p, "goes"));
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->changed, " comes grows");
	assert_string_equal(
		w->k.log, " pods-api-synced pods-api-lost pods-api-waiting pods-api-synced");
}

static void a_kubelet_that_starts_is_watched_at_once(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->k.dir, 0700), 0);
	w->options.retry_min_ms = SLOW_MS;
	tell_synced(w);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	kubelet_start(&w->k);
	UNTIL(&w->k, pods_synced(w->p));
	assert_string_equal(w->k.log, " pods-api-waiting pods-api-synced");
	assert_int_equal(w->nr_watched, 1);
}

static void an_absent_kubelet_is_logged_once_and_found_when_its_directory_appears(void **state)
{
	struct world *w = *state;

	w->options.retry_max_ms = 2;
	tell_synced(w);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	kubelet_start(&w->k);
	UNTIL(&w->k, pods_synced(w->p));
	assert_string_equal(w->k.log, " pods-api-waiting pods-api-synced");
}

static void a_kubelet_that_is_not_ready_is_asked_again(void **state)
{
	struct world *w = *state;

	w->code = RPC_FAILED_PRECONDITION;
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_watched == 4);
	w->code = RPC_OK;
	UNTIL(&w->k, pods_synced(w->p));
	assert_string_equal(w->k.log, " pods-api-refused pods-api-synced");
}

static void each_grpc_status_is_logged_with_its_own_event(void **state)
{
	static const struct {
		enum rpc_code code;
		const char *log;
	} cases[] = {
		{RPC_UNIMPLEMENTED, " pods-api-waiting"},
		{RPC_UNAVAILABLE, " pods-api-waiting"},
		{RPC_FAILED_PRECONDITION, " pods-api-refused"},
		{RPC_RESOURCE_EXHAUSTED, " pods-api-refused"},
		{RPC_UNKNOWN, " pods-api-refused!"},
		{RPC_PERMISSION_DENIED, " pods-api-refused!"},
	};
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	kubelet_start(&w->k);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		w->k.log[0] = '\0';
		w->code = cases[i].code;
		begin(w);
		UNTIL(&w->k, w->k.log[0]);
		assert_string_equal(w->k.log, cases[i].log);
		pods_close(w->p);
	}
	w->p = NULL;
}

static void a_watch_that_ends_at_once_is_started_later_and_later(void **state)
{
	enum { MIN_MS = 20, WATCHES = 4, AT_LEAST_MS = 20 + 40 + 80, NS_PER_MS = 1000000 };
	struct world *w = *state;

	w->options.retry_min_ms = MIN_MS;
	tell_synced(w);
	w->end = RPC_UNAVAILABLE;
	kubelet_start(&w->k);
	begin(w);
	uint64_t before = loop_monotonic_ns();
	UNTIL(&w->k, w->nr_watched == WATCHES);
	uint64_t took_ms = (loop_monotonic_ns() - before) / NS_PER_MS;
	assert_true(took_ms >= AT_LEAST_MS - AT_LEAST_MS / 3); /* jitter, and the loop's clock */
}

static void events_of_unknown_kinds_are_skipped(void **state)
{
	static const struct blob unknown = {"\x08\x4d", 2};
	struct world *w = *state;

	tell_bytes(w, unknown);
	tell_bytes(w, (struct blob){"", 0});
	tell_synced(w);
	tell_synced(w);
	send_pod(w, PODS_ADDED, "a", 1);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_find(w->p, "a"));
	assert_string_equal(w->k.log, " pods-api-synced");
}

static void an_unreadable_pod_is_logged_once_and_skipped(void **state)
{
	static const struct blob no_event = {"\x12\x05x", 3}, no_pod = {"\x0a\x05x", 3},
				 no_uid = {"\x0a\x00", 2};
	struct world *w = *state;

	for (unsigned i = 0; i < 3; i++) {
		tell_bytes(w, no_event);
		send_event(w, PODS_ADDED, no_pod);
		send_event(w, PODS_MODIFIED, no_uid);
		send_event(w, PODS_DELETED, no_uid);
	}
	send_pod(w, PODS_ADDED, "a", 1);
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(pods_count(w->p), 1);
	assert_string_equal(
		w->k.log, " pods-api-odd-pod! pods-api-odd-pod! pods-api-odd-pod! pods-api-synced");
}

/* A pod whose bytes are so many that the event has that size. */
static void tell_large_pod(struct world *w, const char *uid, size_t event_bytes)
{
	enum { AROUND = 64 };
	char *much = arena_alloc(&w->memory, event_bytes);
	struct key_value one = {"someone.else/says", much};
	struct known_pod pod = {.pod = {.uid = uid,
					.ns = "n",
					.name = "n",
					.annotations = &one,
					.nr_annotations = 1}};

	memset(much, 'x', event_bytes - 2 * AROUND);
	send_event(w, PODS_ADDED, encoded(w, &pod));
	size_t len = w->script.at[w->script.nr - 1].len;
	assert_true(len <= event_bytes && len + 2 * AROUND >= event_bytes);
}

static void a_pod_of_16_mib_takes_little_room(void **state)
{
	struct world *w = *state;

	tell_large_pod(w, "large", RPC_REPLY_MAX);
	send_pod(w, PODS_ADDED, "a", 1);
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_non_null(pods_find(w->p, "large"));
	assert_int_equal(pods_find(w->p, "large")->pod.nr_annotations, 0);
	assert_int_equal(pods_count(w->p), 2);
}

static void a_pod_that_is_too_large_ends_the_watch_and_leaves_the_others(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	send_pod(w, PODS_ADDED, "a", 1);
	tell_large_pod(w, "too-large", RPC_REPLY_MAX + 1024);
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	assert_string_equal(w->k.log, " pods-api-refused");
	assert_non_null(strstr(w->k.last_text, "larger than max"));
	assert_int_equal(cpus_of(w, "a"), 1);
	assert_false(pods_synced(w->p));
}

static void a_thousand_pods_are_kept_in_little_memory(void **state)
{
	enum { NR = 1000, EACH_MAX = 2048 };
	struct world *w = *state;
	static char uid[NR][8];

	for (unsigned i = 0; i < NR; i++) {
		(void)snprintf(uid[i], sizeof uid[i], "u%u", i * 7 % NR);
		send_pod(w, PODS_ADDED, uid[i], i + 1);
	}
	tell_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_watched);
	size_t before = mallinfo2().uordblks;
	UNTIL(&w->k, pods_synced(w->p));
	size_t after = mallinfo2().uordblks;
	assert_int_equal(pods_count(w->p), NR);
	assert_int_equal(w->nr_changed, NR);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(cpus_of(w, uid[i]), i + 1);
	assert_true(after < before + (size_t)NR * EACH_MAX);
	die(w);
	tell_synced(w);
	kubelet_start(&w->k);
	UNTIL(&w->k, pods_synced(w->p) && w->nr_watched == 2);
	assert_int_equal(pods_count(w->p), 0);
}

static void closing_is_allowed_in_any_state(void **state)
{
	struct world *w = *state;

	pods_close(NULL);
	begin(w); /* before the first attempt */
	pods_close(w->p);
	begin(w); /* nobody is there */
	UNTIL(&w->k, w->k.log[0]);
	pods_close(w->p);
	kubelet_start(&w->k);
	begin(w); /* nothing was sent yet */
	UNTIL(&w->k, w->nr_watched);
	pods_close(w->p);
	UNTIL(&w->k, !w->watcher);
	send_pod(w, PODS_ADDED, "a", 1);
	begin(w); /* in the middle of it */
	UNTIL(&w->k, w->nr_changed);
	pods_close(w->p);
	UNTIL(&w->k, !w->watcher);
	tell_synced(w);
	begin(w); /* all is well */
	UNTIL(&w->k, pods_synced(w->p));
	pods_close(w->p);
	UNTIL(&w->k, !w->watcher);
	w->k.log[0] = '\0';
	w->code = RPC_UNKNOWN;
	begin(w); /* the kubelet said no */
	UNTIL(&w->k, w->k.log[0]);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(pods_that_the_kubelet_reports_can_be_found),
		IN_WORLD(pods_are_added_changed_and_removed),
		IN_WORLD(any_change_of_the_requests_is_reported),
		IN_WORLD(a_pod_that_a_new_watch_lacks_is_gone),
		IN_WORLD(a_kubelet_that_starts_is_watched_at_once),
		IN_WORLD(an_absent_kubelet_is_logged_once_and_found_when_its_directory_appears),
		IN_WORLD(a_kubelet_that_is_not_ready_is_asked_again),
		IN_WORLD(each_grpc_status_is_logged_with_its_own_event),
		IN_WORLD(a_watch_that_ends_at_once_is_started_later_and_later),
		IN_WORLD(events_of_unknown_kinds_are_skipped),
		IN_WORLD(an_unreadable_pod_is_logged_once_and_skipped),
		IN_WORLD(a_pod_of_16_mib_takes_little_room),
		IN_WORLD(a_pod_that_is_too_large_ends_the_watch_and_leaves_the_others),
		IN_WORLD(a_thousand_pods_are_kept_in_little_memory),
		IN_WORLD(closing_is_allowed_in_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
