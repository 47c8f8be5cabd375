#ifndef NUMAFIT_NUMAFITD_DAEMON_H
#define NUMAFIT_NUMAFITD_DAEMON_H

#include "advice.h"
#include "in_force.h"
#include "measure.h"
#include "recorder.h"
#include "reload.h"
#include "run_directory.h"
#include "wiring.h"

struct pool_bounds;
struct quotas;
struct quiet;
struct claims;
struct dra;
struct self_files;
struct moves_asker;

/* All parts of one running numafitd. main.c builds them in their order; each part's own header says
 * what the others may ask of it. */
struct daemon {
	struct settings settings; /* in force */
	struct configured configured;
	struct topo topo;     /* as it is now */
	struct topo *machine; /* what the engine borrows once topo has changed; NULL: topo */
	struct loop *loop;
	struct run_directory run;
	struct recorder recorder;
	struct engine *engine;
	struct measured measured;
	struct status_server *status;
	char node_name[NODE_NAME_MAX];
	struct advice_formats advice;
	struct services *services; /* NULL: there are none */
	struct api_pods *api_pods; /* this node's, as the API server has them; likewise */
	struct claims *claims;     /* likewise */
	struct dra *dra;           /* likewise */
	struct runtime runtime;
	struct updater *updater; /* NULL: there is none */
	struct self_files *self; /* likewise */
	struct pool_bounds
		*pool;         /* likewise, where no part of the daemon chose how it is enforced */
	struct quotas *quotas; /* likewise */
	struct quiet *quiet;   /* likewise */
	struct in_force_reads in_force;
	struct sweep *sweep;            /* likewise */
	struct moves_asker *moves;      /* likewise */
	struct cluster *cluster;        /* likewise */
	struct metrics_server *metrics; /* likewise */
	struct recent *recent;          /* decisions for the status page, likewise */
	struct ui_server *page;         /* likewise */
};

#endif
