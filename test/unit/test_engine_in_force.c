/* A runtime that has forgotten what it changed: it reports containers as they were created. */
#include <numafit/engine.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A node with a container of four CPUs of its own, web, and one that shares, log. */
struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct update_list ups;
	struct request web, log;
	struct placement said[2];                /* of both, by their annotations */
	struct cpuset created, grown;            /* web's */
	char text[2][CPUSET_TEXT_MAX], mems[64]; /* what the runtime reports */
};

static int fold(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(((struct node *)ctx)->folded, r, e);
}

static struct cpuset create(struct node *n, const struct request *req, struct placement *said)
{
	struct decision d;

	engine_create(n->g, 0, (struct request[]){*req}, &d, &n->ups);
	assert_true(d.admit);
	engine_live(n->g, 0, req, NULL);
	engine_started(n->g, 0, req->container_id);
	vec_fini(&n->ups);
	if (said)
		*said = (struct placement){.exclusive = d.exclusive,
			.policy = d.policy,
			.cpus = d.cpus,
			.mems = d.mems,
			.nodes = d.nodes,
			.has_nodes = d.has_affinity};
	return d.cpus;
}

/* The report is of the creation from here on. */
static void report_as_created(struct node *n, struct request *req, unsigned which)
{
	req->cpus = cpuset_format(&n->said[which].cpus, n->text[which], sizeof n->text[which]);
	req->mems = "0-7";
	n->said[which].mems = n->t->nodes_with_memory;
}

static const struct holding *held(const struct node *n, const char *id)
{
	const struct holding *h = ledger_find(engine_ledger(n->g), id);

	assert_non_null(h);
	return h;
}

static void resize_web(struct node *n, unsigned cpu_milli)
{
	struct request as_asked = n->web;
	struct decision d;

	as_asked.ask.cpu_milli = cpu_milli;
	assert_true(engine_update(n->g, 0, &as_asked, &d, &n->ups) && d.admit);
	vec_fini(&n->ups);
}

static struct node *node_new(void)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	n->t = machine_of_eight();
	n->s = settings_of(POLICY_BEST_EFFORT);
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	n->web = ask("web", QOS_GUARANTEED, 4000, 0);
	n->log = ask("log", QOS_BURSTABLE, 100, 0);
	(void)create(n, &n->log, &n->said[1]);
	n->created = create(n, &n->web, &n->said[0]);
	report_as_created(n, &n->web, 0);
	report_as_created(n, &n->log, 1);
	return n;
}

