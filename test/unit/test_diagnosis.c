/* What a refusal is said to be, and what would help, in the words of the create's error and the
 * pod's event: on KEP-3545's eight nodes of 8 CPUs and 56 GiB each, CPUs 0 and 32 of node 0
 * reserved. */
#include <numafit/diagnosis.h>
#include <numafit/engine.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

enum { PARTS = 3, NAMES = 16, NAME_MAX_HERE = 12 };

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g;
	unsigned nr;
	char name[NAMES][NAME_MAX_HERE];
};

static int record_nothing(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx;
	(void)r;
	(void)e;
	return 0;
}

static void node_init(struct node *n, enum topology_policy policy)
{
	const struct engine_hooks hooks = {.record = record_nothing};

	*n = (struct node){.t = machine_of_eight()};
	settings_init(&n->s);
	n->s.topology_policy = policy;
	n->s.shared_pool_step = 0;
	(void)cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL);
	n->g = engine_new(n->t, &n->s, &hooks);
}

static void node_fini(struct node *n)
{
	engine_free(n->g);
	free(n->t);
}

static struct request asks(const char *name, unsigned cpus, unsigned gib)
{
	struct request req = ask(name, QOS_GUARANTEED, cpus * 1000, GIB(gib));

	req.ask.name = "main";
	return req;
}

static void run_in(struct node *n, const char *ns, unsigned cpus, unsigned gib)
{
	char *name = n->name[n->nr];
	struct update_list ups = {0};
	struct decision d;

	(void)snprintf(name, NAME_MAX_HERE, "work-%u", n->nr++);
	struct request req = asks(name, cpus, gib);
	req.pod.ns = ns;
	engine_create(n->g, 0, &req, &d, &ups);
	assert_true(d.admit);
	vec_fini(&ups);
}

static void run(struct node *n, unsigned cpus, unsigned gib)
{
	run_in(n, "default", cpus, gib);
}

/* The refusal's class, and its line with what would help. */
static void refused(const struct node *n, const struct request *req, const struct pod *pod,
	enum refusal_class class, const char *line)
{
	const struct admit_question q = {engine_ledger(n->g), &n->s, .container = req, .pod = pod};
	static char work[ADMIT_ARENA_BYTES];
	struct budget b = budget_of(n->s.merge_visit_budget);
	char said[DIAGNOSIS_LINE_MAX];
	struct decision d, *parts;
	struct diagnosis why;
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	admit(&q, &b, &a, &d, pod ? &parts : NULL);
	assert_false(d.admit);
	diagnose_with_remedies(&q, &d, REMEDIES_QUICKLY, NULL, &why);
	assert_string_equal(diagnosis_line(&why, &d, &q, true, said, sizeof said), line);
	assert_int_equal(why.class, class);
}

static void more_than_the_machine_has(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	struct request req = asks("web", 4, 1000);
	refused(&n, &req, NULL, REFUSAL_ABSENT,
		"numafit: cannot place container main (4 CPUs, 1000Gi of memory): this node has "
		"448Gi of memory for containers. Fits with 56Gi of memory. (UnexpectedAdmissionError; "
		"numafit explain default/web)");
	req = asks("web", 4, 8);
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){2 << 20, GIB(1)};
	refused(&n, &req, NULL, REFUSAL_ABSENT,
		"numafit: cannot place container main (4 CPUs, 8Gi of memory, 1Gi of huge pages of "
		"2Mi): this node has no huge pages of 2Mi. It needs another node. "
		"(UnexpectedAdmissionError; numafit explain default/web)");
	node_fini(&n);
}

static void less_is_free_than_is_asked_for(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_BEST_EFFORT);
	for (unsigned i = 0; i < 7; i++)
		run(&n, 8, 4);
	const struct request req = asks("web", 12, 4);
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (12 CPUs, 4Gi of memory): 6 of 62 CPUs are "
		"free on this node. Fits when work-0 (8 CPUs, NUMA node 1) ends, or with 6 CPUs. "
		"(UnexpectedAdmissionError; numafit explain default/web)");
	node_fini(&n);
}

static void enough_is_free_but_not_on_one_node(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	for (unsigned i = 0; i < 8; i++)
		run(&n, 5, 10);
	const struct request req = asks("web", 4, 16);
	refused(&n, &req, NULL, REFUSAL_NOT_TOGETHER,
		"numafit: cannot place container main (4 CPUs, 16Gi of memory): NUMA node 1 has "
		"most free: 3 CPUs, 46Gi of memory; policy restricted allows 1 NUMA node. Fits "
		"when work-0 (5 CPUs, NUMA node 0) ends, or with 3 CPUs. (TopologyAffinityError; "
		"numafit explain default/web)");
	node_fini(&n);
}

