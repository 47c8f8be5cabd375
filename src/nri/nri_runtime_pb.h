#ifndef NUMAFIT_NRI_NRI_RUNTIME_PB_H
#define NUMAFIT_NRI_NRI_RUNTIME_PB_H

#include <nri/nri_pb.h>
#include <nri/runtime.h>

/* NRI's messages as a runtime reads and writes them: the other direction of nri_pb.h, with the
 * same rules. */

int nri_registration_decode(
	struct blob payload, struct arena *a, const char **name, const char **index, struct err *e);
int nri_configuration_encode(
	const struct nri_configuration *conf, struct arena *a, struct blob *out, struct err *e);
int nri_events_decode(struct blob payload, struct arena *a, uint32_t *events, struct err *e);

/* One chunk of Synchronize: the containers, and the pods of those whose with_pod is set. */
struct nri_chunk {
	const struct nri_container *containers;
	const bool *with_pod;
	size_t nr;
	bool more;
};
int nri_running_encode(
	const struct nri_chunk *chunk, struct arena *a, struct blob *out, struct err *e);
/* The request of the event's own method, or (state_change) the event as StateChange has it. */
int nri_subject_encode(enum nri_event event, bool state_change, const struct nri_container *c,
	struct arena *a, struct blob *out, struct err *e);

/* What the plugin answered to CreateContainer; to Synchronize; to UpdateContainer, StopContainer.
 */
int nri_created_decode(struct blob payload, struct arena *a, struct nri_answer *out, struct err *e);
int nri_synchronized_decode(
	struct blob payload, struct arena *a, struct nri_answer *out, bool *more, struct err *e);
int nri_updates_decode(struct blob payload, struct arena *a, struct nri_answer *out, struct err *e);

#endif
