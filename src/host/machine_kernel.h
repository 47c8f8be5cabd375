#ifndef NUMAFIT_HOST_MACHINE_KERNEL_H
#define NUMAFIT_HOST_MACHINE_KERNEL_H

#include <host/correction.h>
#include <numafit/topo.h>

/* A machine whose NUMA nodes are as the kernel has them, and whose cores, sockets and caches are
 * hwloc's. */

/* Fill *out, fresh from topo_init(), with all but the seal: NUMA nodes, their CPUs, memory, huge
 * pages and distances from the kernel's files under root ("" or a recorded tree), the rest from
 * *hwloc (machine_hwloc.h). Each difference goes to *to. A CPU that several NUMA nodes list counts
 * with the NUMA node that has the link to it, else with the smallest, and of equal ones with the
 * first. NUMA nodes of a GPU's memory that the environment hides from hwloc stay hidden. Where the
 * kernel knows no NUMA nodes, *out is *hwloc. 0; -EINVAL, -ERANGE and such: a file is missing or
 * damaged, the text has the path. */
int machine_from_kernel(const char *root, const struct topo *hwloc, struct topo *out,
	const struct correction_sink *to, struct err *e);

/* Send where *theirs, as the source has it, differs from *t in NUMA nodes, CPUs, memory (unless it
 * has none at all) and distances (unless one has none): one correction for each NUMA node and kind.
 */
void machine_compare(const struct topo *t, const struct topo *theirs, enum machine_source source,
	const struct correction_sink *to);

#endif
