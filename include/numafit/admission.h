#ifndef NUMAFIT_ADMISSION_H
#define NUMAFIT_ADMISSION_H

#include <numafit/decision.h>
#include <numafit/devices.h>
#include <numafit/memory.h>
#include <numafit/pod.h>
#include <numafit/reasons.h>
#include <numafit/advice.h>
#include <numafit/settings.h>

/* A pod's way in, as the kubelet's Topology Manager leads it over the device, CPU and memory
 * managers in this order
 * (pkg/kubelet/cm/topologymanager/{scope_container,scope_pod,scope_none}.go): for each container,
 * or once for the pod (scope), hints -> merge -> the policy's verdict; then each container is given
 * its devices, CPUs and memory, the next one seeing what the one before has taken. The keeper of a
 * node's state lends it as books. */

/* Who gets CPUs that are isolated (struct topo), of those who do not require them. */
enum isolated_use {
	ISOLATED_FOR_ALL, /* as the kubelet has it, which does not know them */
	ISOLATED_FOR_WHO_WISHES,
	ISOLATED_FOR_NOBODY
};

/* What a node has left. A plain value. */
struct books {
	const struct topo *t;
	const struct settings *s;
	struct cpuset reserved;
	struct cpuset shared;   /* CPUs that no container has for itself; reserved ones are among
				   them unless strict-cpu-reservation */
	struct cpuset promised; /* of these, what no other pod gets (ledger_promised_cpus()) */
	struct cpuset unshared; /* of these, what containers without CPUs of their own never run on */
	enum isolated_use isolated;
	unsigned keep_shared;   /* fewest of the others that must be left; 0: as in the kubelet, any */
	struct memory_state memory;
	const struct device_resource *resource;
	unsigned nr_resources;
	bool *held[POD_DEVICES_MAX]; /* by resource: devices that a container holds */
};

/* The CPUs that a container may get for itself: shared ones, neither promised nor reserved. */
struct cpuset books_free_cpus(const struct books *b);

/* What one container is given. */
struct grant {
	struct hint affinity;
	struct cpuset cpus;            /* its own ones; empty: it runs on the shared CPUs */
	struct nodeset mems;           /* where its memory is; empty: anywhere */
	bool *device[POD_DEVICES_MAX]; /* by resource: a flag for each of its devices; NULL: none */
	struct advice_result advice;
	enum topology_policy policy;   /* the one that gave the verdict */
	bool cut_short;                /* some search for it ran out of its budget */
	const struct reasons *reasons; /* NULL: nothing was merged for it */
};

/* What a pod is given, container by container. */
struct grants {
	unsigned nr;
	struct grant *of;
	/* What is booked for each; of an init container's memory what no later one takes over. */
	struct memory_container *memory;
	/* A pod that was given its own resources as one: what its containers have is within these,
	 * and only these are booked. */
	bool as_one;
	struct cpuset pod_cpus;
	struct memory_container pod_memory;
};

/* Why a pod was refused: the words of its status, and which container it was. */
enum { REFUSAL_MESSAGE_MAX = 256 };
struct refusal {
	const char *reason; /* a literal, "TopologyAffinityError" for one */
	char message[REFUSAL_MESSAGE_MAX];
	unsigned place;
	enum refusal_cause cause;
	bool of_pod;                   /* not that container, but the pod as a whole */
	bool cut_short;                /* some search for the pod ran out of its budget */
	const struct reasons *reasons; /* of the merge that refused it, or NULL */
	struct advice_result advice;
};

/* Enter what the pod is given in *b. settled, when not NULL, is the affinity of the whole pod,
 * chosen before: nothing is merged. Schedulers' advice (ask.advice) is followed when the
 * pod as a whole is admitted as it is without it, with as much of everything in places as good;
 * advice that must be followed and cannot be refuses the pod. *out and working memory come from
 * *a, which must be fixed (arena_init_fixed()); all its searches together spend *budget. 0, or
 * -EPERM with *why; *out then has what was given until that point and is still booked
 * (grants_return()). */
int admission(struct books *b, const struct pod *pod, const struct hint *settled,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why);

/* Give back all that the grants hold. Memory of a group may come back on other nodes of it than it
 * was taken from, as in the kubelet. */
void grants_return(struct books *b, const struct grants *g);

#endif
