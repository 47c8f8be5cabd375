#ifndef NUMAFIT_NUMAFITD_SERVICES_STATE_H
#define NUMAFIT_NUMAFITD_SERVICES_STATE_H

#include "services.h"
#include "daemon.h"

#include <kubelet/device_plugin.h>
#include <kubelet/pod_resources.h>
#include <kubelet/pods.h>
#include <kubelet/registration.h>
#include <kubelet/retry.h>

/* What the files that speak with the kubelet share. */

/* When the kubelet was asked for a pod's devices at the earliest that its answer has them: by uid,
 * of the pods that came last. Older ones are in every answer. */
struct question {
	uint64_t pod; /* hash of the uid */
	uint64_t number;
	uint64_t sandbox;   /* the same since its sandbox was started; 0: it was not seen */
};
enum { QUESTIONS = 256, SOCKET_NAME_MAX = 64, SOCKET_PATH_MAX = SETTINGS_PATH_MAX + 32 };

struct services {
	struct daemon *d;
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct device_plugin_handler tokens;
	struct registration_handler registering;
	struct pod_resources_handler holdings;
	struct pods_handler watching;
	struct device_plugin *plugin;
	struct loop_timer *changed; /* one look at the tokens for all changes of an event */
	bool will_look;
	struct registration *registration;
	struct pod_resources *pod_resources;
	struct pods *pods;
	struct retry *looking; /* podsAPI.enabled auto: for its socket, until it is there */
	const char *facts;     /* services_pod_facts(), as it was logged last */
	struct question asked[QUESTIONS];
	uint64_t forgotten; /* the latest of those whose place another pod has taken */
	char plugin_directory[SOCKET_PATH_MAX], endpoint[SOCKET_NAME_MAX];
	char pod_resources_socket[SOCKET_PATH_MAX], pods_socket[SOCKET_PATH_MAX];
};

/* tokens.c: numafit.io/cpu, between the kubelet's device plugin API and the engine. */
extern const struct device_plugin_handler tokens_handler;
/* The tokens that the kubelet shows as given out, and what no container takes is given up. */
void tokens_seen(struct services *v, const struct pods_held *held);

/* gather.c: the kubelet has the pod now: what it gives to it is asked for. */
void gather_pod_changed(void *ctx, const struct known_pod *pod);
/* Whether the kubelet's present answer is no older than the pod, or than its sandbox. */
enum since { SINCE_POD, SINCE_SANDBOX };
bool gather_is_answered(struct services *v, const char *pod_uid, enum since since);

#endif
