/* What is written is read by our own readers as what was meant; and a scheduler that goes by it
 * comes to the node's own verdicts. */
#include <codec/nrt_write_json.h>

#include <codec/fields_json.h>
#include <codec/nrt_json.h>
#include <jansson.h>
#include <numafit/admit.h>
#include <numafit/engine.h>
#include <numafit/leases.h>
#include <numafit/nrt.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "report_random.h"

enum { ROUNDS = 400, EVENTS = 40, PODS = 30, ARENA_BYTES = 1 << 24, DECISION_BYTES = 1 << 20 };

static char *write_report(const struct report *r)
{
	char *text = nrt_json_write(
		r, &(const struct nrt_write_options){.beat = 3, .topology_policies = true});

	assert_non_null(text);
	return text;
}

static json_t *parse(const char *text)
{
	struct err e;
	json_t *v;

	if (json_parse(text, strlen(text), &v, &e))
		fail_msg("%s", e.text);
	return v;
}

static const char *attribute(const json_t *list, const char *name)
{
	const char *found = NULL;
	json_t *v;
	size_t i;

	json_array_foreach(
		list, i, v) if (text_equal(json_string_value(json_object_get(v, "name")), name))
	{
		assert_null(found);
		found = json_string_value(json_object_get(v, "value"));
	}
	return found;
}

/* A machine of two nodes with the kernel's ids 0 and 8. */
struct small {
	struct topo t;
	struct report_resource resource[2];
	struct report report;
};

static void small_report(struct small *w)
{
	topo_init(&w->t, "small");
	for (unsigned n = 0; n < 2; n++) {
		assert_int_equal(topo_add_node(&w->t, 8 * n, NULL), (int)n);
		assert_int_equal(topo_add_cpu(&w->t, n, n, n, n, n, NULL), 0);
		assert_int_equal(topo_set_memory(&w->t, n, 0, 1 << 30, NULL), 0);
	}
	for (unsigned n = 0; n < 4; n++)
		assert_int_equal(
			topo_set_distance(&w->t, n / 2, n % 2, n / 2 == n % 2 ? 10 : 21, NULL), 0);
	assert_int_equal(topo_seal(&w->t, NULL), 0);
	w->resource[0] = (struct report_resource){"cpu", {{4, 3, 2}, {4, 4, 4}}};
	w->resource[1] = (struct report_resource){"memory", {{5000000001, 9, 8}, {0, 0, 0}}};
	w->report = (struct report){.node_name = "n1",
		.node_uid = "u-1",
		.topo = &w->t,
		.generation = 12,
		.decider = DECIDER_NUMAFIT,
		.has_policy = true,
		.policy = {.policy = POLICY_SINGLE_NUMA_NODE, .scope = SCOPE_POD},
		.resource = w->resource,
		.nr_resources = 2,
		.fragmentation = {.free = 8, .largest = 2, .possible = 8},
		.fingerprint_of = PODS_FINGERPRINT_ALL,
		.fingerprint = "pfp0v001ef46db3751d8e999",
		.pods = "00000000000000ff",
		.pod_zones = "0000000000000003"};
}

