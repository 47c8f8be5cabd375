#include <numafit/sched_plan.h>

#include "score_questions.h"

#include <sched/sched_place.h>
#include <codec/nrt_json.h>
#include <codec/numatopology_json.h>
#include <plugin-args/score_args_json.h>
#include <errno.h>
#include <setjmp.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20, CPUS = 8, GIBS = 16 };

/* Small machines, made up */

struct small {
	struct resource_table names;
	unsigned gpu;
	struct sched_topology *t;
	struct amount allocatable[4];
	struct sched_node node;
	struct amount asks[3];
	struct sched_container container[4];
	struct sched_pod pod;
	struct arena arena;
};

static void zone(struct small *s, unsigned i, int64_t cpus, int64_t gibs, int64_t gpus)
{
	const struct quantity all_cpus = quantity_of(CPUS),
			      all_memory = quantity_of(INT64_C(16) << 30),
			      all_gpus = quantity_of(4);

	sched_topology_resource(s->t, i, RESOURCE_CPU,
		&(struct zone_amounts){all_cpus, all_cpus, quantity_of(cpus)});
	sched_topology_resource(s->t, i, RESOURCE_MEMORY,
		&(struct zone_amounts){
			all_memory, all_memory, quantity_of(gibs * (INT64_C(1) << 30))});
	sched_topology_resource(
		s->t, i, s->gpu, &(struct zone_amounts){all_gpus, all_gpus, quantity_of(gpus)});
}

/* Four zones, of which 0 and 2 are near each other, and so are 1 and 3. */
static void small_init(struct small *s, const char *policy)
{
	static const uint8_t id[] = {0, 1, 2, 3};

	*s = (struct small){0};
	resource_table_init(&s->names);
	arena_init(&s->arena, 1 << 20);
	s->gpu = resource_number(&s->names, "example.com/gpu");
	s->t = sched_topology_new(id, 4);
	sched_topology_attribute(s->t, "topologyManagerPolicy", policy);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned to = 0; to < 4; to++)
			sched_topology_cost(s->t, i, to, i == to ? 10 : i % 2 == to % 2 ? 12 : 32);
		zone(s, i, CPUS, GIBS, 4);
	}
	s->allocatable[0] = (struct amount){RESOURCE_CPU, quantity_of(4 * CPUS)};
	s->allocatable[1] = (struct amount){RESOURCE_MEMORY, quantity_of(INT64_C(64) << 30)};
	s->allocatable[2] = (struct amount){s->gpu, quantity_of(16)};
	s->node = (struct sched_node){
		.name = "n", .allocatable = {s->allocatable, 3}, .topology = s->t};
	s->pod = (struct sched_pod){.ns = "default",
		.name = "p",
		.uid = "u",
		.qos = QOS_GUARANTEED,
		.container = s->container};
}

static void small_fini(struct small *s)
{
	sched_topology_free(s->t);
	resource_table_fini(&s->names);
	arena_fini(&s->arena);
}

/* A container of the kind, that asks for so much. All containers ask for the same. */
static void contain(struct small *s, enum container_kind kind, const char *name)
{
	s->container[s->pod.nr_containers++] =
		(struct sched_container){.name = name, .kind = kind, .requests = {s->asks, 3}};
}

static void ask_for(struct small *s, int64_t cpus, int64_t gibs, int64_t gpus)
{
	s->asks[0] = (struct amount){RESOURCE_CPU, quantity_of(cpus)};
	s->asks[1] = (struct amount){RESOURCE_MEMORY, quantity_of(gibs * (INT64_C(1) << 30))};
	s->asks[2] = (struct amount){s->gpu, quantity_of(gpus)};
}

static struct sched_profile matching(enum nrt_strategy strategy)
{
	return (struct sched_profile){
		.use = {{.plugin = sched_plugin_find("NodeResourceTopologyMatch"),
			.weight = 1,
			.args.nrt.strategy = strategy}},
		.nr = 1,
		.check_restricted = true};
}

static enum sched_code filter_small(
	const struct small *s, const struct sched_profile *profile, const char **why)
{
	struct sched_plan *plan = sched_plan_new(profile, &s->pod, &s->names);
	enum sched_code code =
		sched_plan_filter(plan, &(struct sched_candidate){.node = &s->node}, why);

	sched_plan_free(plan);
	return code;
}

