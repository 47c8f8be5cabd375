#ifndef NUMAFIT_IO_DESCRIPTORS_H
#define NUMAFIT_IO_DESCRIPTORS_H

#include <stdint.h>

/* How many descriptors the process may have open. systemd and shells give 1,024, for the sake of
 * select(2), which nothing here uses, and allow far more. */
enum { DESCRIPTORS_MIN = 1024 }; /* fewer are not enough to keep slow clients from others */

/* Raise the soft limit to the hard one. The limit that is in force then. */
uint64_t descriptors_raise(void);

#endif
