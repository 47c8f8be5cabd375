/* Annotations that are not JSON. Goedel's micro-topology: groups "NODE:RESOURCE=QUANTITY,
 * RESOURCE=QUANTITY" joined by ";", in any order; "" and "null" are no group. Katalyst's
 * numa_bind_result: a kernel list of NUMA nodes ("0,2-3"). The topology policy that a pod asks for
 * (ours and Volcano's): a word. */
#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/settings.h>
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

int advice_katalyst_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	int rc = advice_add_nodes(&r->all, r->t, r->text, e);

	return rc ? rc : advice_for_all(r, out, e);
}

int advice_policy_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	int policy = text_index(topology_policy_words, NR_POLICIES, r->text);

	if (policy < 0)
		return err_set(e, EINVAL, "there is no topology policy \"%.64s\"", r->text);
	out->has_policy = true;
	out->policy = (enum topology_policy)policy;
	return 0;
}
