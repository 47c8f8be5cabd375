#include <apiserver/apply.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_calls.h"

enum { NEVER_MS = 10 * CALLS_PATIENCE_MS, SHORT_MS = 40, NS_PER_MS = 1000000 };
#define PATH  "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1"
#define QUERY "?fieldManager=numafit"

struct world {
	struct api api;
	struct apply *p;
	unsigned state; /* what is printed */
	bool nothing;   /* print() gives nothing */
	bool silent;    /* print() does not write the beat */
	uint64_t beat;
	unsigned printed, created;
};

static char *print(void *ctx, uint64_t beat)
{
	struct world *w = ctx;
	char *text = NULL;

	w->printed++;
	w->beat = beat;
	if (w->nothing)
		return NULL;
	assert_true(asprintf(&text, "{\"state\":%u,\"beat\":%llu}", w->state,
			    w->silent ? 0ULL : (unsigned long long)beat) > 0);
	return text;
}

static void created(void *ctx)
{
	struct world *w = ctx;

	w->created++;
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	calls_log(&w->api, bad, event, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	calls_init(&w->api);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	apply_close(w->p);
	calls_fini(&w->api);
	free(w);
	return 0;
}

static void start(struct world *w, unsigned interval_ms, unsigned heartbeat_ms, bool take_over)
{
	const struct apply_options o = {
		.path = PATH,
		.manager = "numafit",
		.what = "NodeResourceTopology n1",
		.take_over = take_over,
		.advice = "set takeOver",
		.interval_ms = interval_ms,
		.heartbeat_ms = heartbeat_ms,
		.retry_min_ms = SHORT_MS,
	};
	const struct apply_handler handler = {w, print, created, on_event};

	w->p = apply_new(w->api.loop, &w->api, &o, &handler);
}

static void change(struct world *w)
{
	w->state++;
	apply_changed(w->p);
}

static void sent_is(struct world *w, unsigned state)
{
	char want[64];

	(void)snprintf(want, sizeof want, "{\"state\":%u,", state);
	assert_memory_equal(calls_first(&w->api)->body, want, strlen(want));
}

static struct apply_counters counters(const struct world *w)
{
	struct apply_counters c;

	apply_counters(w->p, &c);
	return c;
}

static void the_object_is_applied_with_our_field_manager(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	const struct api_call *c = calls_first(&w->api);
	assert_string_equal(c->method, "PATCH");
	assert_string_equal(c->path, PATH QUERY);
	assert_string_equal(c->type, "application/apply-patch+yaml");
	sent_is(w, 0);
	calls_answer(&w->api, 201);
	assert_int_equal(w->created, 1);
	assert_string_equal(w->api.log, " apply-written");
	assert_string_equal(w->api.last_text, "NodeResourceTopology n1");
	assert_int_equal(counters(w).written, 1);
}

static void taking_over_is_by_force(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS, true);
	calls_until(&w->api, 1);
	assert_string_equal(calls_first(&w->api)->path, PATH QUERY "&force=true");
	calls_answer(&w->api, 200);
	assert_int_equal(w->created, 0);
}

static void a_change_after_a_quiet_time_is_written_at_once(void **state)
{
	struct world *w = *state;
	enum { LONG_MS = 1000 };

	start(w, LONG_MS, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	calls_pass(&w->api, LONG_MS);
	uint64_t began = loop_monotonic_ns();
	change(w);
	calls_until(&w->api, 2);
	assert_true(loop_monotonic_ns() - began < (uint64_t)LONG_MS * NS_PER_MS);
	calls_answer(&w->api, 200);
}

static void changes_within_the_interval_are_one_write_at_its_end(void **state)
{
	struct world *w = *state;
	enum { CHANGES = 20, LONG_MS = 500 };

	start(w, LONG_MS, NEVER_MS, false);
	uint64_t began = loop_monotonic_ns();
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	for (unsigned i = 0; i < CHANGES; i++) {
		change(w);
		calls_pass(&w->api, 1);
	}
	calls_until(&w->api, 2);
	assert_true(loop_monotonic_ns() - began >= (uint64_t)LONG_MS * NS_PER_MS);
	sent_is(w, CHANGES);
	calls_answer(&w->api, 200);
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 2);
}

