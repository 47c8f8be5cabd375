#ifndef NUMAFIT_KUBELET_REGISTRATION_STATE_H
#define NUMAFIT_KUBELET_REGISTRATION_STATE_H

#include <kubelet/registration.h>
#include <kubelet/registration_files.h>

/* registration.c has the states, registration_attempt.c goes through them from nothing to the
 * kubelet's yes, and both stand on registration_state.c. */

struct registration {
	struct rpc_pump *p;
	struct registration_options o;
	const struct registration_handler *handler;
	struct plugin_files *files;
	struct loop_timer *timer;
	enum registration_state state;
	unsigned nr_streams;
	bool hurry; /* "ending": the kubelet ended the streams, and another need not wait */
	struct arena a;
	struct blob request; /* Register's, in it */
	struct rpc_call *call;
	unsigned connect_ms, refused_ms; /* how long to wait the next time */
	unsigned pace_ms;                /* between the last Register and the next, at least */
	uint64_t asked_ns, up_ns;        /* when the last Register went out, when it came to "up" */
	const char *reported;            /* the last event, and its text */
	struct err reported_text;
};

/* From here on this is the state, and in ms its time is up. */
void registration_enter(struct registration *r, enum registration_state state, unsigned ms);
/* Time for a look in case that a watch missed something. */
unsigned registration_seldom_ms(const struct registration *r);
/* Once for what lasts. */
void registration_report(struct registration *r, bool bad, const char *event, const struct err *e);
/* Whether the kubelet's socket is not the one that was tried last. */
bool registration_is_another(const struct registration *r);
void registration_end_streams(struct registration *r);
void registration_go_up(struct registration *r);

/* The wait that is due now; the next one is twice as long. */
unsigned registration_grow(unsigned *ms, unsigned max);
/* What the kubelet before it refused is no reason to be slow with this one. */
void registration_reset_waits(struct registration *r);
unsigned registration_ms_since(uint64_t ns);

/* registration_attempt.c: to register, or to find out what is in the way. */
void registration_attempt(struct registration *r);
/* Whether what Register needs is still there. */
void registration_check_call(struct registration *r);
void registration_not_watched(struct registration *r);

#endif
