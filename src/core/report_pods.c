/* Which pods the report accounts for, and where their containers are: both only mean something to a
 * scheduler that counts the same ones (scheduler-plugins pkg/noderesourcetopology/resourcerequests,
 * IsExclusiveForContainer). */
#include <core/report_pods.h>

#include <numafit/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Plain init containers are not looked at; what others ask for decides, not what they were given:
 * a scheduler knows nothing else. Who has tokens has asked for as many whole CPUs. */
static bool counts(const struct report_facts *f, const struct holding *h)
{
	const struct request ask = holding_request(h);
	struct nodeset nodes = {0};

	if (h->kind == CONTAINER_INIT)
		return false;
	if (f->has_devices && f->has_devices(f->ctx, h, &nodes))
		return true;
	return h->qos == QOS_GUARANTEED && (request_exclusive_cpus(&ask) || h->nr_memory);
}

/* Fingerprint */

static int by_pod(const void *a, const void *b)
{
	const struct holding *x = *(const struct holding *const *)a,
			     *y = *(const struct holding *const *)b;
	int rc = strcmp(x->pod_ns, y->pod_ns);

	return rc ? rc : strcmp(x->pod_name, y->pod_name);
}

/* Each pod's part once; its containers stand together in the list. */
static size_t fingerprints(const struct holding **list, size_t nr, uint64_t *out)
{
	size_t nr_pods = 0;

	for (size_t i = 0; i < nr; i++)
		if (!i || by_pod(&list[i - 1], &list[i]))
			out[nr_pods++] = fingerprint_pod(list[i]->pod_ns, list[i]->pod_name);
	return nr_pods;
}

/* The parts of the pods that count, into parts (room for each entry of the ledger); how many. */
static size_t parts_of(const struct ledger *l, const struct report_facts *f, bool all,
	const struct holding **list, uint64_t *parts)
{
	size_t nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++)
		if (all || counts(f, ledger_at(l, i)))
			list[nr++] = ledger_at(l, i);
	if (nr)
		qsort(list, nr, sizeof *list, by_pod);
	return fingerprints(list, nr, parts);
}

static int by_part(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Each part in hexadecimal digits, ascending, without anything in between. */
static const char *name_pods(uint64_t *parts, size_t nr, struct arena *a)
{
	size_t cap = nr * REPORT_POD_DIGITS + 1;
	char *text = arena_alloc(a, cap);
	struct text t;

	if (!text)
		return NULL;
	if (nr)
		qsort(parts, nr, sizeof *parts, by_part);
	text_init(&t, text, cap);
	for (size_t i = 0; i < nr; i++)
		text_add(&t, "%016llx", (unsigned long long)parts[i]);
	return text;
}

static int take_fingerprint(
	struct report *out, const struct ledger *l, const struct report_facts *f, struct arena *a)
{
	size_t room = ledger_count(l);
	const struct holding **list = arena_array(a, room, sizeof *list);
	uint64_t *parts = arena_array(a, room, sizeof *parts);

	if (!list || !parts)
		return -ENOMEM;
	out->pods = name_pods(parts, parts_of(l, f, false, list, parts), a);
	if (!out->pods)
		return -ENOMEM;
	if (out->fingerprint_of != PODS_FINGERPRINT_NONE)
		(void)fingerprint_text(out->fingerprint, parts,
			parts_of(l, f, out->fingerprint_of == PODS_FINGERPRINT_ALL, list, parts));
	return 0;
}

/* Placement */

/* Where the container's own CPUs, memory and devices are. */
static struct nodeset nodes_of(
	const struct topo *t, const struct report_facts *f, const struct holding *h)
{
	struct nodeset nodes = decision_nodes_used(t, &h->decision);

	if (f->has_devices)
		(void)f->has_devices(f->ctx, h, &nodes);
	return nodes;
}

static int take_placement(
	struct report *out, const struct ledger *l, const struct report_facts *f, struct arena *a)
{
	size_t nr = 0, room = ledger_count(l);
	struct placed_container *list = arena_array(a, room, sizeof *list);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++) {
		const struct holding *h = ledger_at(l, i);

		if (!counts(f, h))
			continue;
		struct nodeset nodes = nodes_of(out->topo, f, h);
		if (nodeset_count(nodes) != 1)
			return 0;
		list[nr++] = (struct placed_container){
			numaplacement_hash(h->pod_ns, h->pod_name, h->container_name),
			nodeset_next(nodes, 0)};
	}
	int rc = numaplacement_pack(list, nr, out->topo->ids.nr, a, &out->placement);
	out->has_placement = rc == 0;
	return rc == -EEXIST ? 0 : rc;
}

int report_take_pods(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a)
{
	int rc = take_fingerprint(out, l, f, a);

	if (!rc && s->nrt_placement)
		rc = take_placement(out, l, f, a);
	return rc;
}
