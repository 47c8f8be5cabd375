/* What a node's zones have left. */
#include "sched_cluster_state.h"

#include <sched/sched_place.h>
#include <errno.h>
#include <numafit/nrt_fingerprint.h>
#include <numafit/text.h>
#include <string.h>

/* Pods that wait */

/* Whether it holds something of a zone, by the scheduler's rule. */
static bool tracked_pod_holds(const struct sched_cluster *c, const struct tracked_pod *p)
{
	return nrt_pod_is_exclusive(p->pod, p->node->reported, c->names);
}

static int compare_to_part(const void *a, const void *b)
{
	const uint64_t *part = a;
	const struct known_part *there = b;

	return (*part > there->part) - (*part < there->part);
}

/* The pod as the node's report names it, or NULL. */
static const struct known_part *find_part(const struct known_node *n, uint64_t part)
{
	return n->nr_parts ? bsearch(&part, n->part, n->nr_parts, sizeof *n->part, compare_to_part)
			   : NULL;
}

/* Whether there is a report, and it is not taken as it is. */
static bool is_mended(const struct sched_cluster *c, const struct known_node *n)
{
	return c->args.over_reserve && !c->args.discard_reserved && n->reported;
}

/* The node has had the pod, and has it no more. Nobody says so where pods are not followed: of a
 * binding that is known by its answer alone. */
static bool has_come_and_gone(const struct tracked_pod *p)
{
	return p->assumed && p->confirmed && p->came && !p->named;
}

/* Whether the pod is still to be taken away from what its node reports. */
static bool tracked_pod_waits(const struct sched_cluster *c, const struct tracked_pod *p)
{
	const struct known_node *n = p->node;

	if (!is_mended(c, n) || p->ended || p->expired || has_come_and_gone(p))
		return false;
	if (n->names_pods)
		return tracked_pod_holds(c, p) && !find_part(n, p->part);
	return !p->settled;
}

/* A pod that was not seen being bound: the hint may have been changed since, and from now on there
 * is the report. */
void tracked_pod_note_name(struct tracked_pod *p, bool is_news)
{
	const struct known_part *named = find_part(p->node, p->part);
	uint64_t zones = 0;

	for (size_t i = 0; i < p->claim.nr; i++)
		zones |= UINT64_C(1) << p->claim.taken[i].zone_id;
	bool is_elsewhere = named && p->node->says_zones && zones != named->zones;
	p->came = p->came || (named && !p->named && is_news);
	p->named = named;
	if (named && (!p->seen_bound || (p->came && is_elsewhere)))
		sched_claim_fini(&p->claim);
}

/* Whether its very zones are known. Only numafitd follows hints. */
static bool has_zones(const struct tracked_pod *p)
{
	const struct known_node *n = p->node;

	return n->generation && n->reported && sched_claim_is_of(&p->claim, n->reported);
}

/* Whether another pod has its name: then it is not known which of the two a report means. */
static bool has_namesake(const struct tracked_pod *p)
{
	for (size_t i = 0; i < p->node->pods.nr; i++)
		if (p->node->pods.at[i] != p && p->node->pods.at[i]->part == p->part)
			return true;
	return false;
}

bool tracked_pod_gives_back(const struct sched_cluster *c, const struct tracked_pod *p)
{
	const struct known_node *n = p->node;

	return p->ended && !p->expired && p->seen_bound && p->came && n->names_pods &&
	       is_mended(c, n) && has_zones(p) && find_part(n, p->part) && !has_namesake(p);
}

/* Whether the fingerprint is that of the pods that it is said to be of. A node counts a pod as soon
 * as it has started it, schedulers when its phase says so. */
static bool is_fingerprint(struct sched_cluster *c, const struct known_node *n, bool with_pending)
{
	bool all = n->reported->fingerprint_method == FINGERPRINT_ALL;

	c->parts.nr = 0;
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *p = n->pods.at[i];

		if (!p->ended && !p->assumed && (with_pending || !p->pending) &&
			(all || tracked_pod_holds(c, p)))
			*vec_push(&c->parts) = p->part;
	}
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
		struct tracked_pod *p = n->pods.at[i];

		if (!p->assumed && (with_pending || !p->pending))
			p->settled = n->changed = true;
	}
}

/* What is left */

/* What the node would report, had it heard of the ends that are known here. The caller frees. */
static struct sched_topology *by_now(const struct sched_cluster *c, const struct known_node *n)
{
	struct sched_topology *t = nrt_over_reserve(n->reported, NULL, 0);

	for (size_t i = 0; i < n->pods.nr; i++)
		if (tracked_pod_gives_back(c, n->pods.at[i]))
			sched_claim_apply(&n->pods.at[i]->claim, ZONE_GIVE_BACK, t);
	return t;
}

/* Of a node that many pods wait on without starting, only so many are each walked through it; this
 * is done anew whenever something of it changes. */
enum { WALKS_MAX = 32, WALKS_STEPS = WALKS_MAX << 13 };

