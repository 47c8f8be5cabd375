#ifndef NUMAFIT_HOST_CORRECTION_H
#define NUMAFIT_HOST_CORRECTION_H

#include <numafit/cpuset.h>
#include <numafit/vec.h>

/* Where the sources of a machine contradict one another, or what they say cannot be right. The
 * kernel's files are the truth on NUMA nodes (node_files.h); hwloc is asked for packages, cores,
 * caches and GPUs' memory. hwloc gives a NUMA node that does not nest in packages, cores and caches
 * the CPUs of the smallest object around the NUMA node ("intersection without inclusion", hwloc
 * issue 712). */

enum correction_kind {
	/* a source contradicts the kernel's files, which count */
	CORRECTION_NODE_MISSING, /* the source lacks the NUMA node; cpus: the NUMA node's */
	CORRECTION_NODE_EXTRA,   /* the source has a NUMA node that the kernel lacks */
	CORRECTION_CPUS,         /* cpus: the NUMA node's; theirs: what the source has instead */
	CORRECTION_MEMORY,       /* value: the NUMA node's bytes; their_value */
	CORRECTION_DISTANCE,     /* value: from node to the NUMA node `to`; their_value */
	CORRECTION_CORES, /* cpus: threads of cores that have CPUs of several NUMA nodes; each NUMA
			     node's threads of such a core count as a core */
	CORRECTION_PACKAGES, /* cpus: of packages that the source lacks; the packages are added */
	CORRECTION_CACHES,   /* cpus: of level-3 caches that the source lacks; they are added */
	/* the kernel's files contradict one another */
	CORRECTION_LISTED_TWICE, /* cpus: of node, and other NUMA nodes list them, too */
	/* the table of distances cannot be used: 10 and 20 are assumed, as the kernel does */
	CORRECTION_NO_DISTANCES,       /* the NUMA node has none that can be read */
	CORRECTION_DISTANCE_COUNT,     /* the NUMA node has `value` of them, not `their_value` */
	CORRECTION_DISTANCE_RANGE,     /* to `to`: value, outside DISTANCE_MIN..DISTANCE_MAX */
	CORRECTION_DISTANCE_FROM_SELF, /* to itself: value, and to `to` less: their_value */
	/* nothing is changed: only the machine itself has the answer */
	CORRECTION_DOUBT,     /* an XML has no CPUs of the NUMA node, and theirs are local to it */
	CORRECTION_UNCHECKED, /* the source cannot be asked; why says more */
	CORRECTION_KINDS
};
extern const char *const correction_kind_words[CORRECTION_KINDS];

enum machine_source { SOURCE_KERNEL, SOURCE_HWLOC, SOURCE_LIBNUMA, MACHINE_SOURCES };
extern const char *const machine_source_words[MACHINE_SOURCES];

/* The kind says which members mean something. */
struct correction {
	enum correction_kind kind;
	enum machine_source source; /* that is contradicted, or doubtful */
	unsigned node, to;          /* kernel ids of NUMA nodes */
	struct cpuset cpus, theirs;
	uint64_t value, their_value;
	struct err why;
};

/* Where corrections go; note may be NULL. *c is the caller's again when note() returns. */
struct correction_sink {
	void (*note)(void *ctx, const struct correction *c);
	void *ctx;
};
void correction_send(const struct correction_sink *to, const struct correction *c);

enum { CORRECTION_TEXT_MAX = 512 };
/* The correction as one sentence for people, long lists of CPUs cut short, into buf. Returns buf.
 */
const char *correction_text(const struct correction *c, char buf[CORRECTION_TEXT_MAX]);
/* Whether nothing was changed, so that the machine may be described wrongly. */
bool correction_is_doubt(const struct correction *c);

/* All corrections of one machine, in the order in which they were found: zeros are an empty list.
 */
struct corrections {
	VEC(struct correction);
};
/* A sink's note(): append a copy of *c to the struct corrections at ctx. */
void corrections_add(void *ctx, const struct correction *c);
bool corrections_equal(const struct corrections *a, const struct corrections *b);
void corrections_fini(struct corrections *all);

#endif
