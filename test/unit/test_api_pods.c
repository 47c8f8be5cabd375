#include <apiserver/pods.h>

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
	struct api_pods *p;
	struct api_pods_handler handler;
	char changed[LOG_MAX], log[LOG_MAX], last_text[sizeof((struct err *)0)->text];
};

static void add(char log[LOG_MAX], const char *bad, const char *what)
{
	struct text t = {log, LOG_MAX, strlen(log), false};

	text_add(&t, " %s%s", bad, what);
}

static void on_changed(void *ctx, const struct known_pod *pod)
{
	struct world *w = ctx;

	add(w->changed, "", pod->pod.uid);
	assert_ptr_equal(api_pods_find(w->p, pod->pod.uid), pod);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	add(w->log, bad ? "!" : "", event);
	(void)text_copy(w->last_text, sizeof w->last_text, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	w->handler =
		(struct api_pods_handler){.ctx = w, .changed = on_changed, .on_event = on_event};
	w->p = api_pods_new(NULL, "n1.example.com", &w->handler);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	api_pods_close(w->p);
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

static void deliver_pod(enum reflector_change change, const char *uid, const char *cpu)
{
	char text[512];

	(void)snprintf(text, sizeof text,
		"{\"metadata\":{\"uid\":\"%s\",\"name\":\"p\",\"namespace\":\"ml\"},\"spec\":{"
		"\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"cpu\":\"%s\"}}}]}"
		"}",
		uid, cpu);
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

static void only_this_nodes_pods_are_watched(void **state)
{
	(void)state;
	assert_string_equal(reflector.path, "/api/v1/pods");
	assert_string_equal(reflector.query, "fieldSelector=spec.nodeName%3Dn1.example.com");
	assert_true(reflector.from_memory);
}

static void an_odd_node_name_stays_within_the_selector(void **state)
{
	struct world *w = *state;

	api_pods_close(w->p);
	w->p = api_pods_new(NULL, "a&b,c=d", &w->handler);
	assert_string_equal(reflector.query, "fieldSelector=spec.nodeName%3Da%26b%2Cc%3Dd");
}

static void a_pod_is_kept_until_it_is_deleted(void **state)
{
	struct world *w = *state;

	begin();
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	assert_false(api_pods_synced(w->p));
	synced();
	assert_true(api_pods_synced(w->p));
	assert_int_equal(api_pods_find(w->p, "u-1")->pod.container[0].cpu_milli, 2000);
	assert_int_equal(api_pods_find(w->p, "u-1")->pod.source, POD_FROM_API_SERVER);
	assert_int_equal(api_pods_count(w->p), 1);
	assert_ptr_equal(api_pods_at(w->p, 0), api_pods_find(w->p, "u-1"));
	deliver_pod(REFLECTOR_DELETE, "u-1", "2");
	assert_null(api_pods_find(w->p, "u-1"));
	assert_int_equal(api_pods_count(w->p), 0);
}

static void a_change_is_reported_when_the_pod_asks_for_something_else(void **state)
{
	struct world *w = *state;

	begin();
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	assert_string_equal(w->changed, " u-1");
	deliver_pod(REFLECTOR_PUT, "u-1", "3");
	assert_string_equal(w->changed, " u-1 u-1");
	synced();
}

static void a_pod_that_a_new_list_lacks_is_gone(void **state)
{
	struct world *w = *state;

	begin();
	deliver_pod(REFLECTOR_PUT, "old", "2");
	deliver_pod(REFLECTOR_PUT, "again", "2");
	synced();
	begin();
	deliver_pod(REFLECTOR_PUT, "again", "2");
	assert_non_null(api_pods_find(w->p, "old"));
	synced();
	assert_null(api_pods_find(w->p, "old"));
	assert_non_null(api_pods_find(w->p, "again"));
	assert_string_equal(w->changed, " old again");
}

static void an_unreadable_pod_is_logged_once(void **state)
{
	struct world *w = *state;

	begin();
	for (unsigned i = 0; i < 3; i++)
		deliver(REFLECTOR_PUT, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\"}}");
	assert_string_equal(w->log, " !pods-watch-odd-pod");
	assert_string_equal(w->last_text, "pod ml/p: no v1.Pod with a uid");
	assert_int_equal(api_pods_count(w->p), 0);
}

/* An update in place may ask for what nobody has. */
static void a_pod_that_became_unreadable_can_still_be_deleted(void **state)
{
	struct world *w = *state;

	begin();
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	synced();
	deliver_pod(REFLECTOR_PUT, "u-1", "two");
	assert_int_equal(api_pods_find(w->p, "u-1")->pod.container[0].cpu_milli, 2000);
	deliver_pod(REFLECTOR_DELETE, "u-1", "two");
	assert_null(api_pods_find(w->p, "u-1"));
	assert_string_equal(w->log, " !pods-watch-odd-pod");
}

/* A server, or something before it, that passes over the selector. */
static void more_pods_than_a_node_has_are_not_kept(void **state)
{
	enum { CONTAINERS = 512, PODS = 1000, MAX_MIB = 32 };
	static char text[CONTAINERS * 32];
	struct world *w = *state;
	struct text t;

	begin();
	for (unsigned i = 0; i < PODS; i++) {
		text_init(&t, text, sizeof text);
		text_add(&t,
			"{\"metadata\":{\"uid\":\"u-%u\",\"name\":\"p\",\"namespace\":\"ml\"},"
			"\"spec\":{\"containers\":[{\"name\":\"c\"}",
			i);
		for (unsigned c = 1; c < CONTAINERS; c++)
			text_add(&t, ",{\"name\":\"c\"}");
		text_add(&t, "]}}");
		assert_false(t.cut);
		deliver(REFLECTOR_PUT, text);
	}
	assert_in_range(api_pods_count(w->p), 2, PODS - 1);
	assert_string_equal(w->log, " !pods-watch-odd-pod");
	assert_string_equal(w->last_text,
		"pods of 32 MiB are known already, more than a node has: others are passed over");
	deliver_pod(REFLECTOR_DELETE, "u-0", "1");
	deliver_pod(REFLECTOR_PUT, "late", "1");
	assert_non_null(api_pods_find(w->p, "late"));
}

/* Whoever may create pods may write that annotation, in any namespace. */
static void a_pod_cannot_take_the_uid_of_another_pod(void **state)
{
#define THIEF(ns)                                                                                  \
	"{\"metadata\":{\"uid\":\"t-1\",\"name\":\"thief\",\"namespace\":\"" ns "\","              \
	"\"annotations\":{\"kubernetes.io/config.mirror\":\"u-1\"}},\"spec\":{"                    \
	"\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"cpu\":\"99\"}}}]}}"
	static const char thief[] = THIEF("evil"), neighbour[] = THIEF("ml");
	struct world *w = *state;

	begin();
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	synced();
	deliver(REFLECTOR_PUT, thief);
	assert_int_equal(api_pods_find(w->p, "u-1")->pod.container[0].cpu_milli, 2000);
	assert_string_equal(w->changed, " u-1");
	deliver(REFLECTOR_DELETE, thief);
	assert_non_null(api_pods_find(w->p, "u-1"));
	assert_string_equal(w->log, " !pods-watch-odd-pod");
	assert_string_equal(w->last_text, "pod evil/thief: it claims the uid of pod ml/p");
	deliver(REFLECTOR_PUT, neighbour);
	assert_int_equal(api_pods_find(w->p, "u-1")->pod.container[0].cpu_milli, 2000);
	assert_string_equal(w->last_text, "pod ml/thief: it claims the uid of pod ml/p");
}

/* A list is in order of namespaces: the thief may come first. */
static void the_true_owner_of_a_uid_gets_it_back_from_a_thief(void **state)
{
	static const char thief[] =
		"{\"metadata\":{\"uid\":\"t-1\",\"name\":\"thief\",\"namespace\":\"evil\","
		"\"annotations\":{\"kubernetes.io/config.mirror\":\"u-1\"}},\"spec\":{}}";
	struct world *w = *state;

	begin();
	deliver(REFLECTOR_PUT, thief);
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	deliver(REFLECTOR_PUT, thief);
	synced();
	assert_string_equal(api_pods_find(w->p, "u-1")->pod.name, "p");
}

static void events_of_the_watch_are_reported_with_the_prefix_pods(void **state)
{
	struct world *w = *state;

	reflector.handler.on_event(reflector.handler.ctx, true, "watch-waiting", "why");
	reflector.handler.on_event(reflector.handler.ctx, false, "watch-synced", "text");
	assert_string_equal(w->log, " !pods-watch-waiting pods-watch-synced");
	assert_string_equal(w->last_text, "text");
}

static void the_callback_for_changes_is_optional(void **state)
{
	struct world *w = *state;

	w->handler.changed = NULL;
	begin();
	deliver_pod(REFLECTOR_PUT, "u-1", "2");
	assert_non_null(api_pods_find(w->p, "u-1"));
	api_pods_close(NULL);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(only_this_nodes_pods_are_watched),
		IN_WORLD(an_odd_node_name_stays_within_the_selector),
		IN_WORLD(a_pod_is_kept_until_it_is_deleted),
		IN_WORLD(a_change_is_reported_when_the_pod_asks_for_something_else),
		IN_WORLD(a_pod_that_a_new_list_lacks_is_gone),
		IN_WORLD(an_unreadable_pod_is_logged_once),
		IN_WORLD(a_pod_that_became_unreadable_can_still_be_deleted),
		IN_WORLD(more_pods_than_a_node_has_are_not_kept),
		IN_WORLD(a_pod_cannot_take_the_uid_of_another_pod),
		IN_WORLD(the_true_owner_of_a_uid_gets_it_back_from_a_thief),
		IN_WORLD(events_of_the_watch_are_reported_with_the_prefix_pods),
		IN_WORLD(the_callback_for_changes_is_optional),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
