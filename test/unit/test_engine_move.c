/* A container that runs is moved to other CPUs and memory. */
#include "engine_rig.h"

#include <numafit/diagnosis.h>
#include <numafit/text.h>

#include <errno.h>

/* The machine has eight NUMA nodes with CPUs 4n to 4n+3 and their siblings, and 0 and 32 are
 * reserved. */
static struct decision place_on(const struct node *n, unsigned node, unsigned cpus, uint64_t memory)
{
	struct decision d = {.admit = true,
		.exclusive = true,
		.preferred = true,
		.mems = nodeset_of(node),
		.has_affinity = true,
		.nodes = nodeset_of(node),
		.nr_blocks = memory > 0,
		.blocks = {{0, nodeset_of(node), memory}}};
	const struct cpuset free = ledger_free_cpus(engine_ledger(n->g));
	const struct cpuset here = cpuset_and(free, &n->t->node[node].cpus);

	cpuset_each (cpu, &here)
		if (cpuset_count(&d.cpus) < cpus)
			cpuset_add(&d.cpus, cpu);
	assert_int_equal(cpuset_count(&d.cpus), cpus);
	return d;
}

static const struct holding *entry(const struct node *n, const char *id)
{
	return ledger_find(engine_ledger(n->g), id);
}

static const struct moving *moving(const struct node *n)
{
	return ledger_view(engine_ledger(n->g))->moving;
}

/* A container that runs on NUMA node 1, and where it is to go: 5. */
static struct decision a_container_with_a_place_elsewhere(struct node *n, struct decision *to)
{
	struct decision d = create(n, "web", QOS_GUARANTEED, 4000, GIB(2));

	assert_true(d.admit && d.exclusive);
	engine_started(n->g, 0, "c0");
	*to = place_on(n, 5, 4, GIB(2));
	assert_false(cpuset_intersects(&d.cpus, &to->cpus));
	return d;
}

static void assert_cpus(const struct cpuset *a, const struct cpuset *b)
{
	assert_true(cpuset_equal(a, b));
}

static uint64_t free_on(const struct node *n, unsigned node)
{
	return ledger_view(engine_ledger(n->g))->memory.node[node].free[0];
}

static void it_has_both_places_until_the_end(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);
	const struct cpuset both = cpuset_or(from.cpus, &to.cpus);
	const unsigned node = nodeset_next(from.mems, 0);
	const uint64_t room[] = {free_on(n, node), free_on(n, 5)};

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 7, "c0", &to, NULL, NULL), 0);
	assert_cpus(&entry(n, "c0")->decision.cpus, &both);
	assert_true(nodeset_equal(entry(n, "c0")->decision.mems, nodeset_or(from.mems, to.mems)));
	assert_int_equal(free_on(n, node), room[0]);
	assert_int_equal(free_on(n, 5), room[1] - GIB(2));
	assert_false(cpuset_intersects(&ledger_view(engine_ledger(n->g))->pool, &both));
	check(n);
	assert_int_equal(engine_end_move(n->g, 8, false, NULL), 0);
	assert_null(moving(n));
	assert_cpus(&entry(n, "c0")->decision.cpus, &to.cpus);
	assert_int_equal(entry(n, "c0")->decision.moved_ms, 8);
	assert_int_equal(free_on(n, node), room[0] + GIB(2));
	assert_true(cpuset_within(&from.cpus, &ledger_view(engine_ledger(n->g))->pool));
	assert_int_equal(engine_end_move(n->g, 8, false, NULL), -ENOENT);
	node_free(n);
}

/* The CPUs go to another NUMA node, the memory stays where it is: nobody else loses room there. */
static void memory_that_stays_is_booked_once_amid_a_move(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);
	const unsigned node = nodeset_next(from.mems, 0);
	const uint64_t room = free_on(n, node);

	(void)state;
	to.mems = from.mems;
	to.blocks[0] = from.blocks[0];
	assert_int_equal(engine_begin_move(n->g, 7, "c0", &to, NULL, NULL), 0);
	assert_int_equal(entry(n, "c0")->decision.nr_blocks, 1);
	assert_int_equal(free_on(n, node), room);
	check(n);
	assert_int_equal(engine_end_move(n->g, 8, false, NULL), 0);
	assert_int_equal(free_on(n, node), room);
	check(n);
	node_free(n);
}

