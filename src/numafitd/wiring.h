#ifndef NUMAFIT_NUMAFITD_WIRING_H
#define NUMAFIT_NUMAFITD_WIRING_H

#include <io/loop.h>
#include <nri/nri_conn.h>
#include <numafit/decision.h>
#include <numafit/request.h>

struct daemon;

/* What on_create() has answered, to be noted once the answer has gone out. The strings are the
 * event's. */
struct answered_create {
	bool is_due;
	struct request req;
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
	struct answered_create answered;
};

/* The runtime's events and the engine. */
void wiring_start(struct daemon *d);

#endif
