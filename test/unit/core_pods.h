#ifndef NUMAFIT_TEST_CORE_PODS_H
#define NUMAFIT_TEST_CORE_PODS_H

#include <numafit/cpus.h>
#include <numafit/engine.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* An engine, the runtime and the pods around it; what the engine records is folded into a second
 * one, which must come to the same. */

enum { PODS_MAX = 16, PARTS_MAX = 6, ID_MAX = 16 };

static const char *const part_names[PARTS_MAX] = {"p0", "p1", "p2", "p3", "p4", "p5"};

/* A container as the runtime has it: the cpuset that it runs with. */
struct running {
	bool runs, exclusive, seen; /* seen: its process runs, and the engine knows it */
	bool shares;                /* of what it runs on other containers of its pod have some */
	bool floats;                /* it never had a cpuset set: it runs on all CPUs there are */
	char id[ID_MAX], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct request req;
	struct placement placed;
};

/* A pod on its way: its init containers run one after the other, then the rest at once. */
struct guest {
	bool there;
	char uid[ID_MAX], sandbox[ID_MAX];
	struct pod pod;
	bool unknown;                    /* its spec is not known: only its containers come */
	struct ask part[PARTS_MAX], own; /* own: of the pod, when it has resources of its own */
	struct running run[PARTS_MAX];
	unsigned next; /* the part that starts next */
};

struct world {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct guest guest[PODS_MAX];
	unsigned next_id, updates, refused, resized, resizes_refused, resized_unasked, agreed,
		disagreed;
	bool failing;             /* the journal takes nothing that could be refused */
	bool shadow;              /* no container is updated */
	bool without_annotations; /* the runtime does not show them */
	bool cores_broken;        /* CPUs have come or gone, and with them threads of cores */
	unsigned nr_records[NR_RECORD_OPS], within_pods,
		moves; /* grants of what their pods have as one */
};

static inline int fold(void *ctx, const struct record *r, struct err *e)
{
	struct world *w = ctx;

	if (w->failing && (r->op == RECORD_HOLD || r->op == RECORD_GRANT))
		return err_set(e, 28, "journal: no space left on device");
	w->nr_records[r->op]++;
	w->within_pods += r->op == RECORD_GRANT && r->decision->within_pod;
	struct err why;

	if (engine_replay(w->folded, r, &why))
		fail_msg("fold: %s %s: %s", r->cause, record_op_words[r->op], why.text);
	return 0;
}

static inline int fold_into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

static inline struct world *world_new(
	enum topology_policy policy, enum topology_scope scope, unsigned step, bool strict)
{
	struct world *w = calloc(1, sizeof *w);
	const struct engine_hooks hooks = {.ctx = w, .record = fold};

	w->t = machine_of_eight();
	w->s = settings_of(policy);
	w->s.topology_scope = scope;
	w->s.shared_pool_step = step;
	w->s.cpu_options.strict_cpu_reservation = strict;
	(void)cpuset_parse(&w->s.reserved_cpus, "0,32", 4, NULL);
	w->g = engine_new(w->t, &w->s, &hooks);
	w->folded = engine_new(w->t, &w->s, &hooks);
	return w;
}

static inline void assert_same_ledger(const struct ledger *a, const struct ledger *b)
{
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(
		cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool) || ledger_count(a) == 0);
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	for (size_t i = 0; i < ledger_count(a); i++) {
		const struct holding *x = ledger_at(a, i), *y = ledger_at(b, i);

		assert_string_equal(x->request.container_id, y->request.container_id);
		assert_string_equal(x->request.ask.name, y->request.ask.name);
		assert_string_equal(x->request.pod.sandbox_id, y->request.pod.sandbox_id);
		assert_string_equal(x->request.pod.uid, y->request.pod.uid);
		assert_int_equal(x->request.pod.qos, y->request.pod.qos);
		assert_int_equal(x->request.ask.kind, y->request.ask.kind);
		assert_int_equal(x->request.ask.place, y->request.ask.place);
		assert_int_equal(x->request.ask.cpu_milli, y->request.ask.cpu_milli);
		assert_int_equal(x->state, y->state);
		assert_int_equal(x->request.ask.nr_memory, y->request.ask.nr_memory);
		assert_memory_equal(
			x->request.ask.memory, y->request.ask.memory, sizeof x->request.ask.memory);
		assert_int_equal(x->decision.source, y->decision.source);
		assert_int_equal(x->decision.exclusive, y->decision.exclusive);
		assert_int_equal(x->decision.within_pod, y->decision.within_pod);
		assert_int_equal(x->request.pod.pod_level, y->request.pod.pod_level);
		assert_int_equal(x->request.ask.guaranteed, y->request.ask.guaranteed);
		assert_int_equal(x->request.ask.has_devices, y->request.ask.has_devices);
		assert_int_equal(x->request.ask.whole_pod, y->request.ask.whole_pod);
		assert_memory_equal(&x->request.ask.wishes, &y->request.ask.wishes,
			sizeof x->request.ask.wishes);
		assert_true(nodeset_equal(x->decision.spread, y->decision.spread));
		assert_int_equal(decision_is_left(&x->decision), decision_is_left(&y->decision));
		assert_true(cpuset_equal(&x->decision.left_on, &y->decision.left_on));
		assert_int_equal(x->decision.lost_cpus, y->decision.lost_cpus);
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

static inline struct cpuset cpus_of(const struct running *r)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, r->cpus, strlen(r->cpus), NULL), 0);
	return cpus;
}

