#ifndef NUMAFIT_HOST_ISOLATED_H
#define NUMAFIT_HOST_ISOLATED_H

#include <numafit/cpuset.h>

/* The CPUs that the kernel's scheduler leaves alone, on the machine whose /sys is under root ("", or
 * a recorded tree): those of the kernel's command line (isolcpus=; /sys/devices/system/cpu/isolated)
 * and of isolated cpuset partitions (cpuset.cpus.isolated of the root cgroup, Linux 6.7). What cannot
 * be read says nothing. Reads two small files; never fails. */
struct cpuset isolated_read(const char *root);

#endif