static void the_object_is_written_byte_for_byte(void **state)
{
	static const char want[] =
		"{\"apiVersion\":\"topology.node.k8s.io/"
		"v1alpha2\",\"kind\":\"NodeResourceTopology\","
		"\"metadata\":{\"name\":\"n1\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
		"\"kind\":"
		"\"Node\",\"name\":\"n1\",\"uid\":\"u-1\"}]},"
		"\"topologyPolicies\":[\"SingleNUMANodePodLevel\"],"
		"\"attributes\":["
		"{\"name\":\"topologyManagerPolicy\",\"value\":\"single-numa-node\"},"
		"{\"name\":\"topologyManagerScope\",\"value\":\"pod\"},"
		"{\"name\":\"topologyManagerMaxNUMANodes\",\"value\":\"8\"},"
		"{\"name\":\"topologyManagerOptionPreferClosestNumaNodes\",\"value\":\"false\"},"
		"{\"name\":\"nodeTopologyPodsFingerprint\","
		"\"value\":\"pfp0v001ef46db3751d8e999\"},"
		"{\"name\":\"nodeTopologyPodsFingerprintMethod\",\"value\":\"all\"},"
		"{\"name\":\"topology.node.k8s.io/numaplacement-metadata\","
		"\"value\":\"npv0v001::ve=leb89::cc=3::nn=2::bn=0\"},"
		"{\"name\":\"numafit.io/decider\",\"value\":\"numafit\"},"
		"{\"name\":\"numafit.io/generation\",\"value\":\"12\"},"
		"{\"name\":\"numafit.io/fragmentation\",\"value\":\"0.75\"},"
		"{\"name\":\"numafit.io/free-cpus\",\"value\":\"8\"},"
		"{\"name\":\"numafit.io/largest-free-cpus\",\"value\":\"2\"},"
		"{\"name\":\"numafit.io/pods\",\"value\":\"00000000000000ff\"},"
		"{\"name\":\"numafit.io/pod-zones\",\"value\":\"0000000000000003\"},"
		"{\"name\":\"numafit.io/beat\",\"value\":\"3\"}],"
		"\"zones\":["
		"{\"name\":\"node-0\",\"type\":\"Node\",\"costs\":[{\"name\":\"node-0\",\"value\":"
		"10},"
		"{\"name\":\"node-1\",\"value\":21}],\"resources\":["
		"{\"name\":\"cpu\",\"capacity\":\"4\",\"allocatable\":\"3\",\"available\":\"2\"},"
		"{\"name\":\"memory\",\"capacity\":\"5000000001\",\"allocatable\":\"9\","
		"\"available\":\"8\"}]},"
		"{\"name\":\"node-1\",\"type\":\"Node\",\"costs\":[{\"name\":\"node-0\",\"value\":"
		"21},"
		"{\"name\":\"node-1\",\"value\":10}],\"attributes\":["
		"{\"name\":\"numafit.io/numa-node-id\",\"value\":\"8\"},"
		"{\"name\":\"topology.node.k8s.io/numaplacement-vector\",\"value\":\"!\"}],"
		"\"resources\":["
		"{\"name\":\"cpu\",\"capacity\":\"4\",\"allocatable\":\"4\",\"available\":\"4\"},"
		"{\"name\":\"memory\",\"capacity\":\"0\",\"allocatable\":\"0\","
		"\"available\":\"0\"}]}]}";
	struct small *w = calloc(1, sizeof *w);

	(void)state;
	small_report(w);
	w->report.has_placement = true;
	w->report.placement =
		(struct numaplacement){"npv0v001::ve=leb89::cc=3::nn=2::bn=0", {NULL, "!"}};
	auto_free char *text = write_report(&w->report);
	assert_string_equal(text, want);
	free(w);
}

static void attributes_follow_the_policy(void **state)
{
	static const struct {
		struct report_policy policy;
		bool known;
		const char *old, *name, *value;
	} table[] = {
		{{.policy = POLICY_NONE}, true, NULL, "topologyManagerPolicy", "none"},
		{{.policy = POLICY_NONE, .scope = SCOPE_POD}, true, NULL, "topologyManagerScope",
			"pod"},
		{{.policy = POLICY_BEST_EFFORT}, true, "BestEffortContainerLevel",
			"topologyManagerPolicy", "best-effort"},
		{{.policy = POLICY_BEST_EFFORT, .scope = SCOPE_POD}, true, "BestEffortPodLevel",
			"topologyManagerScope", "pod"},
		{{.policy = POLICY_RESTRICTED}, true, "RestrictedContainerLevel",
			"topologyManagerPolicy", "restricted"},
		{{.policy = POLICY_RESTRICTED, .scope = SCOPE_POD}, true, "RestrictedPodLevel",
			"topologyManagerOptionMaxAllowableNumaNodes", NULL},
		{{.policy = POLICY_SINGLE_NUMA_NODE}, true, "SingleNUMANodeContainerLevel",
			"topologyManagerScope", "container"},
		{{.prefer_closest_numa_nodes = true}, true, NULL,
			"topologyManagerOptionPreferClosestNumaNodes", "true"},
		{{.max_allowable_numa_nodes = 16}, true, NULL,
			"topologyManagerOptionMaxAllowableNumaNodes", "16"},
		{{.strategy = ALLOCATION_MOST}, true, NULL,
			"topologyManagerOptionNumaAllocationStrategy", "most-allocated"},
		{{.strategy = ALLOCATION_LEAST}, true, NULL,
			"topologyManagerOptionNumaAllocationStrategy", "least-allocated"},
		{{.strategy = ALLOCATION_NONE}, true, NULL,
			"topologyManagerOptionNumaAllocationStrategy", NULL},
		{{.policy = POLICY_RESTRICTED}, false, NULL, "topologyManagerPolicy", NULL},
	};
	struct small *w = calloc(1, sizeof *w);

	(void)state;
	small_report(w);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		w->report.policy = table[i].policy;
		w->report.has_policy = table[i].known;
		auto_free char *text = write_report(&w->report);
		json_t *v = parse(text);
		const json_t *old = json_object_get(v, "topologyPolicies");
		const char *value = attribute(json_object_get(v, "attributes"), table[i].name);

		if (!text_equal(value, table[i].value) || !value != !table[i].value)
			fail_msg("case %zu: %s", i, value);
		assert_int_equal(json_array_size(old), table[i].old != NULL);
		assert_true(text_equal(json_string_value(json_array_get(old, 0)), table[i].old));
		json_decref(v);
	}
	free(w);
}

