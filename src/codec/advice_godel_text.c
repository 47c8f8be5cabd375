/* Goedel's micro-topology: groups "NODE:RESOURCE=QUANTITY,RESOURCE=QUANTITY" joined by ";", in any
 * order; "" and "null" are no group. */
#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/mem.h>
#include <string.h>

/* "0:cpu=20,memory=100Gi" */
static int read_group(char *group, struct advice_reading *r, struct err *e)
{
	char *pairs = group;
	char *node = strsep(&pairs, ":");
	unsigned id;
	int rc = advice_node_id(node, &id, e);

	if (rc)
		return rc;
	if (!pairs || strchr(pairs, ':'))
		return err_set(
			e, EINVAL, "NUMA node %u: one colon should stand before its amounts", id);
	advice_add_node(&r->all, r->t, id);
	while (pairs && !rc) {
		char *quantity = strsep(&pairs, ",");
		char *resource = strsep(&quantity, "=");

		rc = quantity ? advice_add_amount(r, id, resource, quantity, e)
			      : err_set(e, EINVAL,
					"\"%.64s\" of NUMA node %u: should be RESOURCE=QUANTITY",
					resource, id);
	}
	return rc;
}

int advice_godel_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	auto_free char *copy = xstrdup(r->text);
	char *rest = *r->text && !text_equal(r->text, "null") ? copy : NULL;
	int rc = 0;

	while (rest && !rc)
		rc = read_group(strsep(&rest, ";"), r, e);
	return rc ? rc : advice_for_all(r, out, e);
}
