#ifndef NUMAFIT_NUMAFITD_METRICS_H
#define NUMAFIT_NUMAFITD_METRICS_H

#include <stddef.h>

struct daemon;

/* Metrics and health over HTTP, where metrics.address says; an address that cannot be
 * had is logged, and tried again. */
void metrics_start(struct daemon *d);
void metrics_stop(struct daemon *d);
/* What /metrics answers, of *len bytes; the caller frees. */
char *metrics_document(const struct daemon *d, size_t *len);

#endif
