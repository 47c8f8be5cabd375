/* Annotations of one word: Katalyst's numa_bind_result, a kernel list of NUMA nodes ("0,2-3"), and
 * the topology policy that a pod asks for (ours and Volcano's). */
#include <codec/hint_parts.h>

#include <errno.h>
#include <numafit/settings.h>

int hint_katalyst_read(
	const char *text, const struct hint_context *c, struct sched_hint *out, struct err *e)
{
	const struct hint_amounts none = {.t = c->t, .arena = c->arena};
	struct sched_hint_container nodes = {0};
	int rc = hint_nodes_add_list(&nodes, c->t, text, e);

	return rc ? rc : hint_for_all(out, nodes, &none, e);
}

int hint_policy_read(
	const char *text, const struct hint_context *c, struct sched_hint *out, struct err *e)
{
	int policy = topology_policy_from_name(text);

	(void)c;
	if (policy < 0)
		return err_set(e, EINVAL, "there is no topology policy \"%.64s\"", text);
	out->has_policy = true;
	out->policy = (enum topology_policy)policy;
	return 0;
}
