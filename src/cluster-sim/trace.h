#ifndef CLUSTER_SIM_TRACE_H
#define CLUSTER_SIM_TRACE_H

#include <numafit/err.h>
#include <numafit/number.h>
#include <numafit/pod.h>
#include <numafit/vec.h>

/* A day of pods for a cluster: when each comes, for how long it runs, and what it asks for. */

enum { MS_PER_HOUR = 3600 * MS_PER_S, DAY_HOURS = 24 };
#define DAY_MS ((int64_t)DAY_HOURS * MS_PER_HOUR)

/* The kinds of memory that pods ask for here. */
enum pod_memory { POD_MEMORY, POD_HUGE_2MI, POD_HUGE_1GI, NR_POD_MEMORIES };
uint64_t pod_memory_page(enum pod_memory m); /* bytes of a page; 0 of ordinary memory */

enum { FAMILY_NAME_MAX = 16, SHAPES_MAX = 1024, SHAPE_CONTAINERS_MAX = 8 };

/* What pods ask for: so many containers, all alike. */
struct pod_shape {
	char family[FAMILY_NAME_MAX]; /* "hpc"; the pods' namespace */
	enum qos qos;                 /* QOS_GUARANTEED or QOS_BURSTABLE */
	unsigned nr_containers;
	uint64_t cpu_milli;
	uint64_t bytes[NR_POD_MEMORIES];
};

struct trace_pod {
	int64_t at_ms;   /* since midnight */
	int64_t life_ms; /* from its start on */
	unsigned shape;
};

struct cluster_trace {
	struct {
		VEC(struct pod_shape); /* each once */
	} shapes;
	struct {
		VEC(struct trace_pod); /* ascending by at_ms */
	} pods;
};
void cluster_trace_fini(struct cluster_trace *t);

struct trace_plan {
	unsigned nr_pods;
	uint64_t seed;
	/* CPUs that the pods are to have on average, were none refused: lifetimes are stretched or
	 * shortened to that. */
	double cpus;
	unsigned cpu_milli_max; /* of a container */
};
/* Make a day up: web pods (small, Burstable), telco (huge pages), databases (much memory), AI and
 * HPC jobs, more by day than by night. Those that the day before has left come within the first
 * hour. The same plan gives the same day. */
void cluster_trace_make(struct cluster_trace *t, const struct trace_plan *plan);

/* Read one from the len bytes at text. A line for each pod, '#' begins a comment:
 *   SECONDS LIFETIME FAMILY QOS CONTAINERS CPU MEMORY [HUGEPAGES-2Mi [HUGEPAGES-1Gi]]
 * as in "3600 7200 hpc Guaranteed 1 16 32Gi"; what each container asks for are quantities. 0;
 * -EINVAL, -ERANGE, -E2BIG with the line in the text. */
int cluster_trace_read(struct cluster_trace *t, const char *text, size_t len, struct err *e);

#endif
