/* The examples of the enhancement proposal "LeastNUMANodes ScoringStrategy" (scheduler-plugins,
 * kep/least-numa-nodes-scoring), with its numbers. Its pods show cpu alone; as they are scored at
 * all only when Guaranteed, they are taken for that. */
#include "nrt_rows.h"

struct example {
	struct rows rows;
	struct sched_topology *node;
	struct sched_pod pod;
	struct nrt_args args;
	struct nrt_ask *ask;
};

static json_t *parsed(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static void example_init(struct example *x, const char *zones, const char *pod)
{
	json_t *zone_rows = parsed(zones), *pod_row = parsed(pod);

	*x = (struct example){.args = {.strategy = NRT_LEAST_NUMA_NODES}};
	resource_table_init(&x->rows.names);
	arena_init(&x->rows.arena, 1 << 20);
	x->node = row_zones(&x->rows, zone_rows);
	sched_topology_attribute(x->node, "topologyManagerOptionPreferClosestNumaNodes", "true");
	row_pod(&x->rows, pod_row, &x->pod);
	x->pod.qos = QOS_GUARANTEED;
	x->pod.ns = x->pod.name = "";
	x->ask = nrt_ask_new(&x->pod, &x->args, &x->rows.names);
	json_decref(zone_rows);
	json_decref(pod_row);
}

static void example_fini(struct example *x)
{
	nrt_ask_free(x->ask);
	sched_topology_free(x->node);
	resource_table_fini(&x->rows.names);
	arena_fini(&x->rows.arena);
}

static int64_t score(struct example *x)
{
	return nrt_score(x->ask, &(struct sched_node){.topology = x->node});
}

static const char two_containers_of_three_cpus[] =
	"{\"containers\": [{\"requests\": {\"cpu\": \"3\"}}, {\"requests\": {\"cpu\": \"3\"}}]}";
static const char node_1[] =
	"[{\"id\": 0, \"available\": {\"cpu\": \"2\"}, \"costs\": {\"0\": 10, \"1\": 20}},"
	" {\"id\": 1, \"available\": {\"cpu\": \"4\"}, \"costs\": {\"0\": 20, \"1\": 10}}]";
static const char node_2[] =
	"[{\"id\": 0, \"available\": {\"cpu\": \"8\"}, \"costs\": {\"0\": 10, \"1\": 20}},"
	" {\"id\": 1, \"available\": {\"cpu\": \"8\"}, \"costs\": {\"0\": 20, \"1\": 10}}]";

static void node_1_needs_two_numa_nodes_for_the_second_container_and_gets_82(void **state)
{
	struct example x;

	(void)state;
	example_init(&x, node_1, two_containers_of_three_cpus);
	assert_int_equal(score(&x), 82);
	assert_int_equal(nrt_taken(x.ask, 0), 1 << 1);
	assert_int_equal(nrt_taken(x.ask, 1), 1 << 0 | 1 << 1);
	example_fini(&x);
}

static void node_2_needs_one_numa_node_for_each_container_and_gets_94(void **state)
{
	struct example x;

	(void)state;
	example_init(&x, node_2, two_containers_of_three_cpus);
	assert_int_equal(score(&x), 94);
	assert_int_equal(nrt_taken(x.ask, 0), 1 << 0);
	assert_int_equal(nrt_taken(x.ask, 1), 1 << 0);
	example_fini(&x);
}

static void two_numa_nodes_give_76_and_82_when_no_two_are_closer(void **state)
{
	(void)state;
	assert_int_equal(nrt_least_numa_score(2, false, 8), 76);
	assert_int_equal(nrt_least_numa_score(2, true, 8), 82);
}

static void a_pod_without_numa_resources_needs_no_node_and_gets_100(void **state)
{
	struct example x;

	(void)state;
	example_init(
		&x, node_1, "{\"containers\": [{\"requests\": {\"ephemeral-storage\": \"1Gi\"}}]}");
	assert_int_equal(score(&x), 100);
	assert_int_equal(nrt_taken(x.ask, 0), 0);
	example_fini(&x);
}

/* "When TopologyManagerPolicyOptions will be accessible in scheduler average distance between zones
 * will be calculated only for worker nodes where prefer-closest-numa-nodes option is enabled." */
static void distances_count_only_where_the_node_prefers_the_closest(void **state)
{
	struct example x;

	(void)state;
	example_init(&x, node_1, two_containers_of_three_cpus);
	sched_topology_attribute(x.node, "topologyManagerOptionPreferClosestNumaNodes", "false");
	assert_int_equal(score(&x), 76);
	x.args.compat = true; /* as released: on every node */
	assert_int_equal(score(&x), 82);
	example_fini(&x);
}

/* "...temporarly substract those resources from available resources in given combination": as
 * released it takes them from the zones whose places in the list are those ids. */
static void what_a_container_takes_is_gone_from_its_own_zones(void **state)
{
	static const char zones[] =
		"[{\"id\": 1, \"available\": {\"cpu\": \"4\"}, \"costs\": {\"0\": 20, \"1\": 10}},"
		" {\"id\": 0, \"available\": {\"cpu\": \"2\"}, \"costs\": {\"0\": 10, \"1\": 20}}]";
	struct example x;

	(void)state;
	example_init(&x, zones, two_containers_of_three_cpus);
	assert_int_equal(score(&x), 82);
	x.args.compat = true;
	assert_int_equal(score(&x), 94); /* zone 1 still seems to have its 4 CPUs */
	example_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_1_needs_two_numa_nodes_for_the_second_container_and_gets_82),
		cmocka_unit_test(node_2_needs_one_numa_node_for_each_container_and_gets_94),
		cmocka_unit_test(two_numa_nodes_give_76_and_82_when_no_two_are_closer),
		cmocka_unit_test(a_pod_without_numa_resources_needs_no_node_and_gets_100),
		cmocka_unit_test(distances_count_only_where_the_node_prefers_the_closest),
		cmocka_unit_test(what_a_container_takes_is_gone_from_its_own_zones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
