#include <questions/memory_play.h>

#include <errno.h>
#include <numafit/admit.h>
#include <numafit/text.h>
#include <string.h>

int memory_play_init(struct memory_play *g, const struct topo *t, const struct settings *s,
	size_t nr_pods, struct arena *a, struct err *e)
{
	*g = (struct memory_play){
		.t = t,
		.s = s,
		.pod = arena_array(a, nr_pods, sizeof *g->pod),
		.arena = a,
		.work = arena_alloc(a, ADMIT_ARENA_BYTES),
	};
	memory_init(&g->state, t, s);
	return (g->pod || !nr_pods) && g->work ? 0 : err_set(e, ENOMEM, "too large");
}

static struct memory_pod *play_find_pod(const struct memory_play *g, const char *uid)
{
	for (size_t i = 0; i < g->nr_pods; i++)
		if (text_equal(g->pod[i].ask->uid, uid))
			return &g->pod[i];
	return NULL;
}

/* Where the container stands in its pod; the number of them when it is none of them. */
static unsigned play_find_place(const struct pod *pod, const char *name)
{
	unsigned i = 0;

	while (i < pod->nr && !text_equal(pod->container[i].name, name))
		i++;
	return i;
}

/* Guaranteed pods without resources of their own. */
static bool is_managed(const struct pod *pod)
{
	return pod->qos == QOS_GUARANTEED && !pod->pod_level;
}

static void release_all(struct memory_play *g, struct memory_pod *p)
{
	for (unsigned i = 0; i < p->ask->nr; i++)
		memory_release(&g->state, p->container[i].blocks, p->container[i].nr_blocks);
}

static void play_take_over(struct memory_play *g, struct memory_pod *from, struct memory_pod *to)
{
	for (unsigned i = 0; i < to->ask->nr; i++) {
		unsigned old = play_find_place(from->ask, to->ask->container[i].name);

		if (old == from->ask->nr)
			continue;
		to->container[i].nr_blocks = from->container[old].nr_blocks;
		memcpy(to->container[i].blocks, from->container[old].blocks,
			sizeof to->container[i].blocks);
		from->container[old].nr_blocks = 0;
	}
	release_all(g, from);
}

static int play_read_demands(struct memory_play *g, struct memory_pod *p, struct err *e)
{
	for (unsigned i = 0; i < p->ask->nr; i++) {
		const struct ask *ask = &p->ask->container[i];
		struct memory_container *c = &p->container[i];

		c->init = ask->kind != CONTAINER_APP;
		c->restartable = ask->kind == CONTAINER_SIDECAR;
		if (!is_managed(p->ask))
			continue;
		int rc = memory_demand(g->t, ask->memory, ask->nr_memory, &c->demand, e);
		if (rc)
			return err_add(e, rc, "container %.64s", ask->name);
	}
	return 0;
}

int memory_play_enter(
	struct memory_play *g, const struct pod *ask, struct memory_pod **out, struct err *e)
{
	struct memory_pod p = {ask, arena_array(g->arena, ask->nr, sizeof *p.container)};
	struct memory_pod *slot = play_find_pod(g, ask->uid);

	if (!p.container && ask->nr)
		return err_set(e, ENOMEM, "too large");
	int rc = play_read_demands(g, &p, e);
	if (rc)
		return rc;
	if (slot)
		play_take_over(g, slot, &p);
	else
		slot = &g->pod[g->nr_pods++];
	*slot = p;
	*out = slot;
	return 0;
}

/* The kubelet keeps what may be taken over by pod, and drops other pods' when it notes some. */
static struct memory_reuse *reuse_of(struct memory_play *g, const char *uid)
{
	return g->reuse_uid && text_equal(g->reuse_uid, uid) ? &g->reuse : NULL;
}

static struct memory_reuse *own_reuse(struct memory_play *g, const char *uid)
{
	if (!reuse_of(g, uid))
		g->reuse = (struct memory_reuse){0};
	g->reuse_uid = uid;
	return &g->reuse;
}

/* holder: the container whose blocks are there already, or NULL. */
static void hints_for(struct memory_play *g, const struct memory_pod *p,
	const struct memory_demand *d, const struct memory_container *holder,
	struct memory_hints *h)
{
	struct budget endless = budget_of(0);
	struct arena work;

	h->nr = 0;
	h->nil = !is_managed(p->ask);
	if (h->nil)
		return;
	if (holder) {
		h->nr = memory_families_of_blocks(g->t, d, holder->blocks, holder->nr_blocks, h->f);
		h->nil = !h->nr;
		return;
	}
	arena_init_fixed(&work, g->work, ADMIT_ARENA_BYTES);
	h->nr = memory_families(
		g->t, &g->state, d, reuse_of(g, p->ask->uid), &h->rows, &endless, &work, h->f);
}

void memory_play_hints(
	struct memory_play *g, const struct memory_pod *p, unsigned i, struct memory_hints *h)
{
	const struct memory_container *c = &p->container[i];

	hints_for(g, p, &c->demand, c->nr_blocks ? c : NULL, h);
}

/* The kubelet looks through app containers before init containers. */
static const struct memory_container *first_holder(const struct memory_pod *p)
{
	const struct memory_container *init = NULL;

	for (unsigned i = 0; i < p->ask->nr; i++) {
		const struct memory_container *c = &p->container[i];

		if (c->nr_blocks && !c->init)
			return c;
		if (c->nr_blocks && !init)
			init = c;
	}
	return init;
}

void memory_play_pod_hints(
	struct memory_play *g, const struct memory_pod *p, struct memory_hints *h)
{
	struct memory_demand total;

	memory_pod_demand(p->container, p->ask->nr, &total);
	hints_for(g, p, &total, first_holder(p), h);
}

int memory_play_allocate(struct memory_play *g, struct memory_pod *p, unsigned i,
	const struct hint *affinity, struct err *e)
{
	struct memory_container *c = &p->container[i];
	const char *uid = p->ask->uid;
	struct budget endless = budget_of(0);
	struct arena work;

	if (!is_managed(p->ask) || (!c->demand.kinds && kubernetes_has(g->s->cpu_options.kubernetes,
								RULE_PASSES_OVER_NO_MEMORY)))
		return 0;
	if (c->nr_blocks) {
		memory_reuse_update(own_reuse(g, uid), c);
		return 0;
	}
	arena_init_fixed(&work, g->work, ADMIT_ARENA_BYTES);
	int nr = memory_allocate(g->t, &g->state, &c->demand, reuse_of(g, uid), affinity, &endless,
		&work, c->blocks, e);
	if (nr < 0)
		return nr;
	c->nr_blocks = (unsigned)nr;
	memory_hold_in_pod(&g->state, own_reuse(g, uid), p->container, i + 1);
	return 0;
}

void memory_play_start(struct memory_play *g, const char *uid, const char *name)
{
	struct memory_pod *p = play_find_pod(g, uid);

	if (p)
		memory_start(&g->state, p->container, play_find_place(p->ask, name) + 1);
}

void memory_play_remove(struct memory_play *g, const char *uid)
{
	struct memory_pod *p = play_find_pod(g, uid);

	if (!p)
		return;
	release_all(g, p);
	g->nr_pods--;
	memmove(p, p + 1, (size_t)(g->pod + g->nr_pods - p) * sizeof *p);
}
