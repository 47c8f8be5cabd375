/* The simulator's own view of a node, without a daemon: what it sends, checks, counts and draws. */
#include <numafit-sim/report.h>
#include <numafit-sim/script.h>

#include <errno.h>
#include <nri/session.h>
#include <numafit/text.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* Four nodes of two cores with two threads, 16Gi each, two sockets; 0-1 and 2-3 are close. */
static struct topo *machine(void)
{
	static struct topo t;
	static const unsigned distance[4][4] = {
		{10, 11, 20, 20}, {11, 10, 20, 20}, {20, 20, 10, 11}, {20, 20, 11, 10}};

	topo_init(&t, "test");
	for (unsigned n = 0; n < 4; n++)
		assert_int_equal(topo_add_node(&t, n, NULL), n);
	for (unsigned cpu = 0; cpu < 16; cpu++)
		assert_int_equal(
			topo_add_cpu(&t, cpu, cpu % 8 / 2, cpu % 8, cpu % 8 / 4, cpu % 8 / 4, NULL),
			0);
	for (unsigned n = 0; n < 4; n++) {
		assert_int_equal(topo_set_memory(&t, n, 0, 16 * GIB, NULL), 0);
		assert_int_equal(topo_set_memory(&t, n, GIB, GIB, NULL), 0);
		for (unsigned to = 0; to < 4; to++)
			assert_int_equal(topo_set_distance(&t, n, to, distance[n][to], NULL), 0);
	}
	assert_int_equal(topo_seal(&t, NULL), 0);
	return &t;
}

static struct container *run(struct sim_node *n, const char *pod, struct asked asked,
	const char *cpus, const char *mems, const char *placement)
{
	struct container c = {.ns = "default", .name = "main", .base = pod, .asked = asked};
	struct key_value annotation = {NRI_PLACEMENT_ANNOTATION, placement};

	assert_true(text_copy(c.pod, sizeof c.pod, pod));
	struct container *new = sim_node_add(n, &c, NULL);

	assert_non_null(new);
	assert_int_equal(container_set(n->topo, new, cpus, mems, NULL), 0);
	assert_int_equal(container_annotate(n->topo, new, &annotation, placement ? 1 : 0, NULL), 0);
	new->state = CONTAINER_RUNNING;
	return new;
}

static const struct asked two_cpus = {
	.qos = QOS_GUARANTEED, .cpu_milli = 2000, .memory_bytes = 8 * GIB};
static const struct asked some_cpu = {.qos = QOS_BURSTABLE, .cpu_milli = 500};

static const char own[] = "{\"v\":1,\"policy\":\"restricted\",\"exclusive\":true,\"cpus\":\"2,10\","
			  "\"mems\":\"1\",\"nodes\":\"1\",\"preferred\":true}";
static const char pooled[] =
	"{\"v\":1,\"policy\":\"restricted\",\"exclusive\":false,\"cpus\":\"2,10\","
	"\"mems\":\"1\",\"preferred\":true}";

