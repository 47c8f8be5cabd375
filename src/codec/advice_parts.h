#ifndef NUMAFIT_CODEC_ADVICE_PARTS_H
#define NUMAFIT_CODEC_ADVICE_PARTS_H

#include <codec/advice.h>

/* What readers of advice have in common: ids of NUMA nodes, amounts, the one entry for everybody. */

struct json_t; /* jansson's */

/* Amounts, one after the other; a container's are a stretch of them. */
struct advice_amounts {
	const struct topo *t;
	struct arena *arena;
	struct advice_amount *at;
	size_t nr, room;
};
/* Room for all that text can hold. 0 or -ENOMEM. */
int advice_amounts_init(
	struct advice_amounts *a, const char *text, const struct advice_context *c, struct err *e);
/* Add one; for a NUMA node that the machine lacks it is only checked. 0, -EINVAL, -ERANGE, -ENOMEM.
 */
int advice_amounts_add(struct advice_amounts *a, unsigned node_id, const char *resource,
	const char *quantity, struct err *e);
/* Add those of {"cpu":"4","memory":"8Gi"}; whole numbers may be numbers. As above. */
int advice_amounts_add_json(
	struct advice_amounts *a, unsigned node_id, struct json_t *resources, struct err *e);

/* Add the NUMA node, or those of a kernel list. 0, -EINVAL, -ERANGE. */
void advice_nodes_add(struct advice_container *to, const struct topo *t, unsigned id);
int advice_nodes_add_list(
	struct advice_container *to, const struct topo *t, const char *list, struct err *e);
/* The number of a NUMA node, exactly the len bytes at s. 0, -EINVAL, -ERANGE. */
int advice_node_id(const char *s, size_t len, unsigned *out, struct err *e);

/* The advice is for every container of the pod alike, with these NUMA nodes and amounts: how all
 * projects but ours have it. No NUMA nodes and no CPUs: no entry. 0 or -ENOMEM. */
int advice_for_all(struct advice *h, struct advice_container nodes, const struct advice_amounts *a,
	struct err *e);

/* The readers of other projects' annotations, as in struct hint_source. */
#define ADVICE_READER(name)                                                                        \
	int name(const char *text, const struct advice_context *c, struct advice *out,             \
		struct err *e)
ADVICE_READER(advice_koordinator_status_read); /* {"cpuset":"0-3","numaNodeResources":[...]} */
ADVICE_READER(advice_koordinator_spec_read);   /* {"requiredCPUBindPolicy":"FullPCPUs"} */
ADVICE_READER(advice_volcano_read);            /* {"numa":{"0":{"cpu":"4"}}} */
ADVICE_READER(advice_crane_read);    /* [{"name":"node1","type":"Node","resources":...}] */
ADVICE_READER(advice_katalyst_read); /* 0-1 */
ADVICE_READER(advice_godel_read);    /* 0:cpu=20,memory=100Gi;1:cpu=18 */
ADVICE_READER(advice_policy_read);   /* single-numa-node */

#endif
