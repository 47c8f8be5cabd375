#ifndef NUMAFIT_CODEC_ADVICE_H
#define NUMAFIT_CODEC_ADVICE_H

#include <codec/advice_parts.h>

/* Schedulers' advice as it stands in a pod's annotations: ours and, only ever read, those of other
 * projects. Whoever can write a pod can write these, so that nothing in them is taken on trust:
 * size and depth are bounded, and a value that is not understood to the last byte is none. */

/* The one of that key, or NULL. */
const struct advice_source *advice_source_of(const char *key);

/* What that result means: ADVICE_NONE for 0, else a rejection for format or version. */
enum advice_verdict advice_read_verdict(int rc);

/* Whose annotations are looked at, the first one first; {NULL, 0}: all, in the default order. */
struct advice_order {
	const enum advice_format *format;
	unsigned nr;
};
/* The first of the pod's annotations about that, in that order, which says anything; one that
 * cannot be read is the first one too. 1 with *out and *source (which may be NULL); 0: there is
 * none; or as advice_read(), with *source alone. */
int advice_find(const struct pod *pod, enum advice_about about, const struct advice_order *order,
	const struct advice_context *c, const struct advice_source **source, struct advice *out,
	struct err *e);

/* The node that a pod's advice is read for; all borrowed. */
struct advice_reader {
	const struct settings *settings; /* schedulerHint.* of them, and the policy and its scope */
	struct advice_order order;
	struct advice_facts facts; /* its topo is the node's, too */
};
/* A pod's advice about NUMA nodes, as far as it can be judged before the merge. */
struct advice_found {
	bool has;
	enum advice_verdict so_far;
	enum advice_mode mode; /* in force */
	struct advice advice;
	const struct advice_source *source;
	struct err why; /* of a rejection */
};
/* Read and check it; *out lives in *a, which should have ADVICE_ARENA_BYTES. */
void advice_look(const struct advice_reader *r, const struct pod *pod, struct arena *a,
	struct advice_found *out);
/* What it says of that container, or in pod scope of its pod, from *a; NULL: nothing. */
const struct advice_ask *advice_ask_for(const struct advice_reader *r, const struct advice_found *f,
	const char *container, struct arena *a);
/* The topology policy that the pod asks for, when that is stricter than the node's. False: it asks
 * for none, or the settings do not let it. */
bool advice_pod_policy(const struct advice_reader *r, const struct pod *pod, struct arena *a,
	enum topology_policy *policy);

#endif
