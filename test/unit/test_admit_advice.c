/* What becomes of a scheduler's advice on its way through the admission, on KEP-3545's eight nodes
 * of 8 CPUs and 56 GiB each: 0 and 1 are 11 apart, 0 and 2 are 12, 0 and 4 are 30. */
#include <numafit/admit.h>

#include "core_tokens.h"

struct one {
	const char *name;
	enum topology_policy policy;
	unsigned cpus, gib;
	uint64_t taken; /* NUMA nodes without a free CPU */
	bool closest;
	enum advice_verdict so_far;
	uint64_t asked;
	/* what comes of it; each of no_repair and require as repair when ADVICE_NONE */
	enum advice_verdict want, no_repair;
	bool refused;            /* with prefer */
	bool refused_by_require; /* with require */
	uint64_t nodes;          /* with prefer; 0: no affinity */
};

#define ACCEPTED ADVICE_ACCEPTED
#define REPAIRED ADVICE_REPAIRED
#define SINGLE   POLICY_SINGLE_NUMA_NODE
static const struct one ones[] = {
	{"the answer without it", POLICY_RESTRICTED, 4, 4, 0, false, ACCEPTED, 1, ACCEPTED, 0,
		false, false, 1},
	{"one as good", POLICY_RESTRICTED, 4, 4, 0, false, ACCEPTED, 0x20, ACCEPTED, 0, false,
		false, 0x20},
	{"one as good, best-effort", POLICY_BEST_EFFORT, 4, 4, 0, true, ACCEPTED, 0x80, ACCEPTED, 0,
		false, false, 0x80},
	{"one as good, single-numa-node", SINGLE, 8, 50, 0, false, ACCEPTED, 0x40, ACCEPTED, 0,
		false, false, 0x40},
	{"memory alone", POLICY_RESTRICTED, 0, 50, 0, false, ACCEPTED, 0x10, ACCEPTED, 0, false,
		false, 0x10},
	{"the node has changed", POLICY_RESTRICTED, 4, 4, 0, false, ADVICE_ACCEPTED_STALE, 0x20,
		ADVICE_ACCEPTED_STALE, 0, false, false, 0x20},
	{"the node has changed and it does not fit", POLICY_RESTRICTED, 4, 4, 0x20, false,
		ADVICE_ACCEPTED_STALE, 0x20, REPAIRED, ADVICE_REJECTED_NOT_FIT, false, true, 1},
	{"no CPU is left there", POLICY_RESTRICTED, 4, 4, 0x21, false, ACCEPTED, 0x20, REPAIRED,
		ADVICE_REJECTED_NOT_FIT, false, true, 2},
	{"too much for it", POLICY_RESTRICTED, 10, 60, 0, false, ACCEPTED, 0x20,
		ADVICE_REJECTED_NOT_FIT, 0, false, true, 3},
	{"two where one will do", POLICY_RESTRICTED, 4, 4, 0, false, ACCEPTED, 3, REPAIRED,
		ADVICE_REJECTED_NOT_NARROWEST, false, true, 1},
	{"all nodes", POLICY_BEST_EFFORT, 4, 4, 0, false, ACCEPTED, 0xff, REPAIRED,
		ADVICE_REJECTED_NOT_NARROWEST, false, true, 1},
	{"another pair", POLICY_RESTRICTED, 16, 80, 0, false, ACCEPTED, 0x11, ACCEPTED, 0, false,
		false, 0x11},
	{"a pair as close", POLICY_RESTRICTED, 16, 80, 0, true, ACCEPTED, 0x30, ACCEPTED, 0, false,
		false, 0x30},
	{"a pair farther apart", POLICY_RESTRICTED, 16, 80, 0, true, ACCEPTED, 5, REPAIRED,
		ADVICE_REJECTED_FARTHER, false, true, 3},
	{"a pair on two sockets", POLICY_BEST_EFFORT, 16, 80, 0, true, ACCEPTED, 0x11, REPAIRED,
		ADVICE_REJECTED_FARTHER, false, true, 3},
	{"a pair where one node is asked for", SINGLE, 16, 80, 0, false, ACCEPTED, 3,
		ADVICE_REJECTED_POLICY, 0, true, true, 0},
	{"nothing fits", POLICY_RESTRICTED, 4, 4, 0xff, false, ACCEPTED, 4, ADVICE_REJECTED_NOT_FIT,
		0, true, true, 0},
	{"a policy that aligns nothing", POLICY_NONE, 4, 4, 0, false, ACCEPTED, 4,
		ADVICE_REJECTED_POLICY, 0, false, true, 0},
	{"nothing of it is bound to nodes", POLICY_RESTRICTED, 0, 0, 0, false, ACCEPTED, 4,
		ADVICE_NONE, 0, false, false, 0xff},
#define REJECTED(word, verdict)                                                                    \
	{                                                                                          \
		word, POLICY_RESTRICTED, 4, 4, 0, false, verdict, 0x20, verdict, 0, false, true, 1 \
	}
	REJECTED("format", ADVICE_REJECTED_FORMAT),
	REJECTED("version", ADVICE_REJECTED_VERSION),
	REJECTED("uid", ADVICE_REJECTED_UID),
	REJECTED("node", ADVICE_REJECTED_NODE),
	REJECTED("clock", ADVICE_REJECTED_CLOCK),
	REJECTED("expired", ADVICE_REJECTED_EXPIRED),
	REJECTED("numa", ADVICE_REJECTED_NUMA),
	REJECTED("policy", ADVICE_REJECTED_POLICY),
	REJECTED("foreign-cpuset", ADVICE_REJECTED_FOREIGN_CPUSET),
};

