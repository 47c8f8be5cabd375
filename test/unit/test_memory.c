/* Memory assignment against the kubelet's own steps, written out literally over all sets of nodes
 * (pkg/kubelet/cm/memorymanager/policy_static.go: calculateHints, getDefaultHint,
 * extendTopologyManagerHint, isAffinityViolatingNUMAAllocations). */
#include <numafit/memory.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { NODES = 5, SETS = 1 << NODES, WORK_BYTES = 4 << 20, HELD_MAX = 24 };

static struct topo *machine(unsigned nodes, uint64_t memory, uint64_t huge)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "m");
	for (unsigned n = 0; n < nodes; n++)
		assert_int_equal(topo_add_node(t, 2 * n, NULL), n);
	assert_int_equal(topo_add_cpu(t, 0, 0, 0, 0, 0, NULL), 0);
	for (unsigned n = 0; n < nodes; n++) {
		assert_int_equal(topo_set_memory(t, n, 0, memory, NULL), 0);
		if (huge)
			assert_int_equal(topo_set_memory(t, n, GIB(1), huge, NULL), 0);
	}
	assert_int_equal(topo_seal(t, NULL), 0);
	return t;
}

static void reserve(struct settings *s, unsigned node_id, const char *type, uint64_t bytes)
{
	struct reserved_memory *r = &s->reserved_memory[s->nr_reserved_memory++];

	*r = (struct reserved_memory){.has_node = true, .node_id = node_id, .bytes = bytes};
	(void)snprintf(r->type, sizeof r->type, "%s", type);
}

static int allocate(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], struct hint affinity,
	struct memory_block blocks[TOPO_KINDS], struct err *e)
{
	struct arena a;

	arena_init(&a, WORK_BYTES);
	int rc = memory_allocate(t, m, bytes, &affinity, &a, blocks, e);
	arena_fini(&a);
	return rc;
}

static void allocatable_is_what_is_not_reserved_and_not_huge(void **state)
{
	struct topo *t = machine(3, GIB(64), GIB(8));
	struct settings s = settings_of(POLICY_NONE);
	struct memory_state m;

	(void)state;
	reserve(&s, 0, "memory", GIB(9)); /* overruled by the next */
	reserve(&s, 0, "memory", GIB(2));
	reserve(&s, 2, "hugepages-1Gi", GIB(3));
	reserve(&s, 4, "memory", GIB(99));
	reserve(&s, 4, "hugepages-1Gi", GIB(99));
	reserve(&s, 1, "memory", GIB(1)); /* an id, not an index: there is no such node */
	memory_init(&m, t, &s);
	assert_int_equal(m.node[0].allocatable[0], GIB(64 - 8 - 2));
	assert_int_equal(m.node[0].allocatable[1], GIB(8));
	assert_int_equal(m.node[1].allocatable[0], GIB(64 - 8));
	assert_int_equal(m.node[1].allocatable[1], GIB(8 - 3));
	assert_int_equal(m.node[2].allocatable[0], 0); /* never wraps around */
	assert_int_equal(m.node[2].allocatable[1], 0);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(m.node[n].group.bits, 1u << n);
		assert_int_equal(m.node[n].assignments, 0);
		assert_memory_equal(m.node[n].free, m.node[n].allocatable, sizeof m.node[n].free);
	}
	free(t);
}

static void a_demand_is_the_request_by_kind(void **state)
{
	struct topo *t = machine(1, GIB(64), GIB(8));
	struct request r = {.nr_memory = 2, .memory = {{0, GIB(5)}, {GIB(1), GIB(2)}}};
	uint64_t bytes[TOPO_KINDS];
	struct err e;

	(void)state;
	memset(bytes, 0xee, sizeof bytes);
	assert_int_equal(memory_demand(t, &r, bytes, NULL), 0);
	for (unsigned k = 0; k < TOPO_KINDS; k++)
		assert_int_equal(bytes[k], k == 0 ? GIB(5) : k == 1 ? GIB(2) : 0);
	r.memory[1].page_bytes = 2 << 20;
	assert_int_equal(memory_demand(t, &r, bytes, &e), -ENOSPC);
	assert_string_equal(e.text, "the machine has no hugepages-2Mi");
	free(t);
}

