#ifndef NUMAFIT_GAIN_H
#define NUMAFIT_GAIN_H

#include "stats.h"

#include <numafit/topo.h>

/* What `make gain` measures: loads, each of them in every arm (a way to place the same container),
 * several times, the arms one after another in each round. */

enum arm_id { ARM_UNPINNED, ARM_STATIC, ARM_NUMAFIT, ARM_FAR, NR_ARMS };
enum load_id { LOAD_TRIAD, LOAD_CHASE, LOAD_LOOP, LOAD_REDIS, NR_LOADS };
enum { FIGURES_MAX = 4, RUNS_MAX = 99, NOTES_MAX = 16, NOTE_TEXT_MAX = 256, GAIN_NAME_MAX = 32 };

/* One figure of a load, and whether more of it is better. */
struct figure_kind {
	const char *name, *unit;
	bool more;
};
struct load_kind {
	const char *name; /* as --only takes it */
	const char *what; /* for people */
	struct figure_kind figure[FIGURES_MAX];
	unsigned nr_figures;
};
extern const struct load_kind load_kinds[NR_LOADS];

/* Where an arm's container runs. `pool` is for what runs beside it. */
struct arm {
	bool there; /* false: this machine cannot have it */
	struct cpuset cpus, pool;
	struct nodeset mems;
	bool binds_memory; /* mems are not simply all there are */
	bool quota;        /* the CFS quota that the container's limit brings is kept */
};
extern const char *const arm_names[NR_ARMS]; /* for JSON */
extern const char *const arm_titles[NR_ARMS];

/* One run of a load. The process that runs it writes into shared memory. */
struct sample {
	bool done;
	char why[NOTE_TEXT_MAX]; /* it is not */
	double value[FIGURES_MAX];
	bool has_remote;
	double remote;             /* share of accesses to memory of other nodes, 0 to 1 */
	uint64_t pages[NODES_MAX]; /* of the load's memory, by NUMA node (dense index) */
};

/* All runs of one load in one arm. */
struct outcome {
	unsigned nr, nr_remote;
	double value[FIGURES_MAX][RUNS_MAX];
	double remote;             /* the sum over nr_remote runs */
	uint64_t throttled;        /* nr_throttled of all runs together */
	uint64_t pages[NODES_MAX]; /* of the last run */
};

struct gain {
	const char *machine; /* as for `numafit topology --machine`: "this" */
	const struct topo *topo;
	struct arm arm[NR_ARMS];
	unsigned ask_cpus, held_cpus, runs;
	uint64_t bytes;
	double seconds;
	struct cpuset reserved;
	bool alone;   /* no other container has CPUs before */
	bool cgroups; /* else by affinity, without a quota */
	bool runs_load[NR_LOADS];
	struct outcome of[NR_LOADS][NR_ARMS];
	unsigned nr_notes;
	char note[NOTES_MAX][NOTE_TEXT_MAX]; /* what is left out, or makes figures say less */
};

/* One more note, for the table's end and the JSON; beyond NOTES_MAX it is dropped. */
void gain_note(struct gain *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Median and range of a figure in an arm. */
struct spread gain_spread(
	const struct gain *g, enum load_id load, enum arm_id arm, unsigned figure);

/* The table, and behind it in words what gained. */
void gain_print(const struct gain *g, FILE *to);
/* The same figures as bars. */
void gain_draw(const struct gain *g, FILE *to);
/* The same as JSON, with all values; the caller frees. */
char *gain_json(const struct gain *g);

#endif
