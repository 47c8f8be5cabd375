/* Pods that time alone may still change, the oldest first. */
#include "sched_cluster_state.h"

/* They come almost in order, so the place of a new one is sought from the youngest on. */
void known_age_add(struct known_age *a, struct tracked_pod *p)
{
	struct tracked_pod *older = a->youngest;

	while (older && older->since_ms > p->since_ms)
		older = older->older;
	struct tracked_pod **next = older ? &older->younger : &a->oldest;
	p->older = older;
	p->younger = *next;
	*(p->younger ? &p->younger->older : &a->youngest) = p;
	*next = p;
	p->ages = true;
}

void known_age_remove(struct known_age *a, struct tracked_pod *p)
{
	if (!p->ages)
		return;
	*(p->older ? &p->older->younger : &a->oldest) = p->younger;
	*(p->younger ? &p->younger->older : &a->youngest) = p->older;
	p->ages = false;
}

void sched_cluster_set_back(struct sched_cluster *c, int64_t now_ms)
{
	for (size_t i = 0; i < c->pods.cap; i++) {
		struct tracked_pod *p = (struct tracked_pod *)(void *)c->pods.slot[i];

		if (p && p->since_ms > now_ms)
			p->since_ms = now_ms;
	}
	for (size_t i = 0; i < c->nodes.cap; i++) {
		struct known_node *n = (struct known_node *)(void *)c->nodes.slot[i];

		if (n && n->report_ms > now_ms)
			n->report_ms = now_ms;
	}
}
