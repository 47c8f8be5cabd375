#ifndef NUMAFIT_TOPO_H
#define NUMAFIT_TOPO_H

#include <numafit/cpuset.h>
#include <numafit/nodeset.h>

/* A machine as the decisions see it: NUMA nodes, CPUs, distances, memory. It is filled once by a
 * neighbour or a codec, sealed, and never changes again. NUMA nodes are dense indexes everywhere
 * but in ids; CPUs, cores, sockets and caches keep the numbers that the kubelet would use
 * (cadvisor's, see pkg/kubelet/cm/cpumanager/topology). */

/* Kinds of memory: 0 is "memory" (all of a node's, huge pages included), 1.. are the huge page
 * sizes of the machine, "hugepages-2Mi" and so on, ascending. */
enum { TOPO_KINDS = 8, TOPO_NAME_MAX = 64 };
enum { DISTANCE_MIN = 10, DISTANCE_MAX = 254 };

struct topo_cpu {
	uint16_t core;   /* lowest CPU id of the core's threads */
	uint16_t socket; /* as reported */
	uint16_t uncore; /* id of the last-level cache that the core belongs to */
	uint8_t node;    /* dense index */
};

struct topo_node {
	struct cpuset cpus;          /* online ones; empty on a memory-only node */
	uint64_t memory[TOPO_KINDS]; /* bytes in total, by kind */
};

/* What CPUs can share. Sockets, caches and cores go by the numbers in struct topo_cpu. */
enum topo_level { LEVEL_NODE, LEVEL_SOCKET, LEVEL_UNCORE, LEVEL_CORE, TOPO_LEVELS };

struct topo {
	char name[TOPO_NAME_MAX];
	bool this_machine; /* not a recording or a text: cgroups here are real */
	bool made_up; /* set before topo_seal(): of a question; need not be possible in hardware */
	struct node_ids ids;
	struct nodeset nodes, nodes_with_cpus, nodes_with_memory;
	struct cpuset nodeless; /* online CPUs of no NUMA node: not in cpus, for no container */
	struct cpuset isolated; /* that the kernel's scheduler leaves alone (isolcpus=, isolated
				   cpuset partitions); some of them may be none of cpus */
	struct nodeset device_memory; /* nodes whose memory is a device's (a GPU's); without CPUs */
	struct topo_node node[NODES_MAX];
	bool has_distances;
	uint8_t distance[NODES_MAX]
			[NODES_MAX];     /* [from][to], 10..254, dense; 10 and 20 without a table */
	unsigned nr_kinds;               /* 1 + huge page sizes */
	uint64_t page_bytes[TOPO_KINDS]; /* [0] is 0 */
	struct cpuset cpus;              /* all online CPUs */
	unsigned nr_cpus, nr_cores, nr_sockets, nr_uncores;
	struct topo_cpu cpu[CPUSET_BITS]; /* by CPU id; only those in cpus mean anything */
	uint16_t part_size[TOPO_LEVELS][CPUSET_BITS]; /* CPUs of each part, by its number */
	uint16_t smallest_part[TOPO_LEVELS];
	uint16_t next_thread[CPUSET_BITS]; /* the CPU's next one of its core, from the lowest one
					      on; CPUSET_BITS: it is the last one */
};

/* Building, in this order: nodes, then the rest in any order, then topo_seal(). All return 0 or
 * -EINVAL (the text says which node or CPU and why), -ERANGE for an id or a count that is too
 * large for numafit (more than 64 NUMA nodes, a CPU id above 1023), -EEXIST for a second one. */
void topo_init(struct topo *t, const char *name);
/* Add the NUMA node with this kernel id; ids come in ascending order. Returns its index. */
int topo_add_node(struct topo *t, unsigned id, struct err *e);
/* Add CPU id to a node. core, socket and uncore are any numbers below CPUSET_BITS that are equal
 * for CPUs that share one; topo_seal() renames cores after their lowest CPU. */
int topo_add_cpu(struct topo *t, unsigned id, unsigned node, unsigned core, unsigned socket,
	unsigned uncore, struct err *e);
/* Set bytes of memory on a node; page_bytes 0 is ordinary memory, else that huge page size. */
int topo_set_memory(
	struct topo *t, unsigned node, uint64_t page_bytes, uint64_t bytes, struct err *e);
/* That node's memory belongs to a device. topo_seal() takes the mark off a node that has CPUs. */
int topo_set_device_memory(struct topo *t, unsigned node, struct err *e);
int topo_set_distance(struct topo *t, unsigned from, unsigned to, unsigned distance, struct err *e);
/* Check the whole and derive the counts. Refused: no node, no CPU, a distance table that is not
 * complete, a distance outside 10..254, one core on two nodes or sockets; and, unless the machine
 * is made up, a node that is farther from itself than from another one, and huge pages that exceed
 * the node's memory. */
int topo_seal(struct topo *t, struct err *e);

/* The part of that level that the CPU belongs to. */
static inline unsigned topo_part_of(const struct topo *t, unsigned cpu, enum topo_level level)
{
	switch (level) {
	case LEVEL_NODE:
		return t->cpu[cpu].node;
	case LEVEL_SOCKET:
		return t->cpu[cpu].socket;
	case LEVEL_UNCORE:
		return t->cpu[cpu].uncore;
	case LEVEL_CORE:
	case TOPO_LEVELS:
		break;
	}
	return t->cpu[cpu].core;
}

/* The node's CPUs that are each the thread-th (from 0) of its core: empty behind the last one. */
struct cpuset topo_threads_of(const struct topo *t, unsigned node, unsigned thread);
/* The union of the nodes' CPUs. */
struct cpuset topo_cpus_of(const struct topo *t, struct nodeset nodes);
/* The nodes that have a CPU of *cpus. */
struct nodeset topo_nodes_of(const struct topo *t, const struct cpuset *cpus);
/* The sockets, by the numbers of struct topo_cpu, that have a CPU of *cpus. The CPUs of one NUMA
 * node may lie on several. */
struct cpuset topo_sockets_of(const struct topo *t, const struct cpuset *cpus);
/* Bytes of that kind on all the nodes together. */
uint64_t topo_memory_of(const struct topo *t, struct nodeset nodes, unsigned kind);

/* The sum of the distances over all ordered pairs of nodes of the set, a node with itself
 * included: at equal size it orders sets as the average does (kubelet numa_info.go). */
uint64_t topo_distance_sum(const struct topo *t, struct nodeset nodes);
/* That sum divided by the number of pairs: 10 for one node; 0 for the empty set. */
double topo_distance_average(const struct topo *t, struct nodeset nodes);

/* "memory", "hugepages-2Mi", ...: into buf of cap (>= TEXT_SIZE_MAX + 10) bytes; returns buf. */
const char *topo_kind_name(const struct topo *t, unsigned kind, char *buf, size_t cap);
/* The kind of that page size (0: memory), or -1 when the machine has no such huge pages. */
int topo_kind_of_page(const struct topo *t, uint64_t page_bytes);

/* A checksum over what stays as it is while a machine runs: NUMA nodes, distances, CPUs, sizes of
 * huge pages. How much memory there is may change (ballooning) and is left out. */
uint32_t topo_fingerprint(const struct topo *t);

#endif
