/* Nodes of a simulated cluster that move containers to make room: both places are held meanwhile,
 * all limits are kept, and a seed always gives the same day. */
#include <cluster-sim/moves.h>
#include <cluster-sim/world.h>

#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define GI (UINT64_C(1) << 30)

enum { MINUTE_MS = 60 * MS_PER_S };

/* One node; each of its NUMA nodes has 16 CPUs, the first one a reserved core of these. */
struct rig {
	struct cluster_machine *m;
	struct cluster_node n;
	struct cluster_work work;
	struct node_moves moves;
	struct move_limits limits;
	struct pod_shape shape[4];
};
/* How many CPUs pods of each shape have; 1 GiB for each. */
enum { SMALL, HALF, WHOLE, LARGE };
static const unsigned shape_cpus[] = {[SMALL] = 4, [HALF] = 8, [WHOLE] = 16, [LARGE] = 24};

static void rig_begin(struct rig *r, unsigned nr_numa, enum topology_policy policy)
{
	*r = (struct rig){.m = calloc(1, sizeof *r->m)};
	assert_int_equal(cluster_machine_init(r->m, nr_numa, policy, NULL), 0);
	cluster_node_init(&r->n, r->m, 0);
	cluster_work_init(&r->work);
	move_limits_init(&r->limits);
	for (unsigned i = 0; i < sizeof shape_cpus / sizeof *shape_cpus; i++)
		r->shape[i] = (struct pod_shape){.family = "test",
			.qos = QOS_GUARANTEED,
			.nr_containers = 1,
			.cpu_milli = shape_cpus[i] * UINT64_C(1000),
			.bytes = {[POD_MEMORY] = shape_cpus[i] * GI}};
}

static void rig_end(struct rig *r)
{
	node_moves_fini(&r->moves);
	cluster_work_fini(&r->work);
	cluster_node_fini(&r->n);
	resource_table_fini(&r->m->names);
	free(r->m);
}

static struct cluster_pod pod_of(const struct rig *r, unsigned shape, unsigned number)
{
	struct cluster_pod p = {.shape = &r->shape[shape]};

	(void)snprintf(p.uid, sizeof p.uid, "p%u-0", number);
	return p;
}

static bool run(struct rig *r, unsigned shape, unsigned number)
{
	const struct cluster_pod p = pod_of(r, shape, number);
	struct node_answer answer;

	cluster_node_run(&r->n, r->m, &p, NULL, 0, &r->work, &answer);
	return answer.admit;
}

static void stop(struct rig *r, unsigned number)
{
	const struct cluster_pod p = pod_of(r, SMALL, number);

	cluster_node_stop(&r->n, p.uid);
	node_moves_stop(&r->moves, &r->n, p.uid);
}

static bool plan(struct rig *r, unsigned shape, int64_t now_ms)
{
	const struct cluster_pod p = pod_of(r, shape, 999);

	return node_moves_plan(&r->moves, &r->n, r->m, &r->limits, &p, now_ms);
}

static unsigned count_held(const struct rig *r)
{
	return cpuset_count(&ledger_view(r->n.ledger)->held);
}

static void assert_sound(const struct rig *r)
{
	struct err e = {0};

	if (ledger_check(r->n.ledger, &e))
		fail_msg("%s", e.text);
}

static struct nodeset nodes_of(const struct rig *r, const struct holding *h)
{
	return decision_nodes_used(&r->m->topo, &h->decision);
}

/* Whether another entry is on the same NUMA nodes. */
static bool has_neighbour(const struct rig *r, const struct holding *h)
{
	for (size_t i = 0; i < ledger_count(r->n.ledger); i++) {
		const struct holding *other = ledger_at(r->n.ledger, i);

		if (other != h && nodeset_equal(nodes_of(r, h), nodes_of(r, other)))
			return true;
	}
	return false;
}

/* A small pod alone on each of two NUMA nodes: a whole one has no room. */
static void scatter(struct rig *r)
{
	unsigned nr = 0;

	rig_begin(r, 2, POLICY_RESTRICTED);
	while (run(r, SMALL, nr))
		nr++;
	for (unsigned i = 0; i < nr; i++) {
		const struct cluster_pod p = pod_of(r, SMALL, i);

		if (has_neighbour(r, ledger_find_of_pod(r->n.ledger, p.uid)))
			stop(r, i);
	}
	assert_int_equal(ledger_count(r->n.ledger), 2);
	assert_false(run(r, WHOLE, 999));
}

