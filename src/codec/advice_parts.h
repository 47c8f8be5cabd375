#ifndef NUMAFIT_CODEC_ADVICE_PARTS_H
#define NUMAFIT_CODEC_ADVICE_PARTS_H

#include <codec/advice.h>

/* The readers of advice, one for each kind of annotation, and what they have in common (it stands
 * in advice_json.c). */

struct json_t; /* jansson's */

/* An annotation's value on its way to become advice. */
struct advice_reading {
	const struct topo *t;
	struct arena *arena;
	const char *text;
	struct json_t *json; /* the text parsed; NULL of a source that is plain text */
	/* amounts, one after the other; a container's are a stretch of them */
	struct advice_amount *amount;
	size_t nr_amounts, room;
	struct advice_container all; /* what is read for every container of the pod alike */
};

/* Add the NUMA node, or those of a kernel list. 0, -EINVAL, -ERANGE. */
void advice_add_node(struct advice_container *to, const struct topo *t, unsigned id);
int advice_add_nodes(
	struct advice_container *to, const struct topo *t, const char *list, struct err *e);
/* The number of a NUMA node, which the whole of s is. 0, -EINVAL, -ERANGE. */
int advice_node_id(const char *s, unsigned *out, struct err *e);
/* Add an amount; for a NUMA node that the machine lacks it is only checked. 0, -EINVAL, -ERANGE,
 * -ENOMEM. */
int advice_add_amount(struct advice_reading *r, unsigned node_id, const char *resource,
	const char *quantity, struct err *e);
/* Add those of {"cpu":"4","memory":"8Gi"}; whole numbers may be numbers. As above. */
int advice_add_resources(
	struct advice_reading *r, unsigned node_id, struct json_t *resources, struct err *e);

/* The advice is r->all with all amounts that were added, for every container of the pod alike: how
 * all projects but ours have it. No NUMA nodes and no CPUs: no entry. 0 or -ENOMEM. */
int advice_for_all(const struct advice_reading *r, struct advice *h, struct err *e);

/* The readers, as in struct advice_source. */
#define ADVICE_READER(name) int name(struct advice_reading *r, struct advice *out, struct err *e)
ADVICE_READER(advice_json_read);               /* ours, advice_json.h */
ADVICE_READER(advice_koordinator_status_read); /* {"cpuset":"0-3","numaNodeResources":[...]} */
ADVICE_READER(advice_koordinator_spec_read);   /* {"requiredCPUBindPolicy":"FullPCPUs"} */
ADVICE_READER(advice_volcano_read);            /* {"numa":{"0":{"cpu":"4"}}} */
ADVICE_READER(advice_crane_read);    /* [{"name":"node1","type":"Node","resources":...}] */
ADVICE_READER(advice_katalyst_read); /* 0-1 */
ADVICE_READER(advice_godel_read);    /* 0:cpu=20,memory=100Gi;1:cpu=18 */
ADVICE_READER(advice_policy_read);   /* single-numa-node */

#endif
