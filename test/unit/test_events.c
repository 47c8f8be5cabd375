#include <apiserver/events.h>

#include <codec/fields_json.h>
#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_calls.h"

enum { NEVER_MS = 10 * CALLS_PATIENCE_MS, SHORT_MS = 60, NS_PER_MS = 1000000, MANY = 256 };

struct world {
	struct api api;
	struct events *v;
};

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

	events_close(w->v);
	calls_fini(&w->api);
	free(w);
	return 0;
}

static void start(struct world *w, unsigned same_ms, unsigned burst, unsigned every_ms)
{
	const struct events_options o = {
		.node = "n1",
		.same_ms = same_ms,
		.burst = burst,
		.every_ms = every_ms,
		.retry_min_ms = SHORT_MS,
	};

	w->v = events_new(w->api.loop, &w->api, &o, &(struct events_handler){&w->api, calls_log});
}

static void report_event(struct world *w, const char *uid, const char *message)
{
	events_emit(w->v, &(struct pod_event){EVENT_OF_REFUSAL, true, "TopologyAffinityError",
				  message, NULL, "ml", "train-0", uid, NULL, CONTAINER_APP,
				  ADVICE_NONE});
}

static void report_advice(struct world *w, const char *uid)
{
	events_emit(w->v, &(struct pod_event){EVENT_OF_ADVICE, true, "NUMAWish", "not followed",
				  NULL, "ml", "train-0", uid, NULL, CONTAINER_APP, ADVICE_NONE});
}

static struct events_counters counters(const struct world *w)
{
	struct events_counters c;

	events_counters(w->v, &c);
	return c;
}

/* Of the oldest call that waits. */
static long long sent_count(struct world *w)
{
	const struct api_call *c = calls_first(&w->api);
	json_t *v = NULL;

	assert_int_equal(json_parse(c->body, strlen(c->body), &v, NULL), 0);
	long long count = json_integer_value(json_object_get(v, "count"));
	json_decref(v);
	return count;
}

static void sent_has(struct world *w, const char *text)
{
	if (!strstr(calls_first(&w->api)->body, text))
		fail_msg("no %s in %s", text, calls_first(&w->api)->body);
}

static void sent_name(struct world *w, char *name, size_t cap)
{
	const char *at = strstr(calls_first(&w->api)->body, "\"name\":\"");

	assert_non_null(at);
	(void)snprintf(name, cap, "%.*s", (int)strcspn(at + 8, "\""), at + 8);
}

static void an_event_is_posted_into_the_pods_namespace(void **state)
{
	struct world *w = *state;

	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "no room");
	calls_until(&w->api, 1);
	const struct api_call *c = calls_first(&w->api);
	assert_string_equal(c->method, "POST");
	assert_string_equal(c->path, "/api/v1/namespaces/ml/events");
	sent_has(w,
		"\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"ml\","
		"\"name\":\"train-0\",\"uid\":\"u-1\"}");
	sent_has(w, "\"message\":\"no room\"");
	assert_int_equal(sent_count(w), 1);
	calls_answer(&w->api, 201);
	assert_int_equal(counters(w).sent, 1);
	assert_string_equal(w->api.log, "");
}

/* The caller answers a request meanwhile, which must not wait. */
static void a_call_to_queue_sends_nothing_by_itself(void **state)
{
	struct world *w = *state;

	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "no room");
	assert_int_equal(w->api.asked, 0);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 201);
}

/* A webhook of its namespace may be down. */
static void a_rejected_event_does_not_hold_up_the_others(void **state)
{
	struct world *w = *state;

	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "stuck");
	report_event(w, "u-2", "fine");
	calls_until(&w->api, 1);
	sent_has(w, "stuck");
	calls_answer(&w->api, 500);
	calls_until(&w->api, 2);
	sent_has(w, "fine");
	calls_answer(&w->api, 201);
	calls_until(&w->api, 3);
	sent_has(w, "stuck");
	calls_answer(&w->api, 201);
}

static void a_repeated_event_is_sent_once_and_then_with_a_count(void **state)
{
	struct world *w = *state;
	char first[64], name[64];

	start(w, SHORT_MS, 0, 1);
	uint64_t began = loop_monotonic_ns();
	report_event(w, "u-1", "no room");
	calls_until(&w->api, 1);
	for (unsigned i = 0; i < 4; i++)
		report_event(w, "u-1", "no room");
	assert_int_equal(sent_count(w), 1);
	sent_name(w, first, sizeof first);
	calls_answer(&w->api, 201);
	assert_int_equal(counters(w).waiting, 1);
	calls_until(&w->api, 2); /* without another report */
	assert_true(loop_monotonic_ns() - began >= (SHORT_MS - 1) * (uint64_t)NS_PER_MS);
	assert_int_equal(sent_count(w), 4);
	sent_name(w, name, sizeof name);
	assert_string_not_equal(name, first);
	report_event(w, "u-1", "no room"); /* while that is under way */
	calls_answer(&w->api, 201);
	calls_until(&w->api, 3);
	assert_int_equal(sent_count(w), 1);
	calls_answer(&w->api, 201);
	calls_pass(&w->api, 2 * SHORT_MS);
	assert_int_equal(w->api.asked, 3);
	assert_int_equal(counters(w).waiting, 0);
}