/* As the issue has it: in a burst one write in an interval at most, whatever it lasts. */
static void a_burst_of_changes_makes_one_write_in_each_interval(void **state)
{
	struct world *w = *state;
	enum { TURNS = 10 };

	start(w, SHORT_MS, NEVER_MS, false);
	uint64_t began = loop_monotonic_ns(), until = began + TURNS * SHORT_MS * UINT64_C(1000000);
	while (loop_monotonic_ns() < until) {
		change(w);
		calls_pass(&w->api, 1);
		if (w->api.open.nr)
			calls_answer(&w->api, 200);
	}
	uint64_t lasted_ms = (loop_monotonic_ns() - began) / NS_PER_MS;
	assert_true(w->api.asked <= lasted_ms / SHORT_MS + 1);
	assert_true(w->api.asked > 1);
	if (w->api.open.nr)
		calls_answer(&w->api, 200);
}

static void one_write_is_under_way_at_a_time_and_the_newest_state_follows(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	change(w);
	change(w);
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 1);
	sent_is(w, 0);
	calls_answer(&w->api, 200);
	calls_until(&w->api, 2);
	sent_is(w, 2);
	calls_answer(&w->api, 200);
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 2);
}

static void an_unchanged_object_is_not_written_again(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	for (unsigned i = 0; i < 3; i++) {
		unsigned printed = w->printed;

		apply_changed(w->p);
		while (w->printed == printed)
			calls_pass(&w->api, 1);
	}
	assert_int_equal(w->api.asked, 1);
	assert_int_equal(counters(w).behind_ms, 0);
	change(w);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
}

static void a_heartbeat_writes_the_object_with_a_new_beat_number(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;

	start(w, 1, SHORT_MS, false);
	for (unsigned i = 1; i <= 3; i++) {
		calls_until(&w->api, i);
		assert_true(w->beat > last);
		last = w->beat;
		calls_answer(&w->api, 200);
	}
	assert_string_equal(w->api.log, " apply-written"); /* logged once */
}

static void any_write_counts_as_a_heartbeat(void **state)
{
	struct world *w = *state;
	enum { BEAT_MS = 300 };

	start(w, 1, BEAT_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	calls_pass(&w->api, BEAT_MS / 2);
	uint64_t began = loop_monotonic_ns();
	change(w);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
	calls_until(&w->api, 3);
	assert_true(loop_monotonic_ns() - began >= (uint64_t)BEAT_MS * NS_PER_MS);
	calls_answer(&w->api, 200);
}

static void an_object_without_content_is_asked_for_again_with_the_heartbeat(void **state)
{
	struct world *w = *state;
	enum { BEATS = 3 };

	w->nothing = true;
	uint64_t began = loop_monotonic_ns();
	start(w, 1, SHORT_MS, false);
	while (w->printed < 1 + BEATS)
		calls_pass(&w->api, 1);
	assert_true(loop_monotonic_ns() - began >= BEATS * SHORT_MS * (uint64_t)NS_PER_MS);
	assert_int_equal(w->api.asked, 0);
}

/* Who starts anew is ahead of who was there before: what it writes first is another object. */
static void the_beat_goes_on_after_a_restart(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	assert_true(w->beat > 1700000000);
}

static void a_deleted_object_is_written_again_with_the_heartbeat(void **state)
{
	struct world *w = *state;

	w->silent = true;
	start(w, 1, SHORT_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 201);
	assert_int_equal(w->created, 1);
}

static void an_object_without_content_is_asked_for_again_after_a_change(void **state)
{
	struct world *w = *state;

	w->nothing = true;
	start(w, 1, NEVER_MS, false);
	while (!w->printed)
		calls_pass(&w->api, 1);
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->printed, 1);
	assert_int_equal(w->api.asked, 0);
	w->nothing = false;
	change(w);
	calls_until(&w->api, 1);
	sent_is(w, 1);
	calls_answer(&w->api, 200);
}

static const char conflict[] =
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Apply "
	"failed "
	"with 1 conflict: conflict with \\\"nfd-master\\\" using topology.node.k8s.io/v1alpha2: "
	".zones\",\"reason\":\"Conflict\",\"details\":{\"causes\":[{\"reason\":"
	"\"FieldManagerConflict\",\"message\":\"conflict with \\\"nfd-master\\\" using "
	"topology.node.k8s.io/v1alpha2\",\"field\":\".zones\"}]},\"code\":409}";

