#ifndef NUMAFIT_HOST_MACHINE_HWLOC_H
#define NUMAFIT_HOST_MACHINE_HWLOC_H

#include <host/correction.h>
#include <numafit/topo.h>

/* A machine through hwloc, from one of three places. */
enum hwloc_place {
	PLACE_THIS, /* where we run; path is not looked at */
	PLACE_TREE, /* the recorded tree at path */
	PLACE_XML   /* hwloc's XML at path */
};

/* Fill *t, fresh from topo_init(), with all but the seal: online CPUs, whether or not we may use
 * them ourselves; CPUs that hwloc has on no NUMA node, into nodeless, each with its core, socket
 * and cache in t->cpu. What hwloc leaves out of caches, and what an XML leaves open, goes to *to. 0
 * or -errno; *t is then half filled. */
int machine_from_hwloc(enum hwloc_place place, const char *path, struct topo *t,
	const struct correction_sink *to, struct err *e);

#endif