static void disabled_attributes_are_left_out(void **state)
{
	struct small *w = calloc(1, sizeof *w);

	(void)state;
	small_report(w);
	w->report.fingerprint_of = PODS_FINGERPRINT_NONE;
	auto_free char *text = nrt_json_write(&w->report, &(const struct nrt_write_options){0});
	assert_null(strstr(text, "Fingerprint"));
	assert_null(strstr(text, "topologyPolicies"));
	assert_null(strstr(text, "numaplacement"));
	assert_non_null(strstr(text, "\"numafit.io/beat\",\"value\":\"0\""));
	w->report.node_name = "\xff";
	assert_null(nrt_json_write(&w->report, &(const struct nrt_write_options){0}));
	free(w);
}

/* Random machines */

static void assert_read_back(
	const struct report *r, struct sched_topology *t, struct resource_table *names)
{
	assert_int_equal(t->nr_zones, r->topo->ids.nr);
	assert_int_equal(t->resources.nr, r->nr_resources);
	assert_true(t->max_numa_nodes >= t->nr_zones && t->max_numa_nodes >= 8);
	assert_int_equal(t->policy, r->policy.policy);
	assert_int_equal(t->scope, r->policy.scope);
	assert_string_equal(t->fingerprint, r->fingerprint);
	assert_int_equal(t->fingerprint_method, FINGERPRINT_EXCLUSIVE);
	for (unsigned z = 0; z < t->nr_zones; z++) {
		assert_int_equal(t->zone_id[z], z);
		for (unsigned to = 0; to < t->nr_zones; to++)
			assert_int_equal(t->cost[z * t->nr_zones + to], r->topo->distance[z][to]);
	}
	for (size_t i = 0; i < r->nr_resources; i++) {
		const struct zone_resource *got =
			sched_topology_find(t, resource_number(names, r->resource[i].name));

		assert_non_null(got);
		assert_true(got->listed == nodeset_first(t->nr_zones).bits);
		for (unsigned z = 0; z < t->nr_zones; z++) {
			const struct report_amounts *want = &r->resource[i].on[z];

			assert_true(want->available <= want->allocatable &&
				    want->allocatable <= want->capacity);
			assert_true((uint64_t)got->capacity[z].whole == want->capacity);
			assert_true((uint64_t)got->allocatable[z].whole == want->allocatable);
			assert_true((uint64_t)got->available[z].whole == want->available);
			assert_int_equal(got->available[z].nano, 0);
		}
	}
}

/* A container that asks for whole CPUs and memory, as the node and as a scheduler sees it. */
struct newcomer {
	struct request request;
	struct amount amount[1 + TOPO_KINDS];
	struct sched_container container;
	struct sched_pod pod;
};

static void any_newcomer(struct random_node *w, struct newcomer *p, struct resource_table *names)
{
	unsigned nr = 0;

	any_request(w, "newcomer", QOS_GUARANTEED, &p->request);
	p->amount[nr++] = (struct amount){
		RESOURCE_CPU, quantity_of((int64_t)p->request.ask.cpu_milli / QUANTITY_MILLIS)};
	for (unsigned i = 0; i < p->request.ask.nr_memory; i++) {
		const struct memory_ask *m = &p->request.ask.memory[i];
		char name[64];

		(void)topo_kind_name(
			w->t, (unsigned)topo_kind_of_page(w->t, m->page_bytes), name, sizeof name);
		p->amount[nr++] = (struct amount){
			resource_number(names, name), quantity_of((int64_t)m->bytes)};
	}
	p->container = (struct sched_container){.name = "main", .requests = {p->amount, nr}};
	p->pod = (struct sched_pod){
		.qos = QOS_GUARANTEED, .container = &p->container, .nr_containers = 1};
}

static bool node_admits(const struct random_node *w, const struct request *req)
{
	static char room[DECISION_BYTES];
	struct decision d;
	struct budget b = budget_of(w->s.merge_visit_budget);
	struct arena a;

	arena_init_fixed(&a, room, sizeof room);
	admit(&(struct admit_question){engine_ledger(w->g), &w->s, .container = req}, &b, &a, &d,
		NULL);
	return d.admit;
}

