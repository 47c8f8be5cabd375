/* A bound pod as a copy of its own. */
#include "sched_cluster_state.h"

#include <string.h>

/* Memory that is measured in a first pass, and given out in a second. */
struct room {
	char *at; /* NULL: measure */
	size_t used;
};

static void *give(struct room *r, size_t nr, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	size_t from = r->used;

	r->used += (nr * size + align - 1) / align * align;
	return r->at ? r->at + from : NULL;
}

static const void *copy(struct room *r, const void *from, size_t nr, size_t size)
{
	void *to = give(r, nr, size);

	if (to && nr)
		memcpy(to, from, nr * size);
	return to;
}

static const char *copy_text(struct room *r, const char *s)
{
	s = s ? s : "";
	return copy(r, s, strlen(s) + 1, 1);
}

static struct amounts copy_amounts(struct room *r, const struct amounts *a)
{
	return (struct amounts){copy(r, a->at, a->nr, sizeof *a->at), a->nr};
}

static void copy_pod(struct room *r, const struct sched_pod *pod)
{
	struct sched_pod *out = give(r, 1, sizeof *out);
	struct sched_container *container = give(r, pod->nr_containers, sizeof *container);
	struct sched_pod own = {
		.ns = copy_text(r, pod->ns),
		.name = copy_text(r, pod->name),
		.uid = copy_text(r, pod->uid),
		.qos = pod->qos,
		.container = container,
		.nr_containers = pod->nr_containers,
		.overhead = copy_amounts(r, &pod->overhead),
		.own_requests = copy_amounts(r, &pod->own_requests),
	};

	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];
		struct sched_container copied = {.name = copy_text(r, c->name),
			.kind = c->kind,
			.requests = copy_amounts(r, &c->requests)};

		if (container)
			container[i] = copied;
	}
	if (out)
		*out = own;
}

struct sched_pod *sched_pod_copy(const struct sched_pod *pod)
{
	struct room r = {0};

	copy_pod(&r, pod);
	r = (struct room){.at = xcalloc(1, r.used)};
	copy_pod(&r, pod);
	return (struct sched_pod *)(void *)r.at;
}

/* What it takes */

static bool is_init(const struct sched_pod *pod, const char *container)
{
	for (unsigned i = 0; container && i < pod->nr_containers; i++)
		if (!strcmp(pod->container[i].name, container))
			return pod->container[i].kind == CONTAINER_INIT;
	return false;
}

static struct sched_taken *entry(
	struct sched_taken *list, size_t *nr, const struct sched_taken *like)
{
	for (size_t i = 0; i < *nr; i++)
		if (list[i].zone_id == like->zone_id && list[i].resource == like->resource)
			return &list[i];
	list[*nr] = (struct sched_taken){.zone_id = like->zone_id, .resource = like->resource};
	return &list[(*nr)++];
}

/* Nobody takes from a zone what he does not ask for. */
static bool is_believed(const struct amounts *asked, const struct sched_taken *t)
{
	const struct quantity *q = amounts_find(asked, t->resource);

	return t->zone_id < ZONES_MAX && q && quantity_compare(t->q, quantity_of(0)) >= 0 &&
	       quantity_compare(t->q, *q) <= 0;
}

struct sched_taken *sched_taken_of(const struct sched_bound *b, size_t *nr)
{
	auto_free struct sched_taken *list = xcalloc(b->nr_taken + 1, sizeof *list);
	struct amounts asked = {0};
	auto_free struct amount *effective = nrt_effective_request(b->pod, &asked.nr);

	asked.at = effective;
	*nr = 0;
	for (size_t i = 0; i < b->nr_taken; i++) {
		struct sched_taken *t = entry(list, nr, &b->taken[i]);

		if (!is_init(b->pod, b->taken[i].container))
			t->q = quantity_add(t->q, b->taken[i].q);
	}
	for (size_t i = 0; i < b->nr_taken; i++) {
		struct sched_taken *t = entry(list, nr, &b->taken[i]);

		if (is_init(b->pod, b->taken[i].container) &&
			quantity_compare(b->taken[i].q, t->q) > 0)
			t->q = b->taken[i].q;
	}
	for (size_t i = 0; i < *nr; i++)
		if (!is_believed(&asked, &list[i]))
			*nr = 0;
	return *nr ? steal(list) : NULL;
}
