/* Events in random order: the ledger stays sound, the shared pool is always clear of exclusive
 * CPUs, and the records fold into the very same ledger. */
#include <numafit/engine.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNNING_MAX = 64, ROUNDS = 4000, ID_MAX = 16 };

/* What a runtime knows of its containers: the cpuset that each of them runs with. */
struct running {
	char id[ID_MAX], name[ID_MAX];
	struct request req;
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct placement placed;
};

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct running run[RUNNING_MAX];
	unsigned nr, next_id;
	bool failing; /* the record hook refuses */
	unsigned updates;
};

static int fold(void *ctx, const struct record *r, struct err *e)
{
	struct node *n = ctx;

	if (n->failing)
		return err_set(e, 28, "journal: no space left on device");
	return engine_replay(n->folded, r, e);
}

static struct node *node_on(struct topo *t, enum topology_policy policy, unsigned step)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	n->t = t;
	n->s = settings_of(policy);
	n->s.shared_pool_step = step;
	(void)cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL);
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	return n;
}

static struct node *node_new(enum topology_policy policy, unsigned step)
{
	return node_on(machine_of_eight(), policy, step);
}

static void node_free(struct node *n)
{
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

static struct running *find(struct node *n, const char *id)
{
	for (unsigned i = 0; i < n->nr; i++)
		if (strcmp(n->run[i].id, id) == 0)
			return &n->run[i];
	return NULL;
}

static void set_cpuset(
	struct node *n, struct running *r, const struct cpuset *cpus, struct nodeset mems)
{
	(void)cpuset_format(cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(mems, &n->t->ids, r->mems, sizeof r->mems);
}

static void apply(struct node *n, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++) {
		struct running *r = find(n, ups->at[i].container_id);

		for (size_t j = 0; j < i;
			j++) /* one update for each container: NRI refuses a second one */
			assert_string_not_equal(ups->at[i].container_id, ups->at[j].container_id);
		if (r)
			set_cpuset(n, r, &ups->at[i].cpus, ups->at[i].mems);
	}
	n->updates += (unsigned)ups->nr;
	vec_fini(ups);
}

static struct cpuset cpus_in_force(const struct running *r)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, r->cpus, strlen(r->cpus), NULL), 0);
	return cpus;
}

/* Nobody runs on a CPU that another one has to itself: seen from outside, by what is in force. */
static void check(struct node *n)
{
	struct err e;

	if (ledger_check(engine_ledger(n->g), &e) || ledger_check(engine_ledger(n->folded), &e))
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < n->nr; i++)
		for (unsigned j = 0; j < n->nr; j++) {
			struct cpuset mine = cpus_in_force(&n->run[i]),
				      other = cpus_in_force(&n->run[j]);

			if (i != j && n->run[i].placed.exclusive &&
				cpuset_intersects(&mine, &other))
				fail_msg("%s (%s) and %s (%s) share a CPU", n->run[i].id,
					n->run[i].cpus, n->run[j].id, n->run[j].cpus);
		}
}

static void check_same_ledger(struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);

	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	for (size_t i = 0; i < ledger_count(a); i++) {
		const struct holding *x = ledger_at(a, i), *y = ledger_at(b, i);

		assert_string_equal(x->request.container_id, y->request.container_id);
		assert_string_equal(x->request.pod.name, y->request.pod.name);
		assert_int_equal(x->state, y->state);
		assert_int_equal(x->decision.exclusive, y->decision.exclusive);
		assert_true(cpuset_equal(&x->decision.cpus, &y->decision.cpus));
		assert_int_equal(x->decision.mems.bits, y->decision.mems.bits);
		assert_int_equal(x->decision.nr_blocks, y->decision.nr_blocks);
	}
}

static struct decision create(
	struct node *n, const char *pod, enum qos qos, unsigned milli, uint64_t memory)
{
	struct running *r = &n->run[n->nr];
	struct update_list ups = {0};
	struct decision d;

