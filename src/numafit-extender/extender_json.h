#ifndef NUMAFIT_EXTENDER_EXTENDER_JSON_H
#define NUMAFIT_EXTENDER_EXTENDER_JSON_H

#include <numafit-extender/extender_scan.h>
#include <numafit/arena.h>
#include <stdint.h>

/* What kube-scheduler says to an extender, and what it wants to hear (k8s.io/kube-scheduler,
 * extender/v1 types.go; without json tags, so that members begin with capital letters). Members
 * that are not known are passed over and names are compared without regard to case, as Go does it;
 * of a member that comes twice the last counts. All readers return 0, or -EINVAL with the place.
 * Every writer gives a text of *len bytes, with a NUL behind it, for the caller to free. */

struct json_t; /* jansson's */

/* What is made into values takes up to 30 times the memory of its text: more than these is refused
 * with -EINVAL, however long the text may be. etcd takes 1.5 MiB of one object. */
enum {
	EXTENDER_POD_TEXT_MAX = 4 << 20,
	EXTENDER_PREEMPT_TEXT_MAX = 8 << 20,
	EXTENDER_BIND_TEXT_MAX = 256 << 10,
	EXTENDER_NODES_MAX = 1 << 17 /* of filter and prioritize */
};

/* ExtenderArgs: filter and prioritize. */
struct extender_args {
	struct json_t *pod; /* v1.Pod */
	bool by_name;       /* nodeCacheCapable: the names alone came, and go back */
	struct extender_node {
		const char *name;
		struct span object; /* where it was sent: as it stood */
	} * node;
	size_t nr;
	struct span list_metadata; /* of Nodes; len 0: none */
	struct arena arena;
};
/* text must outlive *out, which extender_args_fini() ends. */
int extender_args_read(const char *text, size_t len, struct extender_args *out, struct err *e);
void extender_args_fini(struct extender_args *a);

/* What filter says of a node. */
struct extender_verdict {
	const char *why;   /* NULL: the pod fits */
	bool unresolvable; /* no pod that goes would change that */
};
/* ExtenderFilterResult; verdict: one for each node. Reasons go out with "numafit: " in front. */
char *extender_filter_write(
	const struct extender_args *a, const struct extender_verdict *verdict, size_t *len);
/* HostPriorityList; score: one for each node. */
char *extender_scores_write(const struct extender_args *a, const int64_t *score, size_t *len);
/* ExtenderBindingResult; "": it is bound. */
char *extender_bind_write(const char *error, size_t *len);

/* ExtenderPreemptionArgs: what would have to go from which node. */
struct extender_preempt {
	struct json_t *root, *pod;
	struct extender_victims {
		const char *node;
		const char **uid;
		size_t nr;
		int64_t pdb_violations;
		bool dropped; /* true: the node is not in the answer */
	} * at;
	size_t nr;
	struct arena arena;
};
int extender_preempt_read(
	const char *text, size_t len, struct extender_preempt *out, struct err *e);
void extender_preempt_fini(struct extender_preempt *p);
/* ExtenderPreemptionResult: what is not dropped, always as NodeNameToMetaVictims. */
char *extender_preempt_write(const struct extender_preempt *p, size_t *len);

/* ExtenderBindingArgs */
struct extender_bind {
	struct json_t *root;
	const char *name, *ns, *uid, *node; /* none is "" */
};
int extender_bind_read(const char *text, size_t len, struct extender_bind *out, struct err *e);
void extender_bind_fini(struct extender_bind *b);

#endif
