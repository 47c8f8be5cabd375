#ifndef TEST_SLICE_PUBLISHER_RIG_H
#define TEST_SLICE_PUBLISHER_RIG_H

#include <apiserver/slice_publisher.h>

#include <codec/api_json.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <numafit/slice_store.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_api.h"

/* An API server that keeps ResourceSlices, with a watch, and does what the test wants beside. */

enum {
	NEVER_MS = 3600000,
	SHORT_MS = 20,
	LONG_MS = 300,
	OBJECTS_MAX = 8,
	FAULTS_MAX = 4,
	NS_PER_MS = 1000000
};
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define OURS   "n1-numafit.io"

/* The next requests with that method and path are answered like this. */
struct fault {
	const char *method, *path;
	unsigned times;
	int status;
	const char *reason;
	bool never; /* it is not answered, */
	bool done;  /* but was done */
};

struct world {
	struct fake_api f;
	struct api *api;
	struct slice_publisher *p;
	/* the server's */
	json_t *object[OBJECTS_MAX];
	unsigned nr, version;
	struct fault fault[FAULTS_MAX];
	unsigned nodes_read, posts, puts, deletes, lists;
	char *last_body;
	bool watch_is_late; /* it shows nothing new */
	bool drops_sharing; /* as Kubernetes without DRAConsumableCapacity */
	void (*before_answer)(struct world *w);
	unsigned retry_ms;
	/* what is wanted */
	size_t nr_nodes;
	struct slice_node node[2];
	unsigned asked_wanted;
};

/* The server */

static inline struct fake_ask *find_watch(struct world *w)
{
	for (struct fake_ask *q = w->f.first; q; q = q->next)
		if (q->open && strstr(q->path, "watch="))
			return q;
	return NULL;
}

static inline void send_event(struct world *w, const char *type, json_t *object)
{
	struct fake_ask *watch = find_watch(w);

	if (!watch || w->watch_is_late)
		return;
	json_t *event = json_pack("{s:s,s:O}", "type", type, "object", object);
	auto_free char *text = json_dumps(event, JSON_COMPACT), *line = NULL;
	json_decref(event);
	assert_true(asprintf(&line, "%s\n", text) > 0);
	fake_api_say(watch, line);
}

static inline json_t *meta_of(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static inline const char *name_of(const json_t *object)
{
	return json_string_value(json_object_get(meta_of(object), "name"));
}

static inline unsigned find(const struct world *w, const char *name)
{
	unsigned i = 0;

	while (i < w->nr && !text_equal(name_of(w->object[i]), name))
		i++;
	return i;
}

static inline void new_version(struct world *w, json_t *object)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", ++w->version);
	(void)json_object_set_new(meta_of(object), "resourceVersion", json_string(text));
}

/* What a server does to what it is given. */
static inline void admit(const struct world *w, json_t *object)
{
	json_t *devices = json_object_get(json_object_get(object, "spec"), "devices"), *device;
	size_t i;

	(void)json_object_set_new(meta_of(object), "uid", json_string("some-uid"));
	(void)json_object_set_new(meta_of(object), "managedFields", json_pack("[{}]"));
	json_array_foreach(devices, i, device)
	{
		json_t *taint = json_array_get(json_object_get(device, "taints"), 0);

		if (taint)
			(void)json_object_set_new(
				taint, "timeAdded", json_string("2026-11-22T15:51:20Z"));
		if (w->drops_sharing)
			(void)json_object_del(device, "allowMultipleAllocations");
	}
}

/* Takes the object over. */
static inline void put(struct world *w, json_t *object)
{
	unsigned i = find(w, name_of(object));
	bool is_new = i == w->nr;

	assert_true(i < OBJECTS_MAX);
	admit(w, object);
	new_version(w, object);
	if (is_new)
		w->nr++;
	else
		json_decref(w->object[i]);
	w->object[i] = object;
	send_event(w, is_new ? "ADDED" : "MODIFIED", object);
}

static inline void remove_object(struct world *w, const char *name)
{
	unsigned i = find(w, name);

	assert_true(i < w->nr);
	new_version(w, w->object[i]);
	send_event(w, "DELETED", w->object[i]);
	json_decref(w->object[i]);
	w->object[i] = w->object[--w->nr];
}

