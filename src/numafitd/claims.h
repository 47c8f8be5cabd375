#ifndef NUMAFIT_NUMAFITD_CLAIMS_H
#define NUMAFIT_NUMAFITD_CLAIMS_H

#include <codec/status_json.h>
#include <kubelet/pod_resources_pb.h>
#include <nri/session.h>
#include <numafit/arena.h>
#include <numafit/request.h>

struct api;
struct daemon;

/* Devices that containers have through claims (DRA): where they are, by their CDI names and, with
 * deviceClaims.enabled, by the ResourceSlices of this node. d->claims is NULL without it. */
struct claims;

void claims_start(struct daemon *d);
/* From here on the slices are watched: there is an API server. */
void claims_watch(struct daemon *d, struct api *a);
/* Before the API server's client ends. */
void claims_stop(struct daemon *d);
/* For `numafit status` and the metrics; false: there are none. */
bool claims_status(const struct daemon *d, struct status_claims *out);

/* What the kernel of this machine knows of the request's device nodes and CDI names
 * (device_node.h). */
const struct device_resource *claims_located(
	const struct daemon *d, const struct request *req, struct arena *a);
/* What the container has through claims and is on a NUMA node, into out, which has room for so
 * many: a resource for each driver, and "devices" for what its CDI names alone say. Returns their
 * number. *known becomes CLAIMS_NOT_PUBLISHED when nothing says where one is, and stays else. */
size_t claims_add(const struct daemon *d, const struct container_held *held,
	struct device_resource *out, size_t room, struct arena *a, enum claims_known *known);

/* Of struct nri_handler: with deviceClaims.wait the answer waits until the claims' devices are
 * known of the pod that starts, or of the container that is created. */
bool claims_wait(void *ctx, enum nri_event event, const struct request *req);
/* PodResources has answered: what waits is looked at again, in the loop's next turn. */
void claims_news(struct daemon *d);
/* The daemon ends: what waits is answered now, with what is known, and nothing waits any more.
 * Before the runtime's connection ends. */
void claims_let_go(struct daemon *d);
/* A container was decided. */
void claims_count(struct daemon *d, const struct request *req);

#endif
