#include <questions/machine_json.h>

#include <codec/fields_json.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/request.h>
#include <numafit/text.h>
#include <string.h>

enum { DEVICES_MAX = 4096, CPU_FIELDS = 5 };

static int machine_json_read_hugepages(json_t *pages, unsigned node, struct topo *t, struct err *e)
{
	static const char prefix[] = "hugepages-";

	for (void *it = json_object_iter(pages); it; it = json_object_iter_next(pages, it)) {
		const char *type = json_object_iter_key(it);
		bool ours = strncmp(type, prefix, sizeof prefix - 1) == 0;
		uint64_t size = ours ? page_bytes_from_name(type + sizeof prefix - 1) : 0, nr;
		int rc = size ? json_number(json_object_iter_value(it), INT64_MAX / size, &nr, e)
			      : err_set(e, EINVAL, "no size of huge pages");

		if (!rc)
			rc = topo_set_memory(t, node, size, nr * size, e);
		if (rc)
			return err_add(e, rc, "hugepages: %.64s", type);
	}
	return 0;
}

static int machine_json_read_node(json_t *v, struct topo *t, struct err *e)
{
	static const char *const keys[] = {"id", "memory", "hugepages", "device_memory", NULL};
	uint64_t id, bytes = 0;
	int rc = json_only_keys(v, keys, e);

	if (!rc)
		rc = json_number(json_object_get(v, "id"), NODE_ID_MAX, &id, e);
	if (!rc && json_object_get(v, "memory"))
		rc = json_number(json_object_get(v, "memory"), INT64_MAX, &bytes, e);
	int node = rc ? rc : topo_add_node(t, (unsigned)id, e);
	if (node < 0)
		return node;
	rc = topo_set_memory(t, (unsigned)node, 0, bytes, e);
	if (!rc && json_is_true(json_object_get(v, "device_memory")))
		rc = topo_set_device_memory(t, (unsigned)node, e);
	return rc ? rc
		  : machine_json_read_hugepages(
			    json_object_get(v, "hugepages"), (unsigned)node, t, e);
}

/* [cpu, core, socket, numa, uncore] */
static int machine_json_read_cpu(json_t *row, struct topo *t, struct err *e)
{
	uint64_t n[CPU_FIELDS];

	if (json_array_size(row) != CPU_FIELDS)
		return json_want("a list of 5 numbers", row, e);
	for (unsigned i = 0; i < CPU_FIELDS; i++) {
		int rc = json_number(json_array_get(row, i), NODE_ID_MAX, &n[i], e);

		if (rc)
			return rc;
	}
	int node = node_index(&t->ids, (unsigned)n[3]);
	if (node < 0)
		return err_set(e, EINVAL, "there is no NUMA node %u", (unsigned)n[3]);
	return topo_add_cpu(t, (unsigned)n[0], (unsigned)node, (unsigned)n[1], (unsigned)n[2],
		(unsigned)n[4], e);
}

static int machine_json_read_distances(json_t *table, struct topo *t, struct err *e)
{
	for (void *it = json_object_iter(table); it; it = json_object_iter_next(table, it)) {
		const char *id = json_object_iter_key(it);
		json_t *row = json_object_iter_value(it);
		uint64_t from, d;
		int rc = text_u64(id, strlen(id), NODE_ID_MAX, &from, e);
		int node = rc ? -1 : node_index(&t->ids, (unsigned)from);

		if (node < 0 || json_array_size(row) != t->ids.nr)
			return err_set(e, EINVAL,
				"distances: \"%.16s\" should be a NUMA node with one number for "
				"each",
				id);
		for (unsigned to = 0; to < t->ids.nr && !rc; to++) {
			rc = json_number(json_array_get(row, to), DISTANCE_MAX, &d, e);
			if (!rc)
				rc = topo_set_distance(t, (unsigned)node, to, (unsigned)d, e);
		}
		if (rc)
			return err_add(e, rc, "distances: %.16s", id);
	}
	return 0;
}

static int each(const json_t *list, int (*read)(json_t *v, struct topo *t, struct err *e),
	const char *what, struct topo *t, struct err *e)
{
	if (!json_is_array(list))
		return err_add(e, json_want("a list", list, e), "%s", what);
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = read(json_array_get(list, i), t, e);

		if (rc)
			return err_add(e, rc, "%s: element %zu", what, i);
	}
	return 0;
}

/* Devices */