static void take(struct node *n, unsigned node)
{
	char id[] = "taken-0";
	const struct advice_ask there = {
		ADVICE_ACCEPTED, ADVICE_REQUIRE, false, nodeset_of(node), {{0}}};
	struct request req = ask(id, QOS_GUARANTEED, PER_NODE * 1000, 0);

	id[strlen("taken-")] = (char)('0' + node);
	req.ask.advice = &there;
	n->s.shared_pool_minimum = 0;
	struct decision d = create(n, &req);
	assert_true(d.admit);
	assert_true(cpuset_equal(&d.cpus, &n->t->node[node].cpus));
}

/* A node like that, where one CPU stays free when all are taken. */
static struct node *node_of(const struct one *x, enum topology_scope scope)
{
	struct node *n = node_new(POLICY_RESTRICTED);

	n->s.device_plugin = false;
	nodeset_each (node, (struct nodeset){x->taken & 0x7f})
		take(n, node);
	if (x->taken & 0x80) {
		struct request req = ask("rest", QOS_GUARANTEED, 7000, 0);

		assert_true(create(n, &req).admit);
	}
	n->s.topology_policy = x->policy;
	n->s.topology_scope = scope;
	n->s.prefer_closest_numa_nodes = x->closest;
	return n;
}

static struct request asks(const struct one *x)
{
	return ask("web", x->cpus || x->gib ? QOS_GUARANTEED : QOS_BURSTABLE,
		x->cpus ? x->cpus * 1000 : 500, GIB(x->gib));
}

#define MUST(is)                                                                                   \
	do {                                                                                       \
		if (!(is))                                                                         \
			fail_msg("%s: line %d: not " #is ": %s, %s", x->name, __LINE__,            \
				advice_verdict_words[d->advice.verdict], d->message);              \
	} while (0)

static void refused_for_it(const struct one *x, const struct decision *d)
{
	MUST(!d->admit);
	MUST(text_equal(d->reason, "TopologyAffinityError"));
	MUST(strstr(d->message, "the scheduler's hint cannot be followed (rejected:"));
	MUST(strstr(d->message, advice_verdict_words[d->advice.verdict]));
	MUST(nodeset_empty(d->advice.given));
}

static void as_wanted(const struct one *x, const struct advice_ask *advice,
	const struct nodeset all, const struct decision *d)
{
	bool plain = advice->repair && advice->mode == ADVICE_PREFER;

	MUST(d->advice.looked_at);
	MUST(d->advice.mode == advice->mode);
	MUST(d->advice.asked.bits == x->asked);
	MUST(d->advice.verdict == (plain || !x->no_repair ? x->want : x->no_repair));
	if (x->want == REPAIRED)
		MUST(d->advice.cause == x->no_repair);
	if (advice->mode == ADVICE_REQUIRE && x->refused_by_require) {
		refused_for_it(x, d);
		return;
	}
	MUST(d->admit == !x->refused);
	if (!d->admit) {
		MUST(nodeset_empty(d->advice.given));
		return;
	}
	MUST(d->has_affinity == (x->nodes != 0));
	MUST(d->advice.given.bits == (x->nodes ? x->nodes : all.bits));
	if (x->nodes)
		MUST(d->nodes.bits == x->nodes);
}

