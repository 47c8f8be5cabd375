#include <stddef.h>
#include <stdint.h>

#include <questions/family_parts_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 8 };

/* What is read names no node but the machine's, and what is refused says why. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"nodes", "row", "amount", "sockets", NULL};
	const struct nodeset all = nodeset_first(NODES);
	struct family_reader r = {.ids.nr = NODES};
	struct nodeset nodes = {0}, named = {0};
	uint64_t row[NODES_MAX] = {0}, amount = 0;
	uint64_t sockets[NODES_MAX] = {0};
	unsigned nr = 0;
	json_t *item = NULL;
	struct err e = {0};

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	for (unsigned i = 0; i < NODES; i++)
		r.ids.id[i] = (uint16_t)(2 * i);
	int rc = json_want_object(item, keys, &e);
	if (!rc)
		rc = family_nodes_read(&r, json_object_get(item, "nodes"), false, &nodes, &e);
	if (!rc)
		rc = family_row_read_of(&r, item, "row", row, &named, &e);
	if (!rc)
		rc = family_amount_read(item, "amount", &amount, &e);
	if (!rc)
		rc = family_sockets_read(&r, item, nodes, sockets, &nr, &e);
	if (rc && !e.text[0])
		abort();
	if (!nodeset_within(nodeset_or(nodes, named), all) || amount > FAMILY_AMOUNT_MAX)
		abort();
	nodeset_each (n, named)
		if (row[n] > FAMILY_AMOUNT_MAX)
			abort();
	if (!rc && nr > NODES_MAX)
		abort();
	json_decref(item);
	return 0;
}
