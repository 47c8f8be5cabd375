#ifndef NUMAFIT_CODEC_WISHES_H
#define NUMAFIT_CODEC_WISHES_H

#include <numafit/pod.h>

struct arena;

/* A pod author's wishes as they stand in the pod's annotations: numafit.io/NAME for all containers
 * of the pod, NAME.numafit.io/CONTAINER for one, which comes before the other. NAME is that of a row of
 * wish_rows. Where none of these is there, annotations of CRI-O that mean the same count likewise. Whoever
 * can write a pod can write these. */

struct wishes_reader {
	const struct settings *settings; /* podWishes.*, schedulerHint.*, frequencyProfiles */
	const struct node_ids *ids;      /* the machine's NUMA nodes */
	bool whole;                      /* the pod is aligned as one: one list of NUMA nodes */
};

/* What was passed over. */
struct wishes_ignored {
	const char *annotation; /* the last one that is not allowed; NULL: none */
	const char *odd; /* what is wrong with one that no container is refused for; or NULL */
};

/* True if wishes_take() reads the annotation with this key, for any container: as a wish, or, where
 * the key only looks like a wish's (core for cores, cpu-quotas.crio.io), to say that nothing
 * follows the annotation. */
bool wishes_is_key(const char *key);

/* Enter in *ask, by its name, what the pod's annotations wish for: ask->wishes, ask->odd_wish, and,
 * unless a scheduler has left some, ask->advice for numa-nodes. Texts live in *a. */
void wishes_take(const struct wishes_reader *r, const struct pod *pod, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored);

/* The annotations that wish something for a container which is none of pod->container. Return a text
 * that says the first of them and counts the others, from *a; NULL: there is none. No container is
 * refused for such an annotation. The cost grows with the annotations times the logarithm of the
 * containers. */
const char *wishes_of_no_container(const struct pod *pod, struct arena *a);

#endif
