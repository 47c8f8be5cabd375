/* The filter and the scores of NodeResourceTopologyMatch, against the answers of the real plugin
 * (test/golden/nrt_*.json), and the examples of the documents that it was built from. */
#include "nrt_rows.h"

#include <numafit/text.h>

enum { LINE_MAX_KEPT = 256 };

/* A node of the rows' kind: it has of everything that its zones list, and what is added. */
static struct amounts allocatable_of(struct rows *r, json_t *zones, json_t *extra)
{
	json_t *all = json_object(), *zone;
	size_t i;

	json_array_foreach(zones, i, zone)
		assert_int_equal(json_object_update(all, json_object_get(zone, "available")), 0);
	(void)json_object_update(all, extra);
	struct amounts amounts = row_amounts(r, all);

	json_decref(all);
	return amounts;
}

static bool filter_row(struct rows *r, json_t *row)
{
	json_t *nodes = json_object_get(r->file, "nodes"), *expect = json_object_get(row, "expect");
	json_t *node_row = json_object_get(nodes, row_string(row, "node", ""));
	json_t *zones = json_object_get(node_row, "zones"), *numa = json_object_get(expect, "numa");
	struct sched_topology *t = row_zones(r, zones);
	struct sched_node node = {.topology = t,
		.allocatable = allocatable_of(r, zones, json_object_get(node_row, "nodeExtra"))};
	struct nrt_args args = {0};
	struct sched_pod pod;

	sched_topology_attribute(t, "topologyManagerPolicy", row_string(node_row, "policy", ""));
	sched_topology_attribute(t, "topologyManagerScope", row_string(node_row, "scope", ""));
	row_pod(r, json_object_get(row, "pod"), &pod);
	pod.qos = (enum qos)text_index(qos_words, NR_QOS, row_string(row, "qos", ""));

	struct nrt_ask *ask = nrt_ask_new(&pod, &args, &r->names);
	enum nrt_reason reason = nrt_filter(ask, &node);
	bool good = !strcmp(nrt_reason_texts[reason], row_string(expect, "reason", ""));

	if (json_is_integer(numa))
		good = good &&
		       t->zone_id[__builtin_ctzll(nrt_taken(ask, 0))] == json_integer_value(numa);
	for (size_t i = 0; i < json_array_size(numa); i++) {
		size_t inits = json_array_size(
			json_object_get(json_object_get(row, "pod"), "initContainers"));
		uint64_t taken = nrt_taken(ask, (unsigned)(inits + i));

		good = good && taken &&
		       t->zone_id[__builtin_ctzll(taken)] ==
			       json_integer_value(json_array_get(numa, i));
	}
	nrt_ask_free(ask);
	sched_topology_free(t);
	return good;
}

static void the_filter_answers_as_upstream(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row) if (!filter_row(r, row))
		fail_msg("%s", row_string(row, "name", ""));
}

static void weights_of(struct rows *r, json_t *map, struct nrt_args *args)
{
	struct nrt_weight *w = arena_array(&r->arena, json_object_size(map) + 1, sizeof *w);
	const char *name;
	json_t *weight;

	args->weights = w;
	json_object_foreach(map, name, weight) w[args->nr_weights++] =
		(struct nrt_weight){resource_number(&r->names, name), json_integer_value(weight)};
}

static void the_scores_are_those_of_upstream(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		struct nrt_args args = {
			.strategy = (enum nrt_strategy)text_index(nrt_strategy_words,
				NR_NRT_STRATEGIES, row_string(row, "strategy", "")),
		};
		struct sched_topology *t = row_zones(r, json_object_get(row, "zones"));
		struct sched_pod pod;

		sched_topology_attribute(t, "topologyManagerPolicy", row_string(row, "policy", ""));
		sched_topology_attribute(t, "topologyManagerScope", row_string(row, "scope", ""));
		weights_of(r, json_object_get(row, "weights"), &args);
		row_pod(r, json_object_get(row, "pod"), &pod);

		struct nrt_ask *ask = nrt_ask_new(&pod, &args, &r->names);
		int64_t score = nrt_score(ask, &(struct sched_node){.topology = t});

		if (score != json_integer_value(json_object_get(row, "expect")))
			fail_msg("%s: %lld", row_string(row, "name", ""), (long long)score);
		nrt_ask_free(ask);
		sched_topology_free(t);
	}
}

