#ifndef CLUSTER_SIM_WORLD_STATE_H
#define CLUSTER_SIM_WORLD_STATE_H

#include <cluster-sim/world.h>
#include <numafit/sched_avoid.h>
#include <numafit/vec.h>

/* What the files of a world share. */

enum event_kind { EVENT_TRY, EVENT_END, EVENT_REPORT, EVENT_SAMPLE, EVENT_MOVED, NR_EVENT_KINDS };
enum { POD_RESOURCES = 1 + NR_POD_MEMORIES, WORKLOAD_MAX = 16 };

/* What is to happen, by time; of one time in the order of entry. */
struct event {
	int64_t at_ms;
	uint64_t turn;
	unsigned kind, what;
};
struct event_queue {
	VEC(struct event); /* a heap: at[i] is not after at[2i + 1] and at[2i + 2] */
	uint64_t turn;
};

/* A node, and what the stock scheduler sees of it: all its pods as one, since it only adds up. */
struct world_node {
	struct cluster_node is;
	struct sched_node seen;
	struct sched_pod pods_as_one;
	struct sched_container containers_as_one;
	struct amount asked[POD_RESOURCES];
	unsigned nr_pods;
	uint32_t version; /* of what its pods ask for; above 0 */
	bool report_due;
	struct node_moves moves;
	unsigned pod_waits;   /* while moves are under way: for that pod */
	bool pod_was_refused; /* without them it would have been */
};

/* What the stock scheduler makes of a node for pods of one shape, as of a version of the node: the
 * same question comes hundreds of times before the node changes. */
struct stock_answer {
	uint32_t version;
	int32_t score; /* -1: no pod of that shape fits */
};

/* A pod of the trace. */
struct world_pod {
	struct cluster_pod is;       /* this try's */
	char workload[WORKLOAD_MAX]; /* whose pods all the tries are */
	unsigned nr_tries, node;
	int64_t delay_ms; /* before the next try */
	bool refused;     /* once at least */
};

struct world {
	const struct world_setting *set;
	const struct strategy *strategy;
	struct world_node *node;
	struct amount *allocatable; /* of every node */
	struct world_pod *pod;
	int64_t now_ms;
	int64_t cpus_milli, cpus_used_milli; /* of all nodes; that pods which run ask for */
	struct event_queue queue;
	struct cluster_work work;
	struct outcome *out;
	uint64_t *no_plan; /* by shape, then node: at that generation of it no plan was found */
	int rc;            /* of the first move that broke a ledger, with *e */
	struct err *e;
	unsigned long nr_ended; /* pods that ran to their end */
	/* The scheduler's. */
	struct stock_answer *answer; /* by shape, then node */
	unsigned next_node;          /* where the search begins, as kube-scheduler goes round */
	struct sched_profile profile;
	struct sched_cluster *cluster; /* NULL: the plugin is not asked */
	struct sched_avoid *avoid;
	unsigned *fitting; /* room for all nodes, as the next two */
	struct sched_candidate *candidate;
	int64_t *score;
};

/* A pod as schedulers see it. Do not move it: it points into itself. */
struct seen_pod {
	char name[SHAPE_CONTAINERS_MAX][TEXT_SIZE_MAX];
	struct amount asked[POD_RESOURCES];
	struct sched_container container[SHAPE_CONTAINERS_MAX];
	struct sched_pod is;
	size_t shape;
};
void seen_pod_init(struct seen_pod *s, const struct world *w, unsigned pod);

/* The extender's profile. */
void strategy_profile(const struct strategy *s, struct sched_profile *p);
/* Choose a node for the pod: its number, or -1: there is none now. With the plugin, *where lives in
 * *a: where on the node the pod would lie; nr 0: nothing is said of that. */
int world_choose(struct world *w, const struct world_pod *p, const struct seen_pod *seen,
	struct arena *a, struct sched_placement *where);

/* To be done at that time. */
void world_put_event(struct world *w, int64_t at_ms, enum event_kind kind, unsigned what);
/* The pod's node decides it now. hint: a scheduler's, or NULL. True: it runs; *answer is the
 * node's. */
bool world_run_pod(
	struct world *w, unsigned pod, const struct advice *hint, struct node_answer *answer);
/* The pod's asks join those on the node, or leave them. */
void world_account_pod(struct world *w, unsigned node, const struct pod_shape *s, bool join);

/* world_moves.c. The pod's node moves containers first, for the pod waits there; false: it does
 * not. */
bool world_make_room(struct world *w, unsigned pod);
/* The move that is under way there is over. */
void world_node_moved(struct world *w, unsigned node);

/* A pod is placed: on how many NUMA nodes. */
void world_count_nodes(struct world *w, unsigned pod, const struct node_answer *answer);
/* How things are at the end of a quarter of an hour. */
void world_take_sample(struct world *w, unsigned number);
/* The day is over: every node's books, and the sums. 0, or -EINVAL with what is wrong. */
int world_check(const struct world *w, struct err *e);

#endif
