#include <kubelet/device_manager_pb.h>

#include <codec/pb_message.h>
#include <deviceplugin.pb-c.h>
#include <errno.h>
#include <limits.h>
#include <numafit/text.h>

static int kubelet_message_too_large(struct err *e, const char *what)
{
	return err_set(e, EBADMSG, "%s that is too large", what);
}

static struct device_plugin_options plugin_options_of(const Deviceplugin__DevicePluginOptions *m)
{
	if (!m)
		return (struct device_plugin_options){0};
	return (struct device_plugin_options){
		.pre_start = m->pre_start_required,
		.preferred_allocation = m->get_preferred_allocation_available,
	};
}

int registration_decode(
	struct blob message, struct arena *a, struct plugin_registration *out, struct err *e)
{
	static const char version[] = "v1beta1";
	const Deviceplugin__RegisterRequest *m =
		pb_decode(&deviceplugin__register_request__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	if (!text_equal(m->version, version))
		return err_set(e, EPROTONOSUPPORT,
			"requested API version \"%.40s\" is not supported by kubelet. Supported "
			"version is \"%s\"",
			m->version, version);
	*out = (struct plugin_registration){
		m->endpoint, m->resource_name, plugin_options_of(m->options)};
	return 0;
}

int device_plugin_options_decode(
	struct blob message, struct arena *a, struct device_plugin_options *out, struct err *e)
{
	const Deviceplugin__DevicePluginOptions *m =
		pb_decode(&deviceplugin__device_plugin_options__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	*out = plugin_options_of(m);
	return 0;
}

static int take_plugin_device(
	const Deviceplugin__Device *from, struct plugin_device *to, struct err *e)
{
	const Deviceplugin__TopologyInfo *t = from->topology;

	*to = (struct plugin_device){
		from->id, text_equal(from->health, "Healthy"), DEVICE_WITHOUT_NODE};
	if (!t || !t->n_nodes)
		return 0;
	if (t->n_nodes > 1)
		return err_set(e, EBADMSG, "device %.64s is on %zu NUMA nodes, one was expected",
			from->id, t->n_nodes);
	if (t->nodes[0]->id < 0 || t->nodes[0]->id > INT_MAX)
		return err_set(e, EBADMSG, "device %.64s is on NUMA node %lld", from->id,
			(long long)t->nodes[0]->id);
	to->node = (int)t->nodes[0]->id;
	return 0;
}

int device_list_decode(
	struct blob message, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	const Deviceplugin__ListAndWatchResponse *m =
		pb_decode(&deviceplugin__list_and_watch_response__descriptor, message, a, e);
	struct plugin_device *list = m ? arena_array(a, m->n_devices, sizeof *list) : NULL;
	int rc = 0;

	if (!list)
		return m ? kubelet_message_too_large(e, "a list of devices") : -EBADMSG;
	for (size_t i = 0; i < m->n_devices && !rc; i++)
		rc = take_plugin_device(m->devices[i], &list[i], e);
	if (rc)
		return rc;
	*out = list;
	*nr = m->n_devices;
	return 0;
}

/* Requests */

/* protobuf-c's lists know no const; what is encoded is only read. */
static char **encoded_ids_of(const struct device_ids *ids)
{
	return (char **)(uintptr_t)ids->id;
}

static void fill_preferred_ask(
	Deviceplugin__ContainerPreferredAllocationRequest *m, const struct preferred_ask *from)
{
	deviceplugin__container_preferred_allocation_request__init(m);
	m->available_deviceids = encoded_ids_of(&from->available);
	m->n_available_deviceids = from->available.nr;
	m->must_include_deviceids = encoded_ids_of(&from->must_include);
	m->n_must_include_deviceids = from->must_include.nr;
	m->allocation_size = (int32_t)from->size;
}

int preferred_request_encode(
	const struct preferred_request *request, struct arena *a, struct blob *out, struct err *e)
{
	Deviceplugin__ContainerPreferredAllocationRequest *forms =
		arena_array(a, request->nr, sizeof *forms);
	Deviceplugin__ContainerPreferredAllocationRequest **list =
		arena_array(a, request->nr, sizeof(void *));
	Deviceplugin__PreferredAllocationRequest m;

	if (!forms || !list)
		return device_plugin_too_many(e, request->nr, "containers");
	for (size_t i = 0; i < request->nr; i++) {
		fill_preferred_ask(&forms[i], &request->container[i]);
		list[i] = &forms[i];
	}
	deviceplugin__preferred_allocation_request__init(&m);
	m.container_requests = list;
	m.n_container_requests = request->nr;
	return pb_encode(&m.base, a, out, e);
}

int allocate_request_encode(
	const struct allocate_request *request, struct arena *a, struct blob *out, struct err *e)
{
	Deviceplugin__ContainerAllocateRequest *forms = arena_array(a, request->nr, sizeof *forms);
	Deviceplugin__ContainerAllocateRequest **list = arena_array(a, request->nr, sizeof(void *));
	Deviceplugin__AllocateRequest m;

	if (!forms || !list)
		return device_plugin_too_many(e, request->nr, "containers");
	for (size_t i = 0; i < request->nr; i++) {
		deviceplugin__container_allocate_request__init(&forms[i]);
		forms[i].devices_ids = encoded_ids_of(&request->container[i]);
		forms[i].n_devices_ids = request->container[i].nr;
		list[i] = &forms[i];
	}
	deviceplugin__allocate_request__init(&m);
	m.container_requests = list;
	m.n_container_requests = request->nr;
	return pb_encode(&m.base, a, out, e);
}

int pre_start_request_encode(
	const struct device_ids *ids, struct arena *a, struct blob *out, struct err *e)
{
	Deviceplugin__PreStartContainerRequest m;

	deviceplugin__pre_start_container_request__init(&m);
	m.devices_ids = encoded_ids_of(ids);
	m.n_devices_ids = ids->nr;
	return pb_encode(&m.base, a, out, e);
}

/* Answers */

int preferred_response_decode(struct blob message, struct arena *a,
	const struct device_ids **container, size_t *nr, struct err *e)
{
	const Deviceplugin__PreferredAllocationResponse *m =
		pb_decode(&deviceplugin__preferred_allocation_response__descriptor, message, a, e);
	struct device_ids *list = m ? arena_array(a, m->n_container_responses, sizeof *list) : NULL;

	if (!list)
		return m ? kubelet_message_too_large(e, "an answer to GetPreferredAllocation")
			 : -EBADMSG;
	for (size_t i = 0; i < m->n_container_responses; i++)
		list[i] = (struct device_ids){
			(const char *const *)m->container_responses[i]->deviceids,
			m->container_responses[i]->n_deviceids};
	*container = list;
	*nr = m->n_container_responses;
	return 0;
}

static const struct key_value *take_key_values(
	Deviceplugin__KeyValue *const *from, size_t nr, struct arena *a)
{
	struct key_value *list = arena_array(a, nr, sizeof *list);

	for (size_t i = 0; list && i < nr; i++)
		list[i] = (struct key_value){from[i]->key, from[i]->value};
	return list;
}

int allocate_response_decode(struct blob message, struct arena *a,
	const struct allocate_answer **container, size_t *nr, struct err *e)
{
	const Deviceplugin__AllocateResponse *m =
		pb_decode(&deviceplugin__allocate_response__descriptor, message, a, e);
	struct allocate_answer *list =
		m ? arena_array(a, m->n_container_responses, sizeof *list) : NULL;

	if (!list)
		return m ? kubelet_message_too_large(e, "an answer to Allocate") : -EBADMSG;
	for (size_t i = 0; i < m->n_container_responses; i++) {
		const Deviceplugin__ContainerAllocateResponse *from = m->container_responses[i];

		list[i] = (struct allocate_answer){
			.env = take_key_values(from->envs, from->n_envs, a),
			.annotation = take_key_values(from->annotations, from->n_annotations, a),
			.nr_env = from->n_envs,
			.nr_annotations = from->n_annotations,
		};
		if (!list[i].env || !list[i].annotation)
			return kubelet_message_too_large(e, "an answer to Allocate");
	}
	*container = list;
	*nr = m->n_container_responses;
	return 0;
}