/* Every way to have the hint looked at. */
static void each_way(const struct one *x, enum topology_scope scope)
{
	static const enum advice_mode modes[] = {ADVICE_PREFER, ADVICE_REQUIRE};

	for (unsigned i = 0; i < 4; i++) {
		struct advice_ask advice = {x->so_far, modes[i / 2], i % 2, {x->asked}, {{0}}};
		struct node *n = node_of(x, scope);
		struct request req = asks(x);
		struct decision got, *d = &got;

		req.ask.advice = &advice;
		got = create(n, &req);
		as_wanted(x, &advice, n->t->nodes, d);
		if (got.admit && got.exclusive)
			assert_int_equal(cpuset_count(&got.cpus), x->cpus);
		if (got.admit && x->nodes && got.exclusive)
			assert_true(nodeset_within(topo_nodes_of(n->t, &got.cpus), got.nodes));
		node_free(n);
	}
}

static void every_verdict_has_its_consequence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
		each_way(&ones[i], SCOPE_CONTAINER);
		each_way(&ones[i], SCOPE_POD);
	}
}

/* The same container as all of a pod that is known when its sandbox starts. */
static void a_pod_decided_as_a_whole_gets_the_same_verdicts(void **state)
{
	struct arena a;
	char *work = malloc(ADMIT_ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof ones / sizeof *ones * 2; i++) {
		const struct one *x = &ones[i / 2];
		const struct advice_ask advice = {
			x->so_far, ADVICE_PREFER, true, {x->asked}, {{0}}};
		struct node *n = node_of(x, i % 2 ? SCOPE_POD : SCOPE_CONTAINER);
		const struct request req = asks(x);
		const struct ask app = {.name = "app",
			.cpu_milli = req.ask.cpu_milli,
			.nr_memory = req.ask.nr_memory,
			.memory = {req.ask.memory[0]},
			.advice = &advice};
		struct budget b = budget_of(n->s.merge_visit_budget);
		struct decision whole, *parts;
		struct pod pod = req.pod;

		pod.nr = 1;
		pod.container = &app;
		arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
		admit(&(struct admit_question){engine_ledger(n->g), &n->s, .pod = &pod}, &b, &a,
			&whole, &parts);
		as_wanted(x, &advice, n->t->nodes, whole.admit ? &parts[0] : &whole);
		node_free(n);
	}
	free(work);
}

/* Of its own 4 CPUs the pod gives 2 to one container, and the rest to the other one. */
static void a_pod_with_resources_of_its_own_gets_the_cpus_that_a_hint_names(void **state)
{
	static const struct {
		const char *names;
		enum advice_verdict verdict;
	} cases[] = {
		{"22-23,54-55", ACCEPTED},
		{"20-23", ADVICE_REPAIRED_CPUS}, /* of more cores than need be */
		{"22,54", ADVICE_REPAIRED_CPUS},
	};
	const struct ask own = {
		.guaranteed = true, .whole_pod = true, .name = "", .cpu_milli = 4000};
	char *work = malloc(ADMIT_ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct advice_ask advice = {ACCEPTED, ADVICE_PREFER, true, nodeset_of(5), {{0}}};
		const struct ask parts[] = {
			{.name = "a", .guaranteed = true, .cpu_milli = 2000, .advice = &advice},
			{.name = "b", .advice = &advice},
		};
		const struct pod pod = {.sandbox_id = "own",
			.uid = "own",
			.ns = "",
			.name = "",
			.pod_level = true,
			.own = &own,
			.nr = 2,
			.container = parts};
		struct node *n = node_new(POLICY_RESTRICTED);
		struct budget b = budget_of(n->s.merge_visit_budget);
		struct decision whole, *of;
		struct arena a;

		n->s.device_plugin = false;
		n->s.topology_scope = SCOPE_POD;
		n->s.gates.pod_level_resources = n->s.gates.pod_level_resource_managers = true;
		assert_int_equal(
			cpuset_parse(&advice.cpus, cases[i].names, strlen(cases[i].names), NULL),
			0);
		arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
		admit(&(struct admit_question){engine_ledger(n->g), &n->s, .pod = &pod}, &b, &a,
			&whole, &of);
		assert_true(whole.admit);
		for (unsigned c = 0; c < 2; c++) {
			assert_int_equal(of[c].nodes.bits, 0x20);
			assert_int_equal(of[c].advice.verdict, cases[i].verdict);
		}
		const struct cpuset both = cpuset_or(of[0].cpus, &of[1].cpus);
		assert_int_equal(cpuset_count(&both), 4);
		assert_int_equal(cpuset_equal(&both, &advice.cpus), cases[i].verdict == ACCEPTED);
		node_free(n);
	}
	free(work);
}

