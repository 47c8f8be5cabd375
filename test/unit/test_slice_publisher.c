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

static struct fake_ask *find_watch(struct world *w)
{
	for (struct fake_ask *q = w->f.first; q; q = q->next)
		if (q->open && strstr(q->path, "watch="))
			return q;
	return NULL;
}

static void send_event(struct world *w, const char *type, json_t *object)
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

static json_t *meta_of(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static const char *name_of(const json_t *object)
{
	return json_string_value(json_object_get(meta_of(object), "name"));
}

static unsigned find(const struct world *w, const char *name)
{
	unsigned i = 0;

	while (i < w->nr && !text_equal(name_of(w->object[i]), name))
		i++;
	return i;
}

static void new_version(struct world *w, json_t *object)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", ++w->version);
	(void)json_object_set_new(meta_of(object), "resourceVersion", json_string(text));
}

/* What a server does to what it is given. */
static void admit(const struct world *w, json_t *object)
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
static void put(struct world *w, json_t *object)
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

static void remove_object(struct world *w, const char *name)
{
	unsigned i = find(w, name);

	assert_true(i < w->nr);
	new_version(w, w->object[i]);
	send_event(w, "DELETED", w->object[i]);
	json_decref(w->object[i]);
	w->object[i] = w->object[--w->nr];
}

static json_t *parsed(const char *text)
{
	json_t *v = NULL;

	if (api_json_parse(text, strlen(text), &v, NULL))
		fail_msg("not JSON: %s", text);
	return v;
}

static void answer_status(struct fake_ask *q, int status, const char *reason)
{
	char text[256];

	(void)snprintf(text, sizeof text,
		"{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\",\"message\":\"%s\"}", status,
		reason, reason);
	fake_api_answer(q, status, NULL, text);
}

static void answer_object(struct world *w, struct fake_ask *q, int status, const json_t *object)
{
	auto_free char *text = json_dumps(object, JSON_COMPACT);

	if (w->before_answer)
		w->before_answer(w);
	fake_api_answer(q, status, NULL, text);
}

static void serve_list(struct world *w, struct fake_ask *q)
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

static void serve_write(struct world *w, struct fake_ask *q, bool silent)
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

static void serve_delete(struct world *w, struct fake_ask *q)
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

static struct fault *fault_for(struct world *w, const struct fake_ask *q)
{
	for (size_t i = 0; i < FAULTS_MAX; i++)
		if (w->fault[i].times && !strcmp(w->fault[i].method, q->method) &&
			strstr(q->path, w->fault[i].path)) {
			w->fault[i].times--;
			return &w->fault[i];
		}
	return NULL;
}

static void serve(void *ctx, struct fake_ask *q)
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

static size_t wanted(void *ctx, struct slice_node *out)
{
	struct world *w = ctx;

	memcpy(out, w->node, sizeof w->node);
	w->asked_wanted++;
	loop_stop(w->f.loop);
	return w->nr_nodes;
}

/* Of the connection. */
static void on_api_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	(void)bad;
	(void)event;
	(void)text;
	loop_stop(w->f.loop);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static int setup(void **state)
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

static int teardown(void **state)
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

static void start_with(struct world *w, unsigned interval_ms, unsigned timeout_ms)
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

static void start(struct world *w)
{
	start_with(w, 1, NEVER_MS);
}

static struct slice_publisher_state state_of(const struct world *w)
{
	struct slice_publisher_state s;

	slice_publisher_state(w->p, &s);
	return s;
}

/* Until the server has what is wanted, and it is known here. */
static void settle(struct world *w)
{
	FAKE_UNTIL(&w->f, state_of(w).current);
}

static json_t *ours(const struct world *w)
{
	assert_true(find(w, OURS) < w->nr);
	return w->object[find(w, OURS)];
}

static json_int_t generation(const struct world *w)
{
	return json_integer_value(json_object_get(
		json_object_get(json_object_get(ours(w), "spec"), "pool"), "generation"));
}

static void change(struct world *w, uint64_t cpus)
{
	w->node[0].cpus = cpus;
	slice_publisher_changed(w->p);
}

