#ifndef NUMAFIT_NUMAFITD_METRICS_H
#define NUMAFIT_NUMAFITD_METRICS_H

struct daemon;

/* Metrics and health over HTTP, where metrics.address says; an address that cannot be
 * had is logged, and tried again. */
void metrics_start(struct daemon *d);
void metrics_stop(struct daemon *d);

#endif
