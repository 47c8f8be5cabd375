/* What a node's zones have left. */
#include "sched_cluster_state.h"

#include <core/sched_place.h>
#include <errno.h>
#include <numafit/nrt_fingerprint.h>
#include <string.h>

/* Who waits */

bool known_pod_holds(const struct sched_cluster *c, const struct known_pod *p)
{
	return nrt_pod_is_exclusive(p->pod, p->node->reported, c->names);
}

static int by_part(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_named(const struct known_node *n, uint64_t part)
{
	return n->nr_parts && bsearch(&part, n->part, n->nr_parts, sizeof part, by_part);
}

/* Whether there is a report, and it is not taken as it is. */
static bool is_mended(const struct sched_cluster *c, const struct known_node *n)
{
	return c->args.over_reserve && !c->args.discard_reserved && n->reported;
}

bool known_pod_waits(const struct sched_cluster *c, const struct known_pod *p)
{
	const struct known_node *n = p->node;

	if (!is_mended(c, n) || p->ended || p->expired)
		return false;
	if (n->names_pods)
		return known_pod_holds(c, p) && !is_named(n, p->part);
	return !p->settled;
}

bool known_pod_has_zones(const struct known_pod *p)
{
	return p->nr_taken && p->node->generation;
}

/* Of two by one name nobody knows which one a report means. */
static bool has_namesake(const struct known_pod *p)
{
	for (size_t i = 0; i < p->node->pods.nr; i++)
		if (p->node->pods.at[i] != p && p->node->pods.at[i]->part == p->part)
			return true;
	return false;
}

bool known_pod_gives_back(const struct sched_cluster *c, const struct known_pod *p)
{
	const struct known_node *n = p->node;

	return p->ended && !p->expired && n->names_pods && is_mended(c, n) &&
	       known_pod_has_zones(p) && is_named(n, p->part) && !has_namesake(p);
}

/* Whether the pod is one of those that the fingerprint is said to be of. A node counts a pod as
 * soon as it has started it, schedulers when its phase says so. */
static bool is_counted(const struct sched_cluster *c, const struct known_pod *p, bool with_pending)
{
	if (p->ended || p->assumed || (p->pending && !with_pending))
		return false;
	return p->node->reported->fingerprint_method == FINGERPRINT_ALL || known_pod_holds(c, p);
}

static bool is_fingerprint(struct sched_cluster *c, const struct known_node *n, bool with_pending)
{
	c->parts.nr = 0;
	for (size_t i = 0; i < n->pods.nr; i++)
		if (is_counted(c, n->pods.at[i], with_pending))
			*vec_push(&c->parts) = n->pods.at[i]->part;
	return !fingerprint_check(n->reported->fingerprint, c->parts.at, c->parts.nr, NULL);
}

void known_node_settle(struct sched_cluster *c, struct known_node *n)
{
	if (!n->reported || n->names_pods || !n->reported->fingerprint)
		return;
	bool with_pending = is_fingerprint(c, n, true);

	if (!with_pending && !is_fingerprint(c, n, false))
		return;
	for (size_t i = 0; i < n->pods.nr; i++) {
		struct known_pod *p = n->pods.at[i];

		if (!p->assumed && (with_pending || !p->pending))
			p->settled = n->changed = true;
	}
}

/* What is left */

static struct quantity not_below_0(struct quantity q)
{
	return q.whole < 0 ? quantity_of(0) : q;
}

static int place_of(const struct sched_topology *t, unsigned zone_id)
{
	for (unsigned i = 0; i < t->nr_zones; i++)
		if (t->zone_id[i] == zone_id)
			return (int)i;
	return -1;
}

/* The zone's amounts of a resource that somebody takes, or NULL. */
static const struct zone_resource *taken_from(
	const struct sched_topology *t, const struct sched_taken *taken, int *zone)
{
	*zone = place_of(t, taken->zone_id);
	return *zone < 0 ? NULL : sched_topology_find(t, taken->resource);
}

static void take(struct sched_topology *t, const struct known_pod *p)
{
	for (size_t i = 0; i < p->nr_taken; i++) {
		int zone;
		const struct zone_resource *r = taken_from(t, &p->taken[i], &zone);

		if (r)
			r->available[zone] =
				not_below_0(quantity_sub(r->available[zone], p->taken[i].q));
	}
}

static void give_back(struct sched_topology *t, const struct known_pod *p)
{
	for (size_t i = 0; i < p->nr_taken; i++) {
		int zone;
		const struct zone_resource *r = taken_from(t, &p->taken[i], &zone);

		if (!r)
			continue;
		struct quantity more = quantity_add(r->available[zone], p->taken[i].q);
		bool too_much = quantity_compare(more, r->allocatable[zone]) > 0;

		r->available[zone] = too_much ? r->allocatable[zone] : more;
	}
}

/* What the node would report, had it heard of the ends that are known here. The caller frees. */
static struct sched_topology *by_now(const struct sched_cluster *c, const struct known_node *n)
{
	struct sched_topology *t = nrt_over_reserve(n->reported, NULL, 0);

	for (size_t i = 0; i < n->pods.nr; i++)
		if (known_pod_gives_back(c, n->pods.at[i]))
			give_back(t, n->pods.at[i]);
	return t;
}

/* Of t, what those that wait leave, skip (a flag for each of the node's pods, or NULL) not among
 * them. The caller frees. */
static struct sched_topology *left_by(const struct sched_cluster *c, const struct known_node *n,
	const struct sched_topology *t, const bool *skip)
{
	auto_free struct sched_pod *anywhere = xcalloc(n->pods.nr + 1, sizeof *anywhere);
	size_t nr = 0;

	for (size_t i = 0; i < n->pods.nr; i++)
		if (!(skip && skip[i]) && known_pod_waits(c, n->pods.at[i]) &&
			!known_pod_has_zones(n->pods.at[i]))
			anywhere[nr++] = *n->pods.at[i]->pod;
	struct sched_topology *left = nrt_over_reserve(t, anywhere, nr);

	for (size_t i = 0; i < n->pods.nr; i++)
		if (!(skip && skip[i]) && known_pod_waits(c, n->pods.at[i]) &&
			known_pod_has_zones(n->pods.at[i]))
			take(left, n->pods.at[i]);
	return left;
}

static struct sched_topology *left_now(const struct sched_cluster *c, const struct known_node *n)
{
	struct sched_topology *t = by_now(c, n), *left = left_by(c, n, t, NULL);

	sched_topology_free(t);
	return left;
}

/* The node */

static bool makes_stale(const struct sched_cluster *c, const struct known_pod *p)
{
	if (c->args.discard_reserved)
		return p->assumed;
	if (p->ours || c->args.foreign == FOREIGN_PODS_NONE || !known_pod_waits(c, p))
		return false;
	return c->args.foreign == FOREIGN_PODS_ALL ? sched_pod_is_about_numa(p->pod, c->names)
						   : known_pod_holds(c, p);
}

/* The pods that count on the node, but for those of skip; *nr of them. The caller frees. */
static struct sched_pod *pods_of(const struct known_node *n, const bool *skip, size_t *nr)
{
	struct sched_pod *pods = xcalloc(n->pods.nr + 1, sizeof *pods);

	*nr = 0;
	for (size_t i = 0; i < n->pods.nr; i++)
		if (!n->pods.at[i]->ended && !(skip && skip[i]))
			pods[(*nr)++] = *n->pods.at[i]->pod;
	return pods;
}

static void free_pods(struct known_node *n)
{
	free((void *)(uintptr_t)n->node.pods);
	n->node.pods = NULL;
}

void known_node_refresh(struct sched_cluster *c, struct known_node *n)
{
	if (!n->changed)
		return;
	n->changed = false;
	free_pods(n);
	n->node.pods = pods_of(n, NULL, &n->node.nr_pods);
	n->nr_waiting = n->nr_gone = 0;
	n->candidate = (struct sched_candidate){
		.node = &n->node, .volcano = n->volcano_memory ? &n->volcano : NULL};
	bool gives_back = false;
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct known_pod *p = n->pods.at[i];

		n->nr_waiting += known_pod_waits(c, p);
		n->nr_gone += p->gone;
		gives_back = gives_back || known_pod_gives_back(c, p);
		n->candidate.stale = n->candidate.stale || makes_stale(c, p);
	}
	sched_topology_free(n->left);
	n->left = n->nr_waiting || gives_back ? left_now(c, n) : NULL;
	n->node.topology = n->left ? n->left : n->reported;
}

