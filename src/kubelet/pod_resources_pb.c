#include <kubelet/pod_resources_pb.h>

#include <codec/pb_message.h>
#include <errno.h>
#include <numafit/request.h>
#include <numafit/text.h>
#include <podresources.pb-c.h>
#include <stdlib.h>
#include <string.h>

static int pod_resources_too_large(struct err *e)
{
	return err_set(e, EBADMSG, "a PodResources answer that is too large");
}

/* NUMA nodes */

static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static size_t sort_node_ids(int64_t *id, size_t nr)
{
	size_t kept = 0;

	if (nr)
		qsort(id, nr, sizeof *id, compare_ids);
	for (size_t i = 0; i < nr; i++)
		if (!kept || id[kept - 1] != id[i])
			id[kept++] = id[i];
	return kept;
}

static size_t nr_nodes_of(const Podresources__TopologyInfo *t)
{
	return t ? t->n_nodes : 0;
}

/* Appends the nodes of t to the nr at id. Returns their number then. */
static size_t append_nodes(int64_t *id, size_t nr, const Podresources__TopologyInfo *t)
{
	for (size_t i = 0; i < nr_nodes_of(t); i++)
		id[nr++] = t->nodes[i]->id;
	return nr;
}

static int take_held_cpus(const int64_t *id, size_t nr, struct cpuset *out, struct err *e)
{
	for (size_t i = 0; i < nr; i++) {
		if (id[i] < 0 || id[i] >= CPUSET_BITS)
			return err_set(e, ERANGE, "CPU %lld is not one of 0-%d", (long long)id[i],
				CPUSET_BITS - 1);
		cpuset_add(out, (unsigned)id[i]);
	}
	return 0;
}

static bool memory_kind(const char *type, uint64_t *page_bytes)
{
	static const char hugepages[] = "hugepages-";

	*page_bytes = 0;
	if (strncmp(type, hugepages, sizeof hugepages - 1) != 0)
		return text_equal(type, "memory");
	*page_bytes = page_bytes_from_name(type + sizeof hugepages - 1);
	return *page_bytes;
}

static int take_held_memory(Podresources__ContainerMemory **from, size_t nr, struct arena *a,
	const struct held_memory **out, size_t *nr_out, struct err *e)
{
	struct held_memory *list = arena_array(a, nr, sizeof *list);
	size_t taken = 0;

	if (!list)
		return pod_resources_too_large(e);
	for (size_t i = 0; i < nr; i++) {
		const Podresources__TopologyInfo *t = from[i]->topology;
		int64_t *id = arena_array(a, nr_nodes_of(t), sizeof *id);
		uint64_t page_bytes;

		if (!id)
			return pod_resources_too_large(e);
		if (memory_kind(from[i]->memory_type, &page_bytes))
			list[taken++] = (struct held_memory){page_bytes, from[i]->size,
				{id, sort_node_ids(id, append_nodes(id, 0, t))}};
	}
	*out = list;
	*nr_out = taken;
	return 0;
}

/* Devices: the kubelet's rows, sorted, then those of one device made one */

struct device_row {
	const char *resource, *id;
	const Podresources__TopologyInfo *topology;
};

static int compare_rows(const void *a, const void *b)
{
	const struct device_row *x = a, *y = b;
	int rc = strcmp(x->resource, y->resource);

	return rc ? rc : strcmp(x->id, y->id);
}

static struct device_row *list_rows(
	Podresources__ContainerDevices **from, size_t nr_from, struct arena *a, size_t *nr_rows)
{
	size_t room = 0, nr = 0;

	for (size_t i = 0; i < nr_from; i++)
		room += from[i]->n_device_ids;
	struct device_row *row = arena_array(a, room, sizeof *row);
	for (size_t i = 0; row && i < nr_from; i++)
		for (size_t k = 0; k < from[i]->n_device_ids; k++)
			row[nr++] = (struct device_row){
				from[i]->resource_name, from[i]->device_ids[k], from[i]->topology};
	if (nr)
		qsort(row, nr, sizeof *row, compare_rows);
	*nr_rows = nr;
	return row;
}

/* The device of the nr rows. */
static int take_held_device(
	const struct device_row *row, size_t nr, struct arena *a, struct held_device *out)
{
	size_t room = 0, nr_nodes = 0;
	bool has_topology = false;

	for (size_t i = 0; i < nr; i++)
		room += nr_nodes_of(row[i].topology);
	int64_t *id = arena_array(a, room, sizeof *id);
	if (!id)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		has_topology = has_topology || row[i].topology;
		nr_nodes = append_nodes(id, nr_nodes, row[i].topology);
	}
	*out = (struct held_device){
		row->resource, row->id, has_topology, {id, sort_node_ids(id, nr_nodes)}};
	return 0;
}

