#include <kubelet/pod_resources_server_pb.h>

#include <codec/pb_message.h>
#include <errno.h>
#include <podresources.pb-c.h>

static int too_much(struct err *e)
{
	return err_set(e, ENOMEM, "the pods hold too much for one message");
}

/* One device, on one node at most, and all that hangs from its row. */
struct device_form {
	Podresources__ContainerDevices row;
	Podresources__TopologyInfo topology;
	Podresources__NUMANode node, *nodes[1];
	char *ids[1];
};

static Podresources__ContainerDevices *fill_row(
	struct device_form *f, const struct held_device *from, const int64_t *node)
{
	podresources__container_devices__init(&f->row);
	f->ids[0] = pb_string(from->id);
	f->row.resource_name = pb_string(from->resource);
	f->row.device_ids = f->ids;
	f->row.n_device_ids = 1;
	if (!from->has_topology)
		return &f->row;
	podresources__topology_info__init(&f->topology);
	f->row.topology = &f->topology;
	if (!node)
		return &f->row;
	podresources__numanode__init(&f->node);
	f->node.id = *node;
	f->nodes[0] = &f->node;
	f->topology.nodes = f->nodes;
	f->topology.n_nodes = 1;
	return &f->row;
}

static size_t rows_of(const struct held_device *d)
{
	return d->nodes.nr ? d->nodes.nr : 1;
}

static int fill_held_devices(const struct held_device *from, size_t nr_from, struct arena *a,
	Podresources__ContainerDevices ***out, size_t *nr_out, struct err *e)
{
	size_t nr = 0, at = 0;

	for (size_t i = 0; i < nr_from; i++)
		nr += rows_of(&from[i]);
	struct device_form *forms = arena_array(a, nr, sizeof *forms);
	Podresources__ContainerDevices **list = arena_array(a, nr, sizeof(void *));
	if (!forms || !list)
		return too_much(e);
	for (size_t i = 0; i < nr_from; i++) {
		const struct held_device *d = &from[i];

		for (size_t k = 0; k < rows_of(d); k++, at++)
			list[at] = fill_row(&forms[at], d, d->nodes.nr ? &d->nodes.id[k] : NULL);
	}
	*out = list;
	*nr_out = nr;
	return 0;
}

static int fill_held_pod(
	const struct pod_held *from, struct arena *a, Podresources__PodResources *to, struct err *e)
{
	Podresources__ContainerResources *forms = arena_array(a, from->nr, sizeof *forms);
	Podresources__ContainerResources **list = arena_array(a, from->nr, sizeof(void *));
	int rc = 0;

	if (!forms || !list)
		return too_much(e);
	podresources__pod_resources__init(to);
	to->name = pb_string(from->name);
	to->namespace_ = pb_string(from->ns);
	to->containers = list;
	to->n_containers = from->nr;
	for (size_t i = 0; i < from->nr && !rc; i++) {
		const struct container_held *c = &from->container[i];

		podresources__container_resources__init(&forms[i]);
		forms[i].name = pb_string(c->name);
		rc = fill_held_devices(
			c->device, c->nr_devices, a, &forms[i].devices, &forms[i].n_devices, e);
		list[i] = &forms[i];
	}
	return rc;
}

int pod_resources_list_encode(
	const struct pods_held *held, struct arena *a, struct blob *out, struct err *e)
{
	Podresources__PodResources *forms = arena_array(a, held->nr, sizeof *forms);
	Podresources__PodResources **list = arena_array(a, held->nr, sizeof(void *));
	Podresources__ListPodResourcesResponse m;
	int rc = 0;

	if (!forms || !list)
		return too_much(e);
	for (size_t i = 0; i < held->nr && !rc; i++) {
		rc = fill_held_pod(&held->pod[i], a, &forms[i], e);
		list[i] = &forms[i];
	}
	if (rc)
		return rc;
	podresources__list_pod_resources_response__init(&m);
	m.pod_resources = list;
	m.n_pod_resources = held->nr;
	return pb_encode(&m.base, a, out, e);
}

int pod_resources_allocatable_encode(
	const struct devices_allocatable *all, struct arena *a, struct blob *out, struct err *e)
{
	Podresources__AllocatableResourcesResponse m;

	podresources__allocatable_resources_response__init(&m);
	int rc = fill_held_devices(all->device, all->nr, a, &m.devices, &m.n_devices, e);
	return rc ? rc : pb_encode(&m.base, a, out, e);
}
