#ifndef NUMAFIT_QOS_H
#define NUMAFIT_QOS_H

#include <numafit/pod.h>
#include <numafit/quantity.h>

/* The class of a pod whose status does not say it, exactly as Kubernetes works it out
 * (pkg/apis/core/v1/helper/qos): from the sums of what its containers, init containers among them,
 * request of CPUs and memory and of their limits; or, for a pod with resources of its own, from
 * those alone. The caller adds the one or the other. */

enum qos_resource { QOS_CPU, QOS_MEMORY, NR_QOS_RESOURCES };

/* Zeros are a pod of which nothing is added yet. */
struct qos_sums {
	struct quantity request[NR_QOS_RESOURCES], limit[NR_QOS_RESOURCES];
	bool unlimited; /* one that was added lacks a limit above 0 */
};

/* What one says of each resource; NULL: nothing. Only amounts above 0 count. */
struct qos_said {
	const struct quantity *request[NR_QOS_RESOURCES], *limit[NR_QOS_RESOURCES];
};
void qos_add(struct qos_sums *sums, const struct qos_said *said);
/* The class that all that was added comes to. */
enum qos qos_of(const struct qos_sums *sums);

#endif
