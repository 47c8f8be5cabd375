#ifndef CLUSTER_SIM_MOVES_H
#define CLUSTER_SIM_MOVES_H

#include <cluster-sim/node.h>
#include <numafit/defrag.h>
#include <numafit/vec.h>

/* Room by moving, on one simulated node: which running containers are moved so that a pod is
 * admitted as preferred (defrag_plan()), and how these moves are made, one after another. A
 * container that is being moved holds its old and its new place. */

enum { MOVE_INTERVAL_MAX_S = 24 * 3600 };

struct move_limits {
	unsigned moves;            /* of a plan, 0 to DEFRAG_MOVES_MAX; 0: nothing is moved */
	unsigned per_hour;         /* of a node */
	uint64_t bytes_per_minute; /* of a node; a container with more is never moved */
	int64_t interval_ms;       /* from one move of a container to its next; at most a day */
	unsigned movable_percent;  /* of the pods; the others are never moved */
	uint64_t bytes_per_s;      /* how fast memory moves; above 0 */
	uint64_t trials;           /* of a plan: states that are looked at, at most */
};
void move_limits_init(struct move_limits *l);

/* Whether a pod may be moved: the same for all its life. */
bool pod_is_movable(const struct move_limits *l, const char *uid);

/* A move as it was planned. */
struct node_move {
	char uid[POD_UID_MAX];
	char container[TEXT_SIZE_MAX];
	struct decision to;
	uint64_t bytes;
	int64_t at_ms, lasts_ms;
};

/* What was moved, or is going to be. */
struct move_note {
	int64_t at_ms;
	uint64_t bytes;
	char uid[POD_UID_MAX];
	char container[TEXT_SIZE_MAX];
};

/* Of one node. Zeros: nothing was moved yet. */
struct node_moves {
	struct {
		VEC(struct move_note); /* ascending by at_ms; as old as limits need */
	} log;
	struct node_move *plan; /* what is under way; NULL: nothing */
	unsigned nr, next;      /* its moves; which begins next */
};
void node_moves_fini(struct node_moves *v);

/* Plan moves after which the node admits the pod as preferred, all within the limits; they are
 * entered in the log. Nothing is under way. false: there are none. */
bool node_moves_plan(struct node_moves *v, const struct cluster_node *n,
	const struct cluster_machine *m, const struct move_limits *l, const struct cluster_pod *pod,
	int64_t now_ms);
/* Begin the plan's next move: it holds both places from now on. NULL: there is none, or the node
 * has changed and it cannot be made; the plan is over. */
const struct node_move *node_moves_begin(struct node_moves *v, struct cluster_node *n);
/* The move that has begun is over: the old place is free. Nothing happens if its pod has ended. */
void node_moves_end(struct node_moves *v, struct cluster_node *n);
/* That pod has ended: so has its move. */
void node_moves_stop(struct node_moves *v, struct cluster_node *n, const char *uid);

#endif
