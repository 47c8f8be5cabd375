#ifndef NUMAFIT_NUMAFITD_WIRING_H
#define NUMAFIT_NUMAFITD_WIRING_H

#include <io/loop.h>
#include <nri/nri_conn.h>
#include <numafit/decision.h>
#include <numafit/request.h>

struct daemon;

/* What on_create() has answered, or on_run_pod() has refused, to be noted once the answer has gone
 * out. The strings are the event's. In mode release Synchronize was answered, and only is_due says
 * so. */
struct answered {
	bool is_due;
	struct request req;
	bool is_pod; /* not the request, but this: */
	struct pod pod;
	struct arena gathered; /* what is known of the pod's containers */
	struct decision dec;
	size_t nr_updates;
	uint64_t took_ns;
	const char *refusal; /* what the runtime was answered, or "" */
};

/* The runtime's side. */
struct runtime {
	struct nri_conn *conn;
	struct nri_handler handler;
	struct loop_timer *expire;
	/* What a runtime gives to a plugin that it starts itself (NRI pkg/api/plugin.go): the
	 * connection, name and index. name is NULL when it did not. */
	struct {
		int fd;
		const char *name, *index;
	} launch;
	bool warned_of_cpuset;
	struct answered answered;
};

/* The runtime's events and the engine. */
void wiring_start(struct daemon *d);
/* Ends what wiring_start() began, before the loop is freed. A daemon that never came to it:
 * nothing. */
void wiring_stop(struct daemon *d);

#endif
