#ifndef NUMAFIT_NUMAFITD_MACHINE_READ_H
#define NUMAFIT_NUMAFITD_MACHINE_READ_H

#include <numafit/topo.h>

struct daemon;

/* The machine of the settings into *t, and into d->corrections what was corrected in it. 1: other
 * corrections than before; 0: the same; -errno as machine_load(), with d->corrections as they were.
 */
int machine_read(struct daemon *d, struct topo *t, struct err *e);
/* A line of the log for each of d->corrections. */
void machine_log_corrections(const struct daemon *d);
/* Likewise a line on standard output, for --check-config. */
void machine_print_corrections(const struct daemon *d);

#endif
