#include <numafit/policy.h>

#include <errno.h>

/* What a policy lets into the merge, what it takes from the result, and when it admits. */
struct policy_row {
	bool merges;   /* false: no hints are asked for */
	bool one_node; /* only preferred hints of at most one node enter, and all nodes mean none */
	bool closest;  /* prefer-closest-numa-nodes is honoured */
	bool any_result; /* admitted whatever comes out; else only when it is preferred */
};
static const struct policy_row rows[NR_POLICIES] = {
	[POLICY_NONE] = {.any_result = true},
	[POLICY_BEST_EFFORT] = {.merges = true, .closest = true, .any_result = true},
	[POLICY_RESTRICTED] = {.merges = true, .closest = true},
	[POLICY_SINGLE_NUMA_NODE] = {.merges = true, .one_node = true},
};

struct hint_space policy_space(enum topology_policy policy, const struct hint_space *space)
{
	struct hint_space s = *space;

	if (!rows[policy].closest)
		s.distance = NULL;
	return s;
}

/* What single-numa-node lets in is, of each family, at most one hint for each node: the best node
 * that all offer. All nodes, not preferred, when there is none; all nodes when no family has a
 * preference. */
static struct hint merge_one_node(const struct hint_space *space, const struct family *families,
	size_t nr, struct nodeset taken)
{
	const struct scoring scoring = {space->strategy, families, nr};
	struct hint best = {.mask = space->all};
	size_t indifferent = 0;

	for (size_t i = 0; i < nr; i++)
		indifferent += families[i].kind == FAMILY_ANY;
	if (indifferent == nr)
		return (struct hint){.mask = space->all, .preferred = true};
	nodeset_each (node, nodeset_minus(space->all, taken)) {
		const struct nodeset mask = nodeset_of(node);
		size_t offers = 0;

		for (; offers < nr; offers++) {
			const struct family *f = &families[offers];

			if (f->kind != FAMILY_ANY &&
				(f->kind != FAMILY_CAPACITY || !family_has(f, mask) ||
					!family_prefers(f, mask)))
				break;
		}
		if (offers < nr)
			continue;
		if (!best.preferred || scoring_compare(space, &scoring, mask, best.mask) < 0)
			best = (struct hint){.mask = mask, .preferred = true};
	}
	return best;
}

int policy_merge_families(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, struct budget *b, struct arena *a,
	struct policy_answer *out)
{
	const struct policy_row *row = &rows[policy];
	struct hint_space s = policy_space(policy, space);
	struct hint merged;
	int rc = 0;

	if (!row->merges) {
		*out = (struct policy_answer){.affinity = {.any = true}, .admit = true};
		return 0;
	}
	if (row->one_node)
		merged = merge_one_node(&s, families, nr, (struct nodeset){0});
	else
		rc = hint_merge_families(&s, families, nr, b, a, &merged);
	if (rc < 0)
		return rc;
	/* all nodes are no affinity (kubelet policy_single_numa_node.go) */
	if (row->one_node && nodeset_equal(merged.mask, space->all))
		merged.any = true;
	if (merged.any)
		merged.mask = (struct nodeset){0};
	*out = (struct policy_answer){
		.affinity = merged, .admit = row->any_result || merged.preferred};
	return rc;
}

int policy_runner_up(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, const struct hint *best, struct budget *b,
	struct arena *a, struct hint *out)
{
	const struct policy_row *row = &rows[policy];
	struct hint_space s = policy_space(policy, space);

	if (!row->merges || best->any)
		return -ENOENT;
	if (!row->one_node)
		return hint_merge_others(&s, families, nr, best->mask, b, a, out);
	struct hint next = merge_one_node(&s, families, nr, best->mask);
	if (!next.preferred)
		return -ENOENT;
	*out = next;
	return 0;
}

int policy_check_nodes(
	enum topology_policy policy, unsigned nr_nodes, unsigned limit, struct err *e)
{
	if (policy == POLICY_NONE || !limit || nr_nodes <= limit)
		return 0;
	return err_set(e, E2BIG, "unsupported on machines with more than %u NUMA Nodes", limit);
}
