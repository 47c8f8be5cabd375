#ifndef NUMAFIT_KUBELET_DEVICE_PLUGIN_PB_H
#define NUMAFIT_KUBELET_DEVICE_PLUGIN_PB_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/pod.h>

/* The messages of the kubelet's device plugin API as a plugin reads and writes them. All that is
 * decoded lives in the arena, and so do the bytes of what is encoded. Decoders return 0, or with
 * text -EBADMSG (no such message, or more than the arena holds) or -E2BIG (too many ids or
 * containers). Encoders return 0, or with text -EILSEQ (a string is not UTF-8: Go would end the
 * stream), -ENOMEM, -EMSGSIZE (more than the kubelet takes). */

#define DEVICE_PLUGIN_PATH(method) "/v1beta1.DevicePlugin/" method

enum {
	DEVICE_PLUGIN_MESSAGE_MAX = 4 << 20, /* the kubelet has grpc-go's default */
	DEVICE_PLUGIN_IDS_MAX = 10000,       /* in one list */
	DEVICE_PLUGIN_CONTAINERS_MAX = 512   /* in one request; the kubelet sends one */
};

/* GetDevicePluginOptions: which optional calls the plugin wants. */
struct device_plugin_options {
	bool pre_start, preferred_allocation;
};
int device_plugin_options_encode(const struct device_plugin_options *options, struct arena *a,
	struct blob *out, struct err *e);

/* ListAndWatch: a message has all devices. */
enum { DEVICE_WITHOUT_NODE = -1 };
struct plugin_device {
	const char *id;
	bool healthy;
	int node; /* kernel id, or DEVICE_WITHOUT_NODE: not said */
};
int device_list_encode(const struct plugin_device *device, size_t nr, struct arena *a,
	struct blob *out, struct err *e);

/* Ids in the order in which they came: the kubelet's lists have none. */
struct device_ids {
	const char *const *id;
	size_t nr;
};

/* GetPreferredAllocation: which size devices, the must_include among them. One for each container,
 * in the answer too. */
struct preferred_ask {
	struct device_ids available, must_include;
	size_t size; /* a negative one is 0 */
};
struct preferred_request {
	const struct preferred_ask *container;
	size_t nr;
};
int preferred_request_decode(
	struct blob message, struct arena *a, struct preferred_request *out, struct err *e);
int preferred_response_encode(const struct device_ids *container, size_t nr, struct arena *a,
	struct blob *out, struct err *e);

/* Allocate: the devices of each container, and what it is to get with them. */
struct allocate_request {
	const struct device_ids *container;
	size_t nr;
};
int allocate_request_decode(
	struct blob message, struct arena *a, struct allocate_request *out, struct err *e);

struct allocate_answer {
	const struct key_value *env, *annotation; /* keys once each */
	size_t nr_env, nr_annotations;
};
int allocate_response_encode(const struct allocate_answer *container, size_t nr, struct arena *a,
	struct blob *out, struct err *e);

/* PreStartContainer; the answer is the empty message. */
int pre_start_request_decode(
	struct blob message, struct arena *a, struct device_ids *out, struct err *e);

/* -ENOMEM with text: nr things of that kind are too many for one message; of both ends. */
int device_plugin_too_many(struct err *e, size_t nr, const char *what);

#endif
