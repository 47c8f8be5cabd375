#ifndef NUMAFIT_NUMAFITD_UPDATER_H
#define NUMAFIT_NUMAFITD_UPDATER_H

#include <stdbool.h>

struct daemon;
struct update_list;

/* UpdateContainers without being asked for. Only in mode manage. */
void updater_start(struct daemon *d);
void updater_stop(struct daemon *d);
/* Whether the runtime may set a cpuset now, whether it is asked to or by a reply. Not while others
 * may still run on those CPUs, as their cgroups could not be written; nor while the kernel copies
 * memory: it would wait in there, and with it all that starts on the node. */
bool updater_may_send(const struct daemon *d);
/* Containers may have to be updated, and no reply is at hand. */
void updater_note_change(struct daemon *d);
/* What the runtime is updating is in the reply too: it may come to that only after the reply, and a
 * container that the reply is for would start among others that still run on its CPUs. */
void updater_repeat(const struct daemon *d, const char *not_container_id, struct update_list *ups);
/* The runtime has connected anew, and its Synchronize compares all: what another connection was
 * asked is on its way no more. */
void updater_note_synchronize(struct daemon *d);
/* A reply says what containers are to run on; the runtime sets that once it has the reply. */
void updater_note_reply(struct daemon *d);
/* The runtime comes with an event: what it was answered before it has done. */
void updater_note_event(struct daemon *d);
/* Whether the runtime may not have done yet what it was last asked or answered: for half a second
 * after a reply it is taken to be at it, unless it has come with another event. */
bool updater_is_at_work(const struct daemon *d);
/* The container is being updated, and the runtime has not answered yet. */
bool updater_is_updating(const struct daemon *d, const char *container_id);

#endif
