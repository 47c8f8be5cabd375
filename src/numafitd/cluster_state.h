#ifndef NUMAFIT_NUMAFITD_CLUSTER_STATE_H
#define NUMAFIT_NUMAFITD_CLUSTER_STATE_H

#include "cluster.h"
#include "daemon.h"

#include <apiserver/annotate.h>
#include <apiserver/apply.h>
#include <apiserver/events.h>
#include <apiserver/evict.h>
#include <apiserver/pods.h>
#include <io/backoff.h>
#include <io/watch.h>
#include <numafit/report.h>

/* What the files that speak with the API server share. */

enum { NODE_UID_MAX = 64, OBJECT_PATH_MAX = 512 };

/* How the reports are written. */
struct report_pace {
	unsigned interval_ms, heartbeat_ms;
	bool take_over;
};

struct cluster {
	struct daemon *d;
	struct api *api; /* NULL: its credentials cannot be used; then nothing below is there */
	/* Until they can: */
	struct err unusable;
	uint64_t failures;
	struct backoff try_again;
	struct loop_timer *trial;
	struct file_watch file;

	struct loop_timer *look; /* at the node object, now and then */
	struct api_call *looking;
	struct backoff again;        /* until it is there */
	bool logged_node;            /* that it cannot be had */
	char node_uid[NODE_UID_MAX]; /* "": not known yet */
	struct report_policy kubelet;
	bool knows_kubelet;
	struct report_pace pace;
	struct apply *nrt, *numatopology;
	struct apply_handler nrt_handler, numatopology_handler;
	struct api_pods_handler pods_handler;
	struct events *events;
	struct rate remedies; /* how often they are looked for */
	struct evictions *evictions;
	struct annotator *annotator;
	struct loop_timer *observe; /* one look at all pods for the changes of a while */
	bool will_observe;
};

/* reports.c: what is reported to schedulers. */
void reports_start(struct cluster *c);
void reports_stop(struct cluster *c);
void reports_settings_changed(struct cluster *c);
/* Something in them may be another by now. */
void reports_changed(struct cluster *c);

/* annotations.c: what pods have of NUMA nodes, on each of them (observedPlacement). */
void annotations_start(struct cluster *c);
void annotations_stop(struct cluster *c);
void annotations_settings_changed(struct cluster *c);
/* Pods, what they hold or what is on them may be another by now. */
void annotations_changed(struct cluster *c);

#endif