/* Less was booked than is asked for, as there was no more; amid the move another one ends. */
static void memory_that_is_free_again_amid_a_move_is_booked_at_both_ends(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision d[2] = {create(n, "first", QOS_GUARANTEED, 2000, GIB(24)),
		create(n, "second", QOS_GUARANTEED, 2000, GIB(24))};
	struct update_list ups = {0};
	struct topo *half = machine_without(n->t, &(const struct cpuset){0}, d[0].mems), *again;

	(void)state;
	assert_true(d[0].admit && d[1].admit && nodeset_equal(d[0].mems, d[1].mems));
	engine_started(n->g, 0, "c0");
	engine_started(n->g, 0, "c1");
	engine_set_topo(n->g, 0, half);
	const uint64_t booked = entry(n, "c1")->decision.blocks[0].bytes;
	assert_true(booked < GIB(24));
	const struct decision to = place_on(n, 5, 2, booked);
	assert_int_equal(engine_begin_move(n->g, 7, "c1", &to, NULL, NULL), 0);
	engine_release(n->g, 8, "stop", "c0", &ups);
	vec_fini(&ups);
	again = machine_without(half, &(const struct cpuset){0}, (struct nodeset){0});
	engine_set_topo(n->g, 9, again);
	assert_int_equal(moving(n)->from.blocks[0].bytes, GIB(24));
	assert_int_equal(moving(n)->to.blocks[0].bytes, GIB(24));
	assert_int_equal(engine_end_move(n->g, 10, false, NULL), 0);
	assert_int_equal(entry(n, "c1")->decision.blocks[0].bytes, GIB(24));
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	node_free(n);
	free(half);
	free(again);
}

static void a_move_that_goes_back_leaves_all_as_it_was(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);
	const struct cpuset pool = ledger_view(engine_ledger(n->g))->pool;
	const uint64_t room = free_on(n, 5);

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	assert_int_equal(engine_end_move(n->g, 1, true, NULL), 0);
	assert_cpus(&entry(n, "c0")->decision.cpus, &from.cpus);
	assert_int_equal(entry(n, "c0")->decision.moved_ms, 0);
	assert_cpus(&ledger_view(engine_ledger(n->g))->pool, &pool);
	assert_int_equal(free_on(n, 5), room);
	check(n);
	node_free(n);
}

static void what_cannot_begin_changes_nothing(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to;
	struct err e;

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	struct decision other = create(n, "db", QOS_GUARANTEED, 2000, GIB(1));
	assert_int_equal(engine_begin_move(n->g, 0, "c9", &to, NULL, &e), -ENOENT);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &other, NULL, &e), -EBUSY);
	assert_non_null(strstr(e.text, "is held by container"));
	to.blocks[0].bytes = GIB(1000);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, &e), -EBUSY);
	to.blocks[0].bytes = GIB(2);
	n->failing = true;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, &e), -28);
	n->failing = false;
	assert_null(moving(n));
	(void)create(n, "log", QOS_BURSTABLE, 100, 0);
	assert_int_equal(engine_begin_move(n->g, 0, "c2", &to, NULL, &e), -EINVAL);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, &e), 0);
	assert_int_equal(engine_begin_move(n->g, 0, "c1", &to, NULL, &e), -EAGAIN);
	assert_string_equal(e.text, "container c0 is being moved");
	check(n);
	node_free(n);
}

static void an_end_that_cannot_be_recorded_leaves_it_both(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to;
	struct err e;

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, &e), 0);
	n->failing = true;
	assert_int_equal(engine_end_move(n->g, 0, false, &e), -28);
	assert_non_null(moving(n));
	n->failing = false;
	assert_int_equal(engine_end_move(n->g, 0, false, &e), 0);
	check(n);
	node_free(n);
}

static void a_container_that_ends_amid_its_move_holds_nothing(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	const unsigned all = cpuset_count(&ledger_view(engine_ledger(n->g))->pool);
	struct update_list ups = {0};
	struct decision to;

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	n->nr = 0;
	engine_release(n->g, 0, "stop", "c0", &ups);
	apply(n, &ups);
	assert_null(moving(n));
	assert_int_equal(ledger_count(engine_ledger(n->g)), 0);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->pool), all);
	check(n);
	node_free(n);
}

