/* A bound pod as a copy of its own. */
#include "sched_cluster_state.h"

#include <string.h>

/* Memory that is measured in a first pass, and given out in a second. */
struct room {
	char *at; /* NULL: measure */
	size_t used;
};

static void *room_take(struct room *r, size_t nr, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	size_t from = r->used;

	r->used += (nr * size + align - 1) / align * align;
	return r->at ? r->at + from : NULL;
}

static const void *room_copy(struct room *r, const void *from, size_t nr, size_t size)
{
	void *to = room_take(r, nr, size);

	if (to && nr)
		memcpy(to, from, nr * size);
	return to;
}

static const char *room_copy_text(struct room *r, const char *s)
{
	s = s ? s : "";
	return room_copy(r, s, strlen(s) + 1, 1);
}

static struct amounts room_copy_amounts(struct room *r, const struct amounts *a)
{
	return (struct amounts){room_copy(r, a->at, a->nr, sizeof *a->at), a->nr};
}

static void room_copy_pod(struct room *r, const struct sched_pod *pod)
{
	struct sched_pod *out = room_take(r, 1, sizeof *out);
	struct sched_container *container = room_take(r, pod->nr_containers, sizeof *container);
	struct sched_pod own = {
		.ns = room_copy_text(r, pod->ns),
		.name = room_copy_text(r, pod->name),
		.uid = room_copy_text(r, pod->uid),
		.qos = pod->qos,
		.container = container,
		.nr_containers = pod->nr_containers,
		.overhead = room_copy_amounts(r, &pod->overhead),
		.own_requests = room_copy_amounts(r, &pod->own_requests),
	};

	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];
		struct sched_container copied = {.name = room_copy_text(r, c->name),
			.kind = c->kind,
			.requests = room_copy_amounts(r, &c->requests)};

		if (container)
			container[i] = copied;
	}
	if (out)
		*out = own;
}

struct sched_pod *sched_pod_copy(const struct sched_pod *pod)
{
	struct room r = {0};

	room_copy_pod(&r, pod);
	r = (struct room){.at = xcalloc(1, r.used)};
	room_copy_pod(&r, pod);
	return (struct sched_pod *)(void *)r.at;
}

/* Whether it is the same pod still */

static bool amounts_are_alike(const struct amounts *a, const struct amounts *b)
{
	for (unsigned i = 0; i < a->nr; i++) {
		const struct quantity *q = amounts_find(b, a->at[i].resource);

		if (!q || quantity_compare(*q, a->at[i].q))
			return false;
	}
	return a->nr == b->nr;
}

bool sched_pod_asks_alike(const struct sched_pod *a, const struct sched_pod *b)
{
	if (a->nr_containers != b->nr_containers || a->qos != b->qos ||
		!amounts_are_alike(&a->overhead, &b->overhead) ||
		!amounts_are_alike(&a->own_requests, &b->own_requests))
		return false;
	for (unsigned i = 0; i < a->nr_containers; i++)
		if (a->container[i].kind != b->container[i].kind ||
			!amounts_are_alike(&a->container[i].requests, &b->container[i].requests))
			return false;
	return true;
}
