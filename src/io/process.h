#ifndef NUMAFIT_IO_PROCESS_H
#define NUMAFIT_IO_PROCESS_H

#include <stdint.h>

/* What this process takes of its machine. */
struct process_figures {
	uint64_t start_ns; /* since the epoch; who starts it knows */
	uint64_t cpu_ns, resident_bytes, open_fds, max_fds;
};

/* All but start_ns; what the kernel does not say is 0. */
void process_measure(struct process_figures *out);

/* How many descriptors the process may have open. systemd and shells give 1,024, for the sake of
 * select(2), which nothing here uses, and allow far more. */
enum { DESCRIPTORS_MIN = 1024 }; /* fewer are not enough to keep slow clients from others */

/* Raise the soft limit to the hard one. The limit that is in force then. */
uint64_t descriptors_raise(void);

#endif
