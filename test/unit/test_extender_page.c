/* What the page of the cluster is given by a running numafit-extender: nodes from the watches,
 * refusals by their kind, and the pods that no node had room for. */
#include "extender_cases.h"

static unsigned page_port;

static void start_with_page(struct rig *r)
{
	rig_write_config(r, "ui: {address: 127.0.0.1:0, poolLabel: example.com/pool}\n");
	rig_start(r);
	while (!rig_said(r, "event=status-page-served"))
		(void)usleep(1000);
	assert_int_equal(
		sscanf(strstr(r->log, "event=status-page-served"),
			"event=status-page-served text=\"at 127.0.0.1:0, port %u", &page_port),
		1);
	rig_await_ready(r);
}

/* The document, which the caller drops. */
static json_t *read_page(struct rig *r, const char *since)
{
	unsigned verbs = r->port;
	char path[128];

	(void)snprintf(path, sizeof path, "/api/cluster?since=%s", since);
	r->port = page_port;
	assert_int_equal(rig_ask(r, path, NULL), FAKE_OK);
	r->port = verbs;
	json_t *v = json_loads(r->answer, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(v);
	return v;
}

/* The row of that node, or NULL; borrowed. */
static json_t *row_of(const json_t *v, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(v, "nodes"), i,
		row) if (text_equal(json_string_value(json_array_get(row, 0)), name)) return row;
	return NULL;
}

static void is_row(const json_t *v, const char *name, const char *wanted)
{
	auto_free char *text = json_dumps(row_of(v, name), JSON_COMPACT);

	assert_string_equal(text, wanted);
}

static json_t *pooled_node(const char *name, const char *pool)
{
	json_t *v = rig_node(name);

	(void)json_object_set_new(json_object_get(v, "metadata"), "labels",
		json_pack("{s:s}", "example.com/pool", pool));
	return v;
}

static void the_page_shows_what_the_watches_have(void **state)
{
	struct rig *r = *state;

	rig_put(r, NODES, pooled_node("n3", "batch"));
	start_with_page(r);
	json_t *v = read_page(r, "");
	assert_int_equal(json_array_size(json_object_get(v, "nodes")), 3);
	is_row(v, "n1", "[\"n1\",\"\",0,[2,6],8,[32768,32768],32768,8]");
	is_row(v, "n2", "[\"n2\",\"\",0,[2,3],8,[32768,32768],32768,5]");
	is_row(v, "n3", "[\"n3\",\"batch\",2,[],0,[],0,0]");
	char *at = xstrdup(json_string_value(json_object_get(v, "at")));
	json_decref(v);
	rig_put(r, REPORTS, rig_report("n1", 9, 1, 6, ""));
	rig_put(r, NODES, pooled_node("n3", "latency"));
	for (v = read_page(r, at); !row_of(v, "n1") || !row_of(v, "n3"); v = read_page(r, at))
		json_decref(v);
	is_row(v, "n1", "[\"n1\",\"\",0,[1,6],8,[32768,32768],32768,7]");
	is_row(v, "n3", "[\"n3\",\"latency\",2,[],0,[],0,0]");
	assert_null(row_of(v, "n2"));
	json_decref(v);
	rig_send_event(r, NODES, "DELETED", rig_find(&r->list[NODES], "n3"));
	for (v = read_page(r, at); !json_array_size(json_object_get(v, "gone"));
		v = read_page(r, at))
		json_decref(v);
	json_decref(v);
	free(at);
}

static void a_bound_pod_is_taken_from_the_row_at_once(void **state)
{
	struct rig *r = *state;

	start_with_page(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	json_t *v = read_page(r, "");
	is_row(v, "n1", "[\"n1\",\"\",0,[2,2],8,[32768,31744],32768,4]");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(v, "binds"), "bound-with-hint")),
		1);
	assert_int_equal(json_integer_value(json_object_get(v, "filters")), 1);
	assert_int_equal(json_integer_value(json_object_get(v, "nodes_left_out")), 1);
	json_decref(v);
}

