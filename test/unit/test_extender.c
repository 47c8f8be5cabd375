/* numafit-extender as a whole: the real program between a scheduler and an API server. */
#include <numafit/nrt_fingerprint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "extender_rig.h"

static const char *const both[] = {"n1", "n2", NULL};

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof *r);

	rig_init(r);
	rig_put(r, NODES, rig_node("n1"));
	rig_put(r, NODES, rig_node("n2"));
	rig_put(r, REPORTS, rig_report("n1", 7, 2, 6, ""));
	rig_put(r, REPORTS, rig_report("n2", 8, 2, 3, ""));
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	rig_fini(r);
	free(r);
	return 0;
}

static void start(struct rig *r)
{
	rig_start(r);
	rig_await_ready(r);
}

static void filter(struct rig *r, json_t *pod, const char *wanted)
{
	auto_free char *args = rig_args(pod, both);

	assert_int_equal(rig_ask(r, "/scheduler/filter", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

static void prioritize(struct rig *r, json_t *pod)
{
	auto_free char *args = rig_args(pod, both);

	assert_int_equal(rig_ask(r, "/prioritize", args), FAKE_OK);
}

static void bind_pod(struct rig *r, const char *pod, const char *node, const char *wanted)
{
	auto_free char *args = rig_bind_args(pod, node);

	assert_int_equal(rig_ask(r, "/bind", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

/* A pod that waits for a node, known to the watch. */
static json_t *new_pod(struct rig *r, const char *name, int cpus)
{
	rig_put(r, PODS, rig_pod(name, cpus, "owner"));
	return rig_find(&r->list[PODS], name);
}

/* Its status, in part. */
static void set_status(struct rig *r, const char *name, const char *status)
{
	json_t *pod = json_deep_copy(rig_find(&r->list[PODS], name));

	(void)json_object_update_new(
		json_object_get(pod, "status"), json_loads(status, JSON_REJECT_DUPLICATES, NULL));
	rig_put(r, PODS, pod);
}

static const char *hint_of(const struct rig *r)
{
	return json_string_value(json_object_get(
		json_object_get(json_object_get(r->binding, "metadata"), "annotations"),
		"numafit.io/numa-hint"));
}

#define FITS_N1                                                                                    \
	"{\"Nodes\":null,\"NodeNames\":[\"n1\"],\"FailedNodes\":{\"n2\":\"numafit: cannot align "  \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define FITS_N2                                                                                    \
	"{\"Nodes\":null,\"NodeNames\":[\"n2\"],\"FailedNodes\":{\"n1\":\"numafit: cannot align "  \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define FITS_NONE                                                                                  \
	"{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{\"n1\":\"numafit: cannot align "        \
	"container\",\"n2\":\"numafit: cannot align "                                              \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define FITS_BOTH                                                                                  \
	"{\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\"],\"FailedNodes\":{},"                        \
	"\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define OK "{\"Error\":\"\"}"

static void a_pod_is_bound_with_its_hint(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 1);
	const char *hint = hint_of(r);
	assert_non_null(hint);
	assert_non_null(strstr(hint, "\"v\":1,\"node\":\"n1\",\"uid\":\"uid-of-a\",\"gen\":7,"));
	assert_non_null(strstr(hint, "\"mode\":\"prefer\",\"scope\":\"container\""));
	assert_non_null(strstr(hint,
		"\"containers\":{\"main\":{\"numa\":\"1\",\"dist\":1000,\"res\":[{\"node\":1,"
		"\"resources\":{\"cpu\":\"4\",\"memory\":\"1Gi\"}}]}}"));
	assert_true(rig_said(r, "event=bind pod=default/a node=n1 numa_nodes=1 "));
}

static void a_bound_pod_counts_at_once(void **state)
{
	struct rig *r = *state;

	start(r);
	r->bind_untold = true;
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	filter(r, new_pod(r, "b", 4), FITS_NONE);
}

static void a_pod_in_the_report_counts_once(void **state)
{
	struct rig *r = *state;
	char part[32];

	start(r);
	filter(r, new_pod(r, "a", 3), FITS_BOTH);
	bind_pod(r, "a", "n1", OK);
	(void)snprintf(
		part, sizeof part, "%016llx", (unsigned long long)fingerprint_pod("default", "a"));
	rig_put(r, REPORTS, rig_report("n1", 9, 2, 3, part));
	json_t *b = new_pod(r, "b", 3);
	auto_free char *args = rig_args(b, both);
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!text_equal(r->answer, FITS_BOTH)); /* as soon as the watch has told */
}

static void await_metric(struct rig *r, const char *line)
{
	do
		assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	while (!strstr(r->answer, line));
}

/* On n1, until the watch has told of both. */
static void bind_and_report(struct rig *r, const char *name, int cpus, unsigned generation)
{
	char part[32];

	filter(r, new_pod(r, name, cpus), FITS_N1);
	bind_pod(r, name, "n1", OK);
	(void)snprintf(
		part, sizeof part, "%016llx", (unsigned long long)fingerprint_pod("default", name));
	rig_put(r, REPORTS, rig_report("n1", generation, 2, 6 - cpus, part));
	await_metric(r, "\nnumafit_extender_pods_unreported 0\n");
}

/* The only one that is bound; until the watch has told. */
static void delete_bound(struct rig *r, const char *name)
{
	rig_tell(r, PODS, "DELETED", rig_find(&r->list[PODS], name));
	await_metric(r, "\nnumafit_extender_pods 0\n");
}

/* Who waits for room is asked about as soon as a pod has ended, and not again when the node has
 * said so. */
static void an_ended_pod_frees_room_before_the_node_reports_it(void **state)
{
	struct rig *r = *state;

	start(r);
	bind_and_report(r, "a", 4, 9);
	json_t *b = new_pod(r, "b", 4);
	auto_free char *args = rig_args(b, both);
	filter(r, b, FITS_NONE);
	set_status(r, "a", "{\"phase\":\"Succeeded\"}");
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!text_equal(r->answer, FITS_N1)); /* as soon as the watch has told */
	delete_bound(r, "a");
	filter(r, b, FITS_N1);
	bind_pod(r, "b", "n1", OK);
	filter(r, new_pod(r, "c", 4), FITS_NONE);
}

static void remove_pod(struct rig *r, const char *name)
{
	json_t *pod = rig_find(&r->list[PODS], name);
	size_t i = 0;

	while (json_array_get(r->list[PODS].items, i) != pod)
		i++;
	rig_tell(r, PODS, "DELETED", pod);
	(void)json_array_remove(r->list[PODS].items, i);
}

static int pods_there(struct rig *r)
{
	int nr = -1;

	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	assert_int_equal(sscanf(strstr(r->answer, "\nnumafit_extender_pods "),
				 "\nnumafit_extender_pods %d", &nr),
		1);
	return nr;
}

/* What was told of pods so far: one more comes behind it. */
static void hear_of_pods(struct rig *r)
{
	json_t *pod = rig_pod("last", 0, NULL);
	int before = pods_there(r);

	(void)json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n2"));
	rig_put(r, PODS, pod);
	while (pods_there(r) != before + 1)
		;
	remove_pod(r, "last");
}

/* The author's patch of a pod's hint: so many CPUs in each zone, its memory in the first. */
static void change_advice(struct rig *r, const char *name, int cpus0, int cpus1)
{
	json_t *pod = json_deep_copy(rig_find(&r->list[PODS], name));
	json_t *metadata = json_object_get(pod, "metadata");
	json_t *hint = json_pack(
		"{s:i, s:s, s:s, s:i, s:i, s:{s:{s:s, s:[{s:i, s:{s:i, s:s}}, {s:i, s:{s:i}}]}}}",
		"v", 1, "node", "n1", "uid", json_string_value(json_object_get(metadata, "uid")),
		"at", 1, "ttl", 60, "containers", "main", "numa", "0-1", "res", "node", 0,
		"resources", "cpu", cpus0, "memory", "1Gi", "node", 1, "resources", "cpu", cpus1);
	auto_free char *text = json_dumps(hint, JSON_COMPACT);

	json_decref(hint);
	if (!json_object_get(metadata, "annotations"))
		(void)json_object_set_new(metadata, "annotations", json_object());
	(void)json_object_set_new(json_object_get(metadata, "annotations"), "numafit.io/numa-hint",
		json_string(text));
	rig_put(r, PODS, pod);
}

/* Of a pod that was bound to NUMA node 1 and has ended, by then said to have been elsewhere, too.
 */
static void a_pod_with_a_changed_hint_gives_back_what_the_first_hint_took(void **state)
{
	static const struct {
		int cpus[2];
		bool before_report;
	} rows[] = {{{4, 4}, true}, {{4, 4}, false}, {{8, 8}, false}, {{4, 0}, true},
		{{4, 0}, false}, {{1, 3}, false}};
	struct rig *r = *state;
	char part[32];

	start(r);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		rig_put(r, REPORTS, rig_report("n1", 10 * i + 9, 2, 6, ""));
		json_t *b = new_pod(r, "b", 6);
		auto_free char *args = rig_args(b, both);
		do
			assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
		while (!text_equal(r->answer, FITS_N1)); /* as soon as the watch has told */
		filter(r, new_pod(r, "a", 4), FITS_N1);
		bind_pod(r, "a", "n1", OK);
		if (rows[i].before_report)
			change_advice(r, "a", rows[i].cpus[0], rows[i].cpus[1]);
		(void)snprintf(part, sizeof part, "%016llx",
			(unsigned long long)fingerprint_pod("default", "a"));
		rig_put(r, REPORTS, rig_report("n1", 10 * i + 10, 2, 2, part));
		await_metric(r, "\nnumafit_extender_pods_unreported 0\n");
		if (!rows[i].before_report)
			change_advice(r, "a", rows[i].cpus[0], rows[i].cpus[1]);
		set_status(r, "a", "{\"phase\":\"Succeeded\"}");
		do
			assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
		while (!text_equal(r->answer, FITS_N1)); /* where it truly was */
		bind_pod(r, "b", "n1", OK);
		assert_non_null(strstr(hint_of(r), "\"numa\":\"1\""));
		filter(r, new_pod(r, "c", 3), FITS_N2); /* and nowhere else */
		remove_pod(r, "a");
		remove_pod(r, "b");
		remove_pod(r, "c");
		await_metric(r, "\nnumafit_extender_pods 0\n");
	}
}

/* Nobody knows then whether it is as it was. */
static void a_restarted_extender_gives_nothing_back_for_hints_it_did_not_see_written(void **state)
{
	struct rig *r = *state;

	start(r);
	bind_and_report(r, "a", 4, 9);
	change_advice(r, "a", 4, 0);
	assert_int_equal(rig_end(r, SIGKILL), -SIGKILL);
	start(r);
	set_status(r, "a", "{\"phase\":\"Succeeded\"}");
	hear_of_pods(r);
	filter(r, new_pod(r, "b", 3), FITS_N2);
	rig_put(r, REPORTS, rig_report("n1", 10, 2, 6, ""));
	auto_free char *args = rig_args(new_pod(r, "c", 6), both);
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!text_equal(r->answer, FITS_N1));
}

/* Such as with an image that is not there. */
static void a_pod_bound_by_another_scheduler_holds_its_request_and_no_more(void **state)
{
	struct rig *r = *state;
	json_t *pod = rig_pod("a", 4, NULL);

	(void)json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n1"));
	start(r);
	rig_put(r, PODS, pod);
	await_metric(r, "\nnumafit_extender_pods_unreported 1\n");
	filter(r, new_pod(r, "b", 2), FITS_BOTH);
	filter(r, new_pod(r, "c", 3), FITS_N2); /* 2 CPUs are left in each zone */
	change_advice(r, "a", 4, 0);
	hear_of_pods(r);
	filter(r, rig_find(&r->list[PODS], "c"), FITS_N2);
	await_metric(r, "\nnumafit_extender_nodes_stale 0\n");
}

/* What was there before the binding is not from whoever has bound it. */
static void a_hint_from_before_the_binding_is_not_believed(void **state)
{
	struct rig *r = *state;
	char part[32];

	start(r);
	(void)new_pod(r, "a", 4);
	change_advice(r, "a", 4, 0);
	json_t *bound = json_deep_copy(rig_find(&r->list[PODS], "a"));
	(void)json_object_set_new(json_object_get(bound, "spec"), "nodeName", json_string("n1"));
	rig_put(r, PODS, bound); /* by another scheduler */
	await_metric(r, "\nnumafit_extender_pods_unreported 1\n");
	(void)snprintf(
		part, sizeof part, "%016llx", (unsigned long long)fingerprint_pod("default", "a"));
	rig_put(r, REPORTS, rig_report("n1", 9, 2, 2, part));
	await_metric(r, "\nnumafit_extender_pods_unreported 0\n");
	set_status(r, "a", "{\"phase\":\"Succeeded\"}");
	hear_of_pods(r);
	filter(r, new_pod(r, "b", 3), FITS_N2);
}

/* kube-scheduler has heard of the end sooner than we have. */
static void a_refusal_is_computed_again_after_a_delay_before_it_is_sent(void **state)
{
	struct rig *r = *state;

	rig_write_config(r, "refusalDelay: 1s\n");
	start(r);
	bind_and_report(r, "a", 4, 9);
	auto_free char *args = rig_args(new_pod(r, "b", 4), both);
	rig_begin(r, "/filter", args, strlen(args));
	fake_api_stay_quiet(&r->f); /* until it has come */
	set_status(r, "a", "{\"phase\":\"Succeeded\"}");
	rig_wait(r);
	assert_string_equal(r->answer, FITS_N1);
}

static void a_client_that_leaves_during_the_refusal_delay_gets_no_answer(void **state)
{
	struct rig *r = *state;

	rig_write_config(r, "refusalDelay: 150ms\n");
	start(r);
	auto_free char *args = rig_args(new_pod(r, "a", 64), both);
	rig_begin(r, "/filter", args, strlen(args));
	fake_api_stay_quiet(&r->f); /* until it has come */
	http_client_free(r->http);
	r->http = http_client_new(r->f.loop, NULL, NULL);
	fake_api_stay_quiet(&r->f); /* until it would be answered */
	assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	assert_string_equal(r->answer, FITS_NONE);
}

/* By force, that is: its containers may run still. */
static void a_pod_that_is_being_deleted_but_still_runs_frees_no_room(void **state)
{
	struct rig *r = *state;

	start(r);
	bind_and_report(r, "a", 4, 9);
	set_status(r, "a", "{\"phase\":\"Running\"}");
	delete_bound(r, "a");
	filter(r, new_pod(r, "b", 4), FITS_NONE);
}

static void a_pod_without_numa_needs_gets_no_hint(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 0), FITS_BOTH);
	bind_pod(r, "a", "n2", OK);
	assert_int_equal(r->nr_binds, 1);
	assert_null(hint_of(r));
}

