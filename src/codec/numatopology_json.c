#include <codec/numatopology_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

/* Ids of cores and sockets; the kernel's are int. */
enum { ID_MAX = INT32_MAX };

static int numatopology_read_id(
	const json_t *v, const char *key, unsigned max, unsigned *out, struct err *e)
{
	const json_t *id = json_member(v, key);
	json_int_t n = json_integer_value(id);

	if (id && !json_is_integer(id))
		return err_add(e, json_want("an integer", id, e), "%s", key);
	if (n < 0 || n > max)
		return err_set(
			e, ERANGE, "%s: %lld is not within 0 and %u", key, (long long)n, max);
	*out = (unsigned)n; /* one that is not there is 0: exporters omit zeros */
	return 0;
}

static int numatopology_read_cpu(
	const char *name, const json_t *v, struct volcano_cpu *c, struct err *e)
{
	uint64_t cpu;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = text_u64(name, strlen(name), CPUSET_BITS - 1, &cpu, e);
	if (!rc)
		rc = numatopology_read_id(v, "numa", NODE_ID_MAX, &c->numa, e);
	if (!rc)
		rc = numatopology_read_id(v, "socket", ID_MAX, &c->socket, e);
	if (!rc)
		rc = numatopology_read_id(v, "core", ID_MAX, &c->core, e);
	if (!rc)
		c->cpu = (unsigned)cpu;
	return rc;
}

static int by_cpu(const void *a, const void *b)
{
	const struct volcano_cpu *x = a, *y = b;

	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

/* From the ids of NUMA nodes to dense indexes. */
static int number_nodes(struct volcano_cpu *cpu, unsigned nr, struct node_ids *ids, struct err *e)
{
	bool there[NODE_ID_MAX + 1] = {false};

	for (unsigned i = 0; i < nr; i++)
		there[cpu[i].numa] = true;
	*ids = (struct node_ids){0};
	for (unsigned id = 0; id <= NODE_ID_MAX; id++) {
		if (!there[id])
			continue;
		if (ids->nr == NODES_MAX)
			return err_set(e, ERANGE, "more than %d NUMA nodes", NODES_MAX);
		ids->id[ids->nr++] = (uint16_t)id;
	}
	for (unsigned i = 0; i < nr; i++)
		cpu[i].numa = (unsigned)node_index(ids, cpu[i].numa);
	return 0;
}

static int numatopology_read_cpus(
	json_t *detail, struct arena *a, struct volcano_node *out, struct err *e)
{
	struct volcano_cpu *cpu;
	unsigned nr = 0;

	if (detail && !json_is_object(detail))
		return json_want("an object", detail, e);
	cpu = arena_array(a, json_object_size(detail), sizeof *cpu);
	if (!cpu && json_object_size(detail))
		return err_set(e, ENOMEM, "too large");
	for (void *it = json_object_iter(detail); it; it = json_object_iter_next(detail, it)) {
		const char *name = json_object_iter_key(it);
		int rc = numatopology_read_cpu(name, json_object_iter_value(it), &cpu[nr++], e);

		if (rc)
			return err_add(e, rc, "%.64s", name);
	}
	if (nr)
		qsort(cpu, nr, sizeof *cpu, by_cpu);
	for (unsigned i = 1; i < nr; i++)
		if (cpu[i].cpu == cpu[i - 1].cpu)
			return err_set(e, EINVAL, "CPU %u is there twice", cpu[i].cpu);
	out->cpu = cpu;
	out->nr_cpus = nr;
	return number_nodes(cpu, nr, &out->ids, e);
}

static int numatopology_read_free(const json_t *numares, struct volcano_node *out, struct err *e)
{
	const json_t *cpu = json_member(numares, "cpu");
	const char *list;

	if (!cpu)
		return 0;
	int rc = json_member_string(cpu, "allocatable", &list, e);
	if (!rc && list && (rc = cpuset_parse(&out->free, list, strlen(list), e)) < 0)
		rc = err_add(e, rc, "allocatable");
	if (rc)
		return err_add(e, rc, "cpu");
	out->lists_cpus = true;
	return 0;
}

static int numatopology_read_reserved(
	const json_t *reserved, struct volcano_node *out, struct err *e)
{
	const json_t *cpu = json_member(reserved, "cpu");
	struct quantity q;

	if (!cpu)
		return 0;
	int rc = json_quantity(cpu, &q, e);
	if (!rc && (quantity_value(q) < 0 || quantity_value(q) > CPUSET_BITS))
		rc = err_set(e, ERANGE, "is not within 0 and %d CPUs", CPUSET_BITS);
	if (rc)
		return err_add(e, rc, "cpu");
	out->reserved = (unsigned)quantity_value(q);
	return 0;
}

static int numatopology_read_policies(
	const json_t *policies, struct volcano_node *out, struct err *e)
{
	int rc = json_member_string(policies, "CPUManagerPolicy", &out->cpu_manager_policy, e);

	return rc ? rc
		  : json_member_string(
			    policies, "TopologyManagerPolicy", &out->topology_manager_policy, e);
}

int numatopology_json_read(json_t *v, struct arena *a, struct volcano_node *out, struct err *e)
{
	const json_t *spec = json_member(v, "spec");
	const char *kind;

	*out = (struct volcano_node){0};
	if (!json_is_object(v))
		return json_want("a Numatopology", v, e);
	int rc = json_member_string(v, "kind", &kind, e);
	if (!rc && kind && !text_equal(kind, "Numatopology"))
		return err_set(e, EINVAL, "kind: should be Numatopology, is %.64s", kind);
	if (!rc && (rc = numatopology_read_policies(json_member(spec, "policies"), out, e)))
		rc = err_add(e, rc, "spec.policies");
	if (!rc && (rc = numatopology_read_cpus(json_member(spec, "cpuDetail"), a, out, e)))
		rc = err_add(e, rc, "spec.cpuDetail");
	if (!rc && (rc = numatopology_read_free(json_member(spec, "numares"), out, e)))
		rc = err_add(e, rc, "spec.numares");
	if (!rc && (rc = numatopology_read_reserved(json_member(spec, "resReserved"), out, e)))
		rc = err_add(e, rc, "spec.resReserved");
	return rc;
}
