/* The kubelet's view: whole pods come, start container by container, and go. */
#include <numafit/node.h>

#include <numafit/cpus.h>
#include <numafit/policy.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <string.h>

struct node {
	struct books books;
	struct {
		VEC(struct node_pod *);
	} pods; /* in order of admission */
};

static int node_reserve_cpus(struct books *b, struct err *e)
{
	const struct settings *s = b->s;
	int rc = 0;

	b->reserved = s->reserved_cpus;
	if (cpuset_empty(&b->reserved))
		rc = cpus_reserve(
			b->t, &s->cpu_options, settings_reserved_cpu_count(s), &b->reserved, e);
	if (rc)
		return err_add(e, rc, "new static policy error");
	b->shared = s->cpu_options.strict_cpu_reservation ? cpuset_minus(b->t->cpus, &b->reserved)
							  : b->t->cpus;
	return 0;
}

struct node *node_new(const struct topo *t, const struct settings *s,
	const struct device_resource *resources, unsigned nr_resources, struct err *e)
{
	if (nr_resources > POD_DEVICES_MAX)
		return NULL;
	struct node *n = xcalloc(1, sizeof *n);
	n->books = (struct books){
		.t = t,
		.s = s,
		.shared = t->cpus,
		.resource = resources,
		.nr_resources = nr_resources,
	};
	memory_init(&n->books.memory, t, s);
	for (unsigned r = 0; r < nr_resources; r++)
		n->books.held[r] = xcalloc(resources[r].nr, sizeof(bool));
	if (s->cpu_manager_policy == MANAGER_STATIC && node_reserve_cpus(&n->books, e)) {
		node_free(n);
		return NULL;
	}
	return n;
}

static void pod_free(struct node_pod *p)
{
	for (unsigned c = 0; c < p->grants.nr; c++) {
		free(p->name[c]);
		for (unsigned r = 0; r < POD_DEVICES_MAX; r++)
			free(p->grants.of[c].device[r]);
	}
	free(p->name);
	free(p->grants.of);
	free(p->grants.memory);
	free(p->uid);
	free(p);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->pods.nr; i++)
		pod_free(n->pods.at[i]);
	vec_fini(&n->pods);
	for (unsigned r = 0; r < n->books.nr_resources; r++)
		free(n->books.held[r]);
	free(n);
}

static void *node_copy_of(const void *from, size_t nr, size_t size)
{
	return from ? memcpy(xcalloc(nr, size), from, nr * size) : NULL;
}

/* The grants outlive the arena that they were made in. */
static struct node_pod *pod_new(
	const struct books *b, const struct pod *ask, const struct grants *g)
{
	struct node_pod *p = xcalloc(1, sizeof *p);

	p->uid = xstrdup(ask->uid);
	p->name = xcalloc(g->nr, sizeof *p->name);
	p->grants = *g;
	p->grants.of = node_copy_of(g->of, g->nr, sizeof *g->of);
	p->grants.memory = node_copy_of(g->memory, g->nr, sizeof *g->memory);
	for (unsigned c = 0; c < g->nr; c++) {
		p->name[c] = xstrdup(ask->container[c].name);
		for (unsigned r = 0; r < b->nr_resources; r++)
			p->grants.of[c].device[r] =
				node_copy_of(g->of[c].device[r], b->resource[r].nr, sizeof(bool));
	}
	return p;
}

int node_admit(struct node *n, const struct pod *pod, struct arena *a, struct refusal *why)
{
	struct budget b = budget_of(n->books.s->merge_visit_budget);
	struct grants g;
	int rc = admission(&n->books, pod, NULL, &b, a, &g, why);

	if (!rc)
		*vec_push(&n->pods) = pod_new(&n->books, pod, &g);
	else /* not the state from before: the kubelet's numbers follow from giving back */
		grants_return(&n->books, &g);
	return rc;
}

static size_t node_place_of(const struct node *n, const char *uid)
{
	size_t i = 0;

	while (i < n->pods.nr && !text_equal(n->pods.at[i]->uid, uid))
		i++;
	return i;
}

void node_start(struct node *n, const char *uid, const char *name)
{
	size_t i = node_place_of(n, uid);

	if (i == n->pods.nr)
		return;
	struct node_pod *p = n->pods.at[i];
	for (unsigned c = 0; c < p->grants.nr; c++)
		if (text_equal(p->name[c], name))
			if (!p->grants.as_one) /* else all is the pod's until it ends */
				memory_start(&n->books.memory, p->grants.memory, c + 1);
}

void node_remove(struct node *n, const char *uid)
{
	size_t i = node_place_of(n, uid);

	if (i == n->pods.nr)
		return;
	grants_return(&n->books, &n->pods.at[i]->grants);
	pod_free(n->pods.at[i]);
	vec_remove(&n->pods, i);
}

const struct node_pod *node_find(const struct node *n, const char *uid)
{
	size_t i = node_place_of(n, uid);

	return i < n->pods.nr ? n->pods.at[i] : NULL;
}

const struct books *node_books(const struct node *n)
{
	return &n->books;
}
