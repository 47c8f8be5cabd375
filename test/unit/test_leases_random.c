/* Annotations with any byte changed, and a kubelet at random: no token is lost, kept or given
 * twice. */
#include "leases_rig.h"

/* Any byte of an annotation changed: never more than was leased, never a crash. */
static void no_other_annotation_gets_any_tokens(void **state)
{
	struct random r = {20261121};
	struct rig *g = rig_new();
	struct lease_user u = user_of("c1", "pod", "main");
	struct tokenset leased = tokens_of(g, "0=0-3;1=2,5"), claimed;
	char good[LEASE_TEXT_MAX], text[LEASE_TEXT_MAX], again[LEASE_TEXT_MAX];
	unsigned admitted = 0;

	(void)state;
	allocate(g, "0=0-3;1=2,5", good);
	for (unsigned i = 0; i < 50000; i++) {
		size_t len = strlen(good);
		struct lease_claim c;

		memcpy(text, good, len + 1);
		for (unsigned k = 1 + random_below(&r, 3); k > 0; k--)
			text[random_below(&r, (unsigned)len + 1)] =
				"0123456789:;=-,v \n\xff"[random_below(&r, 20)];
		text[len] = '\0';
		for (uint64_t nr = 1; nr <= 6; nr++) {
			if (leases_examine(g->l, text, &u, nr, &c, NULL))
				continue;
			admitted++;
			assert_int_equal(tokenset_count(&c.tokens), nr);
			tokenset_each (k, &c.tokens)
				assert_true(tokenset_has(&leased, k));
			assert_string_equal(
				lease_annotation(c.name, &c.tokens, &g->t->ids, again), text);
		}
	}
	assert_true(admitted > 0);
	leases_tokens(g->l, &leased, &claimed);
	assert_int_equal(tokenset_count(&claimed), 0);
	rig_free(g);
}

/* A kubelet at random. It frees tokens without a word, gives an init container's to later ones, and
 * shows no init containers. */
enum { PODS = 6, INIT = 0, APP = 1, PARTS = 2, STEPS = 4000, SEEDS = 12 };
struct guest {
	bool there, end_reported;
	bool created; /* one of its containers, once */
	char uid[16];
	int64_t admitted_ms;
	struct part part[PARTS];
};
struct world {
	struct rig *g;
	struct random r;
	struct guest pod[PODS];
	unsigned next_id, rejected, created, reclaimed;
};

static struct tokenset given_out(const struct world *w)
{
	struct tokenset all = {0};

	for (unsigned p = 0; p < PODS; p++)
		for (unsigned i = 0; w->pod[p].there && i < PARTS; i++)
			tokenset_each (k, &w->pod[p].part[i].tokens)
				tokenset_add(&all, k);
	return all;
}

/* Move nr random tokens of *from into *to; how many there were. */
static unsigned take_some(struct random *r, struct tokenset *from, unsigned nr, struct tokenset *to)
{
	unsigned taken = 0;

	for (; taken < nr; taken++) {
		unsigned left = tokenset_count(from);
		unsigned skip = left ? random_below(r, left) : 0;

		if (!left)
			break;
		tokenset_each (k, from) {
			if (skip--)
				continue;
			tokenset_add(to, k);
			cpuset_del(&from->on[k.node], k.number);
			break;
		}
	}
	return taken;
}

static void some_pod_is_admitted(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];
	struct tokenset held = given_out(w), free_ones = {0}, reusable;

	if (p->there)
		return;
	if (p->created && !p->end_reported) /* its place is needed */
		leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	memset(p, 0, sizeof *p);
	(void)snprintf(p->uid, sizeof p->uid, "pod%u", w->next_id++);
	for (uint16_t n = 0; n < 8; n++)
		for (uint16_t i = 0; i < 8; i++)
			if (!tokenset_has(&held, (struct token){n, i}))
				tokenset_add(&free_ones, (struct token){n, i});
	p->part[INIT].nr = random_below(&w->r, 2) * (1 + random_below(&w->r, 12));
	p->part[APP].nr = random_below(&w->r, 8);
	for (unsigned i = 0; i < PARTS; i++) {
		struct part *c = &p->part[i];
		uint64_t name = 0;

		reusable = p->part[INIT].tokens;
		unsigned got = i == APP ? take_some(&w->r, &reusable, c->nr, &c->tokens) : 0;
		got += take_some(&w->r, &free_ones, c->nr - got, &c->tokens);
		c->nr = got;
		if (!got)
			continue;
		assert_int_equal(give_out(w->g->l, w->g->now_ms, &c->tokens, &name), 0);
		(void)lease_annotation(name, &c->tokens, &w->g->t->ids, c->annotation);
	}
	p->admitted_ms = w->g->now_ms;
	p->there = random_chance(&w->r, 70); /* else somebody else refuses it */
	w->rejected += !p->there;
}

static void create(struct world *w, struct guest *p, unsigned i)
{
	struct part *c = &p->part[i];
	struct lease_user u;
	struct lease_claim claim;
	struct err e = {0};

	(void)snprintf(c->id, sizeof c->id, "c%u", w->next_id++);
	u = user_of(c->id, p->uid, i == INIT ? "init" : "app");
	assert_int_equal(
		leases_examine(w->g->l, c->annotation, &u, c->nr + 1, &claim, NULL), -ERANGE);
	if (leases_examine(w->g->l, c->annotation, &u, c->nr, &claim, &e))
		fail_msg("%s of %s: %s", c->id, p->uid, e.text);
	leases_claim(w->g->l, &u, &claim);
	assert_memory_equal(&claim.tokens, &c->tokens, sizeof c->tokens);
	u = user_of("forger", "forger", "main");
	assert_int_equal(leases_examine(w->g->l, c->annotation, &u, c->nr, &claim, NULL), -EBUSY);
	c->runs = p->created = true;
	w->created++;
}