static bool scheduler_fits(
	const struct newcomer *p, const struct sched_node *node, const struct resource_table *names)
{
	static const struct nrt_args least_numa = {.strategy = NRT_LEAST_NUMA_NODES};
	struct nrt_ask *ask = nrt_ask_new(&p->pod, &least_numa, names);
	bool fits = nrt_filter(ask, node) == NRT_FITS;
	int64_t score = nrt_score(ask, node);

	assert_true(score >= 0 && score <= SCHED_SCORE_MAX);
	nrt_ask_free(ask);
	return fits;
}

/* In what state the node is: under the policy single-numa-node the stock filter, by the object,
 * says of a container just what the node will say. */
static void a_scheduler_reaches_the_same_verdicts_as_the_node(void **state)
{
	unsigned nr_fit = 0, nr_not = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct random_node *w = random_node_new(round + 1);
		struct amount allocatable[8];
		struct sched_node node = {.name = "n", .allocatable = {allocatable, 0}};
		struct sched_topology *t;
		struct resource_table names;
		struct report report;
		struct arena a;
		struct err e;

		for (unsigned i = 0; i < EVENTS; i++)
			random_node_event(w);
		w->s.topology_policy = POLICY_SINGLE_NUMA_NODE;
		arena_init(&a, ARENA_BYTES);
		resource_table_init(&names);
		assert_int_equal(
			report_take(&report, engine_ledger(w->g), &w->s, &w->facts, &a), 0);
		auto_free char *text = write_report(&report);
		json_t *v = parse(text);
		if (nrt_json_read(v, &(const struct sched_reader){&names, &a}, &t, &e))
			fail_msg("%s", e.text);
		assert_read_back(&report, t, &names);
		for (size_t i = 0; i < report.nr_resources; i++)
			allocatable[node.allocatable.nr++] = (struct amount){
				resource_number(&names, report.resource[i].name), quantity_of(1)};
		node.topology = t;
		for (unsigned i = 0; i < PODS; i++) {
			struct newcomer p;

			any_newcomer(w, &p, &names);
			bool fits = scheduler_fits(&p, &node, &names);
			if (fits != node_admits(w, &p.request))
				fail_msg("seed %u, pod %u: the scheduler says %d: %llum CPU, %llu "
					 "bytes\n%s",
					round + 1, i, fits,
					(unsigned long long)p.request.ask.cpu_milli,
					(unsigned long long)p.request.ask.memory[0].bytes, text);
			nr_fit += fits;
			nr_not += !fits;
		}
		sched_topology_free(t);
		json_decref(v);
		resource_table_fini(&names);
		arena_fini(&a);
		random_node_free(w);
	}
	assert_true(nr_fit > ROUNDS && nr_not > ROUNDS);
}

static void sixty_four_nodes_have_indexes_up_to_63(void **state)
{
	struct topo *t = calloc(1, sizeof *t);
	struct settings s = {.mode = MODE_MANAGE};
	struct report_facts facts = {.node_name = "n", .node_uid = "u"};
	struct report report;
	struct arena a;

	(void)state;
	topo_init(t, "altix");
	for (unsigned n = 0; n < NODES_MAX; n++) {
		assert_int_equal(topo_add_node(t, 2 * n, NULL), (int)n);
		assert_int_equal(topo_add_cpu(t, n, n, n, n, n, NULL), 0);
	}
	assert_int_equal(topo_seal(t, NULL), 0);
	struct ledger *l = ledger_new(t, &s);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(report_take(&report, l, &s, &facts, &a), 0);
	auto_free char *text = write_report(&report);
	json_t *v = parse(text), *zones = json_object_get(v, "zones");
	assert_int_equal(json_array_size(zones), NODES_MAX);
	for (unsigned n = 0; n < NODES_MAX; n++) {
		const json_t *zone = json_array_get(zones, n);

		assert_int_equal(zone_numa_id(json_string_value(json_object_get(zone, "type")),
					 json_string_value(json_object_get(zone, "name"))),
			n);
		assert_int_equal(json_array_size(json_object_get(zone, "costs")), NODES_MAX);
	}
	assert_string_equal(
		attribute(json_object_get(v, "attributes"), "topologyManagerMaxNUMANodes"), "64");
	json_decref(v);
	arena_fini(&a);
	ledger_free(l);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_object_is_written_byte_for_byte),
		cmocka_unit_test(attributes_follow_the_policy),
		cmocka_unit_test(disabled_attributes_are_left_out),
		cmocka_unit_test(a_scheduler_reaches_the_same_verdicts_as_the_node),
		cmocka_unit_test(sixty_four_nodes_have_indexes_up_to_63),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
