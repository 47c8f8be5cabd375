#include <apiserver/evict.h>

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
	struct evictions *v;
	unsigned going_ms; /* 0: the default */
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

	evictions_close(w->v);
	calls_fini(&w->api);
	free(w);
	return 0;
}

static void start(struct world *w, unsigned burst, unsigned every_ms)
{
	const struct evictions_options o = {
		.burst = burst,
		.every_ms = every_ms,
		.retry_min_ms = SHORT_MS,
		.retry_max_ms = 4 * SHORT_MS,
		.going_ms = w->going_ms,
	};

	w->v = evictions_new(
		w->api.loop, &w->api, &o, &(struct evictions_handler){&w->api, calls_log});
}

static void evict(struct world *w, const char *uid)
{
	evict_pod(w->v, "ml", uid, uid);
}

static struct evictions_counters counters(const struct world *w)
{
	struct evictions_counters c;

	evictions_counters(w->v, &c);
	return c;
}

static void asked_is(struct world *w, const char *uid)
{
	char path[128];

	(void)snprintf(path, sizeof path, "/api/v1/namespaces/ml/pods/%s/eviction", uid);
	assert_string_equal(calls_first(&w->api)->path, path);
}

static void a_pod_is_evicted_by_its_uid(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	evict_pod(w->v, "ml", "train-0", "u-1");
	calls_until(&w->api, 1);
	const struct api_call *c = calls_first(&w->api);
	assert_string_equal(c->method, "POST");
	assert_string_equal(c->path, "/api/v1/namespaces/ml/pods/train-0/eviction");
	assert_string_equal(c->body, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\","
				     "\"metadata\":{\"name\":\"train-0\",\"namespace\":\"ml\"},"
				     "\"deleteOptions\":{\"preconditions\":{\"uid\":\"u-1\"}}}");
	assert_int_equal(counters(w).waiting, 1);
	calls_answer(&w->api, 201);
	assert_string_equal(w->api.log, " pod-evicted");
	assert_string_equal(w->api.last_text, "pod ml/train-0");
	assert_int_equal(counters(w).evicted, 1);
	assert_int_equal(counters(w).waiting, 0);
}

/* The runtime waits meanwhile for the answer that refuses a container. */
static void a_call_to_queue_sends_nothing_by_itself(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	evict(w, "a");
	evict(w, "b");
	evict_forget(w->v, "a");
	assert_int_equal(w->api.asked, 0);
	calls_until(&w->api, 1);
	asked_is(w, "b");
	calls_answer(&w->api, 201);
}

static void odd_names_cannot_change_the_path_of_the_request(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	evict_pod(w->v, "../../x", "a?b/c%\"", "u\"1");
	calls_until(&w->api, 1);
	assert_string_equal(calls_first(&w->api)->path,
		"/api/v1/namespaces/..%2F..%2Fx/pods/a%3Fb%2Fc%25%22/eviction");
	assert_non_null(strstr(calls_first(&w->api)->body, "\"u\\\"1\""));
	calls_answer(&w->api, 404);
}

static void a_pod_that_is_already_gone_counts_as_evicted(void **state)
{
	static const int gone[] = {404, 409};

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		struct world *w = *state;

		start(w, 0, 0);
		evict(w, "a");
		calls_until(&w->api, (unsigned)i + 1);
		calls_answer(&w->api, gone[i]);
		calls_pass(&w->api, 2 * SHORT_MS);
		assert_int_equal(w->api.asked, i + 1);
		assert_int_equal(counters(w).evicted, 0);
		assert_int_equal(counters(w).waiting, 0);
		assert_string_equal(w->api.log, "");
		evictions_close(steal(w->v));
	}
}

/* The kubelet tries to create a container that was refused again and again, also while the pod is
 * on its way out. */
static void a_pod_is_evicted_once(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	evict(w, "a");
	evict(w, "a");
	calls_until(&w->api, 1);
	evict(w, "a");
	calls_answer(&w->api, 200);
	evict(w, "a");
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 1);
	evict_forget(w->v, "a");
	evict(w, "a"); /* it is there again, then */
	calls_until(&w->api, 2);
	calls_answer(&w->api, 200);
}

/* A finalizer may keep a pod, or the kubelet's node has lost touch: only a refusal of the pod
 * counts as a reason to evict the pod once more. */