static bool place_small(struct small *s, struct sched_placement *out)
{
	const struct sched_profile profile = matching(NRT_LEAST_NUMA_NODES);
	struct sched_plan *plan = sched_plan_new(&profile, &s->pod, &s->names);
	bool placed =
		sched_plan_place(plan, &(struct sched_candidate){.node = &s->node}, &s->arena, out);

	sched_plan_free(plan);
	return placed;
}

static void restricted_refuses_two_zones_when_one_would_do(void **state)
{
	static const struct {
		const char *policy;
		bool check;
		int64_t cpus, gibs, gpus;
		enum sched_code code;
	} rows[] = {
		{"restricted", true, 4, 1, 0, SCHED_SUCCESS},
		{"restricted", true, 6, 1, 0, SCHED_UNSCHEDULABLE}, /* 5 free on each */
		{"restricted", false, 6, 1, 0, SCHED_SUCCESS},
		{"best-effort", true, 6, 1, 0, SCHED_SUCCESS},
		{"none", true, 6, 1, 0, SCHED_SUCCESS},
		{"restricted", true, 10, 20, 0, SCHED_SUCCESS},     /* 2 of each, and 2 will do */
		{"restricted", true, 10, 1, 0, SCHED_UNRESOLVABLE}, /* 2 for one, 1 for the other */
		{"restricted", true, 10, 20, 4, SCHED_UNRESOLVABLE}, /* gpus all on one */
		{"restricted", true, 10, 20, 5, SCHED_SUCCESS},
		{"restricted", true, 33, 60, 0, SCHED_UNRESOLVABLE}, /* more than there is */
		{"restricted", true, 11, 20, 0, SCHED_UNSCHEDULABLE},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sched_profile profile = matching(NRT_LEAST_NUMA_NODES);
		struct small s;
		const char *why;

		small_init(&s, rows[i].policy);
		for (unsigned z = 0; z < 4; z++)
			zone(&s, z, 5, GIBS, 4);
		ask_for(&s, rows[i].cpus, rows[i].gibs, rows[i].gpus);
		contain(&s, CONTAINER_APP, "main");
		profile.check_restricted = rows[i].check;
		enum sched_code code = filter_small(&s, &profile, &why);
		if (code != rows[i].code)
			fail_msg("row %u: %s (%s)", i, sched_code_words[code], why);
		assert_int_equal(code == SCHED_SUCCESS, *why == '\0');
		small_fini(&s);
	}
}

static void memory_in_use_on_one_zone_is_not_combined_with_other_zones(void **state)
{
	const struct sched_profile profile = matching(NRT_LEAST_NUMA_NODES);
	struct small s;
	const char *why;

	(void)state;
	small_init(&s, "restricted");
	ask_for(&s, 10, 20, 0);
	contain(&s, CONTAINER_APP, "main");
	for (unsigned z = 0; z < 3; z++)
		zone(&s, z, CPUS, GIBS - 1, 4);
	assert_int_equal(filter_small(&s, &profile, &why), SCHED_UNSCHEDULABLE);
	zone(&s, 1, CPUS, GIBS, 4);
	assert_int_equal(filter_small(&s, &profile, &why), SCHED_SUCCESS);
	small_fini(&s);
}

/* One zone would do for either kind, but no zone has both: two are as few as can be, also for CPUs.
 */
static void all_memory_of_a_container_is_placed_together(void **state)
{
	const struct sched_profile profile = matching(NRT_LEAST_NUMA_NODES);
	struct small s;
	const char *why;

	(void)state;
	small_init(&s, "restricted");
	unsigned huge = resource_number(&s.names, "hugepages-1Gi");

	for (unsigned z = 0; z < 4; z++) {
		const struct quantity memory = quantity_of((z == 1 ? 4 : INT64_C(16)) << 30),
				      pages = quantity_of(z == 1 ? INT64_C(2) << 30 : 0);

		sched_topology_resource(
			s.t, z, RESOURCE_MEMORY, &(struct zone_amounts){memory, memory, memory});
		sched_topology_resource(s.t, z, huge, &(struct zone_amounts){pages, pages, pages});
	}
	s.allocatable[2].resource = huge;
	ask_for(&s, 10, 10, 2);
	s.asks[2] = (struct amount){huge, quantity_of(INT64_C(1) << 30)};
	contain(&s, CONTAINER_APP, "main");
	assert_int_equal(filter_small(&s, &profile, &why), SCHED_SUCCESS);
	s.asks[0].q = quantity_of(4); /* one zone for these */
	assert_int_equal(filter_small(&s, &profile, &why), SCHED_UNRESOLVABLE);
	small_fini(&s);
}

