/* What each NUMA node has, and has left. Which pods that accounts for is in report_pods.c. */
#include <node/report_pods.h>

#include <numafit/cpus.h>
#include <numafit/leases.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

const char *decider_name(enum decider d)
{
	static const char *const names[] = {"none", "numafit", "kubelet"};

	return names[d];
}

/* Where all is gathered from. */
struct taking {
	const struct ledger *l;
	const struct settings *s;
	const struct topo *t;
	const struct report_facts *f;
	enum decider decider;
	struct arena *arena;
};

/* Policies */

static const enum decider decider_of_mode[] = {[MODE_OFF] = DECIDER_NOBODY,
	[MODE_MANAGE] = DECIDER_NUMAFIT,
	[MODE_SHADOW] = DECIDER_KUBELET,
	[MODE_RELEASE] = DECIDER_NOBODY};

static void report_policy(const struct taking *q, struct report *out)
{
	out->decider = q->decider;
	out->has_policy = q->decider != DECIDER_KUBELET || q->f->kubelet;
	if (q->decider == DECIDER_NUMAFIT)
		out->policy = (struct report_policy){
			.policy = q->s->topology_policy,
			.scope = q->s->topology_scope,
			.prefer_closest_numa_nodes = q->s->prefer_closest_numa_nodes,
			.max_allowable_numa_nodes = q->s->max_allowable_numa_nodes,
			.strategy = q->s->allocation_strategy,
			.cpu_manager = q->s->cpu_manager_policy,
		};
	else if (q->decider == DECIDER_KUBELET && q->f->kubelet)
		out->policy = *q->f->kubelet;
}

/* CPUs */

/* All CPUs but these, that a newcomer could be given: of a core that is kept in part nobody gets
 * the rest when all get whole cores. */
static struct cpuset cpus_all_but(const struct taking *q, const struct cpuset *kept)
{
	struct cpuset whole =
		q->s->cpu_options.full_pcpus_only ? cpus_whole_cores(q->t, kept) : *kept;

	return cpuset_minus(q->t->cpus, &whole);
}

/* How many the shared pool can give up. The kubelet's gives all. */
static unsigned pool_spare_cpus(const struct taking *q, const struct cpuset *promised)
{
	struct cpuset left = cpuset_minus(ledger_shareable_cpus(q->l), &ledger_view(q->l)->held);
	unsigned kept = settings_pool_minimum(q->s) + cpuset_count(promised);

	if (q->decider != DECIDER_NUMAFIT)
		return CPUSET_BITS;
	return cpuset_count(&left) > kept ? cpuset_count(&left) - kept : 0;
}

static void report_cpus(const struct taking *q, struct report_resource *cpu)
{
	struct cpuset promised = ledger_promised_cpus(q->l, NULL);
	struct cpuset free = cpuset_minus(ledger_free_cpus(q->l), &promised);
	struct cpuset kept = cpuset_minus(q->t->cpus, &free);
	struct cpuset all = cpus_all_but(q, &q->s->reserved_cpus), left = cpus_all_but(q, &kept);
	unsigned spare = pool_spare_cpus(q, &promised);
	bool booked = q->s->cpu_manager_policy == MANAGER_STATIC;

	cpu->name = "cpu";
	nodeset_each (n, q->t->nodes) {
		const struct cpuset *cpus = &q->t->node[n].cpus;
		unsigned allocatable = cpuset_count_and(cpus, &all);

		cpu->on[n] = (struct report_amounts){
			.capacity = cpuset_count(cpus),
			.allocatable = allocatable,
			.available = booked ? number_min(cpuset_count_and(cpus, &left), spare)
					    : allocatable,
		};
	}
}

/* Memory */

static int report_memory(const struct taking *q, unsigned kind, struct report_resource *r)
{
	char name[KIND_NAME_MAX];

	(void)topo_kind_name(q->t, kind, name, sizeof name);
	r->name = arena_strndup(q->arena, name, strlen(name));
	if (!r->name)
		return -ENOMEM;
	nodeset_each (n, q->t->nodes) {
		const struct memory_node *m = &ledger_view(q->l)->memory.node[n];
		bool in_group = m->assignments && !nodeset_equal(m->group, nodeset_of(n));

		r->on[n] = (struct report_amounts){
			.capacity = q->t->node[n].memory[kind],
			.allocatable = m->allocatable[kind],
			.available = q->s->memory_manager_policy != MANAGER_STATIC
					     ? m->allocatable[kind]
				     : in_group ? 0
						: m->free[kind],
		};
	}
	return 0;
}

/* Devices */

static int report_tokens(const struct taking *q, struct report_resource *r)
{
	struct tokenset leased, claimed;
	struct token_reports tokens;
	int rc = ledger_report_tokens(q->l, q->arena, &tokens);

	if (rc)
		return rc;
	r->name = TOKEN_RESOURCE;
	for (size_t i = 0; i < tokens.nr; i++) {
		int node = node_index(&q->t->ids, tokens.at[i].node_id);

		assert(node >= 0);
		r->on[node].capacity++;
		r->on[node].allocatable += tokens.at[i].healthy;
	}
	leases_tokens(ledger_view(q->l)->leases, &leased, &claimed);
	nodeset_each (n, q->t->nodes) /* leased ones are healthy */
		r->on[n].available = r->on[n].allocatable - cpuset_count(&leased.on[n]);
	return 0;
}

static void report_devices(
	const struct taking *q, const struct report_devices *d, struct report_resource *r)
{
	r->name = d->resource;
	nodeset_each (n, q->t->nodes)
		r->on[n] = (struct report_amounts){
			.capacity = d->allocatable[n],
			.allocatable = d->allocatable[n],
			.available = d->allocatable[n] - number_min(d->used[n], d->allocatable[n]),
		};
}

/* All */

static int by_resource_name(const void *a, const void *b)
{
	const struct report_resource *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool lists_resource(const struct report_resource *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (text_equal(list[i].name, name))
			return true;
	return false;
}

static int report_resources(const struct taking *q, struct report *out)
{
	enum { CPU_AND_TOKENS = 2 };
	size_t nr = 0, room = q->t->nr_kinds + q->f->nr_devices + CPU_AND_TOKENS;
	struct report_resource *list = arena_array(q->arena, room, sizeof *list);
	int rc = 0;

	if (!list)
		return -ENOMEM;
	report_cpus(q, &list[nr++]);
	for (unsigned k = 0; !rc && k < q->t->nr_kinds; k++)
		rc = report_memory(q, k, &list[nr++]);
	if (!rc && q->s->device_plugin)
		rc = report_tokens(q, &list[nr++]);
	if (rc)
		return rc;
	for (size_t i = 0; i < q->f->nr_devices; i++) /* the kubelet knows our tokens, too */
		if (!lists_resource(list, nr, q->f->devices[i].resource))
			report_devices(q, &q->f->devices[i], &list[nr++]);
	qsort(list, nr, sizeof *list, by_resource_name);
	out->resource = list;
	out->nr_resources = nr;
	return 0;
}

int report_take(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a)
{
	const struct taking q = {
		.l = l,
		.s = s,
		.t = ledger_view(l)->topo,
		.f = f,
		.decider = decider_of_mode[s->mode],
		.arena = a,
	};

	*out = (struct report){
		.node_name = f->node_name,
		.node_uid = f->node_uid,
		.topo = q.t,
		.generation = f->generation,
		.fingerprint_of = s->nrt_fingerprint,
	};
	report_policy(&q, out);
	int rc = report_resources(&q, out);
	return rc ? rc : report_take_pods(out, l, s, f, a);
}
