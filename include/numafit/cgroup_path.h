#ifndef NUMAFIT_CGROUP_PATH_H
#define NUMAFIT_CGROUP_PATH_H

#include <numafit/err.h>

#include <stdbool.h>
#include <stddef.h>

enum { CGROUP_PATH_MAX = 1024 };

/* The directory below the hierarchy's root of a container's cgroup, as the OCI runtime makes it
 * from linux.cgroupsPath, into buf of cap bytes: "/kubepods/pod1/ID" as it is; of the systemd form
 * "SLICE:PREFIX:NAME" "/kubepods.slice/kubepods-pod1.slice/cri-containerd-ID.scope" (runc
 * libcontainer/cgroups/systemd, ExpandSlice and getUnitName). 0; -EINVAL, -ENAMETOOLONG. */
int cgroup_path(const char *cgroups_path, char *buf, size_t cap, struct err *e);

/* The directory above it, as cgroup_path() has it: of a container, its pod's. 0; -EINVAL: nothing but
 * the hierarchy's root is above it; and as cgroup_path(). */
int cgroup_path_above(const char *cgroups_path, char *buf, size_t cap, struct err *e);

/* Whether a directory is called as the kubelet calls that pod's cgroup (pkg/kubelet/cm/
 * pod_container_manager_linux.go): "pod" and its uid, in which systemd's form has "_" for "-". Not of a
 * pod without a uid. */
bool cgroup_is_pods(const char *directory, const char *pod_uid);
/* The same for the cgroups of the QoS classes Burstable and BestEffort. */
bool cgroup_is_class(const char *directory);

#endif
