#ifndef NUMAFIT_NUMAFITD_MEASURE_H
#define NUMAFIT_NUMAFITD_MEASURE_H

#include <daemon-files/metrics_text.h>
#include <codec/status_json.h>
#include <nri/session.h>
#include <numafit/decision.h>
#include <numafit/request.h>

struct daemon;

struct measured {
	struct status_counters counters;
	struct metrics_counters metrics;
	uint64_t started_ns;
	uint64_t began_ns;  /* the event at hand */
	uint64_t waited_ns; /* before that it has waited so long for devices of claims */
};

/* What is counted for metrics alone. */

/* Around each of the runtime's events (struct nri_handler): how long its answer takes. */
void measure_began(void *ctx);
void measure_ended(void *ctx, enum nri_event event);
/* The policy's verdict about a pod, or a container. */
void measure_verdict(struct daemon *d, const struct decision *dec);
/* The decision about a container that is being created; req is what it asked for. */
void measure_admission(
	struct daemon *d, const struct request *req, const struct decision *dec, uint64_t took_ns);

#endif