static bool masks_are(const struct nrt_ask *ask, const struct sched_topology *t, json_t *masks)
{
	bool lists = json_is_array(json_array_get(masks, 0));

	if (!lists)
		return json_is_null(masks) || row_is_zones(t, nrt_taken(ask, 0), masks);
	for (size_t i = 0; i < json_array_size(masks); i++)
		if (!row_is_zones(t, nrt_taken(ask, (unsigned)i), json_array_get(masks, i)))
			return false;
	return true;
}

static void least_numa_nodes_takes_the_zones_that_upstream_takes(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		struct nrt_args args = {.strategy = NRT_LEAST_NUMA_NODES, .compat = true};
		json_t *expect = json_object_get(row, "expect");
		struct sched_topology *t = row_zones(r, json_object_get(row, "zones"));
		struct sched_pod pod;

		sched_topology_attribute(t, "topologyManagerScope", row_string(row, "scope", ""));
		t->max_numa_nodes =
			(unsigned)json_integer_value(json_object_get(row, "maxNUMANodes"));
		row_pod(r, json_object_get(row, "pod"), &pod);
		pod.qos = QOS_GUARANTEED; /* the rows are of what lies behind that question */

		struct nrt_ask *ask = nrt_ask_new(&pod, &args, &r->names);
		int64_t score = nrt_score(ask, &(struct sched_node){.topology = t});

		if (score != json_integer_value(json_object_get(expect, "score")) ||
			!masks_are(ask, t, json_object_get(expect, "masks")))
			fail_msg("%s: %lld", row_string(row, "name", ""), (long long)score);
		nrt_ask_free(ask);
		sched_topology_free(t);
	}
}

static void the_fewest_zones_are_found_in_any_order_of_ids(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		struct nrt_args args = {.compat = true};
		json_t *expect = json_object_get(row, "expect");
		struct sched_topology *t = row_zones(r, json_object_get(row, "numa"));
		struct sched_container container = {
			.requests = row_amounts(r, json_object_get(row, "request"))};
		struct sched_pod pod = {
			.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
		struct nrt_ask *ask = nrt_ask_new(&pod, &args, &r->names);
		bool closest;
		uint64_t zones = nrt_required(ask, t, &closest);

		if (closest != json_is_true(json_object_get(expect, "minDistance")) ||
			!row_is_zones(t, zones, json_object_get(expect, "ids")))
			fail_msg("%s", row_string(row, "name", ""));
		nrt_ask_free(ask);
		sched_topology_free(t);
	}
}

static void each_zone_less_costs_one_unit_and_the_closest_gain_half(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "normalizeScore_max8", i, row) assert_int_equal(
		nrt_least_numa_score((unsigned)json_integer_value(json_object_get(row, "count")),
			json_is_true(json_object_get(row, "minDistance")), 8),
		json_integer_value(json_object_get(row, "expect")));
	assert_int_equal(nrt_least_numa_score(2, true, 1024), 100);
	assert_int_equal(nrt_least_numa_score(3, true, 2), -25);
}

static void keep(void *ctx, const char *line)
{
	if (!*(char *)ctx)
		(void)snprintf(ctx, LINE_MAX_KEPT, "%s", line);
}

/* What is printed of so many zones, when each has one CPU. */
static void print_scores_of(struct rows *r, const struct sched_topology *t, unsigned nr, char *line)
{
	const struct nrt_args args = {.strategy = NRT_LEAST_NUMA_NODES, .compat = true};
	const struct steps steps = {keep, line};
	struct amount cpus = {RESOURCE_CPU, quantity_of(nr)};
	struct sched_container container = {.requests = {&cpus, 1}};
	struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
	struct nrt_ask *ask = nrt_ask_new(&pod, &args, &r->names);

	line[0] = '\0';
	nrt_ask_listen(ask, &steps);
	(void)nrt_score(ask, &(struct sched_node){.topology = t});
	nrt_ask_free(ask);
}

