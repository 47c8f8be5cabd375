/* Pods whose containers are known: decided as a whole when their sandbox starts, held until it
 * goes. Named cases, then random events; ENGINE_EVENTS and SEED choose how many and which. */
#include <numafit/engine.h>

#include <numafit/admit.h>
#include <numafit/node.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PODS_MAX = 16, PARTS_MAX = 6, ID_MAX = 16, COMPARED_PODS = 3, COMPARED_CASES = 3000 };
enum { EVENTS_DEFAULT = 4000 };

static const char *const part_names[PARTS_MAX] = {"p0", "p1", "p2", "p3", "p4", "p5"};

/* A container as the runtime has it: the cpuset that it runs with. */
struct running {
	bool runs, exclusive;
	char id[ID_MAX], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct request req;
	struct placement placed;
};

/* A pod on its way: its init containers run one after the other, then the rest at once. */
struct guest {
	bool there;
	char uid[ID_MAX], sandbox[ID_MAX];
	struct pod pod;
	struct pod_ask ask;
	struct container_ask part[PARTS_MAX];
	struct running run[PARTS_MAX];
	unsigned next; /* the part that starts next */
};

struct world {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct guest guest[PODS_MAX];
	unsigned next_id, updates, refused;
	bool failing; /* the journal takes nothing that could be refused */
	unsigned nr_records[NR_RECORD_OPS];
};

static int fold(void *ctx, const struct record *r, struct err *e)
{
	struct world *w = ctx;

	if (w->failing && (r->op == RECORD_HOLD || r->op == RECORD_GRANT))
		return err_set(e, 28, "journal: no space left on device");
	w->nr_records[r->op]++;
	return engine_replay(w->folded, r, e);
}

static int fold_into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

static struct world *world_new(
	enum topology_policy policy, enum topology_scope scope, unsigned step)
{
	struct world *w = calloc(1, sizeof *w);
	const struct engine_hooks hooks = {.ctx = w, .record = fold};

	w->t = machine_of_eight();
	w->s = settings_of(policy);
	w->s.topology_scope = scope;
	w->s.shared_pool_step = step;
	(void)cpuset_parse(&w->s.reserved_cpus, "0,32", 4, NULL);
	w->g = engine_new(w->t, &w->s, &hooks);
	w->folded = engine_new(w->t, &w->s, &hooks);
	return w;
}

static void assert_same_ledger(const struct ledger *a, const struct ledger *b)
{
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(ledger_pool(a), ledger_pool(b)) || ledger_count(a) == 0);
	assert_true(cpuset_equal(ledger_held_cpus(a), ledger_held_cpus(b)));
	for (size_t i = 0; i < ledger_count(a); i++) {
		const struct holding *x = ledger_at(a, i), *y = ledger_at(b, i);

		assert_string_equal(x->container_id, y->container_id);
		assert_string_equal(x->container_name, y->container_name);
		assert_string_equal(x->sandbox_id, y->sandbox_id);
		assert_string_equal(x->pod_uid, y->pod_uid);
		assert_int_equal(x->qos, y->qos);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->place, y->place);
		assert_int_equal(x->cpu_milli, y->cpu_milli);
		assert_int_equal(x->state, y->state);
		assert_int_equal(x->nr_memory, y->nr_memory);
		assert_memory_equal(x->memory, y->memory, sizeof x->memory);
		assert_int_equal(x->decision.source, y->decision.source);
		assert_int_equal(x->decision.exclusive, y->decision.exclusive);
		assert_true(cpuset_equal(&x->decision.cpus, &y->decision.cpus));
		assert_true(nodeset_equal(x->decision.mems, y->decision.mems));
		assert_int_equal(x->decision.nr_blocks, y->decision.nr_blocks);
		for (unsigned k = 0; k < x->decision.nr_blocks; k++) {
			assert_int_equal(x->decision.blocks[k].bytes, y->decision.blocks[k].bytes);
			assert_true(nodeset_equal(
				x->decision.blocks[k].nodes, y->decision.blocks[k].nodes));
		}
	}
}

static struct cpuset cpus_of(const struct running *r)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, r->cpus, strlen(r->cpus), NULL), 0);
	return cpus;
}

static struct running *slot(struct world *w, unsigned i)
{
	return &w->guest[i / PARTS_MAX].run[i % PARTS_MAX];
}

