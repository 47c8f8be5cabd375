/* Volcano's topology-decision: {"numa":{"0":{"cpu":"4","memory":"8Gi"}}}. */
#include <codec/advice_parts.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

static int read_nodes(
	json_t *numa, struct advice_container *nodes, struct advice_amounts *a, struct err *e)
{
	if (!json_is_object(numa))
		return err_add(e, json_want("an object", numa, e), "numa");
	for (void *it = json_object_iter(numa); it; it = json_object_iter_next(numa, it)) {
		const char *key = json_object_iter_key(it);
		unsigned id;
		int rc = advice_node_id(key, strlen(key), &id, e);

		if (!rc)
			rc = advice_amounts_add_json(a, id, json_object_iter_value(it), e);
		if (rc)
			return rc;
		advice_nodes_add(nodes, a->t, id);
	}
	return 0;
}

int advice_volcano_read(
	const char *text, const struct advice_context *c, struct advice *out, struct err *e)
{
	struct advice_container nodes = {0};
	struct advice_amounts amounts;
	json_t *root = NULL;
	int rc = json_parse(text, strlen(text), &root, e);

	if (!rc)
		rc = advice_amounts_init(&amounts, text, c, e);
	if (!rc)
		rc = json_is_object(root)
			     ? read_nodes(json_object_get(root, "numa"), &nodes, &amounts, e)
			     : json_want("an object", root, e);
	if (!rc)
		rc = advice_for_all(out, nodes, &amounts, e);
	json_decref(root);
	return rc;
}