static void a_pod_that_is_still_there_later_is_evicted_again_once_it_is_refused_again(void **state)
{
	struct world *w = *state;

	w->going_ms = SHORT_MS;
	start(w, 0, 0);
	evict(w, "a");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 201);
	calls_pass(&w->api, 4 * SHORT_MS);
	assert_int_equal(w->api.asked, 1);
	evict(w, "b"); /* the pod that is on its way out is passed over */
	calls_until(&w->api, 2);
	asked_is(w, "b");
	calls_answer(&w->api, 201);
	evict(w, "a");
	calls_until(&w->api, 3);
	asked_is(w, "a");
	calls_answer(&w->api, 201);
}

static void an_eviction_waits_for_the_disruption_budget(void **state)
{
	struct world *w = *state;
	enum { TRIES = 4 };

	start(w, 0, 0);
	evict(w, "a");
	for (unsigned i = 1; i <= TRIES; i++) {
		uint64_t began = loop_monotonic_ns();

		calls_until(&w->api, i);
		assert_true(i == 1 || loop_monotonic_ns() > began);
		calls_answer_with(&w->api, (struct api_answer){.status = 429},
			"{\"kind\":\"Status\",\"message\":\"Cannot evict pod as it would violate "
			"the pod's disruption budget.\",\"reason\":\"TooManyRequests\"}");
		assert_string_equal(w->api.log, " pod-eviction-waiting"); /* once */
	}
	assert_string_equal(w->api.last_text, "pod ml/a: Cannot evict pod as it would violate the "
					      "pod's disruption budget.");
	assert_int_equal(counters(w).failed, TRIES);
	calls_until(&w->api, TRIES + 1);
	calls_answer(&w->api, 201);
	assert_string_equal(w->api.log, " pod-eviction-waiting pod-evicted");
}

static void a_pod_that_waits_for_its_budget_does_not_hold_up_others(void **state)
{
	struct world *w = *state;
	enum { AFTER_MS = 400 };

	start(w, 0, 0);
	evict(w, "a");
	evict(w, "b");
	calls_until(&w->api, 1);
	uint64_t began = loop_monotonic_ns();
	calls_answer_with(&w->api, (struct api_answer){.status = 429, .after_ms = AFTER_MS}, NULL);
	calls_until(&w->api, 2);
	asked_is(w, "b");
	calls_answer(&w->api, 201);
	calls_until(&w->api, 3);
	asked_is(w, "a");
	assert_true(loop_monotonic_ns() - began >= (AFTER_MS - 1) * (uint64_t)NS_PER_MS);
	calls_answer(&w->api, 201);
}

static void a_failure_is_tried_again_later(void **state)
{
	static const struct {
		int status;
		const char *log;
	} cases[] = {
		{0, ""}, /* the connection reports it */
		{500, " pod-eviction-waiting"},
		{403, " pod-eviction-waiting !pod-eviction-refused"},
		{400, " pod-eviction-waiting !pod-eviction-refused"},
		{201, " pod-eviction-waiting !pod-eviction-refused pod-evicted"},
	};
	struct world *w = *state;

	start(w, 0, 0);
	evict(w, "a");
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		calls_until(&w->api, i + 1);
		calls_answer(&w->api, cases[i].status);
		assert_string_equal(w->api.log, cases[i].log);
	}
	assert_int_equal(counters(w).failed, 4);
	evict(w, "b");
	calls_until(&w->api, 6);
	calls_answer(&w->api, 403); /* it is another time */
	assert_non_null(strstr(w->api.log, "pod-evicted !pod-eviction-refused"));
}

static void an_eviction_is_given_up_when_the_pod_is_admitted_or_gone(void **state)
{
	struct world *w = *state;

	start(w, 0, 0);
	evict_forget(w->v, "nobody");
	evict(w, "a");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 429);
	evict_forget(w->v, "a");
	assert_int_equal(counters(w).waiting, 0);
	calls_pass(&w->api, 3 * SHORT_MS);
	assert_int_equal(w->api.asked, 1);
	evict(w, "b");
	evict(w, "c");
	calls_until(&w->api, 2);
	evict_forget(w->v, "b"); /* while it is asked for */
	assert_int_equal(w->api.cancelled, 1);
	calls_until(&w->api, 3);
	asked_is(w, "c");
	calls_answer(&w->api, 201);
	assert_string_equal(w->api.log, " pod-eviction-waiting pod-evicted");
}

