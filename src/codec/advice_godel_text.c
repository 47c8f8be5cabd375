/* Goedel's micro-topology: groups "NODE:RESOURCE=QUANTITY,RESOURCE=QUANTITY" joined by ";", in any
 * order; "" and "null" are no group. */
#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/mem.h>
#include <string.h>

/* "cpu=20" */
static int read_pair(char *pair, unsigned id, struct advice_amounts *a, struct err *e)
{
	char *quantity = pair;
	char *resource = strsep(&quantity, "=");

	if (!quantity)
		return err_set(e, EINVAL, "\"%.64s\" of NUMA node %u: should be RESOURCE=QUANTITY",
			resource, id);
	return advice_amounts_add(a, id, resource, quantity, e);
}

/* "0:cpu=20,memory=100Gi" */
static int read_group(
	char *group, struct advice_container *nodes, struct advice_amounts *a, struct err *e)
{
	char *pairs = group;
	char *node = strsep(&pairs, ":");
	unsigned id;
	int rc = advice_node_id(node, strlen(node), &id, e);

	if (rc)
		return rc;
	if (!pairs || strchr(pairs, ':'))
		return err_set(
			e, EINVAL, "NUMA node %u: one colon should stand before its amounts", id);
	advice_nodes_add(nodes, a->t, id);
	while (pairs && !rc)
		rc = read_pair(strsep(&pairs, ","), id, a, e);
	return rc;
}

int advice_godel_read(
	const char *text, const struct advice_context *c, struct advice *out, struct err *e)
{
	struct advice_container nodes = {0};
	struct advice_amounts amounts;
	int rc = advice_amounts_init(&amounts, text, c, e);
	auto_free char *copy = xstrdup(text);
	char *rest = *text && !text_equal(text, "null") ? copy : NULL;

	while (rest && !rc)
		rc = read_group(strsep(&rest, ";"), &nodes, &amounts, e);
	return rc ? rc : advice_for_all(out, nodes, &amounts, e);
}
