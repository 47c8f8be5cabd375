#ifndef NUMAFIT_HOST_CPUMASK_H
#define NUMAFIT_HOST_CPUMASK_H

#include <numafit/cpuset.h>

/* Parse the kernel's mask of CPUs, groups of 32 bits in hexadecimal, the highest group first
 * ("ff,ffffffff"; a newline at the end is fine), into *out. 0; -EINVAL: the text is no mask, or
 * empty; -ERANGE: the mask has a CPU above CPUSET_BITS - 1. */
int cpumask_parse(const char *text, struct cpuset *out, struct err *e);

/* The kernel's list of numbers ("0-3,8") in the file at path, of CPUs or of NUMA nodes, into *out.
 * 0, -errno, or as cpuset_parse(); the text begins with the path. */
int cpulist_read(const char *path, struct cpuset *out, struct err *e);

#endif
