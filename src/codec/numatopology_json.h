#ifndef NUMAFIT_CODEC_NUMATOPOLOGY_JSON_H
#define NUMAFIT_CODEC_NUMATOPOLOGY_JSON_H

#include <codec/sched_json.h>
#include <numafit/report.h>
#include <numafit/volcano.h>

/* A Numatopology, nodeinfo.volcano.sh/v1alpha1, as Volcano's resource-exporter publishes it: its
 * policies, cpuDetail, the cpu of numares and of resReserved. Arrays live in *a, strings belong to
 * the JSON value. 0; -EINVAL, -ERANGE with the place: among them a CPU id from CPUSET_BITS on, and
 * more NUMA nodes than NODES_MAX; -ENOMEM. */
int numatopology_json_read(
	struct json_t *v, struct arena *a, struct volcano_node *out, struct err *e);

/* A report as the Numatopology, nodeinfo.volcano.sh/v1alpha1, that a server-side apply sends, as
 * Volcano's resource-exporter publishes it: policies, CPUs and which container has which, no
 * memory. NUMA nodes and sockets have the kernel's ids; cores are counted within their socket. Free
 * are the CPUs that nobody holds and no token is promised, reserved ones among them: the scheduler
 * takes those off itself. l is the ledger that the report was taken from, s its settings; beat
 * moves with each heartbeat. The same report gives the same bytes; the caller frees. NULL: the
 * node's name or uid is not UTF-8. */
char *numatopology_json_write(
	const struct report *r, const struct ledger *l, const struct settings *s, uint64_t beat);

#endif
