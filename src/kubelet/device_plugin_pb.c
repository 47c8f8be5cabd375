#include <kubelet/device_plugin_pb.h>

#include <codec/pb_message.h>
#include <deviceplugin.pb-c.h>
#include <errno.h>

/* The bytes of the message, when the kubelet takes that many. */
static int encode_for_kubelet(
	const ProtobufCMessage *m, struct arena *a, struct blob *out, struct err *e)
{
	struct blob bytes;
	int rc = pb_encode(m, a, &bytes, e);

	if (rc)
		return rc;
	if (bytes.len > DEVICE_PLUGIN_MESSAGE_MAX)
		return err_set(e, EMSGSIZE, "%s of %zu bytes, the kubelet takes %d",
			m->descriptor->short_name, bytes.len, DEVICE_PLUGIN_MESSAGE_MAX);
	*out = bytes;
	return 0;
}

int device_plugin_too_many(struct err *e, size_t nr, const char *what)
{
	return err_set(e, ENOMEM, "%zu %s are too many for one message", nr, what);
}

int device_plugin_options_encode(const struct device_plugin_options *options, struct arena *a,
	struct blob *out, struct err *e)
{
	Deviceplugin__DevicePluginOptions m;

	deviceplugin__device_plugin_options__init(&m);
	m.pre_start_required = options->pre_start;
	m.get_preferred_allocation_available = options->preferred_allocation;
	return encode_for_kubelet(&m.base, a, out, e);
}

/* Forms hold one message and all that hangs from it. */
struct device_form {
	Deviceplugin__Device device;
	Deviceplugin__TopologyInfo topology;
	Deviceplugin__NUMANode node, *nodes[1];
};

static Deviceplugin__Device *fill_device(struct device_form *f, const struct plugin_device *from)
{
	deviceplugin__device__init(&f->device);
	f->device.id = pb_string(from->id);
	f->device.health = pb_string(from->healthy ? "Healthy" : "Unhealthy");
	if (from->node == DEVICE_WITHOUT_NODE)
		return &f->device; /* an empty topology would hide it from PodResources */
	deviceplugin__topology_info__init(&f->topology);
	deviceplugin__numanode__init(&f->node);
	f->node.id = from->node;
	f->nodes[0] = &f->node;
	f->topology.nodes = f->nodes;
	f->topology.n_nodes = 1;
	f->device.topology = &f->topology;
	return &f->device;
}

int device_list_encode(const struct plugin_device *device, size_t nr, struct arena *a,
	struct blob *out, struct err *e)
{
	struct device_form *forms = arena_array(a, nr, sizeof *forms);
	Deviceplugin__Device **list = arena_array(a, nr, sizeof(void *));
	Deviceplugin__ListAndWatchResponse m;

	if (!forms || !list)
		return device_plugin_too_many(e, nr, "devices");
	for (size_t i = 0; i < nr; i++)
		list[i] = fill_device(&forms[i], &device[i]);
	deviceplugin__list_and_watch_response__init(&m);
	m.devices = list;
	m.n_devices = nr;
	return encode_for_kubelet(&m.base, a, out, e);
}

/* Requests */

static int take_device_ids(char **id, size_t nr, struct device_ids *out, struct err *e)
{
	if (nr > DEVICE_PLUGIN_IDS_MAX)
		return err_set(e, E2BIG, "%zu device ids, more than %d", nr, DEVICE_PLUGIN_IDS_MAX);
	*out = (struct device_ids){(const char *const *)id, nr};
	return 0;
}

/* Room in *a for nr containers of size bytes each, into *list. */
static int alloc_containers(void *list, size_t nr, size_t size, struct arena *a, struct err *e)
{
	if (nr > DEVICE_PLUGIN_CONTAINERS_MAX)
		return err_set(e, E2BIG, "a request for %zu containers, more than %d", nr,
			DEVICE_PLUGIN_CONTAINERS_MAX);
	void *room = arena_array(a, nr, size);
	if (!room)
		return err_set(e, EBADMSG, "a request for %zu containers is too large", nr);
	*(void **)list = room;
	return 0;
}

static int take_preferred(const Deviceplugin__ContainerPreferredAllocationRequest *from,
	struct preferred_ask *to, struct err *e)
{
	int rc = take_device_ids(
		from->available_deviceids, from->n_available_deviceids, &to->available, e);

	if (!rc)
		rc = take_device_ids(from->must_include_deviceids, from->n_must_include_deviceids,
			&to->must_include, e);
	to->size = from->allocation_size > 0 ? (size_t)from->allocation_size : 0;
	return rc;
}

