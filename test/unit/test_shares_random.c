/* Random claims, plain containers and hotplug: after each event every invariant holds, what was
 * recorded folds and dumps to the same, and every claim has what it was given. */
#include "shares_rig.h"

#include <stdio.h>

enum { CLAIMS = 12, EVENTS_DEFAULT = 6000, PLAIN = 16 };

struct life {
	struct node *n;
	struct random r;
	struct claimed claim[CLAIMS];
	bool there[CLAIMS];
	struct topo *full, *now; /* all CPUs; without those that are offline */
	unsigned next, offered, prepared, refused, ran, hotplugs, lost;
};

static int fold_into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

/* The union of what the claims' shares hold is what their CPUs are, on the right NUMA nodes. */
static void check_claims(const struct life *w)
{
	const struct ledger *l = engine_ledger(w->n->g);
	struct cpuset seen = {0};

	for (unsigned i = 0; i < CLAIMS; i++)
		for (size_t s = 0; s < w->claim[i].claim.nr; s++) {
			const struct holding *h = shares_find(l, w->claim[i].uid, s);

			assert_int_equal(h != NULL, w->there[i]);
			if (!h)
				continue;
			const unsigned node = (unsigned)atoi(w->claim[i].device[s] + 4);
			assert_true(cpuset_within(&h->decision.cpus, &w->full->node[node].cpus));
			assert_false(cpuset_intersects(&seen, &h->decision.cpus));
			assert_true(cpuset_count(&h->decision.cpus) <= w->claim[i].share[s].cpus);
			if (w->now == w->full && !h->decision.lost_cpus)
				assert_int_equal(
					cpuset_count(&h->decision.cpus), w->claim[i].share[s].cpus);
			seen = cpuset_or(seen, &h->decision.cpus);
		}
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);
		const struct cpuset all = shares_cpus(l, h->request.shares);

		if (h->decision.within_claims)
			assert_true(cpuset_equal(&h->decision.cpus, &all));
		else if (h->decision.exclusive && !holding_is_share(h))
			assert_false(cpuset_intersects(&seen, &h->decision.cpus));
	}
}

static void check_all(struct life *w)
{
	struct err e;

	if (ledger_check(engine_ledger(w->n->g), &e))
		fail_msg("%s", e.text);
	check_claims(w);
}

/* The journal starts anew, or the daemon does. */
static void begin_anew(struct life *w)
{
	struct node *n = w->n;
	const struct engine_hooks hooks = {.ctx = n, .record = fold};
	struct engine *again = engine_new(w->now, &n->s, &hooks);
	struct err e;

	engine_free(n->folded);
	n->folded = engine_new(w->now, &n->s, &hooks);
	if (engine_dump(n->g, 0, fold_into, n->folded, &e) ||
		engine_dump(n->g, 0, fold_into, again, &e))
		fail_msg("%s", e.text);
	if (random_chance(&w->r, 50)) { /* the daemon does */
		engine_free(n->g);
		n->g = again;
	} else {
		engine_free(again);
	}
	assert_folded(n);
}

/* A journal that could not be written is written anew. */
static void record_again(struct life *w)
{
	if (!w->n->failing)
		return;
	w->n->failing = false;
	w->lost++;
	begin_anew(w);
}

static void some_claim_comes_or_goes(struct life *w)
{
	const unsigned i = random_below(&w->r, CLAIMS);
	struct claimed *c = &w->claim[i];
	struct share_offer offer[NODES_MAX];
	bool offered;
	char uid[ID_MAX];
	struct decision d;
	struct err e;

	if (w->there[i]) {
		if (shares_user(engine_ledger(w->n->g), c->uid))
			assert_int_equal(engine_unprepare(w->n->g, 0, c->uid, &e), -16);
		else
			w->there[i] = engine_unprepare(w->n->g, 0, c->uid, &e) != 0;
		return;
	}
	(void)snprintf(uid, sizeof uid, "u%u-%u", i, w->next++ % 100);
	(void)claim_on(c, uid, "p", random_below(&w->r, 8), 1 + random_below(&w->r, 5),
		GIB(random_below(&w->r, 20)));
	c->claim.nr = 1 + random_below(&w->r, 2);
	c->share[1] = c->share[0];
	(void)snprintf(c->device[1], sizeof c->device[1], "numa%u", random_below(&w->r, 8));
	c->share[1].device = c->device[1];
	c->share[0].shared = c->share[1].shared = random_chance(&w->r, 50);
	c->share[0].whole_cores = random_chance(&w->r, 20);
	c->share[0].cpus += c->share[0].whole_cores ? c->share[0].cpus % 2 : 0;
	w->n->failing = random_chance(&w->r, 3);
	shares_offer(engine_ledger(w->n->g), &w->n->s, offer);
	offered = share_is_offered(w->now, c->share, &offer[atoi(c->device[0] + 4)]);
	w->there[i] = engine_prepare(w->n->g, 0, &c->claim, &d, &e) == 0;
	if (offered && c->claim.nr == 1 && !c->share[0].whole_cores && !w->n->failing) {
		assert_true(w->there[i]);
		w->offered++;
	}
	record_again(w);
	w->prepared += w->there[i];
	w->refused += !w->there[i];
	if (!w->there[i])
		c->claim.nr = 0;
}

