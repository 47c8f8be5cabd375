/* Schedulers' advice is followed when the pod as a whole fares as well as without it: what one
 * container is given elsewhere may be what the next one would have needed there. */
#include "admission_pass.h"

#include <errno.h>
#include <string.h>

/* A pod's admission in one of the two ways. */
struct attempt {
	struct books books;
	struct grants grants;
	struct refusal why, by_advice;
	int rc;
};

static bool has_hints(const struct pod *pod)
{
	for (unsigned c = 0; c < pod->nr; c++)
		if (pod->container[c].advice)
			return true;
	return false;
}

/* *b as it is before, for one attempt. False: the arena's limit is reached. */
static bool copy_books(const struct books *b, struct arena *a, struct books *copy)
{
	*copy = *b;
	for (unsigned r = 0; r < b->nr_resources; r++) {
		copy->held[r] = arena_array(a, b->resource[r].nr, sizeof(bool));
		if (!copy->held[r])
			return false;
		memcpy(copy->held[r], b->held[r], b->resource[r].nr * sizeof(bool));
	}
	return true;
}

/* NULL: the arena's limit is reached. */
static struct attempt *try_pod(const struct books *b, const struct pod *pod, bool follow,
	struct budget *budget, struct arena *a)
{
	struct attempt *x = arena_alloc(a, sizeof *x);

	if (!x || !copy_books(b, a, &x->books))
		return NULL;
	x->by_advice = (struct refusal){0};
	const struct admission_way how = {.follow = follow, .by_advice = &x->by_advice};
	x->rc = admission_pass(&how, &x->books, pod, budget, a, &x->grants, &x->why);
	return x;
}

static bool leave_the_same(const struct books *a, const struct books *b)
{
	if (cpuset_count(&a->shared) != cpuset_count(&b->shared))
		return false;
	for (unsigned k = 0; k < a->t->nr_kinds; k++) {
		uint64_t left = 0;

		nodeset_each (n, a->t->nodes)
			left += a->memory.node[n].free[k] - b->memory.node[n].free[k];
		if (left) /* modulo 2^64, as the sums are */
			return false;
	}
	return true;
}

static bool is_worse(const struct books *b, const struct hint *a, const struct hint *than)
{
	const struct hint_space space = {
		.distance = b->s->prefer_closest_numa_nodes ? b->t->distance : NULL};

	if (a->any || than->any)
		return a->any != than->any;
	return a->preferred < than->preferred || hint_compare_fit(&space, a->mask, than->mask) > 0;
}

static bool fares_as_well(const struct attempt *with, const struct attempt *without)
{
	if (with->rc || without->rc || !leave_the_same(&with->books, &without->books))
		return false;
	for (unsigned c = 0; c < with->grants.nr; c++)
		if (is_worse(&with->books, &with->grants.of[c].affinity,
			    &without->grants.of[c].affinity))
			return false;
	return true;
}

/* The merge would have given it what its advice asks for, or as good; then the rest was missing. */
static int refused(struct refusal *why)
{
	struct advice_result *h = &why->advice;

	if (h->verdict && !advice_is_rejection(h->verdict))
		h->verdict = h->cause = ADVICE_REJECTED_NOT_FIT;
	h->given = (struct nodeset){0};
	return -EPERM;
}

int admission(struct books *b, const struct pod *pod, const struct hint *settled,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why)
{
	const struct admission_way plain = {.settled = settled};

	if (settled || !has_hints(pod))
		return admission_pass(&plain, b, pod, budget, a, out, why);
	/* as much for both: what one of them finds the other does, but for the advice */
	struct budget half[2] = {budget_part(budget, 1, 2), budget_part(budget, 1, 2)};
	half[0].aside = half[0].given_aside /= 2;
	half[1].aside = half[1].given_aside /= 2;
	const struct attempt *without = try_pod(b, pod, false, &half[0], a);
	const struct attempt *with = without ? try_pod(b, pod, true, &half[1], a) : NULL;
	budget_return(budget, &half[0]);
	budget_return(budget, &half[1]);
	if (!with) /* no room for advice: as if there were none */
		with = without;
	if (!with)
		return admission_pass(&plain, b, pod, budget, a, out, why);
	const struct attempt *it =
		with->by_advice.reason || fares_as_well(with, without) ? with : without;
	*b = it->books;
	*out = it->grants;
	*why = it->by_advice.reason ? it->by_advice : it->why;
	return it->by_advice.reason || it->rc ? refused(why) : 0;
}