static void the_average_distance_counts_ordered_pairs_and_each_zone_with_itself(void **state)
{
	static const uint8_t id[] = {0, 1, 2, 3};
	struct rows *r = *state;
	json_t *rows = json_object_get(r->file, "minAvgDistance"), *row, *costs;
	struct sched_topology *t = sched_topology_new(id, sizeof id);
	const struct quantity one = quantity_of(1);
	char line[LINE_MAX_KEPT], want[LINE_MAX_KEPT];
	const char *zone;
	size_t i;

	json_object_foreach(json_object_get(rows, "costs"), zone, costs)
		row_costs(t, (unsigned)strtoul(zone, NULL, 10), costs);
	for (unsigned z = 0; z < sizeof id; z++)
		sched_topology_resource(t, z, RESOURCE_CPU, &(struct zone_amounts){one, one, one});
	assert_int_equal(json_array_size(json_object_get(rows, "cases")), 3);
	json_array_foreach(json_object_get(rows, "cases"), i, row)
	{
		json_t *size = json_object_get(row, "size");

		print_scores_of(r, t, size ? (unsigned)json_integer_value(size) : 3, line);
		(void)snprintf(want, sizeof want, "average distance %.4g: no others are closer",
			json_number_value(json_object_get(row, "expect")));
		if (!strstr(line, want))
			fail_msg("\"%s\", not %s", line, want);
	}
	sched_topology_free(t);
}

static void an_assumed_pod_takes_from_every_zone(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		json_t *zones = json_object_get(row, "zones"), *zone, *pods[1];
		json_t *list = json_array();
		const char *name;
		struct sched_pod assumed[8];
		struct sched_container container[8];
		size_t nr = 0, p;

		json_object_foreach(zones, name, zone) assert_int_equal(
			json_array_append_new(
				list, json_pack("{s:s,s:O}", "name", name, "available", zone)),
			0);
		json_array_foreach(json_object_get(row, "assumedPods"), p, pods[0])
		{
			container[nr] =
				(struct sched_container){.requests = row_amounts(r, pods[0])};
			assumed[nr] =
				(struct sched_pod){.container = &container[nr], .nr_containers = 1};
			nr++;
		}
		struct sched_topology *t = row_zones(r, list);
		struct sched_topology *view = nrt_over_reserve(t, assumed, nr);

		for (unsigned z = 0; z < t->nr_zones; z++) {
			char id[16];
			json_t *value;

			(void)snprintf(id, sizeof id, "node-%u", t->zone_id[z]);
			json_t *want = json_object_get(json_object_get(row, "expect"), id);

			assert_non_null(want);
			json_object_foreach(want, name, value)
			{
				const struct zone_resource *a =
					sched_topology_find(view, resource_number(&r->names, name));

				assert_true(a->listed >> z & 1);
				assert_int_equal(
					quantity_compare(a->available[z], row_quantity(value)), 0);
			}
		}
		sched_topology_free(view);
		sched_topology_free(t);
		json_decref(list);
	}
}

static void only_pods_with_cpus_memory_or_devices_of_their_own_are_exclusive(void **state)
{
	struct rows *r = *state;
	json_t *row;
	size_t i;

	rows_each(r, "cases", i, row)
	{
		json_t *lists[] = {json_object_get(row, "initContainers"),
			json_object_get(row, "containers")},
		       *asks, *name;
		struct sched_container container[4];
		struct sched_pod pod = {.container = container,
			.qos = (enum qos)text_index(qos_words, NR_QOS, row_string(row, "qos", ""))};
		const uint8_t id[] = {0};
		struct sched_topology *t = sched_topology_new(id, 1);
		size_t k;

		for (unsigned l = 0; l < 2; l++)
			json_array_foreach(lists[l], k, asks) container[pod.nr_containers++] =
				(struct sched_container){.requests = row_amounts(r, asks),
					.kind = l ? CONTAINER_APP
						: json_object_get(asks, "restartPolicy")
							? CONTAINER_SIDECAR
							: CONTAINER_INIT};
		json_array_foreach(json_object_get(row, "nrtResources"), k, name)
			sched_topology_resource(t, 0,
				resource_number(&r->names, json_string_value(name)),
				&(struct zone_amounts){0});
		if (nrt_pod_is_exclusive(&pod, t, &r->names) !=
			json_is_true(json_object_get(row, "expect")))
			fail_msg("row %zu: %s", i, row_string(row, "why", ""));
		sched_topology_free(t);
	}
}

