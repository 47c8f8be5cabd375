#include <kubelet/plugin_registration_pb.h>

#include <codec/pb_message.h>
#include <errno.h>
#include <pluginregistration.pb-c.h>

int plugin_info_encode(
	const struct plugin_info *info, struct arena *a, struct blob *out, struct err *e)
{
	Pluginregistration__PluginInfo m;

	pluginregistration__plugin_info__init(&m);
	m.type = pb_string(info->type);
	m.name = pb_string(info->name);
	m.endpoint = pb_string(info->endpoint);
	m.supported_versions = (char **)(uintptr_t)info->version; /* only read */
	m.n_supported_versions = info->nr_versions;
	return pb_encode(&m.base, a, out, e);
}

int plugin_status_decode(
	struct blob message, struct arena *a, struct plugin_status *out, struct err *e)
{
	const Pluginregistration__RegistrationStatus *m =
		pb_decode(&pluginregistration__registration_status__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	*out = (struct plugin_status){m->plugin_registered, m->error};
	return 0;
}