/* By what is in force: nobody runs on a CPU that another one has to itself. */
static void assert_nobody_shares(struct world *w)
{
	struct cpuset exclusive = {0};

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *r = slot(w, i);
		struct cpuset cpus;

		if (!r->runs || !r->exclusive)
			continue;
		cpus = cpus_of(r);
		if (cpuset_intersects(&cpus, &exclusive))
			fail_msg("%s runs on CPUs of another one: %s", r->id, r->cpus);
		exclusive = cpuset_or(exclusive, &cpus);
	}
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *r = slot(w, i);
		struct cpuset cpus;

		if (!r->runs || r->exclusive)
			continue;
		cpus = cpus_of(r);
		if (cpuset_intersects(&cpus, &exclusive))
			fail_msg("%s in the shared pool runs on CPUs of another one: %s", r->id,
				r->cpus);
	}
}

static void check(struct world *w)
{
	struct engine *dumped =
		engine_new(w->t, &w->s, &(const struct engine_hooks){.ctx = w, .record = fold});
	struct err e = {0};

	if (ledger_check(engine_ledger(w->g), &e) || ledger_check(engine_ledger(w->folded), &e))
		fail_msg("%s", e.text);
	assert_same_ledger(engine_ledger(w->g), engine_ledger(w->folded));
	if (engine_dump(w->g, 0, fold_into, dumped, &e) || ledger_check(engine_ledger(dumped), &e))
		fail_msg("dump: %s", e.text);
	assert_same_ledger(engine_ledger(w->g), engine_ledger(dumped));
	engine_free(dumped);
	/* the dump has moved the sequence on; the journal would start anew from it */
	assert_nobody_shares(w);
}

static void world_free(struct world *w)
{
	check(w);
	engine_free(w->g);
	engine_free(w->folded);
	free(w->t);
	free(w);
}

/* The runtime */

static void set_cpuset(
	struct world *w, struct running *r, const struct cpuset *cpus, struct nodeset mems)
{
	(void)cpuset_format(cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(mems, &w->t->ids, r->mems, sizeof r->mems);
}

static void apply(struct world *w, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++) {
		for (size_t j = 0; j < i; j++) /* NRI refuses a second one */
			assert_string_not_equal(ups->at[i].container_id, ups->at[j].container_id);
		for (unsigned k = 0; k < PODS_MAX * PARTS_MAX; k++)
			if (slot(w, k)->runs &&
				strcmp(slot(w, k)->id, ups->at[i].container_id) == 0)
				set_cpuset(w, slot(w, k), &ups->at[i].cpus, ups->at[i].mems);
	}
	w->updates += (unsigned)ups->nr;
	vec_fini(ups);
}

/* What the kubelet asks the runtime for, for that part of the pod. */
static void ask_for(struct world *w, struct guest *p, unsigned i)
{
	const struct container_ask *c = &p->part[i];
	struct running *r = &p->run[i];

	(void)snprintf(r->id, sizeof r->id, "c%u", w->next_id++);
	r->cpus[0] = r->mems[0] = '\0';
	r->req = (struct request){
		.container_id = r->id,
		.container_name = c->name,
		.pod = p->pod,
		.created_at_ns = w->next_id,
		.cpu_milli = c->cpu_milli,
		.cpus = r->cpus,
		.mems = r->mems,
	};
	for (unsigned m = 0; m < c->nr_memory && p->pod.qos == QOS_GUARANTEED; m++)
		if (c->memory[m].bytes)
			r->req.memory[r->req.nr_memory++] = c->memory[m];
}

static struct decision create_as_asked(struct world *w, struct running *r)
{
	struct update_list ups = {0};
	struct decision d;

	r->runs = false;
	engine_create(w->g, 0, &r->req, &d, &ups);
	apply(w, &ups);
	if (d.admit) {
		r->runs = true;
		r->exclusive = d.exclusive;
		set_cpuset(w, r, &d.cpus, d.mems);
		r->placed = (struct placement){.exclusive = d.exclusive,
			.preferred = d.preferred,
			.policy = d.policy,
			.cpus = d.cpus,
			.mems = d.mems,
			.nodes = d.nodes,
			.has_nodes = d.has_affinity};
	}
	return d;
}

static struct decision create(struct world *w, struct guest *p, unsigned i)
{
	ask_for(w, p, i);
	return create_as_asked(w, &p->run[i]);
}

static void live(struct world *w, struct guest *p, unsigned i)
{
	engine_live(w->g, 0, &p->run[i].req, NULL);
}

static struct decision start(struct world *w, struct guest *p, unsigned i)
{
	struct decision d = create(w, p, i);

	if (d.admit)
		live(w, p, i);
	return d;
}

static void stop(struct world *w, struct guest *p, unsigned i)
{
	struct update_list ups = {0};

	p->run[i].runs = false;
	engine_release(w->g, 0, "stop", p->run[i].id, &ups);
	apply(w, &ups);
}

static void gone(struct world *w, struct guest *p)
{
	for (unsigned i = 0; i < PARTS_MAX; i++)
		p->run[i].runs = false;
	p->there = false;
	engine_release_pod(w->g, 0, "pod-gone", p->sandbox);
}