static void whole_cpus_alone_are_exclusive_and_fractions_are_not(void **state)
{
	struct rows *r = *state;
	struct amount cpu = {RESOURCE_CPU, quantity_of(2)};
	struct sched_container container = {.requests = {&cpu, 1}};
	struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
	struct sched_topology *t = sched_topology_new(NULL, 0);

	assert_true(nrt_pod_is_exclusive(&pod, t, &r->names));
	cpu.q.nano = QUANTITY_NANOS / 2;
	assert_false(nrt_pod_is_exclusive(&pod, t, &r->names));
	sched_topology_free(t);
}

/* 2 + 3 CPUs of the app containers against 4 of the sidecar, and an overhead of 1. */
static void a_sidecar_counts_as_an_init_container_in_the_effective_request(void **state)
{
	struct amount asks[] = {{RESOURCE_CPU, quantity_of(4)}, {RESOURCE_CPU, quantity_of(2)},
		{RESOURCE_CPU, quantity_of(3)}, {RESOURCE_CPU, quantity_of(1)}};
	struct sched_container container[] = {
		{.kind = CONTAINER_SIDECAR, .requests = {&asks[0], 1}},
		{.kind = CONTAINER_APP, .requests = {&asks[1], 1}},
		{.kind = CONTAINER_APP, .requests = {&asks[2], 1}}};
	struct sched_pod pod = {
		.container = container, .nr_containers = 3, .overhead = {&asks[3], 1}};
	unsigned nr;
	auto_free struct amount *effective = nrt_effective_request(&pod, &nr);

	(void)state;
	assert_int_equal(nr, 1);
	assert_int_equal(effective[0].q.whole, 6);
}

static int open_filter(void **s)
{
	return rows_open(s, "test/golden/nrt_filter.json");
}
static int open_score(void **s)
{
	return rows_open(s, "test/golden/nrt_score.json");
}
static int open_leastnuma(void **s)
{
	return rows_open(s, "test/golden/nrt_leastnuma.json");
}
static int open_required(void **s)
{
	return rows_open(s, "test/golden/nrt_required.json");
}
static int open_overreserve(void **s)
{
	return rows_open(s, "test/golden/nrt_overreserve.json");
}
static int open_exclusive(void **s)
{
	return rows_open(s, "test/golden/nrt_exclusive.json");
}

#define GOLDEN(test, open) cmocka_unit_test_setup_teardown(test, open, rows_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GOLDEN(the_filter_answers_as_upstream, open_filter),
		GOLDEN(the_scores_are_those_of_upstream, open_score),
		GOLDEN(least_numa_nodes_takes_the_zones_that_upstream_takes, open_leastnuma),
		GOLDEN(the_fewest_zones_are_found_in_any_order_of_ids, open_required),
		GOLDEN(each_zone_less_costs_one_unit_and_the_closest_gain_half, open_required),
		GOLDEN(the_average_distance_counts_ordered_pairs_and_each_zone_with_itself,
			open_required),
		GOLDEN(an_assumed_pod_takes_from_every_zone, open_overreserve),
		GOLDEN(only_pods_with_cpus_memory_or_devices_of_their_own_are_exclusive,
			open_exclusive),
		GOLDEN(whole_cpus_alone_are_exclusive_and_fractions_are_not, open_exclusive),
		cmocka_unit_test(a_sidecar_counts_as_an_init_container_in_the_effective_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
