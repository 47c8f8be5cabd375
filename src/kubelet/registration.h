#ifndef NUMAFIT_KUBELET_REGISTRATION_H
#define NUMAFIT_KUBELET_REGISTRATION_H

#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>
#include <kubelet/registration_pb.h>

/* How a device plugin stays known to the kubelet of its node, whatever the kubelet does: is absent,
 * starts, dies, wipes its directory with our socket in it, or lets go of us. A state machine:
 *
 *   waiting      no kubelet.sock, no directory, or no socket of ours: watched and looked for
 *   connecting   the kubelet's socket refuses still, or the kubelet said no: tried again, later
 *                and later
 *   registering  Register is on its way; during it the kubelet calls us back
 *   expecting    the kubelet said yes and is to watch our devices now
 *   up           it watches
 *   ending       a registration is to be made anew: first the old streams end, and the kubelet is
 *                given time to notice, for two registrations of one resource at a time are not safe
 *                on any kubelet
 */
enum registration_state {
	REGISTRATION_WAITING,
	REGISTRATION_CONNECTING,
	REGISTRATION_REGISTERING,
	REGISTRATION_EXPECTING,
	REGISTRATION_UP,
	REGISTRATION_ENDING,
	NR_REGISTRATION_STATES
};
const char *registration_state_name(enum registration_state s); /* "waiting", "connecting", ... */

struct registration_handler {
	void *ctx;
	/* The old streams are to end (device_plugin_end_streams()); registration_watched(r, 0)
	 * says when they have. mandatory */
	void (*end_streams)(void *ctx);
	/* For the log, once for what lasts: "device-plugin-waiting" (the kubelet is not there),
	 * "-no-directory", "-no-socket" (ours cannot be bound: permission, path too long),
	 * "-refused" (the kubelet said no, with its words), "-not-watched" (it said yes and did not
	 * come), "-up", "-lost". bad: somebody must do something about it, and text says what.
	 * mandatory */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct registration_options {
	const char *directory; /* the kubelet's device-plugins; borrowed, as all strings here */
	const char *endpoint;  /* our socket's file name in it; unique for the process's start */
	const char *resource;
	struct device_plugin_options options;
	/* 0: 10 ms to 1 s between attempts while the kubelet's socket refuses, 15 s for Register,
	 * 10 s for its coming to watch, 1 s between an old stream's end and a new Register, and 1
	 * to 60 s after a refusal. For tests. */
	unsigned connect_min_ms, connect_max_ms, register_ms, watch_ms, ending_ms, refused_min_ms,
		refused_max_ms;
};

struct registration;
/* Start. s serves the plugin's methods already. */
struct registration *registration_new(struct loop *l, struct rpc_pump *p, struct rpc_server *s,
	const struct registration_options *o, const struct registration_handler *handler);
/* The number of device_plugin_handler.watched(). */
void registration_watched(struct registration *r, unsigned nr_streams);
enum registration_state registration_state(const struct registration *r);
/* Give up, and remove our socket; outside callbacks of the handler, before rpc_server_free(). NULL
 * is fine. */
void registration_close(struct registration *r);

#endif
