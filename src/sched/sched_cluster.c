#include <numafit/sched_cluster.h>

#include <numafit/nrt_fingerprint.h>
#include <string.h>

#include "sched_cluster_state.h"

/* Before any clock. */
static const int64_t long_ago = INT64_MIN / 2;

struct sched_cluster *sched_cluster_new(
	const struct sched_cluster_args *args, const struct resource_table *names)
{
	struct sched_cluster *c = xcalloc(1, sizeof *c);

	c->args = *args;
	c->names = names;
	return c;
}

static struct known_node *node_at(const struct sched_cluster *c, size_t slot)
{
	return (struct known_node *)(void *)c->nodes.slot[slot];
}

/* Nodes */

static struct known_node *want_node(struct sched_cluster *c, const char *name)
{
	struct known_node *n = sched_index_find(&c->nodes, name);

	if (!n) {
		n = xcalloc(1, sizeof *n);
		sched_index_add(&c->nodes, &n->key, name);
		n->node.name = n->key.name;
	}
	n->changed = true;
	return n;
}

static void drop_report(struct known_node *n)
{
	sched_topology_free(n->reported);
	sched_topology_free(n->left);
	free(n->part);
	n->reported = n->left = NULL;
	n->node.topology = NULL;
	n->part = NULL;
	n->nr_parts = 0;
	n->generation = 0;
	n->names_pods = false;
	n->changed = true;
}

static void drop_allocatable(struct known_node *n)
{
	free((void *)(uintptr_t)n->node.allocatable.at);
	n->node.allocatable = (struct amounts){0};
}

static void known_node_free(void *entry)
{
	struct known_node *n = entry;

	drop_report(n);
	drop_allocatable(n);
	free(n->volcano_memory);
	free((void *)(uintptr_t)n->node.pods);
	vec_fini(&n->pods);
	free(n);
}

static void tracked_pod_free(void *entry)
{
	struct tracked_pod *p = entry;

	free(p->pod);
	sched_claim_fini(&p->claim);
	free(p);
}

/* Pods that are forgotten */

static void forget_pod(struct sched_cluster *c, struct tracked_pod *p)
{
	struct known_node *n = p->node;
	size_t i = 0;

	while (n->pods.at[i] != p)
		i++;
	vec_remove(&n->pods, i);
	n->changed = true;
	known_age_remove(&c->age, p);
	sched_index_remove(&c->pods, &p->key);
	tracked_pod_free(p);
}

/* Forget the pods that are gone and have nothing to give back any more. */
static void forget_gone(struct sched_cluster *c, const struct known_node *n)
{
	for (size_t i = n->pods.nr; i-- > 0;)
		if (n->pods.at[i]->gone && !tracked_pod_gives_back(c, n->pods.at[i]))
			forget_pod(c, n->pods.at[i]);
}

/* Forget of a node of which nothing is known any more. */
static void drop_unknown(struct sched_cluster *c, struct known_node *n)
{
	if (n->is_there || n->reported || n->volcano_memory || n->pods.nr)
		return;
	sched_index_remove(&c->nodes, &n->key);
	known_node_free(n);
}

void sched_cluster_put_node(struct sched_cluster *c, const struct sched_node *node)
{
	struct known_node *n = want_node(c, node->name);
	unsigned nr = node->allocatable.nr;
	struct amount *at = xcalloc(nr + 1, sizeof *at);

	if (nr)
		memcpy(at, node->allocatable.at, nr * sizeof *at);
	drop_allocatable(n);
	n->node.allocatable = (struct amounts){at, nr};
	n->is_there = true;
	n->round[CLUSTER_NODES] = c->round[CLUSTER_NODES];
}

static void lose_node(struct known_node *n)
{
	n->is_there = false;
}

static void lose_numatopology(struct known_node *n)
{
	free(n->volcano_memory);
	n->volcano_memory = NULL;
	n->changed = true;
}

static void lose_from_node(
	struct sched_cluster *c, const char *name, void (*what)(struct known_node *n))
{
	struct known_node *n = sched_index_find(&c->nodes, name);

	if (!n)
		return;
	what(n);
	forget_gone(c, n);
	drop_unknown(c, n);
}

void sched_cluster_remove_node(struct sched_cluster *c, const char *name)
{
	lose_from_node(c, name, lose_node);
}

void sched_cluster_remove_report(struct sched_cluster *c, const char *node)
{
	lose_from_node(c, node, drop_report);
}

