#ifndef NUMAFIT_SIM_PLAY_H
#define NUMAFIT_SIM_PLAY_H

#include <numafit-sim/trace_yaml.h>
#include <numafit-sim/report.h>

struct play_options {
	const char *socket; /* path to listen on */
	unsigned wait_ms;   /* for the plugin to come */
	bool state_change;  /* send events as NRI before 0.12 does */
	bool forgets;       /* started again, know of containers what they were created with */
	/* be a kubelet too, with that root directory, which plugins register with; NULL: none */
	const char *kubelet_root;
};

/* Be a container runtime on the socket: wait for the plugin, do what the trace says, step by step,
 * apply what the plugin answers to the containers of *n and report it, checking the node after
 * each answer. 0; -ETIMEDOUT: no plugin came, or it left a call unanswered; -EPROTO, -ECONNRESET:
 * it broke the protocol or went away; -EINVAL: its answer, or the node afterwards, is wrong, or the
 * trace does not suit the machine; -EINTR: a signal; others of listener_new(). */
int play(const struct trace *t, struct sim_node *n, struct report *r, const struct play_options *o,
	struct err *e);

#endif