static void the_roomier_node_scores_better(void **state)
{
	struct rig *r = *state;

	rig_write_config(r, "plugins:\n- name: NodeResourceTopologyMatch\n"
			    "  args: {scoringStrategy: {type: LeastAllocated}}\n");
	start(r);
	prioritize(r, new_pod(r, "a", 2));
	int n1 = -1, n2 = -1;
	assert_int_equal(
		sscanf(r->answer, "[{\"Host\":\"n1\",\"Score\":%d},{\"Host\":\"n2\",\"Score\":%d}]",
			&n1, &n2),
		2);
	assert_true(n1 >= n2 && n1 <= 10 && n2 >= 0);
}

static void a_node_that_has_filled_up_meanwhile_is_a_conflict(void **state)
{
	struct rig *r = *state;

	start(r);
	prioritize(r, new_pod(r, "a", 4));
	filter(r, new_pod(r, "b", 4), FITS_N1);
	bind_pod(r, "b", "n1", OK);
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	assert_int_equal(r->nr_binds, 1);
}

static json_t *best_effort(unsigned generation, int cpus0, int cpus1)
{
	json_t *report = rig_report("n1", generation, cpus0, cpus1, "");

	(void)json_object_set_new(json_array_get(json_object_get(report, "attributes"), 0), "value",
		json_string("best-effort"));
	return report;
}

