#ifndef NUMAFIT_BENCH_H
#define NUMAFIT_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND           0
#define CALLGRIND_TOGGLE_COLLECT      (void)0
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

/* A case of `make bench` is run n times and printed as one row for test/bench/run, which makes the
 * table: name, unit, n, median, p99, how many answers are the best found until the budget ran out
 * ("-": no such thing), the answer ("-": not printed), with tabs between them. Lines that follow a
 * row and begin with a space belong to it. Under callgrind nothing is printed, cases run a few
 * times, and each run's instructions are dumped under the name of its case. */

enum { BENCH_COUNTED = 5 };

struct bench_row {
	const char *name, *unit;
	uint64_t *values; /* sorted when the row is printed */
	size_t n;
	const char *answer; /* NULL: not printed */
	bool has_budget;
	size_t incumbents;
};

static inline bool bench_counts(void)
{
	return RUNNING_ON_VALGRIND;
}

static inline size_t bench_runs(size_t n)
{
	return bench_counts() && n > BENCH_COUNTED ? BENCH_COUNTED : n;
}

static inline uint64_t bench_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t bench_begin(void)
{
	if (bench_counts())
		CALLGRIND_TOGGLE_COLLECT;
	return bench_now_ns();
}

/* What it took since bench_begin(), in ns. */
static inline uint64_t bench_end(const char *name, uint64_t from)
{
	uint64_t ns = bench_now_ns() - from;

	if (bench_counts()) {
		CALLGRIND_TOGGLE_COLLECT;
		CALLGRIND_DUMP_STATS_AT(name);
	}
	return ns;
}

static inline int bench_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static inline uint64_t bench_percentile(const uint64_t *sorted, size_t n, unsigned percent)
{
	return sorted[(n - 1) * percent / 100];
}

static inline void bench_print(const struct bench_row *r)
{
	char incumbents[sizeof "18446744073709551615"] = "-";

	if (bench_counts())
		return;
	if (r->has_budget)
		(void)snprintf(incumbents, sizeof incumbents, "%zu", r->incumbents);
	qsort(r->values, r->n, sizeof *r->values, bench_order);
	(void)printf("%s\t%s\t%zu\t%llu\t%llu\t%s\t%s\n", r->name, r->unit, r->n,
		(unsigned long long)bench_percentile(r->values, r->n, 50),
		(unsigned long long)bench_percentile(r->values, r->n, 99), incumbents,
		r->answer ? r->answer : "-");
}

/* Run the statement `what` as often as it takes, and print the row; answer is text that the
 * statement leaves behind, or NULL. */
#define BENCH_ANSWER(name_, n_, answer_, what)                                                     \
	do {                                                                                       \
		struct bench_row row_ = {.name = (name_), .unit = "ns", .n = bench_runs(n_)};      \
		row_.values = calloc(row_.n, sizeof *row_.values);                                 \
		for (size_t i_ = 0; i_ < row_.n; i_++) {                                           \
			uint64_t from_ = bench_begin();                                            \
			what;                                                                      \
			row_.values[i_] = bench_end(row_.name, from_);                             \
		}                                                                                  \
		row_.answer = (answer_);                                                           \
		bench_print(&row_);                                                                \
		free(row_.values);                                                                 \
	} while (0)
#define BENCH(name, n, what) BENCH_ANSWER(name, n, NULL, what)

#endif
