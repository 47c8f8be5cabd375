/* core: how long things took */
#ifndef NUMAFIT_HISTOGRAM_H
#define NUMAFIT_HISTOGRAM_H

#include <stdint.h>

/* How long things took, as counts: how many took no longer than each of a row of bounds that
 * double. They are the kubelet's (topology_manager_admission_duration_ms: from 50 us to 819.2 ms,
 * pkg/kubelet/metrics/metrics.go), and two below them. A plain value; zeros are an empty one. */

enum { HISTOGRAM_BOUNDS = 17, HISTOGRAM_FIRST_NS = 12500 };

struct histogram {
	uint64_t within[HISTOGRAM_BOUNDS]; /* of each bound, and not of the one before it */
	uint64_t beyond;                   /* longer than all of them */
	uint64_t sum_ns;
};

static inline uint64_t histogram_bound_ns(unsigned i)
{
	return (uint64_t)HISTOGRAM_FIRST_NS << i;
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	unsigned i = 0;

	while (i < HISTOGRAM_BOUNDS && ns > histogram_bound_ns(i))
		i++;
	if (i < HISTOGRAM_BOUNDS)
		h->within[i]++;
	else
		h->beyond++;
	h->sum_ns += ns;
}

#endif
