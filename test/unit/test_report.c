#include <numafit/report.h>

#include <errno.h>
#include <numafit/engine.h>
#include <numafit/leases.h>
#include <numafit/shares.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core_machine.h"

/* KEP-3545's eight nodes; CPUs 0 and 32, of node 0, are reserved unless the case says otherwise. */
struct world {
	struct topo *t;
	struct settings s;
	struct ledger *l;
	struct report_facts facts;
	struct arena arena;
	struct report report;
};

enum { ARENA_BYTES = 1 << 22 };

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	w->t = machine_of_eight();
	w->s = settings_of(POLICY_SINGLE_NUMA_NODE);
	w->s.reserved_cpus = list("0,32");
	w->l = ledger_new(w->t, &w->s);
	w->facts = (struct report_facts){.node_name = "n1", .node_uid = "u1", .generation = 7};
	arena_init(&w->arena, ARENA_BYTES);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	free(w->t);
	arena_fini(&w->arena);
	free(w);
	return 0;
}

static struct report_amounts amounts(const struct world *w, const char *resource, unsigned node)
{
	for (size_t i = 0; i < w->report.nr_resources; i++)
		if (text_equal(w->report.resource[i].name, resource))
			return w->report.resource[i].on[node];
	fail_msg("%s is not reported", resource);
	return (struct report_amounts){0};
}

/* The largest container that is reported is what some NUMA node has available, always. */
static void take(struct world *w)
{
	uint64_t largest = 0;

	assert_int_equal(report_take(&w->report, w->l, &w->s, &w->facts, &w->arena), 0);
	for (size_t i = 1; i < w->report.nr_resources; i++)
		assert_true(strcmp(w->report.resource[i - 1].name, w->report.resource[i].name) < 0);
	nodeset_each (n, w->t->nodes)
		if (amounts(w, "cpu", n).available > largest)
			largest = amounts(w, "cpu", n).available;
	assert_true(w->report.fragmentation.largest == largest);
	assert_true(w->report.fragmentation.free >= largest);
}

static void assert_amounts(const struct world *w, const char *resource, unsigned node,
	uint64_t capacity, uint64_t allocatable, uint64_t available)
{
	struct report_amounts got = amounts(w, resource, node);

	if (got.capacity != capacity || got.allocatable != allocatable ||
		got.available != available)
		fail_msg("%s on node %u: %llu %llu %llu", resource, node,
			(unsigned long long)got.capacity, (unsigned long long)got.allocatable,
			(unsigned long long)got.available);
}

/* Enter a container of its own pod, in the ledger as it is. */
static void hold(struct world *w, const struct request *req, const struct decision *d)
{
	struct cpuset pool = ledger_pool_without(w->l, &d->cpus);
	struct err e;

	if (ledger_fits(w->l, req, d, &e))
		fail_msg("%s", e.text);
	if (d->exclusive)
		assert_int_equal(ledger_set_pool(w->l, &pool, NULL), 0);
	ledger_commit(w->l, req, d);
	if (ledger_check(w->l, &e))
		fail_msg("%s", e.text);
}

/* A container that has CPUs to itself and memory of these nodes. */
static void hold_some(
	struct world *w, const char *id, const char *cpus, uint64_t nodes, uint64_t bytes)
{
	struct decision d = {.admit = true, .exclusive = true, .cpus = list(cpus)};
	struct request req;

	d.nr_blocks = bytes > 0;
	d.blocks[0] = (struct memory_block){.nodes = {nodes}, .bytes = bytes};
	req = ask(id, QOS_GUARANTEED, 1000 * cpuset_count(&d.cpus), bytes);
	hold(w, &req, &d);
}

/* A container in the shared pool. */
static void hold_shared(struct world *w, const char *id, enum qos qos, enum container_kind kind,
	unsigned milli, uint64_t bytes)
{
	struct request req = ask(id, qos, milli, bytes);
	const struct decision d = {.admit = true};

	req.ask.kind = kind;
	req.ask.memory[0] = (struct memory_ask){0, bytes};
	req.ask.nr_memory = bytes > 0;
	hold(w, &req, &d);
}

