#include <numafit/volcano.h>

#include <codec/fields_json.h>
#include <codec/numatopology_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SOME_MAX = 8, ARENA_BYTES = 1 << 20, MACHINE_CPUS = 8 };

/* The plugin's own test data and what follows from its code, recorded. */
static json_t *vectors(const char *list)
{
	json_error_t where;
	json_t *all = json_load_file("test/golden/volcano.json", 0, &where);
	json_t *rows = json_incref(json_object_get(all, list));

	assert_non_null(all);
	assert_true(json_array_size(rows) > 0);
	json_decref(all);
	return rows;
}

/* The machine of all of them: 8 CPUs, two to a core, two cores to a NUMA node and socket. */
struct machine {
	struct volcano_node node;
	struct volcano_cpu cpu[MACHINE_CPUS];
};

static void set_up(struct machine *m, const char *policy, const char *free_list)
{
	*m = (struct machine){.node = {.cpu_manager_policy = "static",
				      .topology_manager_policy = policy,
				      .ids = {.nr = 2, .id = {0, 1}},
				      .cpu = m->cpu,
				      .nr_cpus = MACHINE_CPUS,
				      .lists_cpus = true}};
	for (unsigned i = 0; i < MACHINE_CPUS; i++)
		m->cpu[i] = (struct volcano_cpu){i, i / 4, i / 2, i / 4};
	assert_int_equal(cpuset_parse(&m->node.free, free_list, strlen(free_list), NULL), 0);
}

/* A pod of containers that ask for so many thousandths of a CPU each. */
struct task {
	struct sched_pod pod;
	struct key_value policy;
	struct sched_container container[SOME_MAX];
	struct amount cpu[SOME_MAX];
	char name[SOME_MAX][16];
};

static void set_task(struct task *t, const char *policy, const int64_t *millis, unsigned nr)
{
	*t = (struct task){.policy = {"volcano.sh/numa-topology-policy", policy}};
	for (unsigned i = 0; i < nr; i++) {
		(void)snprintf(t->name[i], sizeof t->name[i], "c%u", i);
		t->cpu[i] = (struct amount){RESOURCE_CPU,
			{millis[i] / 1000, (uint32_t)(millis[i] % 1000 * QUANTITY_NANOS_OF_MILLI)}};
		t->container[i] =
			(struct sched_container){.name = t->name[i], .requests = {&t->cpu[i], 1}};
	}
	t->pod = (struct sched_pod){.qos = QOS_GUARANTEED,
		.annotations = &t->policy,
		.nr_annotations = 1,
		.container = t->container,
		.nr_containers = nr};
}

static struct volcano_answer ask(
	const struct machine *m, const char *policy, const int64_t *millis, unsigned nr)
{
	struct volcano_answer a;
	struct task t;

	set_task(&t, policy, millis, nr);
	volcano_predicate(&m->node, &t.pod, &a, NULL);
	return a;
}

static const char *cpus_of(const struct volcano_answer *a)
{
	static char list[CPUSET_TEXT_MAX];

	return cpuset_format(&a->cpus, list, sizeof list);
}

static unsigned nodes_of(const json_t *ids)
{
	unsigned mask = 0;

	for (size_t i = 0; i < json_array_size(ids); i++)
		mask |= 1u << json_integer_value(json_array_get(ids, i));
	return mask;
}

/* What the policies make of a list of hints, narrow ones first: the first preferred, else the
 * first. The released merge comes to that with one provider of hints. */
static void every_recorded_list_of_hints_gives_its_recorded_best_hint(void **state)
{
	static const char *const names[] = {"best-effort", "restricted", "single-numa-node"};
	json_t *rows = vectors("hints"), *row;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		const char *free_list = json_string_value(json_object_get(row, "available"));
		int64_t want = 1000 * json_integer_value(json_object_get(row, "request"));
		json_t *hints = json_object_get(row, "expect"), *best = json_array_get(hints, 0);
		bool preferred = json_is_true(json_object_get(best, "preferred"));
		unsigned nodes = nodes_of(json_object_get(best, "numa"));

		for (unsigned p = 0; p < 3; p++) {
			struct machine m;

			set_up(&m, names[p], free_list);
			struct volcano_answer a = ask(&m, names[p], &want, 1);
			bool admitted = !p || (preferred && (p == 1 || nodes != 3));
			assert_int_equal(a.code, admitted ? SCHED_SUCCESS : SCHED_UNRESOLVABLE);
			assert_int_equal(a.nodes.bits, admitted ? nodes : 0);
		}
	}
	json_decref(rows);
}