static uint64_t cpus_of_first(const struct world *w)
{
	static struct slice_written s;
	struct err e;

	if (slice_written_read(ours(w), &s, &e))
		fail_msg("%s", e.text);
	return s.node[0].cpus;
}

static unsigned count(const char *text, const char *what)
{
	unsigned nr = 0;

	while ((text = strstr(text, what)))
		nr++, text++;
	return nr;
}

static void a_missing_slice_is_written_and_belongs_to_the_node(void **state)
{
	struct world *w = *state;
	json_t *owner;

	start(w);
	assert_false(state_of(w).synced);
	settle(w);
	assert_int_equal(w->posts, 1);
	assert_int_equal(generation(w), 1);
	assert_int_equal(cpus_of_first(w), 14);
	owner = json_array_get(json_object_get(meta_of(ours(w)), "ownerReferences"), 0);
	assert_string_equal(json_string_value(json_object_get(owner, "uid")), "node-1");
	assert_string_equal(w->f.log, " claims-watch-synced claims-slice-written");
	assert_string_equal(w->f.last_text, "ResourceSlice n1-numafit.io: generation 1");
	assert_true(state_of(w).synced);
	assert_int_equal(state_of(w).generation, 1);
	assert_int_equal(state_of(w).written, 1);
	assert_int_equal(state_of(w).failed, 0);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts + w->puts + w->deletes, 1);
}

static void only_our_drivers_slices_of_the_node_are_watched(void **state)
{
	struct world *w = *state;

	start(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	assert_non_null(strstr(find_watch(w)->path,
		"fieldSelector=spec.driver%3Dnumafit.io%2Cspec.nodeName%3Dn1"));
}

/* Another instance of us, with what the server has made of it. */
static void a_slice_that_is_right_already_is_left_alone(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	slice_publisher_close(w->p);
	api_free(w->api);
	start(w);
	settle(w);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts + w->puts + w->deletes, 1);
	assert_int_equal(state_of(w).written, 0);
	assert_int_equal(state_of(w).generation, 1);
}

static void a_change_is_written_with_the_version_that_it_replaces(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	change(w, 7);
	assert_false(state_of(w).current);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), 7);
	assert_int_equal(generation(w), 2);
	slice_publisher_changed(w->p); /* it is the same */
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(count(w->f.log, "claims-slice-written"), 1);
}

static void changes_within_the_interval_are_one_write_at_its_end(void **state)
{
	struct world *w = *state;
	enum { CHANGES = 20 };

	start_with(w, LONG_MS, NEVER_MS);
	uint64_t began = loop_monotonic_ns();
	settle(w);
	unsigned asked = w->asked_wanted;
	for (unsigned i = 1; i <= CHANGES; i++) {
		change(w, i);
		change(w, i);
	}
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), CHANGES);
	assert_true(loop_monotonic_ns() - began >= (uint64_t)LONG_MS * NS_PER_MS);
	assert_true(w->asked_wanted - asked <= 3);
}

/* The kubelet deletes all slices of its node when it starts. */
static void a_slice_that_the_kubelet_deletes_comes_back(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	for (unsigned i = 2; i <= 4; i++) {
		remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == i);
		settle(w);
		assert_int_equal(generation(w), i);
		assert_int_equal(w->nodes_read, i); /* it may be another Node by now */
	}
	assert_int_equal(count(w->f.log, "claims-slice-written"), 4);
}

static void a_slice_that_was_deleted_while_the_watch_was_away_comes_back(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->watch_is_late = true;
	remove_object(w, OURS);
	w->watch_is_late = false;
	fake_api_say(find_watch(w), "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":"
				    "410,\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
	FAKE_UNTIL(&w->f, w->posts == 2);
	settle(w);
	assert_int_equal(generation(w), 2);
	assert_int_equal(w->nodes_read, 2);
	assert_int_equal(count(w->f.log, "claims-slice-written"), 2);
}

static void set_cpus(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 0);

	(void)json_object_set_new(json_object_get(json_object_get(device, "capacity"), "cpu"),
		"value", json_string("99"));
}

static void drop_owner(json_t *object)
{
	(void)json_object_del(meta_of(object), "ownerReferences");
}

