#include "stats.h"

#include <math.h>
#include <numafit/mem.h>
#include <string.h>

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct spread spread_of(const double *values, unsigned n)
{
	if (!n)
		return (struct spread){0};
	auto_free double *sorted = xcalloc(n, sizeof *sorted);

	memcpy(sorted, values, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, order);
	return (struct spread){.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
		.min = sorted[0],
		.max = sorted[n - 1],
		.n = n};
}

double rank_of(const float *sorted, size_t n, double share)
{
	size_t rank = (size_t)ceil(share * (double)n);

	return (double)sorted[rank ? (rank > n ? n : rank) - 1 : 0];
}

enum verdict verdict_of(const struct spread *ours, const struct spread *theirs, bool more)
{
	if (ours->n < VERDICT_RUNS || theirs->n < VERDICT_RUNS)
		return VERDICT_FEW;
	if (ours->min <= theirs->max && theirs->min <= ours->max)
		return VERDICT_SAME;
	return (ours->min > theirs->max) == more ? VERDICT_BETTER : VERDICT_WORSE;
}

const char *verdict_text(char buf[VERDICT_TEXT_MAX], const struct spread *ours,
	const struct spread *theirs, bool more)
{
	enum verdict v = verdict_of(ours, theirs, more);
	double a = ours->median, b = theirs->median;
	const char *side = a > b ? "more" : "less",
		   *word = v == VERDICT_BETTER ? "better" : "worse";
	double times = a > b ? a / b : b / a;

	if (v == VERDICT_FEW)
		(void)snprintf(buf, VERDICT_TEXT_MAX, "too few runs");
	else if (v == VERDICT_SAME)
		(void)snprintf(buf, VERDICT_TEXT_MAX, "no difference");
	else if (!isfinite(times))
		(void)snprintf(buf, VERDICT_TEXT_MAX, "%s: %s", side, word);
	else if (times >= 2)
		(void)snprintf(
			buf, VERDICT_TEXT_MAX, "%.*f times %s: %s", times < 10, times, side, word);
	else
		(void)snprintf(buf, VERDICT_TEXT_MAX, "%.*f %% %s: %s", fabs(a - b) < b / 10,
			fabs(a - b) / b * 100, side, word);
	return buf;
}

const char *number_text(char buf[NUMBER_TEXT_MAX], double value)
{
	/* 9.996 has one digit less behind the point than 9.99: it is rounded to 10.0 */
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;

	(void)snprintf(buf, NUMBER_TEXT_MAX, "%.*f", digits, value);
	return buf;
}
