#include <kubelet/pod_resources.h>

#include <io/watch.h>
#include <kubelet/pod_resources_server_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kubelet_server.h"

/* The client against a server of ours that says what the case wants. */

enum {
	NEVER_MS = 20 * SERVER_PATIENCE_MS,
	SLOW_MS = NEVER_MS / 2,
	NS_PER_MS = 1000000,
	HELD_MAX = 8
};

enum reply { REPLY_ANSWER, REPLY_CODE, REPLY_LATER };

struct world {
	struct kubelet k;
	struct pod_resources *r;
	struct pod_resources_options options;
	struct pod_resources_handler handler;
	enum reply reply;
	enum rpc_code code;  /* REPLY_CODE */
	unsigned after;      /* so many of them an answer follows; 0: none does */
	struct arena memory; /* of the answer */
	struct blob answer;
	struct rpc *later[HELD_MAX];
	unsigned nr_later, nr_asked, nr_updated;
	size_t nr_pods;
	bool changed;               /* the socket */
	struct blob devices;        /* the answer to GetAllocatableResources, */
	enum rpc_code devices_code; /* or why there is none */
	unsigned nr_devices_asked;
	unsigned wishes; /* of updated(), each for another question */
};

static void on_list(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_asked++;
	if (w->reply == REPLY_LATER) {
		assert_true(w->nr_later < HELD_MAX);
		w->later[w->nr_later++] = r;
	} else if (w->reply == REPLY_CODE) {
		rpc_end(r, w->code, "the kubelet's words");
		if (w->after && !--w->after)
			w->reply = REPLY_ANSWER;
	} else {
		rpc_answer(r, w->answer.data, w->answer.len);
	}
	loop_stop(w->k.loop);
}

static void on_allocatable(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_devices_asked++;
	if (w->devices_code)
		rpc_end(r, w->devices_code, "not today");
	else
		rpc_answer(r, w->devices.data, w->devices.len);
	loop_stop(w->k.loop);
}

static const struct rpc_method methods[] = {
	{.path = POD_RESOURCES_PATH("List"), .kind = RPC_UNARY, .called = on_list},
	{.path = POD_RESOURCES_PATH("GetAllocatableResources"),
		.kind = RPC_UNARY,
		.called = on_allocatable},
};

static void on_updated(void *ctx, const struct pods_held *held)
{
	struct world *w = ctx;

	w->nr_updated++;
	w->nr_pods = held->nr;
	if (w->wishes) {
		w->wishes--;
		(void)pod_resources_refresh(w->r);
	}
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
	w->handler = (struct pod_resources_handler){w, on_updated, on_event};
	w->options = (struct pod_resources_options){.socket = w->k.path,
		.every_ms = NEVER_MS,
		.answer_ms = NEVER_MS,
		.retry_min_ms = 1,
		.retry_max_ms = NEVER_MS,
		.gap_ms = 1};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	pod_resources_close(w->r);
	for (unsigned i = 0; i < w->nr_later; i++)
		rpc_end(w->later[i], RPC_UNAVAILABLE, NULL);
	kubelet_fini(&w->k);
	arena_fini(&w->memory);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	w->r = pod_resources_new(w->k.loop, w->k.pump, &w->options, &w->handler);
}

/* The answer has these pods. */
static void will_answer(struct world *w, const struct pod_held *pod, size_t nr)
{
	const struct pods_held held = {pod, nr};

	assert_int_equal(pod_resources_list_encode(&held, &w->memory, &w->answer, NULL), 0);
	w->reply = REPLY_ANSWER;
}

static const struct held_device gpus[] = {
	{"vendor.example/gpu", "gpu0", true, {(const int64_t[]){2}, 1}},
	{"vendor.example/gpu", "gpu1", true, {(const int64_t[]){3}, 1}},
};
static const struct container_held with_gpu = {.name = "app", .device = &gpus[0], .nr_devices = 1},
				   with_other = {.name = "app",
					   .device = &gpus[1],
					   .nr_devices = 1},
				   bare = {.name = "app"};

