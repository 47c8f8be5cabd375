/* The kubelet's tokens: promised when it gives them out, made CPUs when the container comes. */
#include <numafit/engine.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MINUTE_MS = 60 * 1000, NODES = 8, PER_NODE = 8 };

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	int64_t now_ms;
	bool failing;
	unsigned records[NR_RECORD_OPS];
};

static int fold(void *ctx, const struct record *r, struct err *e)
{
	struct node *n = ctx;

	if (n->failing)
		return err_set(e, 28, "journal: no space left on device");
	n->records[r->op]++;
	return engine_replay(n->folded, r, e);
}

static struct node *node_new(enum topology_policy policy)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	n->t = machine_of_eight();
	n->s = settings_of(policy);
	n->s.device_plugin = true;
	n->now_ms = 5000;
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	return n;
}

static void same_leases(const struct ledger *a, const struct ledger *b)
{
	struct lease x, y;
	size_t at = 0, bt = 0;

	while (leases_next(ledger_leases(a), &at, &x)) {
		assert_true(leases_next(ledger_leases(b), &bt, &y));
		assert_memory_equal(&x, &y, sizeof x);
	}
	assert_false(leases_next(ledger_leases(b), &bt, &y));
}

static void sound(const struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);
	struct err e;

	if (ledger_check(a, &e) || ledger_check(b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(ledger_held_cpus(a), ledger_held_cpus(b)));
	assert_true(cpuset_equal(ledger_pool(a), ledger_pool(b)));
	same_leases(a, b);
}

static int into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

/* What a journal that starts anew would lead to. */
static void comes_back(struct node *n)
{
	struct engine *again = engine_new(n->t, &n->s, &(const struct engine_hooks){0});
	struct err e;

	if (engine_dump(n->g, n->now_ms, into, again, &e))
		fail_msg("%s", e.text);
	same_leases(engine_ledger(n->g), engine_ledger(again));
	assert_int_equal(ledger_check(engine_ledger(again), NULL), 0);
	engine_free(again);
}

static void node_free(struct node *n)
{
	sound(n);
	comes_back(n);
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

static struct tokenset tokens_of(const struct node *n, const char *text)
{
	struct tokenset s;

	assert_int_equal(tokenset_parse(&s, &n->t->ids, text, NULL), 0);
	return s;
}

static int allocate(struct node *n, const char *tokens, char *annotation, struct err *e)
{
	struct tokenset s = tokens_of(n, tokens);
	int rc = engine_allocate(n->g, n->now_ms, &s, annotation, e);

	sound(n);
	return rc;
}

static struct decision create(struct node *n, const struct request *req)
{
	struct update_list ups = {0};
	struct decision d;

	engine_create(n->g, n->now_ms, req, &d, &ups);
	vec_fini(&ups);
	if (d.admit)
		engine_live(n->g, n->now_ms, req, NULL);
	sound(n);
	return d;
}

static void stop(struct node *n, const char *id)
{
	struct update_list ups = {0};

	engine_release(n->g, n->now_ms, "stop", id, &ups);
	vec_fini(&ups);
	sound(n);
}

static void pod_gone(struct node *n, const char *uid)
{
	engine_release_pod(n->g, n->now_ms, "pod-gone",
		&(const struct pod){.sandbox_id = uid, .uid = uid, .ns = "", .name = ""});
	sound(n);
}

static unsigned see(struct node *n, const char *shown)
{
	struct tokenset s = tokens_of(n, shown);
	unsigned nr = engine_see_tokens(n->g, n->now_ms, &s);

	sound(n);
	return nr;
}

/* A Guaranteed container that has come with that annotation. */
static struct request ask_with(const char *id, unsigned cpus, const char *annotation)
{
	struct request r = ask(id, QOS_GUARANTEED, cpus * 1000, 0);

	r.allocated = annotation;
	return r;
}

static unsigned count_on(const struct node *n, const struct cpuset *cpus, unsigned node)
{
	return cpuset_count_and(cpus, &n->t->node[node].cpus);
}

/* How many tokens of the node the kubelet could give to somebody, by its list. */
static unsigned healthy_on(const struct node *n, unsigned node)
{
	struct token_reports all;
	struct tokenset leased, claimed;
	unsigned nr = 0;
	struct arena a;

	leases_tokens(ledger_leases(engine_ledger(n->g)), &leased, &claimed);
	arena_init(&a, 1 << 20);
	assert_int_equal(ledger_report_tokens(engine_ledger(n->g), &a, &all), 0);
	for (size_t i = 0; i < all.nr; i++) {
		struct token k;

		assert_int_equal(tokens_parse(&n->t->ids, all.at[i].id, &k, NULL), 0);
		nr += k.node == node && all.at[i].healthy && !tokenset_has(&leased, k);
	}
	arena_fini(&a);
	return nr;
}

static void as_many_cpus_come_from_each_node_as_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "2=0-2;5=0", text, NULL), 0);
	assert_string_equal(text, "v1:5000:2=0-2;5=0");
	struct request web = ask_with("web", 4, text);
	struct decision d = create(n, &web);
	assert_true(d.admit && d.exclusive);
	assert_int_equal(d.lease, 5000);
	assert_int_equal(cpuset_count(&d.cpus), 4);
	assert_int_equal(count_on(n, &d.cpus, 2), 3);
	assert_int_equal(count_on(n, &d.cpus, 5), 1);
	assert_true(cpuset_has(&d.cpus, 8) && cpuset_has(&d.cpus, 40)); /* a whole core first */
	node_free(n);
}