static void the_policy_never_admits_it(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	const struct request req = asks("web", 10, 16);
	refused(&n, &req, NULL, REFUSAL_POLICY,
		"numafit: cannot place container main (10 CPUs, 16Gi of memory): policy "
		"single-numa-node allows 1 NUMA node; one NUMA node has, if nothing runs there, 8 "
		"CPUs, 56Gi of memory. Fits with 8 CPUs. (TopologyAffinityError; numafit explain "
		"default/web)");
	n.s.cpu_options.full_pcpus_only = true;
	const struct request odd = asks("web", 3, 16);
	refused(&n, &odd, NULL, REFUSAL_POLICY,
		"numafit: cannot place container main (3 CPUs, 16Gi of memory): full-pcpus-only "
		"gives out whole cores, of 2 CPUs each, and 3 CPUs are not a number of these. Fits "
		"with 4 CPUs, on NUMA node 0, or with 2 CPUs. "
		"(SMTAlignmentError; numafit explain default/web)");
	node_fini(&n);
}

static void the_shared_pool_needs_them(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_BEST_EFFORT);
	n.s.shared_pool_minimum = 8;
	for (unsigned i = 0; i < 6; i++)
		run(&n, 8, 4);
	const struct request req = asks("web", 10, 4);
	refused(&n, &req, NULL, REFUSAL_POOL,
		"numafit: cannot place container main (10 CPUs, 4Gi of memory): 14 CPUs are free, "
		"and sharedPoolMinimum keeps 8 CPUs shared. Fits when work-0 (8 CPUs, NUMA node 1) "
		"ends, or with 8 CPUs. (UnexpectedAdmissionError; numafit explain default/web)");
	node_fini(&n);
}

static void the_hint_is_in_the_way(void **state)
{
	const struct advice_ask must = {
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = nodeset_of(1)};
	struct node n;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	run(&n, 8, 4);
	struct request req = asks("web", 4, 4);
	req.ask.advice = &must;
	refused(&n, &req, NULL, REFUSAL_HINT,
		"numafit: cannot place container main (4 CPUs, 4Gi of memory): the scheduler's "
		"hint cannot be followed (rejected:not-fit): asked for NUMA nodes 1, given none: "
		"there is not enough of cpu on them. Fits without its scheduler's hint (such as "
		"numafit.io/numa-hint), or with \"mode\":\"prefer\" in it, on NUMA node 0, or when work-0 (8 CPUs, NUMA node 1) ends. "
		"(TopologyAffinityError; policy restricted; scheduler's hint rejected:not-fit; numafit explain "
		"default/web)");
	node_fini(&n);
}

static struct pod pod_of(struct ask part[], unsigned nr, unsigned cpus, unsigned gib)
{
	static const char *const names[PARTS] = {"one", "two", "three"};

	for (unsigned i = 0; i < nr; i++)
		part[i] = (struct ask){.name = names[i],
			.cpu_milli = cpus * 1000,
			.nr_memory = 1,
			.memory = {{0, GIB(gib)}}};
	return (struct pod){.sandbox_id = "trio",
		.uid = "trio",
		.ns = "team",
		.name = "trio",
		.qos = QOS_GUARANTEED,
		.nr = nr,
		.container = part};
}

static void containers_fit_alone_and_not_together(void **state)
{
	struct ask part[PARTS];
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	for (unsigned i = 0; i < 8; i++)
		run(&n, 3, 40);
	const struct pod pod = pod_of(part, 3, 3, 4);
	n.s.topology_scope = SCOPE_POD;
	refused(&n, NULL, &pod, REFUSAL_POLICY,
		"numafit: cannot place pod trio (3 containers: 9 CPUs, 12Gi of memory): policy single-numa-node allows 1 "
		"NUMA node; one NUMA node has, if nothing runs there, 8 CPUs, 56Gi of memory. Fits "
		"with 2 CPUs for container one when a pod of another namespace (3 CPUs, NUMA node 1) ends. "
		"(TopologyAffinityError; numafit explain team/trio)");
	const struct pod pair = pod_of(part, 2, 4, 4);
	refused(&n, NULL, &pair, REFUSAL_POD,
		"numafit: cannot place pod trio (2 containers: 8 CPUs, 8Gi of memory): each of its 2 containers would fit "
		"alone, but not together; NUMA node 1 has most free: 5 CPUs, 16Gi of memory; policy "
		"single-numa-node allows 1 NUMA node. Fits when a pod of another namespace (3 CPUs, NUMA node "
		"1) ends, or with 1 CPU for container one. (TopologyAffinityError; numafit explain "
		"team/trio)");
	node_fini(&n);
}

