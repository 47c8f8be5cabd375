#include "sched_place_state.h"

#include <numafit/number.h>

#include <string.h>

/* The pod */

/* Whether a container that asks for this is given some of the zones' amounts. */
static bool is_amount_of_zones(
	const struct sched_pod *pod, const struct resource_table *names, const struct amount *a)
{
	const struct resource_kind *k = &names->at[a->resource];

	if (quantity_compare(a->q, quantity_of(0)) <= 0)
		return false;
	if (!k->native)
		return true;
	/* with spec.resources the managers give nothing to containers (gate off) */
	if (pod->qos != QOS_GUARANTEED || pod->own_requests.nr)
		return false;
	return a->resource == RESOURCE_MEMORY || k->huge_page ||
	       (a->resource == RESOURCE_CPU && !a->q.nano);
}

bool sched_pod_is_about_numa(const struct sched_pod *pod, const struct resource_table *names)
{
	for (unsigned c = 0; c < pod->nr_containers; c++) {
		const struct amounts *asks = &pod->container[c].requests;

		for (unsigned i = 0; i < asks->nr; i++)
			if (is_amount_of_zones(pod, names, &asks->at[i]))
				return true;
	}
	return false;
}

static enum way way_of(const struct resource_table *names, unsigned resource)
{
	if (resource == RESOURCE_CPU)
		return WAY_CPU;
	return resource == RESOURCE_MEMORY || names->at[resource].huge_page ? WAY_MEMORY
									    : WAY_DEVICE;
}

static unsigned walk_column_of(struct sched_walk *w, unsigned resource)
{
	unsigned i = 0;

	while (i < w->nr_columns && w->column[i].resource != resource)
		i++;
	if (i == w->nr_columns) {
		w->column[i].resource = resource;
		w->column[i].way = way_of(w->names, resource);
		w->asks_memory = w->asks_memory || w->column[i].way == WAY_MEMORY;
		w->nr_columns++;
	}
	return i;
}

static bool is_asked_for_by_an_app(const struct sched_pod *pod, unsigned resource)
{
	for (unsigned c = 0; c < pod->nr_containers; c++)
		if (pod->container[c].kind == CONTAINER_APP &&
			amounts_find(&pod->container[c].requests, resource))
			return true;
	return false;
}

/* Memory that only init containers ask for is left out (memory_pod_demand()). */
static void whole_part(struct sched_walk *w, struct part *p, const struct sched_pod *pod)
{
	p->want = xcalloc(w->nr_columns + 1, sizeof *p->want);
	for (unsigned i = 0; i < w->nr_columns; i++) {
		const struct column *c = &w->column[i];
		int64_t sum = fit_request(w->names, pod, c->resource, FIT_MISSING_IS_NOTHING);

		if (c->way == WAY_MEMORY && !is_asked_for_by_an_app(pod, c->resource))
			continue;
		p->want[p->nr++] = (struct want){.column = i,
			.need = (uint64_t)sum / (c->way == WAY_CPU ? QUANTITY_MILLIS : 1)};
	}
}

unsigned sched_pod_nr_requests(const struct sched_pod *pod)
{
	unsigned nr = 0;

	for (unsigned c = 0; c < pod->nr_containers; c++)
		nr += pod->container[c].requests.nr;
	return nr;
}

struct sched_walk *sched_walk_new(const struct sched_pod *pod, const struct resource_table *names)
{
	struct sched_walk *w = xcalloc(1, sizeof *w);
	unsigned most = sched_pod_nr_requests(pod), nr = 0;
	auto_free struct amount *kept = xcalloc(most + 1, sizeof *kept);
	auto_free struct sched_container *container =
		xcalloc(pod->nr_containers + 1, sizeof *container);
	/* the pod without what does not matter */
	const struct sched_pod bare = {.container = container, .nr_containers = pod->nr_containers};

	w->names = names;
	w->memory.kind = FAMILY_CAPACITY;
	w->nr_containers = pod->nr_containers;
	w->column = xcalloc(most + 1, sizeof *w->column);
	w->part = xcalloc(pod->nr_containers + 1, sizeof *w->part);
	for (unsigned c = 0; c < pod->nr_containers; c++) {
		const struct amounts *asks = &pod->container[c].requests;
		struct amounts *own = &container[c].requests;
		struct part *p = &w->part[c];

		container[c].kind = pod->container[c].kind;
		own->at = &kept[nr];
		for (unsigned i = 0; i < asks->nr; i++)
			if (is_amount_of_zones(pod, names, &asks->at[i]))
				kept[nr + own->nr++] = asks->at[i];
		nr += own->nr;
		p->is_init = pod->container[c].kind == CONTAINER_INIT;
		p->nr = own->nr;
		p->want = xcalloc(own->nr + 1, sizeof *p->want);
		for (unsigned i = 0; i < own->nr; i++)
			p->want[i] = (struct want){.column = walk_column_of(w, own->at[i].resource),
				.need = (uint64_t)quantity_value(own->at[i].q)};
	}
	whole_part(w, &w->part[pod->nr_containers], &bare);
	return w;
}