static void a_different_text_pod_reason_or_container_is_a_new_event(void **state)
{
	static const struct pod_event cases[] = {
		{EVENT_OF_REFUSAL, true, "A", "m", NULL, "ml", "p", "u-1", NULL, CONTAINER_APP,
			ADVICE_NONE},
		{EVENT_OF_REFUSAL, true, "B", "m", NULL, "ml", "p", "u-1", NULL, CONTAINER_APP,
			ADVICE_NONE},
		{EVENT_OF_REFUSAL, true, "A", "n", NULL, "ml", "p", "u-1", NULL, CONTAINER_APP,
			ADVICE_NONE},
		{EVENT_OF_REFUSAL, true, "A", "m", NULL, "ml", "p", "u-2", NULL, CONTAINER_APP,
			ADVICE_NONE},
		{EVENT_OF_REFUSAL, true, "A", "m", NULL, "ml", "p", "u-1", "c", CONTAINER_APP,
			ADVICE_NONE},
	};
	const size_t nr = sizeof cases / sizeof *cases;
	struct world *w = *state;

	start(w, NEVER_MS, 0, 0);
	for (unsigned again = 0; again < 2; again++)
		for (size_t i = 0; i < nr; i++)
			events_emit(w->v, &cases[i]);
	for (unsigned i = 1; i <= nr; i++) {
		calls_until(&w->api, i);
		calls_answer(&w->api, 201);
	}
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, nr);
}

static void texts_about_the_same_are_one_event_with_the_last_of_them(void **state)
{
	static const char *const texts[] = {"fits when a ends", "fits when b ends", "needs more"};
	struct world *w = *state;

	start(w, SHORT_MS, 0, 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		events_emit(w->v, &(struct pod_event){.reason = "A",
					  .message = texts[i],
					  .about = "no room",
					  .ns = "ml",
					  .pod = "p",
					  .uid = "u-1"});
		if (i == 0)
			calls_until(&w->api, 1);
	}
	sent_has(w, "fits when a ends");
	calls_answer(&w->api, 201);
	calls_until(&w->api, 2);
	sent_has(w, "needs more");
	sent_has(w, "\"count\":2");
	calls_answer(&w->api, 201);
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 2);
}

static void after_a_burst_one_event_is_sent_in_each_interval(void **state)
{
	struct world *w = *state;
	enum { BURST = 4, EVENTS = 7 };
	char uid[16];

	start(w, NEVER_MS, BURST, SHORT_MS);
	uint64_t began = loop_monotonic_ns();
	for (unsigned i = 0; i < EVENTS; i++) {
		(void)snprintf(uid, sizeof uid, "u-%u", i);
		report_event(w, uid, "no room");
	}
	for (unsigned i = 1; i <= EVENTS; i++) {
		(void)snprintf(uid, sizeof uid, "\"u-%u\"", i - 1);
		calls_until(&w->api, i);
		sent_has(w, uid); /* in the order in which they came */
		calls_answer(&w->api, 201);
	}
	assert_true(loop_monotonic_ns() - began >=
		    ((EVENTS - BURST) * SHORT_MS - 1) * (uint64_t)NS_PER_MS);
}

static void events_beyond_the_queue_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	char uid[16];

	start(w, NEVER_MS, 0, 0);
	for (unsigned i = 0; i < MANY + 10; i++) {
		(void)snprintf(uid, sizeof uid, "u-%u", i);
		report_event(w, uid, "no room");
	}
	assert_int_equal(counters(w).dropped, 10);
	assert_int_equal(counters(w).waiting, MANY);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 201); /* what was sent makes room */
	report_event(w, "another", "no room");
	assert_int_equal(counters(w).dropped, 10);
	report_event(w, "yet another", "no room");
	assert_int_equal(counters(w).dropped, 11);
}

static void a_refusal_goes_before_any_number_of_other_events(void **state)
{
	struct world *w = *state;
	char uid[16];

	start(w, NEVER_MS, 0, 0);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(uid, sizeof uid, "u-%u", i);
		report_advice(w, uid);
	}
	report_event(w, "refused", "no room");
	assert_int_equal(counters(w).dropped, 1);
	assert_int_equal(counters(w).waiting, MANY);
	calls_until(&w->api, 1);
	sent_has(w, "\"uid\":\"refused\"");
	calls_answer(&w->api, 201);
	report_event(w, "refused", "no room"); /* is not due for a long time, and holds up nothing */
	calls_until(&w->api, 2);
	sent_has(w, "\"reason\":\"NUMAWish\"");
	calls_answer(&w->api, 201);
}

