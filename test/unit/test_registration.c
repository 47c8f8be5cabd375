#include "registration_rig.h"

/* The cases. */

static void a_running_kubelet_gets_our_registration_and_watches(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(w->k.nr_registers, 1);
	assert_int_equal(w->nr_logged, 1);
	assert_false(last(w)->bad);
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, "v1beta1", strlen("v1beta1")));
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, ENDPOINT, strlen(ENDPOINT)));
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, RESOURCE, strlen(RESOURCE)));
	registration_close(steal(w->r));
	assert_false(exists(w->k.plugin));
}

static void an_absent_kubelet_is_waited_for(void **state)
{
	struct world *w = *state;

	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-waiting");
	assert_false(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->k.socket));
	assert_true(is(w, REGISTRATION_WAITING));
	run_for(w, 12 * w->options.connect_max_ms); /* looks again, says nothing */
	assert_int_equal(w->nr_logged, 1);
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->nr_logged, 2);
}

/* A socket that is bound refuses connects until it listens. */
static int bind_only(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void a_refused_connection_is_tried_again(void **state)
{
	struct world *w = *state;

	start(w);
	UNTIL(w, is(w, REGISTRATION_WAITING) && w->nr_logged);
	int fd = bind_only(w->k.socket);
	UNTIL(w, is(w, REGISTRATION_CONNECTING));
	UNTIL(w, w->nr_logged == 2); /* it lasts */
	assert_string_equal(last(w)->event, "device-plugin-waiting");
	assert_false(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "refused"));
	assert_int_equal(listen(fd, 1), 0);
	UNTIL(w, is(w, REGISTRATION_REGISTERING)); /* nobody answers */
	(void)close(fd);
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->k.nr_registers, 1);
}

static void fifty_restarts_lose_nothing(void **state)
{
	enum { NR_RESTARTS = 50 };
	struct world *w = *state;

	start_with_kubelet(w);
	for (unsigned n = 1; n <= NR_RESTARTS; n++) {
		kubelet_die(&w->k, n % 2);
		if (n % 3) /* it takes a while, or none */
			UNTIL(w, !is(w, REGISTRATION_UP));
		kubelet_start(&w->k);
		UNTIL(w, w->k.nr_registers > n && is(w, REGISTRATION_UP) && w->k.nr_watches == 1);
		assert_int_equal(w->k.nr_registers, n + 1);
		assert_int_equal(count(w, "device-plugin-up"), n + 1);
	}
	assert_int_equal(w->k.nr_overlaps, 0);
	assert_int_equal(count(w, "device-plugin-lost"), NR_RESTARTS);
	assert_int_equal(count(w, "device-plugin-refused"), 0);
}

static void a_refused_registration_is_logged_once_and_tried_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "the ResourceName is invalid";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-refused");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->k.words));
	assert_true(is(w, REGISTRATION_CONNECTING));
	UNTIL(w, w->k.nr_registers == 8);
	assert_int_equal(w->nr_logged, 1);
	uint64_t before = w->k.registered_ns; /* the longest wait is reached */
	UNTIL(w, w->k.nr_registers == 9);
	assert_true(w->k.registered_ns - before >= (w->options.refused_max_ms - 5) * NS_PER_MS);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_new_kubelet_is_registered_with_although_the_old_one_refused(void **state)
{
	struct world *w = *state;

	w->options.refused_min_ms = w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "no";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	kubelet_die(&w->k, false);
	w->k.behaviour = KUBELET_WATCHES;
	kubelet_start(&w->k);
	until_up(w);
}

static void delays_for_a_new_kubelet_start_over_after_refusals_of_the_old_one(void **state)
{
	struct world *w = *state;

	w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "no";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers == 7);
	uint64_t long_ago = w->k.registered_ns;
	UNTIL(w, w->k.nr_registers == 8);
	uint64_t wait_ns = w->k.registered_ns - long_ago; /* some 300 ms */
	uint64_t again_ns = 0;
	/* on a busy machine one may be late; the next of an old kubelet would be later each time */
	for (unsigned nr = 8; !again_ns || again_ns >= wait_ns; nr += 2) {
		kubelet_die(&w->k, false);
		kubelet_start(&w->k);
		UNTIL(w, w->k.nr_registers == nr + 1);
		uint64_t first = w->k.registered_ns;
		UNTIL(w, w->k.nr_registers == nr + 2);
		again_ns = w->k.registered_ns - first;
	}
}

static void a_register_call_without_an_answer_times_out(void **state)
{
	struct world *w = *state;

	w->options.register_ms = 50;
	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers == 4);
	assert_int_equal(w->nr_logged, 1);
	assert_string_equal(last(w)->event, "device-plugin-refused");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "no answer in 50 ms"));
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_watch_counts_although_its_register_call_timed_out(void **state)
{
	struct world *w = *state;

	w->options.register_ms = 50;
	w->options.refused_min_ms = w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_CONNECTING));
	kubelet_watch(&w->k);
	until_up(w);
	assert_true(w->k.nr_registers <= 1); /* or it was given up before it came */
}

