/* Claims of CPUs and memory: held from Prepare to Unprepare, whoever runs on them. */
#include "shares_rig.h"

static void a_claim_holds_cpus_and_memory_of_its_numa_node_without_any_container(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(8)), &d), 0);
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	assert_true(cpuset_within(&view(n)->held, &n->t->node[3].cpus));
	assert_true(view(n)->memory.node[3].reserved[0] == GIB(8));
	assert_false(cpuset_intersects(&view(n)->held, &view(n)->pool));
	assert_folded(n);
	assert_int_equal(unprepare(n, "u1"), 0);
	assert_true(cpuset_empty(&view(n)->held));
	assert_true(view(n)->memory.node[3].reserved[0] == 0);
	assert_folded(n);
	node_free(n);
}

static void to_prepare_twice_changes_nothing(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(40)), &d), 0);
	struct cpuset held = view(n)->held;
	assert_int_equal(prepare(n, &c, &d), 0);
	assert_true(cpuset_equal(&held, &view(n)->held));
	/* it is reserved for one pod more: so much memory is not there twice */
	c.pod[1] = "p2";
	c.claim.nr_pods = 2;
	assert_int_equal(prepare(n, &c, &d), 0);
	assert_true(cpuset_equal(&held, &view(n)->held));
	assert_true(shares_has_pod(engine_ledger(n->g), "p2"));
	assert_true(shares_has_pod(engine_ledger(n->folded), "p2"));
	node_free(n);
}

static void a_container_has_the_cpus_of_its_claim_and_they_stay_when_it_ends(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct claimed c, other;
	struct decision d, first, again;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(8)), &d), 0);
	first = create_with(n, "p1", "app", "u1/0");
	assert_true(first.admit && first.exclusive);
	assert_true(cpuset_equal(&first.cpus, &view(n)->held));
	assert_true(nodeset_equal(first.mems, nodeset_of(3)));
	assert_int_equal(unprepare(n, "u1"), -16); /* EBUSY: it runs on it */
	stop_last(n);
	/* nobody else gets them meanwhile */
	assert_int_equal(prepare(n, claim_on(&other, "u2", "p2", 3, 4, GIB(8)), &d), 0);
	again = create_with(n, "p1", "app", "u1/0");
	assert_true(again.admit);
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	assert_folded(n);
	stop_last(n);
	assert_int_equal(unprepare(n, "u1"), 0);
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	node_free(n);
}

/* The driver is off by then. */
static void without_a_driver_a_claim_ends_with_its_last_container(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	const struct ledger *l = engine_ledger(n->g);
	struct claimed c, unused;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_int_equal(prepare(n, claim_on(&unused, "u2", "p2", 3, 2, 0), &d), 0);
	(void)create_with(n, "p1", "app", "u1/0");
	engine_end_unused_claims(n->g, 0);
	check(n);
	assert_non_null(shares_any(l, "u1"));
	assert_null(shares_any(l, "u2"));
	stop_last(n);
	engine_end_unused_claims(n->g, 0);
	check(n);
	assert_null(shares_any(l, "u1"));
	assert_folded(n);
	node_free(n);
}

static void a_share_without_memory_leaves_the_memory_open(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 2, 2, 0), &d), 0);
	d = create_with(n, "p1", "app", "u1/0");
	assert_true(d.admit);
	assert_true(nodeset_equal(d.mems, view(n)->memory.usable));
	assert_true(nodeset_equal(d.nodes, nodeset_of(2)));
	node_free(n);
}

static void a_claim_is_for_the_pods_that_it_is_reserved_for(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	d = create_with(n, "thief", "app", "u1/0");
	assert_false(d.admit);
	assert_int_equal(d.cause, REFUSED_FOR_CLAIM);
	assert_non_null(strstr(d.message, "is not reserved for this pod"));
	const struct request req = {.shares = "u1/0", .pod.uid = "thief"};
	const struct holding *unknown = shares_unknown_pod(engine_ledger(n->g), &req);
	assert_true(unknown && unknown == shares_find(engine_ledger(n->g), "u1", 0));
	struct request other = {.container_id = "o",
		.ask.name = "app",
		.shares = "u1/0",
		.pod = {.sandbox_id = "o", .uid = "o", .ns = "other", .name = "o"}};
	other.claims = CLAIMS_KNOWN;
	engine_create(n->g, 0, &other, &d, NULL);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "a ResourceClaim of another namespace is not reserved"));
	assert_false(create_with(n, "p1", "app", "u9/0").admit);
	assert_false(create_with(n, "p1", "app", "u1/1").admit);
	assert_false(create_with(n, "p1", "app", "").admit);
	assert_false(create_with(n, "p1", "app", "c0").admit); /* an id of no share */
	node_free(n);
}