void sched_cluster_put_numatopology(
	struct sched_cluster *c, const char *node, const struct volcano_node *volcano, void *memory)
{
	if (!volcano) {
		lose_from_node(c, node, lose_numatopology);
		return;
	}
	struct known_node *n = want_node(c, node);
	free(n->volcano_memory);
	n->volcano = *volcano;
	n->volcano_memory = memory;
	n->round[CLUSTER_NUMATOPOLOGIES] = c->round[CLUSTER_NUMATOPOLOGIES];
}

/* Pods */

/* The node's pods or its report are others. */
static void settle_node(struct sched_cluster *c, struct known_node *n)
{
	known_node_settle(c, n);
	forget_gone(c, n);
}

static void drop_pod(struct sched_cluster *c, struct tracked_pod *p)
{
	struct known_node *n = p->node;

	forget_pod(c, p);
	known_node_settle(c, n);
	drop_unknown(c, n);
}

/* The API server has the pod no more. False: nor has this cluster, as the pod gave back nothing. */
static bool leaves_something(struct sched_cluster *c, struct tracked_pod *p)
{
	p->gone = p->node->changed = true;
	if (tracked_pod_gives_back(c, p))
		return true;
	drop_pod(c, p);
	return false;
}

static bool is_to_be_bound(const struct tracked_pod *p)
{
	return p->assumed && !p->confirmed;
}

/* A pod is bound once, and has one name. */
static bool is_same_binding(const struct tracked_pod *p, const struct sched_bound *b)
{
	return !strcmp(p->node->key.name, b->node) && !strcmp(p->pod->ns, b->pod->ns) &&
	       !strcmp(p->pod->name, b->pod->name);
}

/* It is heard of for the first time: nobody could change what was said of its zones, or some could.
 * Then it counts as long as nothing better is known; and not for a pod that has ended already. */
static void believe_claim(struct sched_cluster *c, struct tracked_pod *p,
	const struct sched_bound *b, bool seen_bound)
{
	sched_claim_fini(&p->claim);
	p->seen_bound = seen_bound;
	if (!b->ended)
		sched_claim_of(b, c->names, &p->claim);
	tracked_pod_note_name(p, false);
}

/* It is bound where it was assumed, and nobody has seen who did it. A hint that says something else
 * than was assumed, or is not there, is not what was posted, but another one's binding
 * (kube-scheduler binds by itself when an extender that it may ignore fails to): the node goes by
 * that. */
static void doubt_claim(
	const struct sched_cluster *c, struct tracked_pod *p, const struct sched_bound *b)
{
	struct sched_claim said;

	sched_claim_of(b, c->names, &said);
	if (!sched_claims_are_alike(&said, &p->claim))
		sched_claim_fini(&p->claim);
	sched_claim_fini(&said);
}

static struct tracked_pod *new_pod(
	struct sched_cluster *c, const struct sched_bound *b, bool seen_bound)
{
	struct tracked_pod *p = xcalloc(1, sizeof *p);

	sched_index_add(&c->pods, &p->key, b->pod->uid);
	p->since_ms = INT64_MAX;
	p->pod = sched_pod_copy(b->pod);
	p->part = fingerprint_pod(p->pod->ns, p->pod->name);
	p->ours = b->ours;
	p->node = want_node(c, b->node);
	*vec_push(&p->node->pods) = p;
	believe_claim(c, p, b, seen_bound);
	return p;
}

static struct tracked_pod *want_pod(
	struct sched_cluster *c, const struct sched_bound *b, bool seen_bound)
{
	struct tracked_pod *p = sched_index_find(&c->pods, b->pod->uid);

	if (p && (p->gone || !is_same_binding(p, b))) {
		struct known_node *before = p->node;

		forget_pod(c, p);
		drop_unknown(c, before);
		return new_pod(c, b, false);
	}
	if (!p)
		return new_pod(c, b, seen_bound);
	/* what is said of the zones of a pod that is known already may be its author's */
	if (!sched_pod_asks_alike(p->pod, b->pod))
		sched_claim_fini(&p->claim); /* it was resized: nobody knows where that is from */
	free(p->pod);
	p->pod = sched_pod_copy(b->pod);
	p->node->changed = true;
	return p;
}

static bool assume_time_is_over(
	const struct sched_cluster *c, const struct tracked_pod *p, int64_t now_ms)
{
	return now_ms >= p->since_ms &&
	       (uint64_t)now_ms - (uint64_t)p->since_ms >= c->args.assume_ms;
}

/* Once a pod has waited for long enough a report of later is the truth. A pod that has not started
 * yet on a node of numafitd is in no report, however late. */