static void a_node_that_would_now_spread_the_pod_is_a_conflict(void **state)
{
	struct rig *r = *state;

	rig_put(r, REPORTS, best_effort(9, 2, 6));
	start(r);
	json_t *probe = rig_pod("probe", 4, NULL);
	prioritize(r, new_pod(r, "a", 4));
	auto_free char *before = xstrdup(r->answer);
	rig_put(r, REPORTS, best_effort(10, 2, 2));
	do
		prioritize(r, probe);
	while (text_equal(r->answer, before)); /* until the watch has told */
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	prioritize(r, rig_find(&r->list[PODS], "a")); /* with this known it is as good as it gets */
	bind_pod(r, "a", "n1", OK);
	assert_non_null(strstr(hint_of(r), "\"gen\":10,"));
	assert_non_null(strstr(hint_of(r), "\"numa\":\"0-1\",\"dist\":1500,"));
	json_decref(probe);
}

static void a_node_that_can_no_longer_place_the_pod_is_a_conflict(void **state)
{
	struct rig *r = *state;

	rig_put(r, REPORTS, best_effort(9, 2, 6));
	start(r);
	prioritize(r, new_pod(r, "a", 4));
	prioritize(r, new_pod(r, "b", 4));
	bind_pod(r, "b", "n1", OK); /* memory of one NUMA node is then no part of a larger group */
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	prioritize(r, rig_find(&r->list[PODS], "a"));
	bind_pod(r, "a", "n1", OK); /* such a node takes it all the same */
	assert_null(hint_of(r));
}

static void a_bind_that_fails_gives_back_what_it_held(void **state)
{
	static const struct {
		int status;
		const char *wanted;
	} rows[] = {
		{500, "{\"Error\":\"numafit: binding pod a: no such luck\"}"},
		{403, "{\"Error\":\"numafit: binding pod a: no such luck\"}"},
		{409, "{\"Error\":\"numafit: binding pod a: no such luck\"}"},
	};
	struct rig *r = *state;

	start(r);
	json_t *b = new_pod(r, "b", 4);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		filter(r, new_pod(r, "a", 4), FITS_N1);
		r->bind_status = rows[i].status;
		bind_pod(r, "a", "n1", rows[i].wanted);
		filter(r, b, FITS_N1);
	}
	r->bind_status = 0;
	bind_pod(r, "b", "n1", OK);
}

static void a_bind_whose_answer_was_lost_is_looked_up(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_goes_unsaid = true;
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 1);
	bind_pod(r, "a", "n1", OK); /* whoever asks again need not be told */
}

/* An error of the API server does not say that nothing has happened. */
static void a_bind_that_happened_in_spite_of_an_error_is_one(void **state)
{
	struct rig *r = *state;
	auto_free char *args = rig_bind_args("a", "n1");

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_waits = r->bind_untold = true;
	rig_begin(r, "/bind", args, strlen(args));
	FAKE_UNTIL(&r->f, r->unanswered);
	fake_api_answer(r->unanswered, 504, NULL, "{\"kind\":\"Status\",\"message\":\"too late\"}");
	rig_wait(r);
	assert_string_equal(r->answer, OK);
	filter(r, new_pod(r, "b", 4), FITS_NONE);
}

