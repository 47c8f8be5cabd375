#ifndef NUMAFIT_DRA_DRIVER_DRIVER_STATE_H
#define NUMAFIT_DRA_DRIVER_DRIVER_STATE_H

#include <apiserver/claim_get.h>
#include <apiserver/slice_publisher.h>
#include <daemon-files/cdi_json.h>
#include <dra-driver/driver.h>
#include <io/loop.h>
#include <kubelet/dra_plugin.h>
#include <kubelet/dra_registration.h>
#include <numafit/engine.h>

/* What the driver's files share. */

enum dra_doing {
	DRA_PREPARE,   /* for the kubelet */
	DRA_UNPREPARE, /* likewise */
	DRA_REFRESH,   /* a claim that is held is read once more: which pods is it for, is it still
			  there? */
	DRA_RESTORE /* a claim that has files and is not held: the journal that held it is lost */
};

/* One claim on its way. */
struct dra_task {
	struct dra *of;
	enum dra_doing doing;
	struct dra_job *job; /* NULL: nobody waits */
	char *ns, *uid, *name;
	struct claim_get *get; /* it is being read */
	uint64_t since_ms, until_ms,
		next_ms;  /* came; is answered at the latest; is looked at next */
	bool gone;        /* the claim is deleted, and a container still runs on it */
	uint64_t read_ms; /* the claim was read from the API server last */
	char why[512];    /* it could not be done yet */
};

struct dra {
	struct dra_options o;
	struct dra_handler handler;
	struct api *api; /* NULL: there is none yet */
	struct dra_plugin *plugin;
	struct dra_registration *registration;
	struct slice_publisher *publisher;
	struct loop_timer *look, *beat;
	struct {
		VEC(struct dra_task *);
	} tasks;
	char refreshed[CLAIM_UID_MAX]; /* the claim that was read again last, in order of uid */
	uint64_t health_ms;            /* health was sent last */
	uint64_t round_ms;             /* all of them are read again from then on */
	char registry[SETTINGS_PATH_MAX + 32], directory[SETTINGS_PATH_MAX + 32];
	char metadata[SETTINGS_PATH_MAX + 48];
	struct cdi_options cdi;
	unsigned order[NODES_MAX]; /* NUMA nodes, as they were published last */
	unsigned nr_order;
	uint64_t prepared, unprepared, failed, waited_ms;
};

static inline struct engine *dra_engine(const struct dra *v)
{
	return *v->o.engine;
}

static inline const struct ledger *dra_ledger(const struct dra *v)
{
	return engine_ledger(dra_engine(v));
}

/* offer.c: struct slice_publisher_handler's. */
size_t dra_wanted(void *ctx, struct slice_node *out);
/* tasks.c */
void dra_begin(
	struct dra *v, enum dra_doing doing, struct dra_job *job, const struct dra_claim_ref *ref);
/* Look at all tasks. */
void dra_look(void *ctx);
/* All tasks end; the kubelet is answered with that text. */
void dra_end_all(struct dra *v, const char *text);
/* Read the next claim of those that are held, if that is due. */
void dra_refresh_next(struct dra *v);

#endif
