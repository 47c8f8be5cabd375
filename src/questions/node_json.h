#ifndef NUMAFIT_QUESTIONS_NODE_JSON_H
#define NUMAFIT_QUESTIONS_NODE_JSON_H

#include <questions/machine_json.h>

/* The question `node`: what comes to a node, step by step.
 *   {"machine": machine_json.h, "settings": {...}, "steps": [...], "reasons": bool}
 * The steps are all of one kind:
 *   whole pods as the kubelet admits them, {"op": "admit", "pod": v1.Pod},
 *     {"op": "start", "uid", "containers": [names]}, {"op": "remove", "uid"}; the settings are a
 *     kubelet's then, with its defaults (without max-allowable-numa-nodes its limit of 8 NUMA nodes
 *     counts, too), or
 *   events of a container runtime as the daemon answers them (node_events_json.h), with the
 *     daemon's settings and defaults, except that searches are not bounded and sharedPoolStep is 0.
 * The answer is {"reserved_cpus", "steps": [...]}, or {"error"} where kubelet or daemon would not
 * start. DECIDE_WARNINGS, where there are any, are of settings that change no decision
 * (settings_idle()): they are printed beside the result, and not compared. */
#define DECIDE_WARNINGS "warnings"

/* Decide it; load finds machines by name, or is NULL. *result is a new reference. 0; -EINVAL,
 * -ERANGE, -ENOMEM, the loader's: it cannot be read, the text leads to the place. */
int node_json_answer(struct json_t *item, machine_loader *load, struct arena *a,
	struct json_t **result, struct err *e);

#endif