#define POD(ns_, name_, container_)                                                                \
	{                                                                                          \
		.ns = (ns_), .name = (name_), .container = (container_), .nr = 1                   \
	}
static const struct pod_held two_pods[] = {
	POD("ml", "train", &with_gpu), POD("default", "web", &bare)};

static void assert_holds(const struct world *w, const char *ns, const char *pod, const char *device)
{
	const struct container_held *c = pod_resources_find(w->r, ns, pod, "app");

	assert_non_null(c);
	assert_int_equal(c->nr_devices, device ? 1 : 0);
	if (device)
		assert_string_equal(c->device[0].id, device);
}

static void devices_given_by_the_kubelet_are_known(void **state)
{
	struct world *w = *state;

	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	assert_int_equal(pod_resources_age(w->r), 0);
	assert_null(pod_resources_find(w->r, "ml", "train", "app"));
	UNTIL(&w->k, w->nr_updated);
	assert_string_equal(w->k.log, " pod-resources-up");
	assert_int_equal(pod_resources_age(w->r), 1);
	assert_int_equal(w->nr_pods, 2);
	assert_holds(w, "ml", "train", "gpu0");
	assert_holds(w, "default", "web", NULL);
	assert_null(pod_resources_find(w->r, "ml", "train", "ap"));
	assert_null(pod_resources_find(w->r, "ml", "web", "app"));
	assert_null(pod_resources_find(w->r, "zz", "", ""));
}

static void an_absent_kubelet_is_logged_once_and_found_when_its_directory_appears(void **state)
{
	struct world *w = *state;

	w->options.retry_max_ms = 2;
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_updated);
	assert_string_equal(w->k.log, " pod-resources-waiting pod-resources-up");
}

static void a_kubelet_that_starts_is_asked_at_once(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->k.dir, 0700), 0);
	w->options.retry_min_ms = SLOW_MS;
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_updated);
	assert_string_equal(w->k.log, " pod-resources-waiting pod-resources-up");
}

static void a_restarted_kubelet_is_asked_without_a_refresh(void **state)
{
	struct world *w = *state;

	will_answer(w, two_pods, 1);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated == 1);
	kubelet_die(&w->k);
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_updated == 2);
	assert_int_equal(w->nr_pods, 2);
	assert_string_equal(w->k.log, " pod-resources-up");
}

static void what_a_dead_kubelet_gave_stays_known(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	kubelet_die(&w->k);
	assert_int_equal(pod_resources_refresh(w->r), 2);
	UNTIL(&w->k, strstr(w->k.log, "waiting"));
	assert_int_equal(unlink(w->k.path), 0); /* no news */
	kubelet_stay_quiet(&w->k);
	assert_int_equal(pod_resources_age(w->r), 1);
	assert_holds(w, "ml", "train", "gpu0");
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_updated == 2);
	assert_true(pod_resources_age(w->r) >= 2);
	assert_string_equal(w->k.log, " pod-resources-up pod-resources-waiting pod-resources-up");
}

static void refreshes_during_a_pending_call_make_one_more_call(void **state)
{
	struct world *w = *state;
	uint64_t wished;

	will_answer(w, two_pods, 2);
	w->reply = REPLY_LATER;
	kubelet_start(&w->k);
	begin(w);
	assert_int_equal(pod_resources_refresh(w->r), 1);
	UNTIL(&w->k, w->nr_asked == 1);
	wished = pod_resources_refresh(w->r);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(pod_resources_refresh(w->r), wished);
	assert_int_equal(w->nr_asked, 1);
	w->reply = REPLY_ANSWER;
	rpc_answer(w->later[--w->nr_later], w->answer.data, w->answer.len);
	UNTIL(&w->k, w->nr_updated == 1);
	assert_true(pod_resources_age(w->r) < wished);
	UNTIL(&w->k, w->nr_updated == 2);
	assert_true(pod_resources_age(w->r) == wished);
	assert_int_equal(w->nr_asked, 2);
}