static void stale_zones_are_not_relied_upon(void **state)
{
	const struct sched_profile profile = matching(NRT_LEAST_ALLOCATED);
	struct sched_placement where;
	struct small s;
	const char *why;
	int64_t score;

	(void)state;
	small_init(&s, "single-numa-node");
	ask_for(&s, 1, 1, 0);
	contain(&s, CONTAINER_APP, "main");
	struct sched_candidate c = {.node = &s.node, .stale = true};
	struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);

	assert_int_equal(sched_plan_filter(plan, &c, &why), SCHED_UNSCHEDULABLE);
	assert_string_equal(why, "invalid node topology data");
	sched_plan_score(plan, &c, 1, &score);
	assert_int_equal(score, 0);
	assert_false(sched_plan_place(plan, &c, &s.arena, &where));
	c.stale = false;
	assert_int_equal(sched_plan_filter(plan, &c, &why), SCHED_SUCCESS);
	sched_plan_score(plan, &c, 1, &score);
	assert_true(score > 0);
	sched_plan_free(plan);
	small_fini(&s);
}

/* Zone 0 and 2 are near each other; 0 has no room, so 1 and 3 it is. */
static void a_pod_is_placed_on_the_fewest_zones_that_are_close(void **state)
{
	struct sched_placement where;
	struct small s;

	(void)state;
	small_init(&s, "best-effort");
	ask_for(&s, 10, 20, 2);
	contain(&s, CONTAINER_APP, "main");
	zone(&s, 0, 1, GIBS, 4);
	assert_true(place_small(&s, &where));
	assert_int_equal(where.scope, SCOPE_CONTAINER);
	assert_int_equal(where.nr, 1);
	const struct sched_place *p = &where.place[0];

	assert_string_equal(p->container, "main");
	assert_int_equal(p->zones, 0xa);
	assert_int_equal(p->distance_x100, 1100);
	assert_int_equal(p->nr_amounts, 5); /* the gpus from zone 1 alone */
	struct quantity sum[3] = {0};

	for (unsigned i = 0; i < p->nr_amounts; i++)
		for (unsigned r = 0; r < 3; r++)
			if (s.asks[r].resource == p->amount[i].resource)
				sum[r] = quantity_add(sum[r], p->amount[i].q);
	for (unsigned r = 0; r < 3; r++)
		assert_int_equal(quantity_compare(sum[r], s.asks[r].q), 0);
	small_fini(&s);
}

static void each_container_gets_what_earlier_containers_leave(void **state)
{
	enum { CONTAINERS = 3 };
	static const struct {
		enum container_kind first;
		uint64_t zones[CONTAINERS];
	} rows[] = {
		{CONTAINER_APP, {1, 2, 4}}, {CONTAINER_SIDECAR, {1, 2, 4}},
		{CONTAINER_INIT, {1, 1, 2}}, /* is gone by then; the second takes its CPUs over */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sched_placement where;
		struct small s;

		small_init(&s, "restricted");
		ask_for(&s, 5, 1, 0);
		contain(&s, rows[i].first, "first");
		contain(&s, CONTAINER_APP, "second");
		contain(&s, CONTAINER_APP, "third");
		assert_true(place_small(&s, &where));
		assert_int_equal(where.nr, CONTAINERS);
		for (unsigned c = 0; c < CONTAINERS; c++)
			assert_int_equal(where.place[c].zones, rows[i].zones[c]);
		small_fini(&s);
	}
}

static void a_pod_that_is_placed_as_a_whole_has_one_entry(void **state)
{
	struct sched_placement where;
	struct small s;

	(void)state;
	small_init(&s, "single-numa-node");
	sched_topology_attribute(s.t, "topologyManagerScope", "pod");
	ask_for(&s, 3, 1, 1);
	contain(&s, CONTAINER_APP, "one");
	contain(&s, CONTAINER_APP, "two");
	zone(&s, 0, 5, GIBS, 4);
	assert_true(place_small(&s, &where));
	assert_int_equal(where.scope, SCOPE_POD);
	assert_int_equal(where.nr, 1);
	assert_string_equal(where.place[0].container, "*");
	assert_int_equal(where.place[0].zones, 2);
	assert_int_equal(where.place[0].nr_amounts, 3);
	assert_int_equal(where.place[0].amount[0].q.whole, 6);
	small_fini(&s);
}