static void two_containers_run_on_a_claim_where_it_is_to_be_shared(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d, one, two;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	two = create_with(n, "p1", "log", "u1/0");
	assert_false(two.admit);
	assert_non_null(strstr(two.message, "container app runs on ResourceClaim shop/u1 already"));
	stop_last(n);
	assert_int_equal(unprepare(n, "u1"), 0);

	(void)claim_on(&c, "u2", "p1", 3, 4, 0);
	c.share[0].shared = true;
	assert_int_equal(prepare(n, &c, &d), 0);
	one = create_with(n, "p1", "app", "u2/0");
	two = create_with(n, "p1", "log", "u2/0");
	assert_true(one.admit && two.admit && cpuset_equal(&one.cpus, &two.cpus));
	assert_int_equal(shares_count_users(engine_ledger(n->g), "u2/0"), 2);
	node_free(n);
}

/* Replicas: their containers have one name. */
static void two_pods_that_a_claim_is_reserved_for_do_not_run_on_it_at_once(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	(void)claim_on(&c, "u1", "p1", 3, 4, 0);
	c.pod[1] = "p2";
	c.claim.nr_pods = 2;
	assert_int_equal(prepare(n, &c, &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	d = create_with(n, "p2", "app", "u1/0");
	assert_false(d.admit);
	assert_int_equal(d.cause, REFUSED_FOR_CLAIM);
	assert_non_null(strstr(d.message, "container app runs on ResourceClaim shop/u1 already"));
	assert_int_equal(shares_count_users(engine_ledger(n->g), "u1/0"), 1);
	stop_last(n);
	assert_true(create_with(n, "p2", "app", "u1/0").admit);
	node_free(n);
}

/* Its end was not reported: the same container of the same pod comes again. */
static void a_successor_runs_on_its_predecessors_claim(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	n->nr = 0;
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	assert_false(create_with(n, "p1", "log", "u1/0").admit);
	node_free(n);
}

static void shares_of_one_claim_lie_where_each_was_allocated(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	(void)claim_on(&c, "u1", "p1", 1, 2, GIB(1));
	c.share[1] = c.share[0];
	(void)snprintf(c.device[1], sizeof c.device[1], "numa6");
	c.share[1].device = c.device[1];
	c.claim.nr = 2;
	assert_int_equal(prepare(n, &c, &d), 0);
	assert_int_equal(cpuset_count_and(&view(n)->held, &n->t->node[1].cpus), 2);
	assert_int_equal(cpuset_count_and(&view(n)->held, &n->t->node[6].cpus), 2);
	d = create_with(n, "p1", "app", "u1/0 u1/1");
	assert_true(d.admit);
	assert_int_equal(cpuset_count(&d.cpus), 4);
	assert_true(nodeset_equal(d.mems, nodeset_or(nodeset_of(1), nodeset_of(6))));
	assert_folded(n);
	node_free(n);
}

static void what_does_not_fit_holds_nothing_not_even_half(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c, full;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&full, "u0", "p0", 6, 7, GIB(1)), &d), 0);
	(void)claim_on(&c, "u1", "p1", 1, 2, GIB(1));
	c.share[1] = c.share[0];
	(void)snprintf(c.device[1], sizeof c.device[1], "numa6");
	c.share[1].device = c.device[1];
	c.claim.nr = 2;
	assert_int_equal(prepare(n, &c, &d), -1); /* EPERM */
	assert_false(d.admit);
	assert_int_equal(cpuset_count(&view(n)->held), 7);
	assert_folded(n);
	assert_true(engine_could_hold(n->g, &c.claim));
	c.share[1].cpus = 9;
	assert_false(engine_could_hold(n->g, &c.claim));
	c.share[1].cpus = 1;
	c.share[1].memory[0].bytes = GIB(56); /* of 64, 8 are huge pages, 1 is held */
	assert_int_equal(prepare(n, &c, &d), -1);
	/* each alone fits, and both do not: nothing is recorded */
	c.share[0].cpus = c.share[1].cpus = 5;
	c.share[1].memory[0].bytes = GIB(1);
	(void)snprintf(c.device[1], sizeof c.device[1], "numa1");
	n->failing = true;
	assert_int_equal(prepare(n, &c, &d), -1);
	assert_false(d.admit);
	n->failing = false;
	(void)snprintf(c.device[1], sizeof c.device[1], "numa8");
	assert_int_equal(prepare(n, &c, &d), -22); /* EINVAL: there is no such NUMA node */
	assert_int_equal(cpuset_count(&view(n)->held), 7);
	node_free(n);
}