/* Start a sandbox for the pod that *p asks for; one that comes again keeps its uid. */
static struct decision run_pod(struct world *w, struct guest *p, bool again)
{
	struct decision d;

	for (unsigned i = 0; i < PARTS_MAX; i++)
		p->run[i].runs = false;
	if (!again)
		(void)snprintf(p->uid, sizeof p->uid, "u%u", w->next_id++);
	(void)snprintf(p->sandbox, sizeof p->sandbox, "s%u", w->next_id++);
	p->ask.uid = p->uid;
	p->ask.container = p->part;
	p->pod.sandbox_id = p->sandbox;
	p->pod.uid = p->pod.name = p->uid;
	p->pod.ns = "default";
	p->next = 0;
	engine_run_pod(w->g, 0, &p->pod, &d);
	p->there = d.admit;
	return d;
}

static void synchronize(struct world *w)
{
	struct request list[PODS_MAX * PARTS_MAX];
	const struct placement *placed[PODS_MAX * PARTS_MAX];
	const char *sandboxes[PODS_MAX];
	struct inventory what = {.requests = list, .placed = placed, .sandbox_ids = sandboxes};
	struct update_list ups = {0};

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs) {
			bool annotated = !cpuset_empty(&slot(w, i)->placed.cpus);

			placed[what.nr] = annotated ? &slot(w, i)->placed : NULL;
			list[what.nr++] = slot(w, i)->req;
		}
	for (unsigned i = 0; i < PODS_MAX; i++)
		if (w->guest[i].there)
			sandboxes[what.nr_sandboxes++] = w->guest[i].sandbox;
	engine_synchronize(w->g, 0, &what, &ups);
	apply(w, &ups);
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		const struct holding *h = ledger_find(engine_ledger(w->g), slot(w, i)->id);

		if (slot(w, i)->runs && h)
			slot(w, i)->exclusive = h->decision.exclusive;
	}
}

/* Pods for the named cases */

static struct guest *guest(struct world *w, unsigned i, enum qos qos)
{
	struct guest *p = &w->guest[i];

	*p = (struct guest){.pod.qos = qos, .ask.qos = qos};
	p->pod.ask = &p->ask;
	return p;
}

static void add(struct guest *p, enum container_kind kind, unsigned cpus, unsigned gib)
{
	struct container_ask *c = &p->part[p->ask.nr];

	*c = (struct container_ask){
		.name = part_names[p->ask.nr++], .kind = kind, .cpu_milli = 1000 * cpus};
	if (gib)
		c->memory[c->nr_memory++] = (struct memory_ask){0, GIB(gib)};
}

static struct guest *shared_guest(struct world *w, unsigned i)
{
	struct guest *p = guest(w, i, QOS_BURSTABLE);

	add(p, CONTAINER_APP, 1, 0);
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	return p;
}

/* An init container, a sidecar and two app containers. */
static struct guest *web(struct world *w, unsigned i)
{
	struct guest *p = guest(w, i, QOS_GUARANTEED);

	add(p, CONTAINER_INIT, 4, 20);
	add(p, CONTAINER_SIDECAR, 1, 1);
	add(p, CONTAINER_APP, 3, 10);
	add(p, CONTAINER_APP, 2, 5);
	return p;
}

static const struct holding *held(const struct world *w, const struct guest *p, unsigned i)
{
	return ledger_find_waiting(engine_ledger(w->g), p->uid, part_names[i]);
}

static bool nothing_of(const struct world *w, const struct guest *p)
{
	return !ledger_find_of_pod(engine_ledger(w->g), p->uid);
}

static uint64_t reserved_bytes(const struct world *w)
{
	uint64_t bytes = 0;

	nodeset_each (n, w->t->nodes)
		bytes += ledger_memory(engine_ledger(w->g))->node[n].reserved[0];
	return bytes;
}

static void a_pod_is_decided_as_a_whole_and_each_create_claims_its_part(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(w->nr_records[RECORD_HOLD], 1);
	for (unsigned i = 0; i < p->ask.nr; i++) {
		const struct cpuset cpus = held(w, p, i)->decision.cpus;
		struct decision d = start(w, p, i);

		assert_true(d.admit && d.exclusive);
		assert_int_equal(d.source, SOURCE_HELD);
		assert_true(cpuset_equal(&d.cpus, &cpus));
		assert_null(held(w, p, i));
		if (p->part[i].kind == CONTAINER_INIT)
			stop(w, p, i);
		check(w);
	}
	assert_int_equal(w->nr_records[RECORD_HOLD], 1);
	assert_int_equal(ledger_count(engine_ledger(w->g)), p->ask.nr);
	world_free(w);
}

