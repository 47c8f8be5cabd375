/* numafit-extender as a whole: the real program between a scheduler and an API server. */
#include "extender_cases.h"

/* Its status, in part. */
static void set_status(struct rig *r, const char *name, const char *status)
{
	json_t *pod = json_deep_copy(rig_find(&r->list[PODS], name));

	(void)json_object_update_new(
		json_object_get(pod, "status"), json_loads(status, JSON_REJECT_DUPLICATES, NULL));
	rig_put(r, PODS, pod);
}
#define FITS_N2                                                                                    \
	"{\"Nodes\":null,\"NodeNames\":[\"n2\"],\"FailedNodes\":{\"n1\":\"numafit: cannot align "  \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"

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
	r->bind_unseen = true;
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
	while (!text_equal(r->answer, FITS_BOTH)); /* as soon as the watch has sent it */
}

/* On n1, until the watch has sent both. */
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

/* The only one that is bound; until the watch has sent it. */
static void delete_bound(struct rig *r, const char *name)
{
	rig_send_event(r, PODS, "DELETED", rig_find(&r->list[PODS], name));
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
	while (!text_equal(r->answer, FITS_N1)); /* as soon as the watch has sent it */
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
	rig_send_event(r, PODS, "DELETED", pod);
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

/* What was sent of pods so far: one more comes behind it. */
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
		while (!text_equal(r->answer, FITS_N1)); /* as soon as the watch has sent it */
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

/* What was there before the binding is not of the scheduler that has bound it. */
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

/* kube-scheduler fails the preemption as a whole of which a node is left without victims. */
static void a_node_without_victims_is_no_candidate_for_preemption(void **state)
{
	struct rig *r = *state;

	start(r);
	preempt(r, new_pod(r, "a", 2),
		"{\"n1\":{\"Pods\":[],\"NumPDBViolations\":0},\"elsewhere\":{\"Pods\":null}}",
		"{\"NodeNameToMetaVictims\":{}}");
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
	put_refusal_event(r, "p", "elsewhere", "Warning", "n1");
	put_refusal_event(r, "p", "default", "Normal", "n1");
	put_refusal_event(r, "p", "default", "Warning", "n2");
	rig_put(r, REPORTS, rig_report("n1", 9, 2, 6, "")); /* sent after both */
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
		assert_null(strstr(r->answer, avoided));
	}
	put_refusal_event(r, "p", "default", "Warning", "n1");
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!strstr(r->answer, avoided));
	/* in its own namespace anybody may write owners that are those of another one's pods */
	json_t *of_others = rig_pod("foreign", 2, "p");
	(void)json_object_set_new(
		json_object_get(of_others, "metadata"), "namespace", json_string("elsewhere"));
	auto_free char *foreign = rig_args(of_others, both);
	assert_int_equal(rig_ask(r, "/filter", foreign), FAKE_OK);
	assert_null(strstr(r->answer, avoided));
	json_decref(of_others);
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
		T(preemption_is_only_for_nodes_that_it_would_help),
		T(a_node_without_victims_is_no_candidate_for_preemption),
		T(without_topologies_every_node_passes),
		T(a_node_that_refused_a_workload_is_left_out_for_a_while),
		T(a_node_with_a_refusal_event_is_left_out_too),
		T(no_pod_is_preempted_on_a_node_that_refused),
		T(a_node_that_passes_though_it_is_stale_may_be_preempted_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
