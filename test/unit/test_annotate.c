#include <apiserver/annotate.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_calls.h"

enum { NEVER_MS = 10 * CALLS_PATIENCE_MS, SHORT_MS = 60, PODS_MAX = 1024 };

#define KEY    "\"kai.scheduler/numa-placement-observed\""
#define ADVICE "apply components/observed-placement"

struct world {
	struct api api;
	struct annotator *v;
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

	annotator_close(w->v);
	calls_fini(&w->api);
	free(w);
	return 0;
}

static void start(struct world *w, unsigned burst, unsigned every_ms)
{
	const struct annotator_options o = {
		.burst = burst,
		.every_ms = every_ms,
		.retry_min_ms = SHORT_MS,
		.retry_max_ms = 4 * SHORT_MS,
		.advice = ADVICE,
	};

	w->v = annotator_new(
		w->api.loop, &w->api, &o, &(struct annotator_handler){&w->api, calls_log});
}

/* A round with one pod: what a watch has seen on it, and what it should have. */
static void want(struct world *w, const char *uid, const char *on_pod, const char *value)
{
	annotator_begin(w->v);
	annotator_want(w->v,
		&(struct annotator_pod){.uid = uid, .ns = "ml", .name = uid, .on_pod = on_pod},
		value);
	annotator_end(w->v);
}

static struct annotator_counters counters(const struct world *w)
{
	struct annotator_counters c;

	annotator_counters(w->v, &c);
	return c;
}

static void nothing_more_is_asked(struct world *w, unsigned asked)
{
	calls_pass(&w->api, 2 * SHORT_MS);
	assert_int_equal(w->api.asked, asked);
	assert_int_equal(counters(w).waiting, 0);
}

static void a_value_is_patched_onto_the_very_pod(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "u-1", NULL, "[1]");
	calls_until(&w->api, 1);
	const struct api_call *c = calls_first(&w->api);
	assert_string_equal(c->method, "PATCH");
	assert_string_equal(c->path, "/api/v1/namespaces/ml/pods/u-1");
	assert_string_equal(c->type, "application/merge-patch+json");
	assert_string_equal(
		c->body, "{\"metadata\":{\"uid\":\"u-1\",\"annotations\":{" KEY ":\"[1]\"}}}");
	assert_int_equal(counters(w).waiting, 1);
	calls_answer(&w->api, 200);
	assert_int_equal(counters(w).written, 1);
	nothing_more_is_asked(w, 1);
	assert_string_equal(w->api.log, "");
}

/* The runtime may wait meanwhile for an answer. */
static void a_round_sends_nothing_by_itself(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	assert_int_equal(w->api.asked, 0);
	want(w, "a", NULL, "[2]");
	calls_until(&w->api, 1);
	assert_non_null(strstr(calls_first(&w->api)->body, "[2]"));
	calls_answer(&w->api, 200);
	nothing_more_is_asked(w, 1);
}

/* After a restart, and however often it is said. */
static void what_is_on_the_pod_already_is_not_written(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", "[1]", "[1]");
	nothing_more_is_asked(w, 0);
	want(w, "a", "[1]", "[2]");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	for (unsigned i = 0; i < 3; i++) /* the watch has not seen it yet, then it has */
		want(w, "a", i < 2 ? "[1]" : "[2]", "[2]");
	nothing_more_is_asked(w, 1);
	want(w, "a", "[2]", "[1]");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
	nothing_more_is_asked(w, 2);
	assert_string_equal(w->api.log, "");
}

static void a_pod_that_should_have_none_loses_it_and_else_is_left_alone(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, NULL);
	nothing_more_is_asked(w, 0);
	want(w, "a", "[1]", NULL);
	calls_until(&w->api, 1);
	assert_string_equal(calls_first(&w->api)->body,
		"{\"metadata\":{\"uid\":\"a\",\"annotations\":{" KEY ":null}}}");
	calls_answer(&w->api, 200);
	want(w, "a", "[1]", NULL);
	nothing_more_is_asked(w, 1);
}

static void what_changes_while_it_is_written_is_written_afterwards(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	calls_until(&w->api, 1);
	want(w, "a", NULL, "[2]");
	want(w, "a", NULL, "[3]");
	calls_answer(&w->api, 200);
	calls_until(&w->api, 2);
	assert_non_null(strstr(calls_first(&w->api)->body, "[3]"));
	calls_answer(&w->api, 200);
	nothing_more_is_asked(w, 2);
}

static void a_mirror_pod_is_found_by_its_name(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	annotator_begin(w->v);
	annotator_want(w->v,
		&(struct annotator_pod){.uid = "hash", .ns = "x", .name = "m", .is_mirror = true},
		"[1]");
	annotator_end(w->v);
	calls_until(&w->api, 1);
	assert_string_equal(
		calls_first(&w->api)->body, "{\"metadata\":{\"annotations\":{" KEY ":\"[1]\"}}}");
	calls_answer(&w->api, 200);
}

