#ifndef NUMAFIT_CLI_HISTORY_H
#define NUMAFIT_CLI_HISTORY_H

#include <numafit-cli/journal_fold.h>
#include <numafit/diagnosis.h>
#include <numafit/vec.h>

/* What the journal says of some containers, gathered while it is folded. */

/* Which containers: POD, CONTAINER, POD/CONTAINER, NAMESPACE/POD, NAMESPACE/POD/CONTAINER, where
 * POD may also be a pod's uid; or the beginning of a container's or sandbox's id. */
struct query {
	char *part[3];
	unsigned nr;
	char *text;     /* owns the parts */
	const char *ns; /* only this namespace; NULL: any */
	bool loose;     /* "web" is any pod whose name begins with "web-", too */
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
	bool is_to_be_explained; /* a refusal, */
	char *refusal;           /* in words, or refusal_members(); NULL: that was not asked for */
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
	const struct query *query; /* NULL: all */
	bool names_only;           /* stories without moments */
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

/* For journal_fold(), of the same journals once more: put the refusals that are to be explained
 * into words, or members of JSON, each on the node as it was then. */
struct explainer {
	struct history *h;
	bool as_members;
	struct remedies_budget budget; /* of all refusals that are to be explained */
	const struct journal_fold *f; /* of this journal, as it was when the history was gathered */
};
int history_explain(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e);
/* Nothing is gathered any more; it may begin anew. */
void history_fini(struct history *h);

#endif