static void later_containers_take_over_from_the_init_container(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(cpuset_count(ledger_held_cpus(engine_ledger(w->g))), 6); /* not 10 */
	assert_true(cpuset_within(&held(w, p, 1)->decision.cpus, &held(w, p, 0)->decision.cpus));
	world_free(w);
}

static void what_does_not_fit_is_refused_at_once_and_nothing_is_held(void **state)
{
	struct world *w = world_new(POLICY_SINGLE_NUMA_NODE, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);
	struct cpuset pool = *ledger_pool(engine_ledger(w->g));

	(void)state;
	p->part[3].cpu_milli = 9000;
	struct decision d = run_pod(w, p, false);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	assert_int_equal(w->nr_records[RECORD_REFUSE], 1);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	assert_true(cpuset_equal(&pool, ledger_pool(engine_ledger(w->g))));
	assert_int_equal(reserved_bytes(w), 0);
	world_free(w);
}

static void who_asks_for_something_else_than_its_spec_said_is_decided_alone(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 2);
	p->run[2].req.cpu_milli = 5000;
	struct decision d = create_as_asked(w, &p->run[2]);
	assert_true(d.admit);
	assert_int_equal(d.source, SOURCE_DECIDED);
	assert_int_equal(cpuset_count(&d.cpus), 5);
	assert_null(held(w, p, 2));
	assert_int_equal(start(w, p, 3).source, SOURCE_HELD);
	world_free(w);
}

static void a_spec_may_list_memory_in_any_order(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);

	(void)state;
	add(p, CONTAINER_APP, 2, 0);
	p->part[0].nr_memory = 2;
	p->part[0].memory[0] = (struct memory_ask){GIB(1), GIB(2)};
	p->part[0].memory[1] = (struct memory_ask){0, GIB(3)};
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 0);
	p->run[0].req.memory[0] = p->part[0].memory[1]; /* as runtimes tell it */
	p->run[0].req.memory[1] = p->part[0].memory[0];
	assert_int_equal(create_as_asked(w, &p->run[0]).source, SOURCE_HELD);
	world_free(w);
}

static void an_init_containers_memory_is_free_once_the_next_one_is_live(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(reserved_bytes(w), GIB(20));
	assert_true(start(w, p, 0).admit);
	stop(w, p, 0);
	assert_true(create(w, p, 1).admit);
	assert_int_equal(reserved_bytes(w), GIB(20)); /* it might not come to run */
	live(w, p, 1);
	assert_int_equal(reserved_bytes(w), GIB(16));
	check(w);
	world_free(w);
}

static void a_container_of_its_own_mind_ends_the_init_containers_as_well(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 2);
	p->run[2].req.cpu_milli = 5000;
	assert_true(create_as_asked(w, &p->run[2]).admit);
	live(w, p, 2);
	assert_int_equal(reserved_bytes(w), GIB(16));
	world_free(w);
}

static void a_container_that_stops_and_comes_again_gets_the_same(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = guest(w, 0, QOS_GUARANTEED), *other = guest(w, 1, QOS_GUARANTEED);

	(void)state;
	add(other, CONTAINER_APP, 2, 1);
	assert_true(run_pod(w, other, false).admit);
	add(p, CONTAINER_APP, 3, 10);
	assert_true(run_pod(w, p, false).admit);
	struct decision first = start(w, p, 0);
	gone(w, other); /* room that a new decision would prefer */
	stop(w, p, 0);
	assert_int_equal(held(w, p, 0)->state, HOLDING_WAITING);
	check(w);
	struct decision again = start(w, p, 0);
	assert_int_equal(again.source, SOURCE_HELD);
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	assert_true(cpuset_equal(&first.cpus, ledger_held_cpus(engine_ledger(w->g))));
	again = start(w, p, 0); /* before the runtime has told that the last one is dead */
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	world_free(w);
}

static void the_pool_does_not_grow_into_what_waits(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 2).admit);
	struct cpuset pool = *ledger_pool(engine_ledger(w->g));
	stop(w, p, 2);
	assert_true(cpuset_equal(&pool, ledger_pool(engine_ledger(w->g))));
	gone(w, p);
	assert_true(cpuset_equal(&w->t->cpus, ledger_pool(engine_ledger(w->g))));
	world_free(w);
}

static void a_pod_that_goes_leaves_nothing(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_POD, 2);

	(void)state;
	for (unsigned started = 0; started <= 4; started++) {
		struct guest *p = web(w, 0);

		assert_true(run_pod(w, p, false).admit);
		for (unsigned i = 0; i < started; i++) /* live, the last one answered only */
			assert_true((i + 1 < started ? start(w, p, i) : create(w, p, i)).admit);
		p->run[0].runs = false; /* it ends before the others start */
		gone(w, p);
		assert_true(nothing_of(w, p));
		assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
		assert_int_equal(reserved_bytes(w), 0);
		check(w);
	}
	world_free(w);
}