static void a_hint_is_ignored_when_the_setting_is_off(void **state)
{
	const struct advice_ask advice = {ADVICE_REJECTED_UID, ADVICE_OFF, true, {0x20}, {{0}}};
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("web", QOS_GUARANTEED, 4000, GIB(4));

	(void)state;
	req.ask.advice = &advice;
	struct decision d = create(n, &req);
	assert_true(d.admit && !d.advice.looked_at);
	assert_int_equal(d.nodes.bits, 1);
	node_free(n);
}

static void in_pod_scope_the_other_containers_follow_the_first(void **state)
{
	const struct advice_ask there = {ADVICE_ACCEPTED, ADVICE_PREFER, true, {0x20}, {{0}}};
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request first = ask("first", QOS_GUARANTEED, 2000, GIB(1));
	struct request second = ask("second", QOS_GUARANTEED, 2000, GIB(1));

	(void)state;
	n->s.topology_scope = SCOPE_POD;
	first.ask.advice = second.ask.advice = &there;
	second.pod.uid = "first";
	second.ask.name = "side";
	assert_int_equal(create(n, &first).nodes.bits, 0x20);
	struct decision d = create(n, &second);
	assert_int_equal(d.nodes.bits, 0x20);
	assert_false(d.advice.looked_at); /* it was settled before */
	node_free(n);
}

static void a_container_that_is_started_again_keeps_its_verdict(void **state)
{
	const struct advice_ask there = {ADVICE_ACCEPTED, ADVICE_REQUIRE, true, {0x20}, {{0}}};
	const struct advice_ask too_old = {
		ADVICE_REJECTED_EXPIRED, ADVICE_REQUIRE, true, {0x20}, {{0}}};
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("web", QOS_GUARANTEED, 2000, GIB(1));

	(void)state;
	req.ask.advice = &there;
	assert_true(create(n, &req).admit);
	req.container_id = "web-again";
	req.ask.advice = &too_old;
	struct decision d = create(n, &req);
	assert_true(d.admit);
	assert_int_equal(d.source, SOURCE_INHERITED);
	assert_int_equal(d.advice.verdict, ADVICE_ACCEPTED);
	assert_int_equal(d.nodes.bits, 0x20);
	node_free(n);
}