static void claims_and_plain_pods_share_one_ledger(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		char uid[ID_MAX];

		(void)snprintf(uid, sizeof uid, "u%u", i);
		assert_int_equal(prepare(n, claim_on(&c, uid, "p", i, i ? 8 : 5, GIB(2)), &d), 0);
	}
	assert_true(create(n, "plain", QOS_GUARANTEED, 1000, GIB(1)).admit);
	check(n);
	assert_false(create(n, "plain2", QOS_GUARANTEED, 1000, GIB(1)).admit);
	assert_int_equal(unprepare(n, "u5"), 0);
	d = create(n, "plain3", QOS_GUARANTEED, 8000, GIB(1));
	assert_true(d.admit && cpuset_within(&d.cpus, &n->t->node[5].cpus));
	assert_int_equal(prepare(n, claim_on(&c, "u5", "p", 5, 8, GIB(2)), &d), -1);
	assert_folded(n);
	node_free(n);
}

static void a_container_that_was_created_keeps_its_claim_until_it_ends(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct update_list ups = {0};
	struct claimed c;
	struct decision d;
	struct request req = ask("c0", QOS_BEST_EFFORT, 0, 0);

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	req.pod.uid = req.pod.name = req.pod.sandbox_id = "p1";
	req.shares = "u1/0";
	engine_create(n->g, 0, &req, &d, &ups);
	assert_true(d.admit);
	engine_end_unused_claims(n->g, 0); /* it may be about to start */
	assert_non_null(shares_any(engine_ledger(n->g), "u1"));
	assert_int_equal(unprepare(n, "u1"), -16); /* EBUSY: its cpuset is set */
	engine_live(n->g, 0, &req, NULL);
	assert_int_equal(unprepare(n, "u1"), -16);
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 4, 4, 0), &d), -16);
	assert_int_equal(cpuset_count_and(&view(n)->held, &n->t->node[3].cpus), 4);
	engine_forget(n->g, 0, "remove", "c0");
	assert_int_equal(unprepare(n, "u1"), 0);
	assert_folded(n);
	vec_fini(&ups);
	node_free(n);
}

static void a_claim_that_was_allocated_anew_is_held_anew(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 4, 4, 0), &d), -16);
	stop_last(n);
	assert_int_equal(prepare(n, &c, &d), 0);
	assert_true(cpuset_within(&view(n)->held, &n->t->node[4].cpus));
	node_free(n);
}

static void what_runs_without_its_share_gets_it_when_it_is_prepared(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;
	struct update want;
	struct running *r = &n->run[0];

	(void)state;
	/* found running, and the journal that had its claim is lost */
	*r = (struct running){.id = "c0", .name = "p1"};
	r->req = ask(r->id, QOS_BEST_EFFORT, 0, 0);
	r->req.pod.uid = r->req.pod.name = r->req.pod.sandbox_id = r->name;
	r->req.shares = "u1/0";
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	n->nr = 1;
	synchronize(n);
	check(n);
	assert_true(cpuset_empty(&view(n)->held));
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_true(engine_wants(n->g, "c0", &want));
	assert_true(cpuset_equal(&want.cpus, &view(n)->held));
	assert_folded(n);
	/* it is there in the next Synchronize, too */
	synchronize(n);
	check(n);
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	assert_true(engine_wants(n->g, "c0", &want));
	assert_true(cpuset_equal(&want.cpus, &view(n)->held));
	node_free(n);
}

