#ifndef NUMAFIT_CPUSET_H
#define NUMAFIT_CPUSET_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of kernel CPU ids 0..CPUSET_BITS-1. A plain value: copy with =, compare with
 * cpuset_equal(), nothing to free. (NUMA nodes have their own type, struct nodeset.) */
enum { CPUSET_BITS = 1024, CPUSET_WORDS = CPUSET_BITS / 64 };
struct cpuset {
	uint64_t w[CPUSET_WORDS];
};

static inline void cpuset_add(struct cpuset *s, unsigned cpu)
{
	s->w[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}
static inline void cpuset_del(struct cpuset *s, unsigned cpu)
{
	s->w[cpu / 64] &= ~(UINT64_C(1) << (cpu % 64));
}
static inline bool cpuset_has(const struct cpuset *s, unsigned cpu)
{
	return cpu < CPUSET_BITS && (s->w[cpu / 64] >> (cpu % 64) & 1);
}

struct cpuset cpuset_and(struct cpuset a, const struct cpuset *b);
struct cpuset cpuset_or(struct cpuset a, const struct cpuset *b);
/* a without b */
struct cpuset cpuset_minus(struct cpuset a, const struct cpuset *b);
bool cpuset_equal(const struct cpuset *a, const struct cpuset *b);
bool cpuset_empty(const struct cpuset *s);
bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b);
/* Whether every CPU of a is in b. */
bool cpuset_within(const struct cpuset *a, const struct cpuset *b);
unsigned cpuset_count(const struct cpuset *s);
/* How many CPUs a and b have in common. */
unsigned cpuset_count_and(const struct cpuset *a, const struct cpuset *b);
/* The lowest id >= from, or CPUSET_BITS when there is none. */
static inline unsigned cpuset_next(const struct cpuset *s, unsigned from)
{
	if (from >= CPUSET_BITS)
		return CPUSET_BITS;
	unsigned i = from / 64;
	uint64_t rest = s->w[i] >> (from % 64) << (from % 64);

	while (!rest) {
		if (++i == CPUSET_WORDS)
			return CPUSET_BITS;
		rest = s->w[i];
	}
	return i * 64 + (unsigned)__builtin_ctzll(rest);
}

/* for each CPU id of *set, ascending */
#define cpuset_each(cpu, set)                                                                      \
	for (unsigned cpu = cpuset_next((set), 0); cpu < CPUSET_BITS;                              \
		cpu = cpuset_next((set), cpu + 1))

/* Parse a kernel list ("0-3,8"; spaces and a newline around it are fine), len bytes, into *out.
 * Empty text is the empty set. 0; -EINVAL on bad syntax, -ERANGE on an id >= CPUSET_BITS
 * (*out untouched). */
int cpuset_parse(struct cpuset *out, const char *s, size_t len, struct err *e);

/* Any set fits into this many bytes: two ids of every three, written as "1000-1001,". */
enum { CPUSET_TEXT_MAX = (CPUSET_BITS / 3 + 1) * 10 };
/* The kernel list of *s ("0-3,8"; "" when empty) into buf of cap bytes. Returns buf; with
 * cap >= CPUSET_TEXT_MAX nothing is ever cut. */
const char *cpuset_format(const struct cpuset *s, char *buf, size_t cap);

#endif