static void devices_of_a_container_come_before_its_hint(void **state)
{
	const struct device gpu[] = {{"gpu0", true, true, {0x60}, true}};
	const struct device_resource has = {"nvidia.com/gpu", 1, gpu};
	static const struct {
		uint64_t asked;
		enum advice_verdict want;
		uint64_t nodes;
	} cases[] = {
		{0x40, ACCEPTED, 0x40},
		{0x20, ACCEPTED, 0x20},
		{0x10, REPAIRED, 0x20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct advice_ask advice = {
			ADVICE_ACCEPTED, ADVICE_PREFER, true, {cases[i].asked}, {{0}}};
		struct node *n = node_new(SINGLE);
		struct request req = ask("web", QOS_GUARANTEED, 2000, GIB(1));

		req.pod.attached = &has;
		req.pod.nr_attached = 1;
		req.ask.advice = &advice;
		struct decision d = create(n, &req);
		assert_true(d.admit);
		assert_int_equal(d.advice.verdict, cases[i].want);
		assert_int_equal(d.nodes.bits, cases[i].nodes);
		node_free(n);
	}
}

static void tokens_come_before_a_hint(void **state)
{
	static const struct {
		uint64_t asked;
		enum advice_verdict want;
	} cases[] = {
		{1 << 2, ACCEPTED},
		{1 << 5, ADVICE_REJECTED_FOREIGN_CPUSET},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct advice_ask advice = {
			ADVICE_ACCEPTED, ADVICE_PREFER, false, {cases[i].asked}, {{0}}};
		struct node *n = node_new(POLICY_RESTRICTED);
		char text[LEASE_TEXT_MAX];

		assert_int_equal(allocate(n, "2=0-3", text, NULL), 0);
		struct request req = ask_with("web", 4, text);
		req.ask.nr_memory = 1;
		req.ask.memory[0] = (struct memory_ask){0, GIB(1)};
		req.ask.advice = &advice;
		struct decision d = create(n, &req);
		assert_true(d.admit);
		assert_int_equal(d.advice.verdict, cases[i].want);
		assert_int_equal(count_on(n, &d.cpus, 2), 4);
		assert_int_equal(d.mems.bits, 1 << 2);
		node_free(n);
	}
}

static void a_pod_may_have_a_stricter_policy(void **state)
{
	const struct advice_ask advice = {ADVICE_ACCEPTED, ADVICE_PREFER, false, {3}, {{0}}};
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("web", QOS_GUARANTEED, 16000, GIB(80));

	(void)state;
	req.ask.advice = &advice;
	req.pod.has_policy = true;
	req.pod.policy = SINGLE;
	struct decision d = create(n, &req);
	assert_false(d.admit);
	assert_int_equal(d.policy, SINGLE);
	assert_string_equal(d.reason, "TopologyAffinityError");
	assert_int_equal(d.advice.verdict, ADVICE_REJECTED_POLICY);
	req.pod.policy = POLICY_RESTRICTED;
	d = create(n, &req);
	assert_true(d.admit && d.preferred);
	assert_int_equal(d.policy, POLICY_RESTRICTED);
	assert_int_equal(d.advice.verdict, ADVICE_ACCEPTED);
	node_free(n);
}

static void a_stricter_policy_of_a_pod_also_holds_for_a_resize(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("web", QOS_GUARANTEED, 6000, GIB(4)), more = req;
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	n->s.advice_policy = req.pod.has_policy = true;
	req.pod.policy = SINGLE;
	assert_true(create(n, &req).admit);
	more.ask.cpu_milli = 10000;
	assert_true(engine_update(n->g, n->now_ms, &more, &d, &ups));
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	more.ask.cpu_milli = 8000;
	assert_true(engine_update(n->g, n->now_ms, &more, &d, &ups));
	assert_true(d.admit);
	vec_fini(&ups);
	node_free(n);
}

/* Two containers, one after the other, with 4 CPUs and with 8. Of NUMA nodes 0 and 1 the first has
 * 4 CPUs left, the second 8: where the hint of the first one leads, the other one has no room. */

struct two {
	struct ask part[2];
	struct advice_ask advice[2];
	struct pod pod;
	struct decision whole, part_of[2];
};

static void two_of_a_pod(struct two *p, struct node *n, enum advice_mode mode, bool repair)
{
	char *work = malloc(ADMIT_ARENA_BYTES);
	struct decision *parts;
	struct budget b = budget_of(n->s.merge_visit_budget);
	struct arena a;

	*p = (struct two){
		.advice = {{ADVICE_ACCEPTED, mode, repair, {2}, {{0}}},
			{ADVICE_ACCEPTED, ADVICE_PREFER, repair, {2}, {{0}}}},
		.pod = {.sandbox_id = "two",
			.uid = "two",
			.ns = "",
			.name = "",
			.nr = 2,
			.container = p->part},
	};
	for (unsigned i = 0; i < 2; i++)
		p->part[i] = (struct ask){.name = i ? "b" : "a",
			.cpu_milli = 4000 + i * 4000,
			.advice = &p->advice[i]};
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	admit(&(struct admit_question){engine_ledger(n->g), &n->s, .pod = &p->pod}, &b, &a,
		&p->whole, &parts);
	for (unsigned i = 0; i < 2 && p->whole.admit; i++)
		p->part_of[i] = parts[i];
	free(work);
}

static struct node *node_for_two(enum topology_policy policy)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request four = ask("four", QOS_GUARANTEED, 4000, 0);
	struct request rest = ask("rest", QOS_GUARANTEED, 7000, 0); /* 7 keeps one for sharing */

	n->s.device_plugin = false;
	assert_int_equal(create(n, &four).nodes.bits, 1);
	for (unsigned node = 2; node < NODES - 1; node++)
		take(n, node);
	const struct advice_ask last = {
		ADVICE_ACCEPTED, ADVICE_REQUIRE, false, nodeset_of(NODES - 1), {{0}}};
	rest.ask.advice = &last;
	assert_true(create(n, &rest).admit);
	n->s.topology_policy = policy;
	return n;
}

