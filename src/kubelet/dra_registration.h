#ifndef NUMAFIT_KUBELET_DRA_REGISTRATION_H
#define NUMAFIT_KUBELET_DRA_REGISTRATION_H

#include <kubelet/grpc_server.h>

/* How a DRA driver stays known to the kubelet of its node: two sockets, of which the kubelet looks
 * for one in its directory of plugins, once a second, asks it who it is (GetInfo) and says whether
 * it takes it (NotifyRegistrationStatus). Whatever becomes of the directories (missing, wiped,
 * replaced) and of the kubelet, both sockets are there as soon as that can be, the one to be found
 * last. A state machine:
 *
 *   waiting      a directory or a socket of ours is missing: watched and looked for
 *   offered      both sockets are there, and no kubelet has asked yet
 *   asked        a kubelet has asked, and not said yes or no
 *   refused      it said no, with its words
 *   up           it said yes
 */
enum dra_registration_state {
	DRA_REGISTRATION_WAITING,
	DRA_REGISTRATION_OFFERED,
	DRA_REGISTRATION_ASKED,
	DRA_REGISTRATION_REFUSED,
	DRA_REGISTRATION_UP,
	NR_DRA_REGISTRATION_STATES
};
const char *dra_registration_state_name(enum dra_registration_state s);

struct dra_registration_options { /* strings are copied */
	const char *registry; /* the kubelet's plugins_registry */
	/* The driver's own, plugins/numafit.io; made if its parent is there. */
	const char *directory;
	const char *driver;
	/* 0: 1 s between two looks at what is missing. For tests. */
	unsigned look_ms;
};

struct dra_registration_handler {
	void *ctx;
	/* For the log, once for what lasts: "claims-plugin-no-directory", "-no-socket" (with what
	 * to do), "-offered", "-refused" (with the kubelet's words), "-up". bad: somebody must do
	 * something about it. mandatory */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct dra_registration;
/* Start: one for a server. s serves the plugin's methods (dra_plugin_new()) already. handler is
 * copied. */
struct dra_registration *dra_registration_new(struct loop *l, struct rpc_server *s,
	const struct dra_registration_options *o, const struct dra_registration_handler *handler);
enum dra_registration_state dra_registration_state(const struct dra_registration *r);
/* Remove our sockets; outside callbacks of the handler, and right before rpc_server_free(): the
 * loop does not turn in between, as s goes on with the calls of those who are connected. NULL is
 * fine. */
void dra_registration_close(struct dra_registration *r);

#endif
