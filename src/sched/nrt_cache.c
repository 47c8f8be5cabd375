#include <numafit/nrt.h>

#include <sched/sched_place.h>
#include <string.h>

/* Each resource of *more into the list of *nr: what is there already becomes the greater of both,
 * or their sum. */
static void merge_amounts(struct amount *list, unsigned *nr, const struct amounts *more, bool sum)
{
	for (unsigned i = 0; i < more->nr; i++) {
		const struct amount *a = &more->at[i];
		struct amount *there = list;

		while (there < list + *nr && there->resource != a->resource)
			there++;
		if (there == list + *nr)
			list[(*nr)++] = *a;
		else if (sum)
			there->q = quantity_add(there->q, a->q);
		else if (quantity_compare(a->q, there->q) > 0)
			there->q = a->q;
	}
}

struct amount *nrt_effective_request(const struct sched_pod *pod, unsigned *nr)
{
	unsigned most = pod->overhead.nr + sched_pod_nr_requests(pod), nr_apps = 0;
	struct amount *all = xcalloc(most ? most : 1, sizeof *all);
	auto_free struct amount *apps = xcalloc(most ? most : 1, sizeof *apps);

	*nr = 0;
	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];

		if (c->kind == CONTAINER_APP)
			merge_amounts(apps, &nr_apps, &c->requests, true);
		else
			merge_amounts(all, nr, &c->requests, false);
	}
	merge_amounts(all, nr, &(struct amounts){apps, nr_apps}, false);
	merge_amounts(all, nr, &pod->overhead, true);
	return all;
}

static struct sched_topology *topology_copy(const struct sched_topology *t)
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

void zone_change(
	const struct zone_resource *r, unsigned zone, enum zone_change change, struct quantity q)
{
	struct quantity *available = &r->available[zone];

	if (change == ZONE_TAKE) {
		*available = quantity_sub(*available, q);
		if (available->whole < 0)
			*available = quantity_of(0);
	} else {
		*available = quantity_add(*available, q);
		if (quantity_compare(*available, r->allocatable[zone]) > 0)
			*available = r->allocatable[zone];
	}
}

void nrt_change_all_zones(
	struct sched_topology *t, const struct sched_pod *pod, enum zone_change change)
{
	unsigned nr;
	auto_free struct amount *all = nrt_effective_request(pod, &nr);

	for (unsigned i = 0; i < nr; i++) {
		const struct zone_resource *r = sched_topology_find(t, all[i].resource);

		for (unsigned zone = 0; r && zone < t->nr_zones; zone++)
			zone_change(r, zone, change, all[i].q);
	}
}

struct sched_topology *nrt_over_reserve(
	const struct sched_topology *t, const struct sched_pod *pods, size_t nr_pods)
{
	struct sched_topology *view = topology_copy(t);

	for (size_t i = 0; i < nr_pods; i++)
		nrt_change_all_zones(view, &pods[i], ZONE_TAKE);
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
