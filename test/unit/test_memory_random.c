/* Random requests for memory: the accounts answer as the kubelet's rule, written out, does. */
#include "memory_rig.h"

/* The kubelet's hints for a demand. */
struct oracle {
	size_t nr;
	struct nodeset mask[SETS];
	unsigned size; /* of the preferred ones */
};

/* One question, and what the pod may take over. */
struct question {
	const struct topo *t;
	const struct memory_state *m;
	const struct memory_demand *d;
	const struct memory_reuse *reuse;
};

static bool has(const struct question *q, struct nodeset mask, bool free_now, bool reuse)
{
	for (unsigned k = 0; k < q->t->nr_kinds; k++) {
		uint64_t sum = 0;

		nodeset_each (n, mask)
			sum += free_now ? q->m->node[n].free[k] : q->m->node[n].allocatable[k];
		for (unsigned i = 0; reuse && i < q->reuse->nr; i++)
			if (q->reuse->entry[i].kind == k &&
				q->reuse->entry[i].nodes.bits == mask.bits)
				sum += q->reuse->entry[i].bytes;
		if ((q->d->kinds >> k & 1) && sum < q->d->bytes[k])
			return false;
	}
	return true;
}

static bool violates(const struct memory_state *m, struct nodeset mask)
{
	if (nodeset_count(mask) < 2)
		return false;
	nodeset_each (n, mask)
		if (m->node[n].assignments && (nodeset_count(m->node[n].group) == 1 ||
						      !nodeset_equal(m->node[n].group, mask)))
			return true;
	return false;
}

static void kubelet_hints(const struct question *q, struct oracle *o)
{
	*o = (struct oracle){.size = q->t->ids.nr};
	for (uint64_t bits = 1; bits <= q->t->nodes.bits; bits++) {
		struct nodeset mask = {bits};
		unsigned count = nodeset_count(mask);

		if (!has(q, mask, false, false))
			continue;
		if (count < o->size)
			o->size = count;
		if (count == 1 && nodeset_count(q->m->node[nodeset_next(mask, 0)].group) > 1)
			continue;
		if (!violates(q->m, mask) && has(q, mask, true, true))
			o->mask[o->nr++] = mask;
	}
}

/* Whether a is preferred over b: preferred, then narrow, then low. */
static bool better(const struct oracle *o, struct nodeset a, struct nodeset b)
{
	unsigned na = nodeset_count(a), nb = nodeset_count(b);

	if ((na == o->size) != (nb == o->size))
		return na == o->size;
	return na != nb ? na < nb : a.bits < b.bits;
}

/* Where we differ from the kubelet when a setting says so. */
static bool splits_a_group(const struct memory_state *m, struct nodeset mask)
{
	unsigned n = nodeset_next(mask, 0);

	return m->keep_groups && nodeset_count(mask) == 1 && m->node[n].assignments &&
	       nodeset_count(m->node[n].group) > 1;
}

static const char *kubelet_nodes(const struct question *q, struct hint h, struct nodeset *nodes)
{
	struct nodeset best = {0};
	struct oracle o;

	*nodes = h.any ? (struct nodeset){0} : h.mask;
	if (h.any || !has(q, h.mask, true, false) || splits_a_group(q->m, h.mask)) {
		kubelet_hints(q, &o);
		for (size_t i = 0; (q->d->kinds & 1) && i < o.nr; i++)
			if (nodeset_within(*nodes, o.mask[i]) &&
				(nodeset_empty(best) || better(&o, o.mask[i], best)))
				best = o.mask[i];
		if (nodeset_empty(best))
			return h.any ? "[memorymanager] failed to get the default NUMA affinity, "
				       "no NUMA nodes with enough memory is available"
				     : "[memorymanager] failed to find NUMA nodes to extend the "
				       "current topology hint";
		if (h.preferred && nodeset_count(best) != o.size)
			return h.any ? "[memorymanager] failed to find the default preferred hint"
				     : "[memorymanager] failed to find the extended preferred hint";
		*nodes = best;
	}
	return violates(q->m, *nodes)
		       ? "[memorymanager] preferred hint violates NUMA node allocation"
		       : NULL;
}

static void check_families(unsigned round, const struct question *q)
{
	struct memory_rows rows;
	struct family f[TOPO_KINDS];
	struct oracle o;
	struct arena a;

	kubelet_hints(q, &o);
	arena_init(&a, WORK_BYTES);
	unsigned nr = memory_families(
		q->t, q->m, q->d, q->reuse, &rows, &(struct budget){.endless = true}, &a, f);
	if (nr != (o.nr ? (unsigned)__builtin_popcount(q->d->kinds) : 0))
		fail_msg("case %u: %u families, %zu masks", round, nr, o.nr);
	for (unsigned i = 0; i < nr; i++) {
		size_t found = 0;

		assert_int_equal(f[i].preferred_size, o.size);
		for (uint64_t bits = 1; bits <= q->t->nodes.bits; bits++)
			if (family_has(&f[i], (struct nodeset){bits})) {
				if (found >= o.nr || o.mask[found].bits != bits)
					fail_msg("case %u: mask %#llx is too many or out of place",
						round, (unsigned long long)bits);
				found++;
			}
		assert_int_equal(found, o.nr);
	}
	arena_fini(&a);
}

struct holder {
	unsigned nr;
	struct memory_block blocks[TOPO_KINDS];
};

