#ifndef NUMAFIT_SIM_CLUSTER_QUEUE_H
#define NUMAFIT_SIM_CLUSTER_QUEUE_H

#include <numafit/vec.h>
#include <stdbool.h>
#include <stdint.h>

/* What is to happen, by time; of one time in the order of entry. */
struct event {
	int64_t at_ms;
	uint64_t turn;
	unsigned kind, what;
};
struct event_queue {
	VEC(struct event); /* a heap: at[i] is not after at[2i + 1] and at[2i + 2] */
	uint64_t turn;
};

void event_queue_put(struct event_queue *q, int64_t at_ms, unsigned kind, unsigned what);
/* The next one into *out; false: there is none. */
bool event_queue_take(struct event_queue *q, struct event *out);

#endif