void sched_walk_free(struct sched_walk *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i <= w->nr_containers; i++)
		free(w->part[i].want);
	free(w->part);
	free(w->column);
	free(w->work);
	free(w);
}

/* The node */

static void sort_places(struct sched_walk *w, const struct sched_topology *t)
{
	w->n = t->nr_zones;
	for (unsigned i = 0; i < t->nr_zones; i++) {
		unsigned at = i;

		for (; at && t->zone_id[w->place[at - 1]] > t->zone_id[i]; at--)
			w->place[at] = w->place[at - 1];
		w->place[at] = (uint8_t)i;
	}
}

/* Rounded down: no container gets a part of a CPU. */
static uint64_t whole_units(struct quantity q)
{
	return q.whole > 0 ? (uint64_t)q.whole : 0;
}

static void load_column(const struct sched_walk *w, struct column *c)
{
	const struct zone_resource *r = sched_topology_find(w->t, c->resource);

	c->listed = r && r->listed;
	for (unsigned i = 0; i < w->n && c->listed; i++) {
		unsigned zone = w->place[i];

		c->free[i] = whole_units(r->available[zone]);
		c->total[i] = whole_units(
			c->way == WAY_MEMORY ? r->allocatable[zone] : r->capacity[zone]);
		c->reusable[i] = 0;
	}
}

static void load_groups(struct sched_walk *w)
{
	memset(w->group, 0, w->n * sizeof *w->group);
	for (size_t i = 0; i < w->t->resources.nr && w->asks_memory; i++) {
		const struct zone_resource *r = &w->t->resources.at[i];

		if (way_of(w->names, r->resource) != WAY_MEMORY)
			continue;
		for (unsigned n = 0; n < w->n; n++)
			if (quantity_compare(
				    r->available[w->place[n]], r->allocatable[w->place[n]]) < 0)
				w->group[n] = nodeset_of(n);
	}
}

static void walk_load_node(struct sched_walk *w, const struct sched_topology *t)
{
	w->t = t;
	sort_places(w, t);
	for (unsigned i = 0; i < w->nr_columns; i++)
		load_column(w, &w->column[i]);
	load_groups(w);
	w->space = (struct hint_space){.all = nodeset_first(w->n)};
	for (unsigned i = 0; i <= w->nr_containers; i++)
		w->part[i].nodes = (struct nodeset){0};
}

/* The walk */

/* From the lowest node on. */
static void walk_take_part(struct sched_walk *w, struct part *p)
{
	for (unsigned i = 0; i < p->nr; i++) {
		struct want *want = &p->want[i];
		struct column *c = &w->column[want->column];
		uint64_t left = walk_is_demand(w, want) ? want->need : 0;

		memset(want->took, 0, w->n * sizeof *want->took);
		nodeset_each (n, p->nodes) {
			uint64_t took = number_min(left, c->free[n]);

			want->took[n] = took;
			left -= took;
			if (c->way == WAY_MEMORY && walk_is_demand(w, want))
				w->group[n] = p->nodes;
			if (!p->is_init) {
				c->free[n] -= took;
				c->reusable[n] -= number_min(took, c->reusable[n]);
			} else if (c->way != WAY_MEMORY && took > c->reusable[n]) {
				c->reusable[n] = took;
			}
		}
	}
}

/* Whether the nodes have enough of it for all containers at once. */
static bool has_memory_for_all(const struct sched_walk *w, unsigned column, struct nodeset nodes)
{
	uint64_t need = 0, free = 0;

	for (unsigned i = 0; i < w->nr_containers; i++)
		for (unsigned k = 0; k < w->part[i].nr; k++)
			if (w->part[i].want[k].column == column)
				need += w->part[i].want[k].need;
	nodeset_each (n, nodes)
		free += w->column[column].free[n];
	return need <= free;
}