static void a_synchronize_ends_containers_and_no_claim(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	n->nr = 0; /* it has gone while nobody listened */
	synchronize(n);
	check(n);
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	assert_int_equal(shares_count_users(engine_ledger(n->g), "u1/0"), 0);
	assert_int_equal(unprepare(n, "u1"), 0);
	assert_true(cpuset_empty(&view(n)->held));
	assert_folded(n);
	node_free(n);
}

static void cpus_that_go_offline_are_replaced_on_the_same_numa_node(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct cpuset off = {0};
	struct topo *less;
	struct claimed c;
	struct decision d;
	struct update want;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(8)), &d), 0);
	assert_true(create_with(n, "p1", "app", "u1/0").admit);
	engine_started(n->g, 0, n->run[0].id);
	cpuset_add(&off, cpuset_next(&view(n)->held, 0));
	less = machine_without(n->t, &off, (struct nodeset){0});
	engine_set_topo(n->g, 0, less);
	assert_int_equal(ledger_check(engine_ledger(n->g), NULL), 0);
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	assert_true(cpuset_within(&view(n)->held, &n->t->node[3].cpus));
	assert_true(engine_wants(n->g, n->run[0].id, &want));
	assert_true(cpuset_equal(&want.cpus, &view(n)->held));
	engine_free(n->g);
	n->g = NULL;
	free(less);
	node_free(n);
}

static void names_of_cdi_devices_become_shares(void **state)
{
	static const char *const two[] = {
		"vendor.com/gpu=0", "numafit.io/claim=a-b-c-0", "numafit.io/claim=d-31"};
	static const char *const odd[][1] = {{"numafit.io/claim=0"}, {"numafit.io/claim=-0"},
		{"numafit.io/claim=a-32"}, {"numafit.io/claim=a b-0"}, {"numafit.io/claim=a/b-0"},
		{"numafit.io/claim=a-"},
		{"numafit.io/claim=0123456789012345678901234567890123456789012345678901234567890123-0"}};
	char id[SHARE_ID_MAX], cdi[SHARE_CDI_MAX];
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 16);
	assert_string_equal(shares_of_cdi(two, 3, &a), "a-b-c/0 d/31");
	assert_null(shares_of_cdi(two, 1, &a));
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		assert_string_equal(shares_of_cdi(odd[i], 1, &a), "");
	assert_string_equal(share_id("u", 7, id), "u/7");
	assert_string_equal(share_cdi("u", 7, cdi), "numafit.io/claim=u-7");
	arena_fini(&a);
}

static void schedulers_are_offered_what_others_have_not(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct share_offer o[NODES_MAX];
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(8)), &d), 0);
	d = create(n, "plain", QOS_GUARANTEED, 2000, GIB(4));
	assert_true(d.admit);
	const unsigned at = nodeset_next(topo_nodes_of(n->t, &d.cpus), 0);
	shares_offer(engine_ledger(n->g), &n->s, o);
	assert_int_equal(at, 0);
	assert_int_equal(o[3].cpus, 8); /* the scheduler subtracts claims */
	assert_int_equal(o[3].claimed, 4);
	assert_true(o[3].memory[0] == GIB(56));
	assert_int_equal(o[0].cpus, 8 - 2 - 2);
	assert_true(o[0].memory[0] == GIB(52));
	assert_int_equal(o[1].cpus, 8);
	assert_true(o[1].memory[0] == GIB(56));
	n->s.claims_capacity = CLAIMS_SHARE;
	n->s.claims_share = 50;
	shares_offer(engine_ledger(n->g), &n->s, o);
	assert_int_equal(o[3].cpus, 4);
	assert_int_equal(o[0].cpus, 3);
	n->s.claims_capacity = CLAIMS_DYNAMIC;
	n->s.shared_pool_minimum = 4; /* two of them are the reserved ones */
	shares_offer(engine_ledger(n->g), &n->s, o);
	unsigned all = 0;
	for (unsigned i = 0; i < 8; i++)
		all += o[i].cpus;
	assert_int_equal(all, 64 - 2 - 2 - 2);
	assert_int_equal(o[1].cpus, 8); /* of those with as many the last ones give a CPU each */
	assert_int_equal(o[6].cpus, 7);
	assert_int_equal(o[7].cpus, 7);
	/* memory that serves a container on two NUMA nodes together */
	n->s.topology_policy = POLICY_BEST_EFFORT;
	assert_true(create(n, "wide", QOS_GUARANTEED, 1000, GIB(100)).admit);
	shares_offer(engine_ledger(n->g), &n->s, o);
	unsigned closed = 0;
	for (unsigned i = 0; i < 8; i++)
		closed += o[i].closed && !o[i].memory[0];
	assert_int_equal(closed, 2);
	node_free(n);
}