static void a_container_that_moves_holds_both_places_until_it_is_there(void **state)
{
	struct rig r;

	(void)state;
	scatter(&r);
	const unsigned before = count_held(&r);

	assert_true(plan(&r, WHOLE, 0));
	const struct node_move *m = node_moves_begin(&r.moves, &r.n);
	assert_non_null(m);
	assert_sound(&r);
	assert_int_equal(count_held(&r), before + shape_cpus[SMALL]);
	const struct cpuset from =
		ledger_find_waiting(r.n.ledger, m->uid, m->container)->decision.cpus;
	assert_int_equal(cpuset_count(&from), shape_cpus[SMALL]);
	assert_true(cpuset_within(&from, &ledger_view(r.n.ledger)->held));
	assert_true(cpuset_within(&m->to.cpus, &ledger_view(r.n.ledger)->held));
	assert_int_equal(m->bytes, shape_cpus[SMALL] * GI);
	assert_in_range(m->lasts_ms, 4294, 4296); /* at 10^9 bytes a second */
	assert_false(run(&r, WHOLE, 999));
	node_moves_end(&r.moves, &r.n);
	assert_sound(&r);
	assert_int_equal(count_held(&r), before);
	assert_false(cpuset_intersects(&from, &ledger_view(r.n.ledger)->held));
	assert_null(node_moves_begin(&r.moves, &r.n));
	assert_null(r.moves.plan);
	assert_true(run(&r, WHOLE, 999));
	assert_sound(&r);
	rig_end(&r);
}

static void a_pod_that_ends_while_it_moves_leaves_nothing_behind(void **state)
{
	struct rig r;

	(void)state;
	scatter(&r);
	assert_true(plan(&r, WHOLE, 0));
	const struct node_move *m = node_moves_begin(&r.moves, &r.n);
	unsigned number = 0;

	assert_non_null(m);
	assert_int_equal(sscanf(m->uid, "p%u", &number), 1);
	stop(&r, number);
	assert_sound(&r);
	assert_int_equal(count_held(&r), shape_cpus[SMALL]);
	node_moves_end(&r.moves, &r.n);
	assert_int_equal(ledger_count(r.n.ledger), 1);
	assert_null(node_moves_begin(&r.moves, &r.n));
	assert_sound(&r);
	rig_end(&r);
}

static void a_plan_is_given_up_when_its_room_is_taken(void **state)
{
	struct rig r;

	(void)state;
	scatter(&r);
	assert_true(plan(&r, WHOLE, 0));
	assert_int_equal(r.moves.log.nr, 1);
	for (unsigned i = 100; run(&r, SMALL, i); i++)
		;
	const size_t nr = ledger_count(r.n.ledger);

	assert_null(node_moves_begin(&r.moves, &r.n));
	assert_null(r.moves.plan);
	assert_int_equal(r.moves.log.nr, 0); /* it does not count */
	assert_int_equal(ledger_count(r.n.ledger), nr);
	assert_sound(&r);
	rig_end(&r);
}

static void a_limit_that_allows_nothing_moves_nothing(void **state)
{
	const struct move_limits none[] = {{.moves = 0, 12, 8 * GI, 0, 100, GI, 2000},
		{.moves = 3, 0, 8 * GI, 0, 100, GI, 2000},
		{.moves = 3, 12, shape_cpus[SMALL] * GI - 1, 0, 100, GI, 2000},
		{.moves = 3, 12, 8 * GI, 0, 0, GI, 2000}, {.moves = 3, 12, 8 * GI, 0, 100, GI, 0}};
	struct rig r;

	(void)state;
	scatter(&r);
	for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
		r.limits = none[i];
		assert_false(plan(&r, WHOLE, 0));
	}
	r.limits = (struct move_limits){1, 1, shape_cpus[SMALL] * GI, 0, 100, GI, 20};
	assert_true(plan(&r, WHOLE, 0));
	rig_end(&r);
}

/* The pods that are there had their last moves at 0. */
static void note_moves_at_0(struct rig *r, uint64_t bytes)
{
	for (size_t i = 0; i < ledger_count(r->n.ledger); i++) {
		const struct request *req = &ledger_at(r->n.ledger, i)->request;
		struct move_note *note = vec_push(&r->moves.log);

		*note = (struct move_note){.bytes = bytes};
		(void)snprintf(note->uid, sizeof note->uid, "%s", req->pod.uid);
		(void)snprintf(note->container, sizeof note->container, "%s", req->ask.name);
	}
}

static void limits_are_of_the_last_minute_hour_and_interval(void **state)
{
	static const struct {
		struct move_limits limits;
		uint64_t bytes; /* of each of the two moves at 0 */
		int64_t from_ms;
	} rows[] = {
		{{3, 2, 8 * GI, 0, 100, GI, 2000}, 0, MS_PER_HOUR},
		{{3, 12, 8 * GI, 0, 100, GI, 2000}, 3 * GI, MINUTE_MS},
		{{3, 12, 8 * GI, 7 * MINUTE_MS, 100, GI, 2000}, 0, 7 * MINUTE_MS},
		{{3, 12, 8 * GI, 240 * MINUTE_MS, 100, GI, 2000}, 0, 240 * MINUTE_MS},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig r;

		scatter(&r);
		r.limits = rows[i].limits;
		note_moves_at_0(&r, rows[i].bytes);
		assert_false(plan(&r, WHOLE, 1));
		assert_false(plan(&r, WHOLE, rows[i].from_ms - 1));
		assert_true(plan(&r, WHOLE, rows[i].from_ms));
		rig_end(&r);
	}
}