/* What the pods that wait leave of t, but for those of skip (a flag for each of the node's pods, or
 * NULL). Pods that hold what they claim come first. From where each is taken goes into hold[]. The
 * caller frees. */
static struct sched_topology *left_by(const struct sched_cluster *c, const struct known_node *n,
	const struct sched_topology *t, const bool *skip, enum known_hold *hold)
{
	struct sched_topology *left = nrt_over_reserve(t, NULL, 0);

	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *p = n->pods.at[i];

		hold[i] = HOLDS_NOTHING;
		if ((skip && skip[i]) || !tracked_pod_waits(c, p))
			continue;
		/* what has started on a node that names pods will be named at once */
		hold[i] = p->pending && n->names_pods ? HOLDS_SOMEWHERE : HOLDS_ANYWHERE;
		if (has_zones(p) && sched_claim_fits(&p->claim, left)) {
			hold[i] = HOLDS_CLAIM;
			sched_claim_apply(&p->claim, ZONE_TAKE, left);
		}
	}
	for (size_t i = 0; i < n->pods.nr; i++)
		if (hold[i] == HOLDS_ANYWHERE)
			nrt_change_all_zones(left, n->pods.at[i]->pod, ZONE_TAKE);
	struct budget budget = budget_of(WALKS_STEPS);
	unsigned walks = 0;
	for (size_t i = 0; i < n->pods.nr; i++) {
		if (hold[i] != HOLDS_SOMEWHERE)
			continue;
		bool walk = walks < WALKS_MAX;
		struct budget part = walk ? budget_share(&budget, WALKS_MAX, walks++) : budget;

		sched_pod_take_somewhere(n->pods.at[i]->pod, c->names, walk ? &part : NULL, left);
		if (walk)
			budget_return(&budget, &part);
	}
	return left;
}

static struct sched_topology *left_now(const struct sched_cluster *c, const struct known_node *n)
{
	auto_free enum known_hold *hold = xcalloc(n->pods.nr + 1, sizeof *hold);
	struct sched_topology *t = by_now(c, n), *left = left_by(c, n, t, NULL, hold);

	for (size_t i = 0; i < n->pods.nr; i++)
		n->pods.at[i]->hold = hold[i];
	sched_topology_free(t);
	return left;
}

/* The node */

/* For a while only: a node is not to be had out of use by a pod that never starts. */
static bool makes_stale(const struct sched_cluster *c, const struct tracked_pod *p)
{
	if (c->args.discard_reserved)
		return p->assumed;
	/* where pods are named, what is not named can be counted */
	if (p->ours || p->overdue || p->node->names_pods || c->args.foreign == FOREIGN_PODS_NONE ||
		!tracked_pod_waits(c, p))
		return false;
	return c->args.foreign == FOREIGN_PODS_ALL ? sched_pod_is_about_numa(p->pod, c->names)
						   : tracked_pod_holds(c, p);
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

void known_node_refresh(struct sched_cluster *c, struct known_node *n)
{
	if (!n->changed)
		return;
	n->changed = false;
	free((void *)(uintptr_t)n->node.pods);
	n->node.pods = pods_of(n, NULL, &n->node.nr_pods);
	n->nr_waiting = n->nr_gone = 0;
	n->candidate = (struct sched_candidate){.node = &n->node,
		.volcano = n->volcano_memory ? &n->volcano : NULL,
		.revision = ++c->revision};
	bool gives_back = false;
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *p = n->pods.at[i];

		n->nr_waiting += tracked_pod_waits(c, p);
		n->nr_gone += p->gone;
		gives_back = gives_back || tracked_pod_gives_back(c, p);
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

bool sched_cluster_fits_without(struct sched_cluster *c, struct sched_plan *p, const char *node,
	const char *const *uid, size_t nr)
{
	struct known_node *n = sched_index_find(&c->nodes, node);
	const struct sched_candidate *now = sched_cluster_find(c, node);
	const char *why;

	if (!now)
		return false;
	auto_free bool *goes = xcalloc(n->pods.nr + 1, sizeof *goes);
	auto_free enum known_hold *hold = xcalloc(n->pods.nr + 1, sizeof *hold);
	struct sched_topology *with = n->reported ? by_now(c, n) : NULL;
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *victim = n->pods.at[i];

		goes[i] = text_index(uid, (unsigned)nr, victim->key.name) >= 0;
		if (!goes[i] || !with || victim->ended || tracked_pod_waits(c, victim) ||
			!tracked_pod_holds(c, victim))
			continue;
		if (victim->seen_bound && has_zones(victim))
			sched_claim_apply(&victim->claim, ZONE_GIVE_BACK, with);
		else /* it may lie where that helps */
			nrt_change_all_zones(with, victim->pod, ZONE_GIVE_BACK);
	}
	struct sched_topology *left = with ? left_by(c, n, with, goes, hold) : NULL;
	struct sched_node then = n->node;
	auto_free struct sched_pod *pods = pods_of(n, goes, &then.nr_pods);
	struct sched_candidate candidate = *now;

	then.pods = pods;
	then.topology = left;
	candidate.node = &then;
	bool fits = sched_plan_filter(p, &candidate, &why) == SCHED_SUCCESS;
	sched_topology_free(with);
	sched_topology_free(left);
	return fits;
}

/* Invariants */

static int check_tracked_pods(
	const struct sched_cluster *c, const struct known_node *n, struct err *e)
{
	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *p = n->pods.at[i];

		if (p->node != n)
			return err_set(e, EINVAL, "node %s: pod %s is of another node", n->key.name,
				p->key.name);
		if (!sched_claim_is_within(&p->claim, p->pod, c->names))
			return err_set(e, EINVAL,
				"node %s: pod %s is believed to hold more than it asks for",
				n->key.name, p->key.name);
		if (p->gone && !tracked_pod_gives_back(c, p))
			return err_set(e, EINVAL, "node %s: pod %s is gone for good", n->key.name,
				p->key.name);
	}
	return 0;
}

