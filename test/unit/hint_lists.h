#ifndef NUMAFIT_TEST_HINT_LISTS_H
#define NUMAFIT_TEST_HINT_LISTS_H

#include <numafit/policy.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Hints written out as lists, as the kubelet's providers hand them to its Topology Manager, and
 * their merge by sets: what core's merge of families is held against. Trying every way to take one
 * hint of each list (the kubelet's way) ends in the same, as the best way depends on two sets only:
 *   - the masks that every list offers as preferred: the best of them, if there is one;
 *   - the masks that intersecting one mask of each list can give: else the best of those. */

/* The hints of one resource. No hint at all means that nothing satisfies the resource. */
struct hint_list {
	const struct hint *hint;
	size_t nr;
};

/* The machine's nodes are 0..n-1; a mask may hold others, which no machine has. */
enum { NODES_WRITTEN = 16 };

/* The kubelet's bestNonPreferredAffinityCount: of every list its narrowest mask, of these the
 * widest. */
static inline unsigned lists_aim(const struct hint_list *lists, size_t nr)
{
	unsigned aim = 0;

	for (size_t l = 0; l < nr; l++) {
		unsigned narrowest = NODES_MAX + 1;

		for (size_t i = 0; i < lists[l].nr; i++) {
			unsigned count = nodeset_count(lists[l].hint[i].mask);

			if (!lists[l].hint[i].any && count < narrowest)
				narrowest = count;
		}
		if (narrowest <= NODES_MAX && narrowest > aim)
			aim = narrowest;
	}
	return aim;
}

/* Whether the list offers the mask as preferred; NULL: whether it has no preference. */
static inline bool list_prefers(const struct hint_list *list, const struct nodeset *mask)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->hint[i].preferred &&
			(list->hint[i].any || (mask && nodeset_equal(list->hint[i].mask, *mask))))
			return true;
	return false;
}

static inline bool lists_prefer(
	const struct hint_list *lists, size_t nr, const struct nodeset *mask)
{
	for (size_t l = 0; l < nr; l++)
		if (!list_prefers(&lists[l], mask))
			return false;
	return true;
}

/* The best mask that is preferred everywhere, before nodes outside the machine are cut off. */
static inline struct nodeset lists_best_preferred(
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	struct nodeset best = lists_prefer(lists, nr, NULL) ? space->all : (struct nodeset){0};

	for (size_t l = 0; l < nr; l++)
		for (size_t i = 0; i < lists[l].nr; i++) {
			const struct hint *h = &lists[l].hint[i];
			struct nodeset here = nodeset_and(h->mask, space->all);

			if (!h->preferred || h->any || nodeset_empty(here) ||
				(!nodeset_empty(best) &&
					hint_compare_masks(space, here, best) >= 0))
				continue;
			if (lists_prefer(lists, nr, &h->mask))
				best = here;
		}
	return best;
}

static inline struct nodeset lists_best_intersection(
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	static bool reached[2][1 << NODES_WRITTEN];
	const size_t masks = space->all.bits + 1;
	unsigned aim = lists_aim(lists, nr), now = 0;
	struct nodeset best = {0};

	assert(masks <= 1 << NODES_WRITTEN && !(masks & space->all.bits));
	memset(reached[now], 0, masks);
	reached[now][masks - 1] = true;
	for (size_t l = 0; l < nr; l++, now = !now) {
		memset(reached[!now], 0, masks);
		for (uint64_t m = 1; m < masks; m++)
			for (size_t i = 0; reached[now][m] && i < lists[l].nr; i++) {
				const struct hint *h = &lists[l].hint[i];

				reached[!now][h->any ? m : m & h->mask.bits] = true;
			}
	}
	for (uint64_t m = 1; m < masks; m++)
		if (reached[now][m] &&
			(nodeset_empty(best) || hint_beats(space, aim, (struct nodeset){m}, best)))
			best = (struct nodeset){m};
	return best;
}

/* The best of all ways to take one hint from every list, by the kubelet's compare(); it does not
 * depend on the order of lists or hints. No list at all: all nodes, preferred. Nothing left: all
 * nodes, not preferred. */
static inline struct hint hint_merge_lists(
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	struct nodeset best = lists_best_preferred(space, lists, nr);

	if (!nodeset_empty(best))
		return (struct hint){.mask = best, .preferred = true};
	best = lists_best_intersection(space, lists, nr);
	return (struct hint){.mask = nodeset_empty(best) ? space->all : best};
}

/* The hints of the list that single-numa-node lets in; the caller frees. */
static inline struct hint_list list_of_one_node(const struct hint_list *list)
{
	struct hint *kept = calloc(list->nr + 1, sizeof *kept);
	size_t nr = 0;

	assert(kept);
	for (size_t i = 0; i < list->nr; i++)
		if (list->hint[i].preferred &&
			(list->hint[i].any || nodeset_count(list->hint[i].mask) == 1))
			kept[nr++] = list->hint[i];
	return (struct hint_list){kept, nr};
}

static inline struct policy_answer merge_lists_on_one_node(
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	const struct hint_space plain = {.all = space->all};
	struct hint_list *kept = calloc(nr + 1, sizeof *kept);

	assert(kept);
	for (size_t i = 0; i < nr; i++)
		kept[i] = list_of_one_node(&lists[i]);
	struct hint merged = hint_merge_lists(&plain, kept, nr);
	for (size_t i = 0; i < nr; i++)
		free((struct hint *)(uintptr_t)kept[i].hint);
	free(kept);
	if (nodeset_equal(merged.mask, space->all))
		merged = (struct hint){.any = true, .preferred = merged.preferred};
	return (struct policy_answer){.affinity = merged, .admit = merged.preferred};
}

/* The kubelet's policy_{none,best_effort,restricted,single_numa_node}.go over lists. */
static inline struct policy_answer policy_merge_lists(enum topology_policy policy,
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	if (policy == POLICY_NONE)
		return (struct policy_answer){.affinity = {.any = true}, .admit = true};
	if (policy == POLICY_SINGLE_NUMA_NODE)
		return merge_lists_on_one_node(space, lists, nr);
	struct hint merged = hint_merge_lists(space, lists, nr);
	return (struct policy_answer){
		.affinity = merged, .admit = policy == POLICY_BEST_EFFORT || merged.preferred};
}

/* The list as a rule, where there is one: no preference, nothing at all, or masks of which exactly
 * those of one size are preferred (as extra masks). False: no rule says just that. */
static inline bool family_of_list(const struct hint_list *list, struct family *f)
{
	*f = (struct family){.kind = FAMILY_CAPACITY};
	if (list->nr == 1 && list->hint[0].any) {
		f->kind = list->hint[0].preferred ? FAMILY_ANY : FAMILY_NONE;
		return true;
	}
	for (size_t i = 0; i < list->nr; i++) {
		const struct hint *h = &list->hint[i];

		if (h->any || nodeset_empty(h->mask) || f->nr_extra == FAMILY_EXTRA)
			return false;
		if (h->preferred)
			f->preferred_size = nodeset_count(h->mask);
		f->extra[f->nr_extra++] = h->mask;
	}
	for (size_t i = 0; i < list->nr; i++)
		if (list->hint[i].preferred != family_prefers(f, list->hint[i].mask))
			return false;
	return list->nr;
}

#endif
