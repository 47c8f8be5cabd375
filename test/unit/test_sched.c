#include <errno.h>
#include <numafit/sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct quantity parsed(const char *s)
{
	struct quantity q = {0};

	assert_int_equal(quantity_parse(&q, s, NULL), 0);
	return q;
}

static void a_resource_is_what_kubernetes_makes_of_its_name(void **state)
{
	static const struct {
		const char *name;
		bool native, huge_page, extended, of_nodes;
	} cases[] = {
		{"cpu", true, false, false, true},
		{"storage", true, false, false, false},
		{"hugepages-2Mi", true, true, false, true},
		{"example.com/gpu", false, false, true, true},
		{"kubernetes.io/batch", true, false, false, true},
		{"x.kubernetes.io/batch", true, false, false, true},
		{"requests.example.com/gpu", false, false, false, false},
		{"attachable-volumes-csi", true, false, false, true},
		{"gpu", true, false, false, false},
	};
	struct resource_table t;

	(void)state;
	resource_table_init(&t);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned number = resource_number(&t, cases[i].name);
		const struct resource_kind *k = &t.at[number];

		assert_string_equal(k->name, cases[i].name);
		assert_int_equal(resource_number(&t, cases[i].name), number);
		if (k->native != cases[i].native || k->huge_page != cases[i].huge_page ||
			k->extended != cases[i].extended || k->of_nodes != cases[i].of_nodes)
			fail_msg("%s", cases[i].name);
	}
	assert_int_equal(resource_number(&t, "memory"), RESOURCE_MEMORY);
	assert_int_equal(resource_number(&t, "pods"), RESOURCE_PODS);
	resource_table_fini(&t);
}

static const char *made_up(unsigned i)
{
	static char name[32];

	(void)snprintf(name, sizeof name, "example.com/r%u", i);
	return name;
}

/* Anybody who may create pods makes names up; those of nodes are the cluster's own. */
static void names_that_pods_alone_bring_are_bounded(void **state)
{
	struct resource_table t;
	unsigned number;

	(void)state;
	resource_table_init(&t);
	for (unsigned i = 0; i < RESOURCES_OF_PODS_MAX; i++) {
		assert_true(resource_number_of_pod(&t, made_up(i), &number));
		assert_int_equal(number, NR_USUAL_RESOURCES + i);
	}
	assert_false(resource_number_of_pod(&t, made_up(RESOURCES_OF_PODS_MAX), &number));
	assert_false(resource_find(&t, made_up(RESOURCES_OF_PODS_MAX), &number));
	/* a node has one of these after all, and another one that nobody knew */
	assert_int_equal(resource_number(&t, made_up(7)), NR_USUAL_RESOURCES + 7);
	number = resource_number(&t, "node.example.com/own");
	assert_int_equal(number, t.nr - 1);
	assert_int_equal(resource_number(&t, made_up(7)), NR_USUAL_RESOURCES + 7);
	assert_true(resource_number_of_pod(&t, made_up(RESOURCES_OF_PODS_MAX), &number));
	assert_false(resource_number_of_pod(&t, made_up(RESOURCES_OF_PODS_MAX + 1), &number));
	for (unsigned i = 0; i < RESOURCES_OF_PODS_MAX; i++) { /* those that are known, still */
		assert_true(resource_number_of_pod(&t, made_up(i), &number));
		assert_int_equal(number, NR_USUAL_RESOURCES + i);
		assert_string_equal(t.at[number].name, made_up(i));
	}
	resource_table_fini(&t);
}

/* cpu and memory of one container: "" is not there. */
struct asks {
	const char *request[2], *limit[2];
	enum container_kind kind;
};
enum { CONTAINERS_MAX = 2 };

static struct amounts amounts_of(const char *const text[2], struct amount at[2])
{
	unsigned nr = 0;

	for (unsigned r = 0; r < 2; r++)
		if (text[r] && *text[r])
			at[nr++] = (struct amount){
				r ? RESOURCE_MEMORY : RESOURCE_CPU, parsed(text[r])};
	return (struct amounts){at, nr};
}