static void without_a_refresh_the_kubelet_is_asked_periodically(void **state)
{
	struct world *w = *state;

	w->options.every_ms = 1;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated == 3);
	assert_string_equal(w->k.log, " pod-resources-up");
}

static void calls_keep_a_minimum_interval(void **state)
{
	enum { GAP_MS = 20, NR = 10, EARLY_MS = 3 }; /* the loop's clock stands during a turn */
	struct world *w = *state;
	uint64_t before = loop_monotonic_ns();

	w->options.gap_ms = GAP_MS;
	w->wishes = NR;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated == NR);
	assert_true(loop_monotonic_ns() - before >=
		    (uint64_t)(NR - 1) * (GAP_MS - EARLY_MS) * NS_PER_MS);
}

static void the_rate_limit_of_the_kubelet_is_logged_once_and_passes(void **state)
{
	struct world *w = *state;

	will_answer(w, two_pods, 2);
	w->reply = REPLY_CODE;
	w->code = RPC_RESOURCE_EXHAUSTED;
	w->after = 5;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	assert_int_equal(w->nr_asked, 6);
	assert_string_equal(w->k.log, " pod-resources-refused pod-resources-up");
}

static void a_rate_limit_that_lasts_is_logged_as_bad(void **state)
{
	struct world *w = *state;

	w->options.retry_max_ms = 4;
	w->reply = REPLY_CODE;
	w->code = RPC_RESOURCE_EXHAUSTED;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_asked == 10);
	assert_string_equal(w->k.log, " pod-resources-refused pod-resources-refused!");
	assert_non_null(strstr(w->k.last_text, "the kubelet's words"));
}

static void a_refresh_does_not_shorten_the_delay_after_a_refusal(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	w->reply = REPLY_CODE;
	w->code = RPC_RESOURCE_EXHAUSTED;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	(void)pod_resources_refresh(w->r);
	kubelet_stay_quiet(&w->k);
	assert_int_equal(w->nr_asked, 1);
}

static void a_started_kubelet_that_refuses_is_retried_after_a_delay(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->k.dir, 0700), 0);
	w->options.retry_min_ms = SLOW_MS;
	w->reply = REPLY_CODE;
	w->code = RPC_RESOURCE_EXHAUSTED;
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_asked);
	kubelet_stay_quiet(&w->k);
	assert_true(w->nr_asked <= 2); /* the socket may be seen twice */
	/* not bad: the delays began anew with this kubelet */
	assert_string_equal(w->k.log, " pod-resources-waiting pod-resources-refused");
}

static void socket_changed(void *ctx)
{
	struct world *w = ctx;

	w->changed = true;
	loop_stop(w->k.loop);
}

/* A question is on its way when the socket becomes another one. */
static void renew_socket_in_question(struct world *w)
{
	will_answer(w, two_pods, 2);
	w->reply = REPLY_LATER;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_asked == 1);
	struct watch *watch = watch_new(w->k.loop, w->k.path, socket_changed, w);
	assert_non_null(watch);
	struct acceptor *old = w->k.door;
	kubelet_listen(&w->k);
	acceptor_close(old);
	UNTIL(&w->k, w->changed);
	watch_close(watch);
	w->reply = REPLY_ANSWER;
}

static void a_kubelet_that_starts_during_a_call_is_asked_too(void **state)
{
	struct world *w = *state;

	renew_socket_in_question(w);
	rpc_answer(w->later[--w->nr_later], w->answer.data, w->answer.len);
	UNTIL(&w->k, w->nr_updated == 2);
	assert_int_equal(w->nr_asked, 2);
}