static void a_registration_without_a_watch_is_logged_once_and_tried_again(void **state)
{
	struct world *w = *state;

	w->options.watch_ms = 30;
	w->k.behaviour = KUBELET_NEVER_WATCHES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_EXPECTING));
	UNTIL(w, w->k.nr_registers == 4);
	assert_int_equal(w->nr_logged, 1);
	assert_string_equal(last(w)->event, "device-plugin-not-watched");
	assert_true(last(w)->bad);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_kubelet_that_dies_before_it_watches_is_registered_with_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_NEVER_WATCHES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_EXPECTING));
	kubelet_die(&w->k, true);
	w->k.behaviour = KUBELET_WATCHES;
	kubelet_start(&w->k);
	until_up(w);
}

static void a_watch_that_ends_alone_is_registered_again_after_a_pause(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_unwatch(&w->k);
	UNTIL(w, is(w, REGISTRATION_ENDING));
	assert_string_equal(last(w)->event, "device-plugin-lost");
	until_up(w);
	assert_int_equal(w->k.nr_registers, 2);
	assert_true(paused(w));
}

static void a_kubelet_that_ends_its_watch_at_once_is_asked_less_and_less(void **state)
{
	enum { FIRST_MS = 20, LAST_MS = FIRST_MS << 4 };
	struct world *w = *state;

	w->options.ending_ms = 1;
	w->options.refused_min_ms = FIRST_MS;
	w->options.refused_max_ms = TIMEOUT_MS;
	start_with_kubelet(w);
	/* five times, or more: what a busy machine brings too late begins again with the first */
	do {
		unsigned nr = w->k.nr_registers;

		UNTIL(w, is(w, REGISTRATION_UP));
		kubelet_unwatch(&w->k);
		UNTIL(w, w->k.nr_registers == nr + 1);
	} while (w->k.registered_ns - w->k.unwatched_ns < (LAST_MS - 5) * NS_PER_MS);
}

static void a_watch_before_a_refusal_is_ended_before_the_next_register(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers);
	kubelet_watch(&w->k);
	UNTIL(w, w->nr_streams);
	w->k.behaviour = KUBELET_WATCHES;
	rpc_end(steal(w->k.asked), RPC_UNKNOWN, "too late");
	UNTIL(w, w->k.nr_registers == 2);
	assert_true(paused(w));
	assert_int_equal(w->k.nr_overlaps, 0);
	until_up(w);
}

static void the_end_of_one_of_two_streams_restarts_the_registration(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_watch(&w->k);
	UNTIL(w, w->nr_streams == 2);
	assert_true(is(w, REGISTRATION_UP));
	rpc_end(w->streams[0], RPC_UNAVAILABLE, NULL);
	UNTIL(w, w->k.nr_registers == 2);
	assert_int_equal(w->k.nr_overlaps, 0);
	until_up(w);
	UNTIL(w, w->k.nr_watches == 1 && w->nr_streams == 1);
}

static void a_registration_may_be_closed_in_every_state_and_started_again(void **state)
{
	struct world *w = *state;

	w->options.refused_min_ms = w->options.refused_max_ms = w->options.ending_ms = TIMEOUT_MS;
	for (enum registration_state s = 0; s < NR_REGISTRATION_STATES; s++) {
		w->k.behaviour = ways[s].behaviour;
		w->k.words = "no";
		if (ways[s].kubelet)
			kubelet_start(&w->k);
		start(w);
		if (ways[s].unwatch) {
			until_up(w);
			kubelet_unwatch(&w->k);
		}
		UNTIL(w, is(w, s) && (w->nr_logged || w->k.nr_registers));
		registration_close(steal(w->r));
		assert_false(exists(w->k.plugin));
		kubelet_die(&w->k, false);
		UNTIL(w, !w->nr_streams);
		w->nr_logged = w->k.nr_registers = 0;
	}
	registration_close(NULL);
}

static void each_state_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(registration_state_name(REGISTRATION_WAITING), "waiting");
	assert_string_equal(registration_state_name(REGISTRATION_CONNECTING), "connecting");
	assert_string_equal(registration_state_name(REGISTRATION_REGISTERING), "registering");
	assert_string_equal(registration_state_name(REGISTRATION_EXPECTING), "expecting");
	assert_string_equal(registration_state_name(REGISTRATION_UP), "up");
	assert_string_equal(registration_state_name(REGISTRATION_ENDING), "ending");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_running_kubelet_gets_our_registration_and_watches),
		WITH_WORLD(an_absent_kubelet_is_waited_for),
		WITH_WORLD(a_refused_connection_is_tried_again),
		WITH_WORLD(fifty_restarts_lose_nothing),
		WITH_WORLD(a_refused_registration_is_logged_once_and_tried_again),
		WITH_WORLD(a_new_kubelet_is_registered_with_although_the_old_one_refused),
		WITH_WORLD(delays_for_a_new_kubelet_start_over_after_refusals_of_the_old_one),
		WITH_WORLD(a_register_call_without_an_answer_times_out),
		WITH_WORLD(a_watch_counts_although_its_register_call_timed_out),
		WITH_WORLD(a_registration_without_a_watch_is_logged_once_and_tried_again),
		WITH_WORLD(a_kubelet_that_dies_before_it_watches_is_registered_with_again),
		WITH_WORLD(a_watch_that_ends_alone_is_registered_again_after_a_pause),
		WITH_WORLD(a_kubelet_that_ends_its_watch_at_once_is_asked_less_and_less),
		WITH_WORLD(a_watch_before_a_refusal_is_ended_before_the_next_register),
		WITH_WORLD(the_end_of_one_of_two_streams_restarts_the_registration),
		WITH_WORLD(a_registration_may_be_closed_in_every_state_and_started_again),
		cmocka_unit_test(each_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
