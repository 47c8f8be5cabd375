/* Decisions for one container, policy by policy, on KEP-3545's eight nodes. */
#include <numafit/admit.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct node {
	struct topo *t;
	struct settings s;
	struct ledger *l;
	char work[ADMIT_ARENA_BYTES];
};

static struct node *node_on(struct topo *t, struct settings s)
{
	struct node *n = calloc(1, sizeof *n);

	n->t = t;
	n->s = s;
	n->l = ledger_new(n->t, &n->s);
	return n;
}

static struct node *node_new(enum topology_policy policy)
{
	return node_on(machine_of_eight(), settings_of(policy));
}

static void node_free(struct node *n)
{
	struct err e;

	if (ledger_check(n->l, &e))
		fail_msg("%s", e.text);
	ledger_free(n->l);
	free(n->t);
	free(n);
}

static struct decision decide(struct node *n, const struct request *req)
{
	struct decision d;
	struct budget b = budget_of(n->s.merge_visit_budget);
	struct arena a;

	arena_init_fixed(&a, n->work, sizeof n->work);
	admit(&(struct admit_question){n->l, &n->s, .container = req}, &b, &a, &d, NULL);
	return d;
}

static struct decision place(struct node *n, const struct request *req)
{
	struct decision d = decide(n, req);

	if (d.admit) {
		struct cpuset pool =
			d.exclusive ? ledger_pool_without(n->l, &d.cpus) : ledger_view(n->l)->pool;

		assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
		ledger_commit(n->l, req, &d);
	}
	return d;
}

/* CPUs 4n..4n+3 and 32+4n..: eight on each node */
static void one_case(enum topology_policy policy, bool closest, unsigned cpus, uint64_t memory,
	bool admitted, uint64_t nodes, bool preferred)
{
	struct node *n = node_new(policy);
	struct request req = ask("c", QOS_GUARANTEED, cpus * 1000, memory);
	struct decision d;

	n->s.prefer_closest_numa_nodes = closest;
	/* nodes 0 and 3 of the first socket are taken */
	for (unsigned i = 0; i < 2; i++) {
		struct request held = ask(i ? "three" : "zero", QOS_GUARANTEED, 8000, 0);
		struct decision h = {.admit = true,
			.exclusive = true,
			.cpus = n->t->node[i * 3].cpus,
			.mems = n->t->nodes};
		struct cpuset pool = ledger_pool_without(n->l, &h.cpus);

		assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
		ledger_commit(n->l, &held, &h);
	}
	d = place(n, &req);
	assert_int_equal(d.admit, admitted);
	assert_int_equal(d.preferred, preferred);
	if (admitted)
		assert_int_equal(decision_nodes_used(n->t, &d).bits, nodes);
	else
		assert_string_equal(d.reason, "TopologyAffinityError");
	node_free(n);
}