/* The first of two containers has its CPUs for itself, the other shares what the pod has besides.
 */
static void a_pod_with_resources_of_its_own_leaves_too_little_to_share(void **state)
{
	struct ask part[PARTS], own = {.name = "",
					.cpu_milli = 4000,
					.nr_memory = 1,
					.memory = {{0, GIB(8)}},
					.guaranteed = true,
					.whole_pod = true};
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	n.s.topology_scope = SCOPE_POD;
	n.s.gates.pod_level_resource_managers = true;
	struct pod pod = pod_of(part, 2, 4, 4);
	part[0].guaranteed = true;
	part[1] = (struct ask){.name = "two"};
	pod.pod_level = true;
	pod.own = &own;
	refused(&n, NULL, &pod, REFUSAL_SHARES,
		"numafit: cannot place pod trio (2 containers: 4 CPUs, 8Gi of memory): of the "
		"pod's 4 CPUs, 8Gi of memory (spec.resources) containers ask for 4 CPUs, 4Gi of "
		"memory of their own, and others need some CPUs and memory to share. Fits with 3 CPUs for container one. "
		"(TopologyAffinityError; numafit explain team/trio)");
	n.s.topology_policy = POLICY_BEST_EFFORT;
	refused(&n, NULL, &pod, REFUSAL_SHARES,
		"numafit: cannot place pod trio (2 containers: 4 CPUs, 8Gi of memory): of the "
		"pod's 4 CPUs, 8Gi of memory (spec.resources) containers ask for 4 CPUs, 4Gi of "
		"memory of their own, and others need some CPUs and memory to share. Fits with 3 CPUs for container one. "
		"(EmptyPodSharedPoolError; numafit explain team/trio)");
	n.s.topology_policy = POLICY_SINGLE_NUMA_NODE;
	own.cpu_milli = 9000;
	refused(&n, NULL, &pod, REFUSAL_POLICY,
		"numafit: cannot place pod trio (2 containers: 9 CPUs, 8Gi of memory): policy "
		"single-numa-node allows 1 NUMA node; one NUMA node has, if nothing runs there, 8 "
		"CPUs, 56Gi of memory. Fits with 8 CPUs for the pod (spec.resources). "
		"(TopologyAffinityError; numafit explain team/trio)");
	node_fini(&n);
}

static void a_pods_own_policy_is_in_the_way(void **state)
{
	struct ask part[PARTS];
	struct node n;

	(void)state;
	node_init(&n, POLICY_BEST_EFFORT);
	struct pod pod = pod_of(part, 1, 12, 4);
	pod.has_policy = true;
	pod.policy = POLICY_SINGLE_NUMA_NODE;
	refused(&n, NULL, &pod, REFUSAL_POLICY,
		"numafit: cannot place container one (12 CPUs, 4Gi of memory): the pod's own policy "
		"single-numa-node allows 1 NUMA node; one NUMA node has, if nothing runs there, 8 "
		"CPUs, 56Gi of memory. Fits without a topology policy of its own "
		"(numafit.io/topology-policy), on NUMA nodes 0-1, or with 8 CPUs. "
		"(TopologyAffinityError; numafit explain team/trio)");
	node_fini(&n);
}

/* NUMA node 1 has most memory free, and no CPU. */
static void no_node_has_all_of_it(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	run(&n, 8, 4);
	for (unsigned i = 0; i < 5; i++)
		run(&n, 8, 40);
	run(&n, 4, 20);
	run(&n, 4, 30);
	const struct request req = asks("web", 4, 54);
	refused(&n, &req, NULL, REFUSAL_NOT_TOGETHER,
		"numafit: cannot place container main (4 CPUs, 54Gi of memory): no NUMA node has all "
		"of it free: NUMA node 7 has 4 CPUs, 26Gi of memory; NUMA node 1 has 0 CPUs, 52Gi "
		"of memory; policy single-numa-node allows 1 NUMA node. Fits "
		"when work-6 (4 CPUs, NUMA node 0) ends, or with 26Gi of memory. "
		"(UnexpectedAdmissionError; numafit explain default/web)");
	node_fini(&n);
}