/* Once the pod's nodes are chosen its containers are given their memory one after the other, and
 * what is not free on these nodes is looked for around them, which ends in refusals that have no
 * rule: memory that no app asked for; and, on several nodes, what an init container leaves. */
static bool has_room_for_each(const struct sched_walk *w, struct nodeset nodes)
{
	for (unsigned i = 0; i < w->nr_containers; i++)
		if (!walk_has_all(w, &w->part[i], nodes))
			return false;
	for (unsigned i = 0; i < w->nr_columns && nodeset_count(nodes) > 1; i++)
		if (w->column[i].way == WAY_MEMORY && w->column[i].listed &&
			!has_memory_for_all(w, i, nodes))
			return false;
	return true;
}

enum sched_walk_answer sched_walk(
	struct sched_walk *w, const struct sched_topology *t, bool closest, struct budget *budget)
{
	unsigned from = t->scope == SCOPE_POD ? w->nr_containers : 0;
	unsigned to = t->scope == SCOPE_POD ? from + 1 : w->nr_containers;
	enum sched_walk_answer answer = WALK_FITS;

	walk_load_node(w, t);
	for (unsigned i = from; i < to && answer == WALK_FITS; i++) {
		struct budget part = budget_share(budget, to - from, i - from);

		w->budget = &part;
		answer = walk_choose(w, &w->part[i], closest || t->prefer_closest);
		budget_return(budget, &part);
		if (t->scope == SCOPE_POD && answer == WALK_FITS &&
			!has_room_for_each(w, w->part[i].nodes))
			return WALK_NO_ROOM;
		walk_take_part(w, &w->part[i]);
	}
	return answer;
}

unsigned sched_walk_needs(const struct sched_walk *w, unsigned part, struct sched_need *out)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < w->part[part].nr; i++) {
		const struct want *want = &w->part[part].want[i];

		if (!want->need)
			continue;
		if (out)
			out[nr] = (struct sched_need){
				w->column[want->column].resource, (int64_t)want->need};
		nr++;
	}
	return nr;
}

static const struct part *part_of(const struct sched_walk *w, unsigned container)
{
	return &w->part[w->t->scope == SCOPE_POD ? w->nr_containers : container];
}

uint64_t sched_walk_zones(const struct sched_walk *w, unsigned container)
{
	uint64_t zones = 0;

	nodeset_each (n, part_of(w, container)->nodes)
		zones |= UINT64_C(1) << w->place[n];
	return zones;
}

unsigned sched_walk_amounts(
	const struct sched_walk *w, unsigned container, struct sched_place_amount *out)
{
	const struct part *p = part_of(w, container);
	unsigned nr = 0;

	for (unsigned i = 0; i < p->nr; i++)
		nodeset_each (n, p->nodes) {
			if (!p->want[i].took[n])
				continue;
			if (out)
				out[nr] = (struct sched_place_amount){
					.resource = w->column[p->want[i].column].resource,
					.zone = w->place[n],
					.q = quantity_of((int64_t)p->want[i].took[n])};
			nr++;
		}
	return nr;
}

struct sched_taken *sched_placement_taken(
	const struct sched_placement *p, const uint8_t *zone_id, struct arena *a, size_t *nr)
{
	size_t room = 0;

	for (unsigned i = 0; i < p->nr; i++)
		room += p->place[i].nr_amounts;
	struct sched_taken *taken = arena_array(a, room, sizeof *taken);
	*nr = 0;
	for (unsigned i = 0; taken && i < p->nr; i++)
		for (unsigned k = 0; k < p->place[i].nr_amounts; k++) {
			const struct sched_place_amount *from = &p->place[i].amount[k];

			taken[(*nr)++] = (struct sched_taken){
				.zone_id = zone_id ? zone_id[from->zone] : from->zone,
				.resource = from->resource,
				.q = from->q,
				.container = p->place[i].container};
		}
	return taken;
}

unsigned sched_walk_distance(const struct sched_topology *t, uint64_t zones)
{
	enum { PER_CENT = 100 };
	unsigned nr = (unsigned)__builtin_popcountll(zones);
	uint64_t sum = 0;

	for (unsigned a = 0; a < t->nr_zones; a++)
		for (unsigned b = 0; b < t->nr_zones; b++) {
			if (!(zones >> a & zones >> b & 1))
				continue;
			int32_t cost = t->cost[a * t->nr_zones + b];

			if (cost < 0 || cost >= ZONE_COST_UNKNOWN)
				return 0;
			sum += (uint64_t)cost;
		}
	return nr ? (unsigned)(sum * PER_CENT / (nr * nr)) : 0;
}
