#include <questions/family_parts_json.h>

#include <codec/fields_json.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

enum { SOCKET_MAX = NODES_MAX - 1 };

int family_node_of_key(const struct family_reader *r, const char *key, struct err *e)
{
	uint64_t id;
	int rc = text_u64(key, strlen(key), NODE_ID_MAX, &id, e);

	if (rc)
		return rc;
	int node = node_index(&r->ids, (unsigned)id);
	return node < 0 ? err_set(e, EINVAL, "node %.16s is not in nodes", key) : node;
}

int family_nodes_read(const struct family_reader *r, const json_t *list, bool strict,
	struct nodeset *out, struct err *e)
{
	if (!json_is_array(list))
		return json_want("a list of node ids", list, e);
	for (size_t i = 0; i < json_array_size(list); i++) {
		uint64_t id;
		int rc = json_number(json_array_get(list, i), NODE_ID_MAX, &id, e);
		int node = rc ? rc : node_index(&r->ids, (unsigned)id);

		if (!rc && node < 0 && strict)
			rc = err_set(e, EINVAL, "node %u is not in nodes", (unsigned)id);
		if (rc)
			return err_add(e, rc, "element %zu", i);
		if (node >= 0)
			*out = nodeset_or(*out, nodeset_of((unsigned)node));
	}
	return 0;
}

int family_row_read(const struct family_reader *r, json_t *object, uint64_t row[NODES_MAX],
	struct nodeset *named, struct err *e)
{
	if (!json_is_object(object))
		return json_want("an object", object, e);
	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
		int node = family_node_of_key(r, json_object_iter_key(it), e);

		if (node < 0)
			return node;
		int rc = json_number(json_object_iter_value(it), FAMILY_AMOUNT_MAX, &row[node], e);
		if (rc)
			return err_add(e, rc, "%.16s", json_object_iter_key(it));
		*named = nodeset_or(*named, nodeset_of((unsigned)node));
	}
	return 0;
}

int family_amount_read(const json_t *item, const char *key, uint64_t *out, struct err *e)
{
	const json_t *v = json_object_get(item, key);
	int rc = v ? json_number(v, FAMILY_AMOUNT_MAX, out, e) : 0;

	return rc ? err_add(e, rc, "%s", key) : 0;
}

int family_row_read_of(const struct family_reader *r, const json_t *item, const char *key,
	uint64_t row[NODES_MAX], struct nodeset *named, struct err *e)
{
	json_t *v = json_object_get(item, key);
	int rc = v ? family_row_read(r, v, row, named, e) : 0;

	return rc ? err_add(e, rc, "%s", key) : 0;
}

/* One socket, or a list of them, as bits; 0: it is neither. */
static uint64_t family_sockets_read_of_node(const json_t *v)
{
	const size_t nr = json_is_array(v) ? json_array_size(v) : 1;
	uint64_t sockets = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t socket;

		if (json_number(
			    json_is_array(v) ? json_array_get(v, i) : v, SOCKET_MAX, &socket, NULL))
			return 0;
		sockets |= UINT64_C(1) << socket;
	}
	return sockets;
}

int family_sockets_read(const struct family_reader *r, const json_t *item, struct nodeset nodes,
	uint64_t sockets[NODES_MAX], unsigned *nr, struct err *e)
{
	json_t *of_nodes = json_object_get(item, "sockets");
	uint64_t all = 0;

	if (!of_nodes)
		return 0;
	if (!json_is_object(of_nodes))
		return err_add(e, json_want("an object", of_nodes, e), "sockets");
	for (void *it = json_object_iter(of_nodes); it; it = json_object_iter_next(of_nodes, it)) {
		int node = family_node_of_key(r, json_object_iter_key(it), e);

		if (node < 0)
			return err_add(e, node, "sockets");
		sockets[node] = family_sockets_read_of_node(json_object_iter_value(it));
	}
	nodeset_each (n, nodes) {
		if (!sockets[n])
			return err_set(e, EINVAL,
				"sockets: node %u: should be from 0 to %d, or a list of such numbers",
				r->ids.id[n], SOCKET_MAX);
		all |= sockets[n];
	}
	*nr = (unsigned)__builtin_popcountll(all);
	return 0;
}