/* Its end was not reported, and the runtime does not list the container any more. */
static void a_container_that_is_gone_at_a_synchronize_moves_no_more(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);
	const unsigned node = nodeset_next(from.mems, 0);
	const uint64_t room = free_on(n, node);
	struct update_list ups = {0};

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	engine_synchronize(n->g, 0, &(const struct inventory){0}, &ups);
	assert_null(moving(n));
	assert_int_equal(ledger_count(engine_ledger(n->g)), 0);
	assert_int_equal(free_on(n, node), room + GIB(2));
	n->nr = 0;
	check(n);
	vec_fini(&ups);
	node_free(n);
}

static void its_successor_has_the_place_where_it_was_to_go(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	n->nr = 0; /* it has ended, and nobody has reported that */
	struct decision next = create(n, "web", QOS_GUARANTEED, 4000, GIB(2));
	assert_int_equal(next.source, SOURCE_INHERITED);
	assert_cpus(&next.cpus, &to.cpus);
	assert_false(cpuset_intersects(&ledger_view(engine_ledger(n->g))->held, &from.cpus));
	check(n);
	node_free(n);
}

/* What the runtime, and a person, is given for a refused resize. */
static const char *words_for(
	const struct node *n, const struct request *req, const struct decision *d)
{
	static char words[1024];
	const struct admit_question q = {
		.container = req, .settings = &n->s, .ledger = engine_ledger(n->g)};
	struct diagnosis found;
	struct text t;

	diagnose_in_numbers(&q, d, &found);
	text_init(&t, words, sizeof words);
	diagnosis_add_numbers(&t, &found, d, &q);
	return words;
}

static void a_resize_is_refused_meanwhile_and_a_rewritten_cpuset_is_both(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct update_list ups = {0};
	struct decision to, d, from = a_container_with_a_place_elsewhere(n, &to);
	struct request same = n->run[0].req, more = same;
	const struct cpuset both = cpuset_or(from.cpus, &to.cpus);

	(void)state;
	more.ask.cpu_milli = 6000;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	assert_true(engine_update(n->g, 0, &more, &d, &ups));
	assert_false(d.admit);
	assert_int_equal(d.cause, REFUSED_WHILE_MOVED);
	assert_non_null(strstr(words_for(n, &more, &d), "as the container is being moved"));
	assert_true(engine_update(n->g, 0, &same, &d, &ups));
	assert_true(d.admit);
	assert_cpus(&d.cpus, &both);
	assert_int_equal(engine_end_move(n->g, 0, false, NULL), 0);
	assert_true(engine_update(n->g, 0, &more, &d, &ups));
	assert_true(d.admit);
	vec_fini(&ups);
	node_free(n);
}

static void it_is_not_updated_before_the_end(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct update want;
	struct decision to;

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	assert_false(engine_wants(n->g, "c0", &want));
	n->updates = 0;
	synchronize(n); /* it runs still with what it had */
	assert_int_equal(n->updates, 0);
	assert_non_null(moving(n));
	assert_int_equal(engine_end_move(n->g, 0, false, NULL), 0);
	synchronize(n);
	assert_int_equal(n->updates, 1);
	const struct cpuset now = cpus_in_force(&n->run[0]);
	assert_cpus(&now, &to.cpus);
	node_free(n);
}

static void a_move_outlives_a_copy_and_a_restart(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to;

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	struct engine *copy = engine_copy(n->g, n->t, &n->s, NULL);
	assert_non_null(copy);
	engine_take_effect(copy, 0, n->t); /* the same settings and machine as before */
	const struct moving *m = ledger_view(engine_ledger(copy))->moving;
	assert_non_null(m);
	assert_string_equal(m->container_id, "c0");
	assert_cpus(&m->to.cpus, &to.cpus);
	assert_int_equal(ledger_check(engine_ledger(copy), NULL), 0);
	engine_free(copy);
	node_free(n);
}

static void a_move_to_cpus_that_go_offline_goes_back(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	struct topo *less = machine_without(n->t, &to.cpus, (struct nodeset){0});
	engine_set_topo(n->g, 0, less);
	assert_null(moving(n));
	assert_cpus(&entry(n, "c0")->decision.cpus, &from.cpus);
	assert_true(entry(n, "c0")->misplaced);
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	free(n->t);
	n->t = less;
	node_free(n);
}

