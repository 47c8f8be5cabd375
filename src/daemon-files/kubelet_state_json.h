#ifndef NUMAFIT_NUMAFITD_KUBELET_STATE_JSON_H
#define NUMAFIT_NUMAFITD_KUBELET_STATE_JSON_H

#include <numafit/err.h>

#include <stdbool.h>
#include <stddef.h>

/* The checkpoints cpu_manager_state and memory_manager_state in the kubelet's root directory
 * (pkg/kubelet/cm/{cpumanager,memorymanager}/state/checkpoint.go), of which only the policy is of
 * interest: {"policyName":"static",...}. */

enum { KUBELET_STATE_MAX = 16 << 20 };

/* Whether the manager that wrote the len bytes at text is a static one, into *is_static. 0;
 * -EINVAL: not such a checkpoint, -ENOMEM: longer than KUBELET_STATE_MAX. */
int kubelet_state_json_parse(const char *text, size_t len, bool *is_static, struct err *e);

#endif