static void what_is_promised_goes_to_nobody_else(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	char text[LEASE_TEXT_MAX];
	struct request eight = ask("eight", QOS_GUARANTEED, 8000, 0),
		       two = ask("two", QOS_GUARANTEED, 2000, 0);

	(void)state;
	assert_int_equal(allocate(n, "0=0-6", text, NULL), 0);
	struct decision d = create(n, &eight);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 1), 8); /* node 0 has one left */
	for (unsigned node = 2; node < NODES; node++) {
		char other[LEASE_TEXT_MAX], tokens[16];

		(void)snprintf(tokens, sizeof tokens, "%u=0-6", node);
		assert_int_equal(allocate(n, tokens, other, NULL), 0);
	}
	d = create(n, &two);
	assert_false(d.admit); /* one CPU is left on each node */
	struct request seven = ask_with("seven", 7, text);
	d = create(n, &seven);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 0), 7);
	node_free(n);
}

static void who_comes_without_tokens_makes_as_many_unhealthy(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 3000, 0);

	(void)state;
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	struct decision d = create(n, &web);
	assert_int_equal(count_on(n, &d.cpus, 0), 3);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	assert_int_equal(healthy_on(n, 1), PER_NODE);
	stop(n, "web");
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	node_free(n);
}

static void tokens_that_were_given_out_do_not_count_twice(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-2", text, NULL), 0);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	struct request web = ask_with("web", 3, text);
	assert_true(create(n, &web).admit);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	stop(n, "web"); /* it may be started again */
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	node_free(n);
}

static void what_the_tokens_are_not_for_is_refused_with_the_reason(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX], others[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-2", text, NULL), 0);
	assert_int_equal(allocate(n, "1=0", others, NULL), 0);
	struct request holder = ask_with("holder", 1, others);
	assert_true(create(n, &holder).admit);
	const struct {
		enum qos qos;
		unsigned milli;
		const char *annotation, *says;
	} table[] = {
		{QOS_GUARANTEED, 4000, text,
			"gave the container 3 of numafit.io/cpu, and it asks for 4"},
		{QOS_GUARANTEED, 2500, text, "asks for 0 whole CPUs"},
		{QOS_BURSTABLE, 3000, text, "asks for 0 whole CPUs in a Guaranteed pod"},
		{QOS_GUARANTEED, 1000, others, "runs on CPU token node1-0000"},
		{QOS_GUARANTEED, 1000, "v1:5000:3=0", "node3-0000 is not leased"},
		{QOS_GUARANTEED, 3000, "v1:4999:0=0-2", "of lease 5000 now"},
		{QOS_GUARANTEED, 3000, "node0-0001", "does not start with v1:"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct request r = ask("thief", table[i].qos, table[i].milli, 0);

		r.allocated = table[i].annotation;
		struct decision d = create(n, &r);
		assert_false(d.admit);
		assert_string_equal(d.reason, "UnexpectedAdmissionError");
		if (!strstr(d.message, table[i].says))
			fail_msg("%s", d.message);
	}
	node_free(n);
}

static void without_the_plugin_nobody_reads_the_annotation(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:1:0=0");

	(void)state;
	n->s.device_plugin = false;
	struct decision d = create(n, &web);
	assert_true(d.admit);
	assert_int_equal(d.lease, 0);
	node_free(n);
}

static void cpus_that_were_taken_a_moment_ago_are_not_given_out(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 6000, 0);
	char text[LEASE_TEXT_MAX];
	struct err e;

	(void)state;
	assert_true(create(n, &web).admit); /* the kubelet has not heard of it */
	assert_int_equal(allocate(n, "0=0-3", text, &e), -EBUSY);
	assert_non_null(
		strstr(e.text, "NUMA node 0 has 2 CPUs left, 4 of its tokens are asked for"));
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0); /* again: no reason to refuse */
	assert_int_equal(allocate(n, "0=1-2", text, NULL), -EBUSY);
	node_free(n);
}

