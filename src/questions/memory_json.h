#ifndef NUMAFIT_QUESTIONS_MEMORY_JSON_H
#define NUMAFIT_QUESTIONS_MEMORY_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>

struct json_t; /* jansson's */

/* The question `memory`: what the kubelet's Static memory manager does with a sequence of pods, the
 * Topology Manager's answers given.
 *   {"nodes": [{"id": ID, "memory": bytes, "hugepages": {type: pages}}],
 *    "reserved_memory": [{"numaNode": ID, "limits": {type: quantity}}],
 *    "node_reservation": {type: quantity}, what Node Allocatable reserves in all,
 *    "steps": [{"op": "add", "pod": v1.Pod, "scope": "container"|"pod",
 *               "affinities": {container: {"mask": [ids]|null, "preferred": bool}}},
 *              {"op": "start", "uid": ..., "containers": [names]}, {"op": "remove", "uid": ...}]}
 * Answer: {"initial": {node: {type: {"total", "system_reserved", "allocatable"}}}, "steps": [...]},
 * or {"error": ...} where the memory manager would not start. Each step has "after", the state by
 * node once containers of pods that are not active are collected; add has "containers" up to the
 * first error, each with "name", "hints" (container scope; null: no preference, {}: no set of nodes
 * has room), "error" and "blocks", and with scope pod "pod_hints". After an error the pod is not
 * active. A machine has at most MEMORY_JSON_NODES_MAX nodes, as the hints are listed. */

enum { MEMORY_JSON_NODES_MAX = 12 };

/* Read it from the object, play the steps, and give the answer as *result (a new reference).
 * Working memory from *a. 0; -EINVAL, -ERANGE, -ENOSPC, -ENOMEM: no answer, the text says why. */
int memory_json_answer(struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