static void a_recreated_pod_is_another_pod(void **state)
{
	struct rig *r = *state;
	json_t *again = rig_pod("a", 4, NULL);

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_status = 409;
	(void)json_object_set_new(
		json_object_get(again, "metadata"), "uid", json_string("another"));
	rig_put(r, PODS, again);
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: pod a is another one by now\"}");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(r->binding, "metadata"), "uid")),
		"uid-of-a");
	filter(r, again, FITS_N1); /* nothing is held for the one before */
}

/* Of "a", by another name or namespace. */
static void a_uid_belongs_to_one_pod(void **state)
{
	static const struct {
		const char *ns, *name;
	} rows[] = {{"default", "b"}, {"kube-system", "a"}};
	struct rig *r = *state;

	start(r);
	(void)new_pod(r, "b", 6);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *bind = NULL, *says = NULL;

		assert_true(asprintf(&bind,
				    "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":"
				    "\"uid-of-a\",\"Node\":\"n1\"}",
				    rows[i].name, rows[i].ns) > 0);
		assert_true(asprintf(&says,
				    "{\"Error\":\"numafit: uid-of-a is pod default/a, not %s/%s\"}",
				    rows[i].ns, rows[i].name) > 0);
		assert_int_equal(rig_ask(r, "/bind", bind), FAKE_OK);
		assert_string_equal(r->answer, says);
		json_t *other = rig_pod("a", 4, NULL), *meta = json_object_get(other, "metadata");
		(void)json_object_set_new(meta, "namespace", json_string(rows[i].ns));
		(void)json_object_set_new(meta, "name", json_string(rows[i].name));
		auto_free char *args = rig_args(other, both);
		assert_int_equal(rig_ask(r, "/filter", args), 400);
		assert_non_null(strstr(r->answer, "uid-of-a is pod default/a, not "));
		json_decref(other);
	}
	assert_int_equal(r->nr_binds, 0);
	filter(r, rig_find(&r->list[PODS], "a"), FITS_N1); /* nothing is held for it */
	bind_pod(r, "a", "n1", OK);
}

/* That it is bound already is the API server's to say, of that name. */
static void a_bound_uid_does_not_bind_another_name(void **state)
{
	struct rig *r = *state;

	start(r);
	(void)new_pod(r, "b", 1);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(rig_ask(r, "/bind",
				 "{\"PodName\":\"b\",\"PodNamespace\":\"default\",\"PodUID\":"
				 "\"uid-of-a\",\"Node\":\"n1\"}"),
		FAKE_OK);
	assert_string_equal(r->answer, "{\"Error\":\"numafit: pod b is another one by now\"}");
	bind_pod(r, "a", "n1", OK); /* it is told again */
	assert_int_equal(r->nr_binds, 1);
}

static void a_pod_of_another_node_is_not_bound_again(void **state)
{
	struct rig *r = *state;
	auto_free char *args = rig_bind_args("a", "n2");

	start(r);
	filter(r, new_pod(r, "a", 3), FITS_BOTH);
	bind_pod(r, "a", "n1", OK);
	/* by the watch, or, before it has told, by the API server */
	assert_int_equal(rig_ask(r, "/bind", args), FAKE_OK);
	assert_non_null(strstr(r->answer, "numafit: pod a is bound to n1 already"));
	bind_pod(r, "x", "n2", "{\"Error\":\"numafit: pod x is not known yet, try again\"}");
}

static void preemption_is_only_for_nodes_that_it_would_help(void **state)
{
	struct rig *r = *state;
	static const char args[] =
		"{\"Pod\":%s,\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{"
		"\"n1\":{\"Pods\":[{\"UID\":\"uid-of-a\"}],\"NumPDBViolations\":1},"
		"\"n2\":{\"Pods\":[],\"NumPDBViolations\":0}}}";
	char *text = NULL;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	json_t *b = new_pod(r, "b", 5);
	auto_free char *pod = json_dumps(b, JSON_COMPACT);
	filter(r, b, FITS_NONE);
	assert_true(asprintf(&text, args, pod) > 0);
	assert_int_equal(rig_ask(r, "/preempt", text), FAKE_OK);
	free(text);
	assert_string_equal(r->answer,
		"{\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"uid-of-a\"}],"
		"\"NumPDBViolations\":1}}}");
}