static void a_failure_is_tried_again_later_with_the_same_name(void **state)
{
	static const int failures[] = {0, 429, 500, 503};
	struct world *w = *state;
	char first[64], name[64];

	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "no room");
	calls_until(&w->api, 1);
	sent_name(w, first, sizeof first);
	for (unsigned i = 0; i < sizeof failures / sizeof *failures; i++) {
		uint64_t began = loop_monotonic_ns();

		report_event(w, "u-1", "no room");
		calls_answer(&w->api, failures[i]);
		calls_until(&w->api, i + 2);
		assert_true(loop_monotonic_ns() - began >= SHORT_MS / 2 * (uint64_t)NS_PER_MS);
		sent_name(w, name, sizeof name);
		assert_string_equal(name, first);
		assert_int_equal(sent_count(w), i + 2);
	}
	assert_int_equal(counters(w).failed, sizeof failures / sizeof *failures);
	calls_answer(&w->api, 409); /* the first one got there */
	assert_int_equal(counters(w).sent, 1);
	assert_int_equal(counters(w).waiting, 0);
	report_event(w, "u-2", "no room");
	calls_until(&w->api, 6);
	sent_name(w, name, sizeof name);
	assert_string_not_equal(name, first);
	calls_answer(&w->api, 201);
}

static void a_retry_waits_as_long_as_the_server_wants(void **state)
{
	struct world *w = *state;
	enum { AFTER_MS = 500 };

	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "no room");
	report_event(w, "u-2", "no room");
	calls_until(&w->api, 1);
	uint64_t began = loop_monotonic_ns();
	calls_answer_with(&w->api, (struct api_answer){.status = 429, .after_ms = AFTER_MS}, NULL);
	calls_until(&w->api, 2);
	assert_true(loop_monotonic_ns() - began >= (AFTER_MS - 1) * (uint64_t)NS_PER_MS);
	calls_answer(&w->api, 201);
	calls_until(&w->api, 3);
	sent_has(w, "u-1");
	assert_null(strstr(calls_first(&w->api)->body, "\"1970-")); /* when it was is known still */
	calls_answer(&w->api, 201);
}

static void a_refused_event_is_logged_once_and_dropped(void **state)
{
	static const char ends[] =
		"{\"kind\": \"Status\", \"message\": \"in other words\", \"details\": "
		"{\"causes\": [{\"reason\": \"NamespaceTerminating\", \"field\": "
		"\"metadata.namespace\"}]}}";
	static const struct {
		int status;
		const char *log, *body;
	} cases[] = {
		{403, " !events-refused", NULL},
		{404, " !events-refused", NULL},
		{422, " !events-refused", NULL},
		{201, " !events-refused events-accepted", NULL},
		{404, " !events-refused events-accepted events-refused", NULL},
		{403, " !events-refused events-accepted events-refused", ends},
		{403, " !events-refused events-accepted events-refused !events-refused", NULL},
	};
	struct world *w = *state;
	char uid[16];

	start(w, NEVER_MS, 0, 0);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		(void)snprintf(uid, sizeof uid, "u-%u", i);
		report_event(w, uid, "no room");
		calls_until(&w->api, i + 1);
		calls_answer_with(
			&w->api, (struct api_answer){.status = cases[i].status}, cases[i].body);
		assert_string_equal(w->api.log, cases[i].log);
	}
	assert_int_equal(counters(w).dropped, 6);
	assert_int_equal(counters(w).waiting, 0);
}

static void closing_is_allowed_at_any_time(void **state)
{
	struct world *w = *state;

	events_close(NULL);
	start(w, NEVER_MS, 0, 0);
	events_close(w->v);
	start(w, NEVER_MS, 0, 0);
	report_event(w, "u-1", "no room");
	report_event(w, "u-2", "no room");
	calls_until(&w->api, 1);
	events_close(w->v);
	assert_int_equal(w->api.cancelled, 1);
	start(w, NEVER_MS, 1, NEVER_MS);
	report_event(w, "u-1", "no room");
	report_event(w, "u-2", "no room");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 201);
	events_close(steal(w->v)); /* one waits */
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_event_is_posted_into_the_pods_namespace),
		IN_WORLD(a_call_to_queue_sends_nothing_by_itself),
		IN_WORLD(a_rejected_event_does_not_hold_up_the_others),
		IN_WORLD(a_repeated_event_is_sent_once_and_then_with_a_count),
		IN_WORLD(a_different_text_pod_reason_or_container_is_a_new_event),
		IN_WORLD(texts_about_the_same_are_one_event_with_the_last_of_them),
		IN_WORLD(after_a_burst_one_event_is_sent_in_each_interval),
		IN_WORLD(events_beyond_the_queue_are_dropped_and_counted),
		IN_WORLD(a_refusal_goes_before_any_number_of_other_events),
		IN_WORLD(a_failure_is_tried_again_later_with_the_same_name),
		IN_WORLD(a_retry_waits_as_long_as_the_server_wants),
		IN_WORLD(a_refused_event_is_logged_once_and_dropped),
		IN_WORLD(closing_is_allowed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