	assert_true(n->nr < RUNNING_MAX);
	(void)snprintf(r->id, sizeof r->id, "c%u", n->next_id++);
	(void)snprintf(r->name, sizeof r->name, "%s", pod);
	r->req = ask(r->id, qos, milli, memory);
	r->req.pod.uid = r->req.pod.name = r->req.pod.sandbox_id = r->name;
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	r->req.created_at_ns = n->next_id;
	r->cpus[0] = r->mems[0] = '\0';
	engine_create(n->g, 0, &r->req, &d, &ups);
	apply(n, &ups);
	if (d.admit) {
		set_cpuset(n, r, &d.cpus, d.mems);
		r->placed = (struct placement){.exclusive = d.exclusive,
			.preferred = d.preferred,
			.policy = d.policy,
			.cpus = d.cpus,
			.mems = d.mems,
			.nodes = d.nodes,
			.has_nodes = d.has_affinity};
		n->nr++;
	}
	return d;
}

static void forget(struct node *n, unsigned i)
{
	n->run[i] = n->run[--n->nr];
	/* the strings moved with it */
	n->run[i].req.container_id = n->run[i].id;
	n->run[i].req.pod.uid = n->run[i].req.pod.name = n->run[i].req.pod.sandbox_id =
		n->run[i].name;
	n->run[i].req.cpus = n->run[i].cpus;
	n->run[i].req.mems = n->run[i].mems;
}

static void stop(struct node *n, unsigned i)
{
	struct update_list ups = {0};
	char id[ID_MAX];

	memcpy(id, n->run[i].id, sizeof id);
	forget(n, i);
	engine_release(n->g, 0, "stop", id, &ups);
	apply(n, &ups);
}

static void synchronize(struct node *n)
{
	struct request list[RUNNING_MAX];
	const struct placement *placed[RUNNING_MAX];
	struct update_list ups = {0};

	for (unsigned i = 0; i < n->nr; i++) {
		list[i] = n->run[i].req;
		placed[i] = &n->run[i].placed;
	}
	engine_synchronize(n->g, 0,
		&(const struct inventory){.requests = list, .placed = placed, .nr = n->nr}, &ups);
	apply(n, &ups);
}

static void random_event(struct node *n, struct random *r)
{
	unsigned what = random_below(r, 100);
	char pod[ID_MAX];

	(void)snprintf(pod, sizeof pod, "p%u", random_below(r, 40));
	if (what < 55 && n->nr < RUNNING_MAX) {
		for (unsigned i = 0; i < n->nr;
			i++) /* its predecessor is dead: the runtime says so later, or never */
			if (strcmp(n->run[i].name, pod) == 0)
				forget(n, i--);
		(void)create(n, pod, (enum qos)random_below(r, NR_QOS), 500 * random_below(r, 24),
			GIB(random_below(r, 40)));
	} else if (what < 90 && n->nr) {
		stop(n, random_below(r, n->nr));
	} else if (what < 95 && n->nr) {
		engine_live(n->g, 0, &n->run[random_below(r, n->nr)].req, NULL);
	} else {
		synchronize(n);
	}
}

static void random_events_keep_every_invariant_and_fold_to_the_same(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};

	(void)state;
	for (unsigned p = 0; p < NR_POLICIES; p++) {
		struct node *n = node_new(policies[p], p * 2);
		struct random r = {20261121 + p};

		for (unsigned i = 0; i < ROUNDS; i++) {
			random_event(n, &r);
			check(n);
			check_same_ledger(n);
		}
		node_free(n);
	}
}

static void most_exclusive_creates_move_no_container_when_the_pool_shrinks_in_steps(void **state)
{
	unsigned updates[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, i ? 2 : 0);
		char pod[ID_MAX];

		(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
		engine_live(n->g, 0, &n->run[0].req, NULL);
		engine_started(n->g, 0, n->run[0].req.container_id);
		for (unsigned c = 0; c < 16; c++) {
			(void)snprintf(pod, sizeof pod, "x%u", c);
			assert_true(create(n, pod, QOS_GUARANTEED, 1000, GIB(1)).admit);
			check(n);
		}
		updates[i] = n->updates;
		node_free(n);
	}
	assert_int_equal(updates[0], 16);
	assert_in_range(updates[1], 1, 8);
}