static void preempt(struct rig *r, json_t *pod, const char *victims, const char *wanted)
{
	auto_free char *text = json_dumps(pod, JSON_COMPACT), *args = NULL;

	assert_true(
		asprintf(&args, "{\"Pod\":%s,\"NodeNameToMetaVictims\":%s}", text, victims) > 0);
	assert_int_equal(rig_ask(r, "/preempt", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

/* kube-scheduler fails the preemption as a whole of which a node is left without victims. */
static void a_node_without_victims_is_no_candidate_for_preemption(void **state)
{
	struct rig *r = *state;

	start(r);
	preempt(r, new_pod(r, "a", 2),
		"{\"n1\":{\"Pods\":[],\"NumPDBViolations\":0},\"elsewhere\":{\"Pods\":null}}",
		"{\"NodeNameToMetaVictims\":{}}");
}

static void a_restarted_extender_continues_after_kill_9(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	(void)new_pod(r, "b", 2);
	assert_int_equal(rig_end(r, SIGKILL), -SIGKILL);
	start(r);
	filter(r, new_pod(r, "c", 4), FITS_NONE); /* the hint on a says what it holds */
	bind_pod(r, "b", "n1", OK);               /* nobody has asked this life about it */
	assert_non_null(hint_of(r));
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 2);
}

static void without_topologies_every_node_passes(void **state)
{
	struct rig *r = *state;

	json_decref(r->list[REPORTS].items);
	r->list[REPORTS].items = NULL;
	start(r);
	filter(r, new_pod(r, "a", 12), FITS_BOTH);
	bind_pod(r, "a", "n2", OK);
	assert_null(hint_of(r));
	assert_true(rig_said(r, "event=resource-absent resource=noderesourcetopologies"));
}

static void a_node_that_refused_a_workload_is_left_out_for_a_while(void **state)
{
	static const char *const rows[] = {
		"{\"phase\":\"Failed\",\"reason\":\"TopologyAffinityError\"}",
		"{\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		"\"CreateContainerError\","
		"\"message\":\"numafit: NUMA nodes are full\"}}}]}",
	};
	static const char avoided[] =
		"\"FailedAndUnresolvableNodes\":{\"n1\":\"numafit: the node refused this "
		"workload a short while ago\"}";
	struct rig *r = *state;
	char name[8];

	start(r);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		(void)snprintf(name, sizeof name, "p%zu", i);
		rig_put(r, PODS, rig_pod(name, 2, name)); /* a workload of its own */
		filter(r, rig_find(&r->list[PODS], name), FITS_BOTH);
		bind_pod(r, name, "n1", OK);
		set_status(r, name, rows[i]);
		json_t *next = rig_pod("next", 2, name);
		auto_free char *args = rig_args(next, both);
		do
			assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
		while (!strstr(r->answer, avoided));
		json_decref(next);
		rig_put(r, REPORTS, rig_report("n1", 9, 2, 6, "")); /* it holds nothing */
	}
}

static void tell_of(
	struct rig *r, const char *name, const char *ns, const char *type, const char *node)
{
	const char *uid = json_string_value(json_object_get(
		json_object_get(rig_find(&r->list[PODS], name), "metadata"), "uid"));
	char event[16];

	(void)snprintf(event, sizeof event, "e%zu", json_array_size(r->list[EVENTS].items));
	rig_put(r, EVENTS,
		json_pack("{s{ssss}s{ssss}sssss{ss}}", "metadata", "name", event, "namespace", ns,
			"involvedObject", "kind", "Pod", "uid", uid, "type", type,
			"reportingComponent", "numafitd", "source", "host", node));
}

/* A pod whose sandbox may not start waits for ever in ContainerCreating; the node's event says why.
 * Who may write events may write any: of a pod of another namespace, or of a node that it is not
 * on, none is believed. */
static void a_node_with_a_refusal_event_is_left_out_too(void **state)
{
	static const char avoided[] =
		"\"numafit: the node refused this workload a short while ago\"";
	struct rig *r = *state;

	start(r);
	rig_put(r, PODS, rig_pod("p", 2, "p"));
	filter(r, rig_find(&r->list[PODS], "p"), FITS_BOTH);
	bind_pod(r, "p", "n1", OK);
	json_t *next = rig_pod("next", 2, "p");
	auto_free char *args = rig_args(next, both);
	tell_of(r, "p", "elsewhere", "Warning", "n1");
	tell_of(r, "p", "default", "Normal", "n1");
	tell_of(r, "p", "default", "Warning", "n2");
	rig_put(r, REPORTS, rig_report("n1", 9, 2, 6, "")); /* told after both */
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
		assert_null(strstr(r->answer, avoided));
	}
	tell_of(r, "p", "default", "Warning", "n1");
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!strstr(r->answer, avoided));
	json_decref(next);
}

/* What would go there would go for nothing: filter leaves the node out afterwards, too. */
static void no_pod_is_preempted_on_a_node_that_refused(void **state)
{
	static const char victims[] = "{\"n1\":{\"Pods\":[{\"UID\":\"v\"}],\"NumPDBViolations\":0},"
				      "\"n2\":{\"Pods\":[{\"UID\":\"w\"}],\"NumPDBViolations\":0}}";
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "p", 2), FITS_BOTH);
	bind_pod(r, "p", "n1", OK);
	set_status(r, "p", "{\"phase\":\"Failed\",\"reason\":\"TopologyAffinityError\"}");
	json_t *next = rig_pod("next", 2, "owner");
	auto_free char *args = rig_args(next, both);
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!strstr(r->answer, "refused this workload"));
	preempt(r, next, victims,
		"{\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":[{\"UID\":\"w\"}],"
		"\"NumPDBViolations\":0}}}");
	json_decref(next);
}

static void a_node_that_passes_though_it_is_stale_may_be_preempted_on(void **state)
{
	static const char victims[] =
		"{\"n1\":{\"Pods\":[{\"UID\":\"v\"}],\"NumPDBViolations\":0}}";
	struct rig *r = *state;
	json_t *foreign = rig_pod("foreign", 2, NULL), *next = rig_pod("next", 1, "owner");
	auto_free char *args = rig_args(next, both);

	rig_write_config(r, "staleNodes: pass\n");
	json_t *report = rig_report("n1", 9, 2, 6, ""),
	       *list = json_object_get(report, "attributes");
	while (json_array_size(list) > 2) /* an exporter that does not name pods */
		(void)json_array_remove(list, 2);
	rig_put(r, REPORTS, report);
	start(r);
	(void)json_object_set_new(json_object_get(foreign, "spec"), "nodeName", json_string("n1"));
	rig_put(r, PODS, foreign);
	do
		assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	while (!strstr(r->answer, "\nnumafit_extender_nodes_stale 1\n"));
	assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	assert_string_equal(r->answer, FITS_BOTH);
	preempt(r, next, victims,
		"{\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"v\"}],"
		"\"NumPDBViolations\":0}}}");
	json_decref(next);
}

/* Many nodes */

enum { MANY = 5000 };

static char *many_args(json_t *pod, bool by_name)
{
	auto_free char *text = json_dumps(pod, JSON_COMPACT);
	size_t cap = (size_t)MANY * 16384 + strlen(text) + 256;
	char *out = xcalloc(cap, 1), *pad = xcalloc(12000, 1);
	struct text t;

	memset(pad, 'x', 12000 - 1);
	text_init(&t, out, cap);
	text_add(&t, "{\"Pod\":%s,%s[", text,
		by_name ? "\"Nodes\":null,\"NodeNames\":" : "\"Nodes\":{\"items\":");
	for (unsigned i = 0; i < MANY; i++) {
		char *at = out + t.len;
		size_t room = cap - t.len;
		int n = by_name ? snprintf(at, room, "%s\"node-%u.example\"", i ? "," : "", i)
				: snprintf(at, room,
					  "%s{\"metadata\":{\"name\":\"node-%u.example\"},"
					  "\"status\":{\"images\":[\"%s\"]}}",
					  i ? "," : "", i, pad);
		t.len += (size_t)n;
	}
	(void)snprintf(out + t.len, cap - t.len, by_name ? "]}" : "]},\"NodeNames\":null}");
	free(pad);
	return out;
}

static void add_many(struct rig *r)
{
	char name[32];

	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "node-%u.example", i);
		(void)json_array_append_new(r->list[NODES].items, rig_node(name));
		(void)json_array_append_new(
			r->list[REPORTS].items, rig_report(name, 1, i % 2 ? 8 : 1, 1, ""));
	}
}