static void a_setting_that_refuses_all_pods_does_not_empty_the_node(void **state)
{
	struct world *w = *state;
	enum { BURST = 2, PODS = 4, EVERY_MS = 300 };
	char uid[16];

	start(w, BURST, EVERY_MS);
	uint64_t began = loop_monotonic_ns();
	for (unsigned i = 0; i < PODS; i++) {
		(void)snprintf(uid, sizeof uid, "pod-%u", i);
		evict(w, uid);
	}
	for (unsigned i = 0; i < PODS; i++) {
		(void)snprintf(uid, sizeof uid, "pod-%u", i);
		calls_until(&w->api, i + 1);
		asked_is(w, uid);
		calls_answer(&w->api, 201);
	}
	assert_true(loop_monotonic_ns() - began >=
		    ((PODS - BURST) * EVERY_MS - 1) * (uint64_t)NS_PER_MS);
	assert_string_equal(w->api.log, " pod-evicted pod-evicted !pod-evictions-limited "
					"pod-evicted pod-evicted");
}

/* What was not evicted is no eviction. */
static void the_pace_of_evictions_is_that_of_pods_that_end(void **state)
{
	struct world *w = *state;

	start(w, 1, NEVER_MS);
	evict(w, "a");
	evict(w, "b");
	calls_until(&w->api, 1);
	calls_answer(&w->api, 404);
	calls_until(&w->api, 2);
	calls_answer(&w->api, 429);
	calls_until(&w->api, 3);
	calls_answer(&w->api, 201);
	evict(w, "c");
	calls_pass(&w->api, SHORT_MS);
	assert_int_equal(w->api.asked, 3);
}

static void no_more_pods_wait_than_a_node_can_have(void **state)
{
	struct world *w = *state;
	char uid[16];

	start(w, 0, 0);
	for (unsigned i = 0; i < MANY + 10; i++) {
		(void)snprintf(uid, sizeof uid, "pod-%u", i);
		evict(w, uid);
	}
	assert_int_equal(counters(w).waiting, MANY);
	assert_int_equal(counters(w).dropped, 10);
	calls_until(&w->api, 1);
	calls_answer(&w->api, 201);
	evict(w, "another"); /* in the place of the one that goes */
	assert_int_equal(counters(w).waiting, MANY);
	assert_int_equal(counters(w).dropped, 10);
}

static void closing_is_allowed_at_any_time(void **state)
{
	struct world *w = *state;

	evictions_close(NULL);
	start(w, 0, 0);
	evictions_close(w->v);
	start(w, 0, 0);
	evict(w, "a");
	evict(w, "b");
	calls_until(&w->api, 1);
	evictions_close(w->v);
	assert_int_equal(w->api.cancelled, 1);
	start(w, 0, 0);
	evict(w, "a");
	calls_until(&w->api, 2);
	calls_answer(&w->api, 500);
	evictions_close(steal(w->v));
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_pod_is_evicted_by_its_uid),
		IN_WORLD(a_call_to_queue_sends_nothing_by_itself),
		IN_WORLD(odd_names_cannot_change_the_path_of_the_request),
		IN_WORLD(a_pod_that_is_already_gone_counts_as_evicted),
		IN_WORLD(a_pod_is_evicted_once),
		IN_WORLD(a_pod_that_is_still_there_later_is_evicted_again_once_it_is_refused_again),
		IN_WORLD(an_eviction_waits_for_the_disruption_budget),
		IN_WORLD(a_pod_that_waits_for_its_budget_does_not_hold_up_others),
		IN_WORLD(a_failure_is_tried_again_later),
		IN_WORLD(an_eviction_is_given_up_when_the_pod_is_admitted_or_gone),
		IN_WORLD(a_setting_that_refuses_all_pods_does_not_empty_the_node),
		IN_WORLD(the_pace_of_evictions_is_that_of_pods_that_end),
		IN_WORLD(no_more_pods_wait_than_a_node_can_have),
		IN_WORLD(closing_is_allowed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