/* It had lost CPUs for which there were no others; amid its move they come back. */
static void a_container_that_lacked_cpus_has_them_when_they_come_back_amid_its_move(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct cpuset offline = create(n, "web", QOS_GUARANTEED, 8000, 0).cpus;
	struct update_list ups = {0};

	(void)state;
	engine_started(n->g, 0, "c0");
	assert_true(create(n, "rest", QOS_GUARANTEED, 54000, 0).admit);
	engine_started(n->g, 0, "c1");
	for (unsigned i = 0; i < 2; i++)
		cpuset_del(&offline, cpuset_next(&offline, 0));
	struct topo *all = n->t, *less = machine_without(all, &offline, (struct nodeset){0});
	engine_set_topo(n->g, 0, less);
	n->t = less;
	assert_int_equal(cpuset_count(&entry(n, "c0")->decision.cpus), 2);
	engine_release(n->g, 0, "stop", "c1", &ups);
	vec_fini(&ups);
	const struct decision to = place_on(n, 5, 2, 0);
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	engine_set_topo(n->g, 0, all);
	n->t = all;
	assert_null(moving(n));
	assert_int_equal(cpuset_count(&entry(n, "c0")->decision.cpus), 8);
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	node_free(n);
	free(less);
}

/* While nobody listened it was resized, and put elsewhere. */
static void a_container_that_somebody_else_has_placed_is_moved_no_more(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to;
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *as_created[] = {&placed};
	struct update_list ups = {0};

	(void)state;
	placed.cpus = a_container_with_a_place_elsewhere(n, &to).cpus;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	struct request web = n->run[0].req;
	web.ask.cpu_milli = 2000;
	web.cpus = "24-25";
	web.mems = "6";
	engine_synchronize(n->g, 0,
		&(const struct inventory){.requests = &web, .placed = as_created, .nr = 1}, &ups);
	assert_null(moving(n));
	struct cpuset now;
	assert_int_equal(cpuset_parse(&now, "24-25", strlen("24-25"), NULL), 0);
	assert_cpus(&entry(n, "c0")->decision.cpus, &now);
	assert_true(cpuset_within(&to.cpus, &ledger_view(engine_ledger(n->g))->pool));
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	vec_fini(&ups);
	node_free(n);
}

/* A container is moved at most once in defragment.minInterval, whoever places it in between. */
static void a_container_that_is_taken_over_anew_was_moved_when_it_was(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to;
	struct update_list ups = {0};

	(void)state;
	(void)a_container_with_a_place_elsewhere(n, &to);
	assert_int_equal(engine_begin_move(n->g, 7, "c0", &to, NULL, NULL), 0);
	assert_int_equal(engine_end_move(n->g, 8, false, NULL), 0);
	struct request web = n->run[0].req;
	web.ask.cpu_milli = 2000;
	web.cpus = "24-25";
	web.mems = "6";
	engine_synchronize(n->g, 9,
		&(const struct inventory){
			.requests = &web, .placed = (const struct placement *[]){NULL}, .nr = 1},
		&ups);
	assert_int_equal(cpuset_count(&entry(n, "c0")->decision.cpus), 2);
	assert_int_equal(entry(n, "c0")->decision.moved_ms, 8);
	vec_fini(&ups);
	node_free(n);
}

/* The same, where it runs on as it did: nobody would ask for that size once more. */
static void a_resize_that_came_meanwhile_ends_the_move(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);
	const struct placement *as_created[] = {&n->run[0].placed};
	struct update_list ups = {0};

	(void)state;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &to, NULL, NULL), 0);
	struct request web = n->run[0].req;
	web.ask.cpu_milli = 2000;
	engine_synchronize(n->g, 0,
		&(const struct inventory){.requests = &web, .placed = as_created, .nr = 1}, &ups);
	assert_null(moving(n));
	assert_int_equal(cpuset_count(&entry(n, "c0")->decision.cpus), 2);
	assert_true(cpuset_within(&entry(n, "c0")->decision.cpus, &to.cpus));
	assert_true(cpuset_within(&from.cpus, &ledger_view(engine_ledger(n->g))->pool));
	assert_int_equal(ups.nr, 1);
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	vec_fini(&ups);
	node_free(n);
}

