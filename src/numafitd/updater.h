#ifndef NUMAFIT_NUMAFITD_UPDATER_H
#define NUMAFIT_NUMAFITD_UPDATER_H

#include <stdbool.h>

struct daemon;
struct update_list;

/* UpdateContainers without being asked for. Only in mode manage. */
void updater_start(struct daemon *d);
void updater_stop(struct daemon *d);
/* Containers may have to be updated, and no reply is at hand. */
void updater_note_change(struct daemon *d);
/* What the runtime is updating is in the reply too: it may come to that only after the reply, and a
 * container that the reply is for would start among others that still run on its CPUs. */
void updater_repeat(const struct daemon *d, const char *not_container_id, struct update_list *ups);
/* The container is being updated, and the runtime has not answered yet. */
bool updater_is_updating(const struct daemon *d, const char *container_id);

#endif
