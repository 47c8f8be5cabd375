#ifndef NUMAFIT_SIM_DEVICE_CHOICE_H
#define NUMAFIT_SIM_DEVICE_CHOICE_H

#include <numafit-sim/device_table.h>
#include <numafit/policy.h>

/* What a kubelet makes of the devices that are free: hints, their merge, and which devices a
 * container gets (pkg/kubelet/cm/devicemanager and topologymanager of 1.36). */

/* Merge the hints for the devices of the container, or (pod scope) of the whole pod. Working memory
 * comes from *a, a fixed arena. 0; -ENOMEM. */
int device_table_align(const struct device_table *d, const struct sim_pod *p, unsigned container,
	bool pod_scope, struct arena *a, struct policy_answer *out);

/* Which devices the container is to have, one flag for each device of the row. */
struct device_choice {
	unsigned row;
	size_t size;
	bool *chosen;     /* what the kubelet takes by itself */
	bool *taken;      /* of these, what it takes in any case */
	bool *candidates; /* what the rest may be of */
	bool open;        /* there is more than one way: the plugin may say which */
};
/* The choice for the container's ask-th resource under that affinity (devicesToAllocate). Flags
 * come from *a. 0; -ENOSPC in the kubelet's words; -ENOMEM. */
int device_table_choose(const struct device_table *d, const struct sim_pod *p, unsigned container,
	unsigned ask, const struct hint *affinity, struct arena *a, struct device_choice *out,
	struct err *e);
/* The plugin's answer to it becomes the choice. -EINVAL: it is not what was asked for. */
int device_table_prefer(const struct device_table *d, struct device_choice *c,
	const struct device_ids *answer, struct err *e);
/* The ids of the row's devices that are in a or b (NULL: none), from *a. */
struct device_ids device_table_ids(const struct device_table *d, unsigned row, const bool *in,
	const bool *or_in, struct arena *a);

#endif
