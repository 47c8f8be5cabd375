#include <numafit/nrt.h>

#include <string.h>

static struct amount *entry(struct amount *list, unsigned nr, unsigned resource)
{
	for (unsigned i = 0; i < nr; i++)
		if (list[i].resource == resource)
			return &list[i];
	return NULL;
}

/* Each resource of *more into the list of *nr: what is there already becomes the greater of both,
 * or their sum. */
static void merge(struct amount *list, unsigned *nr, const struct amounts *more, bool sum)
{
	for (unsigned i = 0; i < more->nr; i++) {
		const struct amount *a = &more->at[i];
		struct amount *there = entry(list, *nr, a->resource);

		if (!there)
			list[(*nr)++] = *a;
		else if (sum)
			there->q = quantity_add(there->q, a->q);
		else if (quantity_compare(a->q, there->q) > 0)
			there->q = a->q;
	}
}

struct amount *nrt_effective_request(const struct sched_pod *pod, unsigned *nr)
{
	unsigned most = pod->overhead.nr, nr_apps = 0;

	for (unsigned i = 0; i < pod->nr_containers; i++)
		most += pod->container[i].requests.nr;
	struct amount *all = xcalloc(most ? most : 1, sizeof *all);
	auto_free struct amount *apps = xcalloc(most ? most : 1, sizeof *apps);

	*nr = 0;
	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];

		if (c->kind == CONTAINER_APP)
			merge(apps, &nr_apps, &c->requests, true);
		else
			merge(all, nr, &c->requests, false);
	}
	merge(all, nr, &(struct amounts){apps, nr_apps}, false);
	merge(all, nr, &pod->overhead, true);
	return all;
}

static struct sched_topology *copy_of(const struct sched_topology *t)
{
	struct sched_topology *copy = sched_topology_new(t->zone_id, t->nr_zones);
	struct sched_topology own = *copy;

	*copy = *t;
	copy->cost = own.cost;
	memcpy(copy->cost, t->cost, (size_t)t->nr_zones * t->nr_zones * sizeof *t->cost);
	copy->resources = own.resources;
	copy->fingerprint = t->fingerprint ? xstrdup(t->fingerprint) : NULL;
	for (size_t i = 0; i < t->resources.nr; i++) {
		const struct zone_resource *r = &t->resources.at[i];

		for (unsigned zone = 0; zone < t->nr_zones; zone++)
			if (r->listed >> zone & 1)
				sched_topology_resource(copy, zone, r->resource,
					&(struct zone_amounts){r->capacity[zone],
						r->allocatable[zone], r->available[zone]});
	}
	return copy;
}

/* Nobody knows which zone the pod will get, so it takes from all of them. */
static void take_everywhere(struct sched_topology *t, const struct amount *a)
{
	const struct zone_resource *r = sched_topology_find(t, a->resource);

	for (unsigned zone = 0; r && zone < t->nr_zones; zone++) {
		struct quantity rest = quantity_sub(r->available[zone], a->q);

		r->available[zone] = rest.whole < 0 ? quantity_of(0) : rest;
	}
}

struct sched_topology *nrt_over_reserve(
	const struct sched_topology *t, const struct sched_pod *pods, size_t nr_pods)
{
	struct sched_topology *view = copy_of(t);

	for (size_t p = 0; p < nr_pods; p++) {
		unsigned nr;
		auto_free struct amount *effective = nrt_effective_request(&pods[p], &nr);

		for (unsigned i = 0; i < nr; i++)
			take_everywhere(view, &effective[i]);
	}
	return view;
}

/* cache/podprovider.go, resourcerequests/exclusive.go */
static bool is_exclusive_amount(const struct sched_pod *pod, const struct sched_topology *t,
	const struct resource_table *names, const struct amount *a)
{
	if (quantity_compare(a->q, quantity_of(0)) <= 0)
		return false;
	if (!names->at[a->resource].native)
		return sched_topology_find(t, a->resource) != NULL;
	if (pod->qos != QOS_GUARANTEED)
		return false;
	if (a->resource == RESOURCE_CPU)
		return a->q.nano == 0;
	return a->resource == RESOURCE_MEMORY || names->at[a->resource].huge_page;
}

bool nrt_pod_is_exclusive(const struct sched_pod *pod, const struct sched_topology *t,
	const struct resource_table *names)
{
	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];

		if (c->kind == CONTAINER_INIT)
			continue;
		for (unsigned r = 0; r < c->requests.nr; r++)
			if (is_exclusive_amount(pod, t, names, &c->requests.at[r]))
				return true;
	}
	return false;
}
