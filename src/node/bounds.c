/* The kubelet's tree of cgroups, as far as containers are in it, and what each is to be allowed. */
#include <numafit/bounds.h>

#include <numafit/cgroup_path.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <stdlib.h>

#define uthash_malloc(bytes) xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

enum level { LEVEL_QOS, LEVEL_POD, LEVEL_CONTAINER };

struct node_list {
	VEC(struct bounds_node *);
};

/* Those that have the same one above them. The first nr_settled of them are pods that no move of
 * the pool concerns. */
struct siblings {
	VEC(struct bounds_node *);
	size_t nr_settled;
};

struct bounds_node {
	char *path;
	enum level level;
	struct bounds_node *above; /* NULL: above it is the kubelet's root, which has no bound */
	size_t place;              /* among those that have the same one above them */
	size_t place_in_all;
	struct siblings below;
	char *id;                      /* of a container; of a pod its uid */
	unsigned nr_shared, nr_owners; /* containers that it is, or that are below it */
	struct cpuset owned;           /* what these owners have */
	struct cpuset within;          /* of a container that shares the pool: the set that it has
					  while one above it bounds it; empty: any */
	struct cpuset set;             /* what was written; empty: nothing, or it is not known */
	unsigned nr_set;               /* how many below it have a set */
	UT_hash_handle by_path, by_id;
};

struct bounds {
	struct node_list all;
	struct bounds_node *by_path, *by_id; /* hashed: all of these, and containers */
	struct siblings tops;        /* those with none above them */
	struct node_list idle;       /* pods and classes without containers, which have a set */
	size_t nr_set;
	uint64_t serial;
};

struct bounds *bounds_new(void)
{
	return xcalloc(1, sizeof(struct bounds));
}

static void node_free(struct bounds_node *n)
{
	vec_fini(&n->below);
	free(n->path);
	free(n->id);
	free(n);
}

void bounds_free(struct bounds *b)
{
	if (!b)
		return;
	HASH_CLEAR(by_path, b->by_path);
	HASH_CLEAR(by_id, b->by_id);
	for (size_t i = 0; i < b->all.nr; i++)
		node_free(b->all.at[i]);
	vec_fini(&b->all);
	vec_fini(&b->tops);
	vec_fini(&b->idle);
	free(b);
}

/* Finding */

struct bounds_node *bounds_find(const struct bounds *b, const char *path)
{
	struct bounds_node *n;

	HASH_FIND(by_path, b->by_path, path, strlen(path), n);
	return n;
}

static struct bounds_node *find_container(const struct bounds *b, const char *id)
{
	struct bounds_node *n;

	HASH_FIND(by_id, b->by_id, id, strlen(id), n);
	return n;
}

/* Growing and shrinking */

static void end_idleness(struct bounds *b, const struct bounds_node *n)
{
	for (size_t i = 0; i < b->idle.nr; i++)
		if (b->idle.at[i] == n) {
			vec_remove(&b->idle, i);
			return;
		}
}

/* Nothing is in it that is known here. */
static bool is_idle(const struct bounds_node *n)
{
	return n->level != LEVEL_CONTAINER && !n->below.nr;
}

static struct siblings *siblings_of(struct bounds *b, const struct bounds_node *n)
{
	return n->above ? &n->above->below : &b->tops;
}

static void put_at(struct siblings *s, size_t place, struct bounds_node *n)
{
	s->at[place] = n;
	n->place = place;
}

/* A pod whose containers all have CPUs for themselves is bounded to these, whatever the pool is. */
static bool is_settled(const struct bounds_node *n)
{
	return n->level == LEVEL_POD && n->nr_owners && !n->nr_shared &&
	       cpuset_equal(&n->set, &n->owned);
}

/* It changes places with the first, or the last, of the other kind. */
static void keep_place(struct bounds *b, struct bounds_node *n)
{
	struct siblings *s = siblings_of(b, n);
	const size_t from = n->place;
	const bool was_settled = from < s->nr_settled;

	if (was_settled == is_settled(n))
		return;
	const size_t to = was_settled ? --s->nr_settled : s->nr_settled++;
	put_at(s, from, s->at[to]);
	put_at(s, to, n);
}

/* NULL: something else is there. */
static struct bounds_node *get(struct bounds *b, const char *path, enum level level,
	struct bounds_node *above, const char *id)
{
	struct bounds_node *n = bounds_find(b, path);

