/* What is written is read by our own reader as what was meant, and Volcano's plugin, as we play it,
 * gives out no CPU that the node does not have left. */
#include <codec/numatopology_json.h>

#include <codec/fields_json.h>
#include <jansson.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "report_random.h"

enum { ROUNDS = 200, EVENTS = 40, ARENA_BYTES = 1 << 24 };

static json_t *parse(const char *text)
{
	struct err e;
	json_t *v;

	if (json_parse(text, strlen(text), &v, &e))
		fail_msg("%s", e.text);
	return v;
}

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

/* Two sockets of two cores of two threads, NUMA nodes 0 and 8; CPU 0 is reserved. */
static struct topo *two_sockets(void)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "two");
	for (unsigned n = 0; n < 2; n++) {
		assert_int_equal(topo_add_node(t, 8 * n, NULL), (int)n);
		assert_int_equal(topo_set_memory(t, n, 0, 1 << 30, NULL), 0);
	}
	for (unsigned cpu = 0; cpu < 8; cpu++)
		assert_int_equal(
			topo_add_cpu(t, cpu, cpu % 4 / 2, cpu % 4, cpu % 4 / 2, cpu % 4 / 2, NULL),
			0);
	assert_int_equal(topo_seal(t, NULL), 0);
	return t;
}

static void hold(struct ledger *l, const char *uid, const char *container, unsigned place,
	const char *id, const char *cpus)
{
	const struct request req = {.container_id = id,
		.ask.name = container,
		.ask.place = place,
		.pod = {.sandbox_id = uid, .uid = uid, .ns = "ml", .name = uid},
		.cpus = "",
		.mems = ""};
	struct decision d = {.admit = true, .exclusive = *cpus, .cpus = list(cpus)};
	struct cpuset pool = ledger_pool_without(l, &d.cpus);

	assert_int_equal(ledger_set_pool(l, &pool, NULL), 0);
	ledger_commit(l, &req, &d);
	assert_int_equal(ledger_check(l, NULL), 0);
}

static void the_object_is_written_byte_for_byte(void **state)
{
	static const char want[] =
		"{\"apiVersion\":\"nodeinfo.volcano.sh/v1alpha1\",\"kind\":\"Numatopology\","
		"\"metadata\":{\"name\":\"n1\",\"annotations\":{\"numafit.io/beat\":\"4\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\","
		"\"uid\":\"u-1\"}]},\"spec\":{"
		"\"policies\":{\"CPUManagerPolicy\":\"static\","
		"\"TopologyManagerPolicy\":\"restricted\"},"
		"\"resReserved\":{\"cpu\":\"1\"},"
		"\"numares\":{\"cpu\":{\"allocatable\":\"0,4\",\"capacity\":8}},"
		"\"cpuDetail\":{\"0\":{},\"1\":{\"core\":1},"
		"\"2\":{\"numa\":8,\"socket\":1},\"3\":{\"numa\":8,\"socket\":1,\"core\":1},"
		"\"4\":{},\"5\":{\"core\":1},"
		"\"6\":{\"numa\":8,\"socket\":1},\"7\":{\"numa\":8,\"socket\":1,\"core\":1}},"
		"\"podAllocations\":["
		"{\"uid\":\"a\",\"name\":\"a\",\"namespace\":\"ml\",\"containerAllocations\":["
		"{\"name\":\"x\",\"allocations\":{\"cpu\":\"1,5\"}},"
		"{\"name\":\"w\",\"allocations\":{\"cpu\":\"2-3\"}}]},"
		"{\"uid\":\"b\",\"name\":\"b\",\"namespace\":\"ml\",\"containerAllocations\":["
		"{\"name\":\"y\",\"allocations\":{\"cpu\":\"6-7\"}}]}]}}";
	struct settings s = {.mode = MODE_MANAGE,
		.topology_policy = POLICY_RESTRICTED,
		.cpu_manager_policy = MANAGER_STATIC,
		.reserved_cpus = list("0")};
	struct topo *t = two_sockets();
	struct ledger *l = ledger_new(t, &s);
	struct report_facts facts = {.node_name = "n1", .node_uid = "u-1"};
	struct report r;
	struct arena a;

	(void)state;
	hold(l, "b", "y", 0, "1", "6-7");
	hold(l, "a", "w", 1, "2", "2-3");
	hold(l, "c", "z", 0, "3", "");
	hold(l, "a", "x", 0, "4", "1,5");
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(report_take(&r, l, &s, &facts, &a), 0);
	auto_free char *text = numatopology_json_write(&r, l, &s, 4);
	assert_string_equal(text, want);
	facts.node_uid = "\xff";
	assert_int_equal(report_take(&r, l, &s, &facts, &a), 0);
	assert_null(numatopology_json_write(&r, l, &s, 4));
	arena_fini(&a);
	ledger_free(l);
	free(t);
}