static void without_alignment_no_place_is_given(void **state)
{
	struct sched_placement where;
	struct small s;

	(void)state;
	small_init(&s, "none");
	ask_for(&s, 1, 1, 0);
	contain(&s, CONTAINER_APP, "main");
	assert_false(place_small(&s, &where));
	sched_topology_attribute(s.t, "topologyManagerPolicy", "restricted");
	assert_true(place_small(&s, &where));
	s.pod.qos = QOS_BURSTABLE;
	assert_false(place_small(&s, &where));
	s.asks[2].q = quantity_of(1); /* but devices are aligned for everybody */
	assert_true(place_small(&s, &where));
	assert_int_equal(where.place[0].nr_amounts, 1);
	s.node.topology = NULL;
	assert_false(place_small(&s, &where));
	small_fini(&s);
}

static void numa_nodes_matter_only_to_pods_with_exclusive_resources(void **state)
{
	static const struct {
		enum qos qos;
		int64_t milli, gpus;
		bool about, pod_level;
	} rows[] = {
		{QOS_GUARANTEED, 1000, 0, false, true}, /* spec.resources: nothing is pinned */
		{QOS_GUARANTEED, 1000, 1, true, true},
		{QOS_GUARANTEED, 1000, 0, true, false},
		{QOS_GUARANTEED, 500, 0, true, false}, /* its memory */
		{QOS_BURSTABLE, 1000, 0, false, false},
		{QOS_BURSTABLE, 1000, 1, true, false},
		{QOS_BEST_EFFORT, 0, 1, true, false},
		{QOS_BEST_EFFORT, 0, 0, false, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct small s;

		small_init(&s, "restricted");
		ask_for(&s, 0, rows[i].milli > 0, rows[i].gpus);
		s.asks[0].q = (struct quantity){rows[i].milli / QUANTITY_MILLIS,
			(uint32_t)(rows[i].milli % QUANTITY_MILLIS) * QUANTITY_NANOS_OF_MILLI};
		s.pod.qos = rows[i].qos;
		if (rows[i].pod_level)
			s.pod.own_requests = (struct amounts){s.asks, 2};
		contain(&s, CONTAINER_APP, "main");
		assert_int_equal(sched_pod_is_about_numa(&s.pod, &s.names), rows[i].about);
		small_fini(&s);
	}
}

/* Two strategies that say the opposite, by weight. */
static void plugins_are_combined_by_weight(void **state)
{
	static const int64_t weights[][2] = {{1, 1}, {3, 1}, {1, 7}, {SCHED_WEIGHT_MAX, 1}};
	int64_t alone[2], both;
	struct small s;

	(void)state;
	small_init(&s, "single-numa-node");
	ask_for(&s, 2, 2, 1);
	contain(&s, CONTAINER_APP, "main");
	const struct sched_candidate c = {.node = &s.node};
	const enum nrt_strategy strategy[2] = {NRT_LEAST_ALLOCATED, NRT_MOST_ALLOCATED};

	for (unsigned i = 0; i < 2; i++) {
		const struct sched_profile profile = matching(strategy[i]);
		struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);

		sched_plan_score(plan, &c, 1, &alone[i]);
		sched_plan_free(plan);
	}
	assert_int_not_equal(alone[0], alone[1]);
	for (unsigned i = 0; i < sizeof weights / sizeof *weights; i++) {
		struct sched_profile profile = matching(strategy[0]);

		profile.use[1] = profile.use[0];
		profile.use[1].args.nrt.strategy = strategy[1];
		profile.nr = 2;
		profile.use[0].weight = weights[i][0];
		profile.use[1].weight = weights[i][1];
		struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);
		sched_plan_score(plan, &c, 1, &both);
		assert_int_equal(both, (alone[0] * weights[i][0] + alone[1] * weights[i][1]) /
					       (weights[i][0] + weights[i][1]));
		sched_plan_free(plan);
	}
	small_fini(&s);
}

