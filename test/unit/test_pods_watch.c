/* The watch of pods itself: a kubelet that is not there, not ready, or that refuses, and messages
 * that are large, unknown or cannot be read. */
#include "pods_rig.h"

static void a_kubelet_that_starts_is_watched_at_once(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->k.dir, 0700), 0);
	w->options.retry_min_ms = SLOW_MS;
	send_synced(w);
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
	send_synced(w);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	kubelet_start(&w->k);
	UNTIL(&w->k, pods_synced(w->p));
	assert_string_equal(w->k.log, " pods-api-waiting pods-api-synced");
}

static void an_absent_directory_is_watched_until_a_kubelet_makes_it(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	send_synced(w);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	kubelet_start(&w->k); /* with its directory */
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(w->nr_watched, 1);
}

static void a_kubelet_without_the_api_is_asked_again_when_it_starts_anew(void **state)
{
	struct world *w = *state;

	w->options.retry_max_ms = NEVER_MS / 10; /* ten times that is out of reach */
	w->code = RPC_UNIMPLEMENTED;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	die(w);
	w->code = RPC_OK;
	send_synced(w);
	kubelet_start(&w->k);
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(w->nr_watched, 2);
	assert_string_equal(w->k.log, " pods-api-waiting pods-api-synced");
}

static void a_kubelet_that_is_not_ready_is_asked_again(void **state)
{
	struct world *w = *state;

	w->code = RPC_FAILED_PRECONDITION;
	send_synced(w);
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
	send_synced(w);
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

	send_bytes(w, unknown);
	send_bytes(w, (struct blob){"", 0});
	send_synced(w);
	send_synced(w);
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
		send_bytes(w, no_event);
		send_event(w, PODS_ADDED, no_pod);
		send_event(w, PODS_MODIFIED, no_uid);
		send_event(w, PODS_DELETED, no_uid);
	}
	send_pod(w, PODS_ADDED, "a", 1);
	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(pods_count(w->p), 1);
	assert_string_equal(
		w->k.log, " pods-api-odd-pod! pods-api-odd-pod! pods-api-odd-pod! pods-api-synced");
}

/* A pod whose bytes are so many that the event has that size. */
static void send_large_pod(struct world *w, const char *uid, size_t event_bytes)
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

static void pods_of_16_mib_take_little_room(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 5; i++) /* one after the other, more than gRPC's buffers hold */
		send_large_pod(w, "large", RPC_REPLY_MAX);
	send_pod(w, PODS_ADDED, "a", 1);
	send_synced(w);
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
	send_large_pod(w, "too-large", RPC_REPLY_MAX + 1024);
	send_synced(w);
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
	send_synced(w);
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
	send_synced(w);
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
	send_synced(w);
	begin(w); /* all is well */
	UNTIL(&w->k, pods_synced(w->p));
	pods_close(w->p);
	UNTIL(&w->k, !w->watcher);
	w->k.log[0] = '\0';
	w->code = RPC_UNKNOWN;
	begin(w); /* the kubelet said no */
	UNTIL(&w->k, w->k.log[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_kubelet_that_starts_is_watched_at_once),
		IN_WORLD(an_absent_kubelet_is_logged_once_and_found_when_its_directory_appears),
		IN_WORLD(an_absent_directory_is_watched_until_a_kubelet_makes_it),
		IN_WORLD(a_kubelet_without_the_api_is_asked_again_when_it_starts_anew),
		IN_WORLD(a_kubelet_that_is_not_ready_is_asked_again),
		IN_WORLD(each_grpc_status_is_logged_with_its_own_event),
		IN_WORLD(a_watch_that_ends_at_once_is_started_later_and_later),
		IN_WORLD(events_of_unknown_kinds_are_skipped),
		IN_WORLD(an_unreadable_pod_is_logged_once_and_skipped),
		IN_WORLD(pods_of_16_mib_take_little_room),
		IN_WORLD(a_pod_that_is_too_large_ends_the_watch_and_leaves_the_others),
		IN_WORLD(a_thousand_pods_are_kept_in_little_memory),
		IN_WORLD(closing_is_allowed_in_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