static void end(struct world *w, struct part *c)
{
	if (c->runs)
		assert_true(leases_release(w->g->l, w->g->now_ms, c->id));
	c->runs = false;
}

/* The next container of the pod, or the same one once more. */
static void go_on(struct world *w, struct guest *p)
{
	unsigned i = random_below(&w->r, PARTS);

	if (!p->there)
		return;
	if (!p->created)
		i = p->part[INIT].nr ? INIT : APP;
	if (!p->part[i].nr)
		return;
	if (p->part[i].runs && random_chance(&w->r, 50)) {
		end(w, &p->part[i]);
		return;
	}
	for (unsigned c = 0; c < PARTS; c++)
		end(w, &p->part[c]);
	create(w, p, i);
}

static void some_pod_ends(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];

	for (unsigned i = 0; p->there && i < PARTS; i++)
		end(w, &p->part[i]);
	if (p->there || random_chance(&w->r, 30)) {
		p->there = false;
		p->end_reported = random_chance(&w->r, 50);
		if (p->end_reported)
			leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	}
}

static void some_sandbox_is_replaced(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];

	if (!p->there || !p->created)
		return;
	for (unsigned i = 0; i < PARTS; i++)
		p->part[i].runs = false;
	leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	p->admitted_ms = w->g->now_ms;
	p->created = false; /* comes again, init containers first, within the grace */
}

static void podresources_is_asked(struct world *w)
{
	struct tokenset shown = {0};

	for (unsigned p = 0; p < PODS; p++) {
		struct guest *q = &w->pod[p];

		if (q->there && !q->created && w->g->now_ms - q->admitted_ms >= GRACE_MS)
			go_on(w, q); /* no pod takes longer to its init container */
		if (q->there)
			tokenset_each (k, &q->part[APP].tokens)
				tokenset_add(&shown, k);
	}
	w->reclaimed += give_up(w->g->l, w->g->now_ms, &shown);
}

static void are_same(const struct lease *a, const struct lease *b)
{
	assert_true(a->name == b->name && a->since_ms == b->since_ms);
	assert_true(a->claimed == b->claimed && a->shown == b->shown);
	assert_memory_equal(&a->user, &b->user, sizeof a->user);
	assert_memory_equal(&a->tokens, &b->tokens, sizeof a->tokens);
}

/* We die, and read our journal. */
static void we_start_anew(struct world *w)
{
	struct leases *back = leases_new(w->g->t, &w->g->s);
	struct lease *a = calloc(2, sizeof *a), *b = a + 1;
	size_t at = 0, from = 0;

	while (leases_next(w->g->l, &at, a))
		assert_int_equal(leases_enter(back, a, NULL), 0);
	at = 0;
	while (leases_next(w->g->l, &at, a)) {
		assert_true(leases_next(back, &from, b));
		are_same(a, b);
	}
	assert_false(leases_next(back, &from, b));
	leases_free(w->g->l);
	w->g->l = back;
	free(a);
}

static void world_is_sound(const struct world *w)
{
	struct tokenset leased, claimed, held = given_out(w), running = {0};

	sound(w->g);
	leases_tokens(w->g->l, &leased, &claimed);
	for (unsigned p = 0; p < PODS; p++)
		for (unsigned i = 0; i < PARTS; i++)
			if (w->pod[p].part[i].runs)
				tokenset_each (k, &w->pod[p].part[i].tokens) {
					assert_false(tokenset_has(&running, k));
					tokenset_add(&running, k);
				}
	tokenset_each (k, &held)
		assert_true(tokenset_has(&leased, k));
	tokenset_each (k, &running)
		assert_true(tokenset_has(&claimed, k));
	assert_int_equal(tokenset_count(&claimed), tokenset_count(&running));
}

static void live_on(struct world *w)
{
	unsigned dice = random_below(&w->r, 100);

	w->g->now_ms += random_below(&w->r, 60);
	if (dice < 25)
		some_pod_is_admitted(w);
	else if (dice < 65)
		go_on(w, &w->pod[random_below(&w->r, PODS)]);
	else if (dice < 80)
		some_pod_ends(w);
	else if (dice < 85)
		some_sandbox_is_replaced(w);
	else if (dice < 97)
		podresources_is_asked(w);
	else
		we_start_anew(w);
}

static void a_random_kubelet_neither_loses_nor_leaks_tokens(void **state)
{
	const struct tokenset none = {0};

	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct world *w = calloc(1, sizeof *w);
		struct tokenset leased, claimed;

		w->g = rig_new();
		w->r.state = seed * UINT64_C(0x9e3779b97f4a7c15);
		print_message("seed %u: ", seed);
		for (unsigned i = 0; i < STEPS; i++) {
			live_on(w);
			world_is_sound(w);
		}
		assert_true(w->rejected > 50 && w->created > 200 && w->reclaimed > 50);
		for (unsigned p = 0; p < PODS; p++) {
			for (unsigned i = 0; i < PARTS; i++)
				end(w, &w->pod[p].part[i]);
			leases_pod_gone(w->g->l, w->g->now_ms, w->pod[p].uid);
		}
		(void)give_up(w->g->l, w->g->now_ms + GRACE_MS + 1, &none);
		leases_tokens(w->g->l, &leased, &claimed);
		assert_int_equal(tokenset_count(&leased), 0);
		print_message("%u pods refused elsewhere, %u containers, %u tokens given up\n",
			w->rejected, w->created, w->reclaimed);
		rig_free(w->g);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_annotation_gets_any_tokens),
		cmocka_unit_test(a_random_kubelet_neither_loses_nor_leaks_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
