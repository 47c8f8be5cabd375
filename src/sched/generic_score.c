#include <numafit/generic_score.h>

#include <string.h>

/* framework.MaxNodeScore; a shape's scores are tenths of it (MaxCustomPriorityScore). */
enum { PERCENT = SCHED_SCORE_MAX, SHAPE_STEP = SCHED_SCORE_MAX / SHAPE_SCORE_MAX };

const char *const generic_values_words[NR_GENERIC_VALUES] = {"AbsoluteValue", "RatioToAllocatable"};
const char *const generic_prefer_words[NR_GENERIC_PREFERS] = {
	"Most", "Least", "MostBalanced", "LeastBalanced"};

/* Numbers wide enough for a product of two amounts; a sum stays at the end of its range. */
__extension__ typedef __int128 wide;

static wide wide_add(wide a, wide b)
{
	wide sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? -((wide)1 << 126) : (wide)1 << 126;
}

static int64_t wide_to_int64(wide v)
{
	return v > INT64_MAX ? INT64_MAX : v < -INT64_MAX ? -INT64_MAX : (int64_t)v;
}

static int64_t sum_clamped(int64_t a, int64_t b)
{
	return wide_to_int64((wide)a + b);
}

/* Portions. */

/* How many pods a node takes is for the filter; no plugin scores it. */
static int64_t portion_allocatable(const struct fit_view *v, unsigned resource)
{
	return resource == RESOURCE_PODS ? 0 : fit_allocatable(v->names, v->node, resource);
}

static int64_t portion_allocated(const struct fit_view *v, unsigned resource)
{
	return sum_clamped(fit_allocated(v->names, v->node, resource, FIT_MISSING_IS_SOME),
		fit_request(v->names, v->pod, resource, FIT_MISSING_IS_SOME));
}

static int64_t portion_left(const struct fit_view *v, unsigned resource)
{
	return wide_to_int64(
		(wide)portion_allocatable(v, resource) - portion_allocated(v, resource));
}

static int64_t portion_requesting(const struct fit_view *v, unsigned resource)
{
	return fit_request(v->names, v->pod, resource, FIT_MISSING_IS_NOTHING);
}

/* BalancedAllocation counts without defaults, before and with the pod. */
static int64_t portion_bound(const struct fit_view *v, unsigned resource)
{
	return fit_allocated(v->names, v->node, resource, FIT_MISSING_IS_NOTHING);
}

static int64_t portion_bound_with_pod(const struct fit_view *v, unsigned resource)
{
	return sum_clamped(portion_bound(v, resource), portion_requesting(v, resource));
}

struct portion {
	const char *name;
	int64_t (*of)(const struct fit_view *v, unsigned resource);
};
static const struct portion portions[] = {
	[PORTION_ALLOCATABLE] = {"allocatable", portion_allocatable},
	[PORTION_ALLOCATED] = {"allocated", portion_allocated},
	[PORTION_LEFT] = {"left", portion_left},
	[PORTION_REQUESTING] = {"requesting", portion_requesting},
};
static const struct portion before_pod = {"before the pod", portion_bound},
			    with_pod = {"with the pod", portion_bound_with_pod};

const char *generic_portion_name(enum generic_portion p)
{
	return portions[p].name;
}

/* Whether the resource says anything of this node (calculateNodeAllocatableRequest). */
static bool resource_counts(const struct fit_view *v, unsigned resource)
{
	bool asked = portion_requesting(v, resource) != 0 || !fit_is_scalar(v->names, resource);

	return asked && portion_allocatable(v, resource) > 0;
}

/* Sums by weight. */

struct mean {
	wide sum, weights;
};

static void mean_add(struct mean *m, int64_t x, int64_t weight)
{
	m->sum = wide_add(m->sum, (wide)x * weight);
	m->weights += weight;
}

static wide rounded_down(const struct mean *m)
{
	return m->weights ? m->sum / m->weights : 0;
}