static void a_sandbox_that_is_started_anew_takes_the_place_of_the_old_one(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);
	char old[ID_MAX];

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	memcpy(old, p->sandbox, sizeof old);
	assert_true(run_pod(w, p, true).admit);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(reserved_bytes(w), GIB(20));
	engine_release_pod(w->g, 0, "pod-gone", old); /* the runtime removes it later */
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(start(w, p, 0).source, SOURCE_HELD);
	world_free(w);
}

static void shared_containers_make_room_before_any_container_of_the_pod_runs(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *web_pod, *shared = shared_guest(w, 0);

	(void)state;
	web_pod = web(w, 1);
	assert_true(run_pod(w, web_pod, false).admit);
	assert_int_equal(w->updates, 0);
	assert_true(create(w, web_pod, 0).admit);
	assert_int_equal(w->updates, 1);
	struct cpuset now = cpus_of(&shared->run[0]);
	assert_true(cpuset_equal(&now, ledger_pool(engine_ledger(w->g))));
	world_free(w);
}

static void shared_containers_get_the_room_of_a_pod_that_has_gone(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *shared = shared_guest(w, 0), *p = web(w, 1);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	gone(w, p);
	p = shared_guest(w, 1); /* the first reply after it that carries updates */
	struct cpuset now = cpus_of(&shared->run[0]), mine = cpus_of(&p->run[0]);
	assert_true(cpuset_equal(&now, &w->t->cpus));
	assert_true(cpuset_equal(&mine, &w->t->cpus));
	world_free(w);
}

static void synchronize_keeps_what_waits_for_pods_that_are_there(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0), *q;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 2).admit);
	assert_true(start(w, p, 3).admit);
	q = guest(w, 1, QOS_GUARANTEED);
	add(q, CONTAINER_APP, 2, 1);
	assert_true(run_pod(w, q, false).admit);
	assert_true(start(w, q, 0).admit);
	p->run[3].runs = false; /* died while nobody listened; the other pod went altogether */
	q->run[0].runs = q->there = false;
	synchronize(w);
	assert_true(nothing_of(w, q));
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(held(w, p, 3)->state, HOLDING_WAITING);
	assert_int_equal(ledger_find(engine_ledger(w->g), p->run[2].id)->state, HOLDING_LIVE);
	world_free(w);
}

static void who_was_created_while_nobody_listened_gets_what_is_held_for_it(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	for (unsigned i = 2; i < 4; i++) {
		struct cpuset cpus = held(w, p, i)->decision.cpus, now;

		ask_for(w, p, i);
		p->run[i].runs = true;
		(void)cpuset_format(&w->t->cpus, p->run[i].cpus, CPUSET_TEXT_MAX);
		if (i == 2)
			synchronize(w);
		else
			live(w, p, i);
		const struct holding *h = ledger_find(engine_ledger(w->g), p->run[i].id);
		assert_int_equal(h->decision.source, SOURCE_HELD);
		assert_int_equal(h->state, HOLDING_LIVE);
		assert_true(cpuset_equal(&h->decision.cpus, &cpus));
		if (i == 3)
			(void)shared_guest(w, 1); /* whose reply tells it */
		now = cpus_of(&p->run[i]);
		assert_true(cpuset_equal(&now, &cpus));
	}
	p->run[3].exclusive = true;
	world_free(w);
}

static void a_record_that_cannot_be_kept_refuses_the_pod_and_changes_nothing(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 2);
	struct guest *p = web(w, 0);
	struct cpuset pool = *ledger_pool(engine_ledger(w->g));

	(void)state;
	w->failing = true;
	struct decision d = run_pod(w, p, false);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "no space left on device"));
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	assert_true(cpuset_equal(&pool, ledger_pool(engine_ledger(w->g))));
	w->failing = false;
	assert_true(run_pod(w, p, false).admit);
	w->failing = true;
	assert_false(create(w, p, 0).admit);
	assert_non_null(held(w, p, 0));
	w->failing = false;
	assert_int_equal(create(w, p, 0).source, SOURCE_HELD);
	world_free(w);
}

static void who_cannot_be_recorded_runs_on_as_it_is(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);

	(void)state;
	add(p, CONTAINER_APP, 2, 1);
	p->pod.ask = NULL;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 0);
	p->run[0].runs = true;
	w->failing = true;
	synchronize(w);
	live(w, p, 0);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	assert_int_equal(w->updates, 0);
	w->failing = false;
	synchronize(w);
	assert_int_equal(w->updates, 1);
	assert_int_equal(ledger_find(engine_ledger(w->g), p->run[0].id)->state, HOLDING_LIVE);
	world_free(w);
}

