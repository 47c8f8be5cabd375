/* Tokens under a kubelet, a runtime and a machine at random: nothing promised is ever missing. */
#include <numafit/engine.h>

#include "core_random.h"
#include "core_tokens.h"

enum {
	PODS = 12,
	INIT = 0,
	APP = 1,
	PARTS = 2,
	WORLDS = 16,
	GRACE_MS = 2 * MINUTE_MS,
	STEPS_DEFAULT = 16000
};

enum way { BY_TOKENS, BY_RUNTIME, AS_A_WHOLE };

struct part {
	unsigned cpus; /* 0: there is no such container */
	struct tokenset tokens;
	char annotation[LEASE_TEXT_MAX], id[32];
	bool runs, live;
};

struct guest {
	bool admitted, there; /* by the kubelet, and by all its managers */
	bool created;         /* one of its containers, once */
	bool hurt;            /* its CPUs or what was promised to it may be gone */
	enum way way;
	int64_t since_ms;
	char uid[16];
	struct part part[PARTS];
};

struct world {
	struct node *n;
	struct random r;
	struct guest guest[PODS];
	bool is_rough;   /* journals are lost there, and CPUs go offline */
	int64_t hurt_ms; /* when the last pod was there that it has hurt */
	unsigned next_id, created, allocated, refused, resized;
};

static const char *const names[PARTS] = {"init", "app"};

/* Whether what is promised must be there. */
static bool all_is_well(const struct world *w)
{
	for (unsigned i = 0; i < PODS; i++)
		if (w->guest[i].hurt)
			return false;
	/* what they left is given up by then */
	return !w->is_rough || w->n->now_ms - w->hurt_ms > 15 * GRACE_MS;
}

static void hurt_all(struct world *w)
{
	for (unsigned i = 0; i < PODS; i++)
		w->guest[i].hurt = w->guest[i].admitted;
}

/* What the kubelet has given to somebody. */
static struct tokenset given_out(const struct world *w)
{
	struct tokenset all = {0};

	for (unsigned i = 0; i < PODS * PARTS; i++)
		if (w->guest[i / PARTS].there)
			tokenset_each (k, &w->guest[i / PARTS].part[i % PARTS].tokens)
				tokenset_add(&all, k);
	return all;
}

/* Healthy tokens that the kubelet has not given out, by its list at this moment. */
static struct tokenset on_offer(const struct world *w)
{
	struct tokenset leased, claimed, given = given_out(w), offer = {0};
	struct token_reports all;
	struct arena a;

	leases_tokens(ledger_view(engine_ledger(w->n->g))->leases, &leased, &claimed);
	arena_init(&a, 1 << 20);
	assert_int_equal(ledger_report_tokens(engine_ledger(w->n->g), &a, &all), 0);
	for (size_t i = 0; i < all.nr; i++) {
		struct token k;

		assert_int_equal(tokens_parse(&w->n->t->ids, all.at[i].id, &k, NULL), 0);
		assert_true(all.at[i].healthy || !tokenset_has(&leased, k));
		if (all.at[i].healthy && !tokenset_has(&given, k))
			tokenset_add(&offer, k);
	}
	arena_fini(&a);
	return offer;
}

/* Some of the tokens, of a node an even number when cores are given out as a whole. */
static void take_some(struct world *w, const struct tokenset *from, unsigned most, struct part *p)
{
	const unsigned step = w->n->s.cpu_options.full_pcpus_only ? 2 : 1;

	nodeset_each (node, from->nodes) {
		unsigned here = cpuset_count(&from->on[node]), nr = 0;

		if (p->cpus + step > most || !random_chance(&w->r, 40))
			continue;
		nr = 1 + random_below(&w->r, most - p->cpus);
		nr = (nr < here ? nr : here) / step * step;
		for (unsigned i = 0; i < CPUSET_BITS && nr; i++) {
			const struct token k = {(uint16_t)node, (uint16_t)i};

			if (!tokenset_has(from, k))
				continue;
			tokenset_add(&p->tokens, k);
			p->cpus++;
			nr--;
		}
	}
}

