/* What the filter and the scores ask of a pod that is made ready for many nodes. */
#include "nrt_ask.h"

#include <stdarg.h>
#include <stdio.h>

enum { STEP_LINE_MAX = 400 };

void nrt_add_step(const struct nrt_ask *ask, const struct nrt_part *part, const char *fmt, ...)
{
	char line[STEP_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	if (part->container)
		steps_add(ask->steps, "%s container %s: %s",
			container_kind_words[part->container->kind], part->container->name, line);
	else
		steps_add(ask->steps, "pod: %s", line);
}

const char *nrt_zones_text(char *buf, const struct sched_topology *t, uint64_t zones)
{
	struct node_ids ids = {.nr = NODES_MAX};
	struct nodeset numa = {0};

	for (unsigned i = 0; i < NODES_MAX; i++)
		ids.id[i] = (uint16_t)i;
	for (; zones; zones &= zones - 1)
		numa = nodeset_or(numa, nodeset_of(t->zone_id[__builtin_ctzll(zones)]));
	return nodeset_empty(numa) ? strcpy(buf, "none")
				   : nodeset_format(numa, &ids, buf, NRT_ZONES_TEXT_MAX);
}

void nrt_ask_of(struct nrt_ask *ask, const struct sched_topology *t)
{
	for (unsigned i = 0; i < ask->nr_columns; i++) {
		struct nrt_column *c = &ask->column[i];
		const struct zone_resource *r = sched_topology_find(t, c->resource);

		c->listed = r ? r->listed : 0;
		c->available = r ? r->available : NULL;
		__builtin_prefetch(c->available); /* of a large cluster, each is far away */
	}
}

struct quantity *nrt_own(struct nrt_column *c, const struct sched_topology *t)
{
	if (c->available != c->own)
		memcpy(c->own, c->available, t->nr_zones * sizeof *c->own);
	c->available = c->own;
	return c->own;
}

bool nrt_is_stale(const struct nrt_ask *ask, const struct sched_node *node)
{
	return ask->args->discard_reserved && node->nr_pods;
}
