/* The devices of the node as the kubelet has them -> the report for schedulers. */
#include "services_state.h"

#include <numafit/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one pod, one for each container and resource. */
enum { OBSERVED_RESOURCES_MAX = 1024 };

static int report_index_of(const struct daemon *d, int64_t id)
{
	return id >= 0 && id <= NODE_ID_MAX ? node_index(&d->topo.ids, (unsigned)id) : -1;
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

		const struct nodeset on = nodeset_of_list(&d->topo.ids, device->nodes);

		if (nodeset_empty(on) || text_equal(device->resource, TOKEN_RESOURCE))
			continue;
		*nodes = nodeset_or(*nodes, on);
		has = true;
	}
	return has;
}

/* Devices of one resource of a container, which stand together. Returns how many. */
static size_t observe_resource(const struct daemon *d, const struct held_device *first, size_t nr,
	struct observed_devices *to)
{
	size_t i = 0;

	*to = (struct observed_devices){.resource = first->resource};
	for (; i < nr && text_equal(first[i].resource, to->resource); i++) {
		int node = first[i].nodes.nr == 1 ? report_index_of(d, *first[i].nodes.id) : -1;

		if (node >= 0)
			to->on[node]++;
	}
	return i;
}

static int by_resource(const void *a, const void *b)
{
	const struct observed_devices *x = a, *y = b;

	return strcmp(x->resource, y->resource);
}

/* One row for each resource of the list, which has several. */
static size_t merge_resources(struct observed_devices *list, size_t nr)
{
	size_t kept = 0;

	qsort(list, nr, sizeof *list, by_resource);
	for (size_t i = 0; i < nr; i++) {
		if (!kept || !text_equal(list[kept - 1].resource, list[i].resource)) {
			list[kept++] = list[i];
			continue;
		}
		for (unsigned n = 0; n < NODES_MAX; n++)
			list[kept - 1].on[n] += list[i].on[n];
	}
	return kept;
}

/* Of pods of one name the kubelet lists the one that has ended as well, without anything. */
int services_observe(const struct daemon *d, struct observed *o, struct arena *a)
{
	struct services *v = d->services;
	size_t nr = 0;

	if (!v || !v->pod_resources || !gather_is_answered(v, o->pod->uid, SINCE_SANDBOX))
		return -EAGAIN;
	const struct pods_held *held = pod_resources_held(v->pod_resources);
	struct observed_devices *list = arena_array(a, OBSERVED_RESOURCES_MAX, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < held->nr; i++) {
		const struct pod_held *p = &held->pod[i];

		if (!text_equal(p->ns, o->pod->ns) || !text_equal(p->name, o->pod->name))
			continue;
		for (size_t c = 0; c < p->nr; c++)
			for (size_t k = 0; k < p->container[c].nr_devices;) {
				if (nr == OBSERVED_RESOURCES_MAX)
					return -ENOMEM;
				k += observe_resource(d, &p->container[c].device[k],
					p->container[c].nr_devices - k, &list[nr++]);
			}
	}
	o->nr_devices = nr ? merge_resources(list, nr) : 0;
	o->devices = list;
	return 0;
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
		/* tokens are reported from the ledger, which knows them sooner */
		if (!text_equal(counts[i].resource, TOKEN_RESOURCE))
			copy_counts(d, &counts[i], &list[f->nr_devices++]);
	f->devices = list;
	f->ctx = (void *)(uintptr_t)d;
	f->has_devices = has_devices;
}