/* numa-aware has no say in a pod without Volcano's policy: it does not dilute the others. */
static void a_plugin_that_abstains_does_not_dilute_the_score(void **state)
{
	struct sched_profile profile = matching(NRT_LEAST_ALLOCATED);
	struct small s;
	int64_t alone, both;

	(void)state;
	small_init(&s, "single-numa-node");
	ask_for(&s, 1, 1, 0);
	contain(&s, CONTAINER_APP, "main");
	const struct sched_candidate c = {.node = &s.node};

	for (profile.nr = 1; profile.nr <= 2; profile.nr++) {
		profile.use[1] = (struct sched_use){sched_plugin_find("numa-aware"), 5, {{0}}};
		struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);
		sched_plan_score(plan, &c, 1, profile.nr == 1 ? &alone : &both);
		sched_plan_free(plan);
	}
	assert_true(alone > 0);
	assert_int_equal(alone, both);
	small_fini(&s);
}

/* Upstream goes below 0 there, and the framework fails the pod. */
static void a_score_is_never_below_0(void **state)
{
	const struct sched_profile profile = matching(NRT_LEAST_NUMA_NODES);
	struct small s;
	int64_t score;

	(void)state;
	small_init(&s, "best-effort");
	sched_topology_attribute(s.t, "topologyManagerMaxNUMANodes", "2");
	ask_for(&s, 3 * CPUS, 1, 0);
	contain(&s, CONTAINER_APP, "main");
	const struct sched_candidate c = {.node = &s.node};
	struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);

	sched_plan_score(plan, &c, 1, &score);
	assert_int_equal(score, 0);
	sched_plan_free(plan);
	small_fini(&s);
}

/* A negative request leaves more than there is. */
static void a_score_is_never_above_the_most(void **state)
{
	const struct sched_profile profile = matching(NRT_LEAST_ALLOCATED);
	struct small s;
	int64_t score;

	(void)state;
	small_init(&s, "single-numa-node");
	ask_for(&s, -CPUS, -GIBS, -1);
	contain(&s, CONTAINER_APP, "main");
	const struct sched_candidate c = {.node = &s.node};
	struct sched_plan *plan = sched_plan_new(&profile, &s.pod, &s.names);

	sched_plan_score(plan, &c, 1, &score);
	assert_int_equal(score, SCHED_SCORE_MAX);
	sched_plan_free(plan);
	small_fini(&s);
}

static void the_table_has_every_plugin_once(void **state)
{
	static const struct {
		const char *name;
		bool numatopology;
	} rows[] = {{"NodeResourceTopologyMatch", false}, {"numa-aware", true},
		{"GenericNodeResources", false}};
	unsigned nr = sizeof rows / sizeof *rows;

	(void)state;
	for (unsigned i = 0; i < nr; i++) {
		const struct sched_plugin *p = sched_plugin_find(rows[i].name);

		assert_ptr_equal(p, sched_plugin_at(i));
		assert_string_equal(sched_plugin_name(p), rows[i].name);
		assert_int_equal(sched_plugin_wants_numatopology(p), rows[i].numatopology);
	}
	assert_null(sched_plugin_at(nr));
	assert_null(sched_plugin_find("NodeResourcesFit"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restricted_refuses_two_zones_when_one_would_do),
		cmocka_unit_test(memory_in_use_on_one_zone_is_not_combined_with_other_zones),
		cmocka_unit_test(all_memory_of_a_container_is_placed_together),
		cmocka_unit_test(stale_zones_are_not_relied_upon),
		cmocka_unit_test(a_pod_is_placed_on_the_fewest_zones_that_are_close),
		cmocka_unit_test(each_container_gets_what_earlier_containers_leave),
		cmocka_unit_test(a_pod_that_is_placed_as_a_whole_has_one_entry),
		cmocka_unit_test(without_alignment_no_place_is_given),
		cmocka_unit_test(numa_nodes_matter_only_to_pods_with_exclusive_resources),
		cmocka_unit_test(plugins_are_combined_by_weight),
		cmocka_unit_test(a_plugin_that_abstains_does_not_dilute_the_score),
		cmocka_unit_test(a_score_is_never_below_0),
		cmocka_unit_test(a_score_is_never_above_the_most),
		cmocka_unit_test(the_table_has_every_plugin_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