static void node_free(struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);
	struct err e;

	if (ledger_check(a, &e) || ledger_check(b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	assert_true(cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	vec_fini(&n->ups);
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

/* Of the container alone, or of both (NULL), as the runtime reports them. */
static void synchronize(struct node *n, const struct request *req, enum in_force in_force)
{
	const struct placement *said = &n->said[req != &n->web];
	const char *pods[] = {"log", "web"};
	struct request both[] = {n->web, n->log}, it = req ? *req : n->web;
	const struct placement *of_both[] = {&n->said[0], &n->said[1]};
	const struct inventory all = {both, of_both, 2, pods, 2, NULL};
	const struct inventory one = {&it, &said, 1, pods, 2, NULL};

	both[0].in_force = both[1].in_force = it.in_force = in_force;
	vec_fini(&n->ups);
	engine_synchronize(n->g, 0, req ? &one : &all, &n->ups);
}

static const struct update *update_of(const struct node *n, const char *id)
{
	for (size_t i = 0; i < n->ups.nr; i++)
		if (strcmp(n->ups.at[i].container_id, id) == 0)
			return &n->ups.at[i];
	return NULL;
}

static void assert_cpus(struct cpuset cpus, struct cpuset want)
{
	assert_true(cpuset_equal(&cpus, &want));
}

static void a_report_as_old_as_the_container_undoes_no_resize(void **state)
{
	static const enum in_force states[] = {IN_FORCE_UNKNOWN, IN_FORCE_UNREAD};
	static const unsigned sizes[] = {6000, 2000, 1500};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		struct node *n = node_new();
		struct request next = ask("next", QOS_GUARANTEED, 4000, 0);

		resize_web(n, sizes[i / 2]);
		const struct decision before =
			ledger_decision_of(engine_ledger(n->g), held(n, "web"));
		synchronize(n, NULL, states[i % 2]);
		const struct holding *h = held(n, "web");
		assert_int_equal(h->request.ask.cpu_milli, sizes[i / 2]);
		assert_int_equal(h->decision.exclusive, before.exclusive);
		assert_cpus(ledger_cpus_of(engine_ledger(n->g), h), before.cpus);
		const struct update *sent = update_of(n, "web");
		/* what nobody can look at is set, what somebody will look at is not */
		assert_int_equal(sent != NULL, states[i % 2] == IN_FORCE_UNKNOWN);
		if (sent)
			assert_cpus(sent->cpus, before.cpus);
		struct cpuset others = create(n, &next, NULL);
		assert_false(before.exclusive && cpuset_intersects(&others, &before.cpus));
		node_free(n);
	}
}

/* Its cpuset was set once more, but not how much it may use. */
static void a_report_with_the_right_cpuset_may_have_outdated_limits(void **state)
{
	static const unsigned sizes[] = {6000, 2000, 1500};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct node *n = node_new();
		char list[CPUSET_TEXT_MAX];

		resize_web(n, sizes[i]);
		const struct cpuset before = ledger_cpus_of(engine_ledger(n->g), held(n, "web"));
		n->web.cpus = cpuset_format(&before, list, sizeof list);
		synchronize(n, NULL, IN_FORCE_UNKNOWN);
		assert_int_equal(held(n, "web")->request.ask.cpu_milli, sizes[i]);
		assert_cpus(ledger_cpus_of(engine_ledger(n->g), held(n, "web")), before);
		n->web.ask.cpu_milli = 5000; /* news */
		synchronize(n, NULL, IN_FORCE_UNKNOWN);
		assert_int_equal(held(n, "web")->request.ask.cpu_milli, 5000);
		assert_int_equal(cpuset_count(&held(n, "web")->decision.cpus), 5);
		node_free(n);
	}
}

static void memory_that_grew_is_still_booked(void **state)
{
	struct node *n = node_new();
	struct request db = ask("db", QOS_GUARANTEED, 2000, GIB(4)), more = db;
	struct decision d;

	(void)state;
	(void)create(n, &db, &n->said[1]);
	report_as_created(n, &db, 1);
	n->said[1].mems = held(n, "db")->decision.mems;
	db.mems = nodeset_format(n->said[1].mems, &n->t->ids, n->mems, sizeof n->mems);
	more.ask.memory[0].bytes = GIB(6);
	assert_true(engine_update(n->g, 0, &more, &d, &n->ups) && d.admit);
	synchronize(n, &db, IN_FORCE_UNKNOWN);
	assert_int_equal(held(n, "db")->decision.blocks[0].bytes, GIB(6));
	node_free(n);
}

/* The pool was taken from, and is as it was at the creation when the CPUs are released. */
static void a_shared_container_is_updated_although_an_old_report_happens_to_match(void **state)
{
	static const enum in_force states[] = {IN_FORCE_UNKNOWN, IN_FORCE_SHOWN};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct node *n = node_new();
		const struct cpuset small = ledger_view(engine_ledger(n->g))->pool;
		char list[CPUSET_TEXT_MAX];

		if (states[i] == IN_FORCE_SHOWN) /* by its cgroup */
			n->log.cpus = cpuset_format(&small, list, sizeof list);
		synchronize(n, &n->log, states[i]); /* web is gone */
		const struct update *sent = update_of(n, "log");
		assert_non_null(sent);
		assert_cpus(sent->cpus, ledger_view(engine_ledger(n->g))->pool);
		assert_false(cpuset_equal(&sent->cpus, &small));
		node_free(n);
	}
}

static void a_pending_update_is_sent_whatever_the_report_says(void **state)
{
	struct node *n = node_new();

	(void)state;
	synchronize(n, NULL, IN_FORCE_SHOWN);
	engine_must_update(n->g, "web");
	assert_int_equal(engine_doubts(n->g, &n->web, &n->said[0], false), DOUBT_CONTENT);
	synchronize(n, NULL, IN_FORCE_UNREAD);
	assert_true(held(n, "web")->misplaced); /* with the next reply */
	synchronize(n, NULL, IN_FORCE_UNKNOWN);
	assert_non_null(update_of(n, "web"));
	assert_false(held(n, "web")->misplaced);
	engine_must_update(n->g, "web");
	synchronize(n, NULL, IN_FORCE_SHOWN);
	assert_null(update_of(n, "web"));
	assert_false(held(n, "web")->misplaced);
	node_free(n);
}