static void every_recorded_allocation_is_made(void **state)
{
	json_t *rows = vectors("allocate"), *row;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		int64_t want = 1000 * json_integer_value(json_object_get(row, "request"));
		struct machine m;

		set_up(&m, "best-effort", json_string_value(json_object_get(row, "available")));
		struct volcano_answer a = ask(&m, "best-effort", &want, 1);
		assert_string_equal(cpus_of(&a), json_string_value(json_object_get(row, "expect")));
	}
	json_decref(rows);
}

/* Of containers that are there, "0-2" and "4-6" are "0-2,4-6" together. */
static struct cpuset all_cpus(const json_t *lists)
{
	struct cpuset all = {0};

	for (size_t i = 0; i < json_array_size(lists); i++) {
		const char *list = json_string_value(json_array_get(lists, i));
		struct cpuset one;

		assert_int_equal(cpuset_parse(&one, list, strlen(list), NULL), 0);
		all = cpuset_or(all, &one);
	}
	return all;
}

static void every_recorded_pod_gets_what_was_recorded(void **state)
{
	json_t *rows = vectors("endToEnd"), *row;
	size_t i, c;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		const char *policy = json_string_value(json_object_get(row, "policy"));
		json_t *expect = json_object_get(row, "expect"), *container;
		int64_t millis[SOME_MAX];
		struct machine m;

		set_up(&m, policy, json_string_value(json_object_get(row, "free")));
		m.node.reserved =
			json_number_value(json_object_get(row, "reservedCpu")) > 0 ? 1 : 0;
		json_array_foreach(json_object_get(row, "containers"), c, container) millis[c] =
			1000 * json_integer_value(container);
		struct volcano_answer a = ask(&m, policy, millis, (unsigned)c);
		struct cpuset wanted = all_cpus(json_object_get(expect, "cpus"));

		assert_true(cpuset_equal(&a.cpus, &wanted));
		assert_int_equal(nodeset_count(a.nodes),
			json_integer_value(json_object_get(expect, "numaNodesUsed")));
		if (json_is_true(json_object_get(expect, "admit"))) {
			assert_int_equal(a.code, SCHED_SUCCESS);
			continue;
		}
		char why[80];
		(void)snprintf(why, sizeof why, "container c%lld cannot be assigned by numa",
			json_integer_value(json_object_get(expect, "container")));
		assert_string_equal(a.why, why);
		assert_int_equal(a.code, SCHED_UNRESOLVABLE);
	}
	json_decref(rows);
}

static void a_request_for_part_of_a_cpu_gives_no_hints(void **state)
{
	static const char *const names[] = {"best-effort", "restricted", "single-numa-node"};
	static const int64_t millis[] = {2500, 500};

	(void)state;
	for (unsigned p = 0; p < 3; p++) {
		struct machine m;

		set_up(&m, names[p], "0");
		struct volcano_answer a = ask(&m, names[p], millis, 2);
		assert_int_equal(a.code, SCHED_SUCCESS);
		assert_true(cpuset_empty(&a.cpus));
	}
}

/* The released way of sorting: a core with little left before a whole one, and the socket whose
 * cores have ids of free CPUs last. */
static void cpus_are_picked_in_the_released_order(void **state)
{
	static const int64_t one = 1000, two = 2000;
	struct machine m;

	(void)state;
	set_up(&m, "restricted", "0-2");
	m.node.nr_cpus = 4;
	m.node.ids.nr = 1;
	struct volcano_answer a = ask(&m, "restricted", &one, 1);
	assert_string_equal(cpus_of(&a), "2");

	/* the reserved CPU is 0: no core of socket 1 has the id of a CPU that is free */
	set_up(&m, "single-numa-node", "0,3,5");
	memcpy(m.cpu,
		(struct volcano_cpu[]){
			{0, 0, 0, 0}, {1, 0, 1, 0}, {3, 1, 3, 1}, {4, 0, 0, 0}, {5, 1, 3, 1}},
		5 * sizeof *m.cpu);
	m.node.nr_cpus = 5;
	m.node.reserved = 1;
	a = ask(&m, "single-numa-node", &two, 1);
	assert_int_equal(a.code, SCHED_UNRESOLVABLE);
}

/* A free CPU that the object does not describe counts for NUMA node 0, and is nobody's: with it a
 * node seems to have more free CPUs than CPUs. */
static void a_cpu_outside_of_the_topology_is_counted_but_not_given(void **state)
{
	static const int64_t five = 5000, seven = 7000;
	struct machine m;

	(void)state;
	set_up(&m, "restricted", "0-7,100");
	struct volcano_answer a = ask(&m, "restricted", &five, 1);
	assert_int_equal(a.code, SCHED_SUCCESS);
	assert_string_equal(cpus_of(&a), "0-4");
	set_up(&m, "best-effort", "0-5,100");
	a = ask(&m, "best-effort", &seven, 1);
	assert_int_equal(a.code, SCHED_SUCCESS);
	assert_true(cpuset_empty(&a.cpus));
}