	if (n && (n->level != level || n->above != above || !text_equal(n->id, id)))
		return NULL;
	if (n && is_idle(n))
		end_idleness(b, n);
	if (n)
		return n;
	n = xcalloc(1, sizeof *n);
	n->path = xstrdup(path);
	n->level = level;
	n->above = above;
	n->id = xstrdup(id);
	n->place_in_all = b->all.nr;
	*vec_push(&b->all) = n;
	HASH_ADD_KEYPTR(by_path, b->by_path, n->path, strlen(n->path), n);
	if (level == LEVEL_CONTAINER)
		HASH_ADD_KEYPTR(by_id, b->by_id, n->id, strlen(n->id), n);
	n->place = siblings_of(b, n)->nr;
	*vec_push(siblings_of(b, n)) = n;
	return n;
}

/* The set is that one now, and those above know of it. */
static void enter_set(struct bounds *b, struct bounds_node *n, const struct cpuset *cpus)
{
	int change = !cpuset_empty(cpus) - !cpuset_empty(&n->set);

	n->set = *cpus;
	b->nr_set += (size_t)change;
	for (struct bounds_node *above = n->above; above; above = above->above)
		above->nr_set += (unsigned)change;
	keep_place(b, n);
}

static void take_out(struct bounds *b, struct bounds_node *n)
{
	struct siblings *siblings = siblings_of(b, n);

	enter_set(b, n, &(const struct cpuset){0});
	put_at(siblings, n->place, siblings->at[siblings->nr - 1]);
	siblings->nr--;
	b->all.at[n->place_in_all] = b->all.at[b->all.nr - 1];
	b->all.at[n->place_in_all]->place_in_all = n->place_in_all;
	b->all.nr--;
	HASH_DELETE(by_path, b->by_path, n);
	if (n->level == LEVEL_CONTAINER)
		HASH_DELETE(by_id, b->by_id, n);
	end_idleness(b, n);
	node_free(n);
}

/* A cgroup without containers stays while it may be there with a set of ours. */
static void prune(struct bounds *b, struct bounds_node *n)
{
	while (n && is_idle(n) && cpuset_empty(&n->set)) {
		struct bounds_node *above = n->above;

		take_out(b, n);
		n = above;
	}
	if (n && is_idle(n))
		*vec_push(&b->idle) = n;
}

/* Whether the cgroup is to be allowed the pool, and nothing else, by itself or by one above it. */
static bool is_within_pool(const struct bounds_node *n)
{
	return n && !n->nr_owners;
}

/* Whether a cgroup needs a set of its own. Not where that above it has the pool alone, nor where
 * a container has its CPUs from the runtime. */
static bool needs_set(const struct bounds_node *n)
{
	return !is_within_pool(n->above) && (n->level != LEVEL_CONTAINER || n->nr_shared);
}

/* What is to be set there when the pool is *pool. */
static struct cpuset wanted(const struct bounds_node *n, const struct cpuset *pool)
{
	bool own_alone = n->level == LEVEL_POD && n->nr_owners && !n->nr_shared;

	return own_alone ? n->owned : cpuset_or(*pool, &n->owned);
}

/* Counting */

static void sum_up_owned(struct bounds_node *n)
{
	n->owned = (struct cpuset){0};
	for (size_t i = 0; i < n->below.nr; i++)
		if (n->below.at[i]->nr_owners)
			n->owned = cpuset_or(n->owned, &n->below.at[i]->owned);
}

/* The container is of that kind now: an owner, one that shares, or neither. */
static void count(
	struct bounds *b, struct bounds_node *container, const struct cpuset *own, bool shares)
{
	const int owners = (own != NULL) - (int)container->nr_owners;
	const int shared = shares - (int)container->nr_shared;
	bool loses = container->nr_owners;

	container->owned = own ? *own : (struct cpuset){0};
	for (struct bounds_node *n = container; n; n = n->above) {
		n->nr_owners += (unsigned)owners;
		n->nr_shared += (unsigned)shared;
		if (n == container)
			continue;
		if (loses)
			sum_up_owned(n);
		else if (own)
			n->owned = cpuset_or(n->owned, own);
		keep_place(b, n);
	}
}

/* Paths */

static bool cut_last(char *path)
{
	char *last = strrchr(path, '/');

	*last = '\0';
	return last != path;
}