static void the_qos_class_follows_from_cpu_and_memory_of_all_containers(void **state)
{
	static const struct {
		struct asks container[CONTAINERS_MAX];
		unsigned nr;
		enum qos want;
	} cases[] = {
		{{{{"", ""}, {"", ""}, CONTAINER_APP}}, 1, QOS_BEST_EFFORT},
		{{{{"0", "0"}, {"0", "0"}, CONTAINER_APP}}, 1, QOS_BEST_EFFORT},
		{{{{"1", "1Gi"}, {"1", "1Gi"}, CONTAINER_APP}}, 1, QOS_GUARANTEED},
		{{{{"1", "1Gi"}, {"1000m", "1024Mi"}, CONTAINER_APP}}, 1, QOS_GUARANTEED},
		{{{{"1", "1Gi"}, {"2", "1Gi"}, CONTAINER_APP}}, 1, QOS_BURSTABLE},
		{{{{"", ""}, {"1", "1Gi"}, CONTAINER_APP}}, 1, QOS_BURSTABLE},
		{{{{"1", ""}, {"1", ""}, CONTAINER_APP}}, 1, QOS_BURSTABLE},
		{{{{"1", "1Gi"}, {"1", "1Gi"}, CONTAINER_APP},
			 {{"", ""}, {"", ""}, CONTAINER_INIT}},
			2, QOS_BURSTABLE},
		{{{{"1", "1Gi"}, {"1", "1Gi"}, CONTAINER_INIT},
			 {{"2", "1Gi"}, {"2", "1Gi"}, CONTAINER_SIDECAR}},
			2, QOS_GUARANTEED},
		/* the sums decide, not each container */
		{{{{"1", "1Gi"}, {"2", "1Gi"}, CONTAINER_APP},
			 {{"2", "1Gi"}, {"1", "1Gi"}, CONTAINER_APP}},
			2, QOS_GUARANTEED},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct amount request[CONTAINERS_MAX][2], limit[CONTAINERS_MAX][2];
		struct sched_container container[CONTAINERS_MAX];
		struct sched_pod pod = {.container = container, .nr_containers = cases[i].nr};

		for (unsigned c = 0; c < cases[i].nr; c++)
			container[c] = (struct sched_container){.kind = cases[i].container[c].kind,
				.requests = amounts_of(cases[i].container[c].request, request[c]),
				.limits = amounts_of(cases[i].container[c].limit, limit[c])};
		if (sched_pod_qos(&pod) != cases[i].want)
			fail_msg("case %u: %s", i, qos_words[sched_pod_qos(&pod)]);
	}
}