static bool allocate_part(struct world *w, struct part *p)
{
	struct err e;

	w->n->failing = random_chance(&w->r, 2);
	int rc =
		p->cpus ? engine_allocate(w->n->g, w->n->now_ms, &p->tokens, p->annotation, &e) : 0;
	if (rc && !w->n->failing) /* what is on offer is never refused */
		fail_msg("%s", e.text);
	w->n->failing = false;
	w->allocated += p->cpus && !rc;
	return !rc;
}

/* An app takes its init container's tokens first, and fewer or more. */
static bool give_tokens(struct world *w, struct guest *p)
{
	struct part *init = &p->part[INIT], *app = &p->part[APP];
	struct tokenset offer = on_offer(w);

	if (random_chance(&w->r, 40))
		take_some(w, &offer, 6, init);
	if (!allocate_part(w, init))
		return false;
	p->there = true;
	if (init->cpus)
		take_some(w, &init->tokens, init->cpus, app);
	p->there = false;
	offer = on_offer(w);
	tokenset_each (k, &init->tokens)
		cpuset_del(&offer.on[k.node], k.number);
	if (app->cpus == init->cpus)
		take_some(w, &offer, app->cpus + 1 + random_below(&w->r, 6), app);
	return allocate_part(w, app);
}

static struct decision run_pod(struct world *w, const struct guest *p)
{
	struct ask ask[PARTS] = {{0}};
	struct pod spec = {.uid = p->uid, .qos = QOS_GUARANTEED, .container = ask};
	const struct pod pod = {.sandbox_id = p->uid,
		.uid = p->uid,
		.ns = "default",
		.name = p->uid,
		.qos = QOS_GUARANTEED,
		.pod_level = spec.pod_level,
		.nr = spec.nr,
		.container = spec.container};
	struct decision d;

	for (unsigned i = 0; i < PARTS; i++)
		if (p->part[i].cpus)
			ask[spec.nr++] = (struct ask){.name = names[i],
				.kind = i == INIT ? CONTAINER_INIT : CONTAINER_APP,
				.cpu_milli = p->part[i].cpus * 1000,
				.tokens = tokenset_count(&p->part[i].tokens)};
	engine_run_pod(w->n->g, w->n->now_ms, &pod, &d);
	return d;
}

static void some_pod_comes(struct world *w, struct guest *p)
{
	const unsigned step = w->n->s.cpu_options.full_pcpus_only ? 2 : 1;

	*p = (struct guest){.way = (enum way)random_below(&w->r, 3), .since_ms = w->n->now_ms};
	(void)snprintf(p->uid, sizeof p->uid, "p%u", w->next_id++);
	if (p->way == BY_TOKENS) {
		p->admitted = true;
		p->there = give_tokens(w, p) && random_chance(&w->r, 80);
	} else {
		for (unsigned i = 0; i < PARTS; i++)
			p->part[i].cpus = step * random_below(&w->r, 5);
		p->admitted = p->there = p->part[INIT].cpus + p->part[APP].cpus > 0;
	}
	if (p->there && (p->way == AS_A_WHOLE || random_chance(&w->r, 50)))
		p->there = run_pod(w, p).admit || p->way == BY_TOKENS;
}

static struct request request_of(const struct guest *p, unsigned i)
{
	const struct part *c = &p->part[i];
	struct request req = ask_with(c->id, c->cpus, p->way == BY_TOKENS ? c->annotation : NULL);

	req.ask.name = names[i];
	req.pod.uid = req.pod.sandbox_id = req.pod.name = p->uid;
	return req;
}

static void end(struct world *w, struct part *c)
{
	if (c->runs)
		stop(w->n, c->id);
	c->runs = false;
}

/* Its init container runs alone; whoever starts anew comes with the same annotation. */
static void container_comes(struct world *w, struct guest *p, unsigned i)
{
	struct part *c = &p->part[i];
	struct update_list ups = {0};
	struct decision d;

	if (!c->cpus)
		return;
	end(w, &p->part[i == INIT ? APP : INIT]);
	if (random_chance(&w->r, 80)) /* else no event says that it is dead */
		end(w, c);
	(void)snprintf(c->id, sizeof c->id, "c%u", w->next_id++);
	struct request req = request_of(p, i);
	w->n->failing = random_chance(&w->r, 2);
	engine_create(w->n->g, w->n->now_ms, &req, &d, &ups);
	vec_fini(&ups);
	c->runs = d.admit;
	w->refused += !d.admit;
	if (!d.admit && req.allocated && !w->n->failing && all_is_well(w))
		fail_msg("%s of %s: %s", names[i], p->uid, d.message);
	w->n->failing = false;
	p->created = p->created || d.admit;
	c->live = d.admit && random_chance(&w->r, 85);
	if (c->live)
		engine_live(w->n->g, w->n->now_ms, &req, NULL);
	if (!req.allocated || !d.admit)
		return;
	w->created++;
	assert_true(d.lease);
	if (!p->hurt)
		nodeset_each (node, w->n->t->nodes)
			assert_int_equal(
				count_on(w->n, &d.cpus, node), cpuset_count(&c->tokens.on[node]));
}

