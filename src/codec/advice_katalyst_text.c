/* Annotations of one word: Katalyst's numa_bind_result, a kernel list of NUMA nodes ("0,2-3"), and
 * the topology policy that a pod asks for (ours and Volcano's). */
#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/settings.h>

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
