#ifndef NUMAFIT_QUESTIONS_NODE_EVENTS_JSON_H
#define NUMAFIT_QUESTIONS_NODE_EVENTS_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/settings.h>
#include <numafit/topo.h>
#include <stdbool.h>

struct json_t; /* jansson's */

/* The question `node` whose steps are events of a container runtime, answered by the daemon's own
 * engine (numafit/engine.h):
 *   run-pod     a sandbox starts: "pod", a v1.Pod, when its containers are known
 *   create      a container is being created
 *   live        it exists now, and runs
 *   update      somebody else changes its resources
 *   stop        its process has ended
 *   remove      it is removed
 *   stop-pod, remove-pod   the sandbox stops, is removed
 *   sync        all that runs: "containers" [{fields of a container, "placement": annotation}] and
 *               "sandboxes" [ids], without: those of the containers
 *
 * Fields of a pod: "sandbox_id" (else the uid), "pod_uid" (else metadata.uid of "pod", else the
 * sandbox's id), "pod_namespace", "pod_name" (else metadata's, "default" and the uid), "qos" (else
 * the class of "pod", else "Guaranteed"), "totals" {"cpu_milli", "memory_bytes"}: what the sandbox
 * says that its containers ask for together. A pod that a run-pod named is known by its sandbox_id
 * from then on.
 * Fields of a container, besides those of its pod: "container_name" ("main"), "container_id" (else
 * sandbox_id.container_name, or the name alone), "cpu_milli", "cpu_limit_milli", "memory"
 * [{"page_bytes", "bytes"}] (cpu_milli and memory else as in the pod's spec), "created_at_ns",
 * "cpus" and "mems" (kernel lists that it runs with).
 *
 * The answer of each step has "updates" [{"container_id", "cpus", "mems"}], the containers that
 * must be moved with this reply, and "pool", the CPUs for all that have none of their own; before
 * them
 *   create      the decision as the journal holds it: admit, source, policy, exclusive, cpus, mems,
 *               nodes, preferred, blocks, reason, message
 *   run-pod     "admit"; refused: the decision; of a pod that is known "parts", each with
 *               "container_name", "kind" and its decision
 *   sync        "adopted": "container_id" and decision of each that was not known
 *   update      the decision that is in force then, or that refuses the change; nothing for a
 *               container that is not known. What the step does not say of "qos", "cpu_milli" and
 *               "memory" stays as it is */

/* Whether a step with that op is such an event. */
bool node_events_has(const char *op);

/* Answer the steps in order, one object each appended to results. reasons: with the reasons of
 * every decision. 0; -EINVAL, -ERANGE, -ENOMEM with the place. */
int node_events_answer(const struct topo *t, const struct settings *s, bool reasons,
	const struct json_t *steps, struct arena *a, struct json_t *results, struct err *e);

#endif
