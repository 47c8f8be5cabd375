#ifndef NUMAFIT_KUBELET_DEVICE_MANAGER_PB_H
#define NUMAFIT_KUBELET_DEVICE_MANAGER_PB_H

#include <kubelet/registration_pb.h>

/* The messages of the device plugin API as a kubelet's device manager reads and writes them: the
 * other direction of device_plugin_pb.h and registration_pb.h, with the same rules. */

/* Register. -EPROTONOSUPPORT: another version of the API, in the kubelet's words. */
int registration_decode(
	struct blob message, struct arena *a, struct plugin_registration *out, struct err *e);
int device_plugin_options_decode(
	struct blob message, struct arena *a, struct device_plugin_options *out, struct err *e);
/* One message of ListAndWatch. -EBADMSG also for a device on several NUMA nodes, which struct
 * plugin_device has no place for. */
int device_list_decode(struct blob message, struct arena *a, struct plugin_device **out, size_t *nr,
	struct err *e);

/* Requests, for one container each, or as many as there are. */
int preferred_request_encode(
	const struct preferred_request *request, struct arena *a, struct blob *out, struct err *e);
int allocate_request_encode(
	const struct allocate_request *request, struct arena *a, struct blob *out, struct err *e);
int pre_start_request_encode(
	const struct device_ids *ids, struct arena *a, struct blob *out, struct err *e);

/* Answers, container by container. */
int preferred_response_decode(struct blob message, struct arena *a,
	const struct device_ids **container, size_t *nr, struct err *e);
int allocate_response_decode(struct blob message, struct arena *a,
	const struct allocate_answer **container, size_t *nr, struct err *e);

#endif
