#ifndef NUMAFIT_SCHED_NRT_ASK_H
#define NUMAFIT_SCHED_NRT_ASK_H

#include <numafit/nrt.h>

/* A pod made ready for many nodes (nrt.h), as the filter and the scores share it. */

/* A resource that some container asks for. What a node has of it is looked up once for each node:
 * listed and available are of the node at hand, and available moves to own as soon as something is
 * taken from it. */
struct nrt_column {
	unsigned resource;
	bool host_level; /* there may be some without a zone that lists it */
	bool by_amount;  /* a zone must have as much; else that it lists it is enough */
	uint64_t listed;
	const struct quantity *available; /* by zone */
	struct quantity own[ZONES_MAX];
};

struct nrt_want {
	unsigned column;
	struct quantity q;
	int64_t value; /* q rounded up */
	int64_t weight;
};

/* What one container, or the pod as a whole, asks for. */
struct nrt_part {
	const struct sched_container *container; /* NULL: the pod */
	enum nrt_reason failure;                 /* what it is when this does not fit */
	struct nrt_want *want;
	unsigned nr;
	int64_t weight_sum;
};

struct nrt_search;

struct nrt_ask {
	const struct sched_pod *pod;
	const struct nrt_args *args;
	const struct resource_table *names;
	const struct steps *steps;
	bool passes_anywhere; /* BestEffort, and nothing but native names */
	struct nrt_column *column;
	unsigned nr_columns;
	struct nrt_part *part; /* one for each container */
	struct nrt_part whole;
	struct nrt_search *search;
	struct budget budget; /* for all nodes that it is asked of */
	uint64_t *taken;      /* by container; [0] of the pod */
};

/* Look up what the topology has of all that is asked for. */
void nrt_ask_of(struct nrt_ask *ask, const struct sched_topology *t);
/* Whether the topology of this node must not be relied upon. */
bool nrt_is_stale(const struct nrt_ask *ask, const struct sched_node *node);
/* The part that a node of that scope is asked about in the i-th place, or NULL behind the last. */
static inline const struct nrt_part *nrt_part(
	const struct nrt_ask *ask, enum topology_scope scope, unsigned i)
{
	if (scope == SCOPE_POD)
		return i ? NULL : &ask->whole;
	return i < ask->pod->nr_containers ? &ask->part[i] : NULL;
}
/* The column's amounts, to be changed. */
struct quantity *nrt_own(struct nrt_column *c, const struct sched_topology *t);

/* Report a step of that part; not to be called when ask->steps is NULL. */
void nrt_add_step(const struct nrt_ask *ask, const struct nrt_part *part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum { NRT_ZONES_TEXT_MAX = NODESET_TEXT_MAX };
/* The NUMA ids of the zones as a list, "0-1"; "none". Into buf of NRT_ZONES_TEXT_MAX bytes; returns
 * buf. */
const char *nrt_zones_text(char *buf, const struct sched_topology *t, uint64_t zones);

/* The score by LeastNUMANodes, whatever the pod's QoS class. nrt_ask_of() comes first. */
int64_t nrt_score_least_numa(struct nrt_ask *ask, const struct sched_topology *t);

/* Room for searches for that many demands. */
struct nrt_search *nrt_search_new(unsigned nr_columns);

#endif