static void a_step_is_a_quarter_of_the_node_at_most(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 16);

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
	assert_true(create(n, "x", QOS_GUARANTEED, 2000, GIB(1)).admit);
	struct cpuset gone = cpuset_minus(n->t->cpus, &ledger_view(engine_ledger(n->g))->pool);
	assert_int_equal(cpuset_count(&gone), 4); /* its own and 2 of 8 ahead of need */
	node_free(n);
}

static void the_pool_grows_back_once_many_cpus_are_idle(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 2);

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(create(n, i ? "x" : "y", QOS_GUARANTEED, 3000, GIB(1)).admit);
	while (n->nr > 1)
		stop(n, 1);
	check(n);
	struct cpuset idle = cpuset_minus(n->t->cpus, &ledger_view(engine_ledger(n->g))->pool);
	assert_in_range(cpuset_count(&idle), 0, 4);
	struct cpuset web = cpus_in_force(&n->run[0]);
	assert_true(cpuset_equal(&web, &ledger_view(engine_ledger(n->g))->pool));
	node_free(n);
}

static void a_restarted_container_keeps_what_its_predecessor_had(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	struct decision first = create(n, "db", QOS_GUARANTEED, 3000, GIB(1));
	stop(n, 0); /* room that a new decision would prefer */
	struct decision again = create(n, "db", QOS_GUARANTEED, 3000, GIB(1));
	assert_int_equal(again.source, SOURCE_INHERITED);
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	struct decision larger = create(n, "db", QOS_GUARANTEED, 4000, GIB(1));
	assert_int_equal(larger.source, SOURCE_DECIDED);
	assert_int_equal(ledger_count(engine_ledger(n->g)), 1);
	node_free(n);
}

/* Not every runtime sends a pod's uid or a container's name. */
static void a_container_without_a_name_succeeds_no_other(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct update_list ups = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct request a = ask("a", QOS_GUARANTEED, 2000, GIB(1)),
			       b = ask("b", QOS_GUARANTEED, 2000, GIB(1));
		struct decision first, second;

		if (i)
			a.pod.uid = b.pod.uid = "";
		else
			a.ask.name = b.ask.name = "";
		engine_create(n->g, 0, &a, &first, &ups);
		engine_create(n->g, 0, &b, &second, &ups);
		assert_true(first.admit && second.admit);
		assert_false(cpuset_intersects(&first.cpus, &second.cpus));
		assert_int_equal(ledger_count(engine_ledger(n->g)), 2);
		engine_forget(n->g, 0, "remove", "a");
		engine_forget(n->g, 0, "remove", "b");
	}
	vec_fini(&ups);
	node_free(n);
}

static void a_failed_write_of_a_record_refuses_the_container_and_changes_nothing(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	n->failing = true;
	struct decision d = create(n, "b", QOS_GUARANTEED, 2000, GIB(1));
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "no space left on device"));
	n->failing = false;
	check_same_ledger(n);
	assert_true(create(n, "b", QOS_GUARANTEED, 2000, GIB(1)).admit);
	check(n);
	node_free(n);
}

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

static void updates_that_could_not_be_sent_come_with_the_next_reply(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, GIB(1));
	struct update_list ups = {0};

	(void)state;
	engine_live(n->g, 0, &stray,
		NULL); /* started while nobody listened; this reply cannot carry updates */
	/* a refusal is an error to the runtime, and carries nothing either */
	assert_false(create(n, "huge", QOS_GUARANTEED, 99000, GIB(1)).admit);
	assert_int_equal(n->updates, 0);
	(void)create(n, "web", QOS_BURSTABLE, 100, 0);
	assert_int_equal(n->updates, 1);
	engine_release(n->g, 0, "stop", "unknown", &ups);
	assert_int_equal(ups.nr, 0);
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

