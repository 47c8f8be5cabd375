#ifndef NUMAFIT_GENERIC_SCORE_H
#define NUMAFIT_GENERIC_SCORE_H

#include <numafit/fit.h>
#include <numafit/steps.h>

/* One scorer for all that a node's resources can say (KEP-2143): portions of the resources, valued
 * absolutely or by their share of what the node has, and what of that is preferred. The five
 * plugins that the KEP replaces are settings of it, bit for bit:
 *   LeastAllocated             left, ratio, most
 *   MostAllocated              allocated, ratio, most
 *   RequestedToCapacityRatio   allocated, ratio, most, with a shape
 *   NodeResourcesAllocatable   allocatable, absolute, most or least; normalised
 *   BalancedAllocation         allocated, ratio, most balanced (Kubernetes up to 1.35; what later
 *                              ones compute is generic_balance_gain())
 * Divisions are of integers unless a contract says otherwise; sums that int64_t cannot hold become
 * its end. */

enum generic_portion {
	PORTION_ALLOCATABLE, /* what the node has for pods */
	PORTION_ALLOCATED,   /* what its pods and this one ask for, FIT_MISSING_IS_SOME */
	PORTION_LEFT,        /* allocatable less allocated; may be below 0 */
	PORTION_REQUESTING,  /* what this pod asks for */
	NR_PORTIONS
};
const char *generic_portion_name(enum generic_portion p); /* "allocatable", ... */

enum generic_values { VALUES_ABSOLUTE, VALUES_RATIO, NR_GENERIC_VALUES };
/* "AbsoluteValue", "RatioToAllocatable" */
extern const char *const generic_values_words[NR_GENERIC_VALUES];

enum generic_prefer {
	PREFER_MOST,
	PREFER_LEAST,
	PREFER_MOST_BALANCED,
	PREFER_LEAST_BALANCED,
	NR_GENERIC_PREFERS
};
/* "Most", ..., "LeastBalanced" */
extern const char *const generic_prefer_words[NR_GENERIC_PREFERS];

struct resource_weight {
	unsigned resource;
	int64_t weight; /* above 0 */
};
struct resource_weights {
	const struct resource_weight *at;
	unsigned nr;
};

/* A broken line: the score (0 to 10) of a utilization (0 to 100, ascending), flat outside. */
struct shape_point {
	int64_t utilization, score;
};
enum { SHAPE_SCORE_MAX = 10 };

struct generic_part {
	enum generic_portion portion;
	enum generic_values values;
	enum generic_prefer prefer;
	struct resource_weights resources;
	const struct shape_point *shape; /* of ratios, with PREFER_MOST; NULL: the ratio counts */
	unsigned nr_shape;
};
struct generic_args {
	struct generic_part part[NR_PORTIONS];
	unsigned nr; /* at least 1 */
};

/* The node's raw score: its parts' scores together. A part's is
 *   most      ratio: the mean of min(x, A) * 100 / A by weight, x below 0 counting as 0; with a
 *             shape, of what the shape makes of that, without the zeros, rounded half up
 *             absolute: the sum of x by weight; the mean when it is the only part
 *   least     the negative of most; of an only part's ratio, what is missing to 100
 *   balanced  by the standard deviation of min(x / A, 1), of all resources alike, in float64
 * A resource that the node lacks, or a scalar one that the pod does not ask for, is left out; not
 * so of absolute allocatable values, where it counts as what there is. */
int64_t generic_raw(
	const struct generic_args *g, const struct fit_view *v, const struct steps *steps);
/* Whether raw scores lie within 0 and 100: one part, of ratios or of balance. Others are to be
 * normalised. */
bool generic_is_final(const struct generic_args *g);
/* From raw scores of the nodes that are to be compared to 0, the lowest, up to 100, the highest;
 * all 0 when all are equal. In place. */
void generic_normalise(int64_t *score, size_t nr);

/* NodeResourcesBalancedAllocation of Kubernetes 1.36: how much the pod evens out what is asked of
 * the node's resources, 50 to 100; 75: not at all. Weights do not count. */
int64_t generic_balance_gain(const struct resource_weights *resources, const struct fit_view *v,
	const struct steps *steps);

#endif