static void an_idle_machine_has_all_but_the_reserved_available(void **state)
{
	static const char *const names[] = {"cpu", "hugepages-1Gi", "memory"};
	struct world *w = *state;

	w->s.nr_reserved_memory = 1;
	w->s.reserved_memory[0] = (struct reserved_memory){
		.has_node = true, .node_id = 2, .type = "memory", .bytes = GIB(1)};
	ledger_free(w->l);
	w->l = ledger_new(w->t, &w->s);
	take(w);
	assert_int_equal(w->report.nr_resources, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(w->report.resource[i].name, names[i]);
	for (unsigned n = 0; n < 8; n++) {
		uint64_t cpus = n ? 8 : 6, memory = GIB(n == 2 ? 55 : 56);

		assert_amounts(w, "cpu", n, 8, cpus, cpus);
		assert_amounts(w, "memory", n, GIB(64), memory, memory);
		assert_amounts(w, "hugepages-1Gi", n, GIB(8), GIB(8), GIB(8));
	}
	assert_int_equal(w->report.generation, 7);
	assert_string_equal(w->report.node_name, "n1");
	assert_string_equal(w->report.node_uid, "u1");
}

static void held_cpus_and_memory_are_not_available(void **state)
{
	struct world *w = *state;

	hold_some(w, "one", "4-5", 0x02, GIB(10));
	hold_shared(w, "shared", QOS_BURSTABLE, CONTAINER_APP, 3000, 0);
	take(w);
	assert_amounts(w, "cpu", 0, 8, 6, 6);
	assert_amounts(w, "cpu", 1, 8, 8, 6);
	assert_amounts(w, "memory", 1, GIB(64), GIB(56), GIB(46));
	assert_amounts(w, "memory", 0, GIB(64), GIB(56), GIB(56));
}

static void the_minimum_of_the_shared_pool_is_not_available(void **state)
{
	struct world *w = *state;

	w->s.shared_pool_minimum = 59; /* of 64 CPUs */
	take(w);
	assert_amounts(w, "cpu", 0, 8, 6, 5);
	assert_amounts(w, "cpu", 7, 8, 8, 5);
	hold_some(w, "one", "4-7", 0, 0);
	take(w);
	assert_amounts(w, "cpu", 1, 8, 8, 1);
	w->s.cpu_options.strict_cpu_reservation = true; /* the reserved ones are no help */
	take(w);
	assert_amounts(w, "cpu", 7, 8, 8, 0);
	w->s.mode = MODE_SHADOW; /* the kubelet's gives all */
	take(w);
	assert_amounts(w, "cpu", 1, 8, 8, 4);
	assert_amounts(w, "cpu", 7, 8, 8, 8);
}

static void with_full_pcpus_only_a_partly_kept_core_is_not_available(void **state)
{
	struct world *w = *state;

	w->s.reserved_cpus = list("0"); /* its sibling is 32 */
	take(w);
	assert_amounts(w, "cpu", 0, 8, 7, 7);
	w->s.cpu_options.full_pcpus_only = true;
	take(w);
	assert_amounts(w, "cpu", 0, 8, 6, 6);
	hold_some(w, "one", "4", 0, 0);
	take(w);
	assert_amounts(w, "cpu", 1, 8, 8, 6);
}

/* "A group of nodes serves containers together only." */
static void memory_held_on_a_group_of_nodes_is_not_available_on_one_of_them(void **state)
{
	struct world *w = *state;

	hold_some(w, "pair", "8-9", 0x0c, GIB(60));
	hold_some(w, "alone", "16", 0x10, GIB(6));
	take(w);
	for (unsigned n = 2; n < 4; n++) {
		assert_amounts(w, "memory", n, GIB(64), GIB(56), 0);
		assert_amounts(w, "hugepages-1Gi", n, GIB(8), GIB(8), 0);
	}
	assert_amounts(w, "memory", 4, GIB(64), GIB(56), GIB(50));
	assert_amounts(w, "hugepages-1Gi", 4, GIB(8), GIB(8), GIB(8));
}

static void without_booked_memory_all_of_it_is_available(void **state)
{
	struct world *w = *state;

	w->s.shared_pool_minimum = 60;
	hold_some(w, "one", "4-5", 0x06, GIB(10));
	w->s.memory_manager_policy = MANAGER_NONE;
	take(w);
	assert_amounts(w, "cpu", 1, 8, 8, 2);
	assert_amounts(w, "memory", 1, GIB(64), GIB(56), GIB(56));
	w->s.cpu_manager_policy = MANAGER_NONE;
	take(w);
	assert_amounts(w, "cpu", 0, 8, 6, 6);
	assert_amounts(w, "cpu", 1, 8, 8, 8);
}

/* Enter a claim of CPUs and memory of NUMA node 1. */
static void hold_claim(struct world *w, const char *cpus, uint64_t bytes)
{
	const struct claim_share share = {.request = "r",
		.pool = "n1",
		.device = "numa1",
		.cpus = 2,
		.nr_memory = 1,
		.memory = {{0, bytes}}};
	const struct resource_claim claim = {
		.uid = "claim", .ns = "default", .name = "claim", .nr = 1, .share = &share};
	struct decision d = {.admit = true,
		.source = SOURCE_HELD,
		.exclusive = true,
		.cpus = list(cpus),
		.nr_blocks = 1,
		.blocks = {{.nodes = nodeset_of(1), .bytes = bytes}}};
	const struct request req = share_request(&claim, 0, 1, "claim/0", "0", "p1");
	struct cpuset pool = ledger_pool_without(w->l, &d.cpus);
	struct err e;

	assert_int_equal(ledger_set_pool(w->l, &pool, NULL), 0);
	ledger_hold(w->l, &req, &d);
	if (ledger_check(w->l, &e))
		fail_msg("%s", e.text);
}

static void what_a_claim_holds_is_not_available_whatever_the_managers_are(void **state)
{
	static const enum manager_policy policy[] = {MANAGER_NONE, MANAGER_STATIC};
	struct world *w = *state;

	hold_claim(w, "4-5", GIB(10));
	for (unsigned i = 0; i < 4; i++) {
		w->s.cpu_manager_policy = policy[i / 2];
		w->s.memory_manager_policy = policy[i % 2];
		take(w);
		assert_amounts(w, "cpu", 0, 8, 6, 6);
		assert_amounts(w, "cpu", 1, 8, 8, 6);
		assert_amounts(w, "memory", 1, GIB(64), GIB(56), GIB(46));
		assert_amounts(w, "memory", 2, GIB(64), GIB(56), GIB(56));
	}
	w->s.cpu_manager_policy = MANAGER_NONE;
	w->s.shared_pool_minimum = 62; /* others run in the pool, all of it */
	take(w);
	assert_amounts(w, "cpu", 1, 8, 8, 6);
}

static void a_node_without_cpus_reports_zero_cpus(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	topo_init(w->t, "cxl");
	for (unsigned n = 0; n < 2; n++) {
		assert_int_equal(topo_add_node(w->t, 8 * n, NULL), (int)n);
		assert_int_equal(topo_set_memory(w->t, n, 0, GIB(4), NULL), 0);
	}
	for (unsigned cpu = 0; cpu < 4; cpu++)
		assert_int_equal(topo_add_cpu(w->t, cpu, 0, cpu, 0, 0, NULL), 0);
	assert_int_equal(topo_set_memory(w->t, 0, UINT64_C(2) << 20, GIB(1), NULL), 0);
	assert_int_equal(topo_seal(w->t, NULL), 0);
	w->l = ledger_new(w->t, &w->s);
	take(w);
	assert_amounts(w, "cpu", 0, 4, 3, 3);
	assert_amounts(w, "cpu", 1, 0, 0, 0);
	assert_amounts(w, "memory", 1, GIB(4), GIB(4), GIB(4));
	assert_amounts(w, "hugepages-2Mi", 0, GIB(1), GIB(1), GIB(1));
	assert_amounts(w, "hugepages-2Mi", 1, 0, 0, 0);
}

/* The zone is there with all that it has, and nothing of it for pods. */
static void memory_of_devices_is_reported_as_not_allocatable(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	free(w->t);
	w->t = machine_with_gpus();
	w->l = ledger_new(w->t, &w->s);
	take(w);
	assert_amounts(w, "memory", 7, GIB(64), GIB(64), GIB(64));
	assert_amounts(w, "memory", 8, GIB(128), 0, 0);
	assert_amounts(w, "cpu", 8, 0, 0, 0);
	w->s.device_memory = DEVICE_MEMORY_INCLUDE;
	ledger_free(w->l);
	w->l = ledger_new(w->t, &w->s);
	take(w);
	assert_amounts(w, "memory", 8, GIB(128), GIB(128), GIB(128));
}

static void every_node_lists_every_device_even_with_none(void **state)
{
	static const struct report_devices devices[] = {
		{"vendor.example/nic", {[1] = 4, [2] = 2}, {[1] = 1, [2] = 3}},
		{"numafit.io/cpu", {[0] = 99}, {0}},
		{"a.example/gpu", {[7] = 2}, {[7] = 2}},
	};
	struct world *w = *state;

	w->facts.devices = devices;
	w->facts.nr_devices = 3;
	take(w);
	assert_int_equal(w->report.nr_resources, 6);
	assert_amounts(w, "vendor.example/nic", 1, 4, 4, 3);
	assert_amounts(w, "vendor.example/nic", 2, 2, 2, 0);
	assert_amounts(w, "vendor.example/nic", 0, 0, 0, 0);
	assert_amounts(w, "a.example/gpu", 7, 2, 2, 0);
	assert_amounts(w, "numafit.io/cpu", 0, 99, 99, 99);
	w->s.device_plugin = true; /* what is known here is newer */
	take(w);
	assert_int_equal(w->report.nr_resources, 6);
	assert_amounts(w, "numafit.io/cpu", 0, 6, 6, 6);
	assert_amounts(w, "numafit.io/cpu", 1, 8, 8, 8);
}

/* The lowest tokens of the node. */
static struct tokenset tokens(unsigned node, unsigned nr)
{
	struct tokenset set = {0};

	for (unsigned i = 0; i < nr; i++)
		tokenset_add(&set, (struct token){(uint16_t)node, (uint16_t)i});
	return set;
}

static void leased_tokens_reduce_the_available_cpus(void **state)
{
	struct tokenset three = tokens(5, 3);
	struct world *w = *state;
	uint64_t name;

	w->s.device_plugin = true;
	assert_int_equal(leases_may_allocate(ledger_view(w->l)->leases, 1, &three, &name, NULL), 0);
	(void)leases_allocate(ledger_view(w->l)->leases, 1, &three, name);
	hold_some(w, "one", "20", 0, 0);
	take(w);
	assert_amounts(w, "cpu", 5, 8, 8, 4);
	assert_amounts(w, "numafit.io/cpu", 5, 8, 7, 4);
	assert_amounts(w, "numafit.io/cpu", 4, 8, 8, 8);
}

static void the_reported_policy_is_that_of_the_side_that_decides(void **state)
{
	static const struct report_policy kubelets = {.policy = POLICY_RESTRICTED,
		.scope = SCOPE_POD,
		.max_allowable_numa_nodes = 12,
		.cpu_manager = MANAGER_STATIC};
	struct world *w = *state;

	w->s.prefer_closest_numa_nodes = true;
	take(w);
	assert_string_equal(decider_words[w->report.decider], "numafit");
	assert_true(w->report.has_policy);
	assert_int_equal(w->report.policy.policy, POLICY_SINGLE_NUMA_NODE);
	assert_int_equal(w->report.policy.scope, SCOPE_CONTAINER);
	assert_int_equal(w->report.policy.cpu_manager, MANAGER_STATIC);
	assert_true(w->report.policy.prefer_closest_numa_nodes);
	w->s.mode = MODE_SHADOW;
	take(w);
	assert_string_equal(decider_words[w->report.decider], "kubelet");
	assert_false(w->report.has_policy);
	w->facts.kubelet = &kubelets;
	take(w);
	assert_true(w->report.has_policy);
	assert_memory_equal(&w->report.policy, &kubelets, sizeof kubelets);
	w->s.mode = MODE_OFF;
	take(w);
	assert_string_equal(decider_words[w->report.decider], "none");
	assert_true(w->report.has_policy);
	assert_int_equal(w->report.policy.policy, POLICY_NONE);
}

/* Pods */

static bool has_gpu(void *ctx, const struct holding *h, struct nodeset *nodes)
{
	struct nodeset *where = ctx;

	if (!text_equal(h->request.pod.name, "gpu"))
		return false;
	*nodes = nodeset_or(*nodes, *where);
	return true;
}

static void assert_fingerprint(struct world *w, enum pods_fingerprint of, const char *const *pods)
{
	char want[FINGERPRINT_TEXT_MAX];
	uint64_t part[16];
	size_t nr = 0;

	for (; pods[nr]; nr++)
		part[nr] = fingerprint_pod("default", pods[nr]);
	w->s.nrt_fingerprint = of;
	take(w);
	assert_int_equal(w->report.fingerprint_of, of);
	assert_string_equal(w->report.fingerprint, fingerprint_text(want, part, nr));
}

static void the_fingerprint_covers_the_pods_that_a_scheduler_counts(void **state)
{
	struct nodeset node1 = nodeset_of(1);
	struct world *w = *state;
	struct request second = ask("one-more", QOS_GUARANTEED, 0, 0);

	assert_fingerprint(w, PODS_FINGERPRINT_EXCLUSIVE, (const char *const[]){NULL});
	hold_some(w, "one", "4-5", 0, 0);
	second.pod.name = "one";
	second.pod.uid = "one";
	second.ask.name = "log";
	hold(w, &second, &(const struct decision){.admit = true});
	hold_shared(w, "part", QOS_GUARANTEED, CONTAINER_APP, 1500, 0);
	hold_shared(w, "memory", QOS_GUARANTEED, CONTAINER_SIDECAR, 1500, GIB(1));
	hold_shared(w, "init", QOS_GUARANTEED, CONTAINER_INIT, 2000, GIB(1));
	hold_shared(w, "burst", QOS_BURSTABLE, CONTAINER_APP, 2000, GIB(1));
	hold_shared(w, "gpu", QOS_BEST_EFFORT, CONTAINER_APP, 0, 0);
	assert_fingerprint(w, PODS_FINGERPRINT_ALL,
		(const char *const[]){"one", "part", "memory", "init", "burst", "gpu", NULL});
	assert_fingerprint(
		w, PODS_FINGERPRINT_EXCLUSIVE, (const char *const[]){"one", "memory", NULL});
	w->facts.ctx = &node1;
	w->facts.has_devices = has_gpu;
	assert_fingerprint(
		w, PODS_FINGERPRINT_EXCLUSIVE, (const char *const[]){"one", "memory", "gpu", NULL});
	w->s.nrt_fingerprint = PODS_FINGERPRINT_NONE;
	take(w);
	assert_string_equal(w->report.fingerprint, "");
}

/* Its entry stands in the ledger as a pod's would, as Guaranteed. */
static void a_claim_is_no_pod_of_the_fingerprint(void **state)
{
	struct world *w = *state;

	hold_claim(w, "4-5", GIB(10));
	assert_fingerprint(w, PODS_FINGERPRINT_ALL, (const char *const[]){NULL});
	assert_string_equal(w->report.pods, "");
	hold_some(w, "own", "8", 1U << 2, GIB(1));
	hold_shared(w, "web", QOS_BURSTABLE, CONTAINER_APP, 500, 0);
	assert_fingerprint(w, PODS_FINGERPRINT_EXCLUSIVE, (const char *const[]){"own", NULL});
	assert_int_equal(strlen(w->report.pods), REPORT_POD_DIGITS);
	assert_fingerprint(w, PODS_FINGERPRINT_ALL, (const char *const[]){"own", "web", NULL});
}

/* Whatever the fingerprint is of: to be found one by one, without the containers' number. */
static void each_pod_with_exclusive_resources_is_named(void **state)
{
	static const char *const names[] = {"one", "two", "three"};
	char text[sizeof names / sizeof *names * REPORT_POD_DIGITS + 1] = "", hex[32];
	struct world *w = *state;
	struct request second = ask("side", QOS_GUARANTEED, 0, 0);
	uint64_t last = 0;

	take(w);
	assert_string_equal(w->report.pods, "");
	assert_string_equal(w->report.pod_zones, "");
	hold_some(w, "one", "4-5", 0, 0);
	second.pod.name = second.pod.uid = "one";
	hold(w, &second, &(const struct decision){.admit = true});
	hold_some(w, "two", "6-7", 0, 0);
	hold_some(w, "three", "8-9", 0, 0);
	hold_shared(w, "burst", QOS_BURSTABLE, CONTAINER_APP, 2000, GIB(1));
	for (size_t n = 0; n < 3; n++) { /* ascending */
		uint64_t next = UINT64_MAX;

		for (size_t i = 0; i < 3; i++) {
			uint64_t part = fingerprint_pod("default", names[i]);

			if (part > last && part < next)
				next = part;
		}
		(void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)next);
		(void)strcat(text, hex);
		last = next;
	}
	for (unsigned of = PODS_FINGERPRINT_NONE; of <= PODS_FINGERPRINT_EXCLUSIVE; of++) {
		w->s.nrt_fingerprint = of;
		take(w);
		assert_string_equal(w->report.pods, text);
	}
}

