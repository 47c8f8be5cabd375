/* Containers that are left alone as they run (onAdopt: leave), until somebody sets them. */
#include "engine_life_rig.h"

static void a_container_created_while_the_daemon_was_away_may_be_left_alone(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, 0);
	const struct placement *none[] = {NULL};
	const struct inventory what = {&stray, none, 1, NULL, 0, NULL};

	(void)state;
	n->s.on_adopt = ADOPT_LEAVE;
	stray.cpus = "0-63";
	engine_synchronize(n->g, 0, &what, &n->ups);
	assert_int_equal(n->ups.nr, 0);
	const struct holding *h = ledger_find(engine_ledger(n->g), "stray");
	assert_false(h->decision.exclusive);
	assert_true(decision_is_left(&h->decision));
	assert_string_equal(h->decision.message, "left as it ran: onAdopt is leave");
	node_free(n);
}

/* Settings that leave, and one container in a Synchronize. */
static void synchronize_leaving(
	struct node *n, const struct request *req, const struct placement *placed)
{
	const struct placement *const list[] = {placed};

	n->s.on_adopt = ADOPT_LEAVE;
	vec_fini(&n->ups);
	engine_synchronize(
		n->g, 0, &(const struct inventory){req, list, 1, NULL, 0, NULL}, &n->ups);
}

/* The daemon comes back without its journal. */
static void forget_all(struct node *n)
{
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	engine_free(n->g);
	engine_free(n->folded);
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
}

static struct placement annotation_of(const struct decision *d)
{
	return (struct placement){
		.exclusive = d->exclusive, .policy = d->policy, .cpus = d->cpus, .mems = d->mems};
}

static void it_has_shrunk_while_nobody_listened(bool annotated)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 5000, 0);
	char cpus[CPUSET_TEXT_MAX];
	struct decision d = create(n, &web);
	const struct placement placed = annotation_of(&d);

	web.cpus = cpuset_format(&d.cpus, cpus, sizeof cpus);
	web.mems = "0-7";
	web.ask.cpu_milli = 1500;
	synchronize_leaving(n, &web, annotated ? &placed : NULL);
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_false(h->decision.exclusive || decision_is_left(&h->decision));
	assert_int_equal(n->ups.nr, 1);
	assert_true(cpuset_equal(&n->ups.at[0].cpus, &ledger_view(engine_ledger(n->g))->pool));
	node_free(n);
}

static void a_placed_container_that_shrank_meanwhile_is_not_left_alone(void **state)
{
	(void)state;
	it_has_shrunk_while_nobody_listened(true);
}

static void a_container_of_the_journal_that_shrank_meanwhile_is_not_left_alone(void **state)
{
	(void)state;
	it_has_shrunk_while_nobody_listened(false);
}

static void a_container_that_was_moved_to_the_pool_is_not_left_alone_without_a_journal(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 5000, 0),
		       wish = ask("web", QOS_GUARANTEED, 1500, 0),
		       big = ask("big", QOS_GUARANTEED, 8000, 0);
	char cpus[CPUSET_TEXT_MAX];
	struct decision d = create(n, &web);
	const struct placement placed = annotation_of(&d);

	(void)state;
	assert_true(engine_update(n->g, 0, &wish, &d, &n->ups) && d.admit);
	wish.cpus = cpuset_format(&d.cpus, cpus, sizeof cpus);
	wish.mems = "0-7";
	forget_all(n);
	synchronize_leaving(n, &wish, &placed);
	assert_false(decision_is_left(&ledger_find(engine_ledger(n->g), "web")->decision));
	vec_fini(&n->ups);
	engine_create(n->g, 0, &big, &d, &n->ups);
	assert_true(d.admit);
	assert_int_equal(n->ups.nr, 1);
	assert_string_equal(n->ups.at[0].container_id, "web");
	assert_false(cpuset_intersects(&n->ups.at[0].cpus, &d.cpus));
	node_free(n);
}

static void cpus_of_a_container_that_is_left_alone_are_not_given_out(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request stray = ask("stray", QOS_BURSTABLE, 100, 0),
		       web = ask("web", QOS_GUARANTEED, 8000, 0),
		       all = ask("all", QOS_GUARANTEED, 52000, 0);
	struct cpuset on = list("1-4");
	struct decision d;

	(void)state;
	stray.cpus = "1-4";
	stray.mems = "0-7";
	synchronize_leaving(n, &stray, NULL);
	const struct holding *h = ledger_find(engine_ledger(n->g), "stray");
	assert_true(decision_is_left(&h->decision) && cpuset_equal(&h->decision.left_on, &on));
	assert_int_equal(n->ups.nr, 0);
	d = create(n, &web);
	assert_true(d.exclusive && !cpuset_intersects(&d.cpus, &on));
	d = create(n, &all);
	assert_false(d.admit);
	engine_release(n->g, 0, "stop", "stray", &n->ups);
	d = create(n, &all);
	assert_true(d.admit && cpuset_intersects(&d.cpus, &on));
	node_free(n);
}

