#ifndef NUMAFIT_KUBELET_DEVICE_PLUGIN_H
#define NUMAFIT_KUBELET_DEVICE_PLUGIN_H

#include <kubelet/device_plugin_pb.h>
#include <kubelet/grpc_server.h>

/* The kubelet's device plugin API (v1beta1) for one resource, as its plugin serves it: messages and
 * streams, no opinion of its own. What the devices are and which container gets them is the
 * handler's. One for the process's life, whatever becomes of the kubelet; several kubelet
 * connections may watch at a time. Calls are answered from memory, in the turn of the loop in which
 * they came: Allocate has no deadline, and the admission of every pod on the node waits for it. */
struct device_plugin;

struct device_plugin_handler {
	void *ctx;
	/* All devices, ascending by id, into *out, from *a. 0, or with text: nothing is sent, and
	 * the next device_plugin_changed() asks again. mandatory */
	int (*devices)(
		void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e);
	/* Which of the available devices a container should get: into out, which has room for all
	 * ids of the ask; returns how many. It cannot fail, that would end the pod. mandatory */
	size_t (*prefer)(
		void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out);
	/* A container is given these devices; *out is from *a. 0, or a negative errno with text,
	 * which ends the pod for good (its status shows the text). mandatory */
	int (*allocate)(void *ctx, const struct device_ids *ids, struct arena *a,
		struct allocate_answer *out, struct err *e);
	/* A container that has these devices is about to be created. 0, or a negative errno with
	 * text: the kubelet waits and asks again. NULL: the call is not wanted. */
	int (*pre_start)(void *ctx, const struct device_ids *ids, struct err *e);
	/* So many watch the list of devices now: 0 means that the kubelet sees none. optional */
	void (*watched)(void *ctx, unsigned nr_streams);
	/* For the log, once for what lasts: "device-plugin-no-list" (there is none that can be
	 * sent, and why). bad: somebody must do something about it. optional */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* Serve it on s, whose sockets are somebody else's. handler is borrowed. */
struct device_plugin *device_plugin_new(
	struct rpc_server *s, const struct device_plugin_handler *handler);
/* The devices may have changed: every watcher gets the list anew, unless it is what was sent
 * before. Any number of calls while a list is on its way make one more list. */
void device_plugin_changed(struct device_plugin *p);
/* End every stream, so that the kubelet lets go of us; watched(0) says when all are over. */
void device_plugin_end_streams(struct device_plugin *p);
/* After rpc_server_free(). NULL is fine. */
void device_plugin_free(struct device_plugin *p);

/* Options as GetDevicePluginOptions answers them, for the registration. */
struct device_plugin_options device_plugin_options(const struct device_plugin *p);

#endif
