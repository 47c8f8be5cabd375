/* How a running numafit-extender follows the API server: what it knows first, and what becomes of
 * it when a watch is lost. */
#include "extender_cases.h"

/* A pod that asks for so many resources by made-up names. */
static json_t *asking_for_made_up_ones(unsigned pod, unsigned nr)
{
	char name[32];
	json_t *requests = json_object();

	for (unsigned i = 0; i < nr; i++) {
		(void)snprintf(name, sizeof name, "example.com/r%u", pod * nr + i);
		(void)json_object_set_new(requests, name, json_integer(1));
	}
	(void)snprintf(name, sizeof name, "made-up-%u", pod);
	json_t *v = rig_pod(name, 0, NULL);
	(void)json_object_set_new(
		json_object_get(
			json_array_get(
				json_object_get(json_object_get(v, "spec"), "containers"), 0),
			"resources"),
		"requests", requests);
	return v;
}

/* Whoever makes names up does not keep pods with a node's own resource from being read. */
static void what_nodes_have_is_known_before_what_pods_ask_for(void **state)
{
	enum { BUSY = 503, EACH = 64, NAMES = 1024 };
	struct rig *r = *state;
	json_t *node = rig_node("n1"), *pod = asking_for_made_up_ones(NAMES / EACH, 1);
	json_t *resources = json_object_get(
		json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0),
		"resources");

	(void)json_object_set_new(json_object_get(json_object_get(node, "status"), "allocatable"),
		"example.com/gpu", json_integer(4));
	rig_put(r, NODES, node);
	for (unsigned i = 0; i < NAMES / EACH; i++)
		rig_put(r, PODS, asking_for_made_up_ones(i, EACH));
	(void)json_object_set_new(resources, "requests", json_pack("{s:i}", "example.com/gpu", 1));
	(void)json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n1"));
	rig_put(r, PODS, pod);
	r->first_status = BUSY;
	start(r);
	await_metric(r, "\nnumafit_extender_nodes 2\n");
	assert_non_null(strstr(r->answer, "\nnumafit_extender_pods 1\n"));
	assert_non_null(strstr(
		r->answer, "\nnumafit_extender_objects_unreadable_total{resource=\"pods\"} 0\n"));
}

/* Other replicas may know the pods still; but not for long, where all have lost them. */
static void a_watch_that_stays_broken_makes_a_replica_unready(void **state)
{
	enum { BUSY = 503 };
	struct rig *r = *state;

	rig_put(r, PODS, rig_pod("a", 4, NULL));
	assert_int_equal(setenv("NUMAFIT_FAULT_WATCH_MS", "3000", 1), 0);
	start(r);
	assert_int_equal(unsetenv("NUMAFIT_FAULT_WATCH_MS"), 0);
	r->watch_status = BUSY;
	rig_end_watches(r, PODS);
	await_metric(r, "\nnumafit_extender_watch_synced{resource=\"pods\"} 0\n");
	assert_non_null(
		strstr(r->answer, "\nnumafit_extender_watch_synced{resource=\"nodes\"} 1\n"));
	assert_int_equal(rig_ask(r, "/readyz", NULL), FAKE_OK);
	filter(r, rig_find(&r->list[PODS], "a"), FITS_N1);
	while (rig_ask(r, "/readyz", NULL) == FAKE_OK)
		(void)usleep(10000);
	assert_string_equal(r->answer, "the pods are not known any more");
	r->watch_status = 0;
	rig_put(r, PODS, rig_pod("b", 1, NULL)); /* the next watch begins with it */
	rig_await_ready(r);
	await_metric(r, "\nnumafit_extender_watch_synced{resource=\"pods\"} 1\n");
}

/* The API server may have no time for the question, and the watch does not ask it again. */
static void whether_a_resource_is_gone_is_asked_until_that_is_known(void **state)
{
	enum { BUSY = 503 };
	struct rig *r = *state;

	assert_int_equal(setenv("NUMAFIT_FAULT_LOOK_MS", "1", 1), 0);
	start(r);
	assert_int_equal(unsetenv("NUMAFIT_FAULT_LOOK_MS"), 0);
	r->gone_status = BUSY;
	json_decref(r->list[REPORTS].items);
	r->list[REPORTS].items = NULL;
	rig_end_watches(r, REPORTS);
	while (!rig_said(r, "event=resource-absent resource=noderesourcetopologies"))
		(void)rig_ask(r, "/readyz", NULL);
	assert_int_equal(r->gone_status, 0); /* it was asked, and for nothing */
}

/* While its CustomResourceDefinition is being installed one API server may know it before another.
 */
static void a_late_answer_does_not_take_away_what_was_listed_since(void **state)
{
	enum { UNAUTHORIZED = 401 /* asks for the resource, and soon for the list again */ };
	struct rig *r = *state;

	r->reports_status = UNAUTHORIZED;
	r->look_waits = true;
	rig_start(r);
	FAKE_UNTIL(&r->f, r->look);
	r->reports_status = 0;
	await_metric(r, "\nnumafit_extender_watch_synced{resource=\"noderesourcetopologies\"} 1\n");
	rig_await_ready(r);
	rig_not_found(r->look);
	fake_api_stay_quiet(&r->f);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	assert_false(rig_said(r, "event=resource-absent"));
}

/* Though the API server is slow to list what comes before them. */
static void events_of_before_the_start_are_of_pods_that_are_known(void **state)
{
	enum { BUSY = 503 };
	struct rig *r = *state;
	json_t *next = rig_pod("next", 2, "p"), *p = rig_pod("p", 2, "p");
	auto_free char *args = rig_args(next, both);

	(void)json_object_set_new(json_object_get(p, "spec"), "nodeName", json_string("n1"));
	rig_put(r, PODS, p);
	put_refusal_event(r, "p", "default", "Warning", "n1");
	r->first_status = BUSY;
	start(r);
	do
		assert_int_equal(rig_ask(r, "/filter", args), FAKE_OK);
	while (!strstr(r->answer, "\"numafit: the node refused this workload a short while ago\""));
	json_decref(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_nodes_have_is_known_before_what_pods_ask_for),
		T(a_watch_that_stays_broken_makes_a_replica_unready),
		T(whether_a_resource_is_gone_is_asked_until_that_is_known),
		T(a_late_answer_does_not_take_away_what_was_listed_since),
		T(events_of_before_the_start_are_of_pods_that_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