static void a_container_on_the_cpus_of_another_one_is_not_left_alone(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0),
		       stray = ask("stray", QOS_BURSTABLE, 100, 0);
	struct decision d = create(n, &web);
	char cpus[CPUSET_TEXT_MAX];

	(void)state;
	n->s.on_adopt = ADOPT_LEAVE;
	stray.cpus = cpuset_format(&d.cpus, cpus, sizeof cpus);
	engine_live(n->g, 0, &stray, NULL);
	engine_started(n->g, 0, "stray");
	assert_false(decision_is_left(&ledger_find(engine_ledger(n->g), "stray")->decision));
	assert_updated(n, "stray");
	node_free(n);
}

static void a_container_that_is_left_alone_is_placed_when_its_cpus_are_set(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request stray = ask("stray", QOS_BURSTABLE, 100, 0),
		       same = ask("stray", QOS_BURSTABLE, 100, 0);
	struct decision d;

	(void)state;
	synchronize_leaving(n, &stray, NULL);
	assert_false(engine_update(n->g, 0, &same, &d, &n->ups)); /* it runs on as it did */
	assert_true(decision_is_left(&ledger_find(engine_ledger(n->g), "stray")->decision));
	same.cpus = "1-4";
	assert_true(engine_update(n->g, 0, &same, &d, &n->ups));
	assert_true(d.admit && !decision_is_left(&d) &&
		    cpuset_equal(&d.cpus, &ledger_view(engine_ledger(n->g))->pool));
	assert_false(decision_is_left(&ledger_find(engine_ledger(n->g), "stray")->decision));
	node_free(n);
}

static void a_container_that_is_left_alone_is_examined_with_every_synchronize(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request stray = ask("stray", QOS_BURSTABLE, 100, 0);
	const struct ledger *l = engine_ledger(n->g);
	struct cpuset on = list("5-8");

	(void)state;
	stray.cpus = "1-4";
	synchronize_leaving(n, &stray, NULL);
	stray.cpus = "5-8";
	synchronize_leaving(n, &stray, NULL);
	assert_true(cpuset_equal(&ledger_find(l, "stray")->decision.left_on, &on));
	n->s.on_adopt = ADOPT_PLACE;
	const struct placement *none[] = {NULL};
	engine_synchronize(
		n->g, 0, &(const struct inventory){&stray, none, 1, NULL, 0, NULL}, &n->ups);
	assert_false(decision_is_left(&ledger_find(l, "stray")->decision));
	assert_int_equal(n->ups.nr, 1);
	node_free(n);
}

/* What status shows of it is what is in force. */
static void a_container_that_is_left_alone_keeps_its_memory_nodes(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	const struct ledger *l = engine_ledger(n->g);
	struct request stray = ask("stray", QOS_GUARANTEED, 1500, GIB(1));

	(void)state;
	stray.cpus = "0-63";
	synchronize_leaving(n, &stray, NULL);
	assert_true(nodeset_equal(ledger_find(l, "stray")->decision.mems, n->t->nodes));
	stray.mems = "3";
	synchronize_leaving(n, &stray, NULL);
	assert_true(decision_is_left(&ledger_find(l, "stray")->decision));
	assert_true(nodeset_equal(ledger_find(l, "stray")->decision.mems, nodeset_of(3)));
	node_free(n);
}

static void a_container_that_is_left_alone_is_never_updated(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request stray = ask("stray", QOS_BURSTABLE, 100, 0),
		       late = ask("late", QOS_BURSTABLE, 100, 0),
		       web = ask("web", QOS_GUARANTEED, 4000, 0), again;
	const struct placement *none[] = {NULL};
	struct decision d;

	(void)state;
	n->s.on_adopt = ADOPT_LEAVE;
	stray.cpus = late.cpus = "0-63";
	engine_synchronize(
		n->g, 0, &(const struct inventory){&stray, none, 1, NULL, 0, NULL}, &n->ups);
	engine_live(n->g, 0, &late, NULL);
	engine_must_update(n->g, "stray"); /* as for one that a runtime has not updated */
	engine_create(n->g, 0, &web, &d, &n->ups);
	assert_int_equal(n->ups.nr, 0);
	again = stray; /* its successor is placed, and updated */
	again.container_id = "again";
	engine_create(n->g, 0, &again, &d, &n->ups);
	assert_string_equal(d.message, "");
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_created_while_the_daemon_was_away_may_be_left_alone),
		cmocka_unit_test(a_container_that_is_left_alone_is_never_updated),
		cmocka_unit_test(a_placed_container_that_shrank_meanwhile_is_not_left_alone),
		cmocka_unit_test(
			a_container_of_the_journal_that_shrank_meanwhile_is_not_left_alone),
		cmocka_unit_test(
			a_container_that_was_moved_to_the_pool_is_not_left_alone_without_a_journal),
		cmocka_unit_test(cpus_of_a_container_that_is_left_alone_are_not_given_out),
		cmocka_unit_test(a_container_that_is_left_alone_keeps_its_memory_nodes),
		cmocka_unit_test(a_container_on_the_cpus_of_another_one_is_not_left_alone),
		cmocka_unit_test(a_container_that_is_left_alone_is_placed_when_its_cpus_are_set),
		cmocka_unit_test(a_container_that_is_left_alone_is_examined_with_every_synchronize),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
