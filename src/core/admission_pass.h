#ifndef NUMAFIT_CORE_ADMISSION_PASS_H
#define NUMAFIT_CORE_ADMISSION_PASS_H

#include <numafit/admission.h>
#include <numafit/cores.h>

/* What admission.c, which leads a pod through its admission and gives its containers what they ask
 * for, and admission_merge.c, which finds the NUMA nodes for it, share. */

/* One pass of a pod through the admission; with schedulers' advice there are two. */
struct way_in {
	struct books *b;
	const struct pod *pod;
	struct grants *out;
	struct budget *budget; /* of the container that is dealt with, or of the pod */
	struct arena *arena;
	enum topology_policy policy;
	bool pins_memory, by_pod;
	unsigned place;      /* the container that is dealt with; 0 while the whole pod is */
	bool whole;          /* the pod is aligned as a whole: no container is dealt with yet */
	bool leaves_nothing; /* found when its hints were collected: of what the pod has as one
				nothing is left for those that share */
	struct cpuset reusable_cpus;
	struct memory_reuse reuse;
	bool *reusable[POD_DEVICES_MAX];
	bool follow;         /* schedulers' advice; else it is only judged, and overruled where it
				would change anything */
	struct refusal *why; /* of this pass */
	struct refusal *by_advice; /* the first container that its own advice refuses */
};

/* Refuse the container that is dealt with, or the pod. -EPERM, for the caller to return. */
int admission_refuse(struct way_in *w, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same when the arena is too small. */
int admission_refuse_for_room(struct way_in *w);

/* Of CPUs that are free those that a container with such wishes may be given. */
struct cpuset admission_usable_cpus(
	const struct way_in *w, const struct wishes *wishes, const struct cpuset *free_cpus);
/* Cores for containers that come after this one, run beside it, and that the pod's affinity is for
 * as well. Zeros where each container is aligned by itself. */
struct core_need admission_later_cores(const struct way_in *w, unsigned place);
/* A hint may name CPUs, as Koordinator's does. The container that is dealt with, or the pod as one,
 * gets these in place of *got where the same rules take them out of the same free CPUs, and they
 * take no more cores and caches from others: a hint gives nothing that the request did not. */
void admission_prefer_hinted_cpus(const struct way_in *w, const struct cpu_options *options,
	const struct cpuset *from, const struct hint *affinity, struct cpuset *got);
/* The CPUs of the container at that place are known: the hint's NUMA nodes alone do not make the
 * hint followed. */
void admission_judge_cpus(struct way_in *w, unsigned place);
/* Whether the shared pool has as many CPUs as it is to keep. 0 or -EPERM with the refusal. */
int admission_check_pool(struct way_in *w);

/* A pod with resources of its own, aligned as one (admission_shares.c): what it asks for as CPUs
 * for itself and as memory; whether something is left for each container that shares, -EPERM with
 * the refusal when not; and CPUs and memory for the pod, and of these for its containers. 0 or
 * -EPERM. */
unsigned admission_own_cpus(const struct way_in *w);
int admission_check_cpu_shares(struct way_in *w);
int admission_check_memory_shares(struct way_in *w);
int admission_share_out(struct way_in *w, const struct grant *of_pod, struct budget *budget);

/* Collect the hints of all managers, merge them, judge advice, and enter in *g where the container
 * that is dealt with (pod_scope: the whole pod) is to be, and why. 0, or -EPERM: refused. */
int admission_align(struct way_in *w, bool pod_scope, struct grant *g);

#endif
