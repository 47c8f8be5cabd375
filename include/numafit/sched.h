#ifndef NUMAFIT_SCHED_H
#define NUMAFIT_SCHED_H

#include <numafit/pod.h>
#include <numafit/quantity.h>
#include <numafit/settings.h>
#include <numafit/vec.h>

/* What a scheduler's filters and scores look at: pods, nodes and what each NUMA zone has, as the
 * API server holds them. Plain values for every plugin; all strings and arrays are borrowed from
 * whoever filled them, except where a function here says that it owns them. Amounts are never
 * rounded here: a plugin does that, each in its own way (quantity.h). */

/* Names of resources are numbers in one table, so that they are compared as such. These are in
 * every table from the start. */
enum {
	RESOURCE_CPU,
	RESOURCE_MEMORY,
	RESOURCE_EPHEMERAL_STORAGE,
	RESOURCE_PODS,
	RESOURCE_STORAGE,
	NR_USUAL_RESOURCES
};

/* A name and what Kubernetes makes of it (pkg/apis/core/v1/helper/helpers.go). */
struct resource_kind {
	char *name;
	bool native;     /* no domain, or one with "kubernetes.io/" in it */
	bool huge_page;  /* "hugepages-..." */
	bool extended;   /* not native, and no "requests." in front of it */
	bool attachable; /* "attachable-volumes-..." */
	/* Nodes keep it among their allocatable (IsScalarResourceName, cpu, memory,
	 * ephemeral-storage, pods); of a node's other names schedulers know nothing. */
	bool of_nodes;
	bool of_pods; /* pods alone have brought it so far */
};
struct resource_entry;
/* Open to be read; at[i] belongs to number i. Owns its names. */
struct resource_table {
	VEC(struct resource_kind);
	struct resource_entry *by_name; /* hashed */
	size_t nr_of_pods;              /* at most RESOURCES_OF_PODS_MAX */
};
enum { RESOURCES_OF_PODS_MAX = 1024 };
/* The usual ones are in it; resource_table_fini() frees. */
void resource_table_init(struct resource_table *t);
void resource_table_fini(struct resource_table *t);
/* Whether the name is there; then *number is its number. */
bool resource_find(const struct resource_table *t, const char *name, unsigned *number);
/* The number of that name, entered if need be. Numbers stay as they are for the table's life. */
unsigned resource_number(struct resource_table *t, const char *name);
/* The same for a name that a pod brings, which anybody who may create pods makes up. False: it
 * would be new, and RESOURCES_OF_PODS_MAX names are there that pods alone have brought. */
bool resource_number_of_pod(struct resource_table *t, const char *name, unsigned *number);

struct amount {
	unsigned resource;
	struct quantity q;
};
/* Each resource at most once, in any order. An amount of 0 is there, and so counts as asked for. */
struct amounts {
	const struct amount *at;
	unsigned nr;
};
/* The amount of that resource, or NULL. */
const struct quantity *amounts_find(const struct amounts *a, unsigned resource);

struct sched_container {
	const char *name;
	enum container_kind kind;
	struct amounts requests, limits; /* as written: no request follows from a limit */
};

struct sched_pod {
	const char *ns, *name, *uid;
	enum qos qos; /* sched_pod_qos(), unless status.qosClass says one */
	const struct key_value *annotations;
	size_t nr_annotations;
	/* Init containers and sidecars in the order of spec.initContainers, then app containers. */
	const struct sched_container *container;
	unsigned nr_containers;
	struct amounts overhead;
	struct amounts own_requests, own_limits; /* spec.resources */
};

/* The class that follows from its containers' cpu and memory, init containers among them;
 * spec.resources is not looked at (qos.h; gate PodLevelResources off). */
enum qos sched_pod_qos(const struct sched_pod *p);

/* What a resource has in each zone: arrays by the zone's place in the list. */
struct zone_resource {
	unsigned resource;
	uint64_t listed; /* the zones that list it: bit = place; the others' amounts are 0 */
	struct quantity *available, *allocatable, *capacity;
};

enum { ZONES_MAX = NODES_MAX, ZONE_COST_UNKNOWN = 255 };
enum fingerprint_method { FINGERPRINT_ALL, FINGERPRINT_EXCLUSIVE };

/* A NodeResourceTopology, topology.node.k8s.io/v1alpha2. Zones keep the order of the object, which
 * some arithmetic depends on, and are spoken of by their place in it, below nr_zones; those that
 * are no NUMA node are left out (zone_numa_id()). Owned: sched_topology_free(). */
struct sched_topology {
	unsigned nr_zones;
	uint8_t zone_id[ZONES_MAX];
	int32_t *cost; /* [from * nr_zones + to]; ZONE_COST_UNKNOWN where the object says nothing */
	struct zone_resources {
		VEC(struct zone_resource);
	} resources;
	enum topology_policy policy; /* without a valid attribute: none, container, 8 */
	enum topology_scope scope;
	unsigned max_numa_nodes; /* 2 to 1024 */
	bool prefer_closest;     /* topologyManagerOptionPreferClosestNumaNodes is "true" */
	char *fingerprint;       /* nodeTopologyPodsFingerprint, the first one; NULL: none */
	enum fingerprint_method fingerprint_method;
};

/* The NUMA node's id of a zone: type "Node" and name "node-<decimal id>" with an id below
 * ZONES_MAX, else -1 (of no matter to NodeResourceTopologyMatch). For the name in a cost, type is
 * NULL. */
int zone_numa_id(const char *type, const char *name);
/* A topology of these zones, that knows no cost and no resource yet, without attributes. NULL when
 * there are more than ZONES_MAX. */
struct sched_topology *sched_topology_new(const uint8_t *zone_id, unsigned nr_zones);
void sched_topology_free(struct sched_topology *t);
/* topologyPolicies: the first entry alone counts. Before all attributes. */
void sched_topology_policy(struct sched_topology *t, const char *first);
/* One attribute of the object, in its order. Words that nobody knows change nothing. */
void sched_topology_attribute(struct sched_topology *t, const char *name, const char *value);
/* The distance from a zone to the one of that id, if there is one; limited to int32_t. */
void sched_topology_cost(struct sched_topology *t, unsigned zone, unsigned to_id, int64_t cost);
struct zone_amounts {
	struct quantity capacity, allocatable, available;
};
/* What a zone lists of a resource; the last of several counts. */
void sched_topology_resource(struct sched_topology *t, unsigned zone, unsigned resource,
	const struct zone_amounts *amounts);
/* The resource's entry, or NULL when no zone lists it. */
const struct zone_resource *sched_topology_find(const struct sched_topology *t, unsigned resource);

/* A node, and the pods that count there: each plugin says which ones. */
struct sched_node {
	const char *name;
	struct amounts allocatable; /* status.allocatable, all of it */
	const struct sched_pod *pods;
	size_t nr_pods;
	const struct sched_topology *topology; /* NULL: it has none */
};

/* What a filter says of a node: the framework's codes. */
enum sched_code {
	SCHED_SUCCESS,
	SCHED_ERROR,
	SCHED_UNSCHEDULABLE,
	SCHED_UNRESOLVABLE,
	NR_SCHED_CODES
};
/* "Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable". */
extern const char *const sched_code_words[NR_SCHED_CODES];
enum { SCHED_SCORE_MAX = 100 };

#endif