const struct sched_candidate *sched_cluster_find(struct sched_cluster *c, const char *name)
{
	struct known_node *n = sched_index_find(&c->nodes, name);

	if (!n || !n->is_there)
		return NULL;
	known_node_refresh(c, n);
	return &n->candidate;
}

/* Preemption */

static bool is_one_of(const char *uid, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(uid, list[i]))
			return true;
	return false;
}

bool sched_cluster_fits_without(struct sched_cluster *c, struct sched_plan *p, const char *node,
	const char *const *uid, size_t nr)
{
	struct known_node *n = sched_index_find(&c->nodes, node);
	const struct sched_candidate *now = sched_cluster_find(c, node);
	bool makes_room = false;
	const char *why;

	if (!now)
		return false;
	auto_free bool *goes = xcalloc(n->pods.nr + 1, sizeof *goes);
	struct sched_topology *with = n->reported ? by_now(c, n) : NULL;
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct known_pod *victim = n->pods.at[i];

		goes[i] = is_one_of(victim->key.name, uid, nr);
		if (!goes[i] || !with || victim->ended || known_pod_waits(c, victim) ||
			!known_pod_holds(c, victim))
			continue;
		if (known_pod_has_zones(victim))
			give_back(with, victim);
		else
			makes_room = true;
	}
	struct sched_topology *left = with ? left_by(c, n, with, goes) : NULL;
	struct sched_node then = n->node;
	auto_free struct sched_pod *pods = pods_of(n, goes, &then.nr_pods);
	struct sched_candidate candidate = *now;

	then.pods = pods;
	then.topology = left;
	candidate.node = &then;
	bool fits = makes_room || sched_plan_filter(p, &candidate, &why) == SCHED_SUCCESS;
	sched_topology_free(with);
	sched_topology_free(left);
	return fits;
}

