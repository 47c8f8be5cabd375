/* What is known of a pod with resources of its own goes into the decision, by the gates; and a
 * runtime, which shows such resources as those of each container, is not believed. */
#include <apiserver/pod_object_json.h>
#include <codec/fields_json.h>
#include <kubelet/pods.h>
#include <numafit/text.h>
#include <numafitd/cluster.h>
#include <numafitd/daemon.h>
#include <numafitd/gather.h>
#include <numafitd/services_state.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_MAX = 1 << 20 };

/* What the kubelet's Pods API has said, in the place of its client. */
static struct known_pod known;
static bool is_known;

const struct known_pod *pods_find(const struct pods *p, const char *uid)
{
	(void)p;
	return is_known && text_equal(uid, known.pod.uid) ? &known : NULL;
}

bool pods_synced(const struct pods *p)
{
	(void)p;
	return true;
}

void cluster_note_ignored_wish(const struct daemon *d, const struct pod *pod, const struct ask *ask,
	const char *annotation, const char *odd)
{
	(void)d, (void)pod, (void)ask, (void)annotation, (void)odd;
}

static const char spec[] =
	"{\"metadata\":{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"team\"},"
	"\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"6\",\"memory\":\"8Gi\"},"
	"\"limits\":{\"cpu\":\"6\",\"memory\":\"8Gi\"}},"
	"\"containers\":[{\"name\":\"alone\",\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}},"
	"{\"name\":\"shares\"}]},\"status\":{\"qosClass\":\"Guaranteed\"}}";

struct world {
	struct daemon d;
	struct services services;
	struct arena a;
	json_t *document; /* its strings are those of the pod */
};

static struct world *world_new(bool gate, enum topology_scope scope)
{
	struct world *w = calloc(1, sizeof *w);

	arena_init(&w->a, ARENA_MAX);
	settings_init(&w->d.settings);
	w->d.settings.gates.pod_level_resource_managers = gate;
	w->d.settings.topology_scope = scope;
	w->d.settings.pod_resources = false;
	w->d.services = &w->services;
	w->services.pods = (struct pods *)&w->services; /* any but NULL */
	assert_int_equal(json_parse(spec, strlen(spec), &w->document, NULL), 0);
	assert_int_equal(pod_object_json_read(w->document, &w->a, &known, NULL), 0);
	is_known = true;
	return w;
}

static void world_free(struct world *w)
{
	json_decref(w->document);
	arena_fini(&w->a);
	free(w);
}

static struct pod of_runtime(void)
{
	return (struct pod){.sandbox_id = "s", .uid = "u", .ns = "ml", .name = "team"};
}

static void a_pods_own_resources_come_with_its_containers_where_the_gate_is_on(void **state)
{
	(void)state;
	for (int gate = 0; gate <= 1; gate++) {
		struct world *w = world_new(gate, SCOPE_POD);
		struct pod pod = of_runtime();

		gather_pod(&w->d, &pod, &w->a);
		assert_int_equal(pod.nr, 2);
		assert_true(pod.pod_level);
		assert_int_equal(pod.own != NULL, gate);
		assert_int_equal(pod.container[0].guaranteed, gate);
		assert_false(pod.container[1].guaranteed);
		if (gate)
			assert_int_equal(pod.own->cpu_milli, 6000);
		assert_true(known.pod.own && known.pod.container[0].guaranteed); /* as it was */
		world_free(w);
	}
}

static void a_container_whose_pod_was_not_decided_as_a_whole_is_known_by_its_spec(void **state)
{
	static const struct {
		bool is_known, gate;
		enum topology_scope scope;
		const char *container;
		unsigned cpus; /* for itself, by what is gathered; a runtime says 6 */
	} cases[] = {
		{false, true, SCOPE_POD, "shares", 6},
		{true, false, SCOPE_POD, "shares", 0},
		{true, false, SCOPE_CONTAINER, "alone", 0},
		{true, true, SCOPE_POD, "alone", 0}, /* the pod has nothing as one */
		{true, true, SCOPE_CONTAINER, "alone", 6},
		{true, true, SCOPE_CONTAINER, "shares", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = world_new(cases[i].gate, cases[i].scope);
		struct request req = {.container_id = "c",
			.ask = {.name = cases[i].container, .cpu_milli = 6000},
			.pod = of_runtime(),
			.cpus = "",
			.mems = ""};

		is_known = cases[i].is_known;
		gather_container(&w->d, &req, &w->a);
		assert_int_equal(request_exclusive_cpus(&req), cases[i].cpus);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_pods_own_resources_come_with_its_containers_where_the_gate_is_on),
		cmocka_unit_test(
			a_container_whose_pod_was_not_decided_as_a_whole_is_known_by_its_spec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
