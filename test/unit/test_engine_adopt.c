/* Containers that run already: they are adopted where they run, as far as nobody else is there. */
#include "engine_rig.h"

/* The daemon's memory is gone: only the runtime and the annotations are left. */
static void running_containers_are_adopted_where_they_run(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0), *after = node_new(POLICY_RESTRICTED, 0);

	(void)state;
	(void)create(n, "db", QOS_GUARANTEED, 3000, GIB(70));
	(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
	(void)create(n, "ai", QOS_GUARANTEED, 9000, GIB(70));
	memcpy(after->run, n->run, sizeof n->run);
	after->nr = n->nr;
	for (unsigned i = 0; i < after->nr; i++) {
		after->run[i].req.cpus = after->run[i].cpus;
		after->run[i].req.mems = after->run[i].mems;
	}
	synchronize(after);
	check(after);
	assert_int_equal(after->updates, 0); /* nobody had to move */
	assert_true(cpuset_equal(&ledger_view(engine_ledger(n->g))->held,
		&ledger_view(engine_ledger(after->g))->held));
	for (size_t i = 0; i < ledger_count(engine_ledger(n->g)); i++) {
		const struct holding *x = ledger_at(engine_ledger(n->g), i),
				     *y = ledger_at(engine_ledger(after->g), i);

		assert_int_equal(y->decision.source, SOURCE_ADOPTED);
		assert_int_equal(x->decision.nr_blocks, y->decision.nr_blocks);
		assert_int_equal(x->decision.mems.bits, y->decision.mems.bits);
	}
	node_free(n);
	node_free(after);
}

/* What runs keeps the nodes that it was given; its memory is booked where there is some for
 * containers, and one that was given none in particular is kept off the GPUs' nodes 8 and 9. */
static void adopted_memory_is_not_booked_on_devices(void **state)
{
	static const struct {
		const char *mems;
		uint64_t has, booked;
		unsigned updates;
	} cases[] = {
		{"", 0xff, 0xff, 1},
		{"0-9", 0x3ff, 0xff, 0},
		{"1,8", 0x102, 0x02, 0},
		{"8-9", 0x300, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_on(machine_with_gpus(), POLICY_BEST_EFFORT, 0);
		struct request req = ask("db", QOS_GUARANTEED, 2000, GIB(4));
		const struct placement placed = {.exclusive = true, .cpus = n->t->node[1].cpus};
		struct update_list ups = {0};

		req.cpus = "5,37";
		req.mems = cases[i].mems;
		engine_synchronize(n->g, 0,
			&(const struct inventory){
				&req, &(const struct placement *){&placed}, 1, NULL, 0, NULL},
			&ups);
		const struct decision *d = &ledger_at(engine_ledger(n->g), 0)->decision;
		assert_true(d->exclusive);
		assert_int_equal(d->mems.bits, cases[i].has);
		assert_int_equal(d->nr_blocks, cases[i].booked ? 1 : 0);
		if (cases[i].booked)
			assert_int_equal(d->blocks[0].nodes.bits, cases[i].booked);
		assert_int_equal(ups.nr, cases[i].updates);
		assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
		vec_fini(&ups);
		node_free(n);
	}
}

static void a_container_that_started_unpinned_is_placed_by_an_update(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct update_list ups = {0};
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, GIB(1));

	(void)state;
	engine_synchronize(n->g, 0,
		&(const struct inventory){
			&stray, &(const struct placement *){NULL}, 1, NULL, 0, NULL},
		&ups);
	assert_int_equal(ups.nr, 1);
	assert_string_equal(ups.at[0].container_id, "stray");
	assert_int_equal(cpuset_count(&ups.at[0].cpus), 4);
	vec_fini(&ups);
	engine_synchronize(n->g, 0, &(const struct inventory){0}, &ups);
	assert_int_equal(ledger_count(engine_ledger(n->g)), 0);
	vec_fini(&ups);
	node_free(n);
}

static void a_running_container_that_fits_nowhere_goes_on_in_the_shared_pool(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 0);
	struct request huge = ask("huge", QOS_GUARANTEED, 20000, GIB(1));
	struct update_list ups = {0};

	(void)state;
	engine_synchronize(n->g, 0,
		&(const struct inventory){
			&huge, &(const struct placement *){NULL}, 1, NULL, 0, NULL},
		&ups);
	const struct holding *h = ledger_find(engine_ledger(n->g), "huge");
	assert_non_null(h);
	assert_false(h->decision.exclusive || h->decision.preferred);
	assert_non_null(strstr(h->decision.message, "Topology locality"));
	assert_int_equal(ups.nr, 1);
	assert_true(cpuset_equal(&ups.at[0].cpus, &ledger_view(engine_ledger(n->g))->pool));
	vec_fini(&ups);
	node_free(n);
}