/* Random churn, with moves that last while others come and go. */
static void nothing_is_held_twice_whatever_comes_while_containers_move(void **state)
{
	enum { PODS = 64, STEPS = 3000, SEEDS = 6 };
	unsigned long begun = 0, given_up = 0, ended = 0;

	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct random random = {seed * UINT64_C(0x9E3779B97F4A7C15)};
		bool runs[PODS] = {false};
		struct rig r;

		rig_begin(&r, 4, seed % 2 ? POLICY_RESTRICTED : POLICY_BEST_EFFORT);
		r.limits = (struct move_limits){.moves = 1 + seed % 3,
			.per_hour = 1000,
			.bytes_per_minute = 1000 * GI,
			.movable_percent = 90,
			.bytes_per_s = GI,
			.trials = 200};
		for (unsigned i = 0; i < STEPS; i++) {
			const unsigned pod = random_below(&random, PODS);
			const unsigned shape = random_below(&random, 4);

			if (runs[pod]) {
				stop(&r, pod);
				runs[pod] = false;
			} else {
				runs[pod] = run(&r, shape, pod);
				if (!runs[pod] && !r.moves.plan &&
					plan(&r, shape, (int64_t)i * 1000)) {
					const bool ok = node_moves_begin(&r.moves, &r.n);

					begun += ok;
					given_up += !ok;
				}
			}
			assert_sound(&r);
			if (r.moves.plan && random_chance(&random, 40)) {
				node_moves_end(&r.moves, &r.n);
				assert_sound(&r);
				const bool more = r.moves.next < r.moves.nr;
				const bool ok = node_moves_begin(&r.moves, &r.n);

				begun += ok;
				given_up += more && !ok;
				ended++;
			}
			assert_sound(&r);
		}
		rig_end(&r);
	}
	print_message(
		"%lu moves began, %lu ended, %lu plans were given up\n", begun, ended, given_up);
	assert_true(begun > 100 && ended > 100 && given_up);
}

/* Days */

struct seen_move {
	unsigned node;
	struct node_move is;
};
struct day {
	struct cluster_machine *m;
	struct cluster_trace trace;
	struct world_options options;
	struct outcome outcome;
	struct {
		VEC(struct seen_move);
	} seen;
};

static void note_move_of_day(void *ctx, unsigned node, const struct node_move *m)
{
	struct day *d = ctx;

	*vec_push(&d->seen) = (struct seen_move){node, *m};
}

static void no_progress(void *ctx, const struct strategy *s, unsigned hour)
{
	(void)ctx, (void)s, (void)hour;
}

static void day_begin(struct day *d, unsigned nodes, unsigned pods, uint64_t seed)
{
	enum { LOAD = 90 };

	*d = (struct day){
		.m = calloc(1, sizeof *d->m), .options = {.nr_nodes = nodes, .weight = 10}};
	assert_int_equal(cluster_machine_init(d->m, 8, POLICY_RESTRICTED, NULL), 0);
	cluster_trace_make(&d->trace, &(struct trace_plan){.nr_pods = pods,
					      .seed = seed,
					      .cpus = 126.0 * nodes * LOAD / 100,
					      .cpu_milli_max = 128000});
	move_limits_init(&d->options.moves);
}

static void day_run(struct day *d, const char *name)
{
	struct shape_facts *facts = shape_facts_new(&d->trace, d->m);
	const struct world_setting set = {.options = &d->options,
		.machine = d->m,
		.trace = &d->trace,
		.facts = facts,
		.progress = no_progress,
		.moved = note_move_of_day,
		.moved_ctx = d};
	const struct strategy *list[STRATEGIES_MAX];
	struct err e = {0};

	d->seen.nr = 0;
	assert_int_equal(strategy_list(name, list, NULL), 1);
	if (world_run(&set, list[0], &d->outcome, &e))
		fail_msg("%s", e.text);
	d->outcome.seconds = 0;
	free(facts);
}

static void day_end(struct day *d)
{
	cluster_trace_fini(&d->trace);
	resource_table_fini(&d->m->names);
	free(d->m);
	vec_fini(&d->seen);
}

