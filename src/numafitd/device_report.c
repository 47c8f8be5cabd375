/* The devices of the node as the kubelet has them -> the report for schedulers. */
#include "services_state.h"

#include <numafit/text.h>

static int report_index_of(const struct daemon *d, int64_t id)
{
	return id >= 0 && id <= NODE_ID_MAX ? node_index(&d->topo.ids, (unsigned)id) : -1;
}

/* Tokens are reported from the ledger, which knows them sooner. */
static bool is_theirs(const struct device_count *c)
{
	return !text_equal(c->resource, TOKEN_RESOURCE);
}

static void copy_counts(
	const struct daemon *d, const struct device_count *from, struct report_devices *to)
{
	to->resource = from->resource;
	for (size_t i = 0; i < from->nr; i++) {
		int node = report_index_of(d, from->on[i].id);

		if (node < 0)
			continue;
		to->allocatable[node] = from->on[i].allocatable;
		to->used[node] = from->on[i].used;
	}
}

/* Whether the container has devices, other than tokens, that are on NUMA nodes. */
static bool has_devices(void *ctx, const struct holding *h, struct nodeset *nodes)
{
	const struct daemon *d = ctx;
	const struct container_held *held = pod_resources_find(d->services->pod_resources,
		h->request.pod.ns, h->request.pod.name, h->request.ask.name);
	bool has = false;

	for (size_t i = 0; held && i < held->nr_devices; i++) {
		const struct held_device *device = &held->device[i];

		for (size_t k = 0; k < device->nodes.nr; k++) {
			int node = report_index_of(d, device->nodes.id[k]);

			if (node < 0 || text_equal(device->resource, TOKEN_RESOURCE))
				continue;
			*nodes = nodeset_or(*nodes, nodeset_of((unsigned)node));
			has = true;
		}
	}
	return has;
}

void services_report(const struct daemon *d, struct report_facts *f, struct arena *a)
{
	const struct services *v = d->services;
	const struct device_count *counts;
	struct report_devices *list;
	size_t nr;

	if (!v || !v->pod_resources ||
		pod_resources_devices(v->pod_resources, a, &counts, &nr) < 0 || !nr)
		return;
	list = arena_array(a, nr, sizeof *list);
	for (size_t i = 0; list && i < nr; i++)
		if (is_theirs(&counts[i]))
			copy_counts(d, &counts[i], &list[f->nr_devices++]);
	f->devices = list;
	f->ctx = (void *)(uintptr_t)d;
	f->has_devices = has_devices;
}
