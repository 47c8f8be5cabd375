#ifndef NUMAFIT_NUMAFITD_GATHER_H
#define NUMAFIT_NUMAFITD_GATHER_H

#include <numafit/arena.h>
#include <numafit/engine.h>
#include <numafit/request.h>

struct daemon;
struct wishes_ignored;

/* The stage before a decision. What is known of the container or the pod beside what the
 * runtime says goes into the request, from *a: nobody is asked and waited for. */

enum { GATHER_BYTES = 4 << 20 }; /* for a pod */
/* Its devices, a scheduler's advice, and whose the tokens are that it comes with. */
void gather_container(struct daemon *d, struct request *req, struct arena *a);
/* Its containers with their devices and advice, or pod->apart: why they are decided one by one.
 * What the kubelet gives to it is asked for. Return as gather_wishes_of_pod(). */
const struct wishes_ignored *gather_pod(struct daemon *d, struct pod *pod, struct arena *a);
/* What their authors wish for (codec/wishes.h), in mode manage: of each container of a pod whose
 * containers are known. After schedulers' advice, which comes before a wish for NUMA nodes. Return
 * what is passed over, from *a: one for each container, and one more for what names no container of
 * the pod. NULL: the containers are not known, or the arena is full. */
const struct wishes_ignored *gather_wishes_of_pod(
	const struct daemon *d, struct pod *pod, struct arena *a);
/* Say in the log and by events what was passed over (NULL: nothing) of a pod that is held or refused
 * as one. Else gather_container() says it, of each container. */
void gather_say_ignored(
	const struct daemon *d, const struct pod *pod, const struct wishes_ignored *ignored);
/* The same for containers that run already: nothing is logged. */
void gather_running(struct daemon *d, struct request *containers, size_t nr, struct arena *a);
/* What the spec of a running container's pod and the kubelet say by now of the container, which the
 * ledger has, into *f, its texts from *a or those of *running; facts that neither says stay. */
void gather_facts(const struct daemon *d, const struct request *running, struct container_facts *f,
	struct arena *a);
/* Whether the spec of the pod is not known and may still become so: somebody is asked for pods, and
 * has not listed all of them. */
bool gather_awaits_facts(const struct daemon *d, const struct pod *pod);
/* Whether the devices of its claims are known, as gather_container() would find now. */
enum claims_known gather_claims(struct daemon *d, const struct request *req);
/* The same of a pod whose sandbox is being started, of which this is the first question or not; one
 * of which nothing is known has none. */
enum claims_known gather_claims_of_pod(struct daemon *d, const struct pod *pod, bool starts);
/* Whose the tokens are that the container comes with. What PodResources has not shown yet is asked
 * for; where that is off in the settings, what it shows is heeded all the same, but nobody waits
 * for it. */
enum token_owner gather_token_owner(struct daemon *d, const struct request *req);
/* Whether the pod is among those that the kubelet or the API server lists, and has not ended; true,
 * too, as long as neither has listed all. */
bool gather_is_listed(const struct daemon *d, const struct pod *pod);

#endif