static void expire_pod(struct sched_cluster *c, struct tracked_pod *p, int64_t now_ms)
{
	struct known_node *n = p->node;

	if (p->expired || p->assumed || !n->reported || n->report_ms <= p->since_ms ||
		(n->names_pods && p->pending) || !assume_time_is_over(c, p, now_ms))
		return;
	p->expired = n->changed = true;
}

/* From since_ms on reports should name the pod; clocks of others may be ahead. */
static void count_since(
	struct sched_cluster *c, struct tracked_pod *p, int64_t since_ms, int64_t now_ms)
{
	known_age_remove(&c->age, p);
	p->since_ms = since_ms < now_ms ? since_ms : now_ms;
	p->expired = false;
	p->overdue = assume_time_is_over(c, p, now_ms);
	if (!p->overdue)
		known_age_add(&c->age, p);
}

void sched_cluster_put_pod(struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms)
{
	bool listing = c->listing[CLUSTER_PODS];
	struct tracked_pod *p = want_pod(c, b, b->seen_bound && !listing);

	if (is_to_be_bound(p) && b->seen_bound && !listing) /* perhaps another one's binding */
		believe_claim(c, p, b, true);
	else if (is_to_be_bound(p))
		doubt_claim(c, p, b);
	if (b->ended && !p->ended)
		count_since(c, p, now_ms, now_ms);
	else if (p->since_ms == INT64_MAX && !b->bound_ms)
		count_since(c, p, listing ? long_ago : now_ms, now_ms);
	else if (p->since_ms == INT64_MAX)
		count_since(c, p, b->bound_ms, now_ms);
	p->assumed = p->confirmed = false;
	p->pending = b->pending;
	p->ended = b->ended;
	p->round = c->round[CLUSTER_PODS];
	settle_node(c, p->node);
	expire_pod(c, p, now_ms);
}

void sched_cluster_remove_pod(struct sched_cluster *c, const char *uid)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (p)
		(void)leaves_something(c, p);
}

void sched_cluster_assume(struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms)
{
	const struct tracked_pod *there = sched_index_find(&c->pods, b->pod->uid);

	if (there && !is_to_be_bound(there) && !there->gone)
		return;
	struct tracked_pod *p = want_pod(c, b, true);
	believe_claim(c, p, b, true);
	count_since(c, p, now_ms, now_ms);
	p->assumed = p->ours = p->pending = true;
	p->round = c->round[CLUSTER_PODS];
	forget_gone(c, p->node);
}

void sched_cluster_renew(struct sched_cluster *c, const char *uid, int64_t now_ms)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (p && is_to_be_bound(p))
		count_since(c, p, now_ms, now_ms);
}

void sched_cluster_confirm(struct sched_cluster *c, const char *uid, bool as_assumed)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (!p || !p->assumed)
		return;
	p->confirmed = true;
	if (as_assumed)
		return;
	sched_claim_fini(&p->claim);
	p->node->changed = true;
}

void sched_cluster_forget(struct sched_cluster *c, const char *uid)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (p && is_to_be_bound(p))
		drop_pod(c, p);
}

const char *sched_cluster_assumed_on(const struct sched_cluster *c, const char *uid)
{
	const struct tracked_pod *p = sched_index_find(&c->pods, uid);

	return p && p->assumed ? p->node->key.name : NULL;
}

void sched_cluster_note_unbound(struct sched_cluster *c, const char *uid)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (p && p->assumed)
		p->round = c->round[CLUSTER_PODS];
}

void sched_cluster_expire(struct sched_cluster *c, int64_t now_ms)
{
	struct tracked_pod *p;

	if (now_ms < c->now_ms)
		sched_cluster_set_back(c, now_ms);
	c->now_ms = now_ms;
	/* a pod that has not expired by then expires with its node's next report or its own put */
	while ((p = c->age.oldest) && assume_time_is_over(c, p, now_ms)) {
		known_age_remove(&c->age, p);
		p->overdue = p->node->changed = true;
		expire_pod(c, p, now_ms);
		/* confirmed, and in no list since */
		bool is_missing = p->assumed && !c->listing[CLUSTER_PODS] &&
				  p->round != c->round[CLUSTER_PODS];
		if (is_to_be_bound(p) || is_missing || (p->gone && p->expired))
			drop_pod(c, p);
	}
}

/* Reports */