static void some_container_comes(struct world *w, struct guest *p)
{
	unsigned first = p->part[INIT].cpus ? INIT : APP;

	container_comes(w, p, p->created ? random_below(&w->r, PARTS) : first);
}

static void pod_goes(struct world *w, struct guest *p)
{
	for (unsigned i = 0; i < PARTS; i++)
		if (random_chance(&w->r, 80))
			end(w, &p->part[i]);
	pod_gone(w->n, p->uid);
	*p = (struct guest){0};
}

static void its_sandbox_is_replaced(struct world *w, struct guest *p)
{
	pod_gone(w->n, p->uid);
	for (unsigned i = 0; i < PARTS; i++)
		p->part[i].runs = false;
	p->created = false;
	p->since_ms = w->n->now_ms;
	p->way = p->way == BY_TOKENS ? BY_TOKENS : BY_RUNTIME;
}

/* What it shows of init containers is nothing, and when it has just started nothing at all. */
static void kubelet_is_asked(struct world *w, bool has_started)
{
	struct tokenset shown = {0};

	for (unsigned i = 0; i < PODS; i++) {
		struct guest *p = &w->guest[i];

		if (p->there && !p->created && w->n->now_ms - p->since_ms >= GRACE_MS / 2)
			some_container_comes(w, p); /* no init image is longer on its way */
		if (p->there && has_started)
			tokenset_each (k, &p->part[APP].tokens)
				tokenset_add(&shown, k);
	}
	(void)engine_see_tokens(w->n->g, w->n->now_ms, &shown);
}

/* The daemon */

static void fold_anew(struct node *n)
{
	const struct engine_hooks hooks = {.ctx = n, .record = fold};
	struct err e;

	engine_free(n->folded);
	n->folded = engine_new(n->t, &n->s, &hooks);
	if (engine_dump(n->g, n->now_ms, into, n->folded, &e))
		fail_msg("%s", e.text);
}

struct running {
	unsigned nr;
	struct request req[PODS * PARTS];
	struct placement placed[PODS * PARTS];
	const struct placement *pointer[PODS * PARTS];
	char cpus[PODS * PARTS][CPUSET_TEXT_MAX], mems[PODS * PARTS][NODESET_TEXT_MAX];
};

/* What runs with which cpuset; what an engine before us has said of it. */
static void list_running(const struct world *w, const struct ledger *l, struct running *out)
{
	for (unsigned i = 0; i < PODS * PARTS; i++) {
		const struct part *c = &w->guest[i / PARTS].part[i % PARTS];
		const struct holding *h = c->runs ? ledger_find(l, c->id) : NULL;
		unsigned k = out->nr;

		if (!h)
			continue;
		out->req[k] = request_of(&w->guest[i / PARTS], i % PARTS);
		out->req[k].created_at_ns = (int64_t)k;
		out->req[k].cpus = cpuset_format(&h->decision.cpus, out->cpus[k], CPUSET_TEXT_MAX);
		out->req[k].mems = nodeset_format(
			h->decision.mems, &w->n->t->ids, out->mems[k], NODESET_TEXT_MAX);
		out->placed[k] = (struct placement){
			.exclusive = h->decision.exclusive, .cpus = h->decision.cpus};
		out->pointer[k] = &out->placed[k];
		out->nr++;
	}
}

