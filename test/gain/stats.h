#ifndef NUMAFIT_GAIN_STATS_H
#define NUMAFIT_GAIN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What can be said of a few runs. */

/* The middle of n values (of two in the middle their mean) and where they end; zeros where n is 0.
 */
struct spread {
	double median, min, max;
	unsigned n;
};
struct spread spread_of(const double *values, unsigned n);

/* The smallest of n sorted values that the share (0 to 1) of all does not exceed; n is 1 or more.
 */
double rank_of(const float *sorted, size_t n, double share);

/* Two arms differ when all runs of one are above all runs of the other: with VERDICT_RUNS runs
 * each, equal arms do so by chance once in 35 times (2 of 70 orders), with five once in 126. With
 * fewer nothing is said. */
enum { VERDICT_RUNS = 4 };
enum verdict { VERDICT_FEW, VERDICT_SAME, VERDICT_BETTER, VERDICT_WORSE };
enum verdict verdict_of(const struct spread *ours, const struct spread *theirs, bool more);

/* The same in words, by the medians: "no difference", "23 % more: better", "12 times less: better".
 */
enum { VERDICT_TEXT_MAX = 64 };
const char *verdict_text(char buf[VERDICT_TEXT_MAX], const struct spread *ours,
	const struct spread *theirs, bool more);

/* A figure with three digits that say something: "0.213", "21.3", "2130". */
enum { NUMBER_TEXT_MAX = 32 };
const char *number_text(char buf[NUMBER_TEXT_MAX], double value);

#endif
