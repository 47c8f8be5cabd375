/* What a pod takes of zones, as its hint or a placement says. It is believed as a whole
 * or not at all, and only where it adds up to what the pod asks of zones. */
#include "sched_cluster_state.h"

#include <sched/sched_place.h>
#include <numafit/fit.h>
#include <numafit/text.h>
#include <string.h>

/* The pod's parts, each with what it asks of zones: its containers, or the pod as a whole. */
struct claimant {
	const struct sched_bound *b;
	struct sched_walk *walk;
	bool is_whole;
	unsigned from, to; /* parts of the walk */
	/* What is said of each part, in the order of the parts. */
	const struct sched_taken **said;
	size_t *end; /* of part i in said */
};

static bool is_of_whole(const struct sched_taken *t)
{
	return !t->container || !strcmp(t->container, "*");
}

/* Sort what is said by part. False: some of it is of no part, or of nothing. */
static bool sort_by_part(struct claimant *c)
{
	size_t nr = 0;

	for (unsigned part = c->from; part < c->to; part++) {
		for (size_t i = 0; i < c->b->nr_taken; i++) {
			const struct sched_taken *t = &c->b->taken[i];

			if (c->is_whole != is_of_whole(t) ||
				(!c->is_whole &&
					!text_equal(t->container, c->b->pod->container[part].name)))
				continue;
			if (nr == c->b->nr_taken)
				return false;
			c->said[nr++] = t;
		}
		c->end[part] = nr;
	}
	return nr == c->b->nr_taken;
}

static size_t begin_of(const struct claimant *c, unsigned part)
{
	return part == c->from ? 0 : c->end[part - 1];
}

/* Whether each amount by itself is one: above 0, of a zone that there may be. */
static bool are_amounts(const struct claimant *c)
{
	for (size_t i = 0; i < c->b->nr_taken; i++) {
		const struct sched_taken *t = &c->b->taken[i];

		if (t->zone_id >= ZONES_MAX || quantity_compare(t->q, quantity_of(0)) <= 0)
			return false;
	}
	return true;
}

static void note_lack(struct sched_claim *out, unsigned resource)
{
	for (unsigned i = 0; i < out->nr_lacks; i++)
		if (out->lacks[i] == resource)
			return;
	out->lacks[out->nr_lacks++] = resource;
}

/* Whether each resource of the part is that of its request, or not there; and nothing else is. */
static bool part_adds_up(const struct claimant *c, unsigned part, struct sched_claim *out)
{
	unsigned nr = sched_walk_needs(c->walk, part, NULL);
	auto_free struct sched_need *need = xcalloc(nr + 1, sizeof *need);
	size_t nr_said = 0;

	(void)sched_walk_needs(c->walk, part, need);
	for (unsigned i = 0; i < nr; i++) {
		struct quantity sum = {0}; /* in all zones */

		for (size_t k = begin_of(c, part); k < c->end[part]; k++)
			if (c->said[k]->resource == need[i].resource) {
				sum = quantity_add(sum, c->said[k]->q);
				nr_said++;
			}
		if (quantity_is_zero(sum))
			note_lack(out, need[i].resource);
		else if (quantity_compare(sum, quantity_of(need[i].amount)))
			return false;
	}
	return nr_said == c->end[part] - begin_of(c, part);
}

static struct sched_taken *entry(struct sched_claim *out, const struct sched_taken *like)
{
	for (size_t i = 0; i < out->nr; i++)
		if (out->taken[i].zone_id == like->zone_id &&
			out->taken[i].resource == like->resource)
			return &out->taken[i];
	out->taken[out->nr] =
		(struct sched_taken){.zone_id = like->zone_id, .resource = like->resource};
	return &out->taken[out->nr++];
}

/* Each zone's resource once: what runs at the end, or the most that an init container needs beside
 * the sidecars before it. */
