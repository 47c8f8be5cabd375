#ifndef NUMAFIT_BENCH_H
#define NUMAFIT_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One row of `make bench`: a case is run n times, and what each run took is told as median and p99.
 * With JSON=FILE in the environment every row is appended there as one line, too. */

static inline uint64_t bench_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline int bench_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A row of any unit; values are sorted here. */
static inline void bench_row_of(const char *name, const char *unit, uint64_t *values, size_t n)
{
	const char *path = getenv("JSON");

	qsort(values, n, sizeof *values, bench_order);
	uint64_t median = values[n / 2], p99 = values[n - 1 - n / 100];
	(void)printf("%-28s %12llu %s median %12llu %s p99 %8zu runs\n", name,
		(unsigned long long)median, unit, (unsigned long long)p99, unit, n);
	FILE *f = path && *path ? fopen(path, "a") : NULL;
	if (!f)
		return;
	(void)fprintf(f,
		"{\"name\":\"%s\",\"unit\":\"%s\",\"n\":%zu,\"median\":%llu,\"p99\":%llu}\n", name,
		unit, n, (unsigned long long)median, (unsigned long long)p99);
	(void)fclose(f);
}

static inline void bench_row(const char *name, uint64_t *ns, size_t n)
{
	bench_row_of(name, "ns", ns, n);
}

/* Run the statement `what` n times and print the row. */
#define BENCH(name, n, what)                                                                       \
	do {                                                                                       \
		uint64_t *ns_ = calloc((n), sizeof *ns_);                                          \
		for (size_t i_ = 0; i_ < (n); i_++) {                                              \
			uint64_t from_ = bench_now_ns();                                           \
			what;                                                                      \
			ns_[i_] = bench_now_ns() - from_;                                          \
		}                                                                                  \
		bench_row((name), ns_, (n));                                                       \
		free(ns_);                                                                         \
	} while (0)

#endif
