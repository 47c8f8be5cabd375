#ifndef NUMAFIT_NUMAFITD_WISHES_H
#define NUMAFIT_NUMAFITD_WISHES_H

#include <numafit/request.h>

struct daemon;

/* What pods' authors wish for (codec/wishes.h), in mode manage; what is passed over is logged.
 * After schedulers' advice, which comes before a wish for NUMA nodes. Texts live in *a. */
void wishes_of_container(const struct daemon *d, struct request *req, struct arena *a);
/* The same for each container of a pod whose containers are known. */
void wishes_of_pod(const struct daemon *d, struct pod *pod, struct arena *a);
/* The same for containers that run already: nothing is logged. */
void wishes_of_running(
	const struct daemon *d, struct request *containers, size_t nr, struct arena *a);

#endif