static void add_parts(const struct claimant *c, struct sched_claim *out)
{
	auto_free struct quantity *runs = xcalloc(c->b->nr_taken + 1, sizeof *runs);

	for (unsigned part = c->from; part < c->to; part++) {
		bool is_init = !c->is_whole && c->b->pod->container[part].kind == CONTAINER_INIT;

		for (size_t i = begin_of(c, part); i < c->end[part]; i++) {
			struct sched_taken *t = entry(out, c->said[i]);
			struct quantity *running = &runs[t - out->taken];
			struct quantity now = quantity_add(*running, c->said[i]->q);

			if (!is_init)
				*running = now;
			if (quantity_compare(now, t->q) > 0)
				t->q = now;
		}
	}
}

bool sched_claim_is_within(const struct sched_claim *claim, const struct sched_pod *pod,
	const struct resource_table *names)
{
	for (size_t i = 0; i < claim->nr; i++) {
		unsigned resource = claim->taken[i].resource;
		struct quantity sum = {0};

		for (size_t k = 0; k < claim->nr; k++)
			if (claim->taken[k].resource == resource)
				sum = quantity_add(sum, claim->taken[k].q);
		int64_t asked = fit_request(names, pod, resource, FIT_MISSING_IS_NOTHING);
		int64_t claimed =
			resource == RESOURCE_CPU ? quantity_milli(sum) : quantity_value(sum);
		if (claimed > asked)
			return false;
	}
	return true;
}

/* A resource that is there for one part, and is lacking for another. */
static bool lacks_what_it_has(const struct sched_claim *claim)
{
	for (size_t i = 0; i < claim->nr; i++)
		for (unsigned k = 0; k < claim->nr_lacks; k++)
			if (claim->taken[i].resource == claim->lacks[k])
				return true;
	return false;
}

static bool adds_up(struct claimant *c, const struct resource_table *names, struct sched_claim *out)
{
	if (!are_amounts(c) || !sort_by_part(c))
		return false;
	for (unsigned part = c->from; part < c->to; part++)
		if (!part_adds_up(c, part, out))
			return false;
	add_parts(c, out);
	return !lacks_what_it_has(out) && sched_claim_is_within(out, c->b->pod, names);
}

void sched_claim_of(
	const struct sched_bound *b, const struct resource_table *names, struct sched_claim *out)
{
	struct claimant c = {.b = b, .to = b->pod->nr_containers};
	unsigned nr_requests = sched_pod_nr_requests(b->pod);

	*out = (struct sched_claim){0};
	/* no honest hint has more: amounts are compared with each other, and could be many */
	if (!b->taken || !b->nr_taken || b->nr_taken > (size_t)nr_requests * ZONES_MAX)
		return;
	c.is_whole = is_of_whole(&b->taken[0]);
	if (c.is_whole) {
		c.from = b->pod->nr_containers;
		c.to = c.from + 1;
	}
	c.walk = sched_walk_new(b->pod, names);
	auto_free const struct sched_taken **said = xcalloc(b->nr_taken, sizeof(void *));
	auto_free size_t *end = xcalloc(c.to, sizeof *end);
	c.said = said;
	c.end = end;
	out->taken = xcalloc(b->nr_taken, sizeof *out->taken);
	out->lacks = xcalloc(nr_requests + 1, sizeof *out->lacks);
	if (!adds_up(&c, names, out))
		sched_claim_fini(out);
	sched_walk_free(c.walk);
}

void sched_claim_fini(struct sched_claim *c)
{
	free(c->taken);
	free(c->lacks);
	*c = (struct sched_claim){0};
}

static bool claim_says(const struct sched_claim *c, const struct sched_taken *t)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->taken[i].zone_id == t->zone_id && c->taken[i].resource == t->resource)
			return !quantity_compare(c->taken[i].q, t->q);
	return false;
}

bool sched_claims_are_alike(const struct sched_claim *a, const struct sched_claim *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (!claim_says(b, &a->taken[i]))
			return false;
	return true;
}

/* On a node */

/* The zone's amounts of a resource that is claimed, or NULL. */
static const struct zone_resource *claimed_of(
	const struct sched_topology *t, const struct sched_taken *taken, unsigned *zone)
{
	const struct zone_resource *r = sched_topology_find(t, taken->resource);

	*zone = 0;
	while (*zone < t->nr_zones && t->zone_id[*zone] != taken->zone_id)
		++*zone;
	return *zone < t->nr_zones && r && r->listed >> *zone & 1 ? r : NULL;
}