static void the_shared_pool_keeps_what_it_needs(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	char text[LEASE_TEXT_MAX];
	unsigned sum = 0;
	struct err e;

	(void)state;
	n->s.shared_pool_minimum = 10;
	for (unsigned node = 0; node < NODES; node++)
		sum += healthy_on(n, node);
	assert_int_equal(sum, 54);
	assert_int_equal(
		allocate(n, "0=0-7;1=0-7;2=0-7;3=0-7;4=0-7;5=0-7;6=0-6", text, &e), -EBUSY);
	assert_non_null(strstr(e.text, "sharedPoolMinimum"));
	assert_int_equal(allocate(n, "0=0-7;1=0-7;2=0-7;3=0-7;4=0-7;5=0-7;6=0-5", text, NULL), 0);
	for (unsigned node = 0; node < NODES; node++)
		assert_int_equal(healthy_on(n, node), 0);
	struct request one = ask("one", QOS_GUARANTEED, 1000, 0);
	assert_false(create(n, &one).admit);
	struct request web = ask_with("web", 54, text);
	assert_true(create(n, &web).admit);
	node_free(n);
}

static void a_pod_that_was_rejected_gives_its_tokens_back(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0); /* another manager refuses it then */
	assert_int_equal(see(n, ""), 0);
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 4);
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	struct request late = ask_with("late", 4, text);
	assert_false(create(n, &late).admit);
	node_free(n);
}

static void a_container_that_is_started_again_has_the_same_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request other = ask("other", QOS_GUARANTEED, 6000, 0);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	struct request web = ask_with("web", 4, text);
	struct decision first = create(n, &web);
	assert_int_equal(see(n, "0=0-3"), 0);
	web.container_id = "web-again"; /* nobody told that the first one is dead */
	struct decision second = create(n, &web);
	assert_true(second.admit && cpuset_equal(&first.cpus, &second.cpus));
	stop(n, "web-again");
	n->now_ms += 100 * MINUTE_MS;
	assert_int_equal(see(n, "0=0-3"), 0);
	assert_true(create(n, &other).admit);
	web.container_id = "web-once-more";
	struct decision third = create(n, &web);
	assert_true(third.admit);
	assert_int_equal(count_on(n, &third.cpus, 0), 4);
	node_free(n);
}

static void later_containers_take_an_init_containers_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char all[LEASE_TEXT_MAX], some[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "3=0-3", all, NULL), 0);
	assert_int_equal(allocate(n, "3=1-2", some, NULL), 0);
	struct request init = ask_with("init", 4, all), app = ask_with("app", 2, some);
	init.pod.uid = app.pod.uid = "pod";
	init.pod.sandbox_id = app.pod.sandbox_id = "pod";
	init.container_name = "init";
	assert_true(create(n, &init).admit);
	assert_false(create(n, &app).admit); /* it runs */
	stop(n, "init");
	struct decision d = create(n, &app);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 3), 2);
	assert_int_equal(healthy_on(n, 3), 4);
	pod_gone(n, "pod");
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 4);
	node_free(n);
}