static void only_numbered_nodes_are_numa_zones(void **state)
{
	static const struct {
		const char *type, *name;
		int want;
	} cases[] = {
		{"Node", "node-0", 0},
		{"Node", "node-63", 63},
		{"Node", "node-64", -1},
		{"Node", "node-+1", 1},
		{"Node", "node-007", 7},
		{"Node", "node--1", -1},
		{"Node", "node-", -1},
		{"Node", "node-1x", -1},
		{"Node", "numa-node-0", -1},
		{"Socket", "node-0", -1},
		{"node", "node-0", -1},
		{NULL, "node-5", 5},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(zone_numa_id(cases[i].type, cases[i].name), cases[i].want);
}

static struct sched_topology *two_zones(void)
{
	static const uint8_t id[] = {3, 1};

	return sched_topology_new(id, 2);
}

static void attributes_override_the_policy_and_the_last_valid_one_counts(void **state)
{
	static const struct {
		const char *first, *name[2], *value[2];
		enum topology_policy policy;
		enum topology_scope scope;
		unsigned max;
	} cases[] = {
		{"", {"", ""}, {"", ""}, POLICY_NONE, SCOPE_CONTAINER, 8},
		{"SingleNUMANodePodLevel", {"", ""}, {"", ""}, POLICY_SINGLE_NUMA_NODE, SCOPE_POD,
			8},
		{"Restricted", {"", ""}, {"", ""}, POLICY_NONE, SCOPE_CONTAINER, 8},
		{"SingleNUMANodePodLevel", {"topologyManagerPolicy", ""}, {"restricted", ""},
			POLICY_RESTRICTED, SCOPE_POD, 8},
		{"", {"topologyManagerPolicy", "topologyManagerPolicy"},
			{"best-effort", "SingleNUMANode"}, POLICY_BEST_EFFORT, SCOPE_CONTAINER, 8},
		{"", {"topologyManagerScope", "topologyManagerScope"}, {"container", "pod"},
			POLICY_NONE, SCOPE_POD, 8},
		{"", {"topologyManagerMaxNUMANodes", ""}, {"16", ""}, POLICY_NONE, SCOPE_CONTAINER,
			16},
		{"", {"topologyManagerMaxNUMANodes", "topologyManagerMaxNUMANodes"}, {"16", "1"},
			POLICY_NONE, SCOPE_CONTAINER, 16},
		{"", {"topologyManagerMaxNUMANodes", ""}, {"4096", ""}, POLICY_NONE,
			SCOPE_CONTAINER, 1024},
		{"", {"topologyManagerMaxNUMANodes", ""}, {"many", ""}, POLICY_NONE,
			SCOPE_CONTAINER, 8},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sched_topology *t = two_zones();

		sched_topology_policy(t, cases[i].first);
		for (unsigned a = 0; a < 2; a++)
			sched_topology_attribute(t, cases[i].name[a], cases[i].value[a]);
		if (t->policy != cases[i].policy || t->scope != cases[i].scope ||
			t->max_numa_nodes != cases[i].max)
			fail_msg("case %u", i);
		sched_topology_free(t);
	}
}

static void the_first_fingerprint_counts_and_its_method(void **state)
{
	struct sched_topology *t = two_zones();

	(void)state;
	assert_null(t->fingerprint);
	assert_int_equal(t->fingerprint_method, FINGERPRINT_ALL);
	sched_topology_attribute(t, "nodeTopologyPodsFingerprint", "one");
	sched_topology_attribute(t, "nodeTopologyPodsFingerprint", "two");
	sched_topology_attribute(
		t, "nodeTopologyPodsFingerprintMethod", "with-exclusive-resources");
	assert_string_equal(t->fingerprint, "one");
	assert_int_equal(t->fingerprint_method, FINGERPRINT_EXCLUSIVE);
	sched_topology_free(t);
}

static void members_that_a_topology_lacks_are_unknown(void **state)
{
	struct sched_topology *t = two_zones();
	const struct zone_amounts four = {quantity_of(6), quantity_of(5), quantity_of(4)};

	(void)state;
	sched_topology_cost(t, 0, 1, 20);
	sched_topology_cost(t, 0, 7, 99); /* no such zone */
	sched_topology_cost(t, 1, 1, INT64_MAX);
	assert_int_equal(t->cost[0 * 2 + 0], ZONE_COST_UNKNOWN);
	assert_int_equal(t->cost[0 * 2 + 1], 20);
	assert_int_equal(t->cost[1 * 2 + 1], INT32_MAX);
	assert_null(sched_topology_find(t, RESOURCE_CPU));
	sched_topology_resource(t, 1, RESOURCE_CPU, &(struct zone_amounts){0});
	sched_topology_resource(t, 1, RESOURCE_CPU, &four);
	const struct zone_resource *r = sched_topology_find(t, RESOURCE_CPU);

	assert_int_equal(r->listed, 1 << 1);
	assert_int_equal(r->available[1].whole, 4);
	assert_int_equal(r->allocatable[1].whole, 5);
	assert_int_equal(r->capacity[1].whole, 6);
	assert_int_equal(r->available[0].whole, 0);
	sched_topology_free(t);
}

static void more_zones_than_fit_are_refused(void **state)
{
	const uint8_t id[ZONES_MAX + 1] = {0};

	(void)state;
	assert_null(sched_topology_new(id, ZONES_MAX + 1));
	struct sched_topology *t = sched_topology_new(id, 0);

	assert_non_null(t);
	sched_topology_free(t);
	sched_topology_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_resource_is_what_kubernetes_makes_of_its_name),
		cmocka_unit_test(names_that_pods_alone_bring_are_bounded),
		cmocka_unit_test(the_qos_class_follows_from_cpu_and_memory_of_all_containers),
		cmocka_unit_test(only_numbered_nodes_are_numa_zones),
		cmocka_unit_test(attributes_override_the_policy_and_the_last_valid_one_counts),
		cmocka_unit_test(the_first_fingerprint_counts_and_its_method),
		cmocka_unit_test(members_that_a_topology_lacks_are_unknown),
		cmocka_unit_test(more_zones_than_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
