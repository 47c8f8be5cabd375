#include <numafit/settings.h>

#include <numafit/text.h>

#include <errno.h>

/* What no key alone can tell. Of reservedMemory there is one struct for each type of each entry. */

enum { SHOWN = 64, TYPE_MAX = sizeof((struct reserved_memory *)NULL)->type };

static int check_reserved_cpus(const struct settings *s, const struct topo *t, struct err *e)
{
	struct cpuset missing = cpuset_minus(s->reserved_cpus, &t->cpus);
	char list[SHOWN];

	if (!cpuset_empty(&missing))
		return err_set(e, EINVAL, "reservedSystemCPUs: %s has no CPU %s", t->name,
			cpuset_format(&missing, list, sizeof list));
	if (cpuset_within(&t->cpus, &s->reserved_cpus))
		return err_set(e, EINVAL, "reservedSystemCPUs: no CPU is left for containers");
	return 0;
}

/* An entry against the others: it is whole, and says nothing twice (as the kubelet's
 * validation_reserved_memory.go). */
static int check_entry(const struct settings *s, const struct reserved_memory *r, struct err *e)
{
	if (!r->has_node)
		return err_set(e, EINVAL, "reservedMemory.%u: numaNode is missing", r->entry);
	if (!*r->type)
		return err_set(e, EINVAL, "reservedMemory.%u: limits is missing", r->entry);
	for (const struct reserved_memory *o = s->reserved_memory; o < r; o++)
		if (o->node_id == r->node_id && text_equal(o->type, r->type))
			return err_set(e, EINVAL,
				"reservedMemory.%u: %s of NUMA node %u is reserved in entry %u "
				"already",
				r->entry, r->type, r->node_id, o->entry);
	return 0;
}

/* The kind of memory that the type names on this machine, or -1. */
static int kind_of_type(const struct topo *t, const char *type)
{
	char name[TYPE_MAX + TEXT_SIZE_MAX];

	for (unsigned kind = 0; kind < t->nr_kinds; kind++)
		if (text_equal(topo_kind_name(t, kind, name, sizeof name), type))
			return (int)kind;
	return -1;
}

static int check_entry_fits(const struct reserved_memory *r, const struct topo *t, struct err *e)
{
	int node = node_index(&t->ids, r->node_id), kind = kind_of_type(t, r->type);
	char size[TEXT_SIZE_MAX], room[TEXT_SIZE_MAX];

	if (node < 0)
		return err_set(e, EINVAL,
			"reservedMemory.%u: the reserved memory configuration references a NUMA "
			"node %u "
			"that does not exist on this machine",
			r->entry, r->node_id);
	if (kind < 0)
		return err_set(
			e, EINVAL, "reservedMemory.%u: the machine has no %s", r->entry, r->type);
	uint64_t left = t->node[node].memory[kind];

	for (unsigned k = 1; !kind && k < t->nr_kinds; k++)
		left -= t->node[node].memory[k]; /* topo_seal(): huge pages are within the memory */
	if (r->bytes > left)
		return err_set(e, EINVAL,
			"reservedMemory.%u: %s of %s are reserved, NUMA node %u has %s", r->entry,
			text_size(size, r->bytes), r->type, r->node_id, text_size(room, left));
	return 0;
}

int settings_check(const struct settings *s, const struct topo *t, struct err *e)
{
	int rc = 0;

	if (s->topology_scope != SCOPE_CONTAINER)
		return err_set(
			e, EINVAL, "topologyManagerScope: pod is not there yet, only container is");
	for (unsigned i = 0; !rc && i < s->nr_reserved_memory; i++)
		rc = check_entry(s, &s->reserved_memory[i], e);
	for (unsigned i = 0; t && !rc && i < s->nr_reserved_memory; i++)
		rc = check_entry_fits(&s->reserved_memory[i], t, e);
	return rc || !t ? rc : check_reserved_cpus(s, t, e);
}