/* The processor time that the extender has used since the last call. */
static double cpu_ms(struct rig *r)
{
	static const char series[] = "\nprocess_cpu_seconds_total ";
	static double before;

	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	const char *at = strstr(r->answer, series);
	assert_non_null(at);
	double now = strtod(at + sizeof series - 1, NULL) * 1000, took = now - before;
	before = now;
	return took;
}

static void ask_for_many(struct rig *r, const char *verb, const char *args)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/%s", verb);
	(void)cpu_ms(r);
	assert_int_equal(rig_ask(r, path, args), FAKE_OK);
	json_t *answer = json_loads(r->answer, JSON_REJECT_DUPLICATES, NULL);
	if (verb[0] == 'p') {
		assert_int_equal(json_array_size(answer), MANY);
	} else {
		json_t *nodes = json_object_get(answer, "NodeNames");

		if (!json_is_array(nodes))
			nodes = json_object_get(json_object_get(answer, "Nodes"), "items");
		assert_int_equal(json_array_size(nodes), MANY / 2);
		assert_int_equal(
			json_object_size(json_object_get(answer, "FailedNodes")), MANY / 2);
	}
	json_decref(answer);
	print_message(
		"# %s, %d nodes, %zu bytes: %.3f ms of CPU\n", verb, MANY, strlen(args), cpu_ms(r));
}

static void thousands_of_nodes_are_answered(void **state)
{
	struct rig *r = *state;

	add_many(r);
	start(r);
	json_t *pod = rig_pod("a", 4, NULL);
	for (unsigned by_name = 0; by_name < 2; by_name++) {
		auto_free char *args = many_args(pod, by_name);

		ask_for_many(r, "filter", args);
		ask_for_many(r, "prioritize", args);
	}
	json_decref(pod);
}

/* Clients that mean no good, or are no clients at all */

static int connect_to(const struct rig *r)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)r->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void odd_requests_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
		const char *says;
	} rows[] = {
		{"/filter", "", 400, "not JSON: byte 0: it ends too early"},
		{"/filter", "{", 400, "not JSON: byte 1: it ends too early"},
		{"/filter", "[]", 400, "should be an object"},
		{"/filter", "{\"Pod\":{}}", 400, "no uid"},
		{"/filter", "{\"Pod\":{\"metadata\":{\"uid\":\"u\"}},\"NodeNames\":[1]}", 400,
			"NodeNames[0]: should be a string"},
		{"/filter",
			"{\"Pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
			"\"cpu\":\"much\"}}}]}}}",
			400, "cpu"},
		{"/prioritize", "{}", 400, "Pod: should be an object"},
		{"/preempt",
			"{\"Pod\":{\"metadata\":{\"uid\":\"u\"}},\"NodeNameToMetaVictims\":[]}",
			400, "should be an object"},
		{"/bind", "{\"PodName\":\"a\"}", 400, "PodNamespace"},
		{"/nothing", "{}", 404, "filter"},
		{"/metrics", "{}", 405, "GET"},
		{"/filter", NULL, 405, "POST"},
	};
	struct rig *r = *state;

	start(r);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(rig_ask(r, rows[i].path, rows[i].body), rows[i].status);
		if (!strstr(r->answer, rows[i].says))
			fail_msg("row %zu: %s", i, r->answer);
	}
	assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
}

