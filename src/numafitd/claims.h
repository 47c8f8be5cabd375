#ifndef NUMAFIT_NUMAFITD_CLAIMS_H
#define NUMAFIT_NUMAFITD_CLAIMS_H

#include <codec/status_json.h>

struct api;
struct daemon;

/* Devices that containers have through claims (DRA), with deviceClaims.enabled: where they are, by
 * the ResourceSlices of this node. d->claims is NULL without it. */
struct claims;

void claims_start(struct daemon *d);
/* From here on the slices are watched: there is an API server. */
void claims_watch(struct daemon *d, struct api *a);
/* Before the API server's client ends. */
void claims_stop(struct daemon *d);
/* For `numafit status` and the metrics; false: there are none. */
bool claims_status(const struct daemon *d, struct status_claims *out);

#endif
