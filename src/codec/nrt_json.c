#include <codec/nrt_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>

static int nrt_read_cost(const json_t *v, struct sched_topology *t, unsigned zone, struct err *e)
{
	const json_t *value = json_member(v, "value");
	const char *name;
	int rc = json_member_string(v, "name", &name, e);

	if (rc)
		return rc;
	if (!json_is_integer(value))
		return err_add(e, json_want("an integer", value, e), "value");
	int to = name ? zone_numa_id(NULL, name) : -1;
	if (to >= 0)
		sched_topology_cost(t, zone, (unsigned)to, json_integer_value(value));
	return 0;
}

/* A quantity that the schema asks for, but nobody computes from, may be missing. */
static int nrt_read_quantity(
	const json_t *v, const char *key, bool needed, struct quantity *out, struct err *e)
{
	const json_t *q = json_member(v, key);
	int rc = q || needed ? json_quantity(q, out, e) : 0;

	return rc ? err_add(e, rc, "%s", key) : 0;
}

static int nrt_read_resource(const json_t *v, const struct sched_reader *r,
	struct sched_topology *t, unsigned zone, struct err *e)
{
	struct zone_amounts amounts = {0};
	const char *name;
	int rc = json_member_string(v, "name", &name, e);

	if (!rc && !name)
		rc = err_add(e, json_want("a string", NULL, e), "name");
	if (!rc)
		rc = nrt_read_quantity(v, "capacity", false, &amounts.capacity, e);
	if (!rc)
		rc = nrt_read_quantity(v, "allocatable", false, &amounts.allocatable, e);
	if (!rc)
		rc = nrt_read_quantity(v, "available", true, &amounts.available, e);
	if (!rc)
		sched_topology_resource(t, zone, resource_number(r->names, name), &amounts);
	return rc;
}

static int nrt_read_zone(const json_t *v, const struct sched_reader *r, struct sched_topology *t,
	unsigned zone, struct err *e)
{
	json_t *costs, *resources;
	int rc = json_member_list(v, "costs", &costs, e);

	for (size_t i = 0; !rc && i < json_array_size(costs); i++)
		if ((rc = nrt_read_cost(json_array_get(costs, i), t, zone, e)))
			return err_add(e, rc, "costs[%zu]", i);
	if (!rc)
		rc = json_member_list(v, "resources", &resources, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < json_array_size(resources); i++)
		if ((rc = nrt_read_resource(json_array_get(resources, i), r, t, zone, e)))
			return err_add(e, rc, "resources[%zu]", i);
	return 0;
}

/* The NUMA node's id of a zone; -1: it is none; -2: it cannot be read. */
static int zone_id(const json_t *zone, struct err *e)
{
	const char *type, *name;

	if (!json_is_object(zone)) {
		(void)json_want("an object", zone, e);
		return -2;
	}
	if (json_member_string(zone, "type", &type, e) ||
		json_member_string(zone, "name", &name, e))
		return -2;
	return zone_numa_id(type ? type : "", name ? name : "");
}

/* Which zones there are has to be known before what is in them. */
static int nrt_read_zones(const json_t *zones, const struct sched_reader *r,
	struct sched_topology **out, struct err *e)
{
	uint8_t ids[ZONES_MAX];
	unsigned nr = 0, zone = 0;

	for (size_t i = 0; i < json_array_size(zones); i++) {
		int id = zone_id(json_array_get(zones, i), e);

		if (id < -1)
			return err_add(e, -EINVAL, "zones[%zu]", i);
		if (id >= 0 && nr == ZONES_MAX)
			return err_set(e, ERANGE, "zones: more than %d", ZONES_MAX);
		if (id >= 0)
			ids[nr++] = (uint8_t)id;
	}
	*out = sched_topology_new(ids, nr);
	for (size_t i = 0; i < json_array_size(zones); i++) {
		const json_t *v = json_array_get(zones, i);

		if (zone_id(v, NULL) < 0)
			continue;
		int rc = nrt_read_zone(v, r, *out, zone++, e);
		if (rc)
			return err_add(e, rc, "zones[%zu]", i);
	}
	return 0;
}

static int nrt_read_attributes(const json_t *list, struct sched_topology *t, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		const char *name, *value;
		int rc = json_member_string(v, "name", &name, e);

		if (!rc)
			rc = json_member_string(v, "value", &value, e);
		if (rc)
			return err_add(e, rc, "attributes[%zu]", i);
		if (name && value)
			sched_topology_attribute(t, name, value);
	}
	return 0;
}

static int nrt_read_topology(
	json_t *v, const struct sched_reader *r, struct sched_topology **out, struct err *e)
{
	json_t *zones, *policies, *attributes;
	const char *kind;
	int rc = json_member_string(v, "kind", &kind, e);

	if (!rc && kind && !text_equal(kind, "NodeResourceTopology"))
		return err_set(e, EINVAL, "kind: should be NodeResourceTopology, is %.64s", kind);
	if (!rc)
		rc = json_member_list(v, "zones", &zones, e);
	if (!rc)
		rc = json_member_list(v, "topologyPolicies", &policies, e);
	if (!rc)
		rc = json_member_list(v, "attributes", &attributes, e);
	if (!rc)
		rc = nrt_read_zones(zones, r, out, e);
	if (rc)
		return rc;
	const char *first = json_string_value(json_array_get(policies, 0));
	if (first)
		sched_topology_policy(*out, first);
	return nrt_read_attributes(attributes, *out, e);
}

int nrt_json_read(
	json_t *v, const struct sched_reader *r, struct sched_topology **out, struct err *e)
{
	struct sched_topology *t = NULL;

	if (!json_is_object(v))
		return json_want("a NodeResourceTopology", v, e);
	int rc = nrt_read_topology(v, r, &t, e);
	if (rc) {
		sched_topology_free(t);
		return rc;
	}
	*out = t;
	return 0;
}