static int take_held_devices(Podresources__ContainerDevices **from, size_t nr_from, struct arena *a,
	const struct held_device **out, size_t *nr_out, struct err *e)
{
	size_t nr, same, taken = 0;
	struct device_row *row = list_rows(from, nr_from, a, &nr);
	struct held_device *list = arena_array(a, nr, sizeof *list);

	if (!row || !list)
		return pod_resources_too_large(e);
	for (size_t i = 0; i < nr; i += same) {
		for (same = 1; i + same < nr && compare_rows(&row[i], &row[i + same]) == 0;)
			same++;
		if (take_held_device(&row[i], same, a, &list[taken++]) < 0)
			return pod_resources_too_large(e);
	}
	*out = list;
	*nr_out = taken;
	return 0;
}

/* Claims */

static const char *const *take_cdi(const Podresources__ClaimResource *r, struct arena *a)
{
	const char **name = arena_array(a, r->n_cdi_devices, sizeof *name);

	for (size_t i = 0; name && i < r->n_cdi_devices; i++)
		name[i] = r->cdi_devices[i]->name;
	return name;
}

static int take_claim(const Podresources__DynamicResource *from, struct arena *a,
	struct held_claim *list, struct err *e)
{
	for (size_t i = 0; i < from->n_claim_resources; i++) {
		const Podresources__ClaimResource *r = from->claim_resources[i];

		list[i] = (struct held_claim){
			.ns = from->claim_namespace,
			.name = from->claim_name,
			.driver = r->driver_name,
			.pool = r->pool_name,
			.device = r->device_name,
			.share = r->share_id,
			.cdi = take_cdi(r, a),
			.nr_cdi = r->n_cdi_devices,
		};
		if (!list[i].cdi)
			return pod_resources_too_large(e);
	}
	return 0;
}

static int take_claims(const Podresources__ContainerResources *from, struct arena *a,
	struct container_held *to, struct err *e)
{
	size_t room = 0;

	for (size_t i = 0; i < from->n_dynamic_resources; i++)
		room += from->dynamic_resources[i]->n_claim_resources;
	struct held_claim *list = arena_array(a, room, sizeof *list);
	if (!list)
		return pod_resources_too_large(e);
	to->claim = list;
	for (size_t i = 0; i < from->n_dynamic_resources; i++) {
		const Podresources__DynamicResource *claim = from->dynamic_resources[i];

		if (take_claim(claim, a, &list[to->nr_claims], e) < 0)
			return -EBADMSG;
		to->nr_claims += claim->n_claim_resources;
	}
	return 0;
}

/* Containers and pods */

static int take_container_held(const Podresources__ContainerResources *from, struct arena *a,
	struct container_held *to, struct err *e)
{
	to->name = from->name;
	int rc = take_held_cpus(from->cpu_ids, from->n_cpu_ids, &to->cpus, e);
	if (!rc)
		rc = take_held_devices(
			from->devices, from->n_devices, a, &to->device, &to->nr_devices, e);
	if (!rc)
		rc = take_held_memory(
			from->memory, from->n_memory, a, &to->memory, &to->nr_memory, e);
	return rc ? rc : take_claims(from, a, to, e);
}

static int take_pod_held(
	const Podresources__PodResources *from, struct arena *a, struct pod_held *to, struct err *e)
{
	struct container_held *list = arena_array(a, from->n_containers, sizeof *list);

	if (!list)
		return pod_resources_too_large(e);
	*to = (struct pod_held){.ns = from->namespace_,
		.name = from->name,
		.container = list,
		.nr = from->n_containers};
	int rc = take_held_cpus(from->cpu_ids, from->n_cpu_ids, &to->cpus, e);
	if (!rc)
		rc = take_held_memory(
			from->memory, from->n_memory, a, &to->memory, &to->nr_memory, e);
	for (size_t i = 0; i < to->nr && !rc; i++) {
		rc = take_container_held(from->containers[i], a, &list[i], e);
		if (rc)
			rc = err_add(e, rc, "container %.64s", from->containers[i]->name);
	}
	return rc ? err_add(e, rc, "pod %.64s/%.64s", to->ns, to->name) : 0;
}

int pod_resources_list_decode(
	struct blob message, struct arena *a, struct pods_held *out, struct err *e)
{
	const Podresources__ListPodResourcesResponse *m =
		pb_decode(&podresources__list_pod_resources_response__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	struct pod_held *list = arena_array(a, m->n_pod_resources, sizeof *list);
	if (!list)
		return pod_resources_too_large(e);
	for (size_t i = 0; i < m->n_pod_resources; i++) {
		int rc = take_pod_held(m->pod_resources[i], a, &list[i], e);

		if (rc)
			return rc;
	}
	*out = (struct pods_held){list, m->n_pod_resources};
	return 0;
}

int pod_resources_allocatable_decode(
	struct blob message, struct arena *a, struct devices_allocatable *out, struct err *e)
{
	const Podresources__AllocatableResourcesResponse *m =
		pb_decode(&podresources__allocatable_resources_response__descriptor, message, a, e);

	return m ? take_held_devices(m->devices, m->n_devices, a, &out->device, &out->nr, e)
		 : -EBADMSG;
}