/* The table of the predicate: what the pod wants against what the node has. */
static void the_policies_must_be_the_same(void **state)
{
	static const struct {
		const char *wants, *manager, *policy, *free;
		enum sched_code code;
		const char *why;
	} rows[] = {
		{"restricted", "static", "restricted", "0-7", SCHED_SUCCESS, ""},
		{"restricted", "none", "restricted", "0-7", SCHED_ERROR,
			"cpu manager policy isn't static"},
		{"restricted", "Static", "restricted", "0-7", SCHED_ERROR,
			"cpu manager policy isn't static"},
		{"restricted", "static", "best-effort", "0-7", SCHED_ERROR,
			"task topology policy[restricted] is different with node[best-effort]"},
		{"best-effort", "static", "", "0-7", SCHED_ERROR,
			"task topology policy[best-effort] is different with node[]"},
		{"best-effort", "static", "best-effort", "", SCHED_ERROR,
			"cpu allocatable map is empty"},
		{"none", "static", "none", "", SCHED_SUCCESS, ""},
		{"", "none", "restricted", "", SCHED_SUCCESS, ""},
		{"none", "static", "restricted", "0", SCHED_UNRESOLVABLE,
			"container c0 cannot be assigned by numa"},
		{"none", "static", "best-effort", "0", SCHED_SUCCESS, ""},
		{"made-up", "static", "made-up", "0", SCHED_SUCCESS, ""},
	};
	static const int64_t two = 2000;

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct machine m;

		set_up(&m, rows[i].policy, rows[i].free);
		m.node.cpu_manager_policy = rows[i].manager;
		struct volcano_answer a = ask(&m, rows[i].wants, &two, 1);
		assert_string_equal(a.why, rows[i].why);
		assert_int_equal(a.code, rows[i].code);
	}
}

static void a_node_without_an_object_takes_pods_without_a_policy(void **state)
{
	static const int64_t two = 2000;
	struct volcano_answer a;
	struct task t;

	(void)state;
	set_task(&t, "restricted", &two, 1);
	volcano_predicate(NULL, &t.pod, &a, NULL);
	assert_int_equal(a.code, SCHED_ERROR);
	assert_string_equal(a.why, "numa info is empty");
	t.pod.qos = QOS_BURSTABLE;
	volcano_predicate(NULL, &t.pod, &a, NULL);
	assert_int_equal(a.code, SCHED_SUCCESS);
	assert_false(volcano_scores(&t.pod));
	set_task(&t, "none", &two, 1);
	volcano_predicate(NULL, &t.pod, &a, NULL);
	assert_int_equal(a.code, SCHED_SUCCESS);
	assert_false(volcano_scores(&t.pod));
}

static void every_recorded_score_is_given(void **state)
{
	json_t *rows = vectors("score"), *row, *value;
	const char *node;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		json_t *used = json_object_get(row, "numaNodesUsed");
		int64_t score[SOME_MAX];
		size_t nr = 0;

		json_object_foreach(used, node, value) score[nr++] = json_integer_value(value);
		volcano_score(score, nr, json_integer_value(json_object_get(row, "weight")));
		nr = 0;
		json_object_foreach(json_object_get(row, "expect"), node, value)
			assert_int_equal(score[nr++], json_integer_value(value));
	}
	json_decref(rows);
}

/* volcano-numa-aware.md, "Priority function": three nodes that need 1, 2 and 4 NUMA nodes. */
static void seed_volcano_numa_aware_scores_750_500_and_0(void **state)
{
	int64_t score[] = {1, 2, 4};

	(void)state;
	volcano_score(score, 3, 10);
	assert_int_equal(score[0], 750);
	assert_int_equal(score[1], 500);
	assert_int_equal(score[2], 0);
}

/* Pods placed one after the other on a node: CPUs that one got are free no more. */
static unsigned place(
	struct machine *m, const int64_t *pods, unsigned nr, struct volcano_answer out[SOME_MAX])
{
	unsigned placed = 0;

	for (unsigned i = 0; i < nr; i++) {
		out[i] = ask(m, "single-numa-node", &pods[i], 1);
		m->node.free = cpuset_minus(m->node.free, &out[i].cpus);
		placed += out[i].code == SCHED_SUCCESS;
	}
	return placed;
}

/* volcano-numa-aware.md, "Drawbacks": the kubelet admits pods as they were created, whatever order
 * the scheduler thought of them in. The same algorithm then gives others CPUs, or none at all. */
