#include "pod_resources_rig.h"

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

/* A wish alone does not shorten the delay after a failure. */
static void who_waits_for_an_answer_has_it_asked_for_whatever_failed_before(void **state)
{
	struct world *w = *state;

	kubelet_start(&w->k);
	w->options.retry_min_ms = NEVER_MS;
	w->reply = REPLY_CODE;
	w->code = RPC_FAILED_PRECONDITION;
	begin(w);
	UNTIL(&w->k, *w->k.log);
	assert_int_equal(w->nr_asked, 1);
	will_answer(w, two_pods, 2);
	(void)pod_resources_refresh(w->r);
	kubelet_stay_quiet(&w->k);
	assert_int_equal(w->nr_asked, 1);
	pod_resources_hurry(w->r);
	UNTIL(&w->k, w->nr_updated == 1);
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
		IN_WORLD(who_waits_for_an_answer_has_it_asked_for_whatever_failed_before),
		IN_WORLD(a_kubelet_that_starts_during_a_refused_call_is_asked_too),
		IN_WORLD(delays_start_over_after_an_answer),
		IN_WORLD(each_grpc_status_is_logged_with_its_own_event),
		IN_WORLD(an_unusable_socket_is_logged_as_bad),
		IN_WORLD(closing_is_allowed_in_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