/* Invariants */

static int check_pods(const struct sched_cluster *c, const struct known_node *n, struct err *e)
{
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct known_pod *p = n->pods.at[i];

		if (p->node != n)
			return err_set(e, EINVAL, "node %s: pod %s is of another node", n->key.name,
				p->key.name);
		if (p->gone && !known_pod_gives_back(c, p))
			return err_set(e, EINVAL, "node %s: pod %s is gone for good", n->key.name,
				p->key.name);
	}
	return 0;
}

/* What the pod takes of the zone's resource. */
static struct quantity taken_by(const struct known_pod *p, unsigned zone_id, unsigned resource)
{
	struct quantity sum = {0};

	if (!known_pod_has_zones(p)) {
		unsigned nr;
		auto_free struct amount *all = nrt_effective_request(p->pod, &nr);
		const struct quantity *q = amounts_find(&(struct amounts){all, nr}, resource);

		return q ? *q : sum;
	}
	for (size_t i = 0; i < p->nr_taken; i++)
		if (p->taken[i].zone_id == zone_id && p->taken[i].resource == resource)
			sum = quantity_add(sum, p->taken[i].q);
	return sum;
}

/* What of the zone's resource is taken by those of the node's pods that are so. */
static struct quantity taken_by_all(const struct sched_cluster *c, const struct known_node *n,
	bool (*is_so)(const struct sched_cluster *c, const struct known_pod *p), unsigned zone_id,
	unsigned resource)
{
	struct quantity sum = {0};

	for (size_t i = 0; i < n->pods.nr; i++)
		if (is_so(c, n->pods.at[i]))
			sum = quantity_add(sum, taken_by(n->pods.at[i], zone_id, resource));
	return sum;
}

static struct quantity should_be_left(struct quantity reported, struct quantity allocatable,
	struct quantity given_back, struct quantity waiting)
{
	struct quantity by_now = quantity_add(reported, given_back);

	if (!quantity_is_zero(given_back) && quantity_compare(by_now, allocatable) > 0)
		by_now = allocatable;
	return quantity_is_zero(waiting) ? by_now : not_below_0(quantity_sub(by_now, waiting));
}

static int check_zone(const struct sched_cluster *c, const struct known_node *n,
	const struct zone_resource *r, unsigned zone, struct err *e)
{
	const struct zone_resource *left = sched_topology_find(n->node.topology, r->resource);
	unsigned id = n->reported->zone_id[zone];
	struct quantity should = should_be_left(r->available[zone], r->allocatable[zone],
		taken_by_all(c, n, known_pod_gives_back, id, r->resource),
		taken_by_all(c, n, known_pod_waits, id, r->resource));

	if (!left || quantity_compare(left->available[zone], should))
		return err_set(e, EINVAL, "node %s: zone %u has not the %s left that it should",
			n->key.name, id, c->names->at[r->resource].name);
	return 0;
}

static int check_node(struct sched_cluster *c, struct known_node *n, struct err *e)
{
	int rc = check_pods(c, n, e);

	known_node_refresh(c, n);
	for (size_t i = 0; n->reported && i < n->reported->resources.nr; i++)
		for (unsigned zone = 0; zone < n->reported->nr_zones && !rc; zone++)
			rc = check_zone(c, n, &n->reported->resources.at[i], zone, e);
	return rc;
}

int sched_cluster_check(struct sched_cluster *c, struct err *e)
{
	size_t nr_pods = 0;
	int rc = 0;

	for (size_t i = 0; i < c->nodes.cap && !rc; i++) {
		struct known_node *n = (struct known_node *)(void *)c->nodes.slot[i];

		if (!n)
			continue;
		nr_pods += n->pods.nr;
		rc = check_node(c, n, e);
	}
	if (!rc && nr_pods != c->pods.nr)
		rc = err_set(e, EINVAL, "nodes have %zu pods, there are %zu", nr_pods, c->pods.nr);
	return rc;
}