int preferred_request_decode(
	struct blob message, struct arena *a, struct preferred_request *out, struct err *e)
{
	const Deviceplugin__PreferredAllocationRequest *m =
		pb_decode(&deviceplugin__preferred_allocation_request__descriptor, message, a, e);
	struct preferred_ask *list;

	if (!m)
		return -EBADMSG;
	int rc = alloc_containers(&list, m->n_container_requests, sizeof *list, a, e);
	for (size_t i = 0; i < m->n_container_requests && !rc; i++)
		rc = take_preferred(m->container_requests[i], &list[i], e);
	if (!rc)
		*out = (struct preferred_request){list, m->n_container_requests};
	return rc;
}

int allocate_request_decode(
	struct blob message, struct arena *a, struct allocate_request *out, struct err *e)
{
	const Deviceplugin__AllocateRequest *m =
		pb_decode(&deviceplugin__allocate_request__descriptor, message, a, e);
	struct device_ids *list;

	if (!m)
		return -EBADMSG;
	int rc = alloc_containers(&list, m->n_container_requests, sizeof *list, a, e);
	for (size_t i = 0; i < m->n_container_requests && !rc; i++)
		rc = take_device_ids(m->container_requests[i]->devices_ids,
			m->container_requests[i]->n_devices_ids, &list[i], e);
	if (!rc)
		*out = (struct allocate_request){list, m->n_container_requests};
	return rc;
}

int pre_start_request_decode(
	struct blob message, struct arena *a, struct device_ids *out, struct err *e)
{
	const Deviceplugin__PreStartContainerRequest *m =
		pb_decode(&deviceplugin__pre_start_container_request__descriptor, message, a, e);

	return m ? take_device_ids(m->devices_ids, m->n_devices_ids, out, e) : -EBADMSG;
}

/* Answers */

int preferred_response_encode(const struct device_ids *container, size_t nr, struct arena *a,
	struct blob *out, struct err *e)
{
	Deviceplugin__ContainerPreferredAllocationResponse *forms =
		arena_array(a, nr, sizeof *forms);
	Deviceplugin__ContainerPreferredAllocationResponse **list =
		arena_array(a, nr, sizeof(void *));
	Deviceplugin__PreferredAllocationResponse m;

	if (!forms || !list)
		return device_plugin_too_many(e, nr, "containers");
	for (size_t i = 0; i < nr; i++) {
		deviceplugin__container_preferred_allocation_response__init(&forms[i]);
		forms[i].deviceids = (char **)(uintptr_t)container[i].id; /* only read */
		forms[i].n_deviceids = container[i].nr;
		list[i] = &forms[i];
	}
	deviceplugin__preferred_allocation_response__init(&m);
	m.container_responses = list;
	m.n_container_responses = nr;
	return encode_for_kubelet(&m.base, a, out, e);
}

static Deviceplugin__KeyValue **fill_pairs(const struct key_value *from, size_t nr, struct arena *a)
{
	Deviceplugin__KeyValue *forms = arena_array(a, nr, sizeof *forms);
	Deviceplugin__KeyValue **list = arena_array(a, nr, sizeof(void *));

	if (!forms || !list)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		deviceplugin__key_value__init(&forms[i]);
		forms[i].key = pb_string(from[i].key);
		forms[i].value = pb_string(from[i].value);
		list[i] = &forms[i];
	}
	return list;
}

static Deviceplugin__ContainerAllocateResponse *fill_answer(
	const struct allocate_answer *from, struct arena *a)
{
	Deviceplugin__ContainerAllocateResponse *m = arena_alloc(a, sizeof *m);

	if (!m)
		return NULL;
	deviceplugin__container_allocate_response__init(m);
	m->envs = fill_pairs(from->env, from->nr_env, a);
	m->n_envs = from->nr_env;
	m->annotations = fill_pairs(from->annotation, from->nr_annotations, a);
	m->n_annotations = from->nr_annotations;
	return m->envs && m->annotations ? m : NULL;
}

int allocate_response_encode(const struct allocate_answer *container, size_t nr, struct arena *a,
	struct blob *out, struct err *e)
{
	Deviceplugin__ContainerAllocateResponse **list = arena_array(a, nr, sizeof(void *));
	Deviceplugin__AllocateResponse m;

	if (!list)
		return device_plugin_too_many(e, nr, "containers");
	for (size_t i = 0; i < nr; i++) {
		list[i] = fill_answer(&container[i], a);
		if (!list[i])
			return device_plugin_too_many(e, nr, "containers");
	}
	deviceplugin__allocate_response__init(&m);
	m.container_responses = list;
	m.n_container_responses = nr;
	return encode_for_kubelet(&m.base, a, out, e);
}