static void check_state(const struct topo *t, const struct memory_state *m,
	const struct holder *held, unsigned nr_held)
{
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		uint64_t booked = 0, wanted = 0;

		nodeset_each (n, t->nodes) {
			assert_true(m->node[n].free[k] + m->node[n].reserved[k] ==
				    m->node[n].allocatable[k]);
			booked += m->node[n].reserved[k];
		}
		for (unsigned h = 0; h < nr_held; h++)
			for (unsigned b = 0; b < held[h].nr; b++)
				wanted += held[h].blocks[b].kind == k ? held[h].blocks[b].bytes : 0;
		if (m->keep_groups) /* else groups fall apart, and what comes back is not what was
				       held, as in the kubelet */
			assert_int_equal(booked, wanted);
	}
}

static void release_one(
	struct random *r, struct memory_state *m, struct holder *held, unsigned *nr_held)
{
	unsigned i = random_below(r, *nr_held);

	memory_release(m, held[i].blocks, held[i].nr);
	held[i] = held[--*nr_held];
}

static struct memory_demand random_demand(struct random *r, const struct topo *t)
{
	struct memory_demand d = {0};

	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (random_chance(r, k ? 40 : 80)) {
			d.kinds |= 1u << k;
			d.bytes[k] = random_below(r, random_chance(r, 70) ? 8 : 30);
		}
	return d;
}

static struct hint random_affinity(struct random *r, const struct topo *t)
{
	struct hint h = {.any = random_chance(r, 30), .preferred = random_chance(r, 40)};

	if (!h.any)
		h.mask.bits = 1 + random_below(r, (unsigned)t->nodes.bits);
	return h;
}

static struct topo *random_machine(struct random *r, struct settings *s)
{
	unsigned nodes = 1 + random_below(r, NODES), kinds = 1 + random_below(r, 3);
	struct topo *t = machine(nodes, 0, 0);

	for (unsigned n = 0; n < nodes; n++) {
		uint64_t huge = 0;

		for (unsigned k = 1; k < kinds; k++) {
			uint64_t bytes = random_chance(r, 80) ? random_below(r, 12) : 0;

			assert_int_equal(
				topo_set_memory(t, n, k == 1 ? 2 << 20 : GIB(1), bytes, NULL), 0);
			huge += bytes;
		}
		assert_int_equal(
			topo_set_memory(t, n, 0,
				random_chance(r, 85) ? huge + random_below(r, 20) : huge, NULL),
			0);
		if (random_chance(r, 30))
			reserve(s, 2 * n, "memory", random_below(r, 5));
	}
	return t;
}

/* What an init container may have left, here and there. */
static struct memory_reuse random_reuse(struct random *r, const struct topo *t)
{
	struct memory_reuse reuse = {0};

	for (unsigned nr = random_chance(r, 30) ? random_below(r, 5) : 0; nr; nr--) {
		struct memory_block b = {.kind = random_below(r, t->nr_kinds),
			.nodes = {1 + random_below(r, (unsigned)t->nodes.bits)},
			.bytes = 1 + random_below(r, 20)};

		if (!memory_reusable(&reuse, b.nodes, b.kind))
			reuse.entry[reuse.nr++] = b;
	}
	return reuse;
}

/* Ask once, compare with the kubelet, hold it when it is granted. Whether it was granted. */
static bool ask_like_the_kubelet(struct random *r, unsigned round, const struct topo *t,
	struct memory_state *m, struct holder *h)
{
	struct hint affinity = random_affinity(r, t);
	struct memory_demand d = random_demand(r, t);
	struct memory_reuse reuse = random_reuse(r, t);
	struct question q = {t, m, &d, &reuse};
	struct nodeset want;
	struct err e = {0};
	struct arena a;

	check_families(round, &q);
	const char *why = kubelet_nodes(&q, affinity, &want);
	arena_init(&a, WORK_BYTES);
	int nr = memory_allocate(
		t, m, &d, &reuse, &affinity, &(struct budget){.endless = true}, &a, h->blocks, &e);
	arena_fini(&a);
	assert_int_equal(nr, why ? -ENOSPC : __builtin_popcount(d.kinds));
	if (why) {
		assert_string_equal(e.text, why);
		return false;
	}
	h->nr = (unsigned)nr;
	for (unsigned b = 0; b < h->nr; b++) {
		assert_int_equal(h->blocks[b].nodes.bits, want.bits);
		assert_int_equal(h->blocks[b].bytes, d.bytes[h->blocks[b].kind]);
		/* none of the pod's earlier containers holds it here: what is booked is there */
		uint64_t free = 0;
		nodeset_each (n, want)
			free += m->node[n].free[h->blocks[b].kind];
		if (free < h->blocks[b].bytes)
			h->blocks[b].bytes = free;
	}
	memory_hold(m, h->blocks, h->nr);
	return true;
}

/* Any affinity may come, also such as no merge would choose; with and without keep_groups. */
static void random_requests_are_answered_like_the_kubelet_and_all_comes_back(void **state)
{
	struct random r = {53};
	unsigned admitted = 0, refused = 0;

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		struct settings s = settings_of(POLICY_NONE);
		struct topo *t = random_machine(&r, &s);
		struct memory_state m, start;
		struct holder held[HELD_MAX];
		unsigned nr_held = 0;

		memory_init(&m, t, &s);
		m.keep_groups = random_chance(&r, 50);
		start = m;
		for (unsigned step = 0; step < 60; step++) {
			if (ask_like_the_kubelet(&r, round, t, &m, &held[nr_held])) {
				admitted++;
				nr_held++;
			} else {
				refused++;
			}
			while (nr_held == HELD_MAX || (nr_held && random_chance(&r, 35)))
				release_one(&r, &m, held, &nr_held);
			check_state(t, &m, held, nr_held);
		}
		while (nr_held)
			release_one(&r, &m, held, &nr_held);
		check_state(t, &m, held, 0);
		if (m.keep_groups)
			assert_memory_equal(&m, &start, sizeof m);
		free(t);
	}
	assert_true(admitted > 1000 && refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_requests_are_answered_like_the_kubelet_and_all_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
