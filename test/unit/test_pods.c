#include "pods_rig.h"

static void pods_that_the_kubelet_reports_can_be_found(void **state)
{
	static const char *const resources[] = {"another.example/nic", "vendor.example/gpu"};
	static const struct ask asks[] = {
		{.name = "setup", .kind = CONTAINER_INIT, .cpu_milli = 500},
		{.name = "proxy", .kind = CONTAINER_SIDECAR, .cpu_milli = 1500},
		{.name = "app",
			.kind = CONTAINER_APP,
			.cpu_milli = 4000,
			.nr_memory = 2,
			.memory = {{0, 1 << 30}, {2 << 20, 64 << 20}},
			.nr_devices = 2,
			.device = {{0, 1}, {1, 2}}},
	};
	const struct pod ask = {.uid = "u", .qos = QOS_BURSTABLE, .nr = 3, .container = asks};
	const struct known_pod sent = {.pod = {.uid = "u",
					       .ns = "ml",
					       .name = "train",
					       .qos = QOS_BURSTABLE,
					       .pod_level = ask.pod_level,
					       .nr = ask.nr,
					       .container = ask.container,
					       .annotations = annotations,
					       .nr_annotations = 2},
		.resource = resources,
		.nr_resources = 2};
	struct world *w = *state;

	send_event(w, PODS_ADDED, encoded(w, &sent));
	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	assert_null(pods_find(w->p, "u"));
	UNTIL(&w->k, pods_synced(w->p));
	const struct known_pod *got = pods_find(w->p, "u");
	assert_non_null(got);
	assert_string_equal(w->changed, " u");
	assert_string_equal(w->k.log, " pods-api-synced");
	assert_string_equal(w->k.last_text, "1 pod");
	assert_string_equal(got->pod.uid, "u");
	assert_string_equal(got->pod.ns, "ml");
	assert_string_equal(got->pod.name, "train");
	assert_int_equal(got->pod.source, POD_FROM_KUBELET);
	assert_int_equal(got->pod.nr_annotations, 1);
	assert_string_equal(pod_annotation(&got->pod, "numafit.io/numa-hint"), "{\"v\":1}");
	assert_int_equal(got->pod.qos, QOS_BURSTABLE);
	assert_string_equal(got->pod.uid, "u");
	assert_int_equal(got->pod.nr, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct ask *c = &got->pod.container[i];

		assert_string_equal(c->name, asks[i].name);
		assert_int_equal(c->kind, asks[i].kind);
		assert_int_equal(c->cpu_milli, asks[i].cpu_milli);
		assert_int_equal(c->nr_memory, asks[i].nr_memory);
		assert_int_equal(c->nr_devices, asks[i].nr_devices);
	}
	assert_int_equal(got->nr_resources, 2);
	assert_string_equal(got->resource[1], "vendor.example/gpu");
}

static void pods_are_added_changed_and_removed(void **state)
{
	struct world *w = *state;

	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	send_pod(w, PODS_ADDED, "b", 2);
	UNTIL(&w->k, cpus_of(w, "b") == 2);
	send_pod(w, PODS_MODIFIED, "b", 2); /* its status, say */
	send_pod(w, PODS_ADDED, "a", 1);
	UNTIL(&w->k, cpus_of(w, "a") == 1);
	send_pod(w, PODS_MODIFIED, "b", 3);
	UNTIL(&w->k, cpus_of(w, "b") == 3);
	send_pod(w, PODS_MODIFIED, "c", 4); /* not sent before: as good as added */
	UNTIL(&w->k, cpus_of(w, "c") == 4);
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->changed, " b a b c");
	send_pod(w, PODS_DELETED, "b", 0);
	send_pod(w, PODS_DELETED, "nobody", 0);
	send_pod(w, PODS_ADDED, "z", 5);
	UNTIL(&w->k, pods_find(w->p, "z"));
	assert_null(pods_find(w->p, "b"));
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->k.log, " pods-api-synced");
}

static void any_change_of_the_requests_is_reported(void **state)
{
	static const char *const some[] = {"another.example/nic", "vendor.example/gpu"},
				 *const others[] = {"another.example/nic", "vendor.example/tpu"};
	/* so that every pod has the same resources */
	static const struct ask beside = {.name = "beside",
		.cpu_milli = 1,
		.nr_memory = 1,
		.memory = {{0, 1}},
		.nr_devices = 2,
		.device = {{0, 1}, {1, 1}}};
	static const struct {
		struct ask ask;
		const char *const *resource;
		enum qos qos;
	} cases[] = {
		{{.name = "x", .cpu_milli = 1}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 1}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{0, 1}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{0, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{1, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_devices = 1, .device = {{1, 2}}}, others,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2}, some, QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 1}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{0, 2}}}, some,
			QOS_GUARANTEED},
		{{.name = "y", .cpu_milli = 2, .nr_memory = 1, .memory = {{2 << 20, 2}}}, some,
			QOS_BURSTABLE},
		{{.name = "y", .kind = CONTAINER_INIT}, some, QOS_BURSTABLE},
		{{.name = "y", .kind = CONTAINER_SIDECAR}, some, QOS_BURSTABLE},
	};
	enum { NR = sizeof cases / sizeof cases[0] };
	struct world *w = *state;

	for (unsigned i = 0; i < 2 * NR; i++) { /* each a second time as it was */
		const struct ask both[] = {cases[i / 2].ask, beside};
		const struct known_pod pod = {.pod = {.uid = "u",
						      .ns = "n",
						      .name = "n",
						      .qos = cases[i / 2].qos,
						      .nr = 2,
						      .container = both},
			.resource = cases[i / 2].resource,
			.nr_resources = 2};

		send_event(w, PODS_MODIFIED, encoded(w, &pod));
	}
	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_int_equal(w->nr_changed, NR);
	assert_int_equal(pods_count(w->p), 1);
}

static void a_pod_that_a_new_watch_lacks_is_gone(void **state)
{
	struct world *w = *state;

	send_pod(w, PODS_ADDED, "stays", 1);
	send_pod(w, PODS_ADDED, "goes", 1);
	send_pod(w, PODS_ADDED, "grows", 1);
	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	die(w);
	UNTIL(&w->k, strstr(w->k.log, "waiting"));
	assert_false(pods_synced(w->p));
	assert_int_equal(pods_count(w->p), 3); /* better than nothing */
	w->changed[0] = '\0';
	send_pod(w, PODS_ADDED, "comes", 1);
	send_pod(w, PODS_ADDED, "grows", 2);
	send_pod(w, PODS_ADDED, "stays", 1);
	kubelet_start(&w->k);
	UNTIL(&w->k, w->nr_watched == 2 && cpus_of(w, "grows") == 2 && !w->sending);
	assert_non_null(pods_find(w->p, "goes")); /* not all is sent yet */
	send_synced(w);
	UNTIL(&w->k, pods_synced(w->p));
	assert_null(pods_find(w->p, "goes"));
	assert_int_equal(pods_count(w->p), 3);
	assert_string_equal(w->changed, " comes grows");
	assert_string_equal(
		w->k.log, " pods-api-synced pods-api-lost pods-api-waiting pods-api-synced");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(pods_that_the_kubelet_reports_can_be_found),
		IN_WORLD(pods_are_added_changed_and_removed),
		IN_WORLD(any_change_of_the_requests_is_reported),
		IN_WORLD(a_pod_that_a_new_watch_lacks_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
