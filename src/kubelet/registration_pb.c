#include <kubelet/registration_pb.h>

#include <codec/pb_message.h>
#include <deviceplugin.pb-c.h>

int registration_encode(
	const struct plugin_registration *r, struct arena *a, struct blob *out, struct err *e)
{
	Deviceplugin__DevicePluginOptions options;
	Deviceplugin__RegisterRequest m;

	deviceplugin__device_plugin_options__init(&options);
	options.pre_start_required = r->options.pre_start;
	options.get_preferred_allocation_available = r->options.preferred_allocation;
	deviceplugin__register_request__init(&m);
	m.version = pb_string("v1beta1"); /* the only one that kubelets know */
	m.endpoint = pb_string(r->endpoint);
	m.resource_name = pb_string(r->resource);
	m.options = &options;
	return pb_encode(&m.base, a, out, e);
}
