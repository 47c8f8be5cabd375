#ifndef NUMAFIT_SIM_DEVICE_TABLE_H
#define NUMAFIT_SIM_DEVICE_TABLE_H

#include <numafit-sim/trace_yaml.h>
#include <kubelet/device_plugin_pb.h>
#include <kubelet/pods_pb.h>
#include <numafit/policy.h>
#include <numafit/settings.h>
#include <numafit/vec.h>

/* The devices of a simulated kubelet, and the pods that have them. */

/* A resource: a row of the table, once it was heard of, for ever. */
struct device_row {
	char *name;
	struct arena arena;    /* its devices */
	struct device *device; /* ascending by id */
	unsigned nr;
};

/* What a container was given of a resource. */
struct given {
	unsigned container, row;
	struct device_ids ids;
};
struct given_annotation {
	unsigned container;
	struct key_value pair;
};

/* A pod that is admitted, or on its way. */
struct sim_pod {
	struct arena arena; /* all that follows */
	struct known_pod spec;
	unsigned row[POD_DEVICES_MAX]; /* of the spec's resources */
	struct {
		VEC(struct given);
	} given;
	struct {
		VEC(struct given_annotation);
	} annotations;
	bool admitted;
	bool has_sandbox; /* for so long that clients could ask what it was given */
};

struct device_table {
	const struct topo *topo;
	const struct settings *settings;
	unsigned nr_rows;
	struct device_row row[POD_DEVICES_MAX];
	VEC(struct sim_pod *);
};

/* One with a machine and settings, and zeros, is empty. */
void device_table_fini(struct device_table *d);

/* The row of that resource, or -1; made when there is none: -E2BIG. */
int device_table_find(const struct device_table *d, const char *resource);
int device_table_row(struct device_table *d, const char *resource, struct err *e);
/* The place of the device of that id, or -1. */
int device_row_find(const struct device_row *row, const char *id);
/* Enter devices that have no plugin. -EINVAL: a NUMA node that the machine lacks. */
int device_table_make_up(
	struct device_table *d, const struct trace_devices *from, size_t nr, struct err *e);
/* All devices of the row, from its plugin. 0; -EINVAL: the list is one that a kubelet or its pods
 * do not bear: an id twice, one that a container has is missing or unhealthy. */
int device_table_replace(struct device_table *d, unsigned row, const struct plugin_device *list,
	size_t nr, struct err *e);
/* Its plugin has gone: no device of it is healthy. */
void device_table_stop(struct device_table *d, unsigned row);

/* A new pod with a copy of that spec. NULL with text: too large, or asks for more resources than
 * there can be. */
struct sim_pod *device_table_add_pod(
	struct device_table *d, const struct known_pod *spec, struct err *e);
void device_table_remove_pod(struct device_table *d, struct sim_pod *p);
struct sim_pod *device_table_pod(const struct device_table *d, const char *uid);
/* The place of the pod's container of that name, or -1. */
int sim_pod_container(const struct sim_pod *p, const char *name);
/* Note that the container has these devices. */
void sim_pod_give(
	struct sim_pod *p, unsigned container, unsigned row, const struct device_ids *ids);
void sim_pod_annotate(
	struct sim_pod *p, unsigned container, const struct key_value *pairs, size_t nr);

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