static void each_policy_chooses_and_refuses_as_the_kubelet(void **state)
{
	static const struct {
		enum topology_policy policy;
		bool closest;
		unsigned cpus;
		uint64_t memory;
		bool admitted;
		uint64_t nodes;
		bool preferred;
	} cases[] = {
		/* one node: the lowest that has room */
		{POLICY_BEST_EFFORT, false, 4, GIB(4), true, 0x02, true},
		{POLICY_RESTRICTED, false, 8, GIB(4), true, 0x02, true},
		{POLICY_SINGLE_NUMA_NODE, false, 8, GIB(4), true, 0x02, true},
		/* two nodes: the lowest pair {1,2} at distance 12, the closest {4,5} at 11 */
		{POLICY_RESTRICTED, false, 16, GIB(4), false, 0, false},
		{POLICY_RESTRICTED, false, 16, GIB(80), true, 0x06, true},
		{POLICY_RESTRICTED, true, 16, GIB(80), true, 0x30, true},
		{POLICY_BEST_EFFORT, true, 16, GIB(80), true, 0x30, true},
		{POLICY_SINGLE_NUMA_NODE, false, 16, GIB(80), false, 0, false},
		/* CPUs want two nodes, memory one: no set suits both. Best effort goes on with
		 * {0,1}, which an intersection reaches; node 0 has no CPU left, so eight of them
		 * spill over to 2 */
		{POLICY_BEST_EFFORT, false, 16, GIB(4), true, 0x07, false},
		/* 57 GiB fit on no node beside 8 GiB of huge pages: two are preferred */
		{POLICY_SINGLE_NUMA_NODE, false, 2, GIB(57), false, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		one_case(cases[i].policy, cases[i].closest, cases[i].cpus, cases[i].memory,
			cases[i].admitted, cases[i].nodes, cases[i].preferred);
}

static void policy_none_packs_without_asking_for_hints(void **state)
{
	struct node *n = node_new(POLICY_NONE);
	struct request req = ask("c", QOS_GUARANTEED, 4000, GIB(4));
	struct decision d = place(n, &req);

	(void)state;
	assert_true(d.admit);
	assert_false(d.has_affinity);
	assert_null(d.reasons); /* nothing was merged */
	assert_int_equal(cpuset_count(&d.cpus), 4);
	assert_int_equal(d.mems.bits, 1);
	node_free(n);
}

static void shared_containers_get_the_pool_and_all_memory_nodes(void **state)
{
	static const struct {
		enum qos qos;
		unsigned milli;
	} cases[] = {{QOS_BURSTABLE, 4000}, {QOS_BEST_EFFORT, 0}};
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct request req = ask(i ? "b" : "a", cases[i].qos, cases[i].milli, 0);
		struct decision d = place(n, &req);

		assert_true(d.admit);
		assert_false(d.exclusive);
		assert_true(cpuset_equal(&d.cpus, &ledger_view(n->l)->pool));
		assert_int_equal(d.mems.bits, 0xff);
		assert_int_equal(d.nr_blocks, 0);
	}
	node_free(n);
}

/* Nodes 8 and 9 are GPUs' memory. 100 GiB are on one of them or on two others, 600 GiB not without
 * both. */
static void memory_of_devices_is_for_containers_only_where_a_setting_says_so(void **state)
{
	static const struct {
		enum device_memory setting;
		uint64_t memory;
		bool admitted;
		uint64_t mems;
	} cases[] = {
		{DEVICE_MEMORY_EXCLUDE, 0, true, 0xff},
		{DEVICE_MEMORY_EXCLUDE, GIB(50), true, 0x01},
		{DEVICE_MEMORY_EXCLUDE, GIB(100), true, 0x03},
		{DEVICE_MEMORY_EXCLUDE, GIB(600), false, 0},
		{DEVICE_MEMORY_INCLUDE, 0, true, 0x3ff},
		{DEVICE_MEMORY_INCLUDE, GIB(50), true, 0x01},
		{DEVICE_MEMORY_INCLUDE, GIB(100), true, 0x100},
		{DEVICE_MEMORY_INCLUDE, GIB(600), true, 0x33f},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings s = settings_of(POLICY_BEST_EFFORT);
		struct request req = ask("c", cases[i].memory ? QOS_GUARANTEED : QOS_BURSTABLE, 500,
			cases[i].memory);

		s.device_memory = cases[i].setting;
		struct node *n = node_on(machine_with_gpus(), s);
		struct decision d = place(n, &req);
		assert_int_equal(d.admit, cases[i].admitted);
		assert_int_equal(d.mems.bits, cases[i].mems);
		node_free(n);
	}
}

static void a_guaranteed_container_with_part_of_a_cpu_shares_cpus_but_has_its_memory(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 2500, GIB(4));
	struct decision d = place(n, &req);

	(void)state;
	assert_true(d.admit);
	assert_false(d.exclusive);
	assert_true(cpuset_equal(&d.cpus, &ledger_view(n->l)->pool));
	assert_int_equal(d.mems.bits, 1);
	node_free(n);
}

static void huge_pages_are_booked_where_the_cpus_are(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request req = ask("dpdk", QOS_GUARANTEED, 4000, GIB(2));

	(void)state;
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){GIB(1), GIB(8)};
	for (unsigned i = 0; i < 8; i++) {
		char id[2] = {(char)('a' + i), 0};

		req.container_id = req.pod.uid = id;
		struct decision d = place(n, &req);
		assert_true(d.admit);
		assert_int_equal(d.nr_blocks, 2);
		assert_int_equal(
			d.mems.bits, 1u << i); /* each node has eight pages: one such container */
	}
	req.container_id = req.pod.uid = "z";
	struct decision d = decide(n, &req);
	/* no set of nodes has room: memory has no hints then, which the merge reads as no
	 * preference; the allocation that follows refuses */
	assert_false(d.admit);
	assert_string_equal(d.reason, "UnexpectedAdmissionError");
	assert_non_null(strstr(d.message, "[memorymanager]"));
	node_free(n);
}

