/* One budget of steps for each event: on machines whose NUMA nodes are unequal, where the sets of
 * nodes that have enough of everything are too many to look at. Steps are counted, never time. */
#include <numafit/admit.h>
#include <numafit/cpus.h>

#include "core_uneven.h"

#include <numafit/text.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261122, MACHINES = 20, GIB_SHIFT = 30, MANY = 120 };

static char work[ADMIT_ARENA_BYTES];

static void begin(struct uneven *u, unsigned i, unsigned nodes, bool huge_pages)
{
	*u = (struct uneven){.r = {SEED + 7919 * i}};
	uneven_machine(u, nodes, huge_pages);
}

static void end(struct uneven *u)
{
	struct err e;

	if (ledger_check(engine_ledger(u->g), &e))
		fail_msg("%s", e.text);
	uneven_end(u);
}

/* 3 CPUs and 375 GiB: on 64 nodes of 8 to 15 GiB some 30 of them. */
static void hard_container(struct uneven *u)
{
	uneven_pod(u, 1);
	u->container[0].cpu_milli = 3000;
	uneven_add_memory(&u->container[0], 0, UINT64_C(375) << GIB_SHIFT);
}

static struct decision admit_alone(struct uneven *u, struct budget *b)
{
	const struct request req = uneven_request(u, 0);
	struct decision d;
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	admit(&(struct admit_question){engine_ledger(u->g), &u->s, .container = &req}, b, &a, &d,
		NULL);
	return d;
}

/* The fewest nodes that have so much memory: the largest ones. */
static unsigned fewest_nodes(const struct uneven *u, uint64_t bytes)
{
	struct nodeset left = u->t.nodes;
	unsigned nr = 0;

	for (; bytes && !nodeset_empty(left); nr++) {
		unsigned largest = nodeset_next(left, 0);

		nodeset_each (n, left)
			if (u->t.node[n].memory[0] > u->t.node[largest].memory[0])
				largest = n;
		uint64_t has = u->t.node[largest].memory[0];
		bytes -= has < bytes ? has : bytes;
		left = nodeset_minus(left, nodeset_of(largest));
	}
	return nr;
}

static void uneven_64_nodes_are_answered_within_the_budget(void **state)
{
	static struct uneven u;

	(void)state;
	for (unsigned i = 0; i < MACHINES; i++) {
		struct update_list ups = {0};
		struct decision d;

		begin(&u, i, NODES_MAX, false);
		uneven_begin(&u, POLICY_BEST_EFFORT, SCOPE_CONTAINER, false);
		hard_container(&u);
		struct budget b = budget_of(u.s.merge_visit_budget);
		d = admit_alone(&u, &b);
		assert_true(d.admit && !d.cut_short && !b.cut);
		assert_true(b.given - b.left < b.given / 8);
		assert_int_equal(d.nr_blocks, 1);
		assert_true(topo_memory_of(&u.t, d.blocks[0].nodes, 0) >= d.blocks[0].bytes);
		/* and so it is through the door */
		const struct request req = uneven_request(&u, 0);
		engine_create(u.g, 1, (struct request[]){req}, &d, &ups);
		assert_true(d.admit && !d.cut_short);
		/* memory alone is on no more nodes than it needs */
		end(&u);
		uneven_begin(&u, POLICY_RESTRICTED, SCOPE_CONTAINER, i % 2);
		hard_container(&u);
		u.container[0].cpu_milli = 500;
		b = budget_of(u.s.merge_visit_budget);
		d = admit_alone(&u, &b);
		assert_true(d.admit);
		assert_int_equal(
			nodeset_count(d.blocks[0].nodes), fewest_nodes(&u, d.blocks[0].bytes));
		vec_fini(&ups);
		end(&u);
	}
}

/* Every container of a pod asks for some of everything, on what the ones before it left. */
static void hard_pod(struct uneven *u, struct ask *c, char (*name)[UNEVEN_NAME_MAX], unsigned nr)
{
	uneven_pod(u, 1);
	memset(c, 0, nr * sizeof *c);
	for (unsigned i = 0; i < nr; i++) {
		uint64_t all = topo_memory_of(&u->t, u->t.nodes, 0) / 100;

		(void)snprintf(name[i], sizeof name[i], "c%u", i);
		c[i].name = name[i];
		c[i].kind = i + 1 < nr ? CONTAINER_INIT : CONTAINER_APP;
		c[i].cpu_milli = 1000 * (20 + random_below(&u->r, 60));
		uneven_add_memory(&c[i], 0, all * (10 + random_below(&u->r, 30)));
		for (unsigned k = 1; k < u->t.nr_kinds; k++)
			uneven_add_memory(&c[i], u->t.page_bytes[k],
				u->t.page_bytes[k] * (20 + random_below(&u->r, 20)));
	}
	u->pod.container = c;
	u->pod.nr = nr;
}

