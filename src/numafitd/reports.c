/* The snapshot -> the objects that schedulers read. */
#include "cluster_state.h"
#include "decision_log.h"
#include "services.h"

#include <apiserver/path.h>
#include <daemon-files/kubelet_config_yaml.h>
#include <codec/nrt_write_json.h>
#include <codec/numatopology_json.h>
#include <io/file.h>
#include <io/log.h>

#include <stdio.h>
#include <string.h>

enum { REPORT_BYTES = 8 << 20 };

/* Who decides in mode shadow goes by its own rules. */
static void read_kubelet_policy(struct cluster *c)
{
	const char *path = c->d->settings.kubelet_config;
	auto_free char *text = NULL;
	char why[512];
	struct err e;
	size_t len;

	int rc = file_read(path, KUBELET_CONFIG_BYTES_MAX, &text, &len, &e);
	if (!rc)
		rc = kubelet_config_yaml_read(text, len, &c->kubelet, &e);
	c->knows_kubelet = rc == 0;
	if (rc)
		log_line(LOG_WARN, "kubelet-config-unread",
			"file=%s error=%s text=\"schedulers do not get the kubelet's policy\" "
			"action=\"set kubeletConfigFile\"",
			path, log_text(why, sizeof why, e.text));
}

/* Take the report; false: it cannot be had now. */
static bool take_kubelet_policy(const struct cluster *c, struct arena *a, struct report *out)
{
	const struct daemon *d = c->d;
	struct report_facts f = {
		.node_name = d->node_name,
		.node_uid = c->node_uid,
		.generation = d->recorder.generation,
		.kubelet = c->knows_kubelet ? &c->kubelet : NULL,
	};

	services_report(d, &f, a);
	return *c->node_uid && report_take(out, engine_ledger(d->engine), &d->settings, &f, a) == 0;
}

static char *print_nrt(void *ctx, uint64_t beat)
{
	const struct cluster *c = ctx;
	const struct nrt_write_options o = {beat, c->d->settings.nrt_policies};
	struct report r;
	struct arena a;

	arena_init(&a, REPORT_BYTES);
	char *text = take_kubelet_policy(c, &a, &r) ? nrt_json_write(&r, &o) : NULL;
	arena_fini(&a);
	return text;
}

static char *print_numatopology(void *ctx, uint64_t beat)
{
	const struct cluster *c = ctx;
	const struct daemon *d = c->d;
	struct report r;
	struct arena a;

	arena_init(&a, REPORT_BYTES);
	char *text =
		take_kubelet_policy(c, &a, &r)
			? numatopology_json_write(&r, engine_ledger(d->engine), &d->settings, beat)
			: NULL;
	arena_fini(&a);
	return text;
}

static void on_created(void *ctx)
{
	struct cluster *c = ctx;

	loop_timer_set(c->look, 0); /* the node may be another one by now, too */
}

static struct report_pace pace_of(const struct settings *s)
{
	return (struct report_pace){
		.interval_ms = (unsigned)s->nrt_interval_ms,
		.heartbeat_ms = (unsigned)s->nrt_heartbeat_ms,
		.take_over = s->nrt_take_over,
	};
}

/* A kind, in its group and version. */
struct kind {
	const char *collection, *name;
};
static const struct kind nrt = {
	"topology.node.k8s.io/v1alpha2/noderesourcetopologies", "NodeResourceTopology"};
static const struct kind numatopology = {
	"nodeinfo.volcano.sh/v1alpha1/numatopologies", "Numatopology"};

/* What the options point to. */
struct names {
	char path[OBJECT_PATH_MAX], what[OBJECT_PATH_MAX];
};

static struct apply_options report_options(
	const struct cluster *c, const struct kind *kind, struct names *n)
{
	struct text t;

	text_init(&t, n->path, sizeof n->path);
	text_add(&t, "/apis/%s/", kind->collection);
	path_add_escaped(&t, c->d->node_name);
	(void)snprintf(n->what, sizeof n->what, "%s %s", kind->name, c->d->node_name);
	return (struct apply_options){
		.path = n->path,
		.manager = "numafit",
		.what = n->what,
		.take_over = c->pace.take_over,
		.advice = "set nodeResourceTopology.takeOver to write it all the same",
		.interval_ms = c->pace.interval_ms,
		.heartbeat_ms = c->pace.heartbeat_ms,
	};
}

/* Keep the node's object of that kind. */
static struct apply *keep_report(
	struct cluster *c, const struct kind *kind, const struct apply_handler *handler)
{
	struct names n;
	const struct apply_options o = report_options(c, kind, &n);

	return apply_new(c->d->loop, c->api, &o, handler);
}

static void keep_otherwise(struct cluster *c, const struct kind *kind, struct apply *p)
{
	struct names n;
	const struct apply_options o = report_options(c, kind, &n);

	if (p)
		apply_set_options(p, &o);
}

void reports_start(struct cluster *c)
{
	const struct settings *s = &c->d->settings;

	c->pace = pace_of(s);
	if (s->mode == MODE_SHADOW && (s->nrt || s->numatopology))
		read_kubelet_policy(c);
	c->nrt_handler = (struct apply_handler){c, print_nrt, on_created, log_event};
	c->numatopology_handler =
		(struct apply_handler){c, print_numatopology, on_created, log_event};
	if (s->nrt)
		c->nrt = keep_report(c, &nrt, &c->nrt_handler);
	if (s->numatopology)
		c->numatopology = keep_report(c, &numatopology, &c->numatopology_handler);
}

/* What apply.c was given must be given anew; the rest is in the next text. A write under way and
 * the counters outlive all of it. */
void reports_settings_changed(struct cluster *c)
{
	const struct report_pace now = pace_of(&c->d->settings);
	bool same = now.interval_ms == c->pace.interval_ms &&
		    now.heartbeat_ms == c->pace.heartbeat_ms && now.take_over == c->pace.take_over;

	c->pace = now;
	if (!same) {
		keep_otherwise(c, &nrt, c->nrt);
		keep_otherwise(c, &numatopology, c->numatopology);
	}
	reports_changed(c);
}

void reports_stop(struct cluster *c)
{
	apply_close(steal(c->nrt));
	apply_close(steal(c->numatopology));
}

void reports_changed(struct cluster *c)
{
	if (c->nrt)
		apply_changed(c->nrt);
	if (c->numatopology)
		apply_changed(c->numatopology);
}