static void a_conflict_is_reported_and_retried_with_the_heartbeat(void **state)
{
	struct world *w = *state;
	enum { BEAT_MS = 4 * SHORT_MS };

	uint64_t began = loop_monotonic_ns();
	start(w, 1, BEAT_MS, false);
	calls_until(&w->api, 1);
	calls_answer_with(&w->api, (struct api_answer){.status = 409}, conflict);
	assert_string_equal(w->api.log, " !apply-conflict");
	assert_string_equal(w->api.last_text,
		"NodeResourceTopology n1: .zones is written by \"nfd-master\": stop that, or set "
		"takeOver");
	change(w); /* does not make it any better */
	calls_until(&w->api, 2);
	assert_true(loop_monotonic_ns() - began >= (BEAT_MS - 1) * (uint64_t)NS_PER_MS);
	calls_answer_with(&w->api, (struct api_answer){.status = 409}, conflict);
	assert_string_equal(w->api.log, " !apply-conflict");
	assert_int_equal(counters(w).conflicts, 2);
	assert_int_equal(counters(w).failed, 0);
	assert_true(counters(w).behind_ms >= BEAT_MS - 1);
	calls_until(&w->api, 3);
	sent_is(w, 1);
	calls_answer(&w->api, 200);
	assert_string_equal(w->api.log, " !apply-conflict apply-written");
	assert_int_equal(counters(w).behind_ms, 0);
}

static void new_options_end_a_conflict_and_keep_the_count_of_writes(void **state)
{
	struct world *w = *state;
	const struct apply_options o = {.path = PATH,
		.manager = "numafit",
		.what = "",
		.take_over = true,
		.interval_ms = 1,
		.heartbeat_ms = SHORT_MS};

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer_with(&w->api, (struct api_answer){.status = 409}, conflict);
	apply_set_options(w->p, &o);
	calls_until(&w->api, 2);
	assert_string_equal(calls_first(&w->api)->path, PATH QUERY "&force=true");
	calls_answer(&w->api, 200);
	assert_string_equal(w->api.log, " !apply-conflict apply-written");
	calls_until(&w->api, 3); /* the heartbeat */
	assert_int_equal(counters(w).written, 1);
	assert_int_equal(counters(w).conflicts, 1);
}

static void a_write_under_way_survives_new_options(void **state)
{
	struct world *w = *state;
	const struct apply_options o = {
		.path = PATH, .manager = "numafit", .what = "", .take_over = true};

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	apply_set_options(w->p, &o);
	assert_string_equal(calls_first(&w->api)->path, PATH QUERY);
	calls_answer(&w->api, 200);
	assert_int_equal(counters(w).written, 1);
}

static void a_failure_is_tried_again_later(void **state)
{
	static const struct {
		int status;
		const char *log;
	} cases[] = {
		{0, ""}, /* the connection reports it */
		{429, " apply-refused"}, {500, " apply-refused"}, {503, " apply-refused"},
		{403, " !apply-refused"}, {404, " !apply-refused"}, {422, " !apply-refused"},
		{409, " !apply-refused"}, /* of another kind: nobody else has its fields */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = *state;

		if (i) {
			(void)teardown(state);
			(void)setup(state);
			w = *state;
		}
		start(w, 1, NEVER_MS, false);
		calls_until(&w->api, 1);
		uint64_t began = loop_monotonic_ns();
		calls_answer(&w->api, cases[i].status);
		assert_string_equal(w->api.log, cases[i].log);
		assert_int_equal(counters(w).failed, 1);
		if (i % 2) /* by itself, or with what has changed meanwhile */
			change(w);
		calls_until(&w->api, 2);
		assert_true(loop_monotonic_ns() - began >= SHORT_MS / 2 * (uint64_t)NS_PER_MS);
		sent_is(w, i % 2);
		calls_answer(&w->api, 200);
	}
}

/* It may have been done all the same: what was there before is a change, then. */
static void after_a_failure_the_object_is_written_even_if_unchanged(void **state)
{
	struct world *w = *state;

	w->silent = true;
	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	change(w);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 0);
	w->state = 0;
	calls_until(&w->api, 3);
	sent_is(w, 0);
	calls_answer(&w->api, 200);
}

