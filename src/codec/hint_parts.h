#ifndef NUMAFIT_CODEC_HINT_PARTS_H
#define NUMAFIT_CODEC_HINT_PARTS_H

#include <codec/hints.h>

/* What readers of hints have in common: ids of NUMA nodes, amounts, the one entry for everybody. */

struct json_t; /* jansson's */

/* Amounts, one after the other; a container's are a stretch of them. */
struct hint_amounts {
	const struct topo *t;
	struct arena *arena;
	struct sched_hint_amount *at;
	size_t nr, room;
};
/* Room for all that text can hold. 0 or -ENOMEM. */
int hint_amounts_init(
	struct hint_amounts *a, const char *text, const struct hint_context *c, struct err *e);
/* Add one; for a NUMA node that the machine lacks it is only checked. 0, -EINVAL, -ERANGE, -ENOMEM.
 */
int hint_amounts_add(struct hint_amounts *a, unsigned node_id, const char *resource,
	const char *quantity, struct err *e);
/* Add those of {"cpu":"4","memory":"8Gi"}; whole numbers may be numbers. As above. */
int hint_amounts_add_json(
	struct hint_amounts *a, unsigned node_id, struct json_t *resources, struct err *e);

/* Add the NUMA node, or those of a kernel list. 0, -EINVAL, -ERANGE. */
void hint_nodes_add(struct sched_hint_container *to, const struct topo *t, unsigned id);
int hint_nodes_add_list(
	struct sched_hint_container *to, const struct topo *t, const char *list, struct err *e);
/* The number of a NUMA node, exactly the len bytes at s. 0, -EINVAL, -ERANGE. */
int hint_node_id(const char *s, size_t len, unsigned *out, struct err *e);

/* The hint is for every container of the pod alike, with these NUMA nodes and amounts: how all
 * projects but ours have it. No NUMA nodes and no CPUs: no entry. 0 or -ENOMEM. */
int hint_for_all(struct sched_hint *h, struct sched_hint_container nodes,
	const struct hint_amounts *a, struct err *e);

/* The readers of other projects' annotations, as in struct hint_source. */
#define HINT_READER(name)                                                                          \
	int name(const char *text, const struct hint_context *c, struct sched_hint *out,           \
		struct err *e)
HINT_READER(hint_koordinator_status_read); /* {"cpuset":"0-3","numaNodeResources":[...]} */
HINT_READER(hint_koordinator_spec_read);   /* {"requiredCPUBindPolicy":"FullPCPUs"} */
HINT_READER(hint_volcano_read);            /* {"numa":{"0":{"cpu":"4"}}} */
HINT_READER(hint_crane_read);              /* [{"name":"node1","type":"Node","resources":...}] */
HINT_READER(hint_katalyst_read);           /* 0-1 */
HINT_READER(hint_godel_read);              /* 0:cpu=20,memory=100Gi;1:cpu=18 */
HINT_READER(hint_policy_read);             /* single-numa-node */

#endif
