/* Which pods the report accounts for, and where their containers are: both only mean something to a
 * scheduler that counts the same ones (scheduler-plugins pkg/noderesourcetopology/resourcerequests,
 * IsExclusiveForContainer). */
#include <node/report_pods.h>

#include <numafit/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Plain init containers are not looked at; what others ask for decides, not what they were given:
 * a scheduler knows nothing else. A container with tokens has asked for as many whole CPUs. */
static bool counts_for_schedulers(const struct report_facts *f, const struct holding *h)
{
	struct nodeset nodes = {0};

	if (h->request.ask.kind == CONTAINER_INIT)
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
		if (all || counts_for_schedulers(f, ledger_at(l, i)))
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

int report_take_pods(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a)
{
	int rc = report_fingerprint(out, l, f, a);

	if (!rc && s->nrt_placement)
		rc = report_placement(out, l, f, a);
	return rc;
}