static void requests_become_the_kubelets_cgroup_values(void **state)
{
	static const struct {
		struct asked a;
		uint64_t shares;
		int64_t quota, limit; /* -1: none */
	} rows[] = {
		{{.qos = QOS_GUARANTEED, .cpu_milli = 8000, .memory_bytes = 4096}, 8192, 800000,
			4096},
		{{.qos = QOS_GUARANTEED, .cpu_milli = 250, .memory_bytes = 1}, 256, 25000, 1},
		{{.qos = QOS_GUARANTEED, .cpu_milli = 1, .memory_bytes = 1}, 2, 1000, 1},
		{{.qos = QOS_GUARANTEED, .cpu_milli = 300000, .memory_bytes = 1}, 262144, 30000000,
			1},
		{{.qos = QOS_BURSTABLE, .cpu_milli = 1500, .memory_bytes = GIB}, 1536, -1, -1},
		{{.qos = QOS_BEST_EFFORT}, 2, -1, -1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct linux_resources r;

		assert_int_equal(kubelet_resources(machine(), &rows[i].a, &r, NULL), 0);
		assert_int_equal(r.cpu_shares, rows[i].shares);
		assert_int_equal(r.has_quota ? r.cpu_quota : -1, rows[i].quota);
		assert_int_equal(r.has_memory_limit ? r.memory_limit : -1, rows[i].limit);
		assert_int_equal(r.cpu_period, 100000);
		/* the machine's page size is always limited */
		assert_int_equal(r.nr_hugepages, 1);
		assert_int_equal(r.hugepages[0].page_bytes, GIB);
		assert_int_equal(r.hugepages[0].bytes, 0);
	}
}

static void huge_pages_become_limits_for_every_size(void **state)
{
	struct asked a = {.qos = QOS_GUARANTEED,
		.cpu_milli = 1000,
		.memory_bytes = GIB,
		.nr_hugepages = 2,
		.hugepages = {{2 * MIB, 8 * MIB}, {GIB, 3 * GIB}}};
	struct linux_resources r;
	struct sim_node n;

	(void)state;
	assert_int_equal(kubelet_resources(machine(), &a, &r, NULL), 0);
	assert_int_equal(r.nr_hugepages, 2);
	assert_int_equal(r.hugepages[0].bytes, 3 * GIB);
	assert_int_equal(r.hugepages[1].page_bytes, 2 * MIB);
	assert_int_equal(r.hugepages[1].bytes, 8 * MIB);
	sim_node_init(&n, machine());
	assert_string_equal(run(&n, "a", some_cpu, "", "", NULL)->cgroup_parent,
		"/kubepods/burstable/pod00000000-0000-4000-8000-000000000001");
	assert_string_equal(run(&n, "b", two_cpus, "", "", NULL)->cgroup_parent,
		"/kubepods/pod00000000-0000-4000-8000-000000000002");
	sim_node_fini(&n);
}

static void an_exclusive_cpu_in_another_cpuset_is_found(void **state)
{
	struct sim_node n;
	struct err e = {0};

	(void)state;
	sim_node_init(&n, machine());
	run(&n, "db", two_cpus, "2,10", "1", own);
	struct container *web = run(&n, "web", some_cpu, "0-1,3-9,11-15", "0-3", NULL);

	assert_int_equal(sim_node_check(&n, &e), 0);
	assert_int_equal(container_set(n.topo, web, "0-7", NULL, NULL), 0);
	assert_int_equal(sim_node_check(&n, &e), -EINVAL);
	assert_string_equal(
		e.text, "CPU 2 is default/db/main's own and in the cpuset of default/web/main");
	web->state = CONTAINER_GONE;
	assert_int_equal(sim_node_check(&n, &e), 0);
	sim_node_fini(&n);
}

static void a_container_without_a_cpuset_is_on_every_cpu(void **state)
{
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	run(&n, "db", two_cpus, "2,10", "1", own);
	run(&n, "web", some_cpu, "", "", NULL);
	assert_int_equal(sim_node_check(&n, NULL), -EINVAL);
	sim_node_fini(&n);
}

static void a_container_is_exclusive_by_its_annotation_or_its_request(void **state)
{
	static const struct {
		const char *cpus, *placement;
		const struct asked *asked;
		bool want;
	} rows[] = {
		{"2,10", own, &two_cpus, true},
		{"2,10", pooled, &two_cpus, false},
		{"2,10", NULL, &two_cpus, true},
		{"2-5", NULL, &two_cpus, false},
		{"", NULL, &two_cpus, false},
		{"2", NULL, &some_cpu, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sim_node n;

		sim_node_init(&n, machine());
		assert_int_equal(container_exclusive(run(&n, "a", *rows[i].asked, rows[i].cpus, "",
					 rows[i].placement)),
			rows[i].want);
		sim_node_fini(&n);
	}
}

static void too_few_exclusive_cpus_and_use_of_reserved_ones_are_found(void **state)
{
	struct sim_node n;
	struct err e = {0};

	(void)state;
	sim_node_init(&n, machine());
	struct container *db = run(&n, "db", two_cpus, "2,10", "1", own);

	cpuset_add(&n.reserved, 10);
	assert_int_equal(sim_node_check(&n, &e), -EINVAL);
	assert_string_equal(e.text, "default/db/main has a reserved CPU for itself");
	assert_int_equal(container_set(n.topo, db, "2", "", NULL), 0);
	assert_int_equal(sim_node_check(&n, &e), -EINVAL);
	assert_string_equal(e.text, "default/db/main asked for 2 CPUs of its own and has 1");
	sim_node_fini(&n);
}

static void a_resized_container_is_checked_against_its_new_request(void **state)
{
	struct sim_node n;
	struct err e = {0};

	(void)state;
	sim_node_init(&n, machine());
	struct container *db = run(&n, "db", two_cpus, "2,10", "1", own);
	struct container *agent =
		run(&n, "agent", (struct asked){.qos = QOS_BEST_EFFORT}, "0-1", "0", NULL);

	assert_int_equal(container_resize(n.topo, db, 1000, 4 * GIB, &e), 0);
	assert_int_equal(db->now.resources.cpu_shares, 1024);
	assert_int_equal(db->now.resources.memory_limit, 4 * GIB);
	assert_false(container_exclusive(db));
	assert_int_equal(container_set(n.topo, db, "2", "", &e), 0);
	assert_true(container_exclusive(db));
	assert_int_equal(container_resize(n.topo, db, 0, 0, &e), 0);
	assert_int_equal(db->asked.cpu_milli, 1000);
	assert_int_equal(container_resize(n.topo, agent, 1000, 0, &e), -EINVAL);
	assert_string_equal(e.text, "container default/agent/main asks for nothing and stays so");
	sim_node_fini(&n);
}

static void a_cpuset_that_the_kernel_would_refuse_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{"16", ""}, {"0-99", "0"}, {"0,", ""}, {"", "4"}, {"0", "x"}, {" ", ""}};
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	struct container *c = run(&n, "a", some_cpu, "0-3", "0", NULL);

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_true(container_set(n.topo, c, bad[i][0], bad[i][1], NULL) < 0);
	assert_int_equal(cpuset_count(&c->now.cpus), 4);
	sim_node_fini(&n);
}

