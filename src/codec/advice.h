#ifndef NUMAFIT_CODEC_ADVICE_H
#define NUMAFIT_CODEC_ADVICE_H

#include <numafit/arena.h>
#include <numafit/pod.h>
#include <numafit/advice.h>

/* Schedulers' advice as it stands in a pod's annotations: ours and, only ever read, those of other
 * projects. Whoever can write a pod can write these, so that nothing in them is taken on trust:
 * size and depth are bounded, and a value that is not understood to the last byte is none. */

enum { ADVICE_TEXT_MAX = 64 << 10, ADVICE_DEPTH_MAX = 8, ADVICE_ARENA_BYTES = 4 << 20 };
#define ADVICE_KEY        "numafit.io/numa-hint"
#define ADVICE_POLICY_KEY "numafit.io/topology-policy"

/* What an annotation speaks of. */
enum advice_about { ADVICE_ABOUT_NODES, ADVICE_ABOUT_POLICY, ADVICE_ABOUT_CPUS };

struct advice_context {
	const struct topo *t; /* borrowed; gives NUMA nodes their indexes */
	struct arena *arena;  /* all that is read lives here; ADVICE_ARENA_BYTES hold any value */
};

/* What its value is: plain text, or JSON and of which kind. */
enum advice_form { ADVICE_TEXT, ADVICE_OBJECT, ADVICE_LIST };

struct advice_reading; /* advice_parts.h */
/* A kind of annotation. */
struct advice_source {
	const char *key;
	enum advice_format format;
	enum advice_about about;
	enum advice_form form;
	/* Fill *out, zeros but for its format. Only advice_read() calls it. */
	int (*read)(struct advice_reading *r, struct advice *out, struct err *e);
};
/* The one of that key, or NULL. */
const struct advice_source *advice_source_of(const char *key);

/* Read a value. 0, with *out (nr_containers 0: it names no NUMA nodes); -ENOTSUP: a version of ours
 * that is not known; -EINVAL, -ERANGE, -E2BIG, -ENOMEM: it cannot be read; the text says why. *out
 * is written only on success. */
int advice_read(const struct advice_source *source, const char *text,
	const struct advice_context *c, struct advice *out, struct err *e);
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

#endif