static void a_pod_of_120_init_containers_shares_one_budget(void **state)
{
	static struct uneven u;
	static struct ask c[MANY];
	static char name[MANY][UNEVEN_NAME_MAX];
	struct decision whole, *parts;
	struct arena a;

	(void)state;
	begin(&u, 1, NODES_MAX, true);
	uneven_begin(&u, POLICY_BEST_EFFORT, SCOPE_CONTAINER, true);
	hard_pod(&u, c, name, MANY);
	for (unsigned few = 0; few < 2; few++) {
		struct budget b = budget_of(few ? 20000 : u.s.merge_visit_budget);

		arena_init_fixed(&a, work, sizeof work);
		admit(&(struct admit_question){engine_ledger(u.g), &u.s, .pod = &u.pod}, &b, &a,
			&whole, &parts);
		assert_true(whole.admit);
		assert_true(whole.cut_short == few && b.cut == few);
		assert_true(few ? b.left < b.given / 2 : b.left > b.given / 2);
		for (unsigned i = 0; i < MANY; i++) /* the first ones left enough to the others */
			assert_true(parts[i].exclusive && parts[i].nr_blocks == u.t.nr_kinds);
	}
	end(&u);
}

static void the_last_container_gets_its_share_and_a_hard_one_more_than_half_of_the_steps(
	void **state)
{
	enum { STEPS = 1 << 20 };
	struct budget whole = budget_of(STEPS), part;

	(void)state;
	part = budget_share(&whole, 1, 0);
	assert_true(part.left == whole.left && part.aside == whole.aside);
	for (unsigned i = 0; i < MANY; i++) { /* each takes all that it may have */
		part = budget_share(&whole, MANY, i);
		assert_true(part.left >= whole.given / 2 / MANY);
		assert_true(part.aside >= whole.given_aside / MANY);
		assert_true(i || part.left > whole.given / 2);
		assert_false(budget_spend(&part, part.left + 1));
		part.aside = 0;
		budget_return(&whole, &part);
	}
	assert_true(whole.cut && !whole.left && !whole.aside);
	assert_false(budget_spend(&whole, 1));
	whole = budget_of(STEPS);
	for (unsigned i = 0; i + 1 < MANY; i++) { /* easy ones leave theirs to the last */
		part = budget_share(&whole, MANY, i);
		assert_true(budget_spend(&part, 1));
		budget_return(&whole, &part);
	}
	part = budget_share(&whole, MANY, MANY - 1);
	assert_true(part.left + MANY > whole.given && !whole.cut);
}

static void the_memory_manager_and_reasons_use_the_budget_of_the_hook(void **state)
{
	static struct uneven u;
	struct budget b;
	struct decision d;

	(void)state;
	begin(&u, 0, NODES_MAX, false);
	uneven_begin(&u, POLICY_BEST_EFFORT, SCOPE_CONTAINER, false);
	hard_container(&u);
	b = budget_of(u.s.merge_visit_budget);
	d = admit_alone(&u, &b);
	assert_true(b.left < b.given && b.aside < b.given_aside);
	assert_true(d.reasons->resource[1].more_masks && d.reasons->has_runner_up);
	/* memory's own search, with nothing merged before */
	uint64_t left = b.left;
	u.s.topology_policy = POLICY_NONE;
	d = admit_alone(&u, &b);
	assert_true(d.admit && b.left < left);
	/* neither starves the other */
	u.s.topology_policy = POLICY_BEST_EFFORT;
	b = budget_of(u.s.merge_visit_budget);
	b.aside = 0;
	d = admit_alone(&u, &b);
	assert_true(d.admit && !d.cut_short && !d.reasons->has_runner_up);
	b = budget_of(u.s.merge_visit_budget);
	b.left = 0;
	d = admit_alone(&u, &b);
	assert_true(d.cut_short && d.reasons->cut_short && d.reasons->resource[0].masks);
	end(&u);
}

static void steps_that_are_set_aside_are_given_out_once(void **state)
{
	struct budget whole = budget_of(800), a, b, c;

	(void)state;
	assert_true(whole.given == 700 && whole.aside == 100);
	a = budget_take_aside(&whole, 60);
	b = budget_take_aside(&whole, 60);
	c = budget_take_aside(&whole, 60);
	assert_true(a.left == 60 && b.left == 40 && !c.left);
	assert_false(budget_spend(&c, 1));
	assert_true(budget_spend(&b, 40) && budget_spend(&a, 10));
	budget_return_aside(&whole, &a);
	budget_return_aside(&whole, &b);
	budget_return_aside(&whole, &c);
	assert_true(whole.aside == 50 && whole.left == 700 && !whole.cut);
}