static int by_value(const void *a, const void *b)
{
	const struct known_part *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

void sched_cluster_put_report(
	struct sched_cluster *c, const char *node, const struct sched_report *r, int64_t now_ms)
{
	struct known_node *n = want_node(c, node);
	/* the same report may come again: it shows nothing of what was bound since */
	bool again = n->reported && r->generation && r->generation == n->generation;
	int64_t made_ms = again ? n->report_ms : now_ms;
	bool is_first = !n->reported;

	drop_report(n);
	n->reported = r->topology;
	n->generation = r->generation;
	n->part = xcalloc(r->nr_pods + 1, sizeof *n->part);
	n->nr_parts = r->nr_pods;
	for (size_t i = 0; i < r->nr_pods; i++)
		n->part[i] = (struct known_part){r->pod[i], r->pod_zones ? r->pod_zones[i] : 0};
	if (r->nr_pods)
		qsort(n->part, r->nr_pods, sizeof *n->part, by_value);
	n->names_pods = r->names_pods;
	n->says_zones = r->pod_zones;
	n->report_ms = r->made_ms ? r->made_ms : made_ms;
	n->round[CLUSTER_REPORTS] = c->round[CLUSTER_REPORTS];
	for (size_t i = 0; i < n->pods.nr; i++) {
		tracked_pod_note_name(n->pods.at[i], !is_first);
		expire_pod(c, n->pods.at[i], now_ms);
	}
	settle_node(c, n);
}

/* Lists */

void sched_cluster_begin(struct sched_cluster *c, enum sched_cluster_kind kind)
{
	c->round[kind]++;
	c->listing[kind] = true;
}

static void sweep_pods(struct sched_cluster *c)
{
	for (size_t i = 0; i < c->pods.cap;) {
		struct tracked_pod *p = (struct tracked_pod *)(void *)c->pods.slot[i];
		/* a list from the API server's memory may be older than a binding */
		bool may_be_newer = p && p->assumed && !(p->confirmed && p->overdue);
		bool is_swept =
			p && !may_be_newer && !p->gone && p->round != c->round[CLUSTER_PODS];

		if (!is_swept || leaves_something(c, p))
			i++; /* else another one may have moved into its slot */
	}
}

static void sweep_nodes(struct sched_cluster *c, enum sched_cluster_kind kind)
{
	static void (*const lost[NR_CLUSTER_KINDS])(struct known_node * n) = {
		[CLUSTER_NODES] = lose_node,
		[CLUSTER_REPORTS] = drop_report,
		[CLUSTER_NUMATOPOLOGIES] = lose_numatopology,
	};

	for (size_t i = 0; i < c->nodes.cap;) {
		struct known_node *n = node_at(c, i);
		const bool has[NR_CLUSTER_KINDS] = {
			[CLUSTER_NODES] = n && n->is_there,
			[CLUSTER_REPORTS] = n && n->reported,
			[CLUSTER_NUMATOPOLOGIES] = n && n->volcano_memory,
		};

		if (has[kind] && n->round[kind] != c->round[kind])
			lose_from_node(c, n->key.name, lost[kind]);
		else
			i++;
	}
}

void sched_cluster_sweep(struct sched_cluster *c, enum sched_cluster_kind kind)
{
	c->listing[kind] = false;
	if (kind == CLUSTER_PODS)
		sweep_pods(c);
	else
		sweep_nodes(c, kind);
}

void sched_cluster_free(struct sched_cluster *c)
{
	if (!c)
		return;
	sched_index_fini(&c->pods, tracked_pod_free);
	sched_index_fini(&c->nodes, known_node_free);
	vec_fini(&c->parts);
	free(c);
}

/* Questions */

uint64_t sched_cluster_generation(const struct sched_cluster *c, const char *name)
{
	const struct known_node *n = sched_index_find(&c->nodes, name);

	return n ? n->generation : 0;
}

const char *sched_cluster_fingerprint(const struct sched_cluster *c, const char *name)
{
	const struct known_node *n = sched_index_find(&c->nodes, name);

	return n && n->reported ? n->reported->fingerprint : NULL;
}

const char *sched_cluster_node_of(const struct sched_cluster *c, const char *uid)
{
	const struct tracked_pod *p = sched_index_find(&c->pods, uid);

	return p && !is_to_be_bound(p) && !p->gone ? p->node->key.name : NULL;
}

void sched_cluster_count(struct sched_cluster *c, struct sched_cluster_counts *out)
{
	*out = (struct sched_cluster_counts){0};
	for (size_t i = 0; i < c->nodes.cap; i++) {
		struct known_node *n = node_at(c, i);

		if (!n)
			continue;
		known_node_refresh(c, n);
		out->nodes += n->is_there;
		out->reports += n->reported != NULL;
		out->pods += n->pods.nr - n->nr_gone;
		out->waiting += n->nr_waiting;
		out->stale += n->candidate.stale;
	}
}