static void a_malformed_placement_annotation_is_refused(void **state)
{
	struct key_value annotation = {NRI_PLACEMENT_ANNOTATION, "{\"exclusive\":3}"};
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	struct container *c = run(&n, "a", some_cpu, "0-3", "0", NULL);

	assert_true(container_annotate(n.topo, c, &annotation, 1, NULL) < 0);
	assert_false(c->placed);
	sim_node_fini(&n);
}

static void nodes_are_nearest_when_no_other_set_is_better(void **state)
{
	static const struct {
		uint64_t nodes;
		bool nearest;
		const char *distance;
	} rows[] = {{0x1, true, "10"}, {0x3, true, "10.5"}, {0x5, false, "15"}, {0xc, true, "10.5"},
		{0x7, true, "14.7"}, {0xf, true, "15.3"}, {0, true, "-"}};
	char buf[DISTANCE_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct nodeset nodes = {rows[i].nodes};

		assert_int_equal(nodes_are_nearest(machine(), nodes), rows[i].nearest);
		assert_string_equal(distance_text(buf, machine(), nodes), rows[i].distance);
	}
}

static struct trace_step step_of(enum trace_op op, const char *pod, const char *container)
{
	return (struct trace_step){.op = op,
		.ns = "default",
		.pod = pod,
		.container = container,
		.asked.qos = QOS_BEST_EFFORT};
}

/* The queued calls as one word: R run pod, C create, S stop, X remove, T stop pod, D remove pod. */
static const char *calls(struct script *s)
{
	static const char signs[] = {[NRI_CALL_RUN_POD] = 'R',
		[NRI_CALL_CREATE] = 'C',
		[NRI_CALL_UPDATE] = 'U',
		[NRI_CALL_STOP] = 'S',
		[NRI_CALL_REMOVE] = 'X',
		[NRI_CALL_STOP_POD] = 'T',
		[NRI_CALL_REMOVE_POD] = 'D'};
	static char word[64];

	memset(word, 0, sizeof word);
	for (size_t i = 0; i < s->nr; i++) {
		word[i] = signs[s->at[i].call];
		if (s->at[i].call == NRI_CALL_CREATE)
			s->at[i].c->state = CONTAINER_RUNNING;
		if (s->at[i].call == NRI_CALL_STOP)
			s->at[i].c->state = CONTAINER_GONE;
	}
	s->nr = 0;
	return word;
}

static void each_step_of_a_trace_makes_the_calls_of_a_runtime(void **state)
{
	struct trace_step steps[] = {
		step_of(TRACE_CREATE, "web", "main"), /* three replicas */
		step_of(TRACE_CREATE, "db", "postgres"),
		step_of(TRACE_CREATE, "db", "exporter"), /* in the same sandbox */
		step_of(TRACE_STOP, "db", "postgres"),   /* the sandbox stays */
		step_of(TRACE_STOP, "web-1", NULL),
		step_of(TRACE_UPDATE, "web", NULL), /* the two that are left */
		step_of(TRACE_RESTART_RUNTIME, NULL, NULL), step_of(TRACE_CREATE, "db", "postgres"),
		step_of(TRACE_STOP, "db", NULL),    /* two containers, one sandbox */
		step_of(TRACE_STOP, "web-1", NULL), /* is gone already */
		step_of(TRACE_STOP_POD, "web", NULL),
		step_of(TRACE_CREATE, "late", "main"), /* nobody is asked */
	};
	static const char *const want[] = {
		"RCRCRC", "RC", "C", "SX", "SXTD", "UU", "", "C", "SXSXTD", "", "TDTD", ""};
	struct trace trace = {.at = steps, .nr = sizeof steps / sizeof *steps};
	struct sim_node n;
	struct script s = {.trace = &trace, .node = &n};

	(void)state;
	steps[0].count = 3;
	steps[11].unasked = true;
	steps[11].cpus = "3";
	sim_node_init(&n, machine());
	for (unsigned i = 0; i < trace.nr; i++) {
		assert_int_equal(script_step(&s, NULL), steps[i].op);
		assert_string_equal(calls(&s), want[i]);
	}
	assert_int_equal(n.at[n.nr - 1]->state, CONTAINER_RUNNING);
	assert_true(n.at[n.nr - 1]->now.pinned);
	assert_int_equal(cpuset_count(&n.at[n.nr - 1]->now.cpus), 1);
	assert_int_equal(script_step(&s, NULL), NR_TRACE_OPS);
	vec_fini(&s);
	sim_node_fini(&n);
}