static void a_kubelet_that_starts_during_a_refused_call_is_asked_too(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	renew_socket_in_question(w);
	rpc_end(w->later[--w->nr_later], RPC_RESOURCE_EXHAUSTED, NULL);
	UNTIL(&w->k, w->nr_updated == 1);
	assert_int_equal(w->nr_asked, 2);
}

static void delays_start_over_after_an_answer(void **state)
{
	struct world *w = *state;

	w->options.retry_max_ms = 2;
	will_answer(w, two_pods, 2);
	w->reply = REPLY_CODE;
	w->code = RPC_RESOURCE_EXHAUSTED;
	w->after = 1;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	w->reply = REPLY_CODE;
	w->after = 1;
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, w->nr_updated == 2);
	assert_string_equal(w->k.log, " pod-resources-refused pod-resources-up"
				      " pod-resources-refused pod-resources-up");
}

static void each_grpc_status_is_logged_with_its_own_event(void **state)
{
	static const struct {
		enum rpc_code code;
		const char *log;
	} cases[] = {
		{RPC_UNKNOWN, " pod-resources-refused!"},
		{RPC_PERMISSION_DENIED, " pod-resources-refused!"},
		{RPC_UNAUTHENTICATED, " pod-resources-refused!"},
		{(enum rpc_code)77, " pod-resources-refused!"},
		{RPC_DEADLINE_EXCEEDED, " pod-resources-refused"},
		{RPC_UNAVAILABLE, " pod-resources-waiting"},
		{RPC_UNIMPLEMENTED, " pod-resources-waiting"},
	};
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	w->reply = REPLY_CODE;
	kubelet_start(&w->k);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		w->k.log[0] = '\0';
		w->code = cases[i].code;
		begin(w);
		UNTIL(&w->k, w->k.log[0]);
		assert_string_equal(w->k.log, cases[i].log);
		pod_resources_close(w->r);
	}
	w->r = NULL;
}

static void an_unusable_socket_is_logged_as_bad(void **state)
{
	static const char directory[] = "no-directory/because-it-is-a-file";
	struct world *w = *state;
	char path[sizeof w->k.top + sizeof directory], file[sizeof path];
	char long_path[200];

	memset(long_path, 'x', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	w->options.retry_min_ms = SLOW_MS;
	w->options.socket = long_path;
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	pod_resources_close(w->r);
	(void)snprintf(path, sizeof path, "%s/%s", w->k.top, directory);
	(void)snprintf(file, sizeof file, "%s/no-directory", w->k.top);
	FILE *f = fopen(file, "w");
	assert_non_null(f);
	(void)fclose(f);
	w->options.socket = path;
	begin(w);
	UNTIL(&w->k, strstr(w->k.log + 1, " "));
	assert_string_equal(w->k.log, " pod-resources-waiting! pod-resources-waiting!");
	assert_non_null(strstr(w->k.last_text, "Not a directory"));
	(void)unlink(file);
}

static void an_unreadable_answer_keeps_the_previous_answer(void **state)
{
	static const struct blob bad = {"\x0a\x05xy", 4};
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	w->answer = bad;
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, strstr(w->k.log, "refused"));
	assert_string_equal(w->k.log, " pod-resources-up pod-resources-refused!");
	assert_int_equal(pod_resources_age(w->r), 1);
	assert_int_equal(w->nr_updated, 1);
	assert_holds(w, "ml", "train", "gpu0");
}

static void an_answer_that_is_too_large_is_refused(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	w->answer = (struct blob){arena_alloc(&w->memory, RPC_REPLY_MAX + 1), RPC_REPLY_MAX + 1};
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	assert_string_equal(w->k.log, " pod-resources-refused");
	assert_non_null(strstr(w->k.last_text, "larger than max"));
}

static void a_kubelet_that_never_answers_is_asked_again(void **state)
{
	struct world *w = *state;

	w->options.answer_ms = 100;
	will_answer(w, two_pods, 2);
	w->reply = REPLY_LATER;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	assert_string_equal(w->k.log, " pod-resources-refused");
	w->reply = REPLY_ANSWER;
	UNTIL(&w->k, w->nr_updated);
	assert_string_equal(w->k.log, " pod-resources-refused pod-resources-up");
}