static void a_lost_journal_is_made_good_by_podresources(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:4000:0=0-1");

	(void)state;
	web.cpus = "0,32";
	web.mems = "0-7";
	const struct placement placed = {.exclusive = true, .cpus = {{1 | 1ULL << 32}}};
	engine_live(n->g, n->now_ms, &web, &placed); /* found running */
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_true(h->decision.exclusive && !h->decision.lease);
	sound(n);
	assert_int_equal(healthy_on(n, 0), 6);
	assert_int_equal(see(n, "0=0-1"), 0);
	h = ledger_find(engine_ledger(n->g), "web");
	assert_int_equal(h->decision.lease, 4000);
	assert_int_equal(healthy_on(n, 0), 6);
	struct request thief = ask_with("thief", 2, "v1:4000:0=0-1");
	assert_false(create(n, &thief).admit);
	node_free(n);
}

static void who_ran_before_its_tokens_are_known_is_placed_all_the_same(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:4000:6=0-1");

	(void)state;
	engine_live(n->g, n->now_ms, &web, NULL); /* created while nobody listened */
	assert_true(ledger_find(engine_ledger(n->g), "web")->decision.exclusive);
	assert_int_equal(see(n, "6=0-1"), 0);
	assert_int_equal(ledger_find(engine_ledger(n->g), "web")->decision.lease, 4000);
	node_free(n);
}

static void pods_that_went_while_nobody_listened_leave_their_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	const char *stays[] = {"stays"};
	char text[LEASE_TEXT_MAX], other[LEASE_TEXT_MAX];
	struct update_list ups = {0};

	(void)state;
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	assert_int_equal(allocate(n, "1=0-1", other, NULL), 0);
	struct request goes = ask_with("goes", 2, text), stay = ask_with("stays", 2, other);
	assert_true(create(n, &goes).admit && create(n, &stay).admit);
	engine_synchronize(n->g, n->now_ms,
		&(const struct inventory){
			.sandbox_ids = stays, .nr_sandboxes = 1, .pod_uids = stays},
		&ups);
	vec_fini(&ups);
	sound(n);
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 2); /* the other one may be started again */
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	assert_int_equal(healthy_on(n, 1), PER_NODE - 2);
	node_free(n);
}

static void what_cannot_be_recorded_is_not_given_out(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct err e;

	(void)state;
	n->failing = true;
	assert_int_equal(allocate(n, "0=0-1", text, &e), -28);
	assert_string_equal(e.text, "journal: no space left on device");
	n->failing = false;
	assert_true(leases_empty(ledger_leases(engine_ledger(n->g))));
	node_free(n);
}

static void tokens_do_not_grow_with_a_resize(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	struct request web = ask_with("web", 2, text);
	assert_true(create(n, &web).admit);
	web.cpu_milli = 3000;
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "numafit.io/cpu"));
	web.cpu_milli = 2000;
	web.cpu_limit_milli = 2000;
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	assert_true(d.admit);
	assert_int_equal(d.lease, 5000);
	vec_fini(&ups);
	node_free(n);
}

/* A pod of one container as the kubelet tells of it. */
static struct decision run_pod(struct node *n, enum qos qos, unsigned milli, uint64_t tokens)
{
	const struct container_ask app = {.name = "app", .cpu_milli = milli, .tokens = tokens};
	const struct pod_ask spec = {.uid = "p", .qos = qos, .nr = 1, .container = &app};
	const struct pod pod = {
		.sandbox_id = "p", .uid = "p", .ns = "d", .name = "p", .qos = qos, .ask = &spec};
	struct decision d;

	engine_run_pod(n->g, n->now_ms, &pod, &d);
	sound(n);
	return d;
}

static void a_pod_must_ask_for_as_many_tokens_as_cpus(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);

	(void)state;
	assert_true(run_pod(n, QOS_GUARANTEED, 2000, 2).admit);
	assert_int_equal(n->records[RECORD_HOLD], 0); /* its tokens are held, that is enough */
	struct decision d = run_pod(n, QOS_GUARANTEED, 3000, 2);
	assert_false(d.admit);
	assert_string_equal(d.message,
		"container app asks for 2 of numafit.io/cpu and 3 whole CPUs in a Guaranteed pod: "
		"the two must be the same, in a Guaranteed pod");
	assert_false(run_pod(n, QOS_BURSTABLE, 2000, 2).admit);
	assert_true(run_pod(n, QOS_GUARANTEED, 2000, 0).admit);
	assert_int_equal(n->records[RECORD_HOLD], 1);
	node_free(n);
}

