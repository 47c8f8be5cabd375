/* What speaks with the kubelet: built when the settings want it, in the order in which it can live.
 */
#include "services.h"
#include "claims.h"
#include "cluster.h"
#include "decision_log.h"
#include "late_facts.h"
#include "over.h"
#include "pool.h"
#include "quota.h"
#include "services_state.h"
#include "updater.h"

#include <dra-driver/driver.h>
#include <io/log.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TELL_AFTER_MS = 2 };
enum { LOOK_MIN_MS = 100, LOOK_MAX_MS = 60000, LOG_TEXT_BYTES = 512 }; /* for the Pods API */

static void on_registration_refused(void *ctx, pid_t pid, uid_t uid)
{
	(void)ctx;
	log_line(LOG_WARN, "peer-refused",
		"pid=%d uid=%u text=\"only root may use numafit's sockets\"", (int)pid,
		(unsigned)uid);
}

static void end_streams(void *ctx)
{
	struct services *v = ctx;

	device_plugin_end_streams(v->plugin);
}

static void name_paths(struct services *v)
{
	const char *root = v->d->settings.kubelet_root;

	(void)snprintf(v->plugin_directory, sizeof v->plugin_directory, "%s/device-plugins", root);
	(void)snprintf(v->pod_resources_socket, sizeof v->pod_resources_socket,
		"%s/pod-resources/kubelet.sock", root);
	(void)snprintf(v->pods_socket, sizeof v->pods_socket, "%s/pods-api/pods-api.sock", root);
	/* never one that an earlier process had: the kubelet distinguishes registrations by it */
	(void)snprintf(v->endpoint, sizeof v->endpoint, "numafit-%d-%llx.sock", (int)getpid(),
		(unsigned long long)loop_wall_ms());
}

static void list_tokens_anew(void *ctx)
{
	struct services *v = ctx;

	v->will_look = false;
	device_plugin_changed(v->plugin);
}

static void serve(struct services *v)
{
	const struct rpc_server_options server = {.request_max = DEVICE_PLUGIN_MESSAGE_MAX,
		.ctx = v,
		.refused = on_registration_refused};

	v->server = rpc_server_new(v->pump, &server);
}

static void serve_plugin(struct services *v)
{
	v->tokens = tokens_handler;
	v->tokens.ctx = v;
	v->tokens.on_event = log_event;
	if (!v->d->settings.pre_start_container)
		v->tokens.pre_start = NULL;
	v->plugin = device_plugin_new(v->server, &v->tokens);
	v->changed = loop_timer_new(v->d->loop, list_tokens_anew, v);
}

/* Not before PodResources has shown which tokens are given out, or cannot: after a lost journal the
 * first list could have one of them Unhealthy. */
static void register_plugin(struct services *v)
{
	struct registration_options o = {
		.directory = v->plugin_directory,
		.endpoint = v->endpoint,
		.resource = TOKEN_RESOURCE,
	};

	if (!v->plugin || v->registration)
		return;
	v->registering = (struct registration_handler){v, end_streams, log_event};
	o.options = device_plugin_options(v->plugin);
	v->registration = registration_new(v->d->loop, v->pump, v->server, &o, &v->registering);
}

void services_devices_shown(struct daemon *d, const struct pods_held *held)
{
	struct services *v = d->services;

	if (v->plugin)
		tokens_seen(v, held);
	register_plugin(v);
	late_facts_of_devices(d);
	claims_news(d);
	cluster_note_change(d);
}

static void on_pod_resources(void *ctx, const struct pods_held *held)
{
	struct services *v = ctx;

	services_devices_shown(v->d, held);
}

static void on_pod_resources_event(void *ctx, bool bad, const char *event, const char *text)
{
	log_event(ctx, bad, event, text);
	register_plugin(ctx);
}