static void a_claim_is_offered_what_fits_beside_the_others(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct share_offer o[NODES_MAX];
	struct claimed c;
	struct decision d;
	unsigned order[] = {0, 1, 2, 3};

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(40)), &d), 0);
	shares_offer(engine_ledger(n->g), &n->s, o);
	assert_true(o[3].claimed_memory[0] == GIB(40));
	assert_true(share_is_offered(n->t, claim_on(&c, "u2", "p", 3, 4, GIB(16))->share, &o[3]));
	assert_false(share_is_offered(n->t, claim_on(&c, "u2", "p", 3, 5, GIB(16))->share, &o[3]));
	assert_false(share_is_offered(n->t, claim_on(&c, "u2", "p", 3, 4, GIB(17))->share, &o[3]));
	assert_true(share_is_offered(n->t, claim_on(&c, "u2", "p", 1, 8, 0)->share, &o[1]));
	o[1].closed = true;
	assert_false(share_is_offered(n->t, claim_on(&c, "u2", "p", 1, 8, 0)->share, &o[1]));
	c.share[0].nr_memory = 1;
	c.share[0].memory[0] = (struct memory_ask){2 << 20, 2 << 20}; /* of which it has none */
	assert_false(share_is_offered(n->t, c.share, &o[2]));
	shares_order(CLAIMS_MOST_ALLOCATED, o, order, 4); /* 6, 8, 8 and 4 are left */
	assert_memory_equal(order, ((unsigned[]){3, 0, 1, 2}), sizeof order);
	shares_order(CLAIMS_LEAST_ALLOCATED, o, order, 4);
	assert_memory_equal(order, ((unsigned[]){1, 2, 0, 3}), sizeof order);
	node_free(n);
}

static void what_the_shared_pool_keeps_is_taken_where_claims_have_left_something(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct share_offer o[NODES_MAX];
	struct claimed c;
	struct decision d;
	char uid[ID_MAX];

	(void)state;
	for (unsigned i = 1; i < 8; i++) { /* CPUs are left on NUMA node 0 alone */
		(void)snprintf(uid, sizeof uid, "u%u", i);
		assert_int_equal(prepare(n, claim_on(&c, uid, "p", i, 8, 0), &d), 0);
	}
	n->s.shared_pool_minimum = 5; /* two of them are the reserved ones */
	shares_offer(engine_ledger(n->g), &n->s, o);
	assert_int_equal(o[0].cpus, 6 - 3);
	for (unsigned i = 1; i < 8; i++)
		assert_int_equal(o[i].cpus, 8);
	assert_int_equal(prepare(n, claim_on(&c, "u0", "p", 0, 4, 0), &d), -1);
	assert_int_equal(prepare(n, claim_on(&c, "u0", "p", 0, 3, 0), &d), 0);
	node_free(n);
}

static void a_container_that_runs_elsewhere_is_taken_over_on_its_claim(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct running *r = &n->run[0];
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, 0), &d), 0);
	*r = (struct running){.id = "c0", .name = "p1", .cpus = "20-23", .mems = "5"};
	r->req = ask(r->id, QOS_GUARANTEED, 4000, GIB(1)); /* as many as its claim has */
	r->req.pod.uid = r->req.pod.name = r->req.pod.sandbox_id = r->name;
	r->req.shares = "u1/0";
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	r->placed.exclusive = true;
	(void)cpuset_parse(&r->placed.cpus, r->cpus, strlen(r->cpus), NULL);
	n->nr = 1;
	synchronize(n);
	check(n);
	assert_int_equal(cpuset_count(&view(n)->held), 4); /* the claim's, and no others */
	assert_true(ledger_find(engine_ledger(n->g), "c0")->decision.within_claims);
	node_free(n);
}

