#ifndef NUMAFIT_HOST_NODE_FILES_H
#define NUMAFIT_HOST_NODE_FILES_H

#include <numafit/cpuset.h>

/* The kernel's own word on NUMA nodes: its files below /sys/devices/system/node, which the kubelet
 * reads, too (Documentation/ABI/stable/sysfs-devices-node). root is the folder that stands for "/":
 * "" or the path of a recorded tree, without a slash at its end. All: 0, -errno, or -EINVAL and
 * -ERANGE for a file that has something else than it should; the text begins with the path. */

/* The ids of the NUMA nodes that are online; where no file "online" is, as in old kernels, those
 * that have a folder. -ENOENT: this kernel knows no NUMA nodes. */
int node_files_online(const char *root, struct cpuset *ids, struct err *e);
/* The ids of the NUMA nodes that have a folder. */
struct cpuset node_files_folders(const char *root);
/* The online CPUs that the NUMA node lists (cpulist; where that is missing, cpumap). */
int node_files_cpus(const char *root, unsigned id, struct cpuset *cpus, struct err *e);
/* Whether the NUMA node's folder has a link to the CPU's: of several NUMA nodes that list a CPU,
 * the one that the CPU belongs to has it. */
bool node_files_has_link(const char *root, unsigned id, unsigned cpu);
/* The NUMA node's memory in bytes (MemTotal of meminfo). */
int node_files_memory(const char *root, unsigned id, uint64_t *bytes, struct err *e);
/* Whether the kernel says that the NUMA node has memory (has_memory); true where no file says so.
 */
bool node_files_may_have_memory(const char *root, unsigned id);
/* The NUMA node's sizes of huge pages in KiB, each a power of 2 and as such a bit of the sum. */
uint64_t node_files_page_sizes(const char *root, unsigned id);
/* The bytes of the NUMA node's huge pages of that size; 0 where the kernel has no such size. */
int node_files_huge_pages(
	const char *root, unsigned id, uint64_t page_bytes, uint64_t *bytes, struct err *e);
/* The NUMA node's distances, in the order of the online ids: at most max into row. Their number,
 * which may be more than max. */
int node_files_distances(const char *root, unsigned id, uint64_t *row, unsigned max, struct err *e);

/* The numbers of a folder's entries that are called prefix and a number below CPUSET_BITS ("cpu12",
 * not "cpufreq"). */
struct cpuset numbered_entries(const char *folder, const char *prefix);

#endif