static void drop_devices(json_t *object)
{
	(void)json_object_set_new(json_object_get(object, "spec"), "devices", json_array());
}

static void lower_generation(json_t *object)
{
	(void)json_object_set_new(json_object_get(json_object_get(object, "spec"), "pool"),
		"generation", json_integer(0));
}

static void add_attribute(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 1);

	(void)json_object_set_new(json_object_get(device, "attributes"), "example.com/x",
		json_pack("{s:i}", "int", 1));
}

static void add_label(json_t *object)
{
	(void)json_object_set_new(meta_of(object), "labels", json_pack("{s:s}", "a", "b"));
}

static void respell(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 0);

	(void)json_object_set_new(json_object_get(json_object_get(device, "capacity"), "memory"),
		"value", json_string("63488Mi"));
}

static void what_somebody_else_has_changed_is_put_right(void **state)
{
	static const struct {
		void (*change)(json_t *object);
		bool matters;
	} rows[] = {{set_cpus, true}, {drop_owner, true}, {drop_devices, true},
		{lower_generation, true}, {add_attribute, true}, {add_label, false},
		{respell, false}};
	struct world *w = *state;
	unsigned puts = 0;

	start(w);
	settle(w);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_int_t before = generation(w);
		json_t *object = json_deep_copy(ours(w));

		rows[i].change(object);
		put(w, object);
		puts += rows[i].matters;
		if (rows[i].matters)
			FAKE_UNTIL(&w->f, w->puts == puts);
		else
			fake_api_stay_quiet(&w->f);
		settle(w);
		assert_int_equal(w->puts, puts);
		assert_int_equal(cpus_of_first(w), 14);
		assert_int_equal(generation(w), before + rows[i].matters);
	}
	assert_int_equal(count(w->f.log, "claims-slice-written"), 1 + puts);
}

static void without_any_node_there_is_no_slice(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	w->nr_nodes = 0;
	slice_publisher_changed(w->p);
	settle(w);
	assert_int_equal(w->nr, 0);
	assert_int_equal(state_of(w).generation, 0);
	w->nr_nodes = 1;
	w->node[0].cpus = 0; /* which is no device */
	slice_publisher_changed(w->p);
	settle(w);
	assert_int_equal(w->nr, 0);
	change(w, 3);
	settle(w);
	assert_int_equal(cpus_of_first(w), 3);
	assert_int_equal(generation(w), 2);
}

static json_t *slice_of(const char *name, const char *driver, const char *node, const char *pool,
	json_int_t pool_generation)
{
	return json_pack("{s:{s:s},s:{s:s,s:s,s:{s:s,s:I,s:i},s:[{s:s}]}}", "metadata", "name",
		name, "spec", "driver", driver, "nodeName", node, "pool", "name", pool,
		"generation", pool_generation, "resourceSliceCount", 1, "devices", "name", "d");
}

static void extra_slices_of_ours_are_deleted_and_those_of_others_are_not(void **state)
{
	struct world *w = *state;

	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 41));
	put(w, slice_of("old-2", "numafit.io", "n1", "elsewhere", 1));
	put(w, slice_of("gpu", "gpu.example.com", "n1", "n1", 1)); /* a server without selectors */
	put(w, slice_of("n2-numafit.io", "numafit.io", "n2", "n2", 7));
	start(w);
	FAKE_UNTIL(&w->f, w->deletes == 2);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(w->nr, 3);
	assert_true(find(w, "gpu") < w->nr);
	assert_true(find(w, "n2-numafit.io") < w->nr);
	assert_int_equal(generation(w), 42);
	put(w, slice_of("new", "numafit.io", "n1", "n1", 43)); /* its generation is in force */
	FAKE_UNTIL(&w->f, w->deletes == 3);
	settle(w);
	assert_int_equal(generation(w), 44);
}

static void an_extra_slice_that_cannot_be_deleted_does_not_stop_the_others(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"DELETE", SLICES, 1, 403, "Forbidden", false, false};
	w->retry_ms = NEVER_MS;
	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	change(w, 5);
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(state_of(w).failed, 1);
	assert_int_equal(w->deletes, 0);
}