static void of_two_pods_with_one_name_the_one_with_devices_counts(void **state)
{
	static const struct pod_held pods[] = {POD("b", "first-holds", &with_gpu),
		POD("a", "last-holds", &bare), POD("c", "both-hold", &with_gpu),
		POD("d", "none-holds", &bare), POD("b", "first-holds", &bare),
		POD("a", "last-holds", &with_other), POD("c", "both-hold", &with_other),
		POD("d", "none-holds", &bare)};
	struct world *w = *state;

	will_answer(w, pods, sizeof pods / sizeof pods[0]);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	assert_int_equal(w->nr_pods, sizeof pods / sizeof pods[0]);
	assert_holds(w, "b", "first-holds", "gpu0");
	assert_holds(w, "a", "last-holds", "gpu1");
	assert_holds(w, "c", "both-hold", "gpu1");
	assert_holds(w, "d", "none-holds", NULL);
}

static void a_thousand_pods_are_found(void **state)
{
	enum { NR = 1000 };
	static struct pod_held pods[NR];
	static char name[NR][8];
	struct world *w = *state;

	for (unsigned i = 0; i < NR; i++) {
		(void)snprintf(name[i], sizeof name[i], "p%u", i);
		pods[i] = (struct pod_held)POD(
			i % 3 ? "ml" : "default", name[i], i % 2 ? &with_gpu : &with_other);
	}
	will_answer(w, pods, NR);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	for (unsigned i = 0; i < NR; i++) {
		assert_holds(w, i % 3 ? "ml" : "default", name[i], i % 2 ? "gpu0" : "gpu1");
		assert_null(pod_resources_find(w->r, i % 3 ? "default" : "ml", name[i], "app"));
	}
}

/* The kubelet can give out the first nr of these. */
static void will_give_out(struct world *w, size_t nr)
{
	const struct devices_allocatable all = {gpus, nr};

	assert_int_equal(pod_resources_allocatable_encode(&all, &w->memory, &w->devices, NULL), 0);
	w->devices_code = RPC_OK;
}

static size_t nr_resources(const struct world *w, const struct device_count **out)
{
	struct world *writable = (struct world *)(uintptr_t)w;
	size_t nr;

	assert_int_equal(pod_resources_devices(w->r, &writable->memory, out, &nr), 0);
	return nr;
}

static void devices_are_asked_for_beside_the_pods(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	assert_int_equal(nr_resources(w, &got), 0);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	assert_string_equal(got->resource, "vendor.example/gpu");
	assert_int_equal(got->nr, 2);
	assert_int_equal(got->on[0].id, 2);
	assert_int_equal(got->on[0].allocatable, 1);
	assert_int_equal(got->on[0].used, 1);
	assert_int_equal(got->on[1].id, 3);
	assert_int_equal(got->on[1].used, 0);
	assert_string_equal(w->k.log, " pod-resources-up");
}

static void only_changed_devices_are_reported(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	kubelet_stay_quiet(&w->k);
	unsigned before = w->nr_updated;
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, w->nr_updated == before + 1);
	UNTIL(&w->k, w->nr_devices_asked == 2);
	kubelet_stay_quiet(&w->k);
	assert_int_equal(w->nr_updated, before + 1);
	will_give_out(w, 1);
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, w->nr_updated == before + 3);
	assert_int_equal(nr_resources(w, &got), 1);
	assert_int_equal(got->nr, 1);
}