static void a_report_newer_than_the_creation_overrides_the_ledger(void **state)
{
	static const struct {
		unsigned cpu_milli, want; /* CPUs of its own */
	} cases[] = {{6000, 6}, {2000, 2}, {1500, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new();

		n->web.ask.cpu_milli = cases[i].cpu_milli; /* its numbers are others */
		synchronize(n, NULL, IN_FORCE_UNKNOWN);
		const struct decision *d = &held(n, "web")->decision;
		assert_int_equal(d->exclusive ? cpuset_count(&d->cpus) : 0, cases[i].want);
		node_free(n);
	}
}

static void a_container_that_the_ledger_lacks_is_taken_over_as_reported(void **state)
{
	struct node *n = node_new();

	(void)state;
	engine_release(n->g, 0, "stop", "web", &n->ups);
	synchronize(n, NULL, IN_FORCE_UNKNOWN);
	assert_true(held(n, "web")->decision.exclusive);
	assert_cpus(held(n, "web")->decision.cpus, n->created);
	node_free(n);
}

static void a_container_placed_after_its_start_keeps_its_cpus_without_an_annotation(void **state)
{
	struct node *n = node_new();
	struct request late = ask("late", QOS_GUARANTEED, 4000, 0);
	const struct placement *none = NULL;
	const struct inventory one = {&late, &none, 1, NULL, 0, NULL};

	(void)state;
	synchronize(n, NULL, IN_FORCE_SHOWN);
	engine_live(n->g, 0, &late, NULL);
	const struct cpuset given = held(n, "late")->decision.cpus;
	vec_fini(&n->ups);
	late.in_force = IN_FORCE_UNKNOWN;
	engine_synchronize(n->g, 0, &one, &n->ups); /* without a cpuset, as it was created */
	assert_cpus(held(n, "late")->decision.cpus, given);
	assert_non_null(update_of(n, "late"));
	node_free(n);
}

static void cpus_of_a_container_that_is_left_alone_are_given_to_no_other(void **state)
{
	struct node *n = node_new();
	struct request left = ask("left", QOS_BURSTABLE, 1000, 0);
	const struct placement *none = NULL;
	const char *pods[] = {"left", "log", "web"};
	const struct inventory one = {&left, &none, 1, pods, 3, NULL};
	struct cpuset want;

	(void)state;
	n->s.on_adopt = ADOPT_LEAVE;
	left.cpus = "8-9";
	assert_int_equal(cpuset_parse(&want, left.cpus, strlen(left.cpus), NULL), 0);
	engine_synchronize(n->g, 0, &one, &n->ups);
	assert_true(decision_is_left(&held(n, "left")->decision));
	assert_cpus(held(n, "left")->decision.left_on, want);
	left.cpus = ""; /* as it was created */
	assert_int_equal(engine_doubts(n->g, &left, NULL, true), DOUBT_CONTENT);
	left.in_force = IN_FORCE_UNKNOWN;
	vec_fini(&n->ups);
	engine_synchronize(n->g, 0, &one, &n->ups);
	assert_true(decision_is_left(&held(n, "left")->decision));
	assert_cpus(held(n, "left")->decision.left_on, want);
	assert_null(update_of(n, "left"));
	left.cpus = "10-11"; /* and now it runs there */
	engine_synchronize(n->g, 0, &one, &n->ups);
	assert_false(cpuset_intersects(&held(n, "left")->decision.left_on, &want));
	node_free(n);
}

static void a_cgroup_is_read_where_the_report_may_be_wrong(void **state)
{
	struct node *n = node_new();
	struct request unknown = ask("unknown", QOS_GUARANTEED, 4000, 0), news = n->web,
		       bigger = n->web, set = unknown;

	(void)state;
	news.cpus = "0-1";
	bigger.ask.cpu_milli = 6000;
	set.cpus = "0-3";
	synchronize(n, NULL, IN_FORCE_SHOWN); /* log is on the pool of now */
	const struct {
		const struct request *req;
		const struct placement *said;
		bool forgets;
		enum doubt want;
	} cases[] = {
		{&n->web, &n->said[0], false, DOUBT_NONE}, {&n->web, &n->said[0], true, DOUBT_AGE},
		{&n->log, &n->said[1], false, DOUBT_CONTENT},
		{&news, &n->said[0], true, DOUBT_CONTENT},
		{&bigger, &n->said[0], false, DOUBT_CONTENT}, {&unknown, NULL, false, DOUBT_NONE},
		{&unknown, NULL, true, DOUBT_AGE},
		{&set, NULL, true, DOUBT_NONE}, /* somebody has, since it was created */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(engine_doubts(n->g, cases[i].req, cases[i].said, cases[i].forgets),
			cases[i].want);
	node_free(n);
}

static void values_read_later_from_a_cgroup_update_and_resize_the_container(void **state)
{
	struct node *n = node_new();
	struct request found = n->web, gone = ask("gone", QOS_GUARANTEED, 1000, 0);

	(void)state;
	synchronize(n, NULL, IN_FORCE_SHOWN);
	engine_note_in_force(n->g, 0, &gone);
	engine_note_in_force(n->g, 0, &found);
	assert_int_equal(ledger_view(engine_ledger(n->g))->nr_misplaced, 0);
	found.cpus = "0-1";
	engine_note_in_force(n->g, 0, &found);
	assert_true(held(n, "web")->misplaced);
	found.ask.cpu_milli = 6000;
	engine_note_in_force(n->g, 0, &found);
	assert_int_equal(cpuset_count(&held(n, "web")->decision.cpus), 6);
	assert_true(held(n, "web")->misplaced);
	assert_true(held(n, "log")->misplaced); /* it has made room */
	node_free(n);
}

static void an_update_keeps_the_values_that_it_does_not_name(void **state)
{
	struct node *n = node_new();
	struct request cpuset_alone = n->web; /* as the runtime reports it: four CPUs */
	struct decision d;

	(void)state;
	resize_web(n, 6000);
	cpuset_alone.cpus = "0-63";
	cpuset_alone.unnamed = REQUEST_CPU | REQUEST_CPU_LIMIT | REQUEST_MEMORY;
	assert_true(engine_update(n->g, 0, &cpuset_alone, &d, &n->ups));
	assert_int_equal(cpuset_count(&d.cpus), 6);
	assert_int_equal(held(n, "web")->request.ask.cpu_milli, 6000);
	cpuset_alone.unnamed &= ~(unsigned)REQUEST_CPU;
	assert_true(engine_update(n->g, 0, &cpuset_alone, &d, &n->ups));
	assert_int_equal(cpuset_count(&d.cpus), 4);
	cpuset_alone.ask.cpu_limit_milli = 4000;
	cpuset_alone.unnamed = REQUEST_CPU | REQUEST_MEMORY;
	assert_true(engine_update(n->g, 0, &cpuset_alone, &d, &n->ups));
	assert_int_equal(held(n, "web")->request.ask.cpu_limit_milli, 4000);
	cpuset_alone.ask.cpu_limit_milli = 5000;
	cpuset_alone.unnamed = REQUEST_CPU_LIMIT | REQUEST_MEMORY;
	assert_true(engine_update(n->g, 0, &cpuset_alone, &d, &n->ups));
	assert_int_equal(held(n, "web")->request.ask.cpu_limit_milli, 4000);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_as_old_as_the_container_undoes_no_resize),
		cmocka_unit_test(a_report_with_the_right_cpuset_may_have_outdated_limits),
		cmocka_unit_test(memory_that_grew_is_still_booked),
		cmocka_unit_test(
			a_shared_container_is_updated_although_an_old_report_happens_to_match),
		cmocka_unit_test(a_pending_update_is_sent_whatever_the_report_says),
		cmocka_unit_test(a_report_newer_than_the_creation_overrides_the_ledger),
		cmocka_unit_test(a_container_that_the_ledger_lacks_is_taken_over_as_reported),
		cmocka_unit_test(
			a_container_placed_after_its_start_keeps_its_cpus_without_an_annotation),
		cmocka_unit_test(cpus_of_a_container_that_is_left_alone_are_given_to_no_other),
		cmocka_unit_test(a_cgroup_is_read_where_the_report_may_be_wrong),
		cmocka_unit_test(values_read_later_from_a_cgroup_update_and_resize_the_container),
		cmocka_unit_test(an_update_keeps_the_values_that_it_does_not_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
