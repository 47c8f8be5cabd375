/* Volcano's topology-decision: {"numa":{"0":{"cpu":"4","memory":"8Gi"}}}. */
#include <codec/advice_parts.h>

#include <codec/fields_json.h>
#include <jansson.h>

int advice_volcano_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	json_t *numa = json_object_get(r->json, "numa");

	if (!json_is_object(numa))
		return err_add(e, json_want("an object", numa, e), "numa");
	for (void *it = json_object_iter(numa); it; it = json_object_iter_next(numa, it)) {
		unsigned id;
		int rc = advice_node_id(json_object_iter_key(it), &id, e);

		if (!rc)
			rc = advice_add_resources(r, id, json_object_iter_value(it), e);
		if (rc)
			return rc;
		advice_add_node(&r->all, r->t, id);
	}
	return advice_for_all(r, out, e);
}
