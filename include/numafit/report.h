#ifndef NUMAFIT_REPORT_H
#define NUMAFIT_REPORT_H

#include <numafit/nrt_fingerprint.h>
#include <numafit/numaplacement.h>
#include <numafit/room.h>

/* What schedulers read of the node: of each resource what every NUMA node has, gives out and
 * has left, by whose rules, and for which pods that accounts. Available is what a newcomer could be
 * given on that NUMA node alone. */

/* What decides on which NUMA nodes containers run. */
enum decider { DECIDER_NOBODY, DECIDER_NUMAFIT, DECIDER_KUBELET, NR_DECIDERS };
extern const char *const decider_words[NR_DECIDERS]; /* "none", "numafit", "kubelet" */

/* The rules that go by. Zeros: none. */
struct report_policy {
	enum topology_policy policy;
	enum topology_scope scope;
	bool prefer_closest_numa_nodes;
	unsigned max_allowable_numa_nodes; /* 0: not set */
	enum allocation_strategy strategy;
	enum manager_policy cpu_manager;
};

/* Devices of one resource, by dense NUMA node. A resource none of whose devices says where it is
 * does not belong here: a scheduler looks for those that are listed on NUMA nodes alone. */
struct report_devices {
	const char *resource;
	unsigned allocatable[NODES_MAX], used[NODES_MAX];
};

/* What the ledger does not know. Borrowed as long as the report. */
struct report_facts {
	const char *node_name, *node_uid;
	uint64_t generation;                 /* of what is free */
	const struct report_policy *kubelet; /* mode shadow; NULL: not known */
	const struct report_devices *devices;
	size_t nr_devices;
	void *ctx;
	/* optional: whether the container has devices of these resources; the NUMA nodes that they
	 * are on are added to *nodes. */
	bool (*has_devices)(void *ctx, const struct holding *h, struct nodeset *nodes);
};

struct report_amounts {
	uint64_t capacity, allocatable, available; /* CPUs, bytes or devices */
};
struct report_resource {
	const char *name;
	struct report_amounts on[NODES_MAX]; /* by dense NUMA node */
};

enum { REPORT_POD_DIGITS = 16 };

struct report {
	const char *node_name, *node_uid;
	const struct topo *topo;
	uint64_t generation;
	enum decider decider;
	bool has_policy; /* false: the kubelet's, and not known */
	struct report_policy policy;
	/* Ascending by name (byte order): cpu, memory, each size of huge pages, numafit.io/cpu when
	 * it is served, and the devices. All of them are there for every NUMA node, if only as 0: a
	 * scheduler takes what no NUMA node lists for never to be had. */
	const struct report_resource *resource;
	size_t nr_resources;
	struct node_fragmentation fragmentation; /* of what is available */
	enum pods_fingerprint fingerprint_of;
	char fingerprint[FINGERPRINT_TEXT_MAX]; /* "" with PODS_FINGERPRINT_NONE */
	/* The very pods that count for a fingerprint with exclusive resources, as REPORT_POD_DIGITS
	 * hexadecimal digits of fingerprint_pod() each, ascending: so that a scheduler's side
	 * knows of each one whether this report contains it. */
	const char *pods;
	/* In the same order the NUMA nodes that each of them holds something of, as as many
	 * hexadecimal digits of their dense indexes' bits. */
	const char *pod_zones;
	bool has_placement; /* every container that counts is on just one NUMA node */
	struct numaplacement placement;
};

/* Take it. *out lives in *a and borrows from *f and the ledger. 0, or -ENOMEM: the arena's limit.
 *
 * CPUs and memory are as room_take() has them, of CPUs not more than the shared pool can give up.
 *
 * Fingerprint and placement count the containers that schedulers count (nrt_pod_is_exclusive()), by
 * their asks and devices: apps and sidecars of Guaranteed pods that ask for whole CPUs or memory,
 * and those with devices. Schedulers can read the placement only when it has all of those, and
 * each has one NUMA node: if not, there is none. */
int report_take(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a);

#endif