static void huge_pages_that_the_machine_lacks_are_refused_by_name(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("c", QOS_GUARANTEED, 1000, GIB(2));

	(void)state;
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){2 << 20, GIB(1)};
	struct decision d = decide(n, &req);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "the machine has no hugepages-2Mi"));
	node_free(n);
}

static void reserved_cpus_are_never_given_and_stay_in_the_pool(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("all", QOS_GUARANTEED, 62000, 0),
		       more = ask("more", QOS_GUARANTEED, 1000, 0);

	(void)state;
	assert_int_equal(cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL), 0);
	struct decision d = place(n, &req);
	assert_true(d.admit);
	assert_false(cpuset_intersects(&d.cpus, &n->s.reserved_cpus));
	assert_true(cpuset_equal(&ledger_view(n->l)->pool, &n->s.reserved_cpus));
	d = place(n, &more);
	assert_false(d.admit);
	node_free(n);
}

static void the_last_cpus_of_the_pool_are_refused(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("all", QOS_GUARANTEED, 64000, 0);

	(void)state;
	struct decision d = decide(n, &req);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "sharedPoolMinimum"));
	req.ask.cpu_milli = 62000;
	n->s.shared_pool_minimum = 3;
	assert_false(decide(n, &req).admit);
	n->s.shared_pool_minimum = 2;
	assert_true(place(n, &req).admit);
	node_free(n);
}

static void a_manager_that_is_off_adds_no_hints(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 4000, GIB(4));

	(void)state;
	n->s.cpu_manager_policy = n->s.memory_manager_policy = MANAGER_NONE;
	struct decision d = place(n, &req);
	assert_true(d.admit);
	assert_false(d.exclusive);
	assert_int_equal(d.nr_blocks, 0);
	assert_int_equal(d.mems.bits, 0xff);
	node_free(n);
}

/* 12 CPUs need two nodes, and so the 4 of the first container are aligned to two. */
static void in_pod_scope_the_first_container_is_aligned_for_all(void **state)
{
	static const struct {
		bool known;
		uint64_t nodes;
		const char *message;
	} cases[] = {
		{true, 0x03, "assumed: the pod needs at once what its sandbox sums up"},
		{false, 0x01, "assumed: this container stands for its pod"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(POLICY_RESTRICTED);
		struct request first = ask("one", QOS_GUARANTEED, 4000, 0), second = first;

		n->s.topology_scope = SCOPE_POD;
		first.pod.uid = second.pod.uid = "pod";
		first.pod.totals = second.pod.totals =
			(struct pod_totals){.known = cases[i].known, .cpu_milli = 12000};
		second.container_id = "two";
		second.ask.cpu_milli = 8000;
		struct decision d = place(n, &first);
		assert_true(d.admit && d.preferred);
		assert_int_equal(d.nodes.bits, cases[i].nodes);
		assert_ptr_equal(strstr(d.message, cases[i].message), d.message);
		d = place(n, &second);
		assert_true(d.admit);
		assert_int_equal(d.nodes.bits, cases[i].nodes);
		assert_non_null(strstr(d.message, "first container"));
		node_free(n);
	}
}

static void a_cut_search_is_reported_with_admission_and_with_refusal(void **state)
{
	(void)state;
	for (unsigned refused = 0; refused < 2; refused++) {
		struct node *n = node_new(refused ? POLICY_RESTRICTED : POLICY_BEST_EFFORT);
		struct request req = ask("c", QOS_GUARANTEED, 20000, GIB(refused ? 4 : 150));

		n->s.prefer_closest_numa_nodes = true;
		n->s.merge_visit_budget = 1;
		struct decision d = decide(n, &req);
		assert_int_equal(d.admit, !refused);
		assert_non_null(strstr(d.message, "cut short by mergeVisitBudget"));
		node_free(n);
	}
}

static void full_pcpus_only_refuses_half_a_core(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("c", QOS_GUARANTEED, 3000, 0);

	(void)state;
	n->s.cpu_options.full_pcpus_only = true;
	struct decision d = decide(n, &req);
	assert_false(d.admit);
	assert_string_equal(d.reason, "SMTAlignmentError");
	assert_string_equal(
		d.message, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
	req.ask.cpu_milli = 4000;
	assert_true(place(n, &req).admit);
	node_free(n);
}

static void strictly_reserved_cpus_are_in_no_cpuset(void **state)
{
	struct node *n = calloc(1, sizeof *n);
	struct request req = ask("c", QOS_BURSTABLE, 100, 0);

	(void)state;
	n->t = machine_of_eight();
	n->s = settings_of(POLICY_BEST_EFFORT);
	n->s.cpu_options.strict_cpu_reservation = true;
	assert_int_equal(cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL), 0);
	n->l = ledger_new(n->t, &n->s);
	struct decision d = place(n, &req);
	assert_true(d.admit);
	assert_int_equal(cpuset_count(&d.cpus), 62);
	assert_false(cpuset_intersects(&d.cpus, &n->s.reserved_cpus));
	node_free(n);
}

static void too_little_working_memory_refuses_and_says_so(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 4000, GIB(4));
	bool admitted = false;

	(void)state;
	for (size_t bytes = 0; bytes <= sizeof n->work && !admitted; bytes += bytes / 4 + 64) {
		struct decision d;
		struct budget b = budget_of(n->s.merge_visit_budget);
		struct arena a;

		arena_init_fixed(&a, n->work, bytes);
		admit(&(struct admit_question){n->l, &n->s, .container = &req}, &b, &a, &d, NULL);
		if (!d.admit)
			assert_non_null(strstr(d.message, "working memory"));
		admitted = d.admit;
	}
	assert_true(admitted);
	node_free(n);
}