static void cpus_go_where_a_containers_devices_are(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	const struct device gpus[] = {
		{"gpu0", true, true, {1 << 5}, true}, {"gpu1", true, true, {1 << 5}, true}};
	const struct device nic[] = {{"nic", true, true, {1 << 6}, true}};
	const struct device_resource has[] = {
		{"nvidia.com/gpu", 2, gpus}, {"vendor.com/nic", 1, nic}};
	struct request web = ask("web", QOS_GUARANTEED, 2000, GIB(1));

	(void)state;
	web.attached = has;
	web.nr_attached = 1;
	struct decision d = create(n, &web);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 5), 2);
	assert_int_equal(d.mems.bits, 1 << 5);
	web.container_id = web.pod.uid = "both";
	web.nr_attached = 2; /* nothing can be beside both */
	d = create(n, &web);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	node_free(n);
}

/* Random life: a kubelet that gives out tokens, containers that come with them and without. */

enum { PODS = 12, STEPS = 3000, GRACE_MS = 2 * MINUTE_MS };

struct guest {
	bool admitted, there, runs; /* by the kubelet; shown by it; its container */
	unsigned cpus;
	struct tokenset tokens; /* none: it goes by NRI alone */
	char annotation[LEASE_TEXT_MAX], uid[16], id[32];
};

struct world {
	struct node *n;
	struct random r;
	struct guest guest[PODS];
	unsigned next_id, created, allocated, refused_by_others, unaligned;
};

/* Healthy tokens that the kubelet has not given out, by its list at this moment. */
static struct tokenset on_offer(struct world *w)
{
	struct tokenset leased, claimed, offer = {0};
	struct token_reports all;
	struct arena a;

	leases_tokens(ledger_leases(engine_ledger(w->n->g)), &leased, &claimed);
	arena_init(&a, 1 << 20);
	assert_int_equal(ledger_report_tokens(engine_ledger(w->n->g), &a, &all), 0);
	for (size_t i = 0; i < all.nr; i++) {
		struct token k;

		assert_int_equal(tokens_parse(&w->n->t->ids, all.at[i].id, &k, NULL), 0);
		assert_true(all.at[i].healthy || !tokenset_has(&leased, k));
		if (all.at[i].healthy && !tokenset_has(&leased, k))
			tokenset_add(&offer, k);
	}
	arena_fini(&a);
	return offer;
}

static void admit_pod_with_tokens(struct world *w, struct guest *p)
{
	struct tokenset offer = on_offer(w);
	unsigned want = 1 + random_below(&w->r, 6);
	struct err e;

	p->tokens = (struct tokenset){0};
	p->cpus = 0;
	tokenset_each (k, &offer)
		if (p->cpus < want && random_chance(&w->r, 15)) {
			tokenset_add(&p->tokens, k);
			p->cpus++;
		}
	if (!p->cpus)
		return;
	/* what is on offer is never refused */
	if (engine_allocate(w->n->g, w->n->now_ms, &p->tokens, p->annotation, &e))
		fail_msg("%s", e.text);
	w->allocated++;
	p->admitted = true;
	p->there = random_chance(&w->r, 80);
	w->refused_by_others += !p->there;
}

static void container_comes(struct world *w, struct guest *p)
{
	struct request req;

	(void)snprintf(p->id, sizeof p->id, "c%u", w->next_id++);
	req = ask_with(p->id, p->cpus, tokenset_count(&p->tokens) ? p->annotation : NULL);
	req.pod.uid = req.pod.sandbox_id = p->uid;
	struct decision d = create(w->n, &req);
	if (!req.allocated) {
		p->runs = d.admit;
		return;
	}
	if (!d.admit) /* nobody can have taken what was promised */
		fail_msg("%s", d.message);
	nodeset_each (node, w->n->t->nodes)
		assert_int_equal(count_on(w->n, &d.cpus, node), cpuset_count(&p->tokens.on[node]));
	w->created++;
	p->runs = true;
}

