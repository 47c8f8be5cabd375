#ifndef NUMAFIT_NUMAFITD_SELF_H
#define NUMAFIT_NUMAFITD_SELF_H

#include <numafit/engine.h>

struct daemon;
struct self_files;

/* What a container can read of what it has (setting containerEnvironment): variables in its
 * environment, as it was when it started, and the same lines in a file that follows: in a folder of its
 * own below runDirectory, which the runtime mounts in it. */

/* The variables of a container that is given *given, *nr of them, in the arena; NULL: it is full. */
const struct key_value *self_variables(
	const struct daemon *d, const struct update *given, struct arena *a, size_t *nr);
/* Write the file of a new container. The path of its folder, in the arena; NULL where it could not be
 * written, which is logged once. */
const char *self_give(struct daemon *d, const char *container_id, const struct key_value *variables,
	size_t nr, struct arena *a);
/* Containers may have other CPUs by now, or be gone: their files follow, some at a time. */
void self_note_change(struct daemon *d);

void self_start(struct daemon *d);
void self_stop(struct daemon *d);

#endif
