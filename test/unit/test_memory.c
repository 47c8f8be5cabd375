/* Memory assignment against the kubelet's own steps, written out literally over all sets of nodes
 * (pkg/kubelet/cm/memorymanager/policy_static.go: calculateHints, getDefaultHint,
 * extendTopologyManagerHint, isAffinityViolatingNUMAAllocations). */
#include "memory_rig.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int allocate(const struct topo *t, const struct memory_state *m,
	const struct memory_demand *d, struct hint affinity, struct memory_block blocks[TOPO_KINDS],
	struct err *e)
{
	struct arena a;

	arena_init(&a, WORK_BYTES);
	int rc = memory_allocate(
		t, m, d, NULL, &affinity, &(struct budget){.endless = true}, &a, blocks, e);
	arena_fini(&a);
	return rc;
}

static void allocatable_memory_is_neither_reserved_nor_in_huge_pages(void **state)
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

static struct memory_demand bytes_of(uint64_t bytes)
{
	return (struct memory_demand){.kinds = 1, .bytes = {bytes}};
}

static void a_demand_is_the_request_by_kind(void **state)
{
	struct topo *t = machine(1, GIB(64), GIB(8));
	struct memory_ask asks[] = {{0, GIB(5)}, {GIB(1), GIB(2)}};
	struct memory_demand d;
	struct err e;

	(void)state;
	memset(&d, 0xee, sizeof d);
	assert_int_equal(memory_demand(t, asks, 2, &d, NULL), 0);
	for (unsigned k = 0; k < TOPO_KINDS; k++)
		assert_int_equal(d.bytes[k], k == 0 ? GIB(5) : k == 1 ? GIB(2) : 0);
	assert_int_equal(d.kinds, 3);
	asks[1].bytes = 0;
	assert_int_equal(memory_demand(t, asks, 2, &d, NULL), 0);
	assert_int_equal(d.kinds, 3); /* 0 bytes are asked for all the same */
	assert_int_equal(memory_demand(t, asks, 1, &d, NULL), 0);
	assert_int_equal(d.kinds, 1);
	asks[1].page_bytes = 2 << 20;
	assert_int_equal(memory_demand(t, asks, 2, &d, &e), -ENOSPC);
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
		struct memory_demand d = bytes_of(cases[i].gib << 30);
		struct memory_block blocks[TOPO_KINDS];
		struct memory_state m, before;
		struct err e = {0};

		memory_init(&m, t, &s);
		for (size_t b = 0; b < 2 && cases[i].held[b].bytes; b++)
			memory_hold(&m, &cases[i].held[b], 1);
		before = m;
		assert_int_equal(allocate(t, &m, &d, cases[i].affinity, blocks, &e), -ENOSPC);
		assert_string_equal(e.text, cases[i].text);
		assert_memory_equal(&m, &before, sizeof m);
	}
	free(t);
}

static void too_little_working_memory_is_reported_as_an_error(void **state)
{
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);
	struct memory_demand d = bytes_of(GIB(1));
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;
	struct arena a;
	struct err e;

	(void)state;
	memory_init(&m, t, &s);
	arena_init(&a, 64);
	assert_int_equal(memory_allocate(t, &m, &d, NULL, &(struct hint){.any = true},
				 &(struct budget){.endless = true}, &a, blocks, &e),
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
		struct memory_demand d = bytes_of(cases[i].gib << 30);

		assert_int_equal(allocate(t, &m, &d, (struct hint){.mask = {cases[i].affinity}},
					 blocks, NULL),
			1);
		assert_int_equal(blocks[0].nodes.bits, cases[i].want);
		assert_int_equal(blocks[0].bytes, d.bytes[0]);
	}
	free(t);
}