/* On 64 nodes there are more ways to share out CPUs evenly than anybody can look at. */
static void distributing_cpus_spends_the_budget(void **state)
{
	static struct uneven u;
	const struct cpus_how how = {.distributed = true, .group = 1};
	struct cpuset got, again;

	(void)state;
	unsigned cut = 0;

	begin(&u, 3, NODES_MAX, false);
	for (unsigned want = 65; want < 400; want += 7) {
		struct cpuset free_cpus = u.t.cpus;

		nodeset_each (n, u.t.nodes) /* each has another number of free ones */
			for (unsigned c = random_below(&u.r, 3); c; c--)
				cpuset_del(&free_cpus, cpuset_next(&u.t.node[n].cpus, 0) + c);
		struct budget b = budget_all_of(5000);
		assert_int_equal(cpus_take(&u.t, &free_cpus, want, &how, &b, &got, NULL), 0);
		assert_int_equal(cpuset_count(&got), want);
		assert_true(b.left < b.given && b.cut == !b.left);
		cut += b.cut;
		b = budget_all_of(5000); /* the same each time */
		assert_int_equal(cpus_take(&u.t, &free_cpus, want, &how, &b, &again, NULL), 0);
		assert_true(cpuset_equal(&got, &again));
	}
	assert_true(cut > 0);
}

static void the_daemon_refuses_a_budget_of_zero(void **state)
{
	static const struct {
		const char *value;
		bool taken;
	} cases[] = {{"0", false}, {"1", true}, {"3145728", true}, {"8388608", true},
		{"8388609", false}, {"9223372036854775807", false}};
	struct settings s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		settings_init(&s);
		/* journals of older daemons say so, and numafit decide may */
		assert_int_equal(settings_set(&s, "mergeVisitBudget", cases[i].value, &e), 0);
		assert_int_equal(settings_check(&s, NULL, &e), 0);
		assert_int_equal(settings_check_daemon(&s, NULL, NULL, &e), cases[i].taken ? 0 : -EINVAL);
		if (!cases[i].taken)
			assert_non_null(strstr(e.text, "numafitd takes 1 to 8388608"));
	}
}

static void no_search_is_cut_short_on_up_to_32_nodes(void **state)
{
	static struct uneven u;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct decision d;

		*(&u) = (struct uneven){.r = {SEED + 104729 * i}};
		unsigned nodes = 2 + random_below(&u.r, 31);
		uneven_machine(&u, nodes, i % 2);
		uneven_begin(&u, (enum topology_policy)random_below(&u.r, NR_POLICIES),
			i / 2 % 2 ? SCOPE_POD : SCOPE_CONTAINER, i / 4 % 2);
		for (unsigned pods = random_below(&u.r, 3) + 1; pods; pods--) {
			uneven_random_pod(&u);
			engine_run_pod(u.g, 1, &u.pod, &d);
			if (d.cut_short)
				fail_msg("case %u, %u nodes", i, nodes);
		}
		end(&u);
	}
}

/* What comes out with hardly any steps may be worse than it could be, but never wrong. */
static void decisions_without_steps_never_give_more_than_is_free(void **state)
{
	static struct uneven u;
	unsigned admitted = 0, cut = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct decision d;

		*(&u) = (struct uneven){.r = {SEED + 1299709 * i}};
		uneven_machine(&u, 2 + random_below(&u.r, 63), i % 2);
		uneven_begin(&u, (enum topology_policy)random_below(&u.r, NR_POLICIES),
			i / 2 % 2 ? SCOPE_POD : SCOPE_CONTAINER, i / 4 % 2);
		u.s.merge_visit_budget = 1 + random_below(&u.r, 100);
		uneven_random_pod(&u);
		engine_run_pod(u.g, 1, &u.pod, &d);
		admitted += d.admit;
		cut += d.cut_short;
		for (size_t h = 0; h < ledger_count(engine_ledger(u.g)); h++) {
			const struct holding *held = ledger_at(engine_ledger(u.g), h);
			const struct request req = held->request;

			assert_int_equal(
				held->decision.exclusive ? cpuset_count(&held->decision.cpus) : 0,
				request_exclusive_cpus(&req));
			if (u.s.topology_policy == POLICY_SINGLE_NUMA_NODE &&
				held->decision.has_affinity)
				assert_int_equal(nodeset_count(held->decision.nodes), 1);
			if (u.s.topology_policy == POLICY_RESTRICTED)
				assert_true(held->decision.preferred);
		}
		end(&u); /* no byte is booked twice */
	}
	assert_true(admitted > 50 && cut > 50);
}