/* The nodes of a container, from the top; NULL: its cgroup is not known, or is not its own. */
static struct bounds_node *container_of(struct bounds *b, const struct request *req)
{
	char path[CGROUP_PATH_MAX], pod[CGROUP_PATH_MAX], qos[CGROUP_PATH_MAX];
	struct bounds_node *class = NULL, *above;

	if (!req->cgroup || cgroup_path(req->cgroup, path, sizeof path, NULL))
		return NULL;
	(void)text_copy(pod, sizeof pod, path);
	if (!cut_last(pod) || !cgroup_is_pods(pod, req->pod.uid))
		return get(b, path, LEVEL_CONTAINER, NULL, req->container_id);
	(void)text_copy(qos, sizeof qos, pod);
	bool has_class = cut_last(qos) && cgroup_is_class(qos);
	if (has_class && !(class = get(b, qos, LEVEL_QOS, NULL, "")))
		return NULL;
	bool was_idle = class && is_idle(class);
	above = get(b, pod, LEVEL_POD, class, req->pod.uid);
	if (above && was_idle) /* systemd may have cleared the set of one that ran empty */
		enter_set(b, class, &(const struct cpuset){0});
	if (!above && class)
		prune(b, class);
	return above ? get(b, path, LEVEL_CONTAINER, above, req->container_id) : NULL;
}

static void enter(struct bounds *b, const struct request *req, const struct cpuset *own,
	const struct cpuset *within)
{
	struct bounds_node *n = find_container(b, req->container_id);

	if (!n)
		n = container_of(b, req);
	if (!n)
		return;
	b->serial++;
	count(b, n, own, within);
	n->within = within ? *within : (struct cpuset){0};
	if (own) /* which it has from the runtime */
		enter_set(b, n, &(const struct cpuset){0});
}

void bounds_enter(struct bounds *b, const struct request *req, const struct cpuset *own)
{
	enter(b, req, own, own ? NULL : &(const struct cpuset){0});
}

void bounds_enter_in_part(struct bounds *b, const struct request *req, const struct cpuset *own,
	const struct cpuset *within)
{
	enter(b, req, own, within);
}

void bounds_give(struct bounds *b, const char *container_id, const struct cpuset *pool)
{
	struct bounds_node *n = find_container(b, container_id);

	const struct cpuset set = n ? wanted(n, pool) : *pool;

	if (n && n->nr_shared && needs_set(n))
		enter_set(b, n, &set);
}

void bounds_leave(struct bounds *b, const char *container_id)
{
	struct bounds_node *n = find_container(b, container_id);

	if (!n)
		return;
	struct bounds_node *above = n->above;
	b->serial++;
	count(b, n, NULL, false);
	take_out(b, n);
	prune(b, above);
}

static void forget(struct bounds *b, struct bounds_node *n)
{
	enter_set(b, n, &(const struct cpuset){0});
	end_idleness(b, n);
	prune(b, n);
}

void bounds_forget_pod(struct bounds *b, const char *pod_uid)
{
	for (size_t i = 0; i < b->idle.nr; i++)
		if (b->idle.at[i]->level == LEVEL_POD && text_equal(b->idle.at[i]->id, pod_uid)) {
			forget(b, b->idle.at[i]);
			return;
		}
}

/* What is to be */

bool bounds_shares(const struct bounds *b, const char *container_id, bool *exact)
{
	const struct bounds_node *n = find_container(b, container_id);

	*exact = n && n->nr_shared && needs_set(n);
	return n && n->nr_shared;
}

bool bounds_is_bounded(const struct bounds *b, const char *container_id, const struct cpuset *pool)
{
	const struct bounds_node *n = find_container(b, container_id);
	bool is = n && n->nr_shared;

	for (n = is ? n->above : NULL; n && is; n = n->above) {
		const struct cpuset want = wanted(n, pool);

		is = !needs_set(n) ||
		     (cpuset_within(&n->set, &want) && cpuset_intersects(&n->set, pool));
	}
	return is;
}

/* What a plan does first, and then. A set that nobody knows may have more than it is to have. */
enum phase { JOIN, LOSE, GAIN, NR_PHASES };

/* Whether the set, as it loses CPUs, keeps some of those that it is to have. Where it does not it
 * gets them first: it, or one below it that shares the pool, would have all that is above it, and
 * so CPUs that others have for themselves. One that nothing is above or below may have none in
 * common. */
