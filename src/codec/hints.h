#ifndef NUMAFIT_CODEC_HINTS_H
#define NUMAFIT_CODEC_HINTS_H

#include <numafit/arena.h>
#include <numafit/pod.h>
#include <numafit/sched_hint.h>

/* Schedulers' hints as they stand in a pod's annotations: ours and, only ever read, those of other
 * projects. Whoever can write a pod can write these, so that nothing in them is taken on trust:
 * size and depth are bounded, and a value that is not understood to the last byte is none. */

enum { HINT_TEXT_MAX = 64 << 10, HINT_DEPTH_MAX = 8, HINT_ARENA_BYTES = 4 << 20 };
#define HINT_KEY        "numafit.io/numa-hint"
#define HINT_POLICY_KEY "numafit.io/topology-policy"

/* What an annotation speaks of. */
enum hint_about { HINT_ABOUT_NODES, HINT_ABOUT_POLICY, HINT_ABOUT_CPUS };

struct hint_context {
	const struct topo *t; /* borrowed; gives NUMA nodes their indexes */
	struct arena *arena;  /* all that is read lives here; HINT_ARENA_BYTES hold any value */
};

/* A kind of annotation. */
struct hint_source {
	const char *key;
	enum sched_hint_format format;
	enum hint_about about;
	/* Fill *out, zeros but for its format. Use hint_read(). */
	int (*read)(const char *text, const struct hint_context *c, struct sched_hint *out,
		struct err *e);
};
/* The i-th, in the default order of precedence; NULL: there are no more. */
const struct hint_source *hint_source_at(unsigned i);
/* The one of that key, or NULL. */
const struct hint_source *hint_source_of(const char *key);

/* Read a value. 0, with *out (nr_containers 0: it names no NUMA nodes); -ENOTSUP: a version of ours
 * that is not known; -EINVAL, -ERANGE, -E2BIG, -ENOMEM: it cannot be read; the text says why. *out
 * is written only on success. */
int hint_read(const struct hint_source *source, const char *text, const struct hint_context *c,
	struct sched_hint *out, struct err *e);
/* What that result means: SCHED_HINT_NONE for 0, else a rejection for format or version. */
enum sched_hint_verdict hint_read_verdict(int rc);

/* Whose annotations are looked at, the first one first; {NULL, 0}: all, in the default order. */
struct hint_order {
	const enum sched_hint_format *format;
	unsigned nr;
};
/* The first of the pod's annotations about that, in that order, which says anything; one that
 * cannot be read is the first one too. 1 with *out and *source (which may be NULL); 0: there is
 * none; or as hint_read(), with *source alone. */
int hint_find(const struct pod *pod, enum hint_about about, const struct hint_order *order,
	const struct hint_context *c, const struct hint_source **source, struct sched_hint *out,
	struct err *e);

#endif
