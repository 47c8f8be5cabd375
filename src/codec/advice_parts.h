#ifndef NUMAFIT_CODEC_ADVICE_PARTS_H
#define NUMAFIT_CODEC_ADVICE_PARTS_H

#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/pod.h>

/* The readers of advice, one for each kind of annotation, and what they have in common (it stands
 * in advice_json.c). */

struct json_t; /* jansson's */

enum { ADVICE_TEXT_MAX = 64 << 10, ADVICE_DEPTH_MAX = 8, ADVICE_ARENA_BYTES = 4 << 20 };
#define ADVICE_KEY        "numafit.io/numa-hint"
#define ADVICE_POLICY_KEY "numafit.io/topology-policy"

/* What an annotation speaks of. */
enum advice_about { ADVICE_ABOUT_NODES, ADVICE_ABOUT_POLICY, ADVICE_ABOUT_CPUS };

struct advice_context {
	const struct topo *t; /* borrowed; gives NUMA nodes their indexes */
	struct arena *arena;  /* all that is read lives here; ADVICE_ARENA_BYTES hold any value */
};

/* What its value is: plain text, or JSON and of which kind. */
enum advice_form { ADVICE_TEXT, ADVICE_OBJECT, ADVICE_LIST };

struct advice_reading;
/* A kind of annotation. */
struct advice_source {
	const char *key;
	enum advice_format format;
	enum advice_about about;
	enum advice_form form;
	/* Fill *out, zeros but for its format. Only advice_read() calls it. */
	int (*read)(struct advice_reading *r, struct advice *out, struct err *e);
};
/* Read a value. 0, with *out (nr_containers 0: it names no NUMA nodes); -ENOTSUP: a version of ours
 * that is not known; -EINVAL, -ERANGE, -E2BIG, -ENOMEM: it cannot be read; the text says why. *out
 * is written only on success. */
int advice_read(const struct advice_source *source, const char *text,
	const struct advice_context *c, struct advice *out, struct err *e);

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

/* The row of our own hint among the sources. */
#define ADVICE_OWN_SOURCE                                                                          \
	{                                                                                          \
		ADVICE_KEY, ADVICE_NUMAFIT, ADVICE_ABOUT_NODES, ADVICE_OBJECT, advice_json_read    \
	}

#endif