/* Two that claim one CPU: the older one keeps it, the other one gets CPUs of its own. */
static void of_two_containers_on_one_cpu_the_older_one_keeps_it(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request two[2] = {ask("young", QOS_GUARANTEED, 2000, GIB(1)),
		ask("old", QOS_GUARANTEED, 2000, GIB(1))};
	struct placement claim = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *placed[2] = {&claim, &claim};
	struct update_list ups = {0};

	(void)state;
	two[0].created_at_ns = 2;
	two[1].created_at_ns = 1;
	two[0].cpus = two[1].cpus = "4,36";
	two[0].mems = two[1].mems = "1";
	engine_synchronize(n->g, 0, &(const struct inventory){two, placed, 2, NULL, 0, NULL}, &ups);
	assert_int_equal(ups.nr, 1);
	assert_string_equal(ups.at[0].container_id, "young");
	assert_false(cpuset_has(&ups.at[0].cpus, 4) || cpuset_has(&ups.at[0].cpus, 36));
	check(n);
	vec_fini(&ups);
	node_free(n);
}

/* Whoever may create pods may write annotations. */
static void an_annotation_gives_no_more_cpus_than_the_request(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request thief = ask("thief", QOS_BURSTABLE, 1000, 0);
	struct placement claim = {.exclusive = true};
	struct update_list ups = {0};

	(void)state;
	thief.cpus = "4-31";
	thief.mems = "1";
	engine_synchronize(n->g, 0,
		&(const struct inventory){
			&thief, &(const struct placement *){&claim}, 1, NULL, 0, NULL},
		&ups);
	assert_true(cpuset_empty(&ledger_view(engine_ledger(n->g))->held));
	vec_fini(&ups);
	node_free(n);
}

/* One CPU more is as much too many as all of them: the container has as many as it asks for. */
static void an_annotation_gives_not_one_cpu_more_than_the_request(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request thief = ask("thief", QOS_GUARANTEED, 2000, 0);
	struct placement claim = {.exclusive = true};
	struct update_list ups = {0};

	(void)state;
	thief.cpus = "4-6";
	thief.mems = "1";
	assert_int_equal(cpuset_parse(&claim.cpus, "4-6", 3, NULL), 0);
	engine_synchronize(n->g, 0,
		&(const struct inventory){
			&thief, &(const struct placement *){&claim}, 1, NULL, 0, NULL},
		&ups);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->held), 2);
	vec_fini(&ups);
	node_free(n);
}

/* It was put elsewhere and made smaller while nobody listened. The pool has sharedPoolMinimum CPUs
 * at least, although it moves in steps, and four that are given up would lie idle. */
static void a_pool_that_would_be_too_small_has_all_that_a_container_gives_up(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 2);
	struct update_list ups = {0};

	(void)state;
	n->s.shared_pool_minimum = 60;
	assert_true(create(n, "web", QOS_GUARANTEED, 4000, 0).exclusive);
	engine_started(n->g, 0, "c0");
	struct request web = n->run[0].req;
	web.ask.cpu_milli = 2000;
	web.cpus = "24-25";
	web.mems = "6";
	engine_synchronize(n->g, 0,
		&(const struct inventory){
			&web, &(const struct placement *){NULL}, 1, NULL, 0, NULL},
		&ups);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->held), 2);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->pool), 62);
	vec_fini(&ups);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_containers_are_adopted_where_they_run),
		cmocka_unit_test(adopted_memory_is_not_booked_on_devices),
		cmocka_unit_test(a_container_that_started_unpinned_is_placed_by_an_update),
		cmocka_unit_test(a_running_container_that_fits_nowhere_goes_on_in_the_shared_pool),
		cmocka_unit_test(of_two_containers_on_one_cpu_the_older_one_keeps_it),
		cmocka_unit_test(an_annotation_gives_no_more_cpus_than_the_request),
		cmocka_unit_test(an_annotation_gives_not_one_cpu_more_than_the_request),
		cmocka_unit_test(a_pool_that_would_be_too_small_has_all_that_a_container_gives_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