static void in_shadow_mode_the_kubelets_policies_are_published(void **state)
{
	struct report_policy kubelets = {
		.policy = POLICY_SINGLE_NUMA_NODE, .cpu_manager = MANAGER_NONE};
	struct settings s = {.mode = MODE_SHADOW, .cpu_manager_policy = MANAGER_STATIC};
	struct topo *t = two_sockets();
	struct ledger *l = ledger_new(t, &s);
	struct report_facts facts = {.node_name = "n1", .node_uid = "u-1", .kubelet = &kubelets};
	struct report r;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(report_take(&r, l, &s, &facts, &a), 0);
	auto_free char *known = numatopology_json_write(&r, l, &s, 4);
	assert_non_null(strstr(known, "{\"CPUManagerPolicy\":\"none\","
				      "\"TopologyManagerPolicy\":\"single-numa-node\"}"));
	facts.kubelet = NULL;
	assert_int_equal(report_take(&r, l, &s, &facts, &a), 0);
	auto_free char *unknown = numatopology_json_write(&r, l, &s, 4);
	assert_non_null(strstr(unknown, "\"policies\":{}"));
	arena_fini(&a);
	ledger_free(l);
	free(t);
}

static void assert_read_back(const struct random_node *w, const struct volcano_node *got)
{
	const struct topo *t = w->t;
	struct cpuset free_cpus = cpuset_minus(t->cpus, &ledger_view(engine_ledger(w->g))->held);
	struct cpuset promised = ledger_promised_cpus(engine_ledger(w->g), NULL);
	unsigned at = 0;

	free_cpus = cpuset_minus(free_cpus, &promised);
	assert_string_equal(got->cpu_manager_policy, "static");
	assert_string_equal(got->topology_manager_policy, "best-effort");
	assert_true(got->lists_cpus && cpuset_equal(&got->free, &free_cpus));
	assert_int_equal(got->reserved, cpuset_count(&w->s.reserved_cpus));
	assert_int_equal(got->nr_cpus, t->nr_cpus);
	cpuset_each (cpu, &t->cpus) {
		const struct volcano_cpu *c = &got->cpu[at++], *first;

		assert_int_equal(c->cpu, cpu);
		assert_int_equal(got->ids.id[c->numa], t->ids.id[t->cpu[cpu].node]);
		assert_int_equal(c->socket, t->cpu[cpu].socket);
		first = &got->cpu[t->cpu[cpu].core]; /* random machines have CPUs from 0 on */
		assert_int_equal(c->core, first->core);
		for (unsigned other = 0; other + 1 < at; other++)
			if (got->cpu[other].socket == c->socket && got->cpu[other].core == c->core)
				assert_int_equal(t->cpu[other].core, t->cpu[cpu].core);
	}
}

static struct volcano_answer play(const struct volcano_node *node, unsigned nr_cpus)
{
	struct key_value policy = {"volcano.sh/numa-topology-policy", "best-effort"};
	const struct amount cpu = {RESOURCE_CPU, quantity_of(nr_cpus)};
	const struct sched_container container = {.name = "main", .requests = {&cpu, 1}};
	const struct sched_pod pod = {.qos = QOS_GUARANTEED,
		.annotations = &policy,
		.nr_annotations = 1,
		.container = &container,
		.nr_containers = 1};
	struct volcano_answer a;

	volcano_predicate(node, &pod, &a, NULL);
	return a;
}

static void random_machines_are_read_back_and_played_on(void **state)
{
	unsigned nr_fit = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct random_node *w = random_node_new(round + 1);
		struct volcano_node node;
		struct report r;
		struct arena a;
		struct err e;

		for (unsigned i = 0; i < EVENTS; i++)
			random_node_event(w);
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(report_take(&r, engine_ledger(w->g), &w->s, &w->facts, &a), 0);
		auto_free char *text =
			numatopology_json_write(&r, engine_ledger(w->g), &w->s, round);
		json_t *v = parse(text);
		if (numatopology_json_read(v, &a, &node, &e))
			fail_msg("%s", e.text);
		assert_read_back(w, &node);
		for (unsigned nr = 1; nr < 8; nr++) {
			struct volcano_answer got = play(&node, nr);

			/* best-effort lets pods through that do not fit, with nothing */
			if (got.code != SCHED_SUCCESS || cpuset_empty(&got.cpus))
				continue;
			/* more where cores of two sockets have one number, as exporters number them
			 */
			assert_true(cpuset_count(&got.cpus) >= nr);
			assert_true(cpuset_within(&got.cpus, &node.free));
			nr_fit++;
		}
		json_decref(v);
		arena_fini(&a);
		random_node_free(w);
	}
	assert_true(nr_fit > ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_object_is_written_byte_for_byte),
		cmocka_unit_test(in_shadow_mode_the_kubelets_policies_are_published),
		cmocka_unit_test(random_machines_are_read_back_and_played_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
