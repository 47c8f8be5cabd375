/* Devices of claims (DRA): where they are. */
#include "claims.h"
#include "daemon.h"
#include "decision_log.h"

#include <apiserver/slices.h>
#include <numafit/mem.h>

struct claims {
	struct daemon *d;
	struct api_slices_handler handler;
	struct api_slices *slices; /* NULL: there is no API server yet */
};

static void on_slices_changed(void *ctx)
{
	(void)ctx;
}

void claims_start(struct daemon *d)
{
	if (!d->settings.device_claims || d->claims)
		return;
	d->claims = xcalloc(1, sizeof *d->claims);
	d->claims->d = d;
}

void claims_watch(struct daemon *d, struct api *a)
{
	struct claims *c = d->claims;

	if (!c)
		return;
	c->handler = (struct api_slices_handler){c, on_slices_changed, log_event};
	c->slices = api_slices_new(a, d->node_name, &c->handler);
}

void claims_stop(struct daemon *d)
{
	struct claims *c = steal(d->claims);

	if (!c)
		return;
	api_slices_close(c->slices);
	free(c);
}

bool claims_status(const struct daemon *d, struct status_claims *out)
{
	const struct claims *c = d->claims;
	struct slice_counts counts = {0};

	if (!c)
		return false;
	if (c->slices)
		counts = api_slices_count(c->slices);
	*out = (struct status_claims){
		.slices_watch = c->slices && api_slices_synced(c->slices) ? "up" : "waiting",
		.slices = counts.slices,
		.incomplete_pools = counts.incomplete_pools,
		.devices = counts.devices,
	};
	return true;
}