/* Each move against all that came before it. */
static void assert_within_limits(const struct day *d)
{
	const struct move_limits *l = &d->options.moves;

	for (size_t i = 0; i < d->seen.nr; i++) {
		const struct seen_move *m = &d->seen.at[i];
		uint64_t bytes = m->is.bytes;
		unsigned nr = 1;

		assert_true(pod_is_movable(l, m->is.uid));
		for (size_t k = 0; k < i; k++) {
			const struct seen_move *before = &d->seen.at[k];
			const int64_t since = m->is.at_ms - before->is.at_ms;

			if (before->node != m->node)
				continue;
			assert_true(since >= before->is.lasts_ms); /* one at a time */
			nr += since < MS_PER_HOUR;
			bytes += since < MINUTE_MS ? before->is.bytes : 0;
			if (strcmp(before->is.uid, m->is.uid) == 0 &&
				strcmp(before->is.container, m->is.container) == 0)
				assert_true(since >= l->interval_ms);
		}
		assert_true(nr <= l->per_hour);
		assert_true(bytes <= l->bytes_per_minute);
	}
	assert_int_equal(d->outcome.moves, d->seen.nr);
}

static void a_day_keeps_all_limits(void **state)
{
	static const struct move_limits limits[] = {
		{3, 12, 8 * GI, 10 * MINUTE_MS, 100, 1000000000, 2000},
		{3, 2, 64 * GI, 10 * MINUTE_MS, 100, 1000000000, 500},
		{8, 100, 48 * GI, 0, 100, 1000000000, 500},
		{2, 6, 12 * GI, 240 * MINUTE_MS, 100, 100000000, 500},
		{3, 12, 24 * GI, 10 * MINUTE_MS, 30, 10000000, 500},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct day d;

		day_begin(&d, 2, 400, 1 + i);
		d.options.moves = limits[i];
		day_run(&d, "stock-moves");
		assert_within_limits(&d);
		print_message("limits %u: %lu moves, %lu refusals avoided\n", i, d.outcome.moves,
			d.outcome.avoided);
		assert_true(d.outcome.moves && d.outcome.avoided);
		day_end(&d);
	}
}

static void the_same_seed_is_the_same_day(void **state)
{
	struct outcome first;
	struct day d;

	(void)state;
	day_begin(&d, 2, 300, 3);
	day_run(&d, "packed-moves");
	first = d.outcome;
	day_run(&d, "packed-moves");
	assert_true(first.moves);
	assert_memory_equal(&first, &d.outcome, sizeof first);
	day_end(&d);
}

static void without_moves_a_day_is_as_if_none_were_known(void **state)
{
	static const char *const pairs[][2] = {
		{"stock", "stock-moves"}, {"stock-packed", "packed-moves"}};

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned limit = 0; limit < 5; limit++) {
			struct outcome base;
			struct day d;

			day_begin(&d, 2, 200, 7);
			day_run(&d, pairs[i][0]);
			base = d.outcome;
			assert_true(base.refused && !d.seen.nr);
			if (limit == 0)
				d.options.moves.moves = 0;
			else if (limit == 1)
				d.options.moves.per_hour = 0;
			else if (limit == 2)
				d.options.moves.bytes_per_minute = 0;
			else if (limit == 3)
				d.options.moves.movable_percent = 0;
			else
				d.options.moves.trials = 0;
			day_run(&d, pairs[i][1]);
			assert_memory_equal(&base, &d.outcome, sizeof base);
			day_end(&d);
		}
}

static void of_all_pods_as_many_are_movable_as_was_said(void **state)
{
	enum { PODS = 10000 };
	struct move_limits l;
	unsigned nr[3] = {0};

	(void)state;
	move_limits_init(&l);
	for (unsigned i = 0; i < PODS; i++) {
		char uid[POD_UID_MAX];

		(void)snprintf(uid, sizeof uid, "p%u-0", i);
		for (unsigned k = 0; k < 3; k++) {
			l.movable_percent = (unsigned[]){0, 30, 100}[k];
			nr[k] += pod_is_movable(&l, uid);
		}
	}
	assert_int_equal(nr[0], 0);
	assert_in_range(nr[1], 28 * PODS / 100, 32 * PODS / 100);
	assert_int_equal(nr[2], PODS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_that_moves_holds_both_places_until_it_is_there),
		cmocka_unit_test(a_pod_that_ends_while_it_moves_leaves_nothing_behind),
		cmocka_unit_test(a_plan_is_given_up_when_its_room_is_taken),
		cmocka_unit_test(a_limit_that_allows_nothing_moves_nothing),
		cmocka_unit_test(limits_are_of_the_last_minute_hour_and_interval),
		cmocka_unit_test(nothing_is_held_twice_whatever_comes_while_containers_move),
		cmocka_unit_test(a_day_keeps_all_limits),
		cmocka_unit_test(the_same_seed_is_the_same_day),
		cmocka_unit_test(without_moves_a_day_is_as_if_none_were_known),
		cmocka_unit_test(of_all_pods_as_many_are_movable_as_was_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