static void tokens_are_not_as_many_as_cpus(void **state)
{
	struct ask part[PARTS];
	struct node n;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	n.s.device_plugin = true;
	const struct pod pod = pod_of(part, 2, 4, 4);
	part[1].tokens = 2;
	refused(&n, NULL, &pod, REFUSAL_TOKENS,
		"numafit: cannot place pod trio (2 containers: 8 CPUs, 8Gi of memory): container two of a Guaranteed pod "
		"asks for 2 of numafit.io/cpu and 4 CPUs of its own: the two must be the same, in "
		"a Guaranteed pod. Fits with 4 of numafit.io/cpu for container two, or with 2 CPUs "
		"for container two. (UnexpectedAdmissionError; numafit explain team/trio)");
	node_fini(&n);
}

static void pods_of_other_namespaces_are_counted_for_the_author(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_NONE);
	for (unsigned i = 0; i < 8; i++)
		run_in(&n, i % 2 ? "infra" : "default", 7, 1);
	struct request req = asks("web", 28, 1);
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (28 CPUs, 1Gi of memory): 6 of 62 CPUs are "
		"free on this node. Fits with 6 CPUs, or when work-2 (7 CPUs, NUMA nodes 0,2), "
		"work-4 (7 CPUs, NUMA nodes 0,3-4) and 2 pods of other namespaces (14 CPUs, NUMA "
		"nodes 0-3) end. (UnexpectedAdmissionError; numafit explain default/web)");
	req = asks("web", 62, 1);
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (62 CPUs, 1Gi of memory): 6 of 62 CPUs are free on this node. Fits with 6 CPUs, or when work-0 (7 CPUs, NUMA nodes 0-1), work-2 (7 CPUs, NUMA nodes 0,2), work-4 (7 CPUs, NUMA nodes 0,3-4), 4 pods of other namespaces (28 CPUs, NUMA nodes 0-7) and 1 more end. (UnexpectedAdmissionError; numafit explain default/web)");
	n.s.pod_names = POD_NAMES_ALL;
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (62 CPUs, 1Gi of memory): 6 of 62 CPUs are free on this node. Fits with 6 CPUs, or when work-0 (7 CPUs, NUMA nodes 0-1), infra/work-1 (7 CPUs, NUMA nodes 0-1), work-2 (7 CPUs, NUMA nodes 0,2) and 5 more end. (UnexpectedAdmissionError; numafit explain default/web)");
	node_fini(&n);
}

/* Containers with these CPUs run; work-0, the first, is to have seven. */
static void resize_is_refused(
	enum topology_scope scope, unsigned nr, const unsigned *cpus, const char *line)
{
	struct node n;

	node_init(&n, POLICY_RESTRICTED);
	n.s.topology_scope = scope;
	for (unsigned i = 0; i < nr; i++)
		run(&n, cpus[i], 4);
	struct request req = asks("work-0", 7, 4);
	const struct admit_question q = {engine_ledger(n.g), &n.s, .container = &req};
	char said[DIAGNOSIS_LINE_MAX];
	struct update_list ups = {0};
	struct diagnosis why;
	struct decision d;
	assert_true(engine_update(n.g, 0, &req, &d, &ups));
	assert_false(d.admit);
	diagnose_with_remedies(&q, &d, REMEDIES_QUICKLY, NULL, &why);
	assert_string_equal(diagnosis_line(&why, &d, &q, true, said, sizeof said), line);
	vec_fini(&ups);
	node_fini(&n);
}

/* A running container that is to have more than there is around it fits elsewhere. */
static void a_resize_that_would_fit_elsewhere(void **state)
{
	static const unsigned cpus[] = {3, 5};
	static const char line[] =
		"numafit: cannot resize container main (7 CPUs, 4Gi of memory): it keeps its "
		"CPUs: 6 CPUs for it on NUMA node 0, and policy restricted does not admit 7 CPUs "
		"with those of other NUMA nodes. Fits with 6 CPUs, resized in place, or when it is started anew, on "
		"NUMA node 2. (TopologyAffinityError; numafit explain "
		"default/work-0)";

	(void)state;
	resize_is_refused(SCOPE_CONTAINER, 2, cpus, line);
	resize_is_refused(SCOPE_POD, 2, cpus, line);
}

/* It stays where it is: what helps helps when it comes anew. */
static void a_resize_that_fits_only_when_started_anew(void **state)
{
	static const unsigned cpus[] = {5, 5, 5, 5, 5, 5, 5, 5};

	(void)state;
	resize_is_refused(SCOPE_CONTAINER, 8, cpus,
		"numafit: cannot resize container main (7 CPUs, 4Gi of memory): it keeps its "
		"CPUs: 6 CPUs for it on NUMA node 0, and policy restricted does not admit 7 CPUs "
		"with those of other NUMA nodes. Fits with 6 CPUs, resized in place. "
		"(TopologyAffinityError; numafit explain default/work-0)");
}

