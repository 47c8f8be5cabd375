#ifndef TEST_NRT_ROWS_H
#define TEST_NRT_ROWS_H

/* Pods and topologies as the rows of test/golden/nrt_*.json have them. */

#include <jansson.h>
#include <numafit/arena.h>
#include <numafit/nrt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct rows {
	json_t *file;
	struct resource_table names;
	struct arena arena;
};

static inline int rows_open(void **state, const char *path)
{
	struct rows *r = xcalloc(1, sizeof *r);
	json_error_t error;

	r->file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!r->file)
		print_error("%s:%d: %s\n", path, error.line, error.text);
	assert_non_null(r->file);
	resource_table_init(&r->names);
	arena_init(&r->arena, 1 << 24);
	*state = r;
	return 0;
}

static inline int rows_close(void **state)
{
	struct rows *r = *state;

	json_decref(r->file);
	resource_table_fini(&r->names);
	arena_fini(&r->arena);
	free(r);
	return 0;
}

static inline const char *row_string(json_t *row, const char *key, const char *otherwise)
{
	json_t *value = json_object_get(row, key);

	return value ? json_string_value(value) : otherwise;
}

static inline struct quantity row_quantity(json_t *value)
{
	char buf[QUANTITY_TEXT_MAX];
	const char *text = json_string_value(value);
	struct quantity q;

	if (!text) {
		(void)snprintf(buf, sizeof buf, "%lld", (long long)json_integer_value(value));
		text = buf;
	}
	assert_int_equal(quantity_parse(&q, text, NULL), 0);
	return q;
}

/* {"cpu": "2"} */
static inline struct amounts row_amounts(struct rows *r, json_t *map)
{
	struct amount *at = arena_array(&r->arena, json_object_size(map) + 1, sizeof *at);
	unsigned nr = 0;
	const char *name;
	json_t *value;

	json_object_foreach(map, name, value)
	{
		if (!strcmp(name, "restartPolicy"))
			continue;
		at[nr++] = (struct amount){resource_number(&r->names, name), row_quantity(value)};
	}
	return (struct amounts){at, nr};
}

/* {"requests": {}, "limits": {}, "restartPolicy": "Always"}; no limits: the requests */
static inline struct sched_container row_container(struct rows *r, json_t *row, bool init)
{
	json_t *limits = json_object_get(row, "limits");
	json_t *requests = json_object_get(row, "requests");
	const char *restart = row_string(row, "restartPolicy", "");

	return (struct sched_container){
		.name = row_string(row, "name", ""),
		.kind = !init                       ? CONTAINER_APP
			: strcmp(restart, "Always") ? CONTAINER_INIT
						    : CONTAINER_SIDECAR,
		.requests = row_amounts(r, requests),
		.limits = row_amounts(r, limits ? limits : requests),
	};
}

static inline void row_pod(struct rows *r, json_t *row, struct sched_pod *pod)
{
	json_t *lists[] = {
		json_object_get(row, "initContainers"), json_object_get(row, "containers")};
	size_t nr_init = json_array_size(lists[0]), nr = nr_init + json_array_size(lists[1]);
	struct sched_container *all = arena_array(&r->arena, nr + 1, sizeof *all);

	for (size_t i = 0; i < nr; i++) {
		bool init = i < nr_init;

		all[i] = row_container(
			r, json_array_get(lists[!init], init ? i : i - nr_init), init);
	}
	*pod = (struct sched_pod){
		.ns = row_string(row, "namespace", "default"),
		.name = row_string(row, "name", "pod"),
		.container = all,
		.nr_containers = (unsigned)nr,
		.overhead = row_amounts(r, json_object_get(row, "overhead")),
	};
	pod->qos = sched_pod_qos(pod);
}

static inline void row_costs(struct sched_topology *t, unsigned zone, json_t *costs)
{
	const char *id;
	json_t *value;

	json_object_foreach(costs, id, value) sched_topology_cost(
		t, zone, (unsigned)strtoul(id, NULL, 10), json_integer_value(value));
}

static inline void row_available(
	struct rows *r, struct sched_topology *t, unsigned zone, json_t *available)
{
	const char *name;
	json_t *value;

	json_object_foreach(available, name, value)
	{
		struct quantity q = row_quantity(value);

		sched_topology_resource(
			t, zone, resource_number(&r->names, name), &(struct zone_amounts){q, q, q});
	}
}

/* [{"name": "node-0" or "id": 0, "available": {}, "costs": {"0": 10}}]; the caller frees */
static inline struct sched_topology *row_zones(struct rows *r, json_t *zones)
{
	uint8_t id[ZONES_MAX];
	json_t *taken[ZONES_MAX], *zone;
	unsigned nr = 0;
	size_t i;

	json_array_foreach(zones, i, zone)
	{
		json_t *number = json_object_get(zone, "id");
		int numa = number ? (int)json_integer_value(number)
				  : zone_numa_id(row_string(zone, "type", "Node"),
					    row_string(zone, "name", ""));

		if (numa < 0)
			continue;
		taken[nr] = zone;
		id[nr++] = (uint8_t)numa;
	}
	struct sched_topology *t = sched_topology_new(id, nr);

	for (unsigned z = 0; z < nr; z++) {
		row_available(r, t, z, json_object_get(taken[z], "available"));
		row_costs(t, z, json_object_get(taken[z], "costs"));
	}
	return t;
}

/* Whether the zones are those of the list of ids. */
static inline bool row_is_zones(const struct sched_topology *t, uint64_t zones, json_t *ids)
{
	uint64_t bits = 0, want = 0;
	json_t *id;
	size_t i;

	for (; zones; zones &= zones - 1)
		bits |= UINT64_C(1) << t->zone_id[__builtin_ctzll(zones)];
	json_array_foreach(ids, i, id) want |= UINT64_C(1) << json_integer_value(id);
	return bits == want;
}

/* for each row of that list of the file */
#define rows_each(r, list, i, row)                                                                 \
	assert_true(json_array_size(json_object_get((r)->file, list)) > 0);                        \
	json_array_foreach(json_object_get((r)->file, list), i, row)

#endif
