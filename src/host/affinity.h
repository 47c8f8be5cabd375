#ifndef NUMAFIT_HOST_AFFINITY_H
#define NUMAFIT_HOST_AFFINITY_H

#include <numafit/cpuset.h>
#include <numafit/err.h>

#include <stdint.h>

/* The CPUs that a process may run on: its CPU affinity within its cgroup's cpuset. A process
 * inherits the affinity from its parent, and since Linux 6.2 a cgroup's cpuset does not undo it
 * (sched(7), kernel commit da019032819a). */

/* Read them from /proc of the system under root ("/", or a recorded tree), into *out. pid 0: the
 * calling process. 0; -ENOENT, -ESRCH: there is no such process in the PID namespace of that /proc;
 * -EINVAL: its file has no list of CPUs; -errno. */
int affinity_read(const char *root, uint64_t pid, struct cpuset *out, struct err *e);

#endif
