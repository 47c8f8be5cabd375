#ifndef NUMAFIT_NUMAFITD_UPDATER_H
#define NUMAFIT_NUMAFITD_UPDATER_H

#include <stdbool.h>

struct daemon;

/* UpdateContainers without being asked for. Only in mode manage. */
void updater_start(struct daemon *d);
void updater_stop(struct daemon *d);
/* Containers may have to be updated, and no reply is at hand. */
void updater_note_change(struct daemon *d);
/* The container is being updated, and the runtime has not answered yet. */
bool updater_is_updating(const struct daemon *d, const char *container_id);

#endif
