#ifndef NUMAFIT_SIM_SIM_KUBELET_STATE_H
#define NUMAFIT_SIM_SIM_KUBELET_STATE_H

#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>
#include <numafit-sim/device_table.h>
#include <numafit-sim/sim_kubelet.h>
#include <numafit/vec.h>

/* What the parts of the simulated kubelet share; for sim_kubelet_*.c alone. */

enum { SIM_KUBELET_CALL_MS = 10000, SIM_KUBELET_MESSAGE_MAX = 16 << 20 };

/* A unary call with its answer. Zeros are one that is not under way. */
struct plugin_call {
	struct rpc_call *call;
	void *reply;
	size_t len;
	/* text is NULL when it went well */
	void (*done)(void *ctx, struct blob reply, const char *text);
	void *ctx;
};

/* A plugin that has registered. */
struct plugin {
	struct sim_kubelet *k;
	unsigned row; /* of the table */
	char *socket;
	struct device_plugin_options options;
	struct rpc *registering; /* Register, until it is answered */
	struct plugin_call asked_options;
	struct rpc_call *watch;
	void *list; /* the devices that came during an admission */
	size_t list_len;
};

/* A watch of the Pods API, and what waits to be sent. */
struct watcher {
	struct rpc *r;
	bool busy;
	VEC(struct blob); /* owned */
};

/* The admission that is under way. */
struct admission {
	struct sim_pod *pod; /* NULL: none is */
	unsigned container, ask;
	bool aligned; /* affinity is that of the container */
	struct hint affinity;
	struct device_choice choice;
	struct arena arena; /* of the choice */
	void (*done)(void *ctx, const char *refusal);
	void *ctx;
};

/* The container that is being prepared. */
struct preparation {
	struct sim_pod *pod; /* NULL: none is */
	unsigned container;
	size_t at; /* of what the pod was given */
	void (*done)(void *ctx);
	void *ctx;
};

struct sim_kubelet {
	struct loop *loop;
	struct rpc_pump *pump;
	struct sim_kubelet_options o;
	struct sim_kubelet_events ev;
	struct rpc_server *server;
	struct acceptor *plugins_door, *resources_door, *pods_door;
	char *plugins_directory;
	struct device_table table;
	struct plugin *plugin[POD_DEVICES_MAX]; /* by row: the one that serves it now */
	bool of_plugin[POD_DEVICES_MAX];        /* a plugin has ever served it, */
	bool pre_start[POD_DEVICES_MAX];        /* and wants PreStartContainer */
	struct {
		VEC(struct plugin *);
	} plugins;
	struct {
		VEC(struct watcher *);
	} watchers;
	bool ends;         /* no plugin may register any more */
	uint64_t nr_lists; /* PodResources answers so far */
	struct plugin_call call;
	struct loop_timer *timer; /* of the preparation, or after an admission */
	struct loop_timer *youth;
	bool ready; /* youth is over */
	struct admission admission;
	struct preparation preparation;
	void *memory; /* for deciding */
};

/* Start a call of the plugin's; c is not under way. */
void plugin_call_start(struct plugin_call *c, const struct plugin *p, const char *method,
	struct blob request, unsigned timeout_ms,
	void (*done)(void *ctx, struct blob reply, const char *text), void *ctx);
/* The table of methods that plugins call, and the plugins' end. */
void sim_kubelet_serve_plugins(struct sim_kubelet *k);
void sim_kubelet_end_plugins(struct sim_kubelet *k);
/* Take over lists of devices that came meanwhile. */
void sim_kubelet_take_lists(struct sim_kubelet *k);

/* PodResources and the Pods API. */
void sim_kubelet_serve_pods(struct sim_kubelet *k);
void sim_kubelet_end_watches(struct sim_kubelet *k); /* they are over when closed() was called */
void sim_kubelet_drop_watches(struct sim_kubelet *k);
void sim_kubelet_send_event(
	struct sim_kubelet *k, enum pods_event_type type, const struct known_pod *pod);

/* What the timer fires. */
void sim_kubelet_timer(void *ctx);

/* Look whether all have come. */
void sim_kubelet_visited(struct sim_kubelet *k);

void sim_kubelet_broken(struct sim_kubelet *k, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