static bool keeps_some(
	const struct bounds_node *n, const struct cpuset *want, const struct cpuset *pool)
{
	const struct cpuset kept = cpuset_and(n->set, want);

	if (!n->above && !n->below.nr)
		return true;
	return n->nr_shared ? cpuset_intersects(&kept, pool) : !cpuset_empty(&kept);
}

/* The sets that the cgroup has after each phase. */
static void phases_of(const struct bounds_node *n, const struct cpuset *want,
	const struct cpuset *pool, struct cpuset after[NR_PHASES])
{
	const bool is_known = !cpuset_empty(&n->set);

	after[JOIN] = n->set;
	if (is_known && !keeps_some(n, want, pool))
		after[JOIN] = cpuset_or(n->set, want);
	after[LOSE] = cpuset_and(after[JOIN], want);
	if (cpuset_empty(&after[LOSE]))
		after[LOSE] = *want;
	after[GAIN] = *want;
}

static void plan_node(struct bounds_node *n, enum phase phase, const struct cpuset *pool,
	const struct cpuset *all, struct bounds_writes *out)
{
	const bool exact = needs_set(n);
	const struct cpuset any = cpuset_empty(&n->within) ? *all : n->within;
	const struct cpuset want = exact ? wanted(n, pool) : any;
	struct cpuset after[NR_PHASES];

	if (n->level == LEVEL_CONTAINER && !n->nr_shared)
		return;
	if (!exact && cpuset_empty(&n->set)) /* it follows the one above */
		return;
	if (cpuset_equal(&n->set, &want))
		return;
	phases_of(n, &want, pool, after);
	if (!exact) /* until what is above it bounds it, it has what it had */
		after[JOIN] = after[LOSE] = n->set;
	if (!cpuset_equal(phase == JOIN ? &n->set : &after[phase - 1], &after[phase]))
		*vec_push(out) = (struct bounds_write){.node = n,
			.path = n->path,
			.cpus = after[phase],
			.is_container = n->level == LEVEL_CONTAINER,
			.is_idle = is_idle(n),
			.phase = phase};
}

/* Those below come first: when a cgroup gains CPUs they are bounded already. Where nobody below has
 * CPUs for itself and nothing was written nothing is to be done, however many they are. */
static void plan_from(struct bounds_node *n, enum phase phase, const struct cpuset *pool,
	const struct cpuset *all, struct bounds_writes *out)
{
	for (size_t i = n->below.nr_settled; (n->nr_owners || n->nr_set) && i < n->below.nr; i++)
		plan_from(n->below.at[i], phase, pool, all, out);
	plan_node(n, phase, pool, all, out);
}

void bounds_plan(const struct bounds *b, const struct cpuset *pool, const struct cpuset *all,
	struct bounds_writes *out)
{
	for (enum phase phase = JOIN; phase < NR_PHASES; phase++)
		for (size_t i = b->tops.nr_settled; i < b->tops.nr; i++)
			plan_from(b->tops.at[i], phase, pool, all, out);
}

void bounds_note_written(struct bounds *b, struct bounds_node *n, const struct cpuset *cpus)
{
	/* one that may have any set has none of ours any more */
	enter_set(b, n, needs_set(n) ? cpus : &(const struct cpuset){0});
}

bool bounds_note_found(struct bounds *b, struct bounds_node *n, const struct cpuset *cpus,
	const struct cpuset *all)
{
	bool is_free = cpuset_empty(&n->set) && !needs_set(n) && cpuset_within(all, cpus);

	if (is_free || cpuset_equal(cpus, &n->set))
		return false;
	b->serial++;
	enter_set(b, n, cpus);
	return true;
}

bool bounds_note_gone(struct bounds *b, struct bounds_node *n)
{
	bool idle = is_idle(n);

	if (idle)
		forget(b, n);
	return idle;
}

/* Reading */

struct bounds_node *bounds_next(const struct bounds *b, size_t *left)
{
	/* from the end: one that leaves has its place taken by one that was looked at already */
	for (size_t i = number_min(*left, b->all.nr); i-- > 0;) {
		struct bounds_node *n = b->all.at[i];

		*left = i;
		if (n->level != LEVEL_CONTAINER || !cpuset_empty(&n->set))
			return n;
	}
	*left = 0;
	return NULL;
}

const char *bounds_path(const struct bounds_node *n)
{
	return n->path;
}

uint64_t bounds_serial(const struct bounds *b)
{
	return b->serial;
}

size_t bounds_count(const struct bounds *b)
{
	return b->nr_set;
}
