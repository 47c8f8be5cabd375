#ifndef NUMAFIT_HOST_TUNABLE_H
#define NUMAFIT_HOST_TUNABLE_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Values of this machine's kernel that root can set: small files under /proc/irq and
 * /sys/devices/system/cpu, which are called by their path from / ("proc/irq/45/smp_affinity_list").
 * A runtime has /proc/irq read-only in every container, so one that may write has it below /host as
 * well. */

enum { TUNABLE_PATH_MAX = 256, TUNABLE_FILE_MAX = 128 };
struct tunables {
	char irqs[TUNABLE_PATH_MAX]; /* the folder of interrupts; "": none is there */
	char cpus[TUNABLE_PATH_MAX]; /* of CPUs, likewise */
};
#define TUNABLE_IRQS "proc/irq"
#define TUNABLE_CPUS "sys/devices/system/cpu"

/* On the system under root ("/", or a recorded tree). Why nothing can be written below irqs or cpus
 * is in *irqs_why and *cpus_why, whose code is 0 where it can. */
void tunables_find(
	const char *root, struct tunables *out, struct err *irqs_why, struct err *cpus_why);

/* The file's text, without the newline at its end. 0, or -errno with text: -ENOENT, -ENODEV: it is
 * not there, -EINVAL for a path that is none of theirs. */
int tunable_read(
	const struct tunables *t, const char *file, char *text, size_t cap, struct err *e);
/* 0, or -errno with text: open(2)'s and write(2)'s. */
int tunable_write(const struct tunables *t, const char *file, const char *text, struct err *e);

#endif