static void odd_names_cannot_change_the_path_of_the_request(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	annotator_begin(w->v);
	annotator_want(w->v,
		&(struct annotator_pod){.uid = "u", .ns = "../../x", .name = "a?b/c%\""}, "[1]");
	annotator_end(w->v);
	calls_until(&w->api, 1);
	assert_string_equal(
		calls_first(&w->api)->path, "/api/v1/namespaces/..%2F..%2Fx/pods/a%3Fb%2Fc%25%22");
	calls_answer(&w->api, 404);
}

static void a_pod_that_is_gone_is_asked_for_once(void **state)
{
	static const int gone[] = {404, 409};

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		struct world *w = *state;

		start(w, 0, 0);
		want(w, "a", NULL, "[1]");
		calls_until(&w->api, (unsigned)i + 1);
		calls_answer(&w->api, gone[i]);
		want(w, "a", NULL, "[1]");
		nothing_more_is_asked(w, (unsigned)i + 1);
		assert_int_equal(counters(w).written, 0);
		assert_string_equal(w->api.log, "");
		annotator_close(steal(w->v));
	}
}

/* A StatefulSet's next pod, say: the server takes the uid for a change (kube-apiserver v1.36.3). */
static void a_pod_that_has_anothers_name_is_no_failure(void **state)
{
	static const char other[] =
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"details\":{"
		"\"causes\":[{\"reason\":\"FieldValueInvalid\",\"field\":\"metadata.uid\"}]},"
		"\"code\":422}";
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	calls_until(&w->api, 1);
	calls_answer_with(&w->api, (struct api_answer){.status = 422}, other);
	assert_string_equal(w->api.log, "");
	assert_int_equal(counters(w).dropped, 0);
	want(w, "a", NULL, "[1]");
	nothing_more_is_asked(w, 1);
}

static void a_pod_that_ends_is_forgotten(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS);
	want(w, "a", NULL, "[1]");
	calls_until(&w->api, 1);
	want(w, "b", NULL, "[1]"); /* and no more a, which is being asked for */
	assert_int_equal(w->api.cancelled, 1);
	assert_int_equal(counters(w).waiting, 1);
	annotator_begin(w->v);
	annotator_keep(w->v, "b");
	annotator_keep(w->v, "who");
	annotator_end(w->v);
	assert_int_equal(counters(w).waiting, 1);
	annotator_begin(w->v);
	annotator_end(w->v);
	nothing_more_is_asked(w, 1);
}

static void what_may_pass_is_tried_again_later_and_later(void **state)
{
	static const int passing[] = {0, 429, 503};
	struct world *w = *state;
	unsigned asked = 0;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
		calls_until(&w->api, ++asked);
		calls_answer(&w->api, passing[i]);
	}
	calls_until(&w->api, ++asked);
	calls_answer(&w->api, 200);
	assert_int_equal(counters(w).failed, asked - 1);
	assert_int_equal(counters(w).written, 1);
	assert_string_equal(w->api.log, "");
	nothing_more_is_asked(w, asked);
}

static void a_right_that_is_missing_is_logged_once_with_what_to_do(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	for (unsigned asked = 1; asked <= 3; asked++) {
		calls_until(&w->api, asked);
		calls_answer(&w->api, 403);
	}
	assert_string_equal(w->api.log, " !observed-placement-refused");
	assert_non_null(strstr(w->api.last_text, "pod ml/a: the server's words; " ADVICE));
	calls_until(&w->api, 4);
	calls_answer(&w->api, 200); /* it has been granted */
	assert_string_equal(w->api.log, " !observed-placement-refused observed-placement-accepted");
	assert_int_equal(counters(w).failed, 3);
	assert_int_equal(counters(w).dropped, 0);
}

/* An admission policy may forbid one pod and no other. */
static void a_pod_that_is_forbidden_holds_up_no_other(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	annotator_begin(w->v);
	for (unsigned i = 0; i < 2; i++)
		annotator_want(w->v,
			&(struct annotator_pod){
				.uid = i ? "b" : "a", .ns = "ml", .name = i ? "b" : "a"},
			"[1]");
	annotator_end(w->v);
	calls_until(&w->api, 1);
	assert_string_equal(calls_first(&w->api)->path, "/api/v1/namespaces/ml/pods/a");
	calls_answer(&w->api, 403);
	calls_until(&w->api, 2);
	assert_string_equal(calls_first(&w->api)->path, "/api/v1/namespaces/ml/pods/b");
	calls_answer(&w->api, 200);
	calls_until(&w->api, 3);
	assert_string_equal(calls_first(&w->api)->path, "/api/v1/namespaces/ml/pods/a");
	calls_answer(&w->api, 200);
	assert_int_equal(counters(w).written, 2);
}