static void a_retry_waits_as_long_as_the_server_asks(void **state)
{
	struct world *w = *state;
	enum { AFTER_MS = 500 };

	start(w, 1, SHORT_MS, false);
	calls_until(&w->api, 1);
	uint64_t began = loop_monotonic_ns();
	calls_answer_with(&w->api, (struct api_answer){.status = 429, .after_ms = AFTER_MS}, NULL);
	calls_until(&w->api, 2);
	assert_true(loop_monotonic_ns() - began >= (AFTER_MS - 1) * (uint64_t)NS_PER_MS);
	calls_answer(&w->api, 200);
}

/* A heartbeat that failed is made up for, though nothing has changed. */
static void a_heartbeat_that_fails_is_tried_again(void **state)
{
	struct world *w = *state;

	w->silent = true;
	start(w, 1, 5 * SHORT_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 500);
	calls_until(&w->api, 3);
	calls_answer(&w->api, 201);
	assert_int_equal(w->created, 1);
}

static uint64_t ms_since(uint64_t when_ns)
{
	return (loop_monotonic_ns() - when_ns) / NS_PER_MS;
}

static void the_age_of_the_oldest_waiting_change_is_known(void **state)
{
	struct world *w = *state;
	enum { SLOW_MS = 60 };

	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	change(w);
	calls_until(&w->api, 2);
	calls_pass(&w->api, SLOW_MS);
	assert_true(counters(w).behind_ms >= SLOW_MS);
	uint64_t next = loop_monotonic_ns();
	change(w);
	calls_pass(&w->api, SLOW_MS);
	calls_answer(&w->api, 200);
	assert_true(counters(w).lag_ms >= 2 * SLOW_MS); /* of the first one */
	uint64_t ms = counters(w).behind_ms;
	assert_in_range(ms, SLOW_MS, ms_since(next));
	calls_until(&w->api, 3);
	calls_answer(&w->api, 200);
	ms = counters(w).lag_ms;
	assert_in_range(ms, SLOW_MS, ms_since(next));
	assert_int_equal(counters(w).behind_ms, 0);
	assert_int_equal(counters(w).written, 3);
}

static void closing_is_allowed_at_any_time(void **state)
{
	struct world *w = *state;

	apply_close(NULL);
	start(w, 1, NEVER_MS, false);
	apply_close(w->p); /* before anything was */
	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 1);
	change(w);
	apply_close(w->p); /* a write under way, another one to come */
	assert_int_equal(w->api.cancelled, 1);
	start(w, 1, NEVER_MS, false);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 500);
	apply_close(steal(w->p)); /* waiting to try again */
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(the_object_is_applied_with_our_field_manager),
		IN_WORLD(taking_over_is_by_force),
		IN_WORLD(a_change_after_a_quiet_time_is_written_at_once),
		IN_WORLD(changes_within_the_interval_are_one_write_at_its_end),
		IN_WORLD(a_burst_of_changes_makes_one_write_in_each_interval),
		IN_WORLD(one_write_is_under_way_at_a_time_and_the_newest_state_follows),
		IN_WORLD(an_unchanged_object_is_not_written_again),
		IN_WORLD(a_heartbeat_writes_the_object_with_a_new_beat_number),
		IN_WORLD(any_write_counts_as_a_heartbeat),
		IN_WORLD(an_object_without_content_is_asked_for_again_with_the_heartbeat),
		IN_WORLD(the_beat_goes_on_after_a_restart),
		IN_WORLD(a_deleted_object_is_written_again_with_the_heartbeat),
		IN_WORLD(an_object_without_content_is_asked_for_again_after_a_change),
		IN_WORLD(a_conflict_is_reported_and_retried_with_the_heartbeat),
		IN_WORLD(new_options_end_a_conflict_and_keep_the_count_of_writes),
		IN_WORLD(a_write_under_way_survives_new_options),
		IN_WORLD(a_failure_is_tried_again_later),
		IN_WORLD(after_a_failure_the_object_is_written_even_if_unchanged),
		IN_WORLD(a_retry_waits_as_long_as_the_server_asks),
		IN_WORLD(a_heartbeat_that_fails_is_tried_again),
		IN_WORLD(the_age_of_the_oldest_waiting_change_is_known),
		IN_WORLD(closing_is_allowed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
