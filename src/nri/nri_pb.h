#ifndef NUMAFIT_NRI_NRI_PB_H
#define NUMAFIT_NRI_NRI_PB_H

#include <nri/session.h>
#include <nri/ttrpc_pb.h>

/* NRI's messages as a plugin reads and writes them. All that is decoded lives in the arena, and so
 * do the bytes of what is encoded. Decoders return 0, or -EBADMSG with text; encoders 0, or
 * -EILSEQ (a string is not UTF-8), -ENOMEM (too large) with text. */

#define NRI_PLUGIN_SERVICE  "nri.pkg.api.v1alpha1.Plugin"
#define NRI_RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"

static inline uint32_t nri_event_bit(enum nri_event e)
{
	return e ? UINT32_C(1) << (e - 1) : 0;
}

int nri_register_encode(
	const char *name, const char *index, struct arena *a, struct blob *out, struct err *e);

struct nri_configuration {
	const char *runtime_name, *runtime_version;
	int64_t registration_timeout_ms, request_timeout_ms; /* 0: not sent (NRI before 0.7) */
	const char *nri_version;                             /* "": not sent (NRI before 0.12) */
	const char *config; /* "" unless the runtime started the plugin and has one for it */
};
int nri_configuration_decode(
	struct blob payload, struct arena *a, struct nri_configuration *out, struct err *e);
/* policy NULL: none is asked for. */
int nri_configured_encode(uint32_t events, const struct nri_failure_policy *policy, struct arena *a,
	struct blob *out, struct err *e);

/* Whether more chunks follow the one in payload. */
int nri_chunk_decode(struct blob payload, bool *more, struct err *e);
/* The acknowledgement of a chunk that is not the last. */
int nri_chunk_encode(struct arena *a, struct blob *out, struct err *e);

/* Of a pod's annotations there are those alone that somebody reads (pod_spec_reads()), and the two
 * of ours that containers have (NRI_PLACEMENT_ANNOTATION, NRI_ALLOCATED_ANNOTATION). */

/* What runs, containers and pods by id, each once. A pod is read once, and its containers share
 * what it points to. odd: resources that struct request cannot hold (a huge page size that is
 * none), the first there are; its code is 0 when all is well. */
struct nri_running {
	struct request *containers;
	size_t nr;
	struct pod *pods;
	size_t nr_pods;
	struct err odd;
};
/* From all chunks of Synchronize, one behind the other: that is how protobuf joins repeated fields,
 * and a container may well stand before its pod. Containers that have stopped are left out. -E2BIG
 * when there are more than max. */
int nri_running_decode(
	struct blob payload, size_t max, struct arena *a, struct nri_running *out, struct err *e);

/* What any call about one pod or container says. Here as in nri_running a container shows at most
 * 4,096 device nodes and 1,024 CDI names, the first ones; and no nodes when it may use all devices
 * there are, for such a (privileged) one lists the host's, and has been given none of them. */
struct nri_subject {
	enum nri_event event; /* StateChange only */
	struct request req;   /* container_id "": about a pod */
	struct err odd;       /* as in nri_running */
};
int nri_subject_decode(
	struct blob payload, struct arena *a, struct nri_subject *out, struct err *e);
int nri_state_change_decode(
	struct blob payload, struct arena *a, struct nri_subject *out, struct err *e);

/* The answer to CreateContainer; and that to Synchronize, UpdateContainer, StopContainer, of which
 * only reply->updates counts: the form of our own call UpdateContainers, too. */
int nri_created_encode(
	const struct nri_reply *reply, struct arena *a, struct blob *out, struct err *e);
int nri_updates_encode(
	const struct nri_reply *reply, struct arena *a, struct blob *out, struct err *e);

#endif
