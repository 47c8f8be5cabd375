#ifndef NUMAFIT_SIM_POD_H
#define NUMAFIT_SIM_POD_H

#include <kubelet/pods_pb.h>
#include <numafit-sim/node.h>

/* The pod of *c as its spec has it: the containers of its sandbox that are still to be created, in
 * the order of the trace. Parts of *out come from *a, strings are the node's. 0; -E2BIG, -ENOMEM
 * with text. */
int sim_pod_spec(const struct sim_node *n, const struct container *c, struct arena *a,
	struct known_pod *out, struct err *e);

#endif