/* The refusal that is there, the newest one, as "KIND NAMESPACE/POD NODE TIMES". */
static const char *newest(const json_t *v)
{
	static char text[256];
	const json_t *one = json_array_get(json_object_get(v, "refusals"), 0);

	(void)snprintf(text, sizeof text, "%s %s/%s %s %d",
		json_string_value(json_object_get(one, "kind")),
		json_string_value(json_object_get(one, "namespace")),
		json_string_value(json_object_get(one, "pod")),
		json_string_value(json_object_get(one, "node")),
		(int)json_integer_value(json_object_get(one, "times")));
	return text;
}

static void await_newest(struct rig *r, const char *wanted)
{
	json_t *v = read_page(r, "");

	while (!text_equal(newest(v), wanted)) {
		json_decref(v);
		v = read_page(r, "");
	}
	json_decref(v);
}

/* A pod, the only one, that was bound to n1 while we looked. */
static void put_bound(struct rig *r, const char *name)
{
	json_t *pod = rig_pod(name, 1, "owner");

	(void)new_pod(r, name, 1);
	(void)json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n1"));
	rig_put(r, PODS, pod);
	do /* events come on another connection */
		assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	while (!strstr(r->answer, "\nnumafit_extender_pods 1\n"));
}

/* Of numafitd on n1; verdict "": none. */
static void put_event(struct rig *r, const char *event, const char *pod, const char *type,
	const char *reason, const char *verdict)
{
	char uid[RIG_UID_MAX];

	(void)snprintf(uid, sizeof uid, "uid-of-%s", pod);
	rig_put(r, EVENTS,
		json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s, s:s, s:s}, s:s, s:s, s:s, s:{s:s}}",
			"metadata", "name", event, "namespace", "default", "annotations",
			"numafit.io/hint-verdict", verdict, "involvedObject", "kind", "Pod",
			"namespace", "default", "name", pod, "uid", uid, "reportingComponent",
			"numafitd", "type", type, "reason", reason, "source", "host", "n1"));
}

static void verdicts_on_hints_are_counted_and_each_event_once(void **state)
{
	static const char wanted[] =
		"{\"accepted-stale\":0,\"repaired\":1,\"repaired:cpus\":0,\"rejected:format\":0,"
		"\"rejected:version\":0,\"rejected:uid\":0,\"rejected:node\":"
		"0,\"rejected:clock\":0,\"rejected:expired\":0,\"rejected:"
		"numa\":0,\"rejected:not-fit\":2,\"rejected:not-narrowest\":0,"
		"\"rejected:farther\":0,\"rejected:policy\":0,\"rejected:"
		"foreign-cpuset\":0}";
	struct rig *r = *state;

	start_with_page(r);
	put_bound(r, "b");
	put_event(r, "e1", "b", "Normal", "NUMAHint", "repaired");
	put_event(r, "e2", "b", "Warning", "NUMAWish", ""); /* nothing is refused by that */
	put_event(r, "e3", "b", "Warning", "NUMAHint", "rejected:not-fit");
	put_event(r, "e3", "b", "Warning", "NUMAHint", "rejected:not-fit"); /* it comes again */
	put_event(r, "e4", "b", "Warning", "NUMAHint", "rejected:not-known");
	put_event(r, "e5", "b", "Warning", "NUMAHint", "rejected:not-fit");
	await_newest(r, "NUMAHint default/b n1 1");
	auto_free char *text = NULL;
	while (!text_equal(text, wanted)) {
		json_t *v = read_page(r, "");

		free(text);
		text = json_dumps(json_object_get(v, "hints"), JSON_COMPACT);
		json_decref(v);
	}
}

static void refusals_have_kinds_and_pods_without_room_are_among_them(void **state)
{
	struct rig *r = *state;

	start_with_page(r);
	json_t *a = new_pod(r, "a", 8);
	filter(r, a, FITS_NONE);
	await_newest(r, "no-node default/a  1");
	filter(r, a, FITS_NONE);
	await_newest(r, "no-node default/a  2");
	put_bound(r, "b");
	put_event(r, "e1", "b", "Warning", "SMTAlignmentError", "");
	await_newest(r, "SMTAlignmentError default/b n1 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_page_shows_what_the_watches_have),
		T(a_bound_pod_is_taken_from_the_row_at_once),
		T(verdicts_on_hints_are_counted_and_each_event_once),
		T(refusals_have_kinds_and_pods_without_room_are_among_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