static inline json_t *parsed(const char *text)
{
	json_t *v = NULL;

	if (api_json_parse(text, strlen(text), &v, NULL))
		fail_msg("not JSON: %s", text);
	return v;
}

static inline void answer_status(struct fake_ask *q, int status, const char *reason)
{
	char text[256];

	(void)snprintf(text, sizeof text,
		"{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\",\"message\":\"%s\"}", status,
		reason, reason);
	fake_api_answer(q, status, NULL, text);
}

static inline void answer_object(
	struct world *w, struct fake_ask *q, int status, const json_t *object)
{
	auto_free char *text = json_dumps(object, JSON_COMPACT);

	if (w->before_answer)
		w->before_answer(w);
	fake_api_answer(q, status, NULL, text);
}

static inline void serve_list(struct world *w, struct fake_ask *q)
{
	json_t *items = json_array();
	char version[16];

	w->lists++;
	for (unsigned i = 0; i < w->nr; i++)
		(void)json_array_append(items, w->object[i]);
	(void)snprintf(version, sizeof version, "%u", w->version);
	json_t *list =
		json_pack("{s:{s:s},s:o}", "metadata", "resourceVersion", version, "items", items);
	auto_free char *text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	fake_api_answer(q, 200, NULL, text);
}

static inline void serve_write(struct world *w, struct fake_ask *q, bool silent)
{
	bool creates = !strcmp(q->method, "POST");
	json_t *object = parsed(q->body);
	unsigned i = find(w, name_of(object));
	const char *version =
		json_string_value(json_object_get(meta_of(object), "resourceVersion"));

	free(w->last_body);
	w->last_body = xstrdup(q->body);
	if (creates)
		w->posts++;
	else
		w->puts++;
	const char *refused =
		creates ? (i < w->nr ? "AlreadyExists" : NULL)
			: (i == w->nr ? "NotFound"
				      : (text_equal(version,
						 json_string_value(json_object_get(
							 meta_of(w->object[i]), "resourceVersion")))
							? NULL
							: "Conflict"));
	if (refused) {
		answer_status(q, i == w->nr ? 404 : 409, refused);
		json_decref(object);
		return;
	}
	json_incref(object);
	put(w, object);
	if (!silent)
		answer_object(w, q, creates ? 201 : 200, object);
	json_decref(object);
}

static inline void serve_delete(struct world *w, struct fake_ask *q)
{
	const char *name = q->path + strlen(SLICES "/");

	w->deletes++;
	if (find(w, name) == w->nr) {
		answer_status(q, 404, "NotFound");
		return;
	}
	remove_object(w, name);
	answer_status(q, 200, "Success");
}

static inline struct fault *fault_for(struct world *w, const struct fake_ask *q)
{
	for (size_t i = 0; i < FAULTS_MAX; i++)
		if (w->fault[i].times && !strcmp(w->fault[i].method, q->method) &&
			strstr(q->path, w->fault[i].path)) {
			w->fault[i].times--;
			return &w->fault[i];
		}
	return NULL;
}

static inline void serve(void *ctx, struct fake_ask *q)
{
	struct world *w = ctx;
	const struct fault *fault = fault_for(w, q);

	w->nodes_read += strstr(q->path, "/api/v1/nodes/") != NULL;
	if (fault && !fault->done) {
		if (!fault->never)
			answer_status(q, fault->status, fault->reason);
		return;
	}
	if (strstr(q->path, "/api/v1/nodes/"))
		fake_api_answer(
			q, 200, NULL, "{\"metadata\":{\"name\":\"n1\",\"uid\":\"node-1\"}}");
	else if (strstr(q->path, "watch="))
		fake_api_begin(q);
	else if (!strcmp(q->method, "GET"))
		serve_list(w, q);
	else if (!strcmp(q->method, "DELETE"))
		serve_delete(w, q);
	else
		serve_write(w, q, fault && fault->never);
}

/* What is tested */

