/* The DRA driver's life: its parts begin and end with the kubelet's and the API server's side. */
#include <dra-driver/driver_state.h>

#include <io/log.h>
#include <numafit/mem.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include <stdio.h>
#include <stdlib.h>

enum {
	BEAT_MS = 200,         /* claims that are read again, one by one */
	HEALTH_MS = 10 * 1000, /* a kubelet takes devices for unknown after 30 s */
	MS_PER_S = 1000
};

static void on_prepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	dra_begin(ctx, DRA_PREPARE, job, ref);
}

static void on_unprepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	dra_begin(ctx, DRA_UNPREPARE, job, ref);
}

/* A NUMA node without any CPU online is not healthy. */
static size_t on_health(void *ctx, struct arena *a, struct dra_health **out)
{
	const struct dra *v = ctx;
	const struct topo *t = ledger_view(dra_ledger(v))->topo;
	size_t nr = 0;

	*out = arena_array(a, t->ids.nr, sizeof **out);
	for (unsigned n = 0; *out && n < t->ids.nr; n++) {
		const size_t cap = sizeof CLAIM_DEVICE_PREFIX "4294967295";
		char *name = arena_alloc(a, cap);
		struct text to;

		if (!name)
			break;
		text_init(&to, name, cap);
		text_add(&to, CLAIM_DEVICE_PREFIX "%u", t->ids.id[n]);
		(*out)[nr++] = (struct dra_health){
			.pool = v->o.node_name,
			.device = name,
			.healthy = !cpuset_empty(&t->node[n].cpus),
			.last_updated_s = loop_wall_ms() / MS_PER_S,
		};
	}
	return nr;
}

static void on_beat(void *ctx)
{
	struct dra *v = ctx;
	const uint64_t now = loop_monotonic_ms();

	dra_refresh_next(v);
	if (now - v->health_ms >= HEALTH_MS) {
		v->health_ms = now;
		dra_plugin_health_changed(v->plugin);
	}
	loop_timer_set(v->beat, BEAT_MS);
}

/* A claim's files are removed before it is held no more: so one that has files and is not held was
 * lost with the journal. */
static bool keep_files(void *ctx, const struct cdi_found *claim)
{
	struct dra *v = ctx;

	if (shares_any(dra_ledger(v), claim->uid))
		return true;
	if (claim->name)
		dra_begin(v, DRA_RESTORE, NULL,
			&(struct dra_claim_ref){claim->ns, claim->uid, claim->name});
	return claim->name;
}

static void sweep_files(struct dra *v)
{
	char why[512];
	struct err e;
	int nr = cdi_sweep(&v->cdi, keep_files, v, &e);

	if (nr < 0)
		log_line(LOG_WARN, "claims-files-unread", "error=%s",
			log_text(why, sizeof why, e.text));
}

static void name_directories(struct dra *v)
{
	const char *root = v->o.settings->kubelet_root;

	(void)snprintf(v->registry, sizeof v->registry, "%s/plugins_registry", root);
	(void)snprintf(v->directory, sizeof v->directory, "%s/plugins/" CLAIM_DRIVER, root);
	(void)snprintf(v->metadata, sizeof v->metadata, "%s/metadata", v->directory);
	v->cdi = (struct cdi_options){
		.directory = v->o.settings->claims_cdi,
		.metadata = v->metadata,
		.node_name = v->o.node_name,
	};
}

struct dra *dra_new(const struct dra_options *o, const struct dra_handler *handler)
{
	struct dra *v = xcalloc(1, sizeof *v);
	const struct dra_plugin_handler plugin = {v, on_prepare, on_unprepare, on_health};
	const struct dra_registration_handler registration = {handler->ctx, handler->on_event};

	v->o = *o;
	v->handler = *handler;
	name_directories(v);
	v->look = loop_timer_new(o->loop, dra_look, v);
	v->beat = loop_timer_new(o->loop, on_beat, v);
	v->plugin = dra_plugin_new(o->server, &plugin);
	v->registration = dra_registration_new(o->loop, o->server,
		&(struct dra_registration_options){
			.registry = v->registry, .directory = v->directory, .driver = CLAIM_DRIVER},
		&registration);
	sweep_files(v);
	loop_timer_set(v->beat, BEAT_MS);
	return v;
}

static void on_slice_event(void *ctx, bool bad, const char *event, const char *text)
{
	const struct dra *v = ctx;

	v->handler.on_event(v->handler.ctx, bad, event, text);
}

void dra_watch(struct dra *v, struct api *a)
{
	if (!v)
		return;
	v->api = a;
	v->publisher = slice_publisher_new(v->o.loop, a,
		&(struct slice_publisher_options){.node = v->o.node_name},
		&(struct slice_publisher_handler){v, dra_wanted, on_slice_event});
	dra_look(v);
}

void dra_unwatch(struct dra *v)
{
	if (!v)
		return;
	dra_end_all(v, "numafit: numafitd stops; the kubelet tries again");
	slice_publisher_close(steal(v->publisher));
	v->api = NULL;
}

void dra_leave(struct dra *v)
{
	if (!v)
		return;
	dra_registration_close(steal(v->registration));
	dra_end_all(v, "numafit: numafitd stops; the kubelet tries again");
}

void dra_free(struct dra *v)
{
	if (!v)
		return;
	dra_plugin_free(v->plugin);
	loop_timer_close(v->look);
	loop_timer_close(v->beat);
	vec_fini(&v->tasks);
	free(v);
}

bool dra_status(const struct dra *v, struct status_dra *out)
{
	struct slice_publisher_state slice = {0};

	if (!v)
		return false;
	if (v->publisher)
		slice_publisher_state(v->publisher, &slice);
	*out = (struct status_dra){
		.registration = v->registration ? dra_registration_state_name(
							  dra_registration_state(v->registration))
						: "waiting",
		.slice_generation = slice.generation,
		.slice_current = slice.current,
		.prepared = v->prepared,
		.unprepared = v->unprepared,
		.failed = v->failed,
		.waiting = v->tasks.nr,
		.waited_ms = v->waited_ms,
	};
	return true;
}
