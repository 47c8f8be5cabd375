#ifndef NUMAFIT_NUMAFITD_METRICS_TEXT_H
#define NUMAFIT_NUMAFITD_METRICS_TEXT_H

#include <codec/prometheus.h>
#include <codec/status_json.h>
#include <io/process.h>

/* What is measured, as Prometheus reads it. Names are modelled on the
 * kubelet's, so that its dashboards are a guide to ours; units are seconds and bytes. Where one
 * metric has several states, these exclude each other: their sum means something. */

/* What the container runtime asks (struct nri_handler). */
enum metrics_hook {
	HOOK_SYNCHRONIZE,
	HOOK_RUN_POD,
	HOOK_CREATE,
	HOOK_UPDATE,
	HOOK_STOP,
	HOOK_REMOVE,
	HOOK_LIVE,
	HOOK_STARTED,
	HOOK_REMOVE_POD,
	NR_HOOKS
};

enum metrics_verdict { VERDICT_ADMITTED, VERDICT_REFUSED, NR_VERDICTS };

/* Counted for metrics alone, all since the daemon's start; more is in struct status_counters. */
struct metrics_counters {
	/* Containers that were admitted and refused, and pods that were refused as a whole; in mode
	 * shadow what would have become of them. By the policy whose verdict it was. */
	uint64_t verdicts[NR_POLICIES][NR_VERDICTS];
	struct histogram admission;          /* a container's, from its request to the decision */
	uint64_t cpu_pins, cpu_pins_refused; /* containers that were to have CPUs alone */
	uint64_t memory_pins, memory_pins_refused;
	uint64_t advice[NR_ADVICE_VERDICTS]; /* one for each container */
	uint64_t healed;                     /* drifts that were found to be put right */
	struct histogram hook[NR_HOOKS];     /* from the decoded request to its answer */
	uint64_t journal_writes, journal_errors;
};

/* An object that is kept in the API server. */
enum metrics_object_kind { OBJECT_NRT, OBJECT_NUMATOPOLOGY, NR_OBJECTS };
struct metrics_object {
	bool on; /* false: it is not shown */
	uint64_t written, conflicts, failed;
	uint64_t lag_ns;    /* of the last change: until the server had it */
	uint64_t behind_ns; /* since when the oldest change that it has not is waiting */
};

/* Moves of running containers that made room. */
enum metrics_move { MOVE_MADE, MOVE_TAKEN_BACK, NR_METRICS_MOVES };
struct metrics_moves {
	uint64_t made[NR_METRICS_MOVES];
	uint64_t bytes, ns; /* of those that were made: memory, and the time it took */
	uint64_t under_way; /* 0 or 1 */
};

/* The API server's side; zeros: there is none. */
struct metrics_cluster {
	struct metrics_object object[NR_OBJECTS];
	bool events, evictions, annotations; /* whether they are shown */
	uint64_t event[3];                   /* sent, failed, dropped */
	uint64_t eviction[3];                /* evicted, failed, dropped */
	uint64_t observed[3];                /* placements: written, failed, dropped */
};

struct metrics {
	const char *version;
	const struct settings *settings;
	const struct snapshot *snapshot;
	unsigned promised[NODES_MAX]; /* CPUs kept for tokens that nobody has come for yet */
	struct status_counters counters;
	struct metrics_counters measured;
	uint64_t connected; /* to the runtime, and synchronized: 1 */
	uint64_t generation, journal_bytes;
	uint64_t journal_failing;      /* it cannot be written: 1 */
	struct status_kubelet kubelet; /* no tokens: they are off */
	bool has_config, has_apiserver, has_claims, has_dra;
	struct status_config config;
	struct status_apiserver apiserver;
	struct status_claims claims;
	struct status_dra dra;
	uint64_t shares; /* of claims, that are held */
	struct status_pool pool;
	uint64_t confined[NR_CONFINED_BY]; /* containers of the shared pool */
	struct status_quota quota;
	struct status_quiet quiet;
	struct metrics_moves moves;
	bool has_quiet; /* else it is not looked at */
	struct metrics_cluster cluster;
	struct process_figures process;
};

/* The text, of *len bytes; the caller frees. The same metrics give the same text. */
char *metrics_text(const struct metrics *m, size_t *len);

#endif
