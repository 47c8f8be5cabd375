/* The enhancement proposal "Topology Aware Scheduling" (scheduler-plugins,
 * kep/119-node-resource-topology-aware-scheduling): what its filter and its score say, and where
 * the released plugin, which we follow, says something else. */
#include "nrt_rows.h"

static const char zones[] = "[{\"id\": 0, \"available\": {\"cpu\": \"4\", \"memory\": \"8Gi\", "
			    "\"hugepages-2Mi\": \"0\"}},"
			    " {\"id\": 1, \"available\": {\"cpu\": \"8\", \"memory\": \"8Gi\", "
			    "\"hugepages-2Mi\": \"0\"}}]";

struct fixture {
	struct rows rows;
	struct sched_topology *node;
	struct amounts allocatable;
	struct nrt_args args;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof *f);
	json_t *rows = json_loads(zones, 0, NULL);
	json_t *node = json_loads(
		"{\"cpu\": \"12\", \"memory\": \"16Gi\", \"hugepages-2Mi\": \"0\"}", 0, NULL);

	resource_table_init(&f->rows.names);
	arena_init(&f->rows.arena, 1 << 20);
	f->node = row_zones(&f->rows, rows);
	f->node->policy = POLICY_SINGLE_NUMA_NODE;
	f->allocatable = row_amounts(&f->rows, node);
	json_decref(rows);
	json_decref(node);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sched_topology_free(f->node);
	resource_table_fini(&f->rows.names);
	arena_fini(&f->rows.arena);
	free(f);
	return 0;
}

struct answer {
	enum nrt_reason reason;
	int64_t score;
};

/* What the node answers to a pod of these containers, given as text. */
static struct answer ask(struct fixture *f, const char *containers)
{
	struct sched_node node = {.topology = f->node, .allocatable = f->allocatable};
	json_t *row = json_pack("{s:o}", "containers", json_loads(containers, 0, NULL));
	struct sched_pod pod;

	assert_non_null(row);
	row_pod(&f->rows, row, &pod);
	struct nrt_ask *asked = nrt_ask_new(&pod, &f->args, &f->rows.names);
	struct answer answer = {nrt_filter(asked, &node), nrt_score(asked, &node)};

	nrt_ask_free(asked);
	json_decref(row);
	return answer;
}

#define GUARANTEED(cpu, memory) "{\"requests\": {\"cpu\": \"" cpu "\", \"memory\": \"" memory "\"}}"
#define BURSTABLE(cpu, memory)                                                                     \
	"{\"requests\": {\"cpu\": \"" cpu "\", \"memory\": \"" memory "\"}, \"limits\": {}}"

