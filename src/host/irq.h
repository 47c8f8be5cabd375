#ifndef NUMAFIT_HOST_IRQ_H
#define NUMAFIT_HOST_IRQ_H

#include <host/tunable.h>
#include <numafit/cpuset.h>

/* Affinities of interrupts (Documentation/core-api/irq/irq-affinity.rst). */

/* What interrupts that are still to come are given: a mask, as in "ff,ffffffff". */
#define IRQ_DEFAULT TUNABLE_IRQS "/default_smp_affinity"
/* That of an interrupt, a list as in "0-3,8": its file, from its number in decimal digits. False: it
 * is no number. */
bool irq_file(const char *number, char file[TUNABLE_FILE_MAX]);

enum { IRQ_TEXT_MAX = CPUSET_TEXT_MAX };
/* The text of such a file, a mask's or a list's by its name, to a set of CPUs and back. 0, -EINVAL,
 * or -ERANGE for a CPU above CPUSET_BITS - 1. */
int irq_parse(const char *file, const char *text, struct cpuset *out, struct err *e);
const char *irq_format(const char *file, const struct cpuset *cpus, char text[IRQ_TEXT_MAX]);

#endif
