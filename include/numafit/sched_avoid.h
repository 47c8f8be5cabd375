#ifndef NUMAFIT_SCHED_AVOID_H
#define NUMAFIT_SCHED_AVOID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes that refused a workload a short while ago: without a memory of that a controller makes a
 * pod after the other for the same node (kubernetes/kubernetes issue 84869). Bounded: the oldest
 * goes when there are too many. */
struct sched_avoid;

enum {
	SCHED_AVOID_MAX = 4096,
	SCHED_AVOID_FIRST_MS = 30 * 1000,
	SCHED_AVOID_MOST_MS = 3600 * 1000
};

struct sched_avoid *sched_avoid_new(void);
void sched_avoid_free(struct sched_avoid *a);
/* The node refused a pod of that workload (any name that is its alone): avoided for
 * SCHED_AVOID_FIRST_MS, twice as long each time, up to SCHED_AVOID_MOST_MS. The same pod's refusal
 * counts once. */
void sched_avoid_refused(struct sched_avoid *a, const char *workload, const char *node,
	const char *pod_uid, int64_t now_ms);
/* It took one: all is forgotten. */
void sched_avoid_took(struct sched_avoid *a, const char *workload, const char *node);
bool sched_avoid_is(
	const struct sched_avoid *a, const char *workload, const char *node, int64_t now_ms);
size_t sched_avoid_count(const struct sched_avoid *a, int64_t now_ms);

#endif
