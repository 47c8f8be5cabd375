/* What one pod has of each NUMA node. */
#include <numafit/observed.h>

#include <numafit/text.h>

/* What a container has within its pod's is counted with the pod. */
static void observed_add(struct observed *out, const struct decision *d)
{
	if (d->within_pod)
		return;
	if (d->exclusive)
		out->cpus = cpuset_or(out->cpus, &d->cpus);
	for (unsigned i = 0; i < d->nr_blocks; i++) {
		const struct memory_block *b = &d->blocks[i];

		if (nodeset_count(b->nodes) == 1)
			out->bytes[b->kind][nodeset_next(b->nodes, 0)] += b->bytes;
	}
}

bool observed_next(struct observed *out, const struct ledger *l, size_t *i)
{
	const struct holding *h = ledger_at_by_pod(l, *i);

	while (h && holding_is_share(h)) /* its containers are of pods */
		h = ledger_at_by_pod(l, ++*i);
	if (!h)
		return false;
	*out = (struct observed){.topo = ledger_view(l)->topo, .pod = &h->request.pod};
	for (; h && text_equal(h->request.pod.uid, out->pod->uid); h = ledger_at_by_pod(l, ++*i))
		observed_add(out, &h->decision);
	return true;
}