/* The size that it has is no advice. */
static void a_resize_that_nothing_less_helps(void **state)
{
	static const unsigned cpus[] = {6, 8, 8, 8, 8, 8, 8, 8};

	(void)state;
	resize_is_refused(SCOPE_CONTAINER, 8, cpus,
		"numafit: cannot resize container main (7 CPUs, 4Gi of memory): 6 of 62 CPUs are "
		"free on this node, with what it has itself. Started anew, it fits when work-1 (8 "
		"CPUs, NUMA node 1) ends. (UnexpectedAdmissionError; numafit explain "
		"default/work-0)");
}

/* To ask for less comes before two pods that end. */
static void the_easier_remedy_is_named_first(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	for (unsigned i = 0; i < 15; i++)
		run(&n, 4, 4);
	const struct request req = asks("web", 8, 4);
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (8 CPUs, 4Gi of memory): 2 of 62 CPUs are "
		"free on this node. Fits with 2 CPUs, or when work-11 (4 CPUs, NUMA node 6) and "
		"work-12 (4 CPUs, NUMA node 6) end. (TopologyAffinityError; numafit explain "
		"default/web)");
	node_fini(&n);
}

/* The pod's init container leaves its CPUs to the other one: it has eight, not sixteen. */
static void cpus_that_are_taken_over_are_counted_once(void **state)
{
	struct ask part[PARTS];
	struct decision d;
	struct node n;

	(void)state;
	node_init(&n, POLICY_SINGLE_NUMA_NODE);
	const struct pod pod = pod_of(part, 2, 8, 1);
	part[0].kind = CONTAINER_INIT;
	engine_run_pod(n.g, 0, &pod, &d);
	assert_true(d.admit);
	for (unsigned i = 0; i < 6; i++)
		run(&n, 8, 4);
	const struct request req = asks("web", 8, 4);
	refused(&n, &req, NULL, REFUSAL_TAKEN,
		"numafit: cannot place container main (8 CPUs, 4Gi of memory): 6 of 62 CPUs are "
		"free on this node. Fits when a pod of another namespace (8 CPUs, NUMA node 1) ends, or with 6 CPUs. "
		"(TopologyAffinityError; numafit explain default/web)");
	node_fini(&n);
}

static void a_line_is_cut_between_words(void **state)
{
	struct node n;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	const struct request req = asks("web", 70, 16);
	const struct admit_question q = {engine_ledger(n.g), &n.s, .container = &req};
	const struct decision d = {.reason = "TopologyAffinityError",
		.policy = POLICY_RESTRICTED,
		.cause = REFUSED_ON_BOOKS};
	char said[DIAGNOSIS_LINE_MAX];
	struct diagnosis why;

	diagnose_in_numbers(&q, &d, &why);
	assert_string_equal(diagnosis_line(&why, &d, &q, false, said, 90),
		"numafit: cannot place container main (70 CPUs, 16Gi of ... (TopologyAffinityError)");
	for (size_t cap = 1; cap < 200; cap++) {
		(void)diagnosis_line(&why, &d, &q, true, said, cap);
		assert_true(strlen(said) < cap);
	}
	node_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_machine_has),
		cmocka_unit_test(less_is_free_than_is_asked_for),
		cmocka_unit_test(enough_is_free_but_not_on_one_node),
		cmocka_unit_test(the_policy_never_admits_it),
		cmocka_unit_test(the_shared_pool_needs_them),
		cmocka_unit_test(the_hint_is_in_the_way),
		cmocka_unit_test(containers_fit_alone_and_not_together),
		cmocka_unit_test(a_pod_with_resources_of_its_own_leaves_too_little_to_share),
		cmocka_unit_test(a_pods_own_policy_is_in_the_way),
		cmocka_unit_test(no_node_has_all_of_it),
		cmocka_unit_test(tokens_are_not_as_many_as_cpus),
		cmocka_unit_test(a_resize_that_would_fit_elsewhere),
		cmocka_unit_test(a_resize_that_fits_only_when_started_anew),
		cmocka_unit_test(a_resize_that_nothing_less_helps),
		cmocka_unit_test(the_easier_remedy_is_named_first),
		cmocka_unit_test(pods_of_other_namespaces_are_counted_for_the_author),
		cmocka_unit_test(cpus_that_are_taken_over_are_counted_once),
		cmocka_unit_test(a_line_is_cut_between_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