static void the_filter_wants_one_numa_node_for_each_container(void **state)
{
	static const struct {
		const char *containers;
		enum nrt_reason want;
	} cases[] = {
		{"[" GUARANTEED("4", "1Gi") "]", NRT_FITS},
		{"[" GUARANTEED("8", "8Gi") "]", NRT_FITS},
		{"[" GUARANTEED("9", "1Gi") "]", NRT_CONTAINER},
		/* CPUs of a pod that is not Guaranteed float */
		{"[" BURSTABLE("9", "1Gi") "]", NRT_FITS},
		{"[{\"requests\": {}, \"limits\": {}}]", NRT_FITS},
		/* nobody has it, and nothing of it is asked for */
		{"[{\"requests\": {\"cpu\": \"4\", \"memory\": \"1Gi\", \"example.com/nic\": "
		 "\"0\"}}]",
			NRT_FITS},
		{"[{\"requests\": {\"cpu\": \"4\", \"memory\": \"1Gi\", \"example.com/nic\": "
		 "\"1\"}}]",
			NRT_CONTAINER},
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(ask(*state, cases[i].containers).reason, cases[i].want);
}

/* The document lets memory and huge pages pass always, and each container see all that is free. */
static void the_filter_as_released_looks_at_memory_and_at_what_is_taken(void **state)
{
	assert_int_equal(ask(*state, "[" GUARANTEED("4", "9Gi") "]").reason, NRT_CONTAINER);
	assert_int_equal(
		ask(*state, "[" GUARANTEED("4", "1Gi") "," GUARANTEED("8", "1Gi") "]").reason,
		NRT_FITS);
	assert_int_equal(
		ask(*state, "[" GUARANTEED("8", "1Gi") "," GUARANTEED("8", "1Gi") "]").reason,
		NRT_CONTAINER);
}

static void other_policies_and_no_topology_let_every_pod_pass(void **state)
{
	struct fixture *f = *state;
	struct sched_topology *node = f->node;

	for (int p = 0; p < NR_POLICIES; p++) {
		f->node->policy = (enum topology_policy)p;
		assert_int_equal(ask(f, "[" GUARANTEED("9", "1Gi") "]").reason,
			p == POLICY_SINGLE_NUMA_NODE ? NRT_CONTAINER : NRT_FITS);
	}
	f->node = NULL;
	struct answer answer = ask(f, "[" GUARANTEED("9", "1Gi") "]");

	assert_int_equal(answer.reason, NRT_FITS);
	assert_int_equal(answer.score, 0);
	f->node = node;
}

/* "a conservative strategy to assume Kubelet will choose the least optimal NUMA": 4 of 8 CPUs and 1
 * of 8 Gi would leave (50 + 87) / 2 = 68 there, (0 + 87) / 2 = 43 on the smaller zone. */
static void the_score_is_that_of_the_worst_zone(void **state)
{
	assert_int_equal(ask(*state, "[" GUARANTEED("4", "1Gi") "]").score, 43);
}

/* A zone that scores 0 is one that does not fit, and is left out; the document does not. */
static void the_score_as_released_leaves_out_zones_of_score_0(void **state)
{
	struct fixture *f = *state;
	unsigned cpu = RESOURCE_CPU;

	f->args = (struct nrt_args){
		.weights = &(struct nrt_weight){RESOURCE_MEMORY, 1}, .nr_weights = 1};
	assert_int_equal(ask(f, "[" GUARANTEED("8", "8Gi") "]").score, 0);
	((struct quantity *)sched_topology_find(f->node, cpu)->available)[1] = quantity_of(16);
	assert_int_equal(ask(f, "[" GUARANTEED("8", "8Gi") "]").score, 25);
}

/* Reserved pods: with discardReservedNodes their node is out until its topology has been read
 * again. */
static void a_stale_node_takes_no_pod(void **state)
{
	struct fixture *f = *state;
	struct sched_pod reserved = {.qos = QOS_GUARANTEED}, pod = {.qos = QOS_GUARANTEED};
	struct sched_node node = {.topology = f->node, .pods = &reserved, .nr_pods = 1};
	struct nrt_args args = {.discard_reserved = true};
	struct nrt_ask *asked = nrt_ask_new(&pod, &args, &f->rows.names);

	assert_int_equal(nrt_filter(asked, &node), NRT_STALE);
	assert_string_equal(nrt_reason_texts[NRT_STALE], "invalid node topology data");
	assert_int_equal(nrt_score(asked, &node), 0);
	node.nr_pods = 0;
	assert_int_equal(nrt_filter(asked, &node), NRT_FITS);
	nrt_ask_free(asked);

	/* which NUMA node such a pod is on is of no matter to anybody */
	pod.qos = QOS_BEST_EFFORT;
	asked = nrt_ask_new(&pod, &args, &f->rows.names);
	node.nr_pods = 1;
	assert_int_equal(nrt_filter(asked, &node), NRT_FITS);
	nrt_ask_free(asked);
}

/* The kubelet's choice, in whatever order the zones are listed. */
static void of_zones_that_fit_the_one_with_the_lowest_id_is_taken(void **state)
{
	struct fixture *f = *state;

	f->node->zone_id[0] = 5;
	assert_int_equal(ask(f, "[" GUARANTEED("4", "1Gi") "," GUARANTEED("5", "1Gi") "]").reason,
		NRT_CONTAINER);
	f->node->zone_id[0] = 0;
	assert_int_equal(
		ask(f, "[" GUARANTEED("4", "1Gi") "," GUARANTEED("5", "1Gi") "]").reason, NRT_FITS);
}

static void a_weight_below_1_counts_1(void **state)
{
	const struct nrt_weight weights[] = {{RESOURCE_CPU, 3}, {RESOURCE_MEMORY, 0}};
	struct fixture *f = *state;

	f->args = (struct nrt_args){.weights = weights, .nr_weights = 2};
	assert_int_equal(ask(f, "[" GUARANTEED("4", "1Gi") "]").score, 87 / 4);
}

static void amounts_below_0_do_no_harm(void **state)
{
	struct fixture *f = *state;
	struct quantity *cpu = sched_topology_find(f->node, RESOURCE_CPU)->available;

	cpu[0] = (struct quantity){-1, QUANTITY_NANOS / 2};
	for (int s = 0; s < NR_NRT_STRATEGIES; s++) {
		f->args.strategy = (enum nrt_strategy)s;
		(void)ask(f, "[" GUARANTEED("-1", "-1Gi") "," GUARANTEED("1", "1Gi") "]");
		assert_in_range(ask(f, "[" GUARANTEED("1", "1Gi") "]").score, 1, SCHED_SCORE_MAX);
	}
}

static void note(void *ctx, const char *line)
{
	char *all = ctx;

	(void)strcat(strcat(all, line), "\n");
}

static void each_step_of_the_arithmetic_is_printed(void **state)
{
	struct fixture *f = *state;
	char printed[2048] = "";
	const struct steps steps = {note, printed};
	json_t *row =
		json_loads("{\"containers\": [{\"name\": \"web\", \"requests\": {\"cpu\": \"6\","
			   " \"memory\": \"1Gi\"}}]}",
			0, NULL);
	struct sched_node node = {.topology = f->node, .allocatable = f->allocatable};
	struct sched_pod pod;

	row_pod(&f->rows, row, &pod);
	struct nrt_ask *asked = nrt_ask_new(&pod, &f->args, &f->rows.names);

	nrt_ask_listen(asked, &steps);
	(void)nrt_filter(asked, &node);
	(void)nrt_score(asked, &node);
	assert_string_equal(printed,
		"app container web: cpu 6: free on zones 1\n"
		"app container web: memory 1Gi: free on zones 0-1\n"
		"app container web: takes zone 1\n"
		"app container web:   cpu: 6 of 4 asked for: score 0, weight 1\n"
		"app container web:   memory: 1Gi of 8Gi asked for: score 87, weight 1\n"
		"app container web: zone 0: 43\n"
		"app container web:   cpu: 6 of 8 asked for: score 25, weight 1\n"
		"app container web:   memory: 1Gi of 8Gi asked for: score 87, weight 1\n"
		"app container web: zone 1: 56\n"
		"app container web: 43, the least that is not 0\n"
		"score 43\n");
	printed[0] = '\0';
	f->args.strategy = NRT_LEAST_NUMA_NODES;
	f->args.compat = true;
	(void)nrt_score(asked, &node);
	assert_string_equal(printed,
		"app container web: zones 1, average distance 255: no others are closer\n"
		"score 94\n");
	nrt_ask_free(asked);
	json_decref(row);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_filter_wants_one_numa_node_for_each_container),
		CASE(the_filter_as_released_looks_at_memory_and_at_what_is_taken),
		CASE(other_policies_and_no_topology_let_every_pod_pass),
		CASE(the_score_is_that_of_the_worst_zone),
		CASE(the_score_as_released_leaves_out_zones_of_score_0),
		CASE(of_zones_that_fit_the_one_with_the_lowest_id_is_taken),
		CASE(a_weight_below_1_counts_1),
		CASE(amounts_below_0_do_no_harm),
		CASE(a_stale_node_takes_no_pod),
		CASE(each_step_of_the_arithmetic_is_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
