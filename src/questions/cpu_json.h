#ifndef NUMAFIT_QUESTIONS_CPU_JSON_H
#define NUMAFIT_QUESTIONS_CPU_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>

struct json_t; /* jansson's */

/* The question `cpu`: which CPUs the kubelet's static CPU manager would give.
 *   {"cpus_fields": ["cpu", "core", "socket", "numa", "uncore"], "cpus": [[5 numbers], ...],
 *    "num_cores": n, "num_sockets": n, "want": CPUs, "mode": ...}
 * and with the mode "packed" or "distributed"
 *   {"available": [ids], "cpu_group_size": n, "spread": bool, "uncore": bool}
 * answered with {"cpus": [ids]} or {"error": ...}; with the mode "policy", one container,
 *   {"options": {...}, "topology_policy": ..., "reserved_cpus": [ids] (else picked),
 *    "reserved_count": n, "assigned": [ids], "reusable": [ids], "affinity": [node ids]|null}
 * answered with {"reserved_cpus", "hints": [...]|null, "cpus": [ids]|null, "default_after"}, and
 * "reason" and "error" when it is refused; {"cpus": null, "error"} when the policy does not start.
 * The feature gates of all options are on. */

/* The answer as *result (a new reference), with working memory from *a. 0; -EINVAL, -ERANGE,
 * -E2BIG (hints of too many NUMA nodes to be written out), -ENOMEM: cannot be read or answered, the
 * text says where and why. */
int cpu_json_answer(struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