/* helper.BuildBrokenLinearFunction */
static int64_t broken_line(const struct generic_part *p, int64_t utilization)
{
	const struct shape_point *to = p->shape, *last = &p->shape[p->nr_shape - 1];

	while (to < last && utilization > to->utilization)
		to++;
	if (to == p->shape || utilization >= to->utilization)
		return to->score * SHAPE_STEP;
	const struct shape_point *from = to - 1;
	return from->score * SHAPE_STEP + (to->score - from->score) * SHAPE_STEP *
						  (utilization - from->utilization) /
						  (to->utilization - from->utilization);
}

static struct mean ratios(
	const struct generic_part *p, const struct fit_view *v, const struct steps *steps)
{
	struct mean m = {0};

	for (unsigned i = 0; i < p->resources.nr; i++) {
		const struct resource_weight *w = &p->resources.at[i];
		const char *name = v->names->at[w->resource].name;

		if (!resource_counts(v, w->resource)) {
			steps_add(steps, "%s: left out", name);
			continue;
		}
		int64_t x = portions[p->portion].of(v, w->resource),
			of = portion_allocatable(v, w->resource);
		int64_t s = (int64_t)((wide)(x < 0 ? 0 : x > of ? of : x) * PERCENT / of);
		steps_add(steps, "%s: %s %lld of %lld: %lld, weight %lld", name,
			portions[p->portion].name, (long long)x, (long long)of, (long long)s,
			(long long)w->weight);
		if (p->nr_shape) {
			s = broken_line(p, s);
			steps_add(steps, "%s: by the shape %lld", name, (long long)s);
		}
		if (s > 0 || !p->nr_shape)
			mean_add(&m, s, w->weight);
	}
	return m;
}

static struct mean absolutes(
	const struct generic_part *p, const struct fit_view *v, const struct steps *steps)
{
	struct mean m = {0};

	for (unsigned i = 0; i < p->resources.nr; i++) {
		const struct resource_weight *w = &p->resources.at[i];
		const char *name = v->names->at[w->resource].name;

		if (p->portion != PORTION_ALLOCATABLE && !resource_counts(v, w->resource)) {
			steps_add(steps, "%s: left out", name);
			continue;
		}
		int64_t x = portions[p->portion].of(v, w->resource);
		steps_add(steps, "%s: %s %lld, weight %lld", name, portions[p->portion].name,
			(long long)x, (long long)w->weight);
		mean_add(&m, x, w->weight);
	}
	return m;
}

/* Balance. */

enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1023, ROOT_BITS = 54 };

static double power_of_two(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + EXPONENT_BIAS) << MANTISSA_BITS;
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

/* The square root of 0 or a normal number, correctly rounded as IEEE 754 wants it: core calls no
 * libm. x is m * 2^e with an even e; the root of m * 2^54 has 54 bits, one more than a double. */