/* What the pod asks for of the resource in all. */
static struct quantity asked_by(const struct tracked_pod *p, unsigned resource)
{
	unsigned nr;
	auto_free struct amount *all = nrt_effective_request(p->pod, &nr);
	const struct quantity *q = amounts_find(&(struct amounts){all, nr}, resource);

	return q ? *q : quantity_of(0);
}

static struct quantity claimed_by(const struct tracked_pod *p, unsigned zone_id, unsigned resource)
{
	struct quantity sum = {0};

	for (size_t i = 0; i < p->claim.nr; i++)
		if (p->claim.taken[i].zone_id == zone_id && p->claim.taken[i].resource == resource)
			sum = quantity_add(sum, p->claim.taken[i].q);
	return sum;
}

/* What of a zone's resource, or of all zones', is given back, and is taken by those that wait. */
struct balance {
	struct quantity given_back, taken, somewhere;
};

static struct balance balance_of(const struct sched_cluster *c, const struct known_node *n,
	unsigned zone_id, unsigned resource)
{
	struct balance b = {0};

	for (size_t i = 0; i < n->pods.nr; i++) {
		const struct tracked_pod *p = n->pods.at[i];

		if (tracked_pod_gives_back(c, p))
			b.given_back = quantity_add(b.given_back, claimed_by(p, zone_id, resource));
		if (!tracked_pod_waits(c, p))
			continue;
		if (p->hold == HOLDS_CLAIM)
			b.taken = quantity_add(b.taken, claimed_by(p, zone_id, resource));
		else if (p->hold == HOLDS_ANYWHERE)
			b.taken = quantity_add(b.taken, asked_by(p, resource));
		else
			b.somewhere = quantity_add(b.somewhere, asked_by(p, resource));
	}
	return b;
}

static struct quantity left_without(
	const struct balance *b, const struct zone_resource *r, unsigned zone)
{
	struct quantity by_now = quantity_add(r->available[zone], b->given_back);

	if (!quantity_is_zero(b->given_back) && quantity_compare(by_now, r->allocatable[zone]) > 0)
		by_now = r->allocatable[zone];
	if (quantity_is_zero(b->taken))
		return by_now;
	struct quantity left = quantity_sub(by_now, b->taken);
	return left.whole < 0 ? quantity_of(0) : left;
}

/* What has not started yet is taken once, from whatever zones. */
static int check_zone_resource(const struct sched_cluster *c, const struct known_node *n,
	const struct zone_resource *r, struct err *e)
{
	const struct zone_resource *left = sched_topology_find(n->node.topology, r->resource);
	struct quantity somewhere = {0}, most = {0};
	bool bad = !left;

	for (unsigned zone = 0; zone < n->reported->nr_zones && !bad; zone++) {
		struct balance b = balance_of(c, n, n->reported->zone_id[zone], r->resource);
		struct quantity less =
			quantity_sub(left_without(&b, r, zone), left->available[zone]);

		most = b.somewhere;
		bad = less.whole < 0;
		somewhere = quantity_add(somewhere, less);
	}
	if (bad || quantity_compare(somewhere, most) > 0)
		return err_set(e, EINVAL,
			"node %s: its zones have not the %s left that they should", n->key.name,
			c->names->at[r->resource].name);
	return 0;
}

static int check_zones_left(struct sched_cluster *c, struct known_node *n, struct err *e)
{
	int rc = check_tracked_pods(c, n, e);

	known_node_refresh(c, n);
	for (size_t i = 0; n->reported && i < n->reported->resources.nr && !rc; i++)
		rc = check_zone_resource(c, n, &n->reported->resources.at[i], e);
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
		rc = check_zones_left(c, n, e);
	}
	if (!rc && nr_pods != c->pods.nr)
		rc = err_set(e, EINVAL, "nodes have %zu pods, there are %zu", nr_pods, c->pods.nr);
	return rc;
}
