#include <apiserver/slices.h>

#include <apiserver/reflector.h>
#include <codec/api_json.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A reflector that delivers what the test wants, in the place of the real one. */

enum { LOG_MAX = 1024 };

struct reflector {
	char path[64], query[256];
	struct reflector_handler handler;
	bool from_memory, synced, closed;
};

static struct reflector reflector;

struct reflector *reflector_new(
	struct api *a, const struct reflector_options *o, const struct reflector_handler *handler)
{
	(void)a;
	reflector = (struct reflector){.handler = *handler, .from_memory = o->from_memory};
	(void)text_copy(reflector.path, sizeof reflector.path, o->path);
	(void)text_copy(reflector.query, sizeof reflector.query, o->query);
	return &reflector;
}

bool reflector_synced(const struct reflector *r)
{
	return r->synced;
}

void reflector_close(struct reflector *r)
{
	r->closed = true;
}

struct world {
	struct api_slices *s;
	struct api_slices_handler handler;
	unsigned changes;
	char log[LOG_MAX], last_text[sizeof((struct err *)0)->text];
};

static void on_changed(void *ctx)
{
	struct world *w = ctx;

	w->changes++;
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;
	struct text t = {w->log, LOG_MAX, strlen(w->log), false};

	text_add(&t, " %s%s", bad ? "!" : "", event);
	(void)text_copy(w->last_text, sizeof w->last_text, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	w->handler = (struct api_slices_handler){w, on_changed, on_event};
	w->s = api_slices_new(NULL, "n1.example.com", &w->handler);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	api_slices_close(w->s);
	assert_true(reflector.closed);
	free(w);
	return 0;
}

static void deliver(enum reflector_change change, const char *text)
{
	struct json_t *v = NULL;

	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	reflector.handler.object(reflector.handler.ctx, change, v);
	api_json_free(v);
}

static void deliver_slice(enum reflector_change change, const char *name, int node)
{
	char text[512];

	(void)snprintf(text, sizeof text,
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"gpu.example.com\","
		"\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
		"\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu0\",\"attributes\":{"
		"\"resource.kubernetes.io/numaNode\":{\"int\":%d}}}]}}",
		name, node);
	deliver(change, text);
}

static void begin(void)
{
	reflector.handler.begin(reflector.handler.ctx);
}

static void synced(void)
{
	reflector.synced = true;
	reflector.handler.synced(reflector.handler.ctx);
}

static const struct slice_device *gpu0(const struct world *w)
{
	return api_slices_find(w->s, "gpu.example.com", "n1", "gpu0");
}

static void only_this_nodes_slices_are_watched(void **state)
{
	(void)state;
	assert_string_equal(reflector.path, "/apis/resource.k8s.io/v1/resourceslices");
	assert_string_equal(reflector.query, "fieldSelector=spec.nodeName%3Dn1.example.com");
	assert_true(reflector.from_memory);
}

static void an_odd_node_name_stays_within_the_selector(void **state)
{
	struct world *w = *state;

	api_slices_close(w->s);
	w->s = api_slices_new(NULL, "a&b,c=d", &w->handler);
	assert_string_equal(reflector.query, "fieldSelector=spec.nodeName%3Da%26b%2Cc%3Dd");
}

static void a_device_of_a_slice_is_known_once_it_comes(void **state)
{
	struct world *w = *state;

	begin();
	assert_null(gpu0(w));
	deliver_slice(REFLECTOR_PUT, "a", 2);
	assert_int_equal(*gpu0(w)->nodes.id, 2);
	assert_int_equal(w->changes, 1);
	assert_false(api_slices_synced(w->s));
	synced();
	assert_true(api_slices_synced(w->s));
	assert_int_equal(api_slices_count(w->s).devices, 1);
	assert_int_equal(w->changes, 1);
}

/* The kubelet deletes all slices of its node when it starts, and drivers write them anew. */
static void a_device_whose_slices_are_wiped_stays_known_until_they_come_back(void **state)
{
	struct world *w = *state;

	begin();
	deliver_slice(REFLECTOR_PUT, "a", 2);
	synced();
	deliver_slice(REFLECTOR_DELETE, "a", 2);
	assert_int_equal(*gpu0(w)->nodes.id, 2);
	assert_int_equal(w->changes, 1);
	deliver_slice(REFLECTOR_PUT, "b", 3);
	assert_int_equal(*gpu0(w)->nodes.id, 3);
	assert_int_equal(w->changes, 2);
	/* wiped while the watch was away */
	begin();
	synced();
	assert_int_equal(*gpu0(w)->nodes.id, 3);
	assert_int_equal(api_slices_count(w->s).slices, 0);
}

static void an_unreadable_slice_is_logged_once_and_can_be_deleted(void **state)
{
	struct world *w = *state;

	begin();
	deliver_slice(REFLECTOR_PUT, "a", 2);
	for (unsigned i = 0; i < 3; i++)
		deliver(REFLECTOR_PUT, "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}");
	assert_string_equal(w->log, " !slices-watch-odd-slice");
	assert_string_equal(
		w->last_text, "resourceslice a: spec: driver: should be a name, is nothing");
	assert_int_equal(api_slices_count(w->s).slices, 1);
	deliver(REFLECTOR_DELETE, "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}");
	assert_int_equal(api_slices_count(w->s).slices, 0);
	deliver(REFLECTOR_DELETE, "{}");
}

static void events_of_the_watch_are_reported_with_the_prefix_slices(void **state)
{
	struct world *w = *state;

	reflector.handler.on_event(reflector.handler.ctx, true, "watch-waiting", "why");
	reflector.handler.on_event(reflector.handler.ctx, false, "watch-synced", "text");
	assert_string_equal(w->log, " !slices-watch-waiting slices-watch-synced");
	assert_string_equal(w->last_text, "text");
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(only_this_nodes_slices_are_watched),
		IN_WORLD(an_odd_node_name_stays_within_the_selector),
		IN_WORLD(a_device_of_a_slice_is_known_once_it_comes),
		IN_WORLD(a_device_whose_slices_are_wiped_stays_known_until_they_come_back),
		IN_WORLD(an_unreadable_slice_is_logged_once_and_can_be_deleted),
		IN_WORLD(events_of_the_watch_are_reported_with_the_prefix_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
