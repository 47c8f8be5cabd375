#ifndef NUMAFIT_NUMAFITD_MEASURE_H
#define NUMAFIT_NUMAFITD_MEASURE_H

#include <codec/metrics_text.h>
#include <codec/status_json.h>
#include <nri/session.h>
#include <numafit/decision.h>
#include <numafit/request.h>

struct daemon;

struct measured {
	struct status_counters counters;
	struct metrics_counters metrics;
	uint64_t started_ns;
};

/* What is counted for metrics alone. */

/* The mode's handler, with the time that each of its answers takes. */
struct nri_handler measure_hooks(struct daemon *d, const struct nri_handler *of);
/* The policy's verdict about a pod, or a container. */
void measure_verdict(struct daemon *d, const struct decision *dec);
/* The decision about a container that is being created; req is what it asked for. */
void measure_admission(
	struct daemon *d, const struct request *req, const struct decision *dec, uint64_t took_ns);

#endif