/* As a hint may have said something else. */
static void each_pod_is_named_with_the_numa_nodes_that_it_is_on(void **state)
{
	struct world *w = *state;
	struct request second = ask("side", QOS_GUARANTEED, 2000, 0);

	hold_some(w, "one", "4-5", 0x04, GIB(10));
	take(w);
	assert_string_equal(w->report.pod_zones, "0000000000000006");
	second.pod.name = second.pod.uid = "one";
	hold(w, &second,
		&(const struct decision){.admit = true, .exclusive = true, .cpus = list("62-63")});
	take(w);
	assert_string_equal(w->report.pod_zones, "0000000000000086");
	hold_some(w, "two", "9", 0, 0);
	take(w);
	bool is_first = fingerprint_pod("default", "two") < fingerprint_pod("default", "one");
	assert_string_equal(w->report.pod_zones,
		is_first ? "00000000000000040000000000000086" : "00000000000000860000000000000004");
}

static void assert_placement(struct world *w, const char *metadata, const char *on_2)
{
	take(w);
	assert_int_equal(w->report.has_placement, metadata != NULL);
	if (!metadata)
		return;
	assert_string_equal(w->report.placement.metadata, metadata);
	assert_int_equal(!w->report.placement.vector[2], !on_2);
	if (on_2)
		assert_string_equal(w->report.placement.vector[2], on_2);
}

