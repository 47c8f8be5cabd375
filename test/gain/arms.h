#ifndef NUMAFIT_GAIN_ARMS_H
#define NUMAFIT_GAIN_ARMS_H

#include "gain.h"

/* What size the container is to have on this machine, where the caller says none (0): CPUs are
 * three quarters of the smallest NUMA node's, in whole cores, and where there are several nodes
 * another container has half a node before,
 * unless g->alone. Sets ask_cpus, held_cpus and reserved: the first core.
 */
void arms_size(struct gain *g);

/* Fill g->arm. That of numafit is what the daemon's own engine decides for this machine with the
 * settings that it has by default; that of the kubelet is what its static CPU manager takes without
 * a topology policy, by the code that is compared with the kubelet's own (test/interop/kubelet).
 * The questions are those of `numafit decide`. Arms that this machine cannot have get a note. 0;
 * -ENOSPC: the container does not fit, the text says why. */
int arms_decide(struct gain *g, struct err *e);

/* The two questions of `numafit decide`, a line each; the caller frees. */
char *arms_question(const struct gain *g, bool kubelet);

#endif