static inline size_t wanted(void *ctx, struct slice_node *out)
{
	struct world *w = ctx;

	memcpy(out, w->node, sizeof w->node);
	w->asked_wanted++;
	loop_stop(w->f.loop);
	return w->nr_nodes;
}

/* Of the connection. */
static inline void on_api_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	(void)bad;
	(void)event;
	(void)text;
	loop_stop(w->f.loop);
}

static inline void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static inline int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	fake_api_init(&w->f);
	w->f.serve = serve;
	w->f.ctx = w;
	w->version = 100;
	w->retry_ms = SHORT_MS;
	w->nr_nodes = 2;
	for (unsigned i = 0; i < 2; i++)
		w->node[i] = (struct slice_node){.node_id = i,
			.nr_caches = 2,
			.threads = 2,
			.cpus = 14 + 2 * i,
			.nr_memory = 2,
			.memory = {{0, UINT64_C(62) << 30}, {2 << 20, 64 << 20}},
			.closed = i == 1};
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	slice_publisher_close(w->p);
	api_free(w->api);
	fake_api_fini(&w->f);
	for (unsigned i = 0; i < w->nr; i++)
		json_decref(w->object[i]);
	free(w->last_body);
	free(w);
	return 0;
}

static inline void start_with(struct world *w, unsigned interval_ms, unsigned timeout_ms)
{
	const struct api_options o = {.kubeconfig = w->f.kubeconfig,
		.user_agent = "tester/1",
		.timeout_ms = timeout_ms,
		.ctx = w,
		.on_event = on_api_event};
	const struct slice_publisher_options po = {.node = "n1",
		.interval_ms = interval_ms,
		.retry_min_ms = w->retry_ms,
		.retry_max_ms = 2 * w->retry_ms};
	const struct slice_publisher_handler handler = {w, wanted, on_event};
	struct err e = {0};

	w->api = api_new(w->f.loop, &o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
	w->p = slice_publisher_new(w->f.loop, w->api, &po, &handler);
}

static inline void start(struct world *w)
{
	start_with(w, 1, NEVER_MS);
}

static inline struct slice_publisher_state state_of(const struct world *w)
{
	struct slice_publisher_state s;

	slice_publisher_state(w->p, &s);
	return s;
}

/* Until the server has what is wanted, and it is known here. */
static inline void settle(struct world *w)
{
	FAKE_UNTIL(&w->f, state_of(w).current);
}

static inline json_t *ours(const struct world *w)
{
	assert_true(find(w, OURS) < w->nr);
	return w->object[find(w, OURS)];
}

static inline json_int_t generation(const struct world *w)
{
	return json_integer_value(json_object_get(
		json_object_get(json_object_get(ours(w), "spec"), "pool"), "generation"));
}

static inline void change(struct world *w, uint64_t cpus)
{
	w->node[0].cpus = cpus;
	slice_publisher_changed(w->p);
}

static inline uint64_t cpus_of_first(const struct world *w)
{
	static struct slice_written s;
	struct err e;

	if (slice_written_read(ours(w), &s, &e))
		fail_msg("%s", e.text);
	return s.node[0].cpus;
}

static inline unsigned count(const char *text, const char *what)
{
	unsigned nr = 0;

	while ((text = strstr(text, what)))
		nr++, text++;
	return nr;
}

/* What others do to a slice, and slices of theirs. */

static inline void set_cpus(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 0);

	(void)json_object_set_new(json_object_get(json_object_get(device, "capacity"), "cpu"),
		"value", json_string("99"));
}

static inline void add_label(json_t *object)
{
	(void)json_object_set_new(meta_of(object), "labels", json_pack("{s:s}", "a", "b"));
}

static inline json_t *slice_of(const char *name, const char *driver, const char *node,
	const char *pool, json_int_t pool_generation)
{
	return json_pack("{s:{s:s},s:{s:s,s:s,s:{s:s,s:I,s:i},s:[{s:s}]}}", "metadata", "name",
		name, "spec", "driver", driver, "nodeName", node, "pool", "name", pool,
		"generation", pool_generation, "resourceSliceCount", 1, "devices", "name", "d");
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