static void a_request_without_an_end_does_not_hold_up_others(void **state)
{
	enum { SLOW = 100 }; /* more than there may be at a time */
	static const char begin[] =
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
	static const char look[] = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
	static const struct timeval patience = {.tv_sec = 20};
	static const char huge[] =
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
	struct rig *r = *state;
	char answer[256] = "";
	int fd[SLOW];

	start(r);
	for (unsigned i = 0; i < SLOW; i++) {
		fd[i] = connect_to(r);
		assert_true(write(fd[i], begin, sizeof begin - 1) > 0);
	}
	filter(r, new_pod(r, "a", 4), FITS_N1);
	int late = connect_to(r); /* of a scheduler that has no connection yet */
	assert_true(write(late, look, sizeof look - 1) > 0);
	assert_int_equal(setsockopt(late, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
	assert_true(read(late, answer, sizeof answer - 1) > 0);
	assert_non_null(strstr(answer, " 200 "));
	(void)close(late);
	for (unsigned i = 0; i < SLOW; i++)
		(void)close(fd[i]);
	fd[0] = connect_to(r);
	assert_true(write(fd[0], huge, sizeof huge - 1) > 0);
	assert_true(read(fd[0], answer, sizeof answer - 1) > 0);
	assert_non_null(strstr(answer, " 413 "));
	(void)close(fd[0]);
}

/* What it is to have been sent is what counts. */
static void all_request_bodies_share_one_budget(void **state)
{
	enum { FIT = 3, ASKED = 8 };
	static const char begin[] = "POST /filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
				    "Content-Length: 65536\r\n\r\n";
	struct rig *r = *state;
	unsigned taken = 0, refused = 0;
	int fd[ASKED];

	rig_write_config(r, "maxRequestBytes: 64Ki\nmaxHeldBytes: 200Ki\n");
	start(r);
	for (unsigned i = 0; i < ASKED; i++) {
		char answer[256] = "";

		fd[i] = connect_to(r);
		assert_true(write(fd[i], begin, sizeof begin - 1) > 0);
		assert_true(read(fd[i], answer, sizeof answer - 1) > 0);
		taken += strstr(answer, " 100 ") != NULL;
		refused += strstr(answer, " 503 ") && strstr(answer, "Retry-After: 1");
	}
	assert_int_equal(taken, FIT);
	assert_int_equal(refused, ASKED - FIT);
	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	assert_non_null(strstr(r->answer, "\nnumafit_extender_requests_crowded_out_total 5\n"));
	for (unsigned i = 0; i < ASKED; i++)
		(void)close(fd[i]);
	json_t *a = new_pod(r, "a", 4);
	auto_free char *args = rig_args(a, both);
	while (rig_ask(r, "/filter", args) != FAKE_OK) /* until it has seen them go */
		assert_int_equal(r->status, 503);
}

static void serving_without_client_certificates_logs_a_warning(void **state)
{
	struct rig *r = *state;

	fake_api_write_file(
		r->config, "listen: :0\ninsecure: true\nkubeconfig: %s\n", r->f.kubeconfig);
	start(r);
	assert_true(rig_said(r, "level=warn event=insecure "));
}

static void a_deeply_nested_request_is_refused(void **state)
{
	enum { DEEP = 100000 };
	struct rig *r = *state;
	auto_free char *body = xcalloc(DEEP + 64, 1);

	start(r);
	(void)snprintf(body, 64, "{\"Pod\":");
	memset(body + strlen(body), '[', DEEP);
	assert_int_equal(rig_ask(r, "/filter", body), 400);
	assert_non_null(strstr(r->answer, "too deep"));
	assert_int_equal(rig_ask(r, "/bind", body), 400);
	assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
}

static void the_metrics_count_requests(void **state)
{
	static const char *const series[] = {
		"numafit_extender_requests_total{verb=\"filter\",result=\"ok\"} 1\n",
		"numafit_extender_binds_total{result=\"bound-with-hint\"} 1\n",
		"numafit_extender_nodes 2\n", "numafit_extender_topologies 2\n",
		"numafit_extender_nodes_asked_total{verb=\"filter\"} 2\n",
		"numafit_extender_nodes_refused_total 1\n",
		"numafit_extender_watch_synced{resource=\"pods\"} 1\n",
		"numafit_extender_watch_synced{resource=\"numatopologies\"} 1\n", /* not asked for
										   */
	};
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	for (size_t i = 0; i < sizeof series / sizeof *series; i++)
		if (!strstr(r->answer, series[i]))
			fail_msg("%s: %s", series[i], r->answer);
}

static void sigterm_ends_the_extender(void **state)
{
	struct rig *r = *state;

	start(r);
	assert_int_equal(rig_end(r, SIGTERM), 0);
}

static void a_pending_bind_is_answered_before_the_extender_ends(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_waits = true;
	auto_free char *args = rig_bind_args("a", "n1");
	rig_begin(r, "/bind", args, strlen(args));
	FAKE_UNTIL(&r->f, r->unanswered);
	(void)kill(r->pid, SIGTERM);
	while (!rig_said(r, "event=stopping"))
		(void)usleep(1000);
	rig_answer_bind(r);
	rig_wait(r);
	assert_int_equal(r->status, FAKE_OK);
	assert_string_equal(r->answer, OK);
	assert_int_equal(
		rig_end(r, 0), 0); /* another SIGTERM may come when none is caught any more */
}

static void requests_before_the_first_list_get_an_error(void **state)
{
	struct rig *r = *state;

	fake_api_down(&r->f);
	rig_start(r);
	json_t *pod = rig_pod("a", 1, NULL);
	auto_free char *args = rig_args(pod, both);
	assert_int_equal(rig_ask(r, "/filter", args), 503);
	assert_int_equal(rig_ask(r, "/readyz", NULL), 503);
	assert_int_equal(rig_ask(r, "/livez", NULL), 200);
	json_decref(pod);
}

/* Whoever has no certificate may see how it is, and nothing else. */
static void metrics_and_probes_have_an_address_of_their_own(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
	} rows[] = {
		{"/livez", NULL, 200},
		{"/readyz", NULL, 200},
		{"/metrics", NULL, 200},
		{"/metrics", "{}", 405},
		{"/filter", "{}", 404},
		{"/bind", "{}", 404},
	};
	struct rig *r = *state;

	rig_write_config(r, "metrics: {address: 127.0.0.1:0}\n");
	start(r);
	const char *port = strstr(r->log, " metrics_port=");
	assert_non_null(port);
	assert_int_equal(sscanf(port, " metrics_port=%u", &r->port), 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(rig_ask(r, rows[i].path, rows[i].body), rows[i].status);
}

/* TLS */

enum { TLS_FILES = 3 };
static const char *const tls_file[TLS_FILES] = {"tls.crt", "tls.key", "ca.crt"};

/* The folder that a Secret is mounted at, and what is in it; more may be NULL. */
static const char *in_secret(const struct rig *r, const char *name, const char *more)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/secret/%s%s%s", r->f.dir, name, more ? "/" : "",
		more ? more : "");
	return path;
}

/* Another version of it, of these files of test/tls, as the kubelet puts it there. */
static void mount_secret(const struct rig *r, const char *version, const char *const *from)
{
	char target[PATH_MAX], next[PATH_MAX];

	assert_int_equal(mkdir(in_secret(r, version, NULL), 0700), 0);
	for (unsigned i = 0; i < TLS_FILES; i++) {
		auto_free char *real = realpath("test/tls", NULL);

		(void)snprintf(target, sizeof target, "%s/%s", real, from[i]);
		assert_int_equal(symlink(target, in_secret(r, version, tls_file[i])), 0);
	}
	(void)snprintf(next, sizeof next, "%s", in_secret(r, "..data_tmp", NULL));
	assert_int_equal(symlink(version, next), 0);
	assert_int_equal(rename(next, in_secret(r, "..data", NULL)), 0);
}

static void unmount_secret(const struct rig *r, const char *version)
{
	for (unsigned i = 0; i < TLS_FILES; i++)
		(void)unlink(in_secret(r, version, tls_file[i]));
	(void)rmdir(in_secret(r, version, NULL));
}

static void mount_files(const struct rig *r)
{
	char target[PATH_MAX];

	assert_int_equal(mkdir(in_secret(r, "", NULL), 0700), 0);
	for (unsigned i = 0; i < TLS_FILES; i++) {
		(void)snprintf(target, sizeof target, "..data/%s", tls_file[i]);
		assert_int_equal(symlink(target, in_secret(r, tls_file[i], NULL)), 0);
	}
}

static char *pem(const char *name)
{
	enum { PEM_MAX = 8 << 10 };
	char path[64], *text = xcalloc(PEM_MAX, 1);

	(void)snprintf(path, sizeof path, "test/tls/%s", name);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, PEM_MAX - 1, f) > 0);
	(void)fclose(f);
	return text;
}

/* Whoever asks from now on does so on a new connection; careless: he takes any server. */
static void trust(struct rig *r, bool careless)
{
	auto_free char *ca = pem("ca.pem"), *cert = pem("client.pem"), *key = pem("client.key");
	struct err e;

	http_client_free(r->http);
	r->http = http_client_new(r->f.loop,
		&(struct http_trust){.ca = ca, .cert = cert, .key = key, .insecure = careless}, &e);
	assert_non_null(r->http);
}