static void a_value_that_is_refused_for_good_is_dropped_until_it_changes(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 422);
	assert_string_equal(w->api.log, " !observed-placement-refused");
	assert_int_equal(counters(w).dropped, 1);
	want(w, "a", NULL, "[1]");
	nothing_more_is_asked(w, 1);
	want(w, "a", NULL, "[2]");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 422); /* logged already */
	assert_string_equal(w->api.log, " !observed-placement-refused");
	nothing_more_is_asked(w, 2);
}

/* KAI's own exporter, say, which patches each second: two of that kind would never end. */
static void who_writes_over_it_is_logged_once_and_not_fought(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", "[\"theirs\"]", "[1]");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 200);
	want(w, "a", "[\"theirs\"]", "[1]"); /* as the watch is behind */
	assert_string_equal(w->api.log, "");
	want(w, "a", "[1]", "[1]");
	want(w, "a", "[\"theirs\"]", "[1]");
	want(w, "a", NULL, "[1]");
	assert_string_equal(w->api.log, " !observed-placement-overwritten");
	assert_string_equal(w->api.last_text, "pod ml/a");
	nothing_more_is_asked(w, 1);
	want(w, "a", "[\"theirs\"]", "[2]");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
}

/* Its answer got lost. */
static void a_value_that_was_taken_unsaid_is_nobody_elses(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", "[1]", "[1]");
	want(w, "a", "[1]", "[2]");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 0);
	want(w, "a", "[2]", "[2]");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
	assert_string_equal(w->api.log, "");
}

static void many_pods_are_written_at_a_pace(void **state)
{
	enum { BURST = 3, NR = 5 };
	struct world *w = *state;
	char uid[16];

	start(w, BURST, NEVER_MS);
	annotator_begin(w->v);
	for (unsigned i = 0; i < NR; i++) {
		(void)snprintf(uid, sizeof uid, "p%u", i);
		annotator_want(
			w->v, &(struct annotator_pod){.uid = uid, .ns = "ml", .name = uid}, "[1]");
	}
	annotator_end(w->v);
	for (unsigned i = 0; i < BURST; i++) {
		calls_until(&w->api, i + 1);
		calls_answer(&w->api, 200);
	}
	calls_pass(&w->api, 2 * SHORT_MS);
	assert_int_equal(w->api.asked, BURST);
	assert_int_equal(counters(w).waiting, NR - BURST);
}

static void more_pods_than_there_is_room_for_are_counted(void **state)
{
	struct world *w = *state;
	char uid[16];

	start(w, 1, NEVER_MS);
	for (unsigned round = 0; round < 2; round++) {
		annotator_begin(w->v);
		for (unsigned i = 0; i < PODS_MAX + 2; i++) {
			(void)snprintf(uid, sizeof uid, "p%u", i);
			annotator_want(w->v,
				&(struct annotator_pod){.uid = uid, .ns = "ml", .name = uid},
				i == PODS_MAX ? NULL : "[1]");
		}
		annotator_end(w->v);
	}
	assert_int_equal(counters(w).waiting, PODS_MAX);
	assert_int_equal(counters(w).dropped, 2); /* one, in each round */
}

static void closing_cancels_what_is_asked(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	want(w, "a", NULL, "[1]");
	calls_until(&w->api, 1);
	annotator_close(steal(w->v));
	assert_int_equal(w->api.cancelled, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_value_is_patched_onto_the_very_pod),
		CASE(a_round_sends_nothing_by_itself),
		CASE(what_is_on_the_pod_already_is_not_written),
		CASE(a_pod_that_should_have_none_loses_it_and_else_is_left_alone),
		CASE(what_changes_while_it_is_written_is_written_afterwards),
		CASE(a_mirror_pod_is_found_by_its_name),
		CASE(odd_names_cannot_change_the_path_of_the_request),
		CASE(a_pod_that_is_gone_is_asked_for_once),
		CASE(a_pod_that_has_anothers_name_is_no_failure),
		CASE(a_pod_that_ends_is_forgotten),
		CASE(what_may_pass_is_tried_again_later_and_later),
		CASE(a_right_that_is_missing_is_logged_once_with_what_to_do),
		CASE(a_pod_that_is_forbidden_holds_up_no_other),
		CASE(a_value_that_is_refused_for_good_is_dropped_until_it_changes),
		CASE(who_writes_over_it_is_logged_once_and_not_fought),
		CASE(a_value_that_was_taken_unsaid_is_nobody_elses),
		CASE(many_pods_are_written_at_a_pace),
		CASE(more_pods_than_there_is_room_for_are_counted),
		CASE(closing_cancels_what_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
