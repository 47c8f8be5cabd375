#include <apiserver/apply.h>
#include <apiserver/events.h>
#include <apiserver/evict.h>
#include <apiserver/pods.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_api.h"

/* What is beside the reflector, over the real api.c and HTTP. */

struct world {
	struct fake_api f;
	struct api *api;
	unsigned created;
	char method[16], path[FAKE_PATH_MAX], type[64]; /* of the last request */
	char *body;
};

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const struct api_options o = {.user_agent = "numafit/1", .ctx = w, .on_event = on_event};
	struct api_options with = o;
	struct err e;

	fake_api_init(&w->f);
	with.kubeconfig = w->f.kubeconfig;
	w->api = api_new(w->f.loop, &with, &e);
	if (!w->api)
		fail_msg("%s", e.text);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	api_free(w->api);
	fake_api_fini(&w->f);
	free(w->body);
	free(w);
	return 0;
}

static void answer_with_created(void *ctx, struct fake_ask *q)
{
	struct world *w = ctx;

	(void)text_copy(w->method, sizeof w->method, q->method);
	(void)text_copy(w->path, sizeof w->path, q->path);
	(void)fake_api_header(q, "Content-Type", w->type, sizeof w->type);
	free(w->body);
	w->body = xstrdup(q->body);
	fake_api_answer(q, 201, NULL, "{\"kind\":\"Whatever\"}");
}

static void serve(struct world *w)
{
	w->f.ctx = w;
	w->f.serve = answer_with_created;
}

static void asked_is(const struct world *w, const char *method, const char *path, const char *type)
{
	assert_string_equal(w->method, method);
	assert_string_equal(w->path, path);
	assert_string_equal(w->type, type);
}

static char *print(void *ctx, uint64_t beat)
{
	(void)ctx;
	(void)beat;
	return xstrdup("{\"kind\":\"NodeResourceTopology\"}");
}

static void created(void *ctx)
{
	struct world *w = ctx;

	w->created++;
	loop_stop(w->f.loop);
}

static void an_object_is_applied(void **state)
{
	struct world *w = *state;
	const struct apply_options o = {.path = "/apis/g/v1/things/n1",
		.manager = "numafit",
		.what = "thing n1",
		.take_over = true};
	const struct apply_handler handler = {w, print, created, on_event};

	serve(w);
	struct apply *p = apply_new(w->f.loop, w->api, &o, &handler);
	FAKE_UNTIL(&w->f, w->created);
	asked_is(w, "PATCH", "/apis/g/v1/things/n1?fieldManager=numafit&force=true",
		"application/apply-patch+yaml");
	assert_string_equal(w->body, "{\"kind\":\"NodeResourceTopology\"}");
	assert_non_null(strstr(w->f.log, " apply-written"));
	apply_close(p);
}

static void a_conflict_is_read_from_the_answer(void **state)
{
	static const struct fake_answer script[] = {
		{"PATCH", 409, NULL,
			"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
			"\"Failure\",\"message\":\"Apply failed with 1 conflict: conflict with "
			"\\\"nfd\\\" using g/v1: .zones\",\"reason\":\"Conflict\",\"details\":{"
			"\"causes\":[{\"reason\":\"FieldManagerConflict\",\"message\":\"conflict "
			"with \\\"nfd\\\" using g/v1\",\"field\":\".zones\"}]},\"code\":409}",
			FAKE_ANSWERS},
	};
	struct world *w = *state;
	const struct apply_options o = {
		.path = "/apis/g/v1/things/n1", .manager = "numafit", .what = "thing n1"};
	const struct apply_handler handler = {w, print, NULL, on_event};

	fake_api_script(&w->f, script, 1);
	struct apply *p = apply_new(w->f.loop, w->api, &o, &handler);
	FAKE_UNTIL(&w->f, strstr(w->f.log, " apply-conflict!"));
	assert_string_equal(w->f.last_text, "thing n1: .zones is written by \"nfd\": stop that");
	apply_close(p);
}

static void an_event_and_an_eviction_are_posted(void **state)
{
	struct world *w = *state;
	struct events_counters counted;

	serve(w);
	struct events *events = events_new(w->f.loop, w->api,
		&(struct events_options){.node = "n1"}, &(struct events_handler){w, on_event});
	events_emit(events, &(struct pod_event){.warning = true,
				    .reason = "TopologyAffinityError",
				    .message = "no room",
				    .ns = "ml",
				    .pod = "train-0",
				    .uid = "u-1"});
	FAKE_UNTIL(&w->f, w->f.asked == 1);
	asked_is(w, "POST", "/api/v1/namespaces/ml/events", "application/json");
	struct evictions *evictions = evictions_new(w->f.loop, w->api,
		&(struct evictions_options){0}, &(struct evictions_handler){w, on_event});
	evict_pod(evictions, "ml", "train-0", "u-1");
	FAKE_UNTIL(&w->f, strstr(w->f.log, " pod-evicted"));
	asked_is(w, "POST", "/api/v1/namespaces/ml/pods/train-0/eviction", "application/json");
	events_counters(events, &counted);
	assert_int_equal(counted.sent, 1);
	evictions_close(evictions);
	events_close(events);
}

#define POD(uid, version)                                                                          \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"" uid                        \
	"\",\"resourceVersion\":\"" version "\"},\"spec\":{\"containers\":[{\"name\":\"main\","    \
	"\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}}]}}"

static void on_changed(void *ctx, const struct known_pod *pod)
{
	struct world *w = ctx;

	(void)pod;
	loop_stop(w->f.loop);
}

static void the_nodes_pods_are_listed_and_watched(void **state)
{
	static const struct fake_answer script[] = {
		{"fieldSelector=spec.nodeName%3Dn1", 200, NULL,
			"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":"
			"[" POD("u-1", "5") "]}",
			FAKE_ANSWERS},
		{"watch=", 200, NULL,
			"{\"type\":\"DELETED\",\"object\":" POD(
				"u-1", "8") "}\n"
					    "{\"type\":\"ADDED\",\"object\":" POD("u-2", "9") "}\n",
			FAKE_GOES_ON},
	};
	struct world *w = *state;
	const struct api_pods_handler handler = {
		.ctx = w, .changed = on_changed, .on_event = on_event};

	fake_api_script(&w->f, script, 2);
	struct api_pods *p = api_pods_new(w->api, "n1", &handler);
	FAKE_UNTIL(&w->f, api_pods_find(p, "u-2"));
	assert_null(api_pods_find(p, "u-1"));
	assert_true(api_pods_synced(p));
	assert_int_equal(api_pods_count(p), 1);
	assert_int_equal(api_pods_at(p, 0)->pod.qos, QOS_GUARANTEED);
	assert_non_null(strstr(w->f.log, " pods-watch-synced"));
	api_pods_close(p);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_object_is_applied),
		IN_WORLD(a_conflict_is_read_from_the_answer),
		IN_WORLD(an_event_and_an_eviction_are_posted),
		IN_WORLD(the_nodes_pods_are_listed_and_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