/* Two nodes of 10 GiB; what is held first, then one more of one kind. */
static void every_refusal_has_the_kubelets_words(void **state)
{
	static const struct {
		struct memory_block held[2];
		uint64_t gib;
		struct hint affinity;
		const char *text;
	} cases[] = {
		{{{0}}, 21, {.any = true},
			"[memorymanager] failed to get the default NUMA affinity, no NUMA nodes "
			"with enough memory is available"},
		{{{0, {1}, GIB(5)}}, 12, {.any = true},
			"[memorymanager] failed to get the default NUMA affinity, no NUMA nodes "
			"with enough memory is available"},
		{{{0}}, 21, {.mask = {1}},
			"[memorymanager] failed to find NUMA nodes to extend the current topology "
			"hint"},
		{{{0, {2}, GIB(1)}}, 12, {.mask = {1}},
			"[memorymanager] failed to find NUMA nodes to extend the current topology "
			"hint"},
		{{{0, {3}, GIB(2)}}, 10, {.any = true, .preferred = true},
			"[memorymanager] failed to find the default preferred hint"},
		{{{0, {3}, GIB(11)}}, 9, {.mask = {1}, .preferred = true},
			"[memorymanager] failed to find the extended preferred hint"},
		{{{0, {1}, GIB(1)}}, 12, {.mask = {3}},
			"[memorymanager] preferred hint violates NUMA node allocation"},
		{{{0, {1}, GIB(1)}, {0, {2}, GIB(1)}}, 1, {.mask = {3}},
			"[memorymanager] preferred hint violates NUMA node allocation"},
	};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t bytes[TOPO_KINDS] = {cases[i].gib << 30};
		struct memory_block blocks[TOPO_KINDS];
		struct memory_state m, before;
		struct err e = {0};

		memory_init(&m, t, &s);
		for (size_t b = 0; b < 2 && cases[i].held[b].bytes; b++)
			memory_hold(&m, &cases[i].held[b], 1);
		before = m;
		assert_int_equal(allocate(t, &m, bytes, cases[i].affinity, blocks, &e), -ENOSPC);
		assert_string_equal(e.text, cases[i].text);
		assert_memory_equal(&m, &before, sizeof m);
	}
	free(t);
}

static void too_little_working_memory_is_told(void **state)
{
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);
	uint64_t bytes[TOPO_KINDS] = {GIB(1)};
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;
	struct arena a;
	struct err e;

	(void)state;
	memory_init(&m, t, &s);
	arena_init(&a, 64);
	assert_int_equal(memory_allocate(t, &m, bytes, &(struct hint){.any = true}, &a, blocks, &e),
		-ENOSPC);
	assert_string_equal(e.text, "the decision needs more working memory than there is");
	arena_fini(&a);
	free(t);
}

static void an_affinity_that_is_too_narrow_is_widened(void **state)
{
	static const struct {
		uint64_t gib, affinity, want;
	} cases[] = {{10, 1, 1}, {10, 2, 2}, {11, 1, 3}, {11, 4, 5}, {21, 2, 7}, {21, 6, 7},
		{31, 8, 15}};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(4, GIB(10), 0);
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;

	(void)state;
	memory_init(&m, t, &s);
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t bytes[TOPO_KINDS] = {cases[i].gib << 30};

		assert_int_equal(allocate(t, &m, bytes, (struct hint){.mask = {cases[i].affinity}},
					 blocks, NULL),
			1);
		assert_int_equal(blocks[0].nodes.bits, cases[i].want);
		assert_int_equal(blocks[0].bytes, bytes[0]);
	}
	free(t);
}