static void an_extra_slice_that_cannot_be_deleted_is_tried_again(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"DELETE", SLICES, 3, 503, "ServiceUnavailable", false, false};
	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	start(w);
	FAKE_UNTIL(&w->f, w->deletes == 1);
	assert_int_equal(w->nr, 1);
	assert_int_equal(state_of(w).failed, 3);
}

static void a_slice_of_another_pool_is_deleted_first(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "numafit.io", "n1", "elsewhere", 9));
	start(w);
	settle(w);
	assert_int_equal(w->deletes, 1);
	assert_int_equal(w->posts, 1);
	assert_int_equal(generation(w), 10);
}

static void the_highest_generation_of_all_is_not_exceeded(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "numafit.io", "n1", "n1", INT64_MAX));
	start(w);
	settle(w);
	assert_true(generation(w) == INT64_MAX);
	assert_int_equal(w->puts, 1);
}

static void a_conflict_waits_for_the_watch(void **state)
{
	struct world *w = *state;

	w->retry_ms = NEVER_MS;
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->watch_is_late = true;
	json_t *object = json_deep_copy(ours(w));
	add_label(object);
	put(w, object);
	change(w, 5);
	FAKE_UNTIL(&w->f, w->puts == 1);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->puts, 1);
	assert_int_equal(state_of(w).failed, 1);
	w->watch_is_late = false;
	send_event(w, "MODIFIED", ours(w));
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_null(strstr(w->f.log, "refused"));
}

/* Deleted, and the watch does not say so yet. */
static void what_is_gone_already_is_written_anew_or_needs_no_deletion(void **state)
{
	struct world *w = *state;

	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	w->fault[0] = (struct fault){"DELETE", SLICES, 1, 404, "NotFound", false, false};
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	FAKE_UNTIL(&w->f, !w->fault[0].times);
	w->watch_is_late = true;
	remove_object(w, OURS);
	change(w, 5);
	FAKE_UNTIL(&w->f, w->posts == 2);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(w->deletes, 0); /* it was asked for once */
	assert_int_equal(state_of(w).failed, 0);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_name_that_is_taken_is_reported(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "gpu.example.com", "n1", "n1", 1));
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	assert_string_equal(w->f.last_text,
		"ResourceSlice n1-numafit.io: there is one of that name, "
		"of another driver or node: delete it");
	remove_object(w, OURS);
	settle(w);
	assert_non_null(strstr(w->f.log, " claims-slice-written"));
}

/* The watch may be a moment late each time. */
static void a_name_that_is_taken_for_a_moment_is_no_news(void **state)
{
	struct world *w = *state;

	for (unsigned i = 1; i <= 3; i++) {
		w->fault[0] = (struct fault){"POST", SLICES, 1, 409, "AlreadyExists", false, false};
		if (i == 1)
			start(w);
		else
			remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == i);
		settle(w);
	}
	assert_int_equal(state_of(w).failed, 3);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_refusal_says_what_is_missing_and_is_tried_again(void **state)
{
	static const struct {
		const char *method;
		int status;
		const char *reason, *text;
	} rows[] = {
		{"POST", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to create "
			"resourceslices.resource.k8s.io is missing"},
		{"POST", 404, "NotFound",
			"ResourceSlice n1-numafit.io: NotFound; is Kubernetes older than 1.34?"},
		{"POST", 422, "Invalid", "ResourceSlice n1-numafit.io: Invalid"},
		{"PUT", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to update "
			"resourceslices.resource.k8s.io is missing"},
		{"DELETE", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to delete "
			"resourceslices.resource.k8s.io is missing"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = *state;

		if (i) {
			(void)teardown(state);
			(void)setup(state);
			w = *state;
		}
		w->fault[0] = (struct fault){
			rows[i].method, SLICES, 2, rows[i].status, rows[i].reason, false, false};
		start(w);
		if (strcmp(rows[i].method, "POST") != 0) {
			settle(w);
			w->nr_nodes = !strcmp(rows[i].method, "DELETE") ? 0 : 1;
			slice_publisher_changed(w->p);
		}
		FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
		assert_string_equal(w->f.last_text, rows[i].text);
		settle(w);
		assert_int_equal(count(w->f.log, "refused"), 1);
		assert_int_equal(state_of(w).failed, 2);
	}
}

static void what_may_pass_is_no_bad_news(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 2, 503, "ServiceUnavailable", false, false};
	start(w);
	settle(w);
	assert_string_equal(
		w->f.log, " claims-watch-synced claims-slice-refused claims-slice-written");
}