static void a_move_goes_back_where_the_pool_would_have_no_cpu(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct decision to;

	(void)state;
	n->s.reserved_cpus = (struct cpuset){0};
	(void)a_container_with_a_place_elsewhere(n, &to);
	const struct cpuset others = ledger_free_cpus(engine_ledger(n->g));
	assert_true(create(n, "rest", QOS_GUARANTEED, (cpuset_count(&others) - 5) * 1000, 0).admit);
	engine_started(n->g, 0, "c1");
	const struct cpuset pool = ledger_view(engine_ledger(n->g))->pool;
	struct decision four = to;
	four.cpus = pool;
	cpuset_del(&four.cpus, cpuset_next(&pool, 0));
	four.nr_blocks = 0;
	assert_int_equal(engine_begin_move(n->g, 0, "c0", &four, NULL, NULL), 0);
	const struct cpuset last = ledger_view(engine_ledger(n->g))->pool;
	struct topo *less = machine_without(n->t, &last, (struct nodeset){0});
	engine_set_topo(n->g, 0, less);
	assert_null(moving(n));
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	free(n->t);
	n->t = less;
	node_free(n);
}

/* The updates that a report of c0 with that cpuset leads to. */
static size_t corrections(const struct node *n, const struct cpuset *cpus, struct nodeset mems)
{
	char list[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX];
	struct request reported = entry(n, "c0")->request;
	struct update_list ups = {0};

	reported.cpus = cpuset_format(cpus, list, sizeof list);
	reported.mems = nodeset_format(mems, &n->t->ids, nodes, sizeof nodes);
	engine_correct_moved(n->g, &reported, 1, &ups);
	const size_t nr = ups.nr;
	if (nr) {
		assert_string_equal(ups.at[0].container_id, "c0");
		assert_cpus(&ups.at[0].cpus, &entry(n, "c0")->decision.cpus);
		engine_correct_moved(n->g, &reported, 1, &ups);
		assert_int_equal(ups.nr, nr); /* once */
	}
	vec_fini(&ups);
	return nr;
}

static void a_runtime_that_has_missed_a_move_is_given_the_new_place(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct decision to, from = a_container_with_a_place_elsewhere(n, &to);

	(void)state;
	assert_int_equal(corrections(n, &to.cpus, to.mems), 0); /* nobody has moved it: drift */
	assert_int_equal(engine_begin_move(n->g, 7, "c0", &to, NULL, NULL), 0);
	assert_int_equal(corrections(n, &from.cpus, from.mems), 0); /* at its end */
	assert_int_equal(engine_end_move(n->g, 8, false, NULL), 0);
	assert_int_equal(corrections(n, &from.cpus, from.mems), 1);
	assert_int_equal(corrections(n, &to.cpus, from.mems), 1);
	assert_int_equal(corrections(n, &to.cpus, to.mems), 0);
	assert_int_equal(engine_begin_move(n->g, 9, "c0", &from, NULL, NULL), 0);
	assert_int_equal(corrections(n, &to.cpus, to.mems), 0); /* once more at its end */
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_both_places_until_the_end),
		cmocka_unit_test(memory_that_stays_is_booked_once_amid_a_move),
		cmocka_unit_test(memory_that_is_free_again_amid_a_move_is_booked_at_both_ends),
		cmocka_unit_test(a_move_that_goes_back_leaves_all_as_it_was),
		cmocka_unit_test(what_cannot_begin_changes_nothing),
		cmocka_unit_test(an_end_that_cannot_be_recorded_leaves_it_both),
		cmocka_unit_test(a_container_that_ends_amid_its_move_holds_nothing),
		cmocka_unit_test(a_container_that_is_gone_at_a_synchronize_moves_no_more),
		cmocka_unit_test(its_successor_has_the_place_where_it_was_to_go),
		cmocka_unit_test(a_resize_is_refused_meanwhile_and_a_rewritten_cpuset_is_both),
		cmocka_unit_test(it_is_not_updated_before_the_end),
		cmocka_unit_test(a_move_outlives_a_copy_and_a_restart),
		cmocka_unit_test(a_move_to_cpus_that_go_offline_goes_back),
		cmocka_unit_test(
			a_container_that_lacked_cpus_has_them_when_they_come_back_amid_its_move),
		cmocka_unit_test(a_container_that_somebody_else_has_placed_is_moved_no_more),
		cmocka_unit_test(a_container_that_is_taken_over_anew_was_moved_when_it_was),
		cmocka_unit_test(a_resize_that_came_meanwhile_ends_the_move),
		cmocka_unit_test(a_move_goes_back_where_the_pool_would_have_no_cpu),
		cmocka_unit_test(a_runtime_that_has_missed_a_move_is_given_the_new_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
