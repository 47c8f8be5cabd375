#ifndef NUMAFIT_SIM_PLAY_STATE_H
#define NUMAFIT_SIM_PLAY_STATE_H

#include <io/loop.h>
#include <numafit-sim/play.h>
#include <numafit-sim/script.h>
#include <numafit-sim/sim_kubelet.h>

/* A play under way, for play*.c alone. */

enum { PLAY_ANNOTATIONS_MAX = 32 };

struct play {
	struct script script;
	struct sim_node *node;
	struct report *report;
	const struct play_options *options;
	struct loop *loop;
	struct loop_timer *timer; /* for the plugin to come, then for its answer */
	struct listener *listener;
	struct stream *stream;
	struct nri_runtime *runtime;
	struct rpc_pump *pump;
	struct sim_kubelet *kubelet; /* NULL: none is played */
	struct task asked;           /* the call that is waited for, once there is a plugin */
	bool waiting;                /* for a plugin */
	bool lacks_devices;          /* and waits for the plugin that has them */
	bool busy;                   /* nothing to do until something comes in */
	bool came_before;
	bool over; /* what still comes in this turn of the loop changes nothing */
	int rc;
	struct err *e;
};

/* End the play, with what *e says when rc is not 0. */
void play_end(struct play *p, int rc);
/* The containers of that one's pod that are still to be created will not be. */
void play_refuse_rest(struct play *p, const struct container *of, const char *why);

/* What was waited for has come: ctx is the play. */
void play_go_on(void *ctx);

/* The kubelet's part, where there is one. */
int play_start_kubelet(struct play *p);
void play_restart_kubelet(struct play *p);
/* Whether steps can be made: it is ready, and lacks nothing. */
bool play_kubelet_ready(const struct play *p);
/* The first resource of the trace whose devices the kubelet does not know, or NULL. */
const char *play_lacks(const struct play *p);
/* Lead the pod in, or prepare the container; play_go_on() follows. */
void play_kubelet_task(struct play *p, const struct task *k);
/* That did not come to an end: -ETIMEDOUT with text. */
int play_kubelet_is_late(const struct play *p);
/* Container annotations: its own, and those that device plugins gave it. Returns their number. */
size_t play_annotations(const struct play *p, const struct container *c,
	struct key_value out[PLAY_ANNOTATIONS_MAX]);
/* Its own CPUs must be as many, and where, as the devices that stand for them. 0, or -EINVAL with
 * text. */
int play_check_devices(const struct play *p, const struct container *c);
/* Keep what it was given as words: "4 numafit.io/cpu of node 0, 2 example.com/gpu of nodes 0,7". */
void play_note_devices(const struct play *p, struct container *c);

#endif