static void some_container_comes(struct life *w)
{
	const unsigned i = random_below(&w->r, CLAIMS);
	char id[ID_MAX], shares[2 * SHARE_ID_MAX], pod[ID_MAX];
	struct update_list ups = {0};
	const struct claimed *c = &w->claim[i];
	struct decision d;

	(void)snprintf(id, sizeof id, "c%u", random_below(&w->r, 40));
	(void)snprintf(pod, sizeof pod, "plain%u", random_below(&w->r, PLAIN));
	struct request req = ask(id, QOS_GUARANTEED, 1000 * random_below(&w->r, 5), GIB(1));
	req.pod.uid = req.pod.name = req.pod.sandbox_id = pod;
	if (w->there[i] && random_chance(&w->r, 60)) {
		(void)snprintf(shares, sizeof shares, "%s/0%s%s%s", c->uid,
			c->claim.nr > 1 ? " " : "", c->claim.nr > 1 ? c->uid : "",
			c->claim.nr > 1 ? "/1" : "");
		req.shares = shares;
		req.pod.uid = req.pod.name = req.pod.sandbox_id = "p";
		req.ask.name = id;
	}
	w->n->failing = random_chance(&w->r, 3);
	engine_create(w->n->g, 0, &req, &d, &ups);
	record_again(w);
	w->ran += d.admit && req.shares;
	if (d.admit && random_chance(&w->r, 90))
		engine_started(w->n->g, 0, id);
	vec_fini(&ups);
}

static void some_container_goes(struct life *w)
{
	char id[ID_MAX];
	struct update_list ups = {0};

	(void)snprintf(id, sizeof id, "c%u", random_below(&w->r, 40));
	engine_release(w->n->g, 0, "stop", id, &ups);
	vec_fini(&ups);
}

static void some_container_is_resized(struct life *w)
{
	char id[ID_MAX];
	struct update_list ups = {0};
	struct decision d;

	(void)snprintf(id, sizeof id, "c%u", random_below(&w->r, 40));
	const struct request req = ask(id, QOS_GUARANTEED, 1000 * random_below(&w->r, 5), GIB(1));
	(void)engine_update(w->n->g, 0, &req, &d, &ups);
	vec_fini(&ups);
}

static void cpus_come_or_go(struct life *w)
{
	struct cpuset off = {0};
	struct topo *before = w->now;

	for (unsigned i = random_below(&w->r, 5); w->now == w->full && i; i--)
		cpuset_add(&off, 1 + random_below(&w->r, 31));
	w->now = w->now == w->full ? machine_without(w->full, &off, (struct nodeset){0}) : w->full;
	engine_set_topo(w->n->g, 0, w->now);
	w->hotplugs++;
	begin_anew(w); /* no record says so */
	if (before != w->full)
		free(before);
}

static void everything_holds_through_random_events(void **state)
{
	const char *events = getenv("ENGINE_EVENTS"), *seed = getenv("SEED");
	struct life w = {.n = node_new(POLICY_BEST_EFFORT, 0)};
	const unsigned long nr = events ? strtoul(events, NULL, 10) : EVENTS_DEFAULT;

	(void)state;
	w.r = (struct random){seed ? strtoull(seed, NULL, 10) : 1};
	w.full = w.now = w.n->t;
	for (unsigned long i = 0; i < nr; i++) {
		const unsigned what = random_below(&w.r, 100);

		if (what < 35)
			some_claim_comes_or_goes(&w);
		else if (what < 65)
			some_container_comes(&w);
		else if (what < 88)
			some_container_goes(&w);
		else if (what < 95)
			some_container_is_resized(&w);
		else if (what < 97)
			begin_anew(&w);
		else if (what < 98)
			cpus_come_or_go(&w);
		else
			(void)engine_expire(w.n->g, 0);
		check_all(&w);
		assert_folded(w.n);
	}
	assert_true(w.prepared > nr / 50 && w.refused > nr / 100 && w.offered > nr / 100 &&
		w.ran > nr / 100);
	if (w.now != w.full) {
		engine_set_topo(w.n->g, 0, w.full);
		engine_free(w.n->folded);
		w.n->folded = NULL;
		free(w.now);
	}
	node_free(w.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_holds_through_random_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