/* The pool shrank in an event that cannot carry updates: the others hear of it with the next one.
 */
static void a_container_seen_late_updates_the_others_with_the_next_reply(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, GIB(1));

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 100, 0);
	engine_live(n->g, 0, &stray, NULL);
	assert_int_equal(n->updates, 0);
	(void)create(n, "more", QOS_BURSTABLE, 100, 0);
	assert_int_equal(n->updates, 2); /* web and stray */
	check(n);
	engine_forget(n->g, 0, "remove", "stray");
	assert_null(ledger_find(engine_ledger(n->g), "stray"));
	check_same_ledger(n);
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

static void a_dump_is_the_ledger(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 2);
	struct random r = {5};
	struct err e;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		random_event(n, &r);
	engine_free(n->folded);
	n->folded = engine_new(n->t, &n->s, &(const struct engine_hooks){.ctx = n, .record = fold});
	if (engine_dump(n->g, 0, fold, n, &e))
		fail_msg("%s", e.text);
	check_same_ledger(n);
	node_free(n);
}

static void removing_a_pod_removes_its_containers(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 2);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	(void)create(n, "b", QOS_GUARANTEED, 2000, GIB(1));
	engine_release_pod(n->g, 0, "remove-pod", &(struct pod){.sandbox_id = "a", .uid = ""});
	assert_int_equal(ledger_count(engine_ledger(n->g)), 1);
	assert_string_equal(ledger_at(engine_ledger(n->g), 0)->request.pod.name, "b");
	node_free(n);
}

static void a_record_that_contradicts_the_ones_before_is_refused(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 0);
	struct decision d = create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	struct request other = ask("other", QOS_GUARANTEED, 2000, GIB(1));
	struct record r = {.seq = 9,
		.op = RECORD_GRANT,
		.cause = "create",
		.container_id = "other",
		.request = &other,
		.decision = &d,
		.pool = ledger_view(engine_ledger(n->g))->pool};
	struct err e;

	(void)state;
	assert_int_equal(engine_replay(n->folded, &r, &e), -16);
	assert_non_null(strstr(e.text, "record 9, container other: CPU"));
	assert_non_null(strstr(e.text, "is held by container main of pod default/a"));
	d.cpus = n->t->node[5].cpus;
	r.pool = n->t->cpus;
	assert_int_equal(engine_replay(n->folded, &r, &e), -22);
	check_same_ledger(n);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_keep_every_invariant_and_fold_to_the_same),
		cmocka_unit_test(
			most_exclusive_creates_move_no_container_when_the_pool_shrinks_in_steps),
		cmocka_unit_test(a_step_is_a_quarter_of_the_node_at_most),
		cmocka_unit_test(the_pool_grows_back_once_many_cpus_are_idle),
		cmocka_unit_test(a_restarted_container_keeps_what_its_predecessor_had),
		cmocka_unit_test(a_container_without_a_name_succeeds_no_other),
		cmocka_unit_test(
			a_failed_write_of_a_record_refuses_the_container_and_changes_nothing),
		cmocka_unit_test(running_containers_are_adopted_where_they_run),
		cmocka_unit_test(adopted_memory_is_not_booked_on_devices),
		cmocka_unit_test(a_container_that_started_unpinned_is_placed_by_an_update),
		cmocka_unit_test(updates_that_could_not_be_sent_come_with_the_next_reply),
		cmocka_unit_test(a_running_container_that_fits_nowhere_goes_on_in_the_shared_pool),
		cmocka_unit_test(a_container_seen_late_updates_the_others_with_the_next_reply),
		cmocka_unit_test(of_two_containers_on_one_cpu_the_older_one_keeps_it),
		cmocka_unit_test(an_annotation_gives_no_more_cpus_than_the_request),
		cmocka_unit_test(a_dump_is_the_ledger),
		cmocka_unit_test(removing_a_pod_removes_its_containers),
		cmocka_unit_test(a_record_that_contradicts_the_ones_before_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
