#ifndef NUMAFIT_CLI_HISTORY_H
#define NUMAFIT_CLI_HISTORY_H

#include <numafit-cli/journal_fold.h>
#include <numafit/snapshot.h>
#include <numafit/vec.h>

/* What the journal says of some containers, gathered while it is folded. */

/* Which containers: POD, CONTAINER, POD/CONTAINER, NAMESPACE/POD, NAMESPACE/POD/CONTAINER, where
 * POD may also be a pod's uid; or the beginning of a container's or sandbox's id. */
struct query {
	char *part[3];
	unsigned nr;
	char *text; /* owns the parts */
};
/* 0, or -EINVAL when it is empty or has too many parts. */
int query_parse(struct query *q, const char *text, struct err *e);
void query_fini(struct query *q);

/* One record about one container. */
struct moment {
	const struct journal_fold *f; /* the journal it is from */
	enum record_op op;
	uint64_t seq;
	int64_t time_ms;
	char *cause, *container_id;
	const char *line; /* the record; NULL for RELEASE and LIVE */
	size_t part;      /* of a HOLD */
	struct cpuset pool_before, pool;
	char *moved; /* shared containers that ran then and were moved along; NULL: none */
	unsigned nr_moved;
	struct snapshot *node; /* the node as it was, for a refusal; its topo is f's */
};

/* All that is known of one container of one pod, by name: its id changes when it restarts. The name
 * is empty for a pod that was refused as a whole. */
struct story {
	char *uid, *ns, *pod, *container;
	struct {
		VEC(struct moment);
	} moments; /* in the order of the journal */
};
struct history {
	const struct query *query;
	struct {
		VEC(struct story);
	} stories;
	struct {
		VEC(char *);
	} lines; /* of the moments: one for all parts of a pod, whose record is a long one */
};

/* For journal_fold(): gather what suits the query into the struct history at ctx. */
int history_add(void *ctx, const struct journal_fold *f, const struct record *r, const char *line,
	struct err *e);
void history_fini(struct history *h);

#endif
