/* Crane's topology-result: [{"name":"node1","type":"Node","resources":{"capacity":{"cpu":"4"}}}].
 * The number after "node" is that of the NUMA node. Only cpu is taken: into memory its writer puts
 * the number of thousandths of a CPU. */
#include <codec/advice_parts.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

static const char zone_prefix[] = "node";

static int crane_read_zone(json_t *zone, struct advice_reading *r, struct err *e)
{
	const size_t skip = sizeof zone_prefix - 1;
	json_t *resources = json_object_get(zone, "resources");
	const json_t *cpu = json_object_get(json_object_get(resources, "capacity"), "cpu");
	const char *type = json_string_value(json_object_get(zone, "type"));
	const json_t *name = json_object_get(zone, "name");
	const char *text = json_string_value(name);
	unsigned id;

	if (!text_equal(type, "Node"))
		return err_set(
			e, EINVAL, "type: should be \"Node\", is \"%.64s\"", type ? type : "");
	if (!text)
		return err_add(e, json_want("a string", name, e), "name");
	if (strncmp(text, zone_prefix, skip) != 0)
		return err_set(
			e, EINVAL, "name: should be \"node\" and a number, is \"%.64s\"", text);
	int rc = advice_node_id(text + skip, &id, e);
	if (rc)
		return rc;
	if (!json_is_string(cpu))
		return err_add(e, json_want("a string", cpu, e), "resources.capacity.cpu");
	advice_add_node(&r->all, r->t, id);
	return advice_add_amount(r, id, "cpu", json_string_value(cpu), e);
}

int advice_crane_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	for (size_t i = 0; i < json_array_size(r->json); i++) {
		int rc = crane_read_zone(json_array_get(r->json, i), r, e);

		if (rc)
			return err_add(e, rc, "zone %zu", i);
	}
	return advice_for_all(r, out, e);
}