static void a_second_container_of_one_name_is_a_mistake_in_the_trace(void **state)
{
	struct trace_step steps[] = {
		step_of(TRACE_CREATE, "db", "main"), step_of(TRACE_CREATE, "db", "main")};
	struct trace trace = {.at = steps, .nr = 2};
	struct sim_node n;
	struct script s = {.trace = &trace, .node = &n};
	struct err e = {0};

	(void)state;
	steps[1].line = 7;
	sim_node_init(&n, machine());
	assert_int_equal(script_step(&s, NULL), TRACE_CREATE);
	assert_true(script_step(&s, &e) < 0);
	assert_string_equal(e.text, "line 7: create: default/db/main runs already");
	vec_fini(&s);
	sim_node_fini(&n);
}

/* What print() writes for the node. */
static char *printed(
	const struct sim_node *n, void (*print_it)(FILE *out, const struct sim_node *n))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	print_it(out, n);
	fclose(out);
	return text;
}

static void the_picture_shows_the_container_of_each_cpu(void **state)
{
	static const char want[] =
		"socket 0\n"
		"+- node 0 ----------+ +- node 1 ----------+\n"
		"|  0 # .            | |  2 a _            |\n"
		"|  8 . .            | | 10 a _            |\n"
		"| mem ~~......  25% | | mem ====~~..  75% |\n"
		"+-------------------+ +-------------------+\n"
		"socket 1\n"
		"+- node 2 ----------+ +- node 3 ----------+\n"
		"|  4 b b            | |  6 . .            |\n"
		"| 12 _ _            | | 14 . .            |\n"
		"| mem ........   0% | | mem ........   0% |\n"
		"+-------------------+ +-------------------+\n"
		"a db/main                2,10           node 1    b own/main               4-5    "
		"        node 2\n"
		". shared: 8 CPUs for 1 container   # reserved: 1   _ in no cpuset: 4\n"
		"mem: asked for = on this node alone, ~ on several nodes, drawn in even parts\n";
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	cpuset_add(&n.reserved, 0);
	run(&n, "db", two_cpus, "2,10", "1", own);
	run(&n, "own", two_cpus, "4-5", "0-1", NULL);
	run(&n, "web", some_cpu, "0-1,6-9,14-15", "0-3", NULL);
	run(&n, "gone", two_cpus, "3,11", "1", NULL)->state = CONTAINER_GONE;
	auto_free char *text = printed(&n, picture_draw);

	assert_string_equal(text, want);
	sim_node_fini(&n);
}

static void print_table(FILE *out, const struct sim_node *n)
{
	struct report r = {.out = out, .node = n};

	report_begin(&r);
	report_create(&r, n->at[0], NULL, 3);
	report_create(&r, n->at[1], NULL, 0);
	n->at[1]->state = CONTAINER_REFUSED;
	report_create(&r, n->at[1],
		"TopologyAffinityError: Resources cannot be allocated with Topology locality", 0);
	n->at[0]->state = CONTAINER_GONE;
	report_update(&r, n->at[0], NULL, 1);
	report_update(&r, n->at[0], "no room", 0);
	report_stop(&r, n->at[0], "stopped", 1);
	report_restart(&r, 1, 0);
	assert_int_equal(r.placed, 2);
	assert_int_equal(r.refused, 1);
	assert_int_equal(r.updates_refused, 1);
	assert_int_equal(r.one_node, 1);
	assert_int_equal(r.any_node, 1);
	assert_int_equal(r.updates, 5);
}