static void ask_pod_resources(struct services *v)
{
	const struct settings *s = &v->d->settings;
	const struct pod_resources_options o = {
		.socket = v->pod_resources_socket,
		.devices = s->pod_resources && s->nrt,
	};

	v->holdings = (struct pod_resources_handler){v, on_pod_resources, on_pod_resources_event};
	v->pod_resources = pod_resources_new(v->d->loop, v->pump, &o, &v->holdings);
}

/* The Pods API */

const char *services_pod_facts(const struct daemon *d)
{
	const struct services *v = d->services;

	if (v && v->pods && pods_synced(v->pods))
		return "kubelet";
	return d->settings.pods_watch ? "apiserver" : "sandbox";
}

static void log_pod_facts(struct services *v, const char *why)
{
	const char *facts = services_pod_facts(v->d);
	char text[LOG_TEXT_BYTES];

	if (text_equal(v->facts, facts))
		return;
	v->facts = facts;
	quota_note_unlifted(v->d); /* there may be nothing to wait for */
	log_line(LOG_INFO, "pod-facts", "source=%s text=%s", facts,
		log_text(text, sizeof text, why));
}

static void on_pods_event(void *ctx, bool bad, const char *event, const char *text)
{
	log_event(ctx, bad, event, text);
	log_pod_facts(ctx, text);
}

void services_pod_changed(struct daemon *d, const struct known_pod *pod)
{
	services_note_pod(d, pod);
	late_facts_of_pod(d, pod->pod.uid);
}

static void on_pod_changed(void *ctx, const struct known_pod *pod)
{
	struct services *v = ctx;

	services_pod_changed(v->d, pod);
}

void services_pods_listed(struct daemon *d)
{
	over_release_pods(d);
	quota_note_unlifted(d);
}

static void on_pods_gone(void *ctx)
{
	struct services *v = ctx;

	services_pods_listed(v->d);
}

static void watch_pods(struct services *v)
{
	v->watching = (struct pods_handler){v, on_pod_changed, on_pods_gone, on_pods_event};
	v->pods = pods_new(v->d->loop, v->pump, &(struct pods_options){.socket = v->pods_socket},
		&v->watching);
}

/* An older kubelet does not have it, and then nothing is wrong: one line says where pods' facts
 * come from instead. */
static void on_no_pods_api(void *ctx, bool bad, const char *event, const char *text)
{
	if (bad)
		log_event(ctx, bad, event, text);
	log_pod_facts(ctx, text);
}

/* gRPC takes megabytes: it is not started for a service that nobody has. */
static void look_for_pods_api(void *ctx)
{
	struct services *v = ctx;
	struct err e;

	retry_begin(v->looking);
	if (access(v->pods_socket, F_OK) < 0)
		(void)err_set(&e, errno, "%s: %s", v->pods_socket, strerror(errno));
	else if (v->pump || (v->pump = rpc_pump_new(v->d->loop, &e)))
		watch_pods(v);
	if (v->pods)
		retry_free(steal(v->looking));
	else
		retry_no_connection(v->looking, &e);
}

static void start_pods_api(struct services *v)
{
	const struct retry_options o = {
		.socket = v->pods_socket,
		.min_ms = LOOK_MIN_MS,
		.max_ms = LOOK_MAX_MS,
		.ctx = v,
		.attempt = look_for_pods_api,
		.waiting = "pods-api-waiting",
		.log = v,
		.on_event = on_no_pods_api,
	};

	if (v->d->settings.pods_api == PODS_API_ON)
		watch_pods(v);
	else if (v->d->settings.pods_api == PODS_API_AUTO)
		v->looking = retry_new(v->d->loop, &o);
	else
		log_pod_facts(v, "podsAPI.enabled is false");
}

/* Whether gRPC is needed, whatever the kubelet serves. */
static bool needs_pump(const struct settings *s)
{
	return s->device_plugin || s->pod_resources || s->claims || s->pods_api == PODS_API_ON;
}

/* Of struct dra_handler. */
static int on_claim_held(void *ctx, struct err *e)
{
	struct daemon *d = ctx;
	const int rc = pool_follow(d, e);

	updater_note_change(d);
	return rc;
}

