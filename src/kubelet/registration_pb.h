#ifndef NUMAFIT_KUBELET_REGISTRATION_PB_H
#define NUMAFIT_KUBELET_REGISTRATION_PB_H

#include <kubelet/device_plugin_pb.h>

/* The one message by which a device plugin makes itself known to the kubelet; its answer is the
 * empty message. */

#define REGISTRATION_REGISTER_PATH "/v1beta1.Registration/Register"

struct plugin_registration {
	const char *endpoint; /* file name of the plugin's socket in the kubelet's directory */
	const char *resource; /* "example.com/name" */
	struct device_plugin_options options;
};

/* The request's bytes, in *a. 0; -EILSEQ: a string is not UTF-8; -ENOMEM. */
int registration_encode(
	const struct plugin_registration *r, struct arena *a, struct blob *out, struct err *e);

#endif