static void the_quota_is_lifted_on_claims_that_one_container_has_alone(void **state)
{
	struct node *n = node_new(POLICY_NONE, 0);
	struct claimed c;
	struct decision d;

	(void)state;
	n->s.quota_use = QUOTA_LIFT;
	for (int shared = 0; shared <= 1; shared++) {
		struct update want;

		(void)claim_on(&c, shared ? "u1" : "u0", "p1", 3, 2, 0);
		c.share[0].shared = shared;
		assert_int_equal(prepare(n, &c, &d), 0);
		assert_true(
			create_with(n, "p1", shared ? "b" : "a", shared ? "u1/0" : "u0/0").admit);
		assert_true(engine_wants(n->g, n->run[n->nr - 1].id, &want));
		assert_int_equal(want.without_quota, !shared);
	}
	node_free(n);
}

static void a_pod_with_claims_is_decided_container_by_container(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	const struct ask part = {
		.name = "app", .cpu_milli = 4000, .nr_memory = 1, .memory = {{0, GIB(8)}}};
	const struct pod pod = {.sandbox_id = "p1",
		.uid = "p1",
		.ns = "shop",
		.name = "p1",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = &part};
	struct claimed c;
	struct decision d;

	(void)state;
	assert_int_equal(prepare(n, claim_on(&c, "u1", "p1", 3, 4, GIB(8)), &d), 0);
	engine_run_pod(n->g, 0, &pod, &d);
	assert_true(d.admit);
	assert_int_equal(d.apart, POD_APART_CLAIMS);
	/* it mirrors its claim in its requests: these count once */
	assert_int_equal(cpuset_count(&view(n)->held), 4);
	check(n);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_claim_holds_cpus_and_memory_of_its_numa_node_without_any_container),
		cmocka_unit_test(to_prepare_twice_changes_nothing),
		cmocka_unit_test(a_container_has_the_cpus_of_its_claim_and_they_stay_when_it_ends),
		cmocka_unit_test(without_a_driver_a_claim_ends_with_its_last_container),
		cmocka_unit_test(a_share_without_memory_leaves_the_memory_open),
		cmocka_unit_test(a_claim_is_for_the_pods_that_it_is_reserved_for),
		cmocka_unit_test(two_containers_run_on_a_claim_where_it_is_to_be_shared),
		cmocka_unit_test(two_pods_that_a_claim_is_reserved_for_do_not_run_on_it_at_once),
		cmocka_unit_test(a_successor_runs_on_its_predecessors_claim),
		cmocka_unit_test(shares_of_one_claim_lie_where_each_was_allocated),
		cmocka_unit_test(what_does_not_fit_holds_nothing_not_even_half),
		cmocka_unit_test(claims_and_plain_pods_share_one_ledger),
		cmocka_unit_test(a_container_that_was_created_keeps_its_claim_until_it_ends),
		cmocka_unit_test(a_claim_that_was_allocated_anew_is_held_anew),
		cmocka_unit_test(what_runs_without_its_share_gets_it_when_it_is_prepared),
		cmocka_unit_test(a_synchronize_ends_containers_and_no_claim),
		cmocka_unit_test(cpus_that_go_offline_are_replaced_on_the_same_numa_node),
		cmocka_unit_test(names_of_cdi_devices_become_shares),
		cmocka_unit_test(schedulers_are_offered_what_others_have_not),
		cmocka_unit_test(a_claim_is_offered_what_fits_beside_the_others),
		cmocka_unit_test(
			what_the_shared_pool_keeps_is_taken_where_claims_have_left_something),
		cmocka_unit_test(a_container_that_runs_elsewhere_is_taken_over_on_its_claim),
		cmocka_unit_test(the_quota_is_lifted_on_claims_that_one_container_has_alone),
		cmocka_unit_test(a_pod_with_claims_is_decided_container_by_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
