/* Pods that time alone may still change, the oldest first. */
#include "sched_cluster_state.h"

static void link_behind(struct known_age *a, struct tracked_pod *p, struct tracked_pod *older)
{
	struct tracked_pod **next = older ? &older->younger : &a->oldest;

	p->older = older;
	p->younger = *next;
	if (p->younger)
		p->younger->older = p;
	else
		a->youngest = p;
	*next = p;
	p->ages = true;
}

/* They come almost in order: who is new is sought a place for from the youngest on. */
void known_age_add(struct known_age *a, struct tracked_pod *p)
{
	struct tracked_pod *older = a->youngest;

	while (older && older->since_ms > p->since_ms)
		older = older->older;
	link_behind(a, p, older);
}

void known_age_remove(struct known_age *a, struct tracked_pod *p)
{
	if (!p->ages)
		return;
	*(p->older ? &p->older->younger : &a->oldest) = p->younger;
	*(p->younger ? &p->younger->older : &a->youngest) = p->older;
	p->ages = false;
}