static void pod_goes(struct world *w, struct guest *p)
{
	if (p->runs && random_chance(&w->r, 80))
		stop(w->n, p->id);
	pod_gone(w->n, p->uid);
	*p = (struct guest){0};
}

static void kubelet_is_asked(struct world *w)
{
	struct tokenset shown = {0};

	for (unsigned i = 0; i < PODS; i++)
		if (w->guest[i].there)
			tokenset_each (k, &w->guest[i].tokens)
				tokenset_add(&shown, k);
	(void)engine_see_tokens(w->n->g, w->n->now_ms, &shown);
	sound(w->n);
}

static void live_on(struct world *w)
{
	struct guest *p = &w->guest[random_below(&w->r, PODS)];

	w->n->now_ms += random_below(&w->r, GRACE_MS / 20);
	if (!p->admitted) {
		(void)snprintf(p->uid, sizeof p->uid, "p%u", w->next_id++);
		if (random_chance(&w->r, 60)) {
			admit_pod_with_tokens(w, p);
		} else {
			p->cpus = 1 + random_below(&w->r, 9);
			p->admitted = p->there = true;
		}
	} else if (!p->there) { /* somebody else refused it */
		*p = (struct guest){0};
	} else if (!p->runs) {
		container_comes(w, p);
	} else if (random_chance(&w->r, 40)) {
		stop(w->n, p->id);
		p->runs = false;
	} else if (random_chance(&w->r, 30)) {
		pod_goes(w, p);
	}
	if (random_chance(&w->r, 20))
		kubelet_is_asked(w);
	if (random_chance(&w->r, 5))
		comes_back(w->n);
}

static void nothing_promised_is_ever_missing(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++) {
		struct world *w = calloc(1, sizeof *w);

		w->n = node_new(seed % 2 ? POLICY_BEST_EFFORT : POLICY_RESTRICTED);
		w->n->s.shared_pool_minimum = seed;
		w->r.state = seed;
		for (unsigned i = 0; i < STEPS; i++)
			live_on(w);
		assert_true(w->created > 100 && w->allocated > 100 && w->refused_by_others > 10);
		for (unsigned i = 0; i < PODS; i++)
			if (w->guest[i].admitted)
				pod_goes(w, &w->guest[i]);
		w->n->now_ms += 11 * GRACE_MS;
		kubelet_is_asked(w);
		assert_true(leases_empty(ledger_leases(engine_ledger(w->n->g))));
		assert_true(cpuset_empty(ledger_held_cpus(engine_ledger(w->n->g))));
		node_free(w->n);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_cpus_come_from_each_node_as_tokens),
		cmocka_unit_test(what_is_promised_goes_to_nobody_else),
		cmocka_unit_test(who_comes_without_tokens_makes_as_many_unhealthy),
		cmocka_unit_test(tokens_that_were_given_out_do_not_count_twice),
		cmocka_unit_test(what_the_tokens_are_not_for_is_refused_with_the_reason),
		cmocka_unit_test(without_the_plugin_nobody_reads_the_annotation),
		cmocka_unit_test(cpus_that_were_taken_a_moment_ago_are_not_given_out),
		cmocka_unit_test(the_shared_pool_keeps_what_it_needs),
		cmocka_unit_test(a_pod_that_was_rejected_gives_its_tokens_back),
		cmocka_unit_test(a_container_that_is_started_again_has_the_same_tokens),
		cmocka_unit_test(later_containers_take_an_init_containers_tokens),
		cmocka_unit_test(a_lost_journal_is_made_good_by_podresources),
		cmocka_unit_test(who_ran_before_its_tokens_are_known_is_placed_all_the_same),
		cmocka_unit_test(pods_that_went_while_nobody_listened_leave_their_tokens),
		cmocka_unit_test(what_cannot_be_recorded_is_not_given_out),
		cmocka_unit_test(tokens_do_not_grow_with_a_resize),
		cmocka_unit_test(a_pod_must_ask_for_as_many_tokens_as_cpus),
		cmocka_unit_test(cpus_go_where_a_containers_devices_are),
		cmocka_unit_test(nothing_promised_is_ever_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