static double double_square_root(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	if (!bits)
		return 0;
	int e = (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS - MANTISSA_BITS;
	wide m = (wide)((bits & ((UINT64_C(1) << MANTISSA_BITS) - 1)) | UINT64_C(1)
										<< MANTISSA_BITS);
	if (e % 2) {
		m <<= 1;
		e--;
	}
	uint64_t root = 0;
	for (int bit = ROOT_BITS - 1; bit >= 0; bit--) {
		wide with = (wide)(root | UINT64_C(1) << bit);

		if (with * with <= m << ROOT_BITS)
			root |= UINT64_C(1) << bit;
	}
	return (double)(root / 2 + root % 2) * power_of_two((e - ROOT_BITS) / 2 + 1);
}

static double portion_fraction(const struct portion *p, const struct fit_view *v, unsigned resource)
{
	int64_t x = p->of(v, resource);
	double f = (double)(x < 0 ? 0 : x) / (double)portion_allocatable(v, resource);

	return f > 1 ? 1 : f;
}

/* The standard deviation of what is used of each resource (balancedResourceScore): in the order of
 * the resources, since float64 sums depend on it. */
static double balance_deviation(
	const struct resource_weights *w, const struct fit_view *v, const struct portion *p)
{
	double total = 0, squares = 0, first = 0, last = 0;
	unsigned nr = 0;

	for (unsigned i = 0; i < w->nr; i++) {
		if (!resource_counts(v, w->at[i].resource))
			continue;
		last = portion_fraction(p, v, w->at[i].resource);
		first = nr++ ? first : last;
		total += last;
	}
	if (nr < 2)
		return 0;
	if (nr == 2)
		return first > last ? (first - last) / 2 : (last - first) / 2;
	double mean = total / nr;
	for (unsigned i = 0; i < w->nr; i++) {
		if (!resource_counts(v, w->at[i].resource))
			continue;
		double off = portion_fraction(p, v, w->at[i].resource) - mean;
		double square = off * off;
		squares += square;
	}
	return double_square_root(squares / nr);
}

static int64_t balance_score(const struct resource_weights *w, const struct fit_view *v,
	const struct portion *p, const struct steps *steps)
{
	double off = balance_deviation(w, v, p);
	int64_t score = (int64_t)((1 - off) * PERCENT);

	steps_add(steps, "%s: standard deviation %.17g: balance %lld", p->name, off,
		(long long)score);
	return score;
}

int64_t generic_balance_gain(const struct resource_weights *resources, const struct fit_view *v,
	const struct steps *steps)
{
	int64_t with = balance_score(resources, v, &with_pod, steps);
	int64_t before = balance_score(resources, v, &before_pod, steps);
	int64_t score = PERCENT / 2 + (PERCENT / 2 + with - before) / 2;

	steps_add(steps, "50 + (50 + %lld - %lld) / 2 = %lld", (long long)with, (long long)before,
		(long long)score);
	return score;
}

/* Parts. */

static int64_t most_score(const struct generic_part *p, bool alone, const struct fit_view *v,
	const struct steps *steps)
{
	if (p->values == VALUES_RATIO) {
		struct mean m = ratios(p, v, steps);

		if (p->nr_shape && m.weights) /* rounded half up */
			return wide_to_int64((2 * m.sum + m.weights) / (2 * m.weights));
		return wide_to_int64(rounded_down(&m));
	}
	struct mean m = absolutes(p, v, steps);
	return wide_to_int64(alone ? rounded_down(&m) : m.sum);
}

static int64_t part_raw(const struct generic_part *p, bool alone, const struct fit_view *v,
	const struct steps *steps)
{
	switch (p->prefer) {
	case PREFER_MOST:
		return most_score(p, alone, v, steps);
	case PREFER_LEAST:
		return (alone && p->values == VALUES_RATIO ? PERCENT : 0) -
		       most_score(p, alone, v, steps);
	case PREFER_MOST_BALANCED:
		return balance_score(&p->resources, v, &portions[p->portion], steps);
	case PREFER_LEAST_BALANCED:
		return (int64_t)(balance_deviation(&p->resources, v, &portions[p->portion]) *
				 PERCENT);
	case NR_GENERIC_PREFERS:
		break;
	}
	return 0;
}

int64_t generic_raw(
	const struct generic_args *g, const struct fit_view *v, const struct steps *steps)
{
	int64_t raw = 0;

	for (unsigned i = 0; i < g->nr; i++) {
		const struct generic_part *p = &g->part[i];
		int64_t one = part_raw(p, g->nr == 1, v, steps);

		steps_add(steps, "%s, %s, %s: %lld", portions[p->portion].name,
			generic_values_words[p->values], generic_prefer_words[p->prefer],
			(long long)one);
		raw = sum_clamped(raw, one);
	}
	return raw;
}

bool generic_is_final(const struct generic_args *g)
{
	return g->nr == 1 &&
	       (g->part[0].values == VALUES_RATIO || g->part[0].prefer == PREFER_MOST_BALANCED ||
		       g->part[0].prefer == PREFER_LEAST_BALANCED);
}

void generic_normalise(int64_t *score, size_t nr)
{
	wide low = INT64_MAX, high = INT64_MIN;

	for (size_t i = 0; i < nr; i++) {
		low = score[i] < low ? score[i] : low;
		high = score[i] > high ? score[i] : high;
	}
	for (size_t i = 0; i < nr; i++)
		score[i] = low == high ? 0 : (int64_t)((score[i] - low) * PERCENT / (high - low));
}