static void without_an_answer_the_previous_devices_stay_and_one_line_is_logged(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	w->options.every_ms = 1;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	w->devices_code = RPC_RESOURCE_EXHAUSTED; /* it will pass */
	unsigned asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(w->k.log, " pod-resources-up");
	w->devices_code = RPC_UNKNOWN;
	asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(w->k.log, " pod-resources-up pod-resources-no-devices!");
	assert_non_null(strstr(w->k.last_text, "GetAllocatableResources: not today"));
	assert_int_equal(nr_resources(w, &got), 1);
	w->devices_code = RPC_OK;
	w->devices = (struct blob){"\x0a\x05xy", 4};
	asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(
		w->k.log, " pod-resources-up pod-resources-no-devices! pod-resources-no-devices!");
	assert_int_equal(nr_resources(w, &got), 1);
}

static void devices_are_only_asked_for_when_they_are_wanted(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.every_ms = 1;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated == 3);
	assert_int_equal(w->nr_devices_asked, 0);
	assert_int_equal(nr_resources(w, &got), 0);
}

static void closing_is_allowed_in_any_state(void **state)
{
	struct world *w = *state;

	pod_resources_close(NULL);
	begin(w); /* before the first attempt */
	pod_resources_close(w->r);
	begin(w); /* nobody is there */
	UNTIL(&w->k, w->k.log[0]);
	pod_resources_close(w->r);
	will_answer(w, two_pods, 2);
	w->reply = REPLY_LATER;
	kubelet_start(&w->k);
	begin(w); /* an answer is on its way */
	UNTIL(&w->k, w->nr_asked);
	pod_resources_close(w->r);
	w->reply = REPLY_ANSWER;
	begin(w); /* all is well */
	UNTIL(&w->k, w->nr_updated);
	pod_resources_close(w->r);
	w->k.log[0] = '\0';
	w->reply = REPLY_CODE;
	w->code = RPC_UNKNOWN;
	begin(w); /* the kubelet said no */
	UNTIL(&w->k, w->k.log[0]);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(devices_given_by_the_kubelet_are_known),
		IN_WORLD(an_absent_kubelet_is_logged_once_and_found_when_its_directory_appears),
		IN_WORLD(a_kubelet_that_starts_is_asked_at_once),
		IN_WORLD(a_restarted_kubelet_is_asked_without_a_refresh),
		IN_WORLD(what_a_dead_kubelet_gave_stays_known),
		IN_WORLD(refreshes_during_a_pending_call_make_one_more_call),
		IN_WORLD(without_a_refresh_the_kubelet_is_asked_periodically),
		IN_WORLD(calls_keep_a_minimum_interval),
		IN_WORLD(the_rate_limit_of_the_kubelet_is_logged_once_and_passes),
		IN_WORLD(a_rate_limit_that_lasts_is_logged_as_bad),
		IN_WORLD(a_refresh_does_not_shorten_the_delay_after_a_refusal),
		IN_WORLD(a_started_kubelet_that_refuses_is_retried_after_a_delay),
		IN_WORLD(a_kubelet_that_starts_during_a_call_is_asked_too),
		IN_WORLD(a_kubelet_that_starts_during_a_refused_call_is_asked_too),
		IN_WORLD(delays_start_over_after_an_answer),
		IN_WORLD(each_grpc_status_is_logged_with_its_own_event),
		IN_WORLD(an_unusable_socket_is_logged_as_bad),
		IN_WORLD(an_unreadable_answer_keeps_the_previous_answer),
		IN_WORLD(an_answer_that_is_too_large_is_refused),
		IN_WORLD(a_kubelet_that_never_answers_is_asked_again),
		IN_WORLD(of_two_pods_with_one_name_the_one_with_devices_counts),
		IN_WORLD(a_thousand_pods_are_found),
		IN_WORLD(devices_are_asked_for_beside_the_pods),
		IN_WORLD(only_changed_devices_are_reported),
		IN_WORLD(without_an_answer_the_previous_devices_stay_and_one_line_is_logged),
		IN_WORLD(devices_are_only_asked_for_when_they_are_wanted),
		IN_WORLD(closing_is_allowed_in_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