static void synchronize(struct world *w, const struct ledger *before)
{
	struct running *list = calloc(1, sizeof *list);
	const char *pods[PODS];
	struct inventory what = {.sandbox_ids = pods, .pod_uids = pods};
	struct update_list ups = {0};

	list_running(w, before, list);
	for (unsigned i = 0; i < PODS; i++)
		if (w->guest[i].created)
			pods[what.nr_sandboxes++] = w->guest[i].uid;
	what.requests = list->req;
	what.placed = list->pointer;
	what.nr = list->nr;
	engine_synchronize(w->n->g, w->n->now_ms, &what, &ups);
	vec_fini(&ups);
	free(list);
	for (unsigned i = 0; i < PODS * PARTS; i++)
		w->guest[i / PARTS].part[i % PARTS].live = true;
}

/* While we are away some containers end and some pods go. */
static void things_end(struct world *w)
{
	for (unsigned i = 0; i < PODS; i++) {
		struct guest *p = &w->guest[i];

		if (p->created && random_chance(&w->r, 10))
			*p = (struct guest){0};
		for (unsigned c = 0; c < PARTS; c++)
			p->part[c].runs = p->part[c].runs && random_chance(&w->r, 85);
	}
}

static void the_daemon_starts_anew(struct world *w, bool journal_is_lost)
{
	const struct engine_hooks hooks = {.ctx = w->n, .record = fold};
	struct engine *before = w->n->g;
	struct err e;

	w->n->g = engine_new(w->n->t, &w->n->s, &hooks);
	if (journal_is_lost)
		hurt_all(w);
	else if (engine_dump(before, w->n->now_ms, into, w->n->g, &e))
		fail_msg("%s", e.text);
	fold_anew(w->n);
	things_end(w);
	synchronize(w, engine_ledger(before));
	engine_free(before);
	kubelet_is_asked(w, true);
}

/* The machine and the runtime */

static void cpus_come_and_go(struct world *w)
{
	struct topo *full = machine_of_eight(), *old = w->n->t;
	unsigned percent = random_chance(&w->r, 50) ? 0 : random_below(&w->r, 30);
	struct cpuset offline = {0};

	cpuset_each (cpu, &full->cpus)
		if (cpu + 1 < full->nr_cpus && random_chance(&w->r, percent))
			cpuset_add(&offline, cpu);
	w->n->t = machine_without(full, &offline, (struct nodeset){0});
	engine_set_topo(w->n->g, w->n->now_ms, w->n->t);
	fold_anew(w->n);
	hurt_all(w);
	free(full);
	free(old);
}

static void some_never_came(struct world *w)
{
	(void)engine_expire(w->n->g, w->n->now_ms);
	(void)engine_expire(w->n->g, w->n->now_ms);
	for (unsigned i = 0; i < PODS * PARTS; i++) {
		struct guest *p = &w->guest[i / PARTS];
		struct part *c = &p->part[i % PARTS];

		if (!c->runs || c->live)
			continue;
		c->runs = random_chance(&w->r, 30); /* it comes after all, on fewer CPUs */
		if (!c->runs)
			continue;
		struct request req = request_of(p, i % PARTS);
		engine_live(w->n->g, w->n->now_ms, &req, NULL);
		c->live = true;
	}
}

static void somebody_asks_for_other_cpus(struct world *w, struct guest *p)
{
	struct part *c = &p->part[APP];
	struct update_list ups = {0};
	struct decision d;

	if (!c->runs)
		return;
	struct request req = request_of(p, APP);
	req.ask.cpu_limit_milli = random_below(&w->r, 9000);
	if (random_chance(&w->r, 70))
		req.ask.cpu_milli = random_below(&w->r, 9) * 1000;
	if (!engine_update(w->n->g, w->n->now_ms, &req, &d, &ups))
		fail_msg("%s is not there", c->id);
	vec_fini(&ups);
	w->resized += d.admit;
	if (d.admit && p->way == BY_RUNTIME)
		c->cpus = (unsigned)(req.ask.cpu_milli / 1000);
	if (d.admit && p->way == BY_TOKENS && !p->hurt)
		assert_true(req.ask.cpu_milli == c->cpus * 1000);
}

static void lives_on(struct world *w, struct guest *p)
{
	if (!p->admitted)
		some_pod_comes(w, p);
	else if (!p->there) /* somebody else refused it */
		*p = (struct guest){0};
	else if (random_chance(&w->r, 60))
		some_container_comes(w, p);
	else if (random_chance(&w->r, 30))
		end(w, &p->part[random_below(&w->r, PARTS)]);
	else if (random_chance(&w->r, 30))
		somebody_asks_for_other_cpus(w, p);
	else if (random_chance(&w->r, 20) && p->created)
		its_sandbox_is_replaced(w, p);
	else if (random_chance(&w->r, 60))
		pod_goes(w, p);
}

