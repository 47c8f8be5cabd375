#ifndef NUMAFIT_NUMAFITD_DAEMON_H
#define NUMAFIT_NUMAFITD_DAEMON_H

#include "advice.h"
#include "confined.h"
#include "in_force.h"
#include "measure.h"
#include "recorder.h"
#include "reload.h"
#include "run_directory.h"
#include "shown.h"
#include "wiring.h"

#include <host/correction.h>

struct pool_bounds;
struct quotas;
struct quiet;
struct claims;
struct dra;
struct self_files;
struct moves_asker;

/* What puts the ledger in force, and keeps it so; NULL: there is none. */
struct followers {
	struct updater *updater;
	struct self_files *self;
	struct pool_bounds *pool; /* where a part of the daemon has chosen how it is enforced */
	struct quotas *quotas;
	unsigned facts_wait_ms; /* how long quotas wait for pods' facts; 0: two minutes */
	struct quiet *quiet;
	struct in_force_reads in_force;
	struct sweep *sweep;
	struct confined confined; /* found by the sweep */
	struct moves_asker *moves;
};

/* What shows it to people and programs; NULL: there is none. */
struct shows {
	struct status_server *status;
	struct metrics_server *metrics;
	struct recent *recent; /* decisions for the status page */
	struct ui_server *page;
	struct shown_document shown_status;
};

/* All parts of one running numafitd. main.c builds them in their order; each part's own header says
 * what the others may ask of it. */
struct daemon {
	struct settings settings; /* in force */
	struct configured configured;
	struct topo topo;               /* as it is now */
	struct corrections corrections; /* in what was read of the machine */
	struct topo *machine; /* what the engine borrows once topo has changed; NULL: topo */
	struct loop *loop;
	struct run_directory run;
	struct recorder recorder;
	struct engine *engine;
	struct measured measured;
	char node_name[NODE_NAME_MAX];
	struct advice_formats advice;
	struct services *services; /* NULL: there are none */
	struct api_pods *api_pods; /* this node's, as the API server has them; likewise */
	struct claims *claims;     /* likewise */
	struct dra *dra;           /* likewise */
	struct runtime runtime;
	struct cluster *cluster; /* likewise */
	struct followers follow;
	struct shows show;
};

#endif