static void without_the_right_to_list_nothing_is_written(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"GET", SLICES, 2, 403, "Forbidden", false, false};
	start(w);
	FAKE_UNTIL(&w->f, *w->f.log);
	assert_string_equal(w->f.log, " claims-watch-waiting!");
	assert_non_null(strstr(w->f.last_text, "Forbidden"));
	assert_int_equal(w->posts, 0);
	settle(w);
}

static void without_its_node_the_slice_has_no_owner(void **state)
{
	static const struct {
		int status;
		const char *log;
	} rows[] = {{403, " claims-watch-synced claims-slice-without-owner! claims-slice-written"},
		{404, " claims-watch-synced claims-slice-without-owner claims-slice-written"}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = *state;

		if (i) {
			(void)teardown(state);
			(void)setup(state);
			w = *state;
		}
		w->fault[0] = (struct fault){
			"GET", "/nodes/n1", UINT_MAX, rows[i].status, "no", false, false};
		start(w);
		settle(w);
		assert_string_equal(w->f.log, rows[i].log);
		assert_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
		remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == 2);
		settle(w);
		unsigned before = w->nodes_read;
		FAKE_UNTIL(&w->f, w->nodes_read > before); /* now and then */
		assert_int_equal(count(w->f.log, "without-owner"), 1);
		assert_int_equal(w->puts, 0);
		w->fault[0].times = 0; /* the Node is there now */
		FAKE_UNTIL(&w->f, w->puts == 1);
		settle(w);
		assert_non_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
	}
}

static void a_node_that_cannot_be_read_now_is_waited_for(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"GET", "/nodes/n1", 2, 500, "InternalError", false, false};
	start(w);
	settle(w);
	assert_int_equal(w->nodes_read, 3);
	assert_string_equal(
		w->f.log, " claims-watch-synced claims-slice-refused claims-slice-written");
	assert_non_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
}

static void a_write_that_is_not_answered_in_time_is_tried_again(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, false};
	start_with(w, 1, LONG_MS);
	settle(w);
	assert_int_equal(w->posts, 1);
	assert_int_equal(state_of(w).failed, 1);
	assert_int_equal(state_of(w).written, 1);
	assert_null(strstr(w->f.log, "refused")); /* the connection reports it */
}

static void a_write_that_was_done_without_an_answer_is_not_repeated(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, true};
	start_with(w, 1, LONG_MS);
	settle(w);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts, 1);
	assert_int_equal(w->puts, 0);
}

static void delete_before_answer(struct world *w)
{
	w->before_answer = NULL;
	remove_object(w, OURS);
}

static void change_before_answer(struct world *w)
{
	json_t *object = json_deep_copy(ours(w));

	w->before_answer = NULL;
	set_cpus(object);
	put(w, object);
}