/* Whether a set is preferred is known long before the best of those that are not is found. */
static void a_refusal_is_marked_uncertain_only_when_the_search_was_cut_before_it_was_sure(
	void **state)
{
	static struct uneven u;
	struct decision d;
	unsigned cut = 0;

	(void)state;
	for (unsigned i = 0; i < MACHINES; i++) {
		begin(&u, i, NODES_MAX, true);
		uneven_begin(&u, POLICY_RESTRICTED, SCOPE_CONTAINER, true);
		hard_container(&u); /* its CPUs prefer one node, its memory 30 of them */
		u.container[0].cpu_milli = 70000;
		struct budget b = budget_all_of(40000);
		d = admit_alone(&u, &b);
		assert_false(d.admit);
		assert_string_equal(d.message, "Resources cannot be allocated with Topology "
					       "locality");
		cut += d.cut_short;
		end(&u);
	}
	assert_true(cut > 0);
}

/* What a record hook sees last. */
struct seen {
	struct decision d;
	unsigned nr_resized;
};

static int see(void *ctx, const struct record *r, struct err *e)
{
	struct seen *seen = ctx;

	(void)e;
	if (r->decision)
		seen->d = *r->decision;
	seen->nr_resized += text_equal(r->cause, "resize");
	return 0;
}

static void a_cut_decision_is_marked_and_is_the_same_when_repeated(void **state)
{
	static struct uneven u;
	struct seen seen = {0};
	const struct engine_hooks hooks = {.ctx = &seen, .record = see};
	struct update_list ups = {0};
	struct decision d;
	unsigned cut = 0;

	(void)state;
	for (unsigned i = 0; i < MACHINES; i++) {
		begin(&u, i, NODES_MAX, true);
		uneven_begin(&u, POLICY_BEST_EFFORT, SCOPE_CONTAINER, true);
		u.s.merge_visit_budget = 5000;
		engine_free(u.g);
		u.g = engine_new(&u.t, &u.s, &hooks);
		hard_container(&u);
		u.container[0].cpu_milli = 70000;
		struct budget b = budget_of(u.s.merge_visit_budget);
		const struct decision before = admit_alone(&u, &b);
		const struct request req = uneven_request(&u, 0);
		engine_create(u.g, 1, (struct request[]){req}, &d, &ups);
		assert_true(seen.d.cut_short == d.cut_short && before.cut_short == d.cut_short);
		assert_true(nodeset_equal(before.nodes, seen.d.nodes));
		assert_true(cpuset_equal(&before.cpus, &seen.d.cpus));
		assert_true(nodeset_equal(before.mems, seen.d.mems));
		if (d.cut_short && d.admit)
			assert_non_null(strstr(d.message, "cut short by mergeVisitBudget"));
		cut += d.cut_short;
		vec_fini(&ups);
		ups = (struct update_list){0};
		end(&u);
	}
	assert_true(cut > MACHINES / 2);
}

static void a_spent_budget_stays_spent_whatever_its_parts_have_spent(void **state)
{
	struct budget whole = budget_of(1), part = budget_all_of(1);

	(void)state;
	assert_true(budget_spend(&whole, 1));
	assert_true(budget_spend(&part, 1));
	budget_return(&whole, &part);
	assert_false(budget_spend(&whole, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uneven_64_nodes_are_answered_within_the_budget),
		cmocka_unit_test(a_pod_of_120_init_containers_shares_one_budget),
		cmocka_unit_test(
			the_last_container_gets_its_share_and_a_hard_one_more_than_half_of_the_steps),
		cmocka_unit_test(the_memory_manager_and_reasons_use_the_budget_of_the_hook),
		cmocka_unit_test(steps_that_are_set_aside_are_given_out_once),
		cmocka_unit_test(distributing_cpus_spends_the_budget),
		cmocka_unit_test(the_daemon_refuses_a_budget_of_zero),
		cmocka_unit_test(no_search_is_cut_short_on_up_to_32_nodes),
		cmocka_unit_test(decisions_without_steps_never_give_more_than_is_free),
		cmocka_unit_test(
			a_refusal_is_marked_uncertain_only_when_the_search_was_cut_before_it_was_sure),
		cmocka_unit_test(a_cut_decision_is_marked_and_is_the_same_when_repeated),
		cmocka_unit_test(a_spent_budget_stays_spent_whatever_its_parts_have_spent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