static inline struct running *slot(struct world *w, unsigned i)
{
	return &w->guest[i / PARTS_MAX].run[i % PARTS_MAX];
}

/* The CPUs that nobody else may run on: those that are in force, but for wishes, with which it may
 * have more than it runs on, or runs on others beside them. */
static inline struct cpuset own_of(const struct world *w, const struct running *r)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), r->id);
	const struct wishes *wishes = &r->req.ask.wishes;
	bool as_in_force = wishes->cpus != WISH_CPUS_OWN_SHARED && !wishes->cores;

	if (!r->exclusive)
		return (struct cpuset){0};
	if (as_in_force || !h || !h->decision.exclusive)
		return cpus_of(r);
	return h->decision.cpus;
}

/* With onAdopt: leave, or an operator who leaves it to itself, that is all that may run beside
 * containers with CPUs of their own: what was left on all CPUs that there are. A set of fewer
 * becomes one when the others go offline. */
static inline bool runs_as_it_was_left(struct world *w, const struct running *r)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), r->id);
	const struct cpuset cpus = cpus_of(r);

	return h && decision_is_left(&h->decision) &&
	       (r->floats || cpuset_within(&w->t->cpus, &cpus) ||
		       r->req.ask.wishes.cpus == WISH_CPUS_UNBOUNDED);
}

/* Two that a pod has CPUs as one for: neither has them to itself, or an init container, which ends
 * before others of its pod begin, is one of the two. */
static inline bool may_share(struct world *w, unsigned i, unsigned j)
{
	const struct ask *a = &w->guest[i / PARTS_MAX].part[i % PARTS_MAX],
			 *b = &w->guest[j / PARTS_MAX].part[j % PARTS_MAX];

	return i / PARTS_MAX == j / PARTS_MAX &&
	       ((slot(w, i)->shares && slot(w, j)->shares) || a->kind == CONTAINER_INIT ||
		       b->kind == CONTAINER_INIT);
}

/* By what is in force: nobody runs on a CPU that another one has to itself. Who does not run yet
 * may have missed its update. */
static inline void assert_nobody_shares(struct world *w)
{
	struct cpuset exclusive = {0};

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *r = slot(w, i);
		struct cpuset cpus;

		if (!r->runs || !r->exclusive || !r->seen)
			continue;
		cpus = own_of(w, r);
		for (unsigned j = 0; j < i && cpuset_intersects(&cpus, &exclusive); j++) {
			struct running *o = slot(w, j);
			const struct cpuset theirs = o->runs && o->exclusive && o->seen
							     ? own_of(w, o)
							     : (struct cpuset){0};

			if (cpuset_intersects(&cpus, &theirs) && !may_share(w, i, j))
				fail_msg("%s runs on CPUs of %s: %s", r->id, o->id, r->cpus);
		}
		exclusive = cpuset_or(exclusive, &cpus);
	}
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *r = slot(w, i);
		struct cpuset cpus;

		const struct cpuset own = own_of(w, r), others = cpuset_minus(exclusive, &own);

		if (!r->runs || !r->seen || runs_as_it_was_left(w, r) ||
			(r->exclusive && r->req.ask.wishes.cpus != WISH_CPUS_OWN_SHARED))
			continue;
		cpus = cpus_of(r);
		if (cpuset_intersects(&cpus, &others))
			fail_msg("%s (wish %u) in the shared pool runs on CPUs of another one: %s",
				r->id, (unsigned)r->req.ask.wishes.cpus, r->cpus);
	}
}

