/* What each NUMA node has, and has left, and which pods that accounts for. */
#include <numafit/report.h>

#include <numafit/leases.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

const char *const decider_words[NR_DECIDERS] = {
	[DECIDER_NOBODY] = "none",
	[DECIDER_NUMAFIT] = "numafit",
	[DECIDER_KUBELET] = "kubelet",
};

/* Where all is gathered from. */
struct taking {
	const struct ledger *l;
	const struct settings *s;
	const struct topo *t;
	const struct report_facts *f;
	enum decider decider;
	struct arena *arena;
	struct room room;
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

/* CPUs and memory */

static void report_cpus(const struct taking *q, struct report_resource *cpu)
{
	cpu->name = "cpu";
	nodeset_each (n, q->t->nodes)
		cpu->on[n] = (struct report_amounts){
			.capacity = cpuset_count(&q->t->node[n].cpus),
			.allocatable = q->room.cpus_all[n],
			.available = number_min(q->room.cpus[n], q->room.spare),
		};
}

static int report_memory(const struct taking *q, unsigned kind, struct report_resource *r)
{
	char name[KIND_NAME_MAX];

	(void)topo_kind_name(q->t, kind, name, sizeof name);
	r->name = arena_strndup(q->arena, name, strlen(name));
	if (!r->name)
		return -ENOMEM;
	nodeset_each (n, q->t->nodes) {
		r->on[n] = (struct report_amounts){
			.capacity = q->t->node[n].memory[kind],
			.allocatable = ledger_view(q->l)->memory.node[n].allocatable[kind],
			.available = q->room.memory[n][kind],
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

/* Pods: which ones the report accounts for, and where their containers are. Both only mean
 * something to a scheduler that counts the same ones (scheduler-plugins
 * pkg/noderesourcetopology/resourcerequests, IsExclusiveForContainer). */

/* Plain init containers are not looked at; what others ask for decides, not what they were given:
 * a scheduler knows nothing else. A container with tokens has asked for as many whole CPUs. */
static bool counts_for_schedulers(const struct report_facts *f, const struct holding *h)
{
	struct nodeset nodes = {0};

	if (h->request.ask.kind == CONTAINER_INIT || h->request.ask.whole_pod ||
		holding_is_share(h))
		return false;
	if (f->has_devices && f->has_devices(f->ctx, h, &nodes))
		return true;
	return h->request.pod.qos == QOS_GUARANTEED &&
	       (request_exclusive_cpus(&h->request) || h->request.ask.nr_memory);
}

/* Fingerprint */

static int by_pod(const void *a, const void *b)
{
	const struct holding *x = *(const struct holding *const *)a,
			     *y = *(const struct holding *const *)b;
	int rc = strcmp(x->request.pod.ns, y->request.pod.ns);

	return rc ? rc : strcmp(x->request.pod.name, y->request.pod.name);
}

/* The containers that count, by pod, into list (room for each entry of the ledger); how many. */
static size_t list_counted(
	const struct ledger *l, const struct report_facts *f, bool all, const struct holding **list)
{
	size_t nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++)
		if (!holding_is_share(ledger_at(l, i)) && /* no pod's */
			(all || counts_for_schedulers(f, ledger_at(l, i))))
			list[nr++] = ledger_at(l, i);
	if (nr)
		qsort(list, nr, sizeof *list, by_pod);
	return nr;
}

/* Names */

struct named_pod {
	uint64_t part;
	struct nodeset nodes;
};

static int by_pod_part(const void *a, const void *b)
{
	const struct named_pod *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

/* Where the container's own CPUs, memory and devices are. */
static struct nodeset nodes_of_holding(
	const struct topo *t, const struct report_facts *f, const struct holding *h)
{
	struct nodeset nodes = decision_nodes_used(t, &h->decision);

	if (f->has_devices)
		(void)f->has_devices(f->ctx, h, &nodes);
	return nodes;
}

/* Numbers in hexadecimal digits without anything in between. */
static const char *digits_of(const struct named_pod *pod, size_t nr, bool is_nodes, struct arena *a)
{
	size_t cap = nr * REPORT_POD_DIGITS + 1;
	char *text = arena_alloc(a, cap);
	struct text t;

	if (!text)
		return NULL;
	text_init(&t, text, cap);
	for (size_t i = 0; i < nr; i++)
		text_add(&t, "%016llx",
			(unsigned long long)(is_nodes ? pod[i].nodes.bits : pod[i].part));
	return text;
}

/* Of the containers that count, sorted by pod. */
static int name_pods(struct report *out, const struct report_facts *f,
	const struct holding *const *list, size_t nr, struct arena *a)
{
	struct named_pod *pod = arena_array(a, nr, sizeof *pod);
	size_t nr_pods = 0;

	if (!pod)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (!i || by_pod(&list[i - 1], &list[i]))
			pod[nr_pods++] =
				(struct named_pod){.part = fingerprint_pod(list[i]->request.pod.ns,
							   list[i]->request.pod.name)};
		pod[nr_pods - 1].nodes =
			nodeset_or(pod[nr_pods - 1].nodes, nodes_of_holding(out->topo, f, list[i]));
	}
	if (nr_pods)
		qsort(pod, nr_pods, sizeof *pod, by_pod_part);
	out->pods = digits_of(pod, nr_pods, false, a);
	out->pod_zones = digits_of(pod, nr_pods, true, a);
	return out->pods && out->pod_zones ? 0 : -ENOMEM;
}

static int report_fingerprint(
	struct report *out, const struct ledger *l, const struct report_facts *f, struct arena *a)
{
	size_t room = ledger_count(l);
	const struct holding **list = arena_array(a, room, sizeof *list);
	uint64_t *parts = arena_array(a, room, sizeof *parts);

	if (!list || !parts)
		return -ENOMEM;
	int rc = name_pods(out, f, list, list_counted(l, f, false, list), a);
	if (rc || out->fingerprint_of == PODS_FINGERPRINT_NONE)
		return rc;
	size_t nr = list_counted(l, f, out->fingerprint_of == PODS_FINGERPRINT_ALL, list),
	       nr_pods = 0;
	for (size_t i = 0; i < nr; i++) /* a pod's containers stand together in the list */
		if (!i || by_pod(&list[i - 1], &list[i]))
			parts[nr_pods++] =
				fingerprint_pod(list[i]->request.pod.ns, list[i]->request.pod.name);
	(void)fingerprint_text(out->fingerprint, parts, nr_pods);
	return 0;
}

/* Placement */

static int report_placement(
	struct report *out, const struct ledger *l, const struct report_facts *f, struct arena *a)
{
	size_t nr = 0, room = ledger_count(l);
	struct placed_container *list = arena_array(a, room, sizeof *list);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++) {
		const struct holding *h = ledger_at(l, i);

		if (!counts_for_schedulers(f, h))
			continue;
		struct nodeset nodes = nodes_of_holding(out->topo, f, h);
		if (nodeset_count(nodes) != 1)
			return 0;
		list[nr++] =
			(struct placed_container){numaplacement_hash(h->request.pod.ns,
							  h->request.pod.name, h->request.ask.name),
				nodeset_next(nodes, 0)};
	}
	int rc = numaplacement_pack(list, nr, out->topo->ids.nr, a, &out->placement);
	out->has_placement = rc == 0;
	return rc == -EEXIST ? 0 : rc;
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
	struct taking q = {
		.l = l,
		.s = s,
		.t = ledger_view(l)->topo,
		.f = f,
		.decider = decider_of_mode[s->mode],
		.arena = a,
	};

	room_take(&q.room, l, s);
	*out = (struct report){
		.node_name = f->node_name,
		.node_uid = f->node_uid,
		.topo = q.t,
		.generation = f->generation,
		.fragmentation = room_fragmentation(&q.room, q.t->ids.nr),
		.fingerprint_of = s->nrt_fingerprint,
	};
	report_policy(&q, out);
	int rc = report_resources(&q, out);
	if (!rc)
		rc = report_fingerprint(out, l, f, a);
	return rc || !s->nrt_placement ? rc : report_placement(out, l, f, a);
}