static void records_that_hold_what_is_taken_are_refused(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0);
	struct guest *p = web(w, 0);
	struct record_part part = {0};
	struct record r = {.seq = 7, .op = RECORD_HOLD, .parts = &part, .nr_parts = 1};
	struct err e;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	struct decision claimed = start(w, p, 2);
	r.pool = *ledger_pool(engine_ledger(w->g));
	r.container_id = p->sandbox;
	part.request = holding_request(held(w, p, 3));
	part.decision = held(w, p, 3)->decision;
	assert_int_equal(engine_replay(w->folded, &r, &e), 0); /* the very same once more */
	part.request.container_name = "p9";
	part.request.place = 9;
	assert_int_equal(engine_replay(w->folded, &r, &e), -16);
	assert_non_null(strstr(e.text, "is held by container p3"));
	part.request.pod.uid = "elsewhere";
	assert_int_equal(engine_replay(w->folded, &r, &e), -16);
	struct record grant = {.seq = 8, .op = RECORD_GRANT, .pool = r.pool};
	struct request other = p->run[2].req;
	grant.container_id = other.container_id = "other"; /* its part was claimed before */
	grant.request = &other;
	grant.decision = &claimed;
	assert_true(engine_replay(w->folded, &grant, &e) < 0);
	claimed.source = SOURCE_DECIDED;
	assert_int_equal(engine_replay(w->folded, &grant, &e), -16);
	world_free(w);
}

/* Against the kubelet's way */

static void random_part(struct random *r, struct container_ask *c)
{
	static const unsigned milli[] = {0, 500, 1000, 1000, 2000, 2000, 3000, 4000, 5000, 6000};

	c->cpu_milli = milli[random_below(r, sizeof milli / sizeof *milli)];
	if (random_chance(r, 80))
		c->memory[c->nr_memory++] =
			(struct memory_ask){0, GIB(random_chance(r, 5) ? 70 : random_below(r, 24))};
	if (random_chance(r, 15))
		c->memory[c->nr_memory++] =
			(struct memory_ask){GIB(1), GIB(1 + random_below(r, 4))};
}

static void random_spec(struct random *r, struct guest *p)
{
	unsigned nr_init = random_below(r, 3), nr_app = 1 + random_below(r, 3);

	for (unsigned i = 0; i < nr_init + nr_app; i++) {
		add(p,
			i >= nr_init           ? CONTAINER_APP
			: random_chance(r, 50) ? CONTAINER_INIT
					       : CONTAINER_SIDECAR,
			0, 0);
		random_part(r, &p->part[i]);
	}
	p->ask.pod_level = random_chance(r, 5);
}

static void assert_same_part(const struct world *w, const struct decision *d, const struct grant *g,
	const struct memory_container *m)
{
	assert_int_equal(d->exclusive, !cpuset_empty(&g->cpus));
	if (d->exclusive)
		assert_true(cpuset_equal(&d->cpus, &g->cpus));
	assert_int_equal(d->has_affinity, !g->affinity.any);
	if (d->has_affinity)
		assert_true(nodeset_equal(d->nodes, g->affinity.mask));
	assert_int_equal(d->preferred, g->affinity.preferred);
	assert_int_equal(d->nr_blocks, m->nr_blocks);
	for (unsigned b = 0; b < d->nr_blocks; b++) {
		assert_int_equal(d->blocks[b].kind, m->blocks[b].kind);
		assert_int_equal(d->blocks[b].bytes, m->blocks[b].bytes);
		assert_true(nodeset_equal(d->blocks[b].nodes, m->blocks[b].nodes));
	}
	if (!nodeset_empty(g->mems))
		assert_true(nodeset_equal(d->mems, g->mems));
	else
		assert_true(nodeset_equal(d->mems, w->t->nodes_with_memory));
}

static bool has_group(const struct grants *g)
{
	for (unsigned c = 0; c < g->nr; c++)
		for (unsigned b = 0; b < g->memory[c].nr_blocks; b++)
			if (nodeset_count(g->memory[c].blocks[b].nodes) > 1)
				return true;
	return false;
}

/* Returns whether the two can be compared further: groups of nodes the engine keeps together, as
 * the kubelet does not. */