static void seed_volcano_numa_aware_the_kubelet_admits_in_another_order(void **state)
{
	static const int64_t scheduler[] = {4000, 2000}, kubelet[] = {2000, 4000};
	struct volcano_answer played[SOME_MAX], real[SOME_MAX];
	struct machine m;

	(void)state;
	set_up(&m, "single-numa-node", "0-7");
	assert_int_equal(place(&m, scheduler, 2, played), 2);
	set_up(&m, "single-numa-node", "0-7");
	assert_int_equal(place(&m, kubelet, 2, real), 2);
	assert_string_equal(cpus_of(&played[0]), "0-3");
	assert_string_equal(cpus_of(&real[1]), "4-7"); /* the same pod, on the other NUMA node */

	set_up(&m, "single-numa-node", "0-5");
	assert_int_equal(place(&m, scheduler, 2, played), 2);
	set_up(&m, "single-numa-node", "0-5");
	assert_int_equal(place(&m, kubelet, 2, real), 1); /* TopologyAffinityError */
	assert_string_equal(real[1].why, "container c0 cannot be assigned by numa");
}

/* The object as the exporter writes it: zeros are left out. */
static void an_object_is_read(void **state)
{
	static const char text[] =
		"{\"kind\":\"Numatopology\",\"spec\":{\"policies\":{\"CPUManagerPolicy\":"
		"\"static\","
		"\"TopologyManagerPolicy\":\"restricted\"},\"resReserved\":{\"cpu\":\"1500m\"},"
		"\"numares\":{\"cpu\":{\"allocatable\":\"0,3\",\"capacity\":4}},"
		"\"cpuDetail\":{\"3\":{\"numa\":8,\"socket\":1,\"core\":1},\"0\":{}}}}";
	struct volcano_node n;
	struct arena a;
	json_t *v;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	assert_int_equal(numatopology_json_read(v, &a, &n, NULL), 0);
	assert_string_equal(n.topology_manager_policy, "restricted");
	assert_int_equal(n.reserved, 2);
	assert_int_equal(n.nr_cpus, 2);
	assert_int_equal(n.ids.nr, 2);
	assert_int_equal(n.ids.id[1], 8);
	assert_int_equal(n.cpu[1].cpu, 3);
	assert_int_equal(n.cpu[1].numa, 1);
	assert_int_equal(n.cpu[1].core, 1);
	assert_int_equal(cpuset_count(&n.free), 2);
	json_decref(v);
	arena_fini(&a);
}

static void a_malformed_object_is_refused_with_the_place(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"7", "should be a Numatopology, is an integer"},
		{"{\"kind\":\"Pod\"}", "kind: should be Numatopology, is Pod"},
		{"{\"spec\":{\"cpuDetail\":{\"x\":{}}}}",
			"spec.cpuDetail: x: \"x\" is not a number"},
		{"{\"spec\":{\"cpuDetail\":{\"1024\":{}}}}",
			"spec.cpuDetail: 1024: 1024 is above 1023"},
		{"{\"spec\":{\"cpuDetail\":{\"1\":{\"numa\":-1}}}}",
			"spec.cpuDetail: 1: numa: -1 is not within 0 and 1023"},
		{"{\"spec\":{\"cpuDetail\":{\"1\":{},\"01\":{}}}}",
			"spec.cpuDetail: CPU 1 is there twice"},
		{"{\"spec\":{\"numares\":{\"cpu\":{\"allocatable\":\"3-1\"}}}}",
			"spec.numares: cpu: allocatable: list \"3-1\": 3-1 runs backwards"},
		{"{\"spec\":{\"resReserved\":{\"cpu\":\"-1\"}}}",
			"spec.resReserved: cpu: is not within 0 and 1024 CPUs"},
	};
	struct volcano_node n;

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena a;
		struct err e;
		json_t *v;

		arena_init(&a, ARENA_BYTES);
		assert_int_equal(json_parse(rows[i].text, strlen(rows[i].text), &v, NULL), 0);
		assert_true(numatopology_json_read(v, &a, &n, &e) < 0);
		assert_string_equal(e.text, rows[i].why);
		json_decref(v);
		arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recorded_list_of_hints_gives_its_recorded_best_hint),
		cmocka_unit_test(every_recorded_allocation_is_made),
		cmocka_unit_test(every_recorded_pod_gets_what_was_recorded),
		cmocka_unit_test(a_request_for_part_of_a_cpu_gives_no_hints),
		cmocka_unit_test(cpus_are_picked_in_the_released_order),
		cmocka_unit_test(a_cpu_outside_of_the_topology_is_counted_but_not_given),
		cmocka_unit_test(the_policies_must_be_the_same),
		cmocka_unit_test(a_node_without_an_object_takes_pods_without_a_policy),
		cmocka_unit_test(every_recorded_score_is_given),
		cmocka_unit_test(seed_volcano_numa_aware_scores_750_500_and_0),
		cmocka_unit_test(seed_volcano_numa_aware_the_kubelet_admits_in_another_order),
		cmocka_unit_test(an_object_is_read),
		cmocka_unit_test(a_malformed_object_is_refused_with_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
