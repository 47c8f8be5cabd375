#ifndef NUMAFIT_NUMAFITD_SWEEP_H
#define NUMAFIT_NUMAFITD_SWEEP_H

struct daemon;

/* What is in force on the system under root ("/") against the ledger, a bit in each turn
 * of the loop, a round every sweepInterval. Containers that run otherwise are updated again, CPUs
 * and memory that come and go are taken into account. Only in mode manage, and on this machine. */
void sweep_start(struct daemon *d, const char *root);
void sweep_stop(struct daemon *d);
/* sweepInterval is another one; 0: no round begins, and what was noted for one is forgotten. */
void sweep_settings_changed(struct daemon *d);
/* The runtime's client has changed the container's resources. */
void sweep_note_update(struct daemon *d, const char *container_id);

#endif
