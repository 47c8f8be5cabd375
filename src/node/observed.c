/* What one pod has of each NUMA node. */
#include <numafit/observed.h>

#include <numafit/text.h>

static void add_memory(struct observed *out, const struct decision *d)
{
	for (unsigned i = 0; i < d->nr_blocks; i++) {
		const struct memory_block *b = &d->blocks[i];

		if (nodeset_count(b->nodes) == 1)
			out->bytes[b->kind][nodeset_next(b->nodes, 0)] += b->bytes;
	}
}

/* What a container has within its pod's is counted with the pod. */
static void observed_add(struct observed *out, const struct decision *d)
{
	if (d->within_pod)
		return;
	if (d->exclusive)
		out->cpus = cpuset_or(out->cpus, &d->cpus);
	add_memory(out, d);
}

/* Whether any container of these entries runs on the share. */
static bool has_share(const struct ledger *l, size_t from, size_t to, const char *share)
{
	for (size_t i = from; i < to; i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (h->decision.within_claims && text_has_word(h->request.shares, share))
			return true;
	}
	return false;
}

/* Memory of claims is booked with their shares, which several of the pod's containers may have. */
static void add_claims(struct observed *out, const struct ledger *l, size_t from, size_t to)
{
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (holding_is_share(h) && has_share(l, from, to, h->request.container_id))
			add_memory(out, &h->decision);
	}
}

bool observed_next(struct observed *out, const struct ledger *l, size_t *i)
{
	const struct holding *h = ledger_at_by_pod(l, *i);

	while (h && holding_is_share(h)) /* its containers are of pods */
		h = ledger_at_by_pod(l, ++*i);
	if (!h)
		return false;
	const size_t first = *i;
	bool on_claims = false;

	*out = (struct observed){.topo = ledger_view(l)->topo, .pod = &h->request.pod};
	for (; h && text_equal(h->request.pod.uid, out->pod->uid); h = ledger_at_by_pod(l, ++*i)) {
		observed_add(out, &h->decision);
		on_claims = on_claims || h->decision.within_claims;
	}
	if (on_claims)
		add_claims(out, l, first, *i);
	return true;
}
