#ifndef NUMAFIT_HOST_DISCOVER_H
#define NUMAFIT_HOST_DISCOVER_H

#include <host/correction.h>
#include <numafit/topo.h>

/* The machine to decide for, wherever it is described. what is one of
 *   "this"   the machine that we run on
 *   a path   (it has a '/'): a directory is a recorded tree (hwloc-gather-topology makes them: sys/
 *            and proc/ of that machine), *.xml is hwloc's XML, anything else our own text
 *   a name   NAME.machine (our text), NAME.xml or the tree NAME/ in test/machines, or beside the
 *            executable in ../../test/machines and ../share/numafit/machines, in that order
 * The machine is called like its file, without .machine and .xml. Only "this" sets this_machine;
 * NUMA nodes are as the kernel's files have them, on this machine and in recorded trees; what hwloc
 * or libnuma has otherwise, and what cannot be right, goes to note(), which may be NULL. Sets
 * environment variables for hwloc, and puts back those that others read; for an XML it takes
 * standard error away for a moment: call it before there are threads. Once called, "this" can be
 * loaded again when there are. 0; -ENOENT: no such machine (the text lists those that there are);
 * -EINVAL, -ERANGE, -EEXIST and such: it is one that numafit cannot use, the text says why (a tree:
 * which part is missing; an XML: hwloc's own reason); -errno: it cannot be read. */
int machine_load(const char *what, struct topo *out,
	void (*note)(void *ctx, const struct correction *c), void *ctx, struct err *e);

#endif