/* Whole cores are nobody else's: no other holds a thread of one, nor does the pool have any. */
static inline void assert_cores_are_whole(struct world *w)
{
	const struct ledger *l = engine_ledger(w->g);

	for (size_t i = 0; i < ledger_count(l) && !w->cores_broken; i++) {
		const struct holding *h = ledger_at(l, i);
		const struct decision *d = &h->decision;
		const struct cpuset cores = cpus_whole_cores(w->t, &d->cpus);

		if (h->request.ask.wishes.cores && d->exclusive && !d->within_pod &&
			!d->lost_cpus && d->source != SOURCE_ADOPTED &&
			d->source != SOURCE_INHERITED && /* it may be of one that was adopted */
			!cpuset_equal(&cores, &d->cpus))
			fail_msg("%s wishes for whole cores and has others",
				h->request.container_id);
	}
}

/* Isolated CPUs are never shared, unless there are no others. */
static inline void assert_isolated_cpus_are_not_shared(struct world *w)
{
	const struct ledger *l = engine_ledger(w->g);
	const struct cpuset all = ledger_all_cpus(l), others = cpuset_minus(all, &w->t->isolated);

	if (!cpuset_empty(&others))
		assert_false(cpuset_intersects(&ledger_view(l)->pool, &w->t->isolated));
}

static inline void check(struct world *w)
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
	assert_cores_are_whole(w);
	assert_isolated_cpus_are_not_shared(w);
}

/* The journal starts anew from what is there. */
static inline void fold_anew(struct world *w)
{
	const struct engine_hooks hooks = {.ctx = w, .record = fold};
	struct err e = {0};

	engine_free(w->folded);
	w->folded = engine_new(w->t, &w->s, &hooks);
	if (engine_dump(w->g, 0, fold_into, w->folded, &e))
		fail_msg("dump: %s", e.text);
}

static inline void world_free(struct world *w)
{
	check(w);
	engine_free(w->g);
	engine_free(w->folded);
	free(w->t);
	free(w);
}

/* The runtime */

static inline void set_cpuset(
	struct world *w, struct running *r, const struct cpuset *cpus, struct nodeset mems)
{
	(void)cpuset_format(cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(mems, &w->t->ids, r->mems, sizeof r->mems);
	r->floats = false;
}

/* False: it is given no cpuset. */
static inline bool set_as_given(struct world *w, struct running *r)
{
	const struct update u = engine_give(w->g, ledger_find(engine_ledger(w->g), r->id));

	if (u.untouched)
		r->floats = !*r->cpus;
	else
		set_cpuset(w, r, &u.cpus, u.mems);
	return !u.untouched;
}

static inline void apply(struct world *w, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr && !w->shadow; i++) {
		for (size_t j = 0; j < i; j++) /* NRI refuses a second one */
			assert_string_not_equal(ups->at[i].container_id, ups->at[j].container_id);
		for (unsigned k = 0; k < PODS_MAX * PARTS_MAX; k++)
			if (slot(w, k)->runs && slot(w, k)->seen && /* else it is passed over */
				strcmp(slot(w, k)->id, ups->at[i].container_id) == 0)
				set_cpuset(w, slot(w, k), &ups->at[i].cpus, ups->at[i].mems);
	}
	w->updates += (unsigned)ups->nr;
	vec_fini(ups);
}

/* What the kubelet asks the runtime for, for that part of the pod: a container without limits has
 * those of its pod (kuberuntime_container_linux.go, getCPULimit), whose resources no runtime shows.
 */
static inline void ask_for(struct world *w, struct guest *p, unsigned i)
{
	const struct ask *c = p->pod.pod_level && !p->part[i].cpu_milli ? &p->own : &p->part[i];
	struct running *r = &p->run[i];

	(void)snprintf(r->id, sizeof r->id, "c%u", w->next_id++);
	r->cpus[0] = r->mems[0] = '\0';
	r->seen = false;
	r->req = (struct request){
		.container_id = r->id,
		.ask.name = p->part[i].name,
		.ask.wishes = p->part[i].wishes,
		.pod = pod_identity(&p->pod),
		.created_at_ns = w->next_id,
		.ask.cpu_milli = c->cpu_milli,
		.cpus = r->cpus,
		.mems = r->mems,
	};
	r->req.pod.pod_level = false;
	for (unsigned m = 0; m < c->nr_memory && p->pod.qos == QOS_GUARANTEED; m++)
		if (c->memory[m].bytes)
			r->req.ask.memory[r->req.ask.nr_memory++] = c->memory[m];
}