/* Answers and the watch come by two connections. */
static void an_answer_that_is_older_than_the_watch_does_not_count(void **state)
{
	struct world *w = *state;

	start(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->before_answer = delete_before_answer;
	FAKE_UNTIL(&w->f, !w->before_answer);
	settle(w);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(find(w, OURS), 0);
	assert_int_equal(w->posts, 2);
	w->before_answer = change_before_answer;
	change(w, 5);
	FAKE_UNTIL(&w->f, !w->before_answer);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(w->puts, 2);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_server_that_keeps_another_slice_is_reported(void **state)
{
	struct world *w = *state;
	enum { SOME = 5 };

	w->drops_sharing = true;
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!") || w->puts == SOME);
	assert_string_equal(w->f.last_text,
		"ResourceSlice n1-numafit.io: the API server keeps another one than was written: "
		"devices[0]: allowMultipleAllocations: should be true; is its feature gate "
		"DRAConsumableCapacity off?");
	FAKE_UNTIL(&w->f, w->puts == 2); /* with the longest delay */
	assert_int_equal(count(w->f.log, "refused"), 1);
	w->drops_sharing = false;
	settle(w);
}

static void what_such_a_server_keeps_is_not_written_again_at_once(void **state)
{
	struct world *w = *state;

	w->drops_sharing = true;
	w->retry_ms = NEVER_MS;
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts, 1);
	assert_int_equal(w->puts, 0);
	assert_false(state_of(w).current);
}

static void a_server_that_comes_back_has_the_slice_again(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	fake_api_down(&w->f);
	change(w, 6);
	FAKE_UNTIL(&w->f, state_of(w).failed > 0);
	fake_api_up(&w->f);
	settle(w);
	assert_int_equal(cpus_of_first(w), 6);
	assert_int_equal(generation(w), 2);
}

static void closing_is_allowed_at_any_time(void **state)
{
	struct world *w = *state;

	slice_publisher_close(NULL);
	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, false};
	start(w);
	slice_publisher_close(steal(w->p)); /* before anything was */
	api_free(steal(w->api));
	start(w);
	FAKE_UNTIL(&w->f, !w->fault[0].times);
	slice_publisher_changed(w->p);
	slice_publisher_close(steal(w->p)); /* a write under way, another one to come */
	api_free(steal(w->api));
	w->fault[0] = (struct fault){"POST", SLICES, 1, 403, "Forbidden", false, false};
	start(w);
	FAKE_UNTIL(&w->f, state_of(w).failed == 1);
	slice_publisher_close(steal(w->p)); /* waiting to try again */
	api_free(steal(w->api));
	start(w);
	settle(w);
	slice_publisher_close(steal(w->p)); /* the slice stays */
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->nr, 1);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_missing_slice_is_written_and_belongs_to_the_node),
		IN_WORLD(only_our_drivers_slices_of_the_node_are_watched),
		IN_WORLD(a_slice_that_is_right_already_is_left_alone),
		IN_WORLD(a_change_is_written_with_the_version_that_it_replaces),
		IN_WORLD(changes_within_the_interval_are_one_write_at_its_end),
		IN_WORLD(a_slice_that_the_kubelet_deletes_comes_back),
		IN_WORLD(a_slice_that_was_deleted_while_the_watch_was_away_comes_back),
		IN_WORLD(what_somebody_else_has_changed_is_put_right),
		IN_WORLD(without_any_node_there_is_no_slice),
		IN_WORLD(extra_slices_of_ours_are_deleted_and_those_of_others_are_not),
		IN_WORLD(an_extra_slice_that_cannot_be_deleted_does_not_stop_the_others),
		IN_WORLD(an_extra_slice_that_cannot_be_deleted_is_tried_again),
		IN_WORLD(a_slice_of_another_pool_is_deleted_first),
		IN_WORLD(the_highest_generation_of_all_is_not_exceeded),
		IN_WORLD(a_conflict_waits_for_the_watch),
		IN_WORLD(what_is_gone_already_is_written_anew_or_needs_no_deletion),
		IN_WORLD(a_name_that_is_taken_is_reported),
		IN_WORLD(a_name_that_is_taken_for_a_moment_is_no_news),
		IN_WORLD(a_refusal_says_what_is_missing_and_is_tried_again),
		IN_WORLD(what_may_pass_is_no_bad_news),
		IN_WORLD(without_the_right_to_list_nothing_is_written),
		IN_WORLD(without_its_node_the_slice_has_no_owner),
		IN_WORLD(a_node_that_cannot_be_read_now_is_waited_for),
		IN_WORLD(a_write_that_is_not_answered_in_time_is_tried_again),
		IN_WORLD(a_write_that_was_done_without_an_answer_is_not_repeated),
		IN_WORLD(an_answer_that_is_older_than_the_watch_does_not_count),
		IN_WORLD(a_server_that_keeps_another_slice_is_reported),
		IN_WORLD(what_such_a_server_keeps_is_not_written_again_at_once),
		IN_WORLD(a_server_that_comes_back_has_the_slice_again),
		IN_WORLD(closing_is_allowed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