static void a_hint_takes_nothing_from_the_pods_other_containers(void **state)
{
	static const enum topology_policy policies[] = {SINGLE, POLICY_RESTRICTED,
		POLICY_BEST_EFFORT}; /* the first two would refuse, the third put it on two nodes */

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies * 2; i++) {
		struct node *n = node_for_two(policies[i / 2]);
		struct two p;

		two_of_a_pod(&p, n, ADVICE_PREFER, i % 2);
		assert_true(p.whole.admit);
		assert_int_equal(p.part_of[0].nodes.bits, 1);
		assert_int_equal(
			p.part_of[0].advice.verdict, i % 2 ? REPAIRED : ADVICE_REJECTED_NOT_FIT);
		assert_int_equal(p.part_of[0].advice.cause, ADVICE_REJECTED_NOT_FIT);
		assert_int_equal(p.part_of[0].advice.given.bits, 1);
		assert_int_equal(p.part_of[1].nodes.bits, 2);
		assert_int_equal(p.part_of[1].advice.verdict, ACCEPTED);
		node_free(n);
	}
}

static void a_pod_is_refused_when_a_hint_that_must_be_followed_cannot_be(void **state)
{
	struct node *n = node_for_two(SINGLE);
	struct two p;

	(void)state;
	two_of_a_pod(&p, n, ADVICE_REQUIRE, true);
	assert_false(p.whole.admit);
	assert_string_equal(p.whole.reason, "TopologyAffinityError");
	assert_non_null(strstr(p.whole.message, "rejected:not-fit"));
	assert_int_equal(p.whole.advice.verdict, ADVICE_REJECTED_NOT_FIT);
	node_free(n);
}

static void each_container_of_a_pod_has_its_own_hint(void **state)
{
	struct node *n = node_new(SINGLE);
	struct two p;

	(void)state;
	two_of_a_pod(&p, n, ADVICE_PREFER, false);
	assert_true(p.whole.admit);
	assert_int_equal(p.part_of[0].nodes.bits, 2);
	assert_int_equal(p.part_of[0].advice.verdict, ACCEPTED);
	assert_int_equal(p.part_of[1].nodes.bits, 1); /* 1 is not free any more */
	assert_int_equal(p.part_of[1].advice.verdict, ADVICE_REJECTED_NOT_FIT);
	node_free(n);
}

static void what_is_refused_for_another_reason_has_no_accepted_hint(void **state)
{
	const struct advice_ask advice = {ADVICE_ACCEPTED, ADVICE_PREFER, true, {0x20}, {{0}}};
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("web", QOS_GUARANTEED, 4000, 0);

	(void)state;
	n->s.shared_pool_minimum = 61;
	req.ask.advice = &advice;
	struct decision d = create(n, &req);
	assert_false(d.admit);
	assert_string_equal(
		d.message, "the shared pool would be left with 60 CPUs, sharedPoolMinimum is 61");
	assert_int_equal(d.advice.verdict, ADVICE_REJECTED_NOT_FIT);
	assert_true(nodeset_empty(d.advice.given));
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_has_its_consequence),
		cmocka_unit_test(a_pod_decided_as_a_whole_gets_the_same_verdicts),
		cmocka_unit_test(a_pod_with_resources_of_its_own_gets_the_cpus_that_a_hint_names),
		cmocka_unit_test(a_hint_is_ignored_when_the_setting_is_off),
		cmocka_unit_test(in_pod_scope_the_other_containers_follow_the_first),
		cmocka_unit_test(a_container_that_is_started_again_keeps_its_verdict),
		cmocka_unit_test(devices_of_a_container_come_before_its_hint),
		cmocka_unit_test(tokens_come_before_a_hint),
		cmocka_unit_test(a_pod_may_have_a_stricter_policy),
		cmocka_unit_test(a_stricter_policy_of_a_pod_also_holds_for_a_resize),
		cmocka_unit_test(a_hint_takes_nothing_from_the_pods_other_containers),
		cmocka_unit_test(a_pod_is_refused_when_a_hint_that_must_be_followed_cannot_be),
		cmocka_unit_test(each_container_of_a_pod_has_its_own_hint),
		cmocka_unit_test(what_is_refused_for_another_reason_has_no_accepted_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
