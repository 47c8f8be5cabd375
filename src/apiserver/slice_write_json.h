#ifndef NUMAFIT_APISERVER_SLICE_WRITE_JSON_H
#define NUMAFIT_APISERVER_SLICE_WRITE_JSON_H

#include <numafit/resource_claim.h>
#include <numafit/slice_store.h>

struct json_t; /* jansson's */

/* The ResourceSlice (resource.k8s.io/v1) of this node's NUMA nodes, as it is written, and as the
 * API server has it afterwards: one pool, which has the node's name, in one slice. The order of the
 * devices is the scheduler's: it takes the first one that fits. */

/* The key of the taint of a device that is closed; its effect is NoSchedule. */
#define SLICE_TAINT_CLOSED "numafit.io/closed"

struct slice_node {
	unsigned node_id;   /* the NUMA node's kernel id: resource.kubernetes.io/numaNode */
	unsigned socket;    /* numafit.io/socket, */
	bool many_sockets;  /* unless the CPUs are on several: then there is no such attribute */
	unsigned nr_caches; /* of level 3: numafit.io/l3Caches */
	unsigned threads;   /* of a core: numafit.io/threadsPerCore */
	uint64_t cpus;
	bool whole_cores;   /* CPUs are asked for by cores: so many threads at a time */
	unsigned nr_memory; /* as in struct claim_share */
	struct memory_ask memory[TOPO_KINDS];
	bool closed; /* a taint with effect NoSchedule: no claim is to come here */
};

/* What can be written of a node: a capacity of less than one step of what may be asked for (a page,
 * a core) is refused by Kubernetes, and is left out; where a core is one thread, whole_cores says
 * nothing. */
struct slice_node slice_node_writable(const struct slice_node *node);
/* Whether both say the same. */
bool slice_node_equal(const struct slice_node *a, const struct slice_node *b);

enum { SLICE_OBJECT_NAME_MAX = 254 /* with its end */ };
/* The name of the object: NODE-numafit.io, and a shorter one with a hash where that is too long for
 * a name. Returns buf. */
const char *slice_object_name(char buf[SLICE_OBJECT_NAME_MAX], const char *node_name);

struct slice_to_write {
	const char *name;                 /* of the object */
	const char *node_name, *node_uid; /* its owner; node_uid NULL: it has none */
	uint64_t generation;
	const char *resource_version; /* to replace the one of that version; NULL: it is new */
	size_t nr;                    /* 1 to SLICE_DEVICES_MAX (slice_store.h) */
	const struct slice_node *node;
};

/* As JSON, which is to be freed. A capacity of 0 is left out, and so is a device without any CPU
 * (with whole_cores, core); of a single CPU 1 is the only valid amount, as no range of one CPU is
 * accepted, and likewise of a single core. NULL: a text is not UTF-8. */
char *slice_write_json(const struct slice_to_write *s);

/* What any slice says of itself; "" and 0 for what cannot be read. Texts are borrowed. */
struct slice_head {
	const char *name, *version; /* of the object; its resourceVersion */
	const char *driver, *node_name, *pool;
	uint64_t generation;
};
void slice_head_read(const struct json_t *object, struct slice_head *out);

/* What slice_write_json() has written, as the server has it now. */
struct slice_written {
	const char *owner_uid; /* borrowed; NULL: it has no owner */
	size_t nr;
	struct slice_node node[SLICE_DEVICES_MAX];
};
/* What the server adds (metadata, the time of a taint) is passed by, and quantities are compared as
 * numbers. 0; -EINVAL with text, and *out is half filled: slice_write_json() would have written it
 * otherwise. */
int slice_written_read(const struct json_t *object, struct slice_written *out, struct err *e);

#endif