static void the_placement_is_reported_when_each_container_is_on_one_node(void **state)
{
	struct nodeset gpus = nodeset_of(2);
	struct world *w = *state;

	hold_some(w, "one", "4-5", 0x02, GIB(1));
	hold_shared(w, "burst", QOS_BURSTABLE, CONTAINER_APP, 2000, 0);
	assert_placement(w, NULL, NULL); /* it is not asked for */
	w->s.nrt_placement = true;
	assert_placement(w, "npv0v001::ve=leb89::cc=1::nn=8::bn=1", NULL);
	w->facts.ctx = &gpus;
	w->facts.has_devices = has_gpu;
	hold_shared(w, "gpu", QOS_BURSTABLE, CONTAINER_APP, 0, 0);
	hold_some(w, "two", "8", 0, 0);
	hold_some(w, "three", "6-7", 0, 0);
	hold_some(w, "four", "36", 0, 0);
	take(w); /* node 1 has three of five */
	assert_string_equal(w->report.placement.metadata, "npv0v001::ve=leb89::cc=5::nn=8::bn=1");
	assert_non_null(w->report.placement.vector[2]);
	assert_int_equal(strlen(w->report.placement.vector[2]), 2);
	gpus = (struct nodeset){0x06};
	assert_placement(w, NULL, NULL); /* a device on two */
	gpus = nodeset_of(2);
	hold_shared(w, "spread", QOS_GUARANTEED, CONTAINER_APP, 1500, GIB(1));
	assert_placement(w, NULL, NULL); /* counted, and nowhere: what it has is not booked */
}