static inline void note_exclusive(struct world *w, struct running *r)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), r->id);

	if (h && r->runs && r->seen)
		r->exclusive = h->decision.exclusive;
	r->shares = h && request_shares_in_pod(&h->request, &h->decision);
}

/* What is decided now, by itself, of isolated CPUs: none to one that did not ask while it could
 * have had others, and none but these to one that requires them. */
static inline void assert_isolated_by_wish(struct world *w, const struct running *r,
	const struct cpuset *free_before, const struct decision *d)
{
	const struct cpuset isolated = cpuset_and(d->cpus, &w->t->isolated),
			    others = cpuset_minus(*free_before, &w->t->isolated);
	const enum wish_isolated wish = r->req.ask.wishes.isolated;

	if (!d->admit || !d->exclusive || d->source != SOURCE_DECIDED || d->within_pod)
		return;
	if (wish == WISH_ISOLATED_REQUIRE)
		assert_true(cpuset_equal(&isolated, &d->cpus));
	/* with policy none any CPUs do, but for the pool's last ones */
	else if (wish == WISH_ISOLATED_UNSAID && !cpuset_empty(&isolated) &&
		 w->s.topology_policy == POLICY_NONE && !r->req.ask.wishes.cores)
		if (cpuset_count(&others) >= cpuset_count(&d->cpus) + settings_pool_minimum(&w->s))
			fail_msg("%s has isolated CPUs, and %u others were free", r->id,
				cpuset_count(&others));
}