static void nodes_of_a_group_serve_together_until_the_last_is_gone(void **state)
{
	const struct memory_block pair = {0, {3}, GIB(12)}, more = {0, {3}, GIB(4)};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);
	struct memory_demand d = bytes_of(GIB(1));
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;

	(void)state;
	memory_init(&m, t, &s);
	memory_hold(&m, &pair, 1);
	assert_int_equal(m.node[0].free[0], 0); /* filled in ascending order */
	assert_int_equal(m.node[1].free[0], GIB(8));
	assert_int_equal(m.node[1].group.bits, 3);
	assert_int_equal(allocate(t, &m, &d, (struct hint){.any = true}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 3); /* one node would do, but for the group */
	memory_hold(&m, &more, 1);
	memory_release(&m, &pair, 1);
	assert_int_equal(m.node[0].group.bits, 3);
	assert_int_equal(m.node[0].free[0] + m.node[1].free[0], GIB(16));
	memory_release(&m, &more, 1);
	assert_int_equal(m.node[0].group.bits, 1);
	assert_int_equal(m.node[1].group.bits, 2);
	assert_int_equal(allocate(t, &m, &d, (struct hint){.any = true}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 1);
	free(t);
}

/* With keep_groups; the kubelet gives it the node alone, and breaks the group. */
static void one_node_of_a_group_is_widened_to_the_group(void **state)
{
	const struct memory_block pair = {0, {3}, GIB(12)};
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(3, GIB(10), 0);
	struct memory_demand d = bytes_of(GIB(1));
	struct memory_block blocks[TOPO_KINDS];
	struct memory_state m;
	struct err e;

	(void)state;
	memory_init(&m, t, &s);
	memory_hold(&m, &pair, 1);
	assert_int_equal(allocate(t, &m, &d, (struct hint){.mask = {2}}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 2);
	m.keep_groups = true;
	assert_int_equal(allocate(t, &m, &d, (struct hint){.mask = {2}}, blocks, NULL), 1);
	assert_int_equal(blocks[0].nodes.bits, 3);
	assert_int_equal(
		allocate(t, &m, &d, (struct hint){.mask = {2}, .preferred = true}, blocks, &e),
		-ENOSPC);
	assert_non_null(strstr(e.text, "failed to find the extended preferred hint"));
	free(t);
}

/* "the total amount ..." of 4 GiB reserved on node 0 of two, against what Node Allocatable has. */
static void reservations_must_add_up_to_node_allocatable(void **state)
{
	static const struct {
		struct reserved_memory configured[3], allocatable[3];
		const char *text;
	} cases[] = {
		{{{.type = "memory", .bytes = GIB(4)}}, {{.type = "memory", .bytes = GIB(4)}},
			NULL},
		{{{.type = "memory", .bytes = GIB(1)},
			 {.type = "memory", .node_id = 2, .bytes = GIB(3)}},
			{{.type = "memory", .bytes = GIB(4)}}, NULL},
		{{{.type = "memory", .bytes = GIB(4)}},
			{{.type = "memory", .bytes = GIB(4)}, {.type = "hugepages-1Gi"}}, NULL},
		{{{0}}, {{0}}, "[memorymanager] you should specify the system reserved memory"},
		{{{.type = "hugepages-1Gi", .bytes = GIB(1)}},
			{{.type = "hugepages-1Gi", .bytes = GIB(1)}},
			"[memorymanager] you should specify the system reserved memory"},
		/* the last entry of a node counts for the node, the sum is the sum */
		{{{.type = "memory", .bytes = GIB(4)}, {.type = "memory"}},
			{{.type = "memory", .bytes = GIB(4)}},
			"[memorymanager] you should specify the system reserved memory"},
		{{{.type = "memory", .bytes = 302 << 20}}, {{.type = "memory", .bytes = 303 << 20}},
			"the total amount \"302Mi\" of type \"memory\" is not equal to the value "
			"\"303Mi\" determined by Node Allocatable feature"},
		{{{.type = "memory", .bytes = GIB(1)}},
			{{.type = "hugepages-2Mi", .bytes = GIB(1)},
				{.type = "memory", .bytes = GIB(2)}},
			"the total amount \"0\" of type \"hugepages-2Mi\" is not equal to the "
			"value "
			"\"1Gi\" determined by Node Allocatable feature"},
		{{{.type = "memory", .node_id = 1, .bytes = GIB(1)}}, {{0}},
			"the reserved memory configuration references a NUMA node 1 that does not "
			"exist on this machine"},
	};
	struct topo *t = machine(2, GIB(10), 0);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings s = settings_of(POLICY_NONE);
		struct err e = {0};
		unsigned nr = 0;

		for (; *cases[i].configured[s.nr_reserved_memory].type; s.nr_reserved_memory++)
			s.reserved_memory[s.nr_reserved_memory] =
				cases[i].configured[s.nr_reserved_memory];
		while (*cases[i].allocatable[nr].type)
			nr++;
		assert_int_equal(memory_check_reserved(t, &s, cases[i].allocatable, nr, &e),
			cases[i].text ? -EINVAL : 0);
		assert_string_equal(e.text, cases[i].text ? cases[i].text : "");
	}
	free(t);
}

enum part { APP, INIT, SIDECAR };

static struct memory_container part(enum part p, uint64_t bytes, uint64_t huge)
{
	return (struct memory_container){.init = p != APP,
		.restartable = p == SIDECAR,
		.demand = {.kinds = huge ? 3 : 1, .bytes = {bytes, huge}}};
}

static void a_pod_asks_for_its_peak_and_only_for_what_an_app_container_asks_for(void **state)
{
	static const struct {
		struct {
			enum part p;
			uint64_t bytes, huge;
		} c[5];
		uint64_t bytes, huge;
	} cases[] = {
		{{{APP, 3, 0}, {APP, 4, 2}}, 7, 2},
		{{{INIT, 9, 0}, {INIT, 5, 0}, {APP, 4, 0}}, 9, 0},
		{{{INIT, 3, 0}, {APP, 4, 0}, {APP, 1, 0}}, 5, 0},
		{{{SIDECAR, 3, 0}, {INIT, 5, 0}, {APP, 4, 0}}, 8, 0},
		{{{INIT, 5, 0}, {SIDECAR, 3, 0}, {APP, 4, 0}}, 7, 0},
		{{{SIDECAR, 1, 0}, {INIT, 6, 0}, {SIDECAR, 2, 0}, {APP, 1, 0}}, 7, 0},
		{{{INIT, 1, 9}, {SIDECAR, 1, 9}, {APP, 1, 0}}, 2, 0}, /* dropped */
		{{{INIT, 1, 9}, {APP, 1, 1}}, 1, 9},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct memory_container pod[5];
		struct memory_demand total;
		unsigned nr = 0;

		for (; nr < 5 && cases[i].c[nr].bytes; nr++)
			pod[nr] = part(cases[i].c[nr].p, cases[i].c[nr].bytes, cases[i].c[nr].huge);
		memory_pod_demand(pod, nr, &total);
		assert_int_equal(total.kinds, cases[i].huge ? 3 : 1);
		assert_int_equal(total.bytes[0], cases[i].bytes);
		assert_int_equal(total.bytes[1], cases[i].huge);
	}
}

/* Give the container a block on those nodes, the pod's next one. */
static void place(struct memory_container *c, uint64_t nodes)
{
	c->nr_blocks = 1;
	c->blocks[0] = (struct memory_block){0, {nodes}, c->demand.bytes[0]};
}

static void later_containers_take_over_what_an_init_container_held(void **state)
{
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(2, GIB(10), 0);
	struct memory_reuse reuse = {0};
	struct memory_container pod[] = {part(INIT, GIB(6), 0), part(SIDECAR, GIB(1), 0),
		part(INIT, GIB(7), 0), part(APP, GIB(4), 0), part(APP, GIB(5), 0),
		part(APP, GIB(1), 0)};
	/* nodes; free on node 0 after it; what it can be taken over on node 0 after it; what the
	 * two init containers are left with */
	static const struct {
		uint64_t nodes, free, reusable, left[2];
	} want[] = {{1, 4, 6, {6}}, {1, 4, 5, {5}}, {1, 2, 7, {0, 7}}, {1, 2, 3, {0, 3}},
		{1, 0, 0, {0, 0}}, {2, 0, 0, {0, 0}}};
	struct memory_state m;

	(void)state;
	memory_init(&m, t, &s);
	for (unsigned i = 0; i < COUNT(want); i++) {
		place(&pod[i], want[i].nodes);
		memory_hold_in_pod(&m, &reuse, pod, i + 1);
		assert_int_equal(m.node[0].free[0], GIB(want[i].free));
		assert_int_equal(
			memory_reusable(&reuse, (struct nodeset){1}, 0), GIB(want[i].reusable));
		assert_int_equal(memory_reusable(&reuse, (struct nodeset){3}, 0), 0);
		assert_int_equal(pod[0].blocks[0].bytes, GIB(want[i].left[0]));
		if (i >= 2)
			assert_int_equal(pod[2].blocks[0].bytes, GIB(want[i].left[1]));
	}
	assert_int_equal(m.node[0].assignments, 5);
	assert_int_equal(m.node[1].free[0], GIB(9));
	free(t);
}

static void blocks_found_in_place_only_change_what_can_be_taken_over(void **state)
{
	struct memory_reuse reuse = {0};
	struct memory_container init = part(INIT, GIB(4), 0), app = part(APP, GIB(3), 0);

	(void)state;
	place(&init, 3);
	place(&app, 3);
	memory_reuse_update(&reuse, &app); /* nothing is there to be taken */
	assert_int_equal(reuse.nr, 0);
	memory_reuse_update(&reuse, &init);
	memory_reuse_update(&reuse, &init); /* the most of them, not the sum */
	assert_int_equal(memory_reusable(&reuse, (struct nodeset){3}, 0), GIB(4));
	memory_reuse_update(&reuse, &app);
	assert_int_equal(memory_reusable(&reuse, (struct nodeset){3}, 0), GIB(1));
	memory_reuse_update(&reuse, &app);
	assert_int_equal(memory_reusable(&reuse, (struct nodeset){3}, 0), 0);
	assert_int_equal(memory_reusable(NULL, (struct nodeset){3}, 0), 0);
}

static void a_full_table_refuses_new_entries_and_keeps_the_old(void **state)
{
	struct memory_reuse reuse = {0};
	struct memory_container init = part(INIT, GIB(1), 0);

	(void)state;
	for (unsigned i = 1; i <= MEMORY_REUSE_MAX + 1; i++) {
		place(&init, i);
		memory_reuse_update(&reuse, &init);
	}
	assert_int_equal(reuse.nr, MEMORY_REUSE_MAX);
	assert_int_equal(memory_reusable(&reuse, (struct nodeset){MEMORY_REUSE_MAX}, 0), GIB(1));
	assert_int_equal(memory_reusable(&reuse, (struct nodeset){MEMORY_REUSE_MAX + 1}, 0), 0);
}

static void a_start_gives_back_what_plain_init_containers_before_it_held(void **state)
{
	struct settings s = settings_of(POLICY_NONE);
	struct topo *t = machine(1, GIB(20), 0);
	struct memory_container pod[] = {part(INIT, GIB(1), 0), part(SIDECAR, GIB(2), 0),
		part(INIT, GIB(4), 0), part(APP, GIB(8), 0)};
	static const struct {
		unsigned nr, free;
	} want[] = {{1, 5}, {2, 6}, {3, 6}, {4, 10}, {4, 10}};
	struct memory_state m;

	(void)state;
	memory_init(&m, t, &s);
	for (unsigned i = 0; i < COUNT(pod); i++) {
		place(&pod[i], 1);
		memory_hold(&m, pod[i].blocks, 1);
	}
	for (unsigned i = 0; i < COUNT(want); i++) {
		memory_start(&m, pod, want[i].nr);
		assert_int_equal(m.node[0].free[0], GIB(want[i].free));
	}
	free(t);
}

static void a_container_with_blocks_has_just_those_as_hints(void **state)
{
	const struct memory_block blocks[] = {{1, {1}, GIB(1)}, {0, {3}, GIB(5)}};
	struct memory_demand d = {.kinds = 3, .bytes = {GIB(5), GIB(1)}};
	struct topo *t = machine(2, GIB(10), GIB(1));
	struct family f[TOPO_KINDS];

	(void)state;
	assert_int_equal(memory_families_of_blocks(t, &d, blocks, 2, f), 2);
	for (uint64_t bits = 1; bits <= 3; bits++) {
		assert_int_equal(family_has(&f[0], (struct nodeset){bits}), bits == 1);
		assert_int_equal(family_has(&f[1], (struct nodeset){bits}), bits == 3);
	}
	assert_string_equal(f[0].resource, "hugepages-1Gi");
	assert_int_equal(f[0].preferred_size, 1);
	assert_int_equal(f[1].preferred_size, 2);
	assert_int_equal(memory_families_of_blocks(t, &d, blocks, 1, f), 0);
	d.bytes[0]++;
	assert_int_equal(memory_families_of_blocks(t, &d, blocks, 2, f), 0);
	d = (struct memory_demand){.kinds = 5, .bytes = {GIB(5)}};
	assert_int_equal(memory_families_of_blocks(t, &d, blocks, 2, f), 0);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocatable_memory_is_neither_reserved_nor_in_huge_pages),
		cmocka_unit_test(a_demand_is_the_request_by_kind),
		cmocka_unit_test(every_refusal_has_the_kubelets_words),
		cmocka_unit_test(too_little_working_memory_is_reported_as_an_error),
		cmocka_unit_test(an_affinity_that_is_too_narrow_is_widened),
		cmocka_unit_test(nodes_of_a_group_serve_together_until_the_last_is_gone),
		cmocka_unit_test(one_node_of_a_group_is_widened_to_the_group),
		cmocka_unit_test(reservations_must_add_up_to_node_allocatable),
		cmocka_unit_test(
			a_pod_asks_for_its_peak_and_only_for_what_an_app_container_asks_for),
		cmocka_unit_test(later_containers_take_over_what_an_init_container_held),
		cmocka_unit_test(blocks_found_in_place_only_change_what_can_be_taken_over),
		cmocka_unit_test(a_full_table_refuses_new_entries_and_keeps_the_old),
		cmocka_unit_test(a_start_gives_back_what_plain_init_containers_before_it_held),
		cmocka_unit_test(a_container_with_blocks_has_just_those_as_hints),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
