/* Crane's topology-result: [{"name":"node1","type":"Node","resources":{"capacity":{"cpu":"4"}}}].
 * The number after "node" is that of the NUMA node. Only cpu is taken: into memory its writer puts
 * the number of thousandths of a CPU. */
#include <codec/advice_parts.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

static const char zone_prefix[] = "node";

static int read_name(const json_t *name, unsigned *id, struct err *e)
{
	const size_t skip = sizeof zone_prefix - 1;
	const char *text = json_string_value(name);

	if (!text)
		return err_add(e, json_want("a string", name, e), "name");
	if (strncmp(text, zone_prefix, skip) != 0)
		return err_set(
			e, EINVAL, "name: should be \"node\" and a number, is \"%.64s\"", text);
	return advice_node_id(text + skip, strlen(text + skip), id, e);
}

static int read_zone(
	json_t *zone, struct advice_container *nodes, struct advice_amounts *a, struct err *e)
{
	json_t *resources = json_object_get(zone, "resources");
	json_t *cpu = json_object_get(json_object_get(resources, "capacity"), "cpu");
	const char *type = json_string_value(json_object_get(zone, "type"));
	unsigned id;

	if (!text_equal(type, "Node"))
		return err_set(
			e, EINVAL, "type: should be \"Node\", is \"%.64s\"", type ? type : "");
	int rc = read_name(json_object_get(zone, "name"), &id, e);
	if (rc)
		return rc;
	if (!json_is_string(cpu))
		return err_add(e, json_want("a string", cpu, e), "resources.capacity.cpu");
	rc = advice_amounts_add(a, id, "cpu", json_string_value(cpu), e);
	if (!rc)
		advice_nodes_add(nodes, a->t, id);
	return rc;
}

static int read_zones(const json_t *zones, struct advice_container *nodes, struct advice_amounts *a,
	struct err *e)
{
	if (!json_is_array(zones))
		return json_want("a list", zones, e);
	for (size_t i = 0; i < json_array_size(zones); i++) {
		int rc = read_zone(json_array_get(zones, i), nodes, a, e);

		if (rc)
			return err_add(e, rc, "zone %zu", i);
	}
	return 0;
}

int advice_crane_read(
	const char *text, const struct advice_context *c, struct advice *out, struct err *e)
{
	struct advice_container nodes = {0};
	struct advice_amounts amounts;
	json_t *root = NULL;
	int rc = json_parse(text, strlen(text), &root, e);

	if (!rc)
		rc = advice_amounts_init(&amounts, text, c, e);
	if (!rc)
		rc = read_zones(root, &nodes, &amounts, e);
	if (!rc)
		rc = advice_for_all(out, nodes, &amounts, e);
	json_decref(root);
	return rc;
}
