#ifndef NUMAFIT_QUESTIONS_MEMORY_PLAY_H
#define NUMAFIT_QUESTIONS_MEMORY_PLAY_H

#include <numafit/memory.h>
#include <numafit/node.h>

/* The kubelet's memory manager alone, as pods come, start and go while somebody else hands out the
 * affinities: what the question `memory` is about (memory_json.h). Nothing here knows JSON. */

/* An active pod: its containers, init containers first, and what they hold. */
struct memory_pod {
	const struct pod *ask;
	struct memory_container *container;
};

struct memory_play {
	const struct topo *t;
	const struct settings *s;
	struct memory_state state;
	struct memory_reuse reuse;
	const char *reuse_uid; /* of the pod whose it is; NULL: of none yet */
	struct memory_pod *pod;
	size_t nr_pods;
	struct arena *arena; /* for what lasts */
	void *work;          /* for one decision */
};

/* The hints of one container or pod. */
struct memory_hints {
	bool nil; /* the kubelet's nil map: memory is not managed, or blocks have another size */
	unsigned nr;
	struct family f[TOPO_KINDS];
	struct memory_rows rows;
};

/* Room for nr_pods pods at a time, from *a. 0 or -ENOMEM. *t, *s and *a outlive it. */
int memory_play_init(struct memory_play *g, const struct topo *t, const struct settings *s,
	size_t nr_pods, struct arena *a, struct err *e);

/* The pod becomes active; *ask is borrowed. One that is there under its uid hands the blocks of its
 * containers on to those of the same name. 0; -ENOSPC, -ENOMEM. */
int memory_play_enter(
	struct memory_play *g, const struct pod *ask, struct memory_pod **out, struct err *e);
/* GetTopologyHints() for container i, GetPodTopologyHints(): into *h. */
void memory_play_hints(
	struct memory_play *g, const struct memory_pod *p, unsigned i, struct memory_hints *h);
void memory_play_pod_hints(
	struct memory_play *g, const struct memory_pod *p, struct memory_hints *h);
/* Allocate() for container i. 0; -ENOSPC with the kubelet's words. */
int memory_play_allocate(struct memory_play *g, struct memory_pod *p, unsigned i,
	const struct hint *affinity, struct err *e);
/* The container of that name starts. Unknown pods are fine; a name that the pod does not have
 * comes after all of its containers, as in the kubelet. */
void memory_play_start(struct memory_play *g, const char *uid, const char *name);
/* The pod is not active any more: what it holds is given back. */
void memory_play_remove(struct memory_play *g, const char *uid);

#endif