static void on_claim_given_back(void *ctx)
{
	struct daemon *d = ctx;

	pool_follow_event(d);
	updater_note_change(d);
}

static bool knows_what_runs(void *ctx)
{
	const struct daemon *d = ctx;

	return d->measured.counters.connects;
}

static void serve_claims(struct services *v)
{
	struct daemon *d = v->d;

	d->dra = dra_new(&(struct dra_options){.loop = d->loop,
				 .server = v->server,
				 .engine = &d->engine,
				 .topo = &d->topo,
				 .settings = &d->settings,
				 .node_name = d->node_name},
		&(struct dra_handler){
			d, on_claim_held, on_claim_given_back, knows_what_runs, log_event});
}

int services_start(struct daemon *d, struct err *e)
{
	const struct settings *s = &d->settings;

	if (s->mode == MODE_OFF || s->mode == MODE_RELEASE ||
		!(needs_pump(s) || s->pods_api == PODS_API_AUTO))
		return 0;
	struct services *v = xcalloc(1, sizeof *v);
	v->d = d;
	d->services = v;
	name_paths(v);
	if (needs_pump(s) && !(v->pump = rpc_pump_new(d->loop, e)))
		return -e->code;
	if (s->pod_resources || s->device_plugin) /* tokens that no container takes show there */
		ask_pod_resources(v);
	start_pods_api(v);
	if (s->device_plugin || s->claims)
		serve(v);
	if (s->device_plugin)
		serve_plugin(v);
	if (s->claims)
		serve_claims(v);
	return 0;
}

void services_stop(struct daemon *d)
{
	struct services *v = d->services;

	if (!v)
		return;
	d->services = NULL;
	if (v->changed)
		loop_timer_close(v->changed);
	registration_close(v->registration);
	v->registration = NULL;
	dra_leave(d->dra);
	retry_free(v->looking);
	pods_close(v->pods);
	pod_resources_close(v->pod_resources);
	rpc_server_free(v->server);
	device_plugin_free(v->plugin);
	dra_free(steal(d->dra));
	rpc_pump_free(v->pump);
	free(v);
}

static void count_leased_tokens(const struct daemon *d, struct status_kubelet *out)
{
	const struct ledger *l = engine_ledger(d->engine);
	struct tokenset leased, claimed;
	struct token_reports all;
	struct arena a;

	arena_init(&a, DEVICE_PLUGIN_MESSAGE_MAX);
	if (ledger_report_tokens(l, &a, &all) == 0)
		out->tokens = (unsigned)all.nr;
	for (unsigned i = 0; i < out->tokens; i++)
		out->unhealthy += !all.at[i].healthy;
	leases_tokens(ledger_view(l)->leases, &leased, &claimed);
	out->leased = tokenset_count(&leased);
	out->waiting = out->leased - tokenset_count(&claimed);
	arena_fini(&a);
}

static const char *is_up(bool there, bool up)
{
	if (!there)
		return "off";
	return up ? "up" : "waiting";
}

bool services_status(const struct daemon *d, struct status_kubelet *out)
{
	const struct services *v = d->services;

	if (!v)
		return false;
	*out = (struct status_kubelet){
		.device_plugin = v->plugin ? "waiting" : "off",
		.pod_resources = is_up(
			v->pod_resources, v->pod_resources && pod_resources_age(v->pod_resources)),
		.pods_api = v->looking ? "absent" : is_up(v->pods, v->pods && pods_synced(v->pods)),
		.pods = v->pods ? pods_count(v->pods) : 0,
	};
	if (v->registration)
		out->device_plugin = registration_state_name(registration_state(v->registration));
	if (v->plugin)
		count_leased_tokens(d, out);
	return true;
}

void services_note_change(struct daemon *d)
{
	struct services *v = d->services;

	if (!v || !v->changed || v->will_look)
		return;
	v->will_look = true;
	loop_timer_set(v->changed, TELL_AFTER_MS);
}