static void nodes_of_a_group_serve_together_until_the_last_is_gone(void **state)
{
	const struct memory_block pair = {0, {3}, GIB(12)}, more = {0, {3}, GIB(4)};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);
	uint64_t bytes[TOPO_KINDS] = {GIB(1)};
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;

	(void)state;
	memory_init(&m, t, &s);
	memory_hold(&m, &pair, 1);
	assert_int_equal(m.node[0].free[0], 0); /* filled in ascending order */
	assert_int_equal(m.node[1].free[0], GIB(8));
	assert_int_equal(m.node[1].group.bits, 3);
	assert_int_equal(allocate(t, &m, bytes, (struct hint){.any = true}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 3); /* one node would do, but for the group */
	memory_hold(&m, &more, 1);
	memory_release(&m, &pair, 1);
	assert_int_equal(m.node[0].group.bits, 3);
	assert_int_equal(m.node[0].free[0] + m.node[1].free[0], GIB(16));
	memory_release(&m, &more, 1);
	assert_int_equal(m.node[0].group.bits, 1);
	assert_int_equal(m.node[1].group.bits, 2);
	assert_int_equal(allocate(t, &m, bytes, (struct hint){.any = true}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 1);
	free(t);
}

/* The kubelet would give it the node alone, and break the group. */
static void one_node_of_a_group_is_widened_to_the_group(void **state)
{
	const struct memory_block pair = {0, {3}, GIB(12)};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(3, GIB(10), 0);
	uint64_t bytes[TOPO_KINDS] = {GIB(1)};
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;
	struct err e;

	(void)state;
	memory_init(&m, t, &s);
	memory_hold(&m, &pair, 1);
	assert_int_equal(allocate(t, &m, bytes, (struct hint){.mask = {2}}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 3);
	assert_int_equal(
		allocate(t, &m, bytes, (struct hint){.mask = {2}, .preferred = true}, blocks, &e), -28);
	assert_non_null(strstr(e.text, "failed to find the extended preferred hint"));
	free(t);
}

/* The kubelet's hints for a demand. */
struct oracle {
	size_t nr;
	struct nodeset mask[SETS];
	unsigned size; /* of the preferred ones */
};

static bool has(const struct topo *t, const struct memory_state *m, struct nodeset mask,
	const uint64_t *bytes, bool free_now)
{
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		uint64_t sum = 0;

		nodeset_each (n, mask)
			sum += free_now ? m->node[n].free[k] : m->node[n].allocatable[k];
		if (sum < bytes[k])
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

static void kubelet_hints(
	const struct topo *t, const struct memory_state *m, const uint64_t *bytes, struct oracle *o)
{
	*o = (struct oracle){.size = t->ids.nr};
	for (uint64_t bits = 1; bits <= t->nodes.bits; bits++) {
		struct nodeset mask = {bits};
		unsigned count = nodeset_count(mask);

		if (!has(t, m, mask, bytes, false))
			continue;
		if (count < o->size)
			o->size = count;
		if (count == 1 && nodeset_count(m->node[nodeset_next(mask, 0)].group) > 1)
			continue;
		if (!violates(m, mask) && has(t, m, mask, bytes, true))
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

/* Where we differ from the kubelet, on purpose. */
static bool splits_a_group(const struct memory_state *m, struct nodeset mask)
{
	unsigned n = nodeset_next(mask, 0);

	return nodeset_count(mask) == 1 && m->node[n].assignments &&
	       nodeset_count(m->node[n].group) > 1;
}

static const char *kubelet_nodes(const struct topo *t, const struct memory_state *m,
	const uint64_t *bytes, struct hint h, struct nodeset *nodes)
{
	struct nodeset best = {0};
	struct oracle o;

	*nodes = h.any ? (struct nodeset){0} : h.mask;
	if (h.any || !has(t, m, h.mask, bytes, true) || splits_a_group(m, h.mask)) {
		kubelet_hints(t, m, bytes, &o);
		for (size_t i = 0; i < o.nr; i++)
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
	return violates(m, *nodes) ? "[memorymanager] preferred hint violates NUMA node allocation"
				   : NULL;
}

static void check_families(
	unsigned round, const struct topo *t, const struct memory_state *m, const uint64_t *bytes)
{
	struct memory_rows rows;
	struct family f[TOPO_KINDS];
	struct oracle o;
	struct arena a;
	unsigned asked = 0;

	kubelet_hints(t, m, bytes, &o);
	for (unsigned k = 0; k < t->nr_kinds; k++)
		asked += bytes[k] > 0;
	arena_init(&a, WORK_BYTES);
	unsigned nr = memory_families(t, m, bytes, &rows, &a, f);
	if (nr != (o.nr ? asked : 0))
		fail_msg("case %u: %u families, %zu masks", round, nr, o.nr);
	for (unsigned i = 0; i < nr; i++) {
		size_t found = 0;

		assert_int_equal(f[i].preferred_size, o.size);
		for (uint64_t bits = 1; bits <= t->nodes.bits; bits++)
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

static void random_demand(struct random *r, const struct topo *t, uint64_t bytes[TOPO_KINDS])
{
	memset(bytes, 0, TOPO_KINDS * sizeof *bytes);
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (random_chance(r, k ? 40 : 80))
			bytes[k] = 1 + random_below(r, random_chance(r, 70) ? 8 : 30);
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

/* Any affinity may come, also such as no merge would choose. */
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
		start = m;
		for (unsigned step = 0; step < 60; step++) {
			struct hint affinity = random_affinity(&r, t);
			struct nodeset want;
			uint64_t bytes[TOPO_KINDS];
			struct err e = {0};

			random_demand(&r, t, bytes);
			check_families(round, t, &m, bytes);
			const char *why = kubelet_nodes(t, &m, bytes, affinity, &want);
			struct holder *h = &held[nr_held];
			int nr = allocate(t, &m, bytes, affinity, h->blocks, &e);
			if (!bytes[0] &&
				!memcmp(bytes, &bytes[1], (TOPO_KINDS - 1) * sizeof *bytes)) {
				assert_true(nr <= 0); /* nothing asked */
				continue;
			}
			if (why) {
				refused++;
				assert_int_equal(nr, -ENOSPC);
				assert_string_equal(e.text, why);
			} else {
				admitted++;
				assert_true(nr > 0);
				for (int b = 0; b < nr; b++) {
					assert_int_equal(h->blocks[b].nodes.bits, want.bits);
					assert_int_equal(
						h->blocks[b].bytes, bytes[h->blocks[b].kind]);
				}
				h->nr = (unsigned)nr;
				memory_hold(&m, h->blocks, h->nr);
				nr_held++;
			}
			while (nr_held == HELD_MAX || (nr_held && random_chance(&r, 35)))
				release_one(&r, &m, held, &nr_held);
			check_state(t, &m, held, nr_held);
		}
		while (nr_held)
			release_one(&r, &m, held, &nr_held);
		assert_memory_equal(&m, &start, sizeof m);
		free(t);
	}
	assert_true(admitted > 1000 && refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocatable_is_what_is_not_reserved_and_not_huge),
		cmocka_unit_test(a_demand_is_the_request_by_kind),
		cmocka_unit_test(every_refusal_has_the_kubelets_words),
		cmocka_unit_test(too_little_working_memory_is_told),
		cmocka_unit_test(an_affinity_that_is_too_narrow_is_widened),
		cmocka_unit_test(nodes_of_a_group_serve_together_until_the_last_is_gone),
		cmocka_unit_test(one_node_of_a_group_is_widened_to_the_group),
		cmocka_unit_test(random_requests_are_answered_like_the_kubelet_and_all_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
