#include <numafit-sim/device_table.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>

static void flag_devices(
	const struct device_row *row, const struct device_ids *ids, bool value, bool *flags)
{
	for (size_t i = 0; i < ids->nr; i++) {
		int at = device_row_find(row, ids->id[i]);

		if (at >= 0)
			flags[at] = value;
	}
}

/* What the pod claims of that row: beside devices that any container holds, and with `reuse` those
 * of its own init containers that no later container has taken over. */
static int claim_of(const struct device_table *d, const struct sim_pod *p, unsigned row,
	uint64_t count, bool reuse, struct device_resource *r, struct arena *a,
	struct device_claim *out)
{
	bool *held = arena_array(a, d->row[row].nr, sizeof *held);
	bool *reusable = reuse ? arena_array(a, d->row[row].nr, sizeof *reusable) : NULL;

	if (!held || (reuse && !reusable))
		return -ENOMEM;
	for (size_t i = 0; i < d->nr; i++)
		for (size_t g = 0; g < d->at[i]->given.nr; g++)
			if (d->at[i]->given.at[g].row == row)
				flag_devices(&d->row[row], &d->at[i]->given.at[g].ids, true, held);
	for (size_t g = 0; g < p->given.nr && reuse; g++) {
		const struct given *of = &p->given.at[g];
		bool init = p->spec.pod.container[of->container].kind == CONTAINER_INIT;

		if (of->row == row)
			flag_devices(&d->row[row], &of->ids, init, reusable);
	}
	*r = (struct device_resource){d->row[row].name, d->row[row].nr, d->row[row].device};
	*out = (struct device_claim){
		.resource = r, .count = count, .held = held, .reusable = reusable};
	return 0;
}

int device_table_align(const struct device_table *d, const struct sim_pod *p, unsigned container,
	bool pod_scope, struct arena *a, struct policy_answer *out)
{
	const struct settings *s = d->settings;
	const struct pod *ask = &p->spec.pod;
	const struct hint_space space = {
		.all = d->topo->nodes,
		.distance = s->prefer_closest_numa_nodes ? d->topo->distance : NULL,
	};
	struct budget budget = budget_of(s->merge_visit_budget);
	struct family *f = arena_array(a, p->spec.nr_resources, sizeof *f);
	struct device_resource r;
	struct device_claim c;
	size_t nr = 0;
	int rc = f ? 0 : -ENOMEM;

	for (unsigned i = 0; i < p->spec.nr_resources && !rc; i++) {
		const struct pod_resource of = {.device = i};
		uint64_t count =
			pod_scope ? pod_needs_at_once(ask, of) : pod_needs(ask, container, of);
		if (!count)
			continue;
		rc = claim_of(d, p, p->row[i], count, !pod_scope, &r, a, &c);
		if (!rc)
			rc = devices_family(&c, d->topo->nodes, &budget, a, &f[nr++]);
	}
	if (!rc)
		rc = policy_merge_families(s->topology_policy, &space, f, nr, &budget, a, out);
	return rc < 0 ? rc : 0;
}

static size_t count_flags(const bool *set, unsigned nr)
{
	size_t sum = 0;

	for (unsigned i = 0; i < nr; i++)
		sum += set[i];
	return sum;
}

/* The kubelet takes reusable devices; then, when the rest can be of several, it asks: of those on
 * the affinity's nodes if they are more than needed, else, with these taken, of all. */
static void narrow_candidates(
	const struct device_claim *c, const struct hint *affinity, struct device_choice *out)
{
	size_t nr_aligned = 0, nr_taken, needed;

	for (unsigned i = 0; i < c->resource->nr; i++) {
		const struct device *at = &c->resource->device[i];
		bool available = at->healthy && !c->held[i];
		bool aligned = available && !affinity->any &&
			       !nodeset_empty(nodeset_and(at->nodes, affinity->mask));

		out->taken[i] = out->chosen[i] && c->reusable[i];
		out->candidates[i] = aligned;
		nr_aligned += aligned;
	}
	nr_taken = count_flags(out->taken, c->resource->nr);
	needed = out->size - nr_taken;
	out->open = needed && needed != nr_aligned;
	for (unsigned i = 0; i < c->resource->nr && needed > nr_aligned; i++) {
		bool available = c->resource->device[i].healthy && !c->held[i];

		out->taken[i] = out->taken[i] || out->candidates[i];
		out->candidates[i] = available && !out->taken[i];
	}
}

int device_table_choose(const struct device_table *d, const struct sim_pod *p, unsigned container,
	unsigned ask, const struct hint *affinity, struct arena *a, struct device_choice *out,
	struct err *e)
{
	const struct device_ask *what = &p->spec.pod.container[container].device[ask];
	unsigned row = p->row[what->resource];
	struct device_resource r;
	struct device_claim c;

	*out = (struct device_choice){
		.row = row,
		.size = what->count,
		.chosen = arena_array(a, d->row[row].nr, sizeof(bool)),
		.taken = arena_array(a, d->row[row].nr, sizeof(bool)),
		.candidates = arena_array(a, d->row[row].nr, sizeof(bool)),
	};
	if (!out->chosen || !out->taken || !out->candidates ||
		claim_of(d, p, row, what->count, true, &r, a, &c) < 0)
		return err_set(e, ENOMEM, "%s: too many devices", d->row[row].name);
	int rc = devices_allocate(&c, affinity, out->chosen, e);
	if (!rc)
		narrow_candidates(&c, affinity, out);
	return rc;
}

int device_table_prefer(const struct device_table *d, struct device_choice *c,
	const struct device_ids *answer, struct err *e)
{
	const struct device_row *row = &d->row[c->row];
	unsigned nr_taken = 0;

	if (answer->nr != c->size)
		return err_set(e, EINVAL, "GetPreferredAllocation: %zu devices for %zu", answer->nr,
			c->size);
	memset(c->chosen, 0, row->nr);
	for (size_t i = 0; i < answer->nr; i++) {
		int at = device_row_find(row, answer->id[i]);

		if (at < 0 || c->chosen[at] || !(c->taken[at] || c->candidates[at]))
			return err_set(e, EINVAL,
				"GetPreferredAllocation: %.64s is not to be had, or there twice",
				answer->id[i]);
		c->chosen[at] = true;
		nr_taken += c->taken[at];
	}
	if (nr_taken != count_flags(c->taken, row->nr))
		return err_set(e, EINVAL,
			"GetPreferredAllocation: of those it must have, %u of %zu", nr_taken,
			count_flags(c->taken, row->nr));
	return 0;
}

struct device_ids device_table_ids(const struct device_table *d, unsigned row, const bool *in,
	const bool *or_in, struct arena *a)
{
	const char **id = arena_array(a, d->row[row].nr, sizeof *id);
	struct device_ids ids = {id, 0};

	for (unsigned i = 0; i < d->row[row].nr && id; i++)
		if (in[i] || (or_in && or_in[i]))
			id[ids.nr++] = d->row[row].device[i].id;
	return ids;
}
