#ifndef NUMAFIT_HOST_CGROUP_MEMORY_H
#define NUMAFIT_HOST_CGROUP_MEMORY_H

#include <host/cgroup.h>
#include <numafit/topo.h>

/* How much memory a cgroup uses on each NUMA node, and what of it cpuset.mems moves (cgroup v2
 * alone: memory.numa_stat, and hugetlb.SIZE.numa_stat where that controller is there). Cgroups
 * below it count, too. No heap, and bounded reads, as in cgroup.h; any thread.
 *
 * The kernel's counters lag: up to 64 pages for each CPU of the machine are counted two seconds
 * later. And while pages move a reading takes it much longer, up to a hundred times in an emulated
 * machine: not for each turn of a loop, and not on the way of a container's start. */

/* Bytes on one NUMA node; each counter is the kernel's (cgroup-v2.rst, "memory.stat"). */
struct cgroup_node_memory {
	uint64_t anon;        /* anonymous memory of processes, transparent huge pages among it */
	uint64_t file;        /* page cache, with shmem */
	uint64_t shmem;       /* of file: tmpfs and shared memory */
	uint64_t mapped;      /* of file: what a process has mapped */
	uint64_t unevictable; /* of anon and file: mlocked and such; the kernel moves it, too */
	uint64_t kernel;      /* kernel stacks, page tables, slab: it stays where it is */
	uint64_t huge;        /* hugetlb pages in use, in none of the above. Linux 6.1 still has
				 those that were moved at their old NUMA node */
};
struct cgroup_memory {
	bool knows_huge; /* there was a hugetlb.SIZE.numa_stat (since Linux 5.17) */
	struct cgroup_node_memory node[NODES_MAX]; /* by dense index */
};

/* Read that of the cgroup in that directory below the tree, the memory controller's; topo names the
 * NUMA nodes and sizes of huge pages. 0, or with *out untouched: -ENOENT: the cgroup is gone, or
 * the controller is not there; -EOPNOTSUPP: v1; -EINVAL: the file has something else, or bytes on a
 * NUMA node that the machine lacks; -EFBIG; -errno. */
int cgroup_memory_read(const struct cgroup_tree *memory, const char *directory,
	const struct topo *topo, struct cgroup_memory *out, struct err *e);

/* Sums over NUMA nodes, in bytes. */
struct cgroup_memory_sum {
	uint64_t in_use; /* anon and file: what a move copies at most */
	uint64_t moves;  /* anon and mapped: what it does copy; other page cache stays (measured) */
	uint64_t huge, unevictable, kernel; /* as above */
};
struct cgroup_memory_sum cgroup_memory_on(const struct cgroup_memory *m, struct nodeset nodes);

/* Parse the len bytes of a memory.numa_stat, or of a hugetlb.SIZE.numa_stat, whose bytes are added
 * to those that are in *out. 0; -EINVAL, with *out untouched. */
int cgroup_memory_parse(const char *text, size_t len, const struct node_ids *ids,
	struct cgroup_memory *out, struct err *e);
int cgroup_memory_parse_huge(const char *text, size_t len, const struct node_ids *ids,
	struct cgroup_memory *out, struct err *e);

#endif
