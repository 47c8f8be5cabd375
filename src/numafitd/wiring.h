#ifndef NUMAFIT_NUMAFITD_WIRING_H
#define NUMAFIT_NUMAFITD_WIRING_H

#include <io/loop.h>
#include <nri/nri_conn.h>

struct daemon;

/* The runtime's side. */
struct runtime {
	struct nri_conn *conn;
	struct nri_handler handler;
	const struct nri_handler *mode_handler; /* whose times are taken */
	struct loop_timer *expire;
	/* What a runtime gives to a plugin that it starts itself (NRI pkg/api/plugin.go): the
	 * connection, name and index. name is NULL when it did not. */
	struct {
		int fd;
		const char *name, *index;
	} launch;
	bool warned_of_cpuset;
};

/* The runtime's events and the engine. */
void wiring_start(struct daemon *d);

#endif