static inline struct decision create_as_asked(struct world *w, struct running *r)
{
	const struct cpuset free_before = ledger_free_cpus(engine_ledger(w->g));
	struct update_list ups = {0};
	struct decision d;

	r->runs = false;
	engine_create(w->g, 0, &r->req, &d, &ups);
	apply(w, &ups);
	assert_isolated_by_wish(w, r, &free_before, &d);
	if (d.admit) {
		r->runs = true;
		note_exclusive(w, r);
		r->exclusive = d.exclusive;
		r->placed = (struct placement){0};
		if (!set_as_given(w, r))
			return d;
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

static inline struct decision create(struct world *w, struct guest *p, unsigned i)
{
	ask_for(w, p, i);
	return create_as_asked(w, &p->run[i]);
}

/* Its process runs; an update that could not be sent before is sent now. */
static inline void report_start(struct world *w, struct running *r)
{
	struct update_list ups = {0};

	r->seen = true;
	engine_live(w->g, 0, &r->req, NULL);
	engine_started(w->g, 0, r->id);
	engine_take_updates(w->g, &ups);
	apply(w, &ups);
	note_exclusive(w, r);
}

static inline void live(struct world *w, struct guest *p, unsigned i)
{
	report_start(w, &p->run[i]);
}

static inline struct decision start(struct world *w, struct guest *p, unsigned i)
{
	struct decision d = create(w, p, i);

	if (d.admit)
		live(w, p, i);
	return d;
}

/* What is asked for changes in place. */
static inline struct decision update(struct world *w, struct running *r, const struct request *wish)
{
	struct update_list ups = {0};
	struct decision d;

	if (!engine_update(w->g, 0, wish, &d, &ups)) {
		d = ledger_find(engine_ledger(w->g), r->id)->decision;
		assert_true(decision_is_left(&d));
		return d;
	}
	assert_true(d.admit || !ups.nr);
	apply(w, &ups);
	if (d.admit) {
		r->req = *wish;
		r->req.cpus = r->cpus;
		r->exclusive = d.exclusive;
		set_as_given(w, r);
	}
	return d;
}

static inline void stop(struct world *w, struct guest *p, unsigned i)
{
	struct update_list ups = {0};

	p->run[i].runs = false;
	engine_release(w->g, 0, "stop", p->run[i].id, &ups);
	apply(w, &ups);
}

static inline void gone(struct world *w, struct guest *p)
{
	for (unsigned i = 0; i < PARTS_MAX; i++)
		p->run[i].runs = false;
	p->there = false;
	engine_release_pod(w->g, 0, "pod-gone", &(struct pod){.sandbox_id = p->sandbox, .uid = ""});
}

/* Its ids; one that comes again keeps its uid. */
static inline void name_pod(struct world *w, struct guest *p, bool again)
{
	if (!again)
		(void)snprintf(p->uid, sizeof p->uid, "u%u", w->next_id++);
	(void)snprintf(p->sandbox, sizeof p->sandbox, "s%u", w->next_id++);
	p->pod.container = p->part;
	p->pod.own = p->pod.pod_level ? &p->own : NULL;
	if (p->pod.pod_level)
		pod_obey_gate(&w->s, &p->pod, p->part);
	p->pod.sandbox_id = p->sandbox;
	p->pod.uid = p->pod.name = p->uid;
	p->pod.ns = "default";
	p->next = 0;
}

/* Start a sandbox for the pod that *p asks for. */
static inline struct decision run_pod(struct world *w, struct guest *p, bool again)
{
	struct decision d;

	for (unsigned i = 0; i < PARTS_MAX; i++)
		p->run[i].runs = false;
	name_pod(w, p, again);
	const struct pod pod = p->unknown ? pod_identity(&p->pod) : p->pod;
	engine_run_pod(w->g, 0, &pod, &d);
	p->there = d.admit;
	return d;
}

static inline void synchronize(struct world *w)
{
	struct request list[PODS_MAX * PARTS_MAX];
	const struct placement *placed[PODS_MAX * PARTS_MAX];
	const char *sandboxes[PODS_MAX];
	struct inventory what = {.requests = list, .placed = placed, .sandbox_ids = sandboxes};
	struct update_list ups = {0};

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs) {
			bool annotated =
				!cpuset_empty(&slot(w, i)->placed.cpus) && !w->without_annotations;

			placed[what.nr] = annotated ? &slot(w, i)->placed : NULL;
			list[what.nr] = slot(w, i)->req;
			list[what.nr++].in_creation = !slot(w, i)->seen;
		}
	for (unsigned i = 0; i < PODS_MAX; i++)
		if (w->guest[i].there)
			sandboxes[what.nr_sandboxes++] = w->guest[i].sandbox;
	engine_synchronize(w->g, 0, &what, &ups);
	apply(w, &ups);
	for (size_t i = 0; i < what.nr; i++) {
		const struct holding *h = ledger_find(engine_ledger(w->g), list[i].container_id);

		assert_false(placed[i] && h &&
			     decision_is_left(&h->decision) && /* we have placed it */
			     list[i].ask.wishes.cpus != WISH_CPUS_UNBOUNDED);
	}
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		note_exclusive(w, slot(w, i));
}

/* Nothing says any more that it was placed: a cpuset of all CPUs is as good as none. */
static inline void forget_update_of(struct world *w, struct running *r)
{
	const struct cpuset now = r->runs ? cpus_of(r) : (struct cpuset){0};

	r->floats = cpuset_within(&w->t->cpus, &now) &&
		    (cpuset_empty(&r->placed.cpus) || w->without_annotations);
}

/* The daemon comes back and knows nothing. */
static inline void lose_the_journal(struct world *w)
{
	const struct engine_hooks hooks = {.ctx = w, .record = fold};

	engine_free(w->g);
	engine_free(w->folded);
	w->g = engine_new(w->t, &w->s, &hooks);
	w->folded = engine_new(w->t, &w->s, &hooks);
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		forget_update_of(w, slot(w, i));
	synchronize(w);
}

/* Pods */

static inline struct guest *guest(struct world *w, unsigned i, enum qos qos)
{
	struct guest *p = &w->guest[i];

	*p = (struct guest){.pod.qos = qos};
	return p;
}

static inline void add(struct guest *p, enum container_kind kind, unsigned cpus, unsigned gib)
{
	struct ask *c = &p->part[p->pod.nr];

	*c = (struct ask){.name = part_names[p->pod.nr++], .kind = kind, .cpu_milli = 1000 * cpus};
	if (gib)
		c->memory[c->nr_memory++] = (struct memory_ask){0, GIB(gib)};
}

static inline const struct holding *held(const struct world *w, const struct guest *p, unsigned i)
{
	return ledger_find_waiting(engine_ledger(w->g), p->uid, part_names[i]);
}

static inline bool nothing_of(const struct world *w, const struct guest *p)
{
	return !ledger_find_of_pod(engine_ledger(w->g), p->uid);
}

#endif
