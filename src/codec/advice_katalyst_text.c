/* Annotations of one word: Katalyst's numa_bind_result, a kernel list of NUMA nodes ("0,2-3"), and
 * the topology policy that a pod asks for (ours and Volcano's). */
#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/settings.h>

int advice_katalyst_read(
	const char *text, const struct advice_context *c, struct advice *out, struct err *e)
{
	const struct advice_amounts none = {.t = c->t, .arena = c->arena};
	struct advice_container nodes = {0};
	int rc = advice_nodes_add_list(&nodes, c->t, text, e);

	return rc ? rc : advice_for_all(out, nodes, &none, e);
}

int advice_policy_read(
	const char *text, const struct advice_context *c, struct advice *out, struct err *e)
{
	int policy = topology_policy_from_name(text);

	(void)c;
	if (policy < 0)
		return err_set(e, EINVAL, "there is no topology policy \"%.64s\"", text);
	out->has_policy = true;
	out->policy = (enum topology_policy)policy;
	return 0;
}