static int machine_json_read_device_nodes(
	const json_t *nodes, const struct topo *t, struct device *d, struct err *e)
{
	uint64_t id;

	d->has_topology = json_is_array(nodes);
	if (!d->has_topology && !json_is_null(nodes))
		return json_want("a list of NUMA nodes or null", nodes, e);
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int rc = json_number(json_array_get(nodes, i), NODE_ID_MAX, &id, e);
		int node = rc ? -1 : node_index(&t->ids, (unsigned)id);

		if (rc)
			return rc;
		d->placed = true;
		if (node >= 0)
			d->nodes = nodeset_or(d->nodes, nodeset_of((unsigned)node));
	}
	return 0;
}

static int device_by_id(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->id, ((const struct device *)b)->id);
}

static int machine_json_read_resource(const char *name, const json_t *list, const struct topo *t,
	struct arena *a, struct device_resource *r, struct err *e)
{
	size_t nr = json_array_size(list);
	struct device *d = nr <= DEVICES_MAX ? arena_array(a, nr, sizeof *d) : NULL;

	if (!json_is_array(list))
		return json_want("a list", list, e);
	if (!d)
		return err_set(e, ENOMEM, "too many devices");
	for (size_t i = 0; i < nr; i++) {
		const json_t *v = json_array_get(list, i);

		d[i].id = json_string_value(json_object_get(v, "id"));
		d[i].healthy = json_is_true(json_object_get(v, "healthy"));
		if (!d[i].id)
			return json_want("an object with an id", v, e);
		int rc = machine_json_read_device_nodes(json_object_get(v, "nodes"), t, &d[i], e);
		if (rc)
			return err_add(e, rc, "%.64s: nodes", d[i].id);
	}
	qsort(d, nr, sizeof *d, device_by_id);
	*r = (struct device_resource){.name = name, .nr = (unsigned)nr, .device = d};
	return 0;
}

static int device_resource_by_name(const void *a, const void *b)
{
	return strcmp(((const struct device_resource *)a)->name,
		((const struct device_resource *)b)->name);
}

static int machine_json_read_devices(
	json_t *devices, struct arena *a, struct machine *m, struct err *e)
{
	for (void *it = json_object_iter(devices); it; it = json_object_iter_next(devices, it)) {
		const char *name = json_object_iter_key(it);

		if (m->nr_resources == POD_DEVICES_MAX)
			return err_set(
				e, ERANGE, "devices: more than %d resources", POD_DEVICES_MAX);
		int rc = machine_json_read_resource(name, json_object_iter_value(it), &m->topo, a,
			&m->resource[m->nr_resources++], e);
		if (rc)
			return err_add(e, rc, "devices: %.64s", name);
	}
	qsort(m->resource, m->nr_resources, sizeof *m->resource, device_resource_by_name);
	return 0;
}

/* "4-7": CPUs that are among the others. */
static int machine_json_read_isolated(const json_t *v, struct topo *t, struct err *e)
{
	const char *list = json_string_value(v);
	char unknown[CPUSET_TEXT_MAX];

	if (!v)
		return 0;
	if (!list)
		return err_add(e, json_want("a list of CPUs, such as \"4-7\"", v, e), "isolated");
	int rc = cpuset_parse(&t->isolated, list, strlen(list), e);
	if (rc)
		return err_add(e, rc, "isolated");
	const struct cpuset others = cpuset_minus(t->isolated, &t->cpus);
	return cpuset_empty(&others) ? 0
				     : err_set(e, EINVAL, "isolated: there is no CPU %s",
					       cpuset_format(&others, unknown, sizeof unknown));
}

int machine_json_read(
	json_t *v, machine_loader *load, struct arena *a, struct machine *m, struct err *e)
{
	static const char *const keys[] = {"nodes", "distances", "cpus_fields", "cpus", "num_cores",
		"num_sockets", "devices", "isolated", NULL};
	const char *name = json_string_value(v);
	struct topo *t = &m->topo;

	if (name && load)
		return load(name, t, e);
	if (!json_is_object(v))
		return json_want(load ? "an object or a machine's name" : "an object", v, e);
	int rc = json_only_keys(v, keys, e);
	if (rc)
		return rc;
	topo_init(t, "machine");
	t->made_up = true;
	rc = each(json_object_get(v, "nodes"), machine_json_read_node, "nodes", t, e);
	if (!rc)
		rc = each(json_object_get(v, "cpus"), machine_json_read_cpu, "cpus", t, e);
	if (!rc)
		rc = machine_json_read_distances(json_object_get(v, "distances"), t, e);
	if (!rc)
		rc = machine_json_read_isolated(json_object_get(v, "isolated"), t, e);
	if (!rc)
		rc = topo_seal(t, e);
	return rc ? rc : machine_json_read_devices(json_object_get(v, "devices"), a, m, e);
}