static int ask_anew(struct rig *r)
{
	trust(r, false);
	return rig_ask(r, "/livez", NULL);
}

static void changed_tls_files_apply_to_new_connections(void **state)
{
	static const char *const versions[][TLS_FILES] = {
		{"expired.pem", "server.key", "ca.pem"},
		{"server.pem", "server.key", "ca.pem"},
		{"server.pem", "client.key", "ca.pem"}, /* they do not belong together */
		{"server.pem", "server.key", "other-ca.pem"},
		{"server.pem", "server.key", "ca.pem"},
	};
	static const char *const name[] = {"..0", "..1", "..2", "..3", "..4"};
	struct rig *r = *state;

	mount_files(r);
	mount_secret(r, name[0], versions[0]);
	auto_free char *config = NULL;
	const char *in = in_secret(r, "", NULL);
	assert_true(asprintf(&config,
			    "tls: {certFile: %stls.crt, keyFile: %stls.key, clientCAFile: "
			    "%sca.crt}\n",
			    in, in, in) > 0);
	rig_write_config(r, config);
	r->by_tls = true;
	rig_start(r);
	trust(r, true);
	rig_await_ready(r);
	assert_int_equal(ask_anew(r), 0); /* expired */
	mount_secret(r, name[1], versions[1]);
	while (ask_anew(r) != FAKE_OK)
		assert_non_null(strstr(r->answer, "expired"));
	mount_secret(r, name[2], versions[2]);
	while (!rig_said(r, "event=tls-refused"))
		assert_int_equal(ask_anew(r), FAKE_OK);
	assert_int_equal(ask_anew(r), FAKE_OK);
	mount_secret(r, name[3], versions[3]);
	while (ask_anew(r) == FAKE_OK)
		;
	mount_secret(r, name[4], versions[4]);
	while (ask_anew(r) != FAKE_OK)
		assert_null(strstr(r->answer, "expired"));
	assert_int_equal(rig_ask(r, "/livez", NULL), FAKE_OK);
	assert_false(rig_said(r, "PRIVATE"));
	for (unsigned i = 0; i < sizeof name / sizeof *name; i++)
		unmount_secret(r, name[i]);
	for (unsigned i = 0; i < TLS_FILES; i++)
		(void)unlink(in_secret(r, tls_file[i], NULL));
	(void)unlink(in_secret(r, "..data", NULL));
	(void)rmdir(in_secret(r, "", NULL));
}

/* Nor one that does not say what it is for. */
static void a_server_certificate_is_refused_for_a_client(void **state)
{
	struct rig *r = *state;
	auto_free char *ca = pem("ca.pem"), *cert = pem("server.pem"), *key = pem("server.key");
	auto_free char *config = NULL, *folder = realpath("test/tls", NULL);
	struct err e;

	assert_true(asprintf(&config,
			    "tls: {certFile: %s/server.pem, keyFile: %s/server.key, clientCAFile: "
			    "%s/ca.pem}\n",
			    folder, folder, folder) > 0);
	rig_write_config(r, config);
	r->by_tls = true;
	rig_start(r);
	http_client_free(r->http);
	r->http = http_client_new(
		r->f.loop, &(struct http_trust){.ca = ca, .cert = cert, .key = key}, &e);
	assert_non_null(r->http);
	assert_int_equal(rig_ask(r, "/livez", NULL), 0);
	while (!rig_said(r, "event=client-refused "))
		(void)usleep(1000);
	assert_true(rig_said(r, "extendedKeyUsage has no clientAuth"));
	assert_int_equal(ask_anew(r), FAKE_OK); /* a client's */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pod_is_bound_with_its_hint),
		T(a_bound_pod_counts_at_once),
		T(a_pod_in_the_report_counts_once),
		T(an_ended_pod_frees_room_before_the_node_reports_it),
		T(a_pod_with_a_changed_hint_gives_back_what_the_first_hint_took),
		T(a_restarted_extender_gives_nothing_back_for_hints_it_did_not_see_written),
		T(a_pod_bound_by_another_scheduler_holds_its_request_and_no_more),
		T(a_hint_from_before_the_binding_is_not_believed),
		T(a_refusal_is_computed_again_after_a_delay_before_it_is_sent),
		T(a_client_that_leaves_during_the_refusal_delay_gets_no_answer),
		T(a_pod_that_is_being_deleted_but_still_runs_frees_no_room),
		T(a_pod_without_numa_needs_gets_no_hint),
		T(the_roomier_node_scores_better),
		T(a_node_that_has_filled_up_meanwhile_is_a_conflict),
		T(a_node_that_would_now_spread_the_pod_is_a_conflict),
		T(a_node_that_can_no_longer_place_the_pod_is_a_conflict),
		T(a_bind_that_fails_gives_back_what_it_held),
		T(a_bind_whose_answer_was_lost_is_looked_up),
		T(a_bind_that_happened_in_spite_of_an_error_is_one),
		T(a_recreated_pod_is_another_pod),
		T(a_uid_belongs_to_one_pod),
		T(a_bound_uid_does_not_bind_another_name),
		T(a_pod_of_another_node_is_not_bound_again),
		T(preemption_is_only_for_nodes_that_it_would_help),
		T(a_node_without_victims_is_no_candidate_for_preemption),
		T(a_restarted_extender_continues_after_kill_9),
		T(without_topologies_every_node_passes),
		T(a_node_that_refused_a_workload_is_left_out_for_a_while),
		T(a_node_with_a_refusal_event_is_left_out_too),
		T(no_pod_is_preempted_on_a_node_that_refused),
		T(a_node_that_passes_though_it_is_stale_may_be_preempted_on),
		T(thousands_of_nodes_are_answered),
		T(odd_requests_are_refused_with_a_reason),
		T(a_request_without_an_end_does_not_hold_up_others),
		T(all_request_bodies_share_one_budget),
		T(serving_without_client_certificates_logs_a_warning),
		T(a_deeply_nested_request_is_refused),
		T(the_metrics_count_requests),
		T(a_pending_bind_is_answered_before_the_extender_ends),
		T(sigterm_ends_the_extender),
		T(metrics_and_probes_have_an_address_of_their_own),
		T(requests_before_the_first_list_get_an_error),
		T(changed_tls_files_apply_to_new_connections),
		T(a_server_certificate_is_refused_for_a_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