bool sched_claim_is_of(const struct sched_claim *c, const struct sched_topology *t)
{
	unsigned zone;

	for (size_t i = 0; i < c->nr; i++)
		if (!claimed_of(t, &c->taken[i], &zone))
			return false;
	for (unsigned i = 0; i < c->nr_lacks; i++)
		if (sched_topology_find(t, c->lacks[i]))
			return false;
	return c->nr;
}

bool sched_claim_fits(const struct sched_claim *c, const struct sched_topology *t)
{
	unsigned zone;

	for (size_t i = 0; i < c->nr; i++) {
		const struct zone_resource *r = claimed_of(t, &c->taken[i], &zone);

		if (!r || quantity_compare(c->taken[i].q, r->available[zone]) > 0)
			return false;
	}
	return true;
}

void sched_claim_apply(
	const struct sched_claim *c, enum zone_change change, struct sched_topology *t)
{
	unsigned zone;

	for (size_t i = 0; i < c->nr; i++) {
		const struct zone_resource *r = claimed_of(t, &c->taken[i], &zone);

		if (r)
			zone_change(r, zone, change, c->taken[i].q);
	}
}

/* What the walk has found, as if a hint said it. */
static void claim_of_walk(const struct sched_walk *w, const struct sched_pod *pod,
	const struct resource_table *names, const struct sched_topology *t, struct sched_claim *out)
{
	bool is_whole = t->scope == SCOPE_POD;
	unsigned nr_parts = is_whole ? 1 : pod->nr_containers;
	size_t nr = 0;

	for (unsigned i = 0; i < nr_parts; i++)
		nr += sched_walk_amounts(w, i, NULL);
	auto_free struct sched_place_amount *amount = xcalloc(nr + 1, sizeof *amount);
	auto_free struct sched_taken *taken = xcalloc(nr + 1, sizeof *taken);

	nr = 0;
	for (unsigned i = 0; i < nr_parts; i++)
		for (unsigned k = sched_walk_amounts(w, i, amount); k-- > 0; nr++)
			taken[nr] = (struct sched_taken){.zone_id = t->zone_id[amount[k].zone],
				.resource = amount[k].resource,
				.q = amount[k].q,
				.container = is_whole ? NULL : pod->container[i].name};
	sched_claim_of(
		&(struct sched_bound){.pod = pod, .taken = taken, .nr_taken = nr}, names, out);
}

/* As much as there is, from the first zone on. */
static void take_from_the_first(
	const struct sched_walk *w, const struct sched_pod *pod, struct sched_topology *t)
{
	unsigned nr = sched_walk_needs(w, pod->nr_containers, NULL);
	auto_free struct sched_need *need = xcalloc(nr + 1, sizeof *need);

	(void)sched_walk_needs(w, pod->nr_containers, need);
	for (unsigned i = 0; i < nr; i++) {
		const struct zone_resource *r = sched_topology_find(t, need[i].resource);
		struct quantity q = quantity_of(need[i].amount);

		for (unsigned zone = 0; r && zone < t->nr_zones && !quantity_is_zero(q); zone++) {
			struct quantity has = r->available[zone];
			struct quantity took = quantity_compare(has, q) < 0 ? has : q;

			r->available[zone] = quantity_sub(has, took);
			q = quantity_sub(q, took);
		}
	}
}

void sched_pod_take_somewhere(const struct sched_pod *pod, const struct resource_table *names,
	struct budget *walk, struct sched_topology *t)
{
	struct sched_walk *w = sched_walk_new(pod, names);
	struct sched_claim claim = {0};

	if (walk && sched_walk(w, t, false, walk) == WALK_FITS)
		claim_of_walk(w, pod, names, t, &claim);
	if (claim.nr && sched_claim_fits(&claim, t))
		sched_claim_apply(&claim, ZONE_TAKE, t);
	else
		take_from_the_first(w, pod, t);
	sched_claim_fini(&claim);
	sched_walk_free(w);
}
