#ifndef NUMAFIT_SIM_REPORT_H
#define NUMAFIT_SIM_REPORT_H

#include <numafit-sim/trace_yaml.h>
#include <numafit-sim/node.h>
#include <stdio.h>

/* What the simulator prints while it plays: one line for every container created, updated and
 * stopped, and a summary; as a table of 100 columns for people, or as lines of JSON. */

struct report {
	FILE *out;
	bool json;
	const struct sim_node *node;
	unsigned placed, refused;                      /* of those that were created */
	unsigned one_node, nearest, farther, any_node; /* of the placed ones; any: bound to none */
	unsigned updates_refused;
	unsigned updates; /* cpusets that running containers were given for others */
};

enum { REPORT_DEVICES_MAX = 1024 }; /* bytes of what is printed of a container's devices */

void report_begin(struct report *r);
/* A container was created, or refused with that message; moved: how many running containers got
 * another cpuset by the same answer. */
void report_create(
	struct report *r, const struct container *c, const char *refusal, unsigned moved);
/* A running container was changed: what is in force now; or, refused, it is what *c asked for. */
void report_update(
	struct report *r, const struct container *c, const char *refusal, unsigned moved);
/* A container is gone; how: "stopped". */
void report_stop(struct report *r, const struct container *c, const char *how, unsigned moved);
/* The runtime came back and listed nr containers. */
void report_restart(struct report *r, unsigned nr, unsigned moved);
/* So did the kubelet. */
void report_restart_kubelet(struct report *r);
/* The trace is done: the node as a picture (not in JSON), and the sums. */
void report_end(struct report *r);

/* 1500 -> "1500m", 2000 -> "2"; 0 -> "-". */
enum { CPU_TEXT_MAX = 24 };
/* "16Gi+4x1Gi": ordinary memory, then huge pages; "-" when nothing is asked for. */
enum { MEMORY_TEXT_MAX = 512 };
/* "10", "10.5", "11.1": the average with at most one place. */
enum { DISTANCE_TEXT_MAX = 16 };
const char *distance_text(char buf[DISTANCE_TEXT_MAX], const struct topo *t, struct nodeset nodes);

enum { PICTURE_WIDTH = 100 };

/* Draw the node: a block for every NUMA node, socket by socket, in it a row for every hardware
 * thread of its cores, each CPU with the letter of the container that has it for itself; then what
 * the letters mean. Plain ASCII, PICTURE_WIDTH columns unless a single NUMA node needs more. */
void picture_draw(FILE *out, const struct sim_node *n);
/* The advised containers in a table: what each asked for, what it was given, and the verdict.
 * Nothing when there are none. */
void advised_print(FILE *out, const struct sim_node *n);

#endif