static void something_happens(struct world *w)
{
	unsigned dice = random_below(&w->r, 1000);

	for (unsigned i = 0; i < PODS; i++)
		if (w->guest[i].hurt)
			w->hurt_ms = w->n->now_ms;
	w->n->now_ms += random_below(&w->r, GRACE_MS / 20);
	if (dice < 200)
		kubelet_is_asked(w, random_chance(&w->r, 90));
	else if (dice < 210)
		the_daemon_starts_anew(w, w->is_rough && random_chance(&w->r, 30));
	else if (dice < 213 && w->is_rough)
		cpus_come_and_go(w);
	else if (dice < 225)
		some_never_came(w);
	else
		lives_on(w, &w->guest[random_below(&w->r, PODS)]);
}

static void is_as_it_should_be(const struct world *w)
{
	struct tokenset leased, claimed, given = given_out(w);

	sound(w->n);
	leases_tokens(ledger_view(engine_ledger(w->n->g))->leases, &leased, &claimed);
	if (!all_is_well(w))
		return;
	tokenset_each (k, &given)
		assert_true(tokenset_has(&leased, k));
	for (unsigned i = 0; i < PODS * PARTS; i++) {
		const struct part *c = &w->guest[i / PARTS].part[i % PARTS];

		if (c->runs && tokenset_count(&c->tokens))
			assert_int_equal(
				leases_count_of(ledger_view(engine_ledger(w->n->g))->leases, c->id),
				c->cpus);
	}
}

static struct world *world_new(unsigned kind, unsigned long seed)
{
	struct world *w = calloc(1, sizeof *w);

	w->n = node_new(kind % 2 ? POLICY_BEST_EFFORT : POLICY_RESTRICTED);
	w->n->s.shared_pool_minimum = kind / 2;
	w->n->s.topology_scope = seed % 2 ? SCOPE_CONTAINER : SCOPE_POD;
	w->is_rough = kind & 8;
	w->n->s.cpu_options.full_pcpus_only = kind & 2;
	w->n->s.cpu_options.strict_cpu_reservation = kind & 4;
	if (kind & 4) { /* before anything has happened */
		const struct engine_hooks hooks = {.ctx = w->n, .record = fold};

		(void)cpuset_parse(&w->n->s.reserved_cpus, "0,32,5", 6, NULL);
		engine_free(w->n->g);
		w->n->g = engine_new(w->n->t, &w->n->s, &hooks);
		fold_anew(w->n);
	}
	w->r.state = (seed * WORLDS + kind + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return w;
}

static void all_go(struct world *w)
{
	for (unsigned i = 0; i < PODS; i++)
		if (w->guest[i].admitted)
			pod_goes(w, &w->guest[i]);
	for (unsigned i = 0; i < 3; i++, w->n->now_ms += 11 * GRACE_MS)
		kubelet_is_asked(w, true);
	assert_true(leases_empty(ledger_view(engine_ledger(w->n->g))->leases));
	assert_true(cpuset_empty(&ledger_view(engine_ledger(w->n->g))->held));
}

static unsigned long number_from(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void every_leased_token_can_be_turned_into_a_cpu(void **state)
{
	unsigned long seed = number_from("SEED", 1),
		      nr = number_from("TOKEN_EVENTS", STEPS_DEFAULT);

	(void)state;
	print_message("%lu events, SEED=%lu\n", nr, seed);
	for (unsigned kind = 0; kind < WORLDS; kind++) {
		struct world *w = world_new(kind, seed);

		for (unsigned long i = 0; i < nr / WORLDS; i++) {
			something_happens(w);
			is_as_it_should_be(w);
			if (random_chance(&w->r, 5))
				comes_back(w->n);
		}
		print_message(
			"%u: %u allocations, %u containers with them, %u refused, %u resized, "
			"%u tokens given up\n",
			kind, w->allocated, w->created, w->refused, w->resized,
			w->n->records[RECORD_GIVE_UP]);
		all_go(w);
		node_free(w->n);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_leased_token_can_be_turned_into_a_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