static bool compare_pod(struct world *w, struct node *n, struct guest *p, struct arena *a)
{
	struct decision d = run_pod(w, p, false);
	struct refusal why;
	int rc = node_admit(n, &p->ask, a, &why);

	if (!rc && has_group(&node_find(n, p->uid)->grants))
		return false;
	if (d.admit != !rc)
		fail_msg("%s: the engine: %s %s; the kubelet's way: %s", p->uid,
			d.admit ? "admitted" : d.reason, d.message, rc ? why.message : "admitted");
	if (rc) {
		assert_string_equal(d.reason, why.reason);
		assert_string_equal(d.message, why.message);
		return false; /* what the kubelet gives back may not be what it took */
	}
	for (unsigned i = 0; i < p->ask.nr; i++) {
		const struct grants *g = &node_find(n, p->uid)->grants;
		const struct decision of_part = held(w, p, i)->decision;
		struct decision claimed;

		assert_same_part(w, &of_part, &g->of[i], &g->memory[i]);
		claimed = start(w, p, i);
		node_start(n, p->uid, part_names[i]);
		assert_int_equal(claimed.source, SOURCE_HELD);
		assert_same_part(w, &claimed, &g->of[i], &g->memory[i]);
		if (p->part[i].kind == CONTAINER_INIT)
			stop(w, p, i);
	}
	for (unsigned i = 0; i < w->t->ids.nr; i++)
		assert_memory_equal(ledger_memory(engine_ledger(w->g))->node[i].free,
			node_books(n)->memory.node[i].free,
			sizeof node_books(n)->memory.node[i].free);
	return true;
}

static void pods_are_placed_as_the_kubelet_places_them(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	struct random r = {20261121};
	unsigned same = 0;

	(void)state;
	for (unsigned c = 0; c < COMPARED_CASES; c++) {
		struct world *w = world_new(policies[c % NR_POLICIES],
			c / NR_POLICIES % 2 ? SCOPE_POD : SCOPE_CONTAINER, 0);
		struct node *n;
		struct arena a;
		void *work = calloc(1, ADMIT_ARENA_BYTES);
		bool more = true;

		n = node_new(w->t, &w->s, NULL, 0, NULL);
		assert_non_null(n);
		for (unsigned i = 0; more && i < COMPARED_PODS; i++) {
			struct guest *p =
				guest(w, i, random_chance(&r, 85) ? QOS_GUARANTEED : QOS_BURSTABLE);

			random_spec(&r, p);
			arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
			more = compare_pod(w, n, p, &a);
			same += more;
		}
		free(work);
		node_free(n);
		world_free(w);
	}
	assert_in_range(same, COMPARED_CASES, COMPARED_CASES * COMPARED_PODS);
}

/* Random events */

static struct guest *any_guest(struct world *w, struct random *r)
{
	return &w->guest[random_below(r, PODS_MAX)];
}

static void some_pod_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);
	bool again = p->there && random_chance(r, 20);

	if (!again) {
		if (p->there)
			gone(w, p);
		p = guest(w, (unsigned)(p - w->guest),
			random_chance(r, 70)   ? QOS_GUARANTEED
			: random_chance(r, 70) ? QOS_BURSTABLE
					       : QOS_BEST_EFFORT);
		random_spec(r, p);
		if (random_chance(r, 20))
			p->pod.ask = NULL; /* only its containers will tell */
	}
	/* the old sandbox stops first; only who is known as a whole may do without being told */
	if (again && (!p->pod.ask || random_chance(r, 50)))
		gone(w, p);
	w->failing = random_chance(r, 3);
	if (!run_pod(w, p, again).admit) {
		w->refused++;
		assert_true(nothing_of(w, p));
	}
	w->failing = false;
}

/* The pod's next container, or one of those that run once more. */
static void some_container_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);
	unsigned i = p->next;

	if (!p->there)
		return;
	if (i == p->ask.nr)
		do
			i = random_below(r, p->ask.nr);
		while (p->part[i].kind == CONTAINER_INIT);
	ask_for(w, p, i);
	if (random_chance(r, 5))
		p->run[i].req.cpu_milli = 1000 * (1 + random_below(r, 6));
	w->failing = random_chance(r, 3);
	struct decision d = create_as_asked(w, &p->run[i]);
	w->failing = false;
	if (!d.admit)
		return;
	check(w);
	if (random_chance(r, 90))
		live(w, p, i);
	if (i == p->next)
		p->next++;
	if (p->part[i].kind == CONTAINER_INIT)
		stop(w, p, i);
}

static void some_container_stops(struct world *w, struct random *r)
{
	struct running *c = slot(w, random_below(r, PODS_MAX * PARTS_MAX));
	struct update_list ups = {0};

	if (!c->runs)
		return;
	c->runs = false;
	if (random_chance(r, 70))
		engine_release(w->g, 0, "stop", c->id, &ups);
	else
		engine_forget(w->g, 0, "remove", c->id);
	apply(w, &ups);
	if (random_chance(r, 30))
		engine_forget(w->g, 0, "remove", c->id);
}

