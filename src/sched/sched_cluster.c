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

static struct tracked_pod *pod_at(const struct sched_cluster *c, size_t slot)
{
	return (struct tracked_pod *)(void *)c->pods.slot[slot];
}

/* Nodes */

static struct known_node *find_node(const struct sched_cluster *c, const char *name)
{
	return sched_index_find(&c->nodes, name);
}

static struct known_node *want_node(struct sched_cluster *c, const char *name)
{
	struct known_node *n = find_node(c, name);

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

static void free_node(void *entry)
{
	struct known_node *n = entry;

	drop_report(n);
	drop_allocatable(n);
	free(n->volcano_memory);
	free((void *)(uintptr_t)n->node.pods);
	vec_fini(&n->pods);
	free(n);
}

static void detach(struct tracked_pod *p)
{
	struct known_node *n = p->node;
	size_t i = 0;

	while (n->pods.at[i] != p)
		i++;
	vec_remove(&n->pods, i);
	n->changed = true;
}

static void free_pod(void *entry)
{
	struct tracked_pod *p = entry;

	free(p->pod);
	sched_claim_fini(&p->claim);
	free(p);
}

static void forget_pod(struct sched_cluster *c, struct tracked_pod *p)
{
	detach(p);
	known_age_remove(&c->age, p);
	sched_index_remove(&c->pods, &p->key);
	free_pod(p);
}

/* Who is gone, and has nothing to give back any more, is forgotten. */
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
	free_node(n);
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

static void lose(struct sched_cluster *c, const char *name, void (*what)(struct known_node *n))
{
	struct known_node *n = find_node(c, name);

	if (!n)
		return;
	what(n);
	forget_gone(c, n);
	drop_unknown(c, n);
}

void sched_cluster_remove_node(struct sched_cluster *c, const char *name)
{
	lose(c, name, lose_node);
}

void sched_cluster_remove_report(struct sched_cluster *c, const char *node)
{
	lose(c, node, drop_report);
}

void sched_cluster_put_numatopology(
	struct sched_cluster *c, const char *node, const struct volcano_node *volcano, void *memory)
{
	if (!volcano) {
		lose(c, node, lose_numatopology);
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
static void settle(struct sched_cluster *c, struct known_node *n)
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

/* It is not there any more; false: nor is it here. */
static bool leaves_something(struct sched_cluster *c, struct tracked_pod *p)
{
	p->gone = p->node->changed = true;
	if (tracked_pod_gives_back(c, p))
		return true;
	drop_pod(c, p);
	return false;
}

static void attach(struct sched_cluster *c, struct tracked_pod *p, const char *node)
{
	p->node = want_node(c, node);
	*vec_push(&p->node->pods) = p;
}

/* A pod is bound once, and has one name. */
static bool is_same(const struct tracked_pod *p, const struct sched_bound *b)
{
	return !strcmp(p->node->key.name, b->node) && !strcmp(p->pod->ns, b->pod->ns) &&
	       !strcmp(p->pod->name, b->pod->name);
}

/* It is heard of for the first time: nobody could change what was said of its zones, or some could.
 * Then it counts as long as nothing better is known; and not for a pod that has ended already. */
static void believe(struct sched_cluster *c, struct tracked_pod *p, const struct sched_bound *b,
	bool seen_bound)
{
	sched_claim_fini(&p->claim);
	p->seen_bound = seen_bound;
	if (!b->ended)
		sched_claim_of(b, c->names, &p->claim);
	tracked_pod_note_name(p, false);
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
	attach(c, p, b->node);
	believe(c, p, b, seen_bound);
	return p;
}

/* What is said of the zones of one that is known already may be its author's. */
static void renew_pod(struct tracked_pod *p, const struct sched_bound *b)
{
	if (!sched_pod_asks_alike(p->pod, b->pod))
		sched_claim_fini(&p->claim); /* it was resized: nobody knows where that is from */
	free(p->pod);
	p->pod = sched_pod_copy(b->pod);
	p->node->changed = true;
}

static struct tracked_pod *want_pod(
	struct sched_cluster *c, const struct sched_bound *b, bool seen_bound)
{
	struct tracked_pod *p = sched_index_find(&c->pods, b->pod->uid);

	if (p && (p->gone || !is_same(p, b))) {
		struct known_node *before = p->node;

		forget_pod(c, p);
		drop_unknown(c, before);
		return new_pod(c, b, false);
	}
	if (!p)
		return new_pod(c, b, seen_bound);
	renew_pod(p, b);
	return p;
}

static bool is_over(const struct sched_cluster *c, const struct tracked_pod *p, int64_t now_ms)
{
	return now_ms >= p->since_ms &&
	       (uint64_t)now_ms - (uint64_t)p->since_ms >= c->args.assume_ms;
}

/* Whether it has waited for long enough: a report of later is the truth. What has not started yet
 * on a node of numafitd is in none, however late. */
static bool has_expired(const struct sched_cluster *c, const struct tracked_pod *p, int64_t now_ms)
{
	const struct known_node *n = p->node;

	return !p->assumed && n->reported && n->report_ms > p->since_ms &&
	       !(n->names_pods && p->pending) && is_over(c, p, now_ms);
}

static void expire(struct sched_cluster *c, struct tracked_pod *p, int64_t now_ms)
{
	if (p->expired || !has_expired(c, p, now_ms))
		return;
	p->expired = true;
	p->node->changed = true;
}

/* From then on reports should say so; clocks of others may be ahead. */
static void count_since(
	struct sched_cluster *c, struct tracked_pod *p, int64_t since_ms, int64_t now_ms)
{
	known_age_remove(&c->age, p);
	p->since_ms = since_ms < now_ms ? since_ms : now_ms;
	p->expired = false;
	p->overdue = is_over(c, p, now_ms);
	if (!p->overdue)
		known_age_add(&c->age, p);
}

static int64_t bound_since(
	const struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms)
{
	if (b->bound_ms)
		return b->bound_ms;
	return c->listing[CLUSTER_PODS] ? long_ago : now_ms;
}

void sched_cluster_put_pod(struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms)
{
	struct tracked_pod *p = want_pod(c, b, b->seen_bound && !c->listing[CLUSTER_PODS]);

	if (b->ended && !p->ended)
		count_since(c, p, now_ms, now_ms);
	else if (p->since_ms == INT64_MAX)
		count_since(c, p, bound_since(c, b, now_ms), now_ms);
	p->assumed = false;
	p->pending = b->pending;
	p->ended = b->ended;
	p->round = c->round[CLUSTER_PODS];
	settle(c, p->node);
	expire(c, p, now_ms);
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

	if (there && !there->assumed && !there->gone)
		return;
	struct tracked_pod *p = want_pod(c, b, true);
	believe(c, p, b, true);
	count_since(c, p, now_ms, now_ms);
	p->assumed = p->ours = p->pending = true;
	forget_gone(c, p->node);
}

void sched_cluster_forget(struct sched_cluster *c, const char *uid)
{
	struct tracked_pod *p = sched_index_find(&c->pods, uid);

	if (p && p->assumed)
		drop_pod(c, p);
}

void sched_cluster_expire(struct sched_cluster *c, int64_t now_ms)
{
	struct tracked_pod *p;

	/* what has not expired by then does with its node's next report, or with its next word */
	while ((p = c->age.oldest) && is_over(c, p, now_ms)) {
		known_age_remove(&c->age, p);
		p->overdue = p->node->changed = true;
		expire(c, p, now_ms);
		if (p->assumed || (p->gone && p->expired))
			drop_pod(c, p);
	}
}

/* Reports */

static int by_value(const void *a, const void *b)
{
	const struct known_part *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

static struct known_part *sorted(const struct sched_report *r)
{
	struct known_part *own = xcalloc(r->nr_pods + 1, sizeof *own);

	for (size_t i = 0; i < r->nr_pods; i++)
		own[i] = (struct known_part){r->pod[i], r->pod_zones ? r->pod_zones[i] : 0};
	if (r->nr_pods)
		qsort(own, r->nr_pods, sizeof *own, by_value);
	return own;
}

void sched_cluster_put_report(
	struct sched_cluster *c, const char *node, const struct sched_report *r, int64_t now_ms)
{
	struct known_node *n = want_node(c, node);
	/* the same one may come again, which tells nothing of what was bound since */
	bool again = n->reported && r->generation && r->generation == n->generation;
	int64_t made_ms = again ? n->report_ms : now_ms;
	bool is_first = !n->reported;

	drop_report(n);
	n->reported = r->topology;
	n->generation = r->generation;
	n->part = sorted(r);
	n->nr_parts = r->nr_pods;
	n->names_pods = r->names_pods;
	n->says_zones = r->pod_zones;
	n->report_ms = r->made_ms ? r->made_ms : made_ms;
	n->round[CLUSTER_REPORTS] = c->round[CLUSTER_REPORTS];
	for (size_t i = 0; i < n->pods.nr; i++) {
		tracked_pod_note_name(n->pods.at[i], !is_first);
		expire(c, n->pods.at[i], now_ms);
	}
	settle(c, n);
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
		struct tracked_pod *p = pod_at(c, i);

		bool is_swept = p && !p->assumed && !p->gone && p->round != c->round[CLUSTER_PODS];
		if (!is_swept || leaves_something(c, p))
			i++; /* else another one may have moved into its slot */
	}
}

/* Whether the node has something of that kind. */
static bool has(const struct known_node *n, enum sched_cluster_kind kind)
{
	const bool is_there[NR_CLUSTER_KINDS] = {
		[CLUSTER_NODES] = n->is_there,
		[CLUSTER_REPORTS] = n->reported != NULL,
		[CLUSTER_NUMATOPOLOGIES] = n->volcano_memory != NULL,
	};

	return is_there[kind];
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

		if (n && has(n, kind) && n->round[kind] != c->round[kind])
			lose(c, n->key.name, lost[kind]);
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
	sched_index_fini(&c->pods, free_pod);
	sched_index_fini(&c->nodes, free_node);
	vec_fini(&c->parts);
	free(c);
}

/* Questions */

uint64_t sched_cluster_generation(const struct sched_cluster *c, const char *name)
{
	const struct known_node *n = find_node(c, name);

	return n ? n->generation : 0;
}

const char *sched_cluster_fingerprint(const struct sched_cluster *c, const char *name)
{
	const struct known_node *n = find_node(c, name);

	return n && n->reported ? n->reported->fingerprint : NULL;
}

const char *sched_cluster_node_of(const struct sched_cluster *c, const char *uid)
{
	const struct tracked_pod *p = sched_index_find(&c->pods, uid);

	return p && !p->assumed && !p->gone ? p->node->key.name : NULL;
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
