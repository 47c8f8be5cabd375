#ifndef NUMAFIT_NUMAFITD_OVER_H
#define NUMAFIT_NUMAFITD_OVER_H

struct daemon;
struct pod;

/* Pods that are over though no runtime has reported that. What a pod that was decided as a whole
 * has is held for containers that come again until its sandbox is gone; containerd 2.4 reports that
 * of no pod that was there before it was started anew. A kubelet lists no pods before it knows those
 * of all its sources. */

/* The pod has no container that runs, and nobody lists it any more: what is held for it is given
 * back. Else nothing happens. */
void over_release_pod(struct daemon *d, const struct pod *pod);
/* The same for all of them: pods are listed no more. */
void over_release_pods(struct daemon *d);

#endif