static void cpus_on_one_node_and_memory_on_another_count_as_two_nodes(void **state)
{
	struct world *w = *state;

	w->s.nrt_placement = true;
	hold_some(w, "one", "4-5", 0x08, GIB(1));
	assert_placement(w, NULL, NULL);
}

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	enum { ROOM = 64 << 10 };
	struct world *w = *state;
	char *room = malloc(ROOM);
	unsigned failed = 0;
	struct arena a;

	hold_some(w, "one", "4-5", 0, 0);
	hold_some(w, "two", "8", 0, 0);
	w->s.nrt_placement = w->s.device_plugin = true;
	w->s.nrt_fingerprint = PODS_FINGERPRINT_ALL;
	for (size_t len = 0; len <= ROOM; len += 64) {
		arena_init_fixed(&a, room, len);
		int rc = report_take(&w->report, w->l, &w->s, &w->facts, &a);

		assert_true(rc == 0 || (rc == -ENOMEM && len < ROOM));
		failed += rc != 0;
	}
	assert_true(failed > 0);
	free(room);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_idle_machine_has_all_but_the_reserved_available),
		IN_WORLD(held_cpus_and_memory_are_not_available),
		IN_WORLD(the_minimum_of_the_shared_pool_is_not_available),
		IN_WORLD(with_full_pcpus_only_a_partly_kept_core_is_not_available),
		IN_WORLD(memory_held_on_a_group_of_nodes_is_not_available_on_one_of_them),
		IN_WORLD(without_booked_memory_all_of_it_is_available),
		IN_WORLD(what_a_claim_holds_is_not_available_whatever_the_managers_are),
		IN_WORLD(a_claim_is_no_pod_of_the_fingerprint),
		IN_WORLD(a_node_without_cpus_reports_zero_cpus),
		IN_WORLD(memory_of_devices_is_reported_as_not_allocatable),
		IN_WORLD(every_node_lists_every_device_even_with_none),
		IN_WORLD(leased_tokens_reduce_the_available_cpus),
		IN_WORLD(the_reported_policy_is_that_of_the_side_that_decides),
		IN_WORLD(the_fingerprint_covers_the_pods_that_a_scheduler_counts),
		IN_WORLD(each_pod_with_exclusive_resources_is_named),
		IN_WORLD(each_pod_is_named_with_the_numa_nodes_that_it_is_on),
		IN_WORLD(the_placement_is_reported_when_each_container_is_on_one_node),
		IN_WORLD(cpus_on_one_node_and_memory_on_another_count_as_two_nodes),
		IN_WORLD(an_arena_that_is_too_small_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