static void a_decision_without_devices_of_claims_says_so(void **state)
{
	static const struct {
		enum claims_known claims;
		enum topology_scope scope;
		const char *want;
	} cases[] = {
		{CLAIMS_KNOWN, SCOPE_CONTAINER, ""},
		{CLAIMS_NOT_SHOWN_YET, SCOPE_CONTAINER,
			"not all devices of its claims were looked at: the kubelet's PodResources "
			"had not shown them yet"},
		{CLAIMS_NOT_PUBLISHED, SCOPE_CONTAINER,
			"not all devices of its claims were looked at: no ResourceSlice of this "
			"node says where they are"},
		{CLAIMS_NOT_PUBLISHED, SCOPE_POD,
			"not all devices of its claims were looked at: no ResourceSlice of this "
			"node says where they are; assumed: this container stands for its pod, "
			"whose sandbox has no sums"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(POLICY_BEST_EFFORT);
		struct request req = ask("c", QOS_GUARANTEED, 2000, 0);

		n->s.topology_scope = cases[i].scope;
		req.claims = cases[i].claims;
		struct decision d = place(n, &req);
		assert_true(d.admit);
		assert_string_equal(d.message, cases[i].want);
		node_free(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_policy_chooses_and_refuses_as_the_kubelet),
		cmocka_unit_test(policy_none_packs_without_asking_for_hints),
		cmocka_unit_test(a_decision_without_devices_of_claims_says_so),
		cmocka_unit_test(shared_containers_get_the_pool_and_all_memory_nodes),
		cmocka_unit_test(memory_of_devices_is_for_containers_only_where_a_setting_says_so),
		cmocka_unit_test(
			a_guaranteed_container_with_part_of_a_cpu_shares_cpus_but_has_its_memory),
		cmocka_unit_test(huge_pages_are_booked_where_the_cpus_are),
		cmocka_unit_test(huge_pages_that_the_machine_lacks_are_refused_by_name),
		cmocka_unit_test(reserved_cpus_are_never_given_and_stay_in_the_pool),
		cmocka_unit_test(the_last_cpus_of_the_pool_are_refused),
		cmocka_unit_test(a_manager_that_is_off_adds_no_hints),
		cmocka_unit_test(in_pod_scope_the_first_container_is_aligned_for_all),
		cmocka_unit_test(a_cut_search_is_reported_with_admission_and_with_refusal),
		cmocka_unit_test(full_pcpus_only_refuses_half_a_core),
		cmocka_unit_test(strictly_reserved_cpus_are_in_no_cpuset),
		cmocka_unit_test(too_little_working_memory_refuses_and_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