static void print_end(FILE *out, const struct sim_node *n)
{
	struct report r = {
		.out = out,
		.node = n,
		.placed = 20,
		.one_node = 13,
		.nearest = 1,
		.any_node = 6,
		.refused = 1,
		.updates_refused = 1,
		.updates = 70,
	};

	report_end(&r);
}

static void the_last_lines_add_up(void **state)
{
	static const char want[] =
		"\n21 containers created: 20 placed (13 on one NUMA node, 1 on nearest ones, 0 "
		"farther apart, 6 on any), 1 refused\n"
		"1 update refused; running containers were given another cpuset 70 times; no CPU "
		"given twice\n";
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	auto_free char *text = printed(&n, print_end);

	assert_string_equal(text + strlen(text) - strlen(want), want);
	sim_node_fini(&n);
}

static void the_table_shows_what_was_asked_for_and_given(void **state)
{
	static const char want[] =
		"POD/CONTAINER           QOS        CPU   MEMORY       GIVEN CPUS         NODES "
		"MEMS  DIST PREF MOVED\n"
		"db/main                 Guaranteed 2     8Gi          2,10               1     1 "
		"    10   yes  3\n"
		"web/main                Burstable  500m  -            shared (14)        -     "
		"0-3   -    -\n"
		"web/main                Burstable  500m  -            refused: "
		"TopologyAffinityError: Resources\n"
		"                                                      cannot be allocated with "
		"Topology locality\n"
		"db/main                 Guaranteed 2     8Gi          updated: cpus 2,10, mems 1 "
		"in force\n"
		"db/main                 Guaranteed 2     8Gi          update refused: no room\n"
		"db/main                 Guaranteed 2     8Gi          stopped, 1 running "
		"container moved\n"
		"-- the runtime came back: 1 running container listed, 0 set anew\n";
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	run(&n, "db", two_cpus, "2,10", "1", own);
	run(&n, "web", some_cpu, "0-1,3-9,11-15", "0-3", NULL);
	auto_free char *text = printed(&n, print_table);

	assert_string_equal(text, want);
	sim_node_fini(&n);
}

static void print_json_lines(FILE *out, const struct sim_node *n)
{
	struct report r = {.out = out, .node = n, .json = true};

	report_begin(&r);
	report_create(&r, n->at[0], NULL, 3);
	report_end(&r);
}

static void the_json_output_has_the_same_facts_line_by_line(void **state)
{
	static const char want[] =
		"{\"event\":\"create\",\"namespace\":\"default\",\"pod\":\"db\",\"container\":"
		"\"main\","
		"\"qos\":\"Guaranteed\",\"cpu\":\"2\",\"memory\":\"8Gi\",\"admitted\":true,"
		"\"exclusive\":true,\"cpus\":\"2,10\",\"mems\":\"1\",\"nodes\":\"1\",\"distance\":"
		"\"10\","
		"\"preferred\":true,\"updates\":3}\n"
		"{\"placed\":1,\"refused\":0,\"oneNode\":1,\"nearest\":0,\"farther\":0,\"anyNode\":"
		"0,\"updatesRefused\":0,\"updates\":3}\n";
	struct sim_node n;

	(void)state;
	sim_node_init(&n, machine());
	run(&n, "db", two_cpus, "2,10", "1", own);
	auto_free char *text = printed(&n, print_json_lines);

	assert_string_equal(text, want);
	sim_node_fini(&n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_become_the_kubelets_cgroup_values),
		cmocka_unit_test(huge_pages_become_limits_for_every_size),
		cmocka_unit_test(an_exclusive_cpu_in_another_cpuset_is_found),
		cmocka_unit_test(a_container_without_a_cpuset_is_on_every_cpu),
		cmocka_unit_test(a_container_is_exclusive_by_its_annotation_or_its_request),
		cmocka_unit_test(too_few_exclusive_cpus_and_use_of_reserved_ones_are_found),
		cmocka_unit_test(a_resized_container_is_checked_against_its_new_request),
		cmocka_unit_test(a_cpuset_that_the_kernel_would_refuse_is_refused),
		cmocka_unit_test(a_malformed_placement_annotation_is_refused),
		cmocka_unit_test(nodes_are_nearest_when_no_other_set_is_better),
		cmocka_unit_test(each_step_of_a_trace_makes_the_calls_of_a_runtime),
		cmocka_unit_test(a_second_container_of_one_name_is_a_mistake_in_the_trace),
		cmocka_unit_test(the_picture_shows_the_container_of_each_cpu),
		cmocka_unit_test(the_last_lines_add_up),
		cmocka_unit_test(the_table_shows_what_was_asked_for_and_given),
		cmocka_unit_test(the_json_output_has_the_same_facts_line_by_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