/* The daemon was away: some containers and pods went, some came and run unpinned. */
static void the_runtime_comes_back(struct world *w, struct random *r)
{
	for (unsigned i = 0; i < PODS_MAX; i++) {
		struct guest *p = &w->guest[i];

		for (unsigned c = 0; c < PARTS_MAX; c++)
			p->run[c].runs = p->run[c].runs && random_chance(r, 90);
		if (p->there && random_chance(r, 10)) {
			for (unsigned c = 0; c < PARTS_MAX; c++)
				p->run[c].runs = false;
			p->there = false;
		}
		if (p->there && p->next < p->ask.nr && random_chance(r, 20) &&
			p->part[p->next].kind != CONTAINER_INIT) {
			struct running *c = &p->run[p->next];

			ask_for(w, p, p->next++);
			c->runs = true;
			c->exclusive = false;
			c->placed = (struct placement){0};
			(void)cpuset_format(&w->t->cpus, c->cpus, sizeof c->cpus);
		}
	}
	synchronize(w);
}

static void some_pod_goes(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (!p->there)
		return;
	gone(w, p);
	assert_true(nothing_of(w, p));
}

static void something_is_live(struct world *w, struct random *r)
{
	struct running *c = slot(w, random_below(r, PODS_MAX * PARTS_MAX));

	if (c->runs)
		engine_live(w->g, 0, &c->req, NULL);
}

static void random_event(struct world *w, struct random *r)
{
	static const struct {
		unsigned percent;
		void (*happens)(struct world *w, struct random *r);
	} events[] = {
		{22, some_pod_starts},
		{45, some_container_starts},
		{16, some_container_stops},
		{8, some_pod_goes},
		{5, something_is_live},
		{4, the_runtime_comes_back},
	};
	unsigned what = random_below(r, 100), i = 0;

	for (; what >= events[i].percent; i++)
		what -= events[i].percent;
	events[i].happens(w, r);
}

static unsigned long number_from(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void random_events_keep_every_invariant_and_fold_to_the_same(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	unsigned long seed = number_from("SEED", 1),
		      events = number_from("ENGINE_EVENTS", EVENTS_DEFAULT);
	enum { WORLDS = 2 * NR_POLICIES };

	(void)state;
	print_message("%lu events, SEED=%lu\n", events, seed);
	for (unsigned c = 0; c < WORLDS; c++) {
		struct world *w =
			world_new(policies[c / 2], c % 2 ? SCOPE_POD : SCOPE_CONTAINER, c / 2 * 2);
		struct random r = {seed * WORLDS + c + 1};

		for (unsigned long i = 0; i < events / WORLDS; i++) {
			random_event(w, &r);
			check(w);
		}
		print_message("%s: %u holds, %u grants, %u refusals of pods, %u updates\n",
			topology_policy_name(w->s.topology_policy), w->nr_records[RECORD_HOLD],
			w->nr_records[RECORD_GRANT], w->refused, w->updates);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_decided_as_a_whole_and_each_create_claims_its_part),
		cmocka_unit_test(later_containers_take_over_from_the_init_container),
		cmocka_unit_test(what_does_not_fit_is_refused_at_once_and_nothing_is_held),
		cmocka_unit_test(who_asks_for_something_else_than_its_spec_said_is_decided_alone),
		cmocka_unit_test(a_spec_may_list_memory_in_any_order),
		cmocka_unit_test(an_init_containers_memory_is_free_once_the_next_one_is_live),
		cmocka_unit_test(a_container_of_its_own_mind_ends_the_init_containers_as_well),
		cmocka_unit_test(a_container_that_stops_and_comes_again_gets_the_same),
		cmocka_unit_test(the_pool_does_not_grow_into_what_waits),
		cmocka_unit_test(a_pod_that_goes_leaves_nothing),
		cmocka_unit_test(a_sandbox_that_is_started_anew_takes_the_place_of_the_old_one),
		cmocka_unit_test(shared_containers_make_room_before_any_container_of_the_pod_runs),
		cmocka_unit_test(shared_containers_get_the_room_of_a_pod_that_has_gone),
		cmocka_unit_test(synchronize_keeps_what_waits_for_pods_that_are_there),
		cmocka_unit_test(who_was_created_while_nobody_listened_gets_what_is_held_for_it),
		cmocka_unit_test(a_record_that_cannot_be_kept_refuses_the_pod_and_changes_nothing),
		cmocka_unit_test(who_cannot_be_recorded_runs_on_as_it_is),
		cmocka_unit_test(records_that_hold_what_is_taken_are_refused),
		cmocka_unit_test(pods_are_placed_as_the_kubelet_places_them),
		cmocka_unit_test(random_events_keep_every_invariant_and_fold_to_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
