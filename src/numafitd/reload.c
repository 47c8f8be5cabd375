/* The config file while the daemon runs. What it says now is read, checked as a whole, and then put
 * in force at once, between two events of the loop; or nothing of it is. */
#include "cluster.h"
#include <daemon-files/config.h>
#include "daemon.h"
#include "services.h"
#include "pool.h"
#include "quiet.h"
#include "quota.h"
#include "sweep.h"
#include "updater.h"

#include <dra-driver/driver.h>
#include <io/digest.h>
#include <io/log.h>
#include <io/watch.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

/* A change comes as several events, and a file that is written in place comes in pieces. */
enum { SETTLE_MS = 100, CHANGES_TEXT_MAX = 2048, KEYS_TEXT_MAX = 512 };

struct reload {
	struct file_watch file;
	struct loop_timer *settled;
	void (*reloaded)(struct daemon *d);
	uint64_t reloads, refusals;
	struct err refused;          /* why what was read last is not in force; code 0: it is */
	char restart[KEYS_TEXT_MAX]; /* keys that wait for a restart */
	bool unreadable, must_restart;
	struct loop_timer
		*turn; /* puts in force what the file says now, at due_ns; 0: nothing waits */
	uint64_t due_ns;
	char digest[DIGEST_TEXT_MAX]; /* of the file in force */
};

/* Those who keep something of the settings for themselves. */
static void (*const parts_changed[])(struct daemon *d) = {
	advice_settings_changed,
	sweep_settings_changed,
	recorder_write_anew, /* its first line holds the settings, and the pool may have changed */
	services_note_change,
	cluster_settings_changed,
};

/* Both values of the row as text; whether they differ. */
static bool differ(
	const struct settings *a, const struct settings *b, unsigned i, char *was, char *is)
{
	(void)settings_get(a, i, was, SETTING_TEXT_MAX);
	(void)settings_get(b, i, is, SETTING_TEXT_MAX);
	return !text_equal(was, is);
}

static const char *reload_value_shown(const char *value)
{
	return *value ? value : "not set";
}

/* "topologyManagerPolicy: none -> restricted; ..." of what has changed; how many there are. */
static unsigned list_changes(const struct settings *a, const struct settings *b, struct text *t)
{
	auto_free char *was = xcalloc(SETTING_TEXT_MAX, 1), *is = xcalloc(SETTING_TEXT_MAX, 1);
	struct setting_doc doc;
	unsigned nr = 0;

	for (unsigned i = 0; settings_doc(i, &doc); i++)
		if (differ(a, b, i, was, is))
			text_add(t, "%s%s: %s -> %s", nr++ ? "; " : "", doc.key,
				reload_value_shown(was), reload_value_shown(is));
	return nr;
}

/* The keys whose new value waits for a restart. */
static void list_waiting(
	const struct settings *asked, const struct settings *wanted, char keys[KEYS_TEXT_MAX])
{
	auto_free char *was = xcalloc(SETTING_TEXT_MAX, 1), *is = xcalloc(SETTING_TEXT_MAX, 1);
	struct setting_doc doc;
	struct text t;

	text_init(&t, keys, KEYS_TEXT_MAX);
	for (unsigned i = 0; settings_doc(i, &doc); i++)
		if (!doc.reloadable && differ(asked, wanted, i, was, is))
			text_add(&t, "%s%s", t.len ? ", " : "", doc.key);
}

/* All that can change changes, or nothing. */
static int put_settings_in_force(struct daemon *d, const struct settings *wanted, struct err *e)
{
	auto_free struct settings *before = xcalloc(1, sizeof *before),
				  *next = xcalloc(1, sizeof *next);
	int rc;

	*before = *next = d->settings;
	settings_reload(next, wanted);
	rc = settings_check_daemon(next, &d->topo, NULL, e); /* beside what cannot change now */
	if (rc)
		return err_add(e, rc, "with what needs a restart as it is");
	d->settings = *next;
	rc = engine_settings_changed(d->engine, e);
	if (rc)
		d->settings = *before;
	pool_follow_event(d);
	quota_note_all(d);
	quiet_note_all(d);
	dra_note_change(d->dra);
	updater_note_change(d);
	return rc;
}

static void tell_all(struct daemon *d)
{
	log_set_level(d->settings.log_level);
	log_set_format(d->settings.log_format);
	for (size_t i = 0; i < sizeof parts_changed / sizeof *parts_changed; i++)
		parts_changed[i](d);
}

static void log_reloaded(struct daemon *d, unsigned nr, const char *changes)
{
	char file[512], text[2 * CHANGES_TEXT_MAX];

	log_line(LOG_INFO, "config-reloaded", "file=%s keys=%u changed=%s",
		log_text(file, sizeof file,
			d->configured.config->from.file ? d->configured.config->from.file : ""),
		nr, log_text(text, sizeof text, nr ? changes : "nothing"));
	if (*d->configured.reload->restart)
		log_line(LOG_WARN, "config-needs-restart",
			"keys=\"%s\" action=\"restart numafitd: until then they stay as they are\"",
			d->configured.reload->restart);
}

static void log_sections(const struct daemon *d)
{
	const struct config_sections *s = &d->configured.sections;
	unsigned used = 0, waiting = 0;

	for (unsigned i = 0; i < s->nr; i++) {
		used += s->at[i].match == CONFIG_THIS_NODE;
		waiting += s->at[i].match == CONFIG_NEEDS_LABELS;
	}
	if (s->nr || s->off)
		log_line(LOG_INFO, "config-sections", "node=%s all=%u used=%u off=%s", d->node_name,
			s->nr, used, s->off ? "yes" : "no");
	if (waiting)
		log_line(LOG_WARN, "config-labels-unknown",
			"sections=%u text=\"they choose nodes by labels, and this node's are not "
			"known yet\" action=\"none, where the API server can be asked; else give "
			"--node-label\"",
			waiting);
}

/* Once for each time that settings are read. */
static void log_idle_settings(const struct settings *asked)
{
	struct idle_setting idle[IDLE_SETTINGS_MAX];
	unsigned nr = settings_idle(asked, idle);

	for (unsigned i = 0; i < nr; i++)
		log_line(LOG_WARN, "setting-changes-nothing",
			"key=%s text=\"it changes no decision: %s\" action=\"leave it out, or set "
			"what it belongs to\"",
			idle[i].key, idle[i].why);
}

static void log_version(const struct daemon *d)
{
	const struct config *c = d->configured.config;
	const char *from = c->kubelet_from == KUBELET_REMEMBERED ? "kubelet-remembered" : "kubelet";

	log_line(LOG_INFO, "kubernetes-version", "version=%s from=%s",
		kubernetes_words[d->settings.cpu_options.kubernetes],
		!c->by_kubelet ? "kubernetesVersion"
		: c->kubelet   ? from
			       : "newest");
}

static int reload(struct daemon *d, struct err *e)
{
	auto_free struct settings *wanted = xcalloc(1, sizeof *wanted);
	char changes[CHANGES_TEXT_MAX];
	struct config_sections sections;
	struct text t;
	int rc = config_read(d->configured.config, wanted, &sections, e);

	text_init(&t, changes, sizeof changes);
	if (!rc)
		rc = settings_check_daemon(wanted, &d->topo, NULL, e);
	auto_free struct settings *before = xcalloc(1, sizeof *before);
	*before = d->settings;
	if (!rc)
		rc = put_settings_in_force(d, wanted, e);
	if (rc)
		return rc;
	unsigned nr = list_changes(before, &d->settings, &t);
	list_waiting(&d->configured.asked, wanted, d->configured.reload->restart);
	d->configured.sections = sections;
	settings_reload(&d->configured.asked, wanted);
	if (nr)
		tell_all(d);
	log_reloaded(d, nr, changes);
	if (nr)
		log_idle_settings(wanted);
	log_sections(d);
	d->configured.reload->reloaded(d);
	return 0;
}

static void note_reload(struct daemon *d, int rc, const struct err *e)
{
	struct reload *r = d->configured.reload;
	char buf[2 * sizeof e->text];

	if (!rc) {
		r->reloads++;
		r->refused = (struct err){0};
		return;
	}
	r->refusals++;
	r->refused = *e;
	log_line(LOG_ERROR, "config-refused",
		"error=%s action=\"correct it: until then all settings stay as they are\"",
		log_text(buf, sizeof buf, e->text));
}

static void note_digest(const struct config *c, struct reload *r)
{
	(void)digest_text(c->from.text, c->from.len, r->digest);
}

static void reload_and_note(struct daemon *d)
{
	struct reload *r = d->configured.reload;
	struct err e = {0};
	int rc = reload(d, &e);

	loop_timer_stop(r->turn);
	r->due_ns = 0;
	if (!rc)
		note_digest(d->configured.config, r);
	note_reload(d, rc, &e);
}

/* What the settings depend on besides the file has changed. What the file says while it waits for
 * its turn is not put in force by that. */
static void reload_unless_it_waits(struct daemon *d)
{
	if (!d->configured.reload->due_ns)
		reload_and_note(d);
}

/* Whether the file is another one than before, or is there again. */
static bool is_news(struct daemon *d)
{
	struct reload *r = d->configured.reload;
	bool was_unreadable = r->unreadable;
	struct err e = {0};
	int rc = config_read_file(d->configured.config, &e);

	r->unreadable = rc < 0;
	if (rc < 0 && !text_equal(e.text, r->refused.text))
		note_reload(d, rc, &e);
	return rc > 0 || (!rc && was_unreadable);
}

uint64_t reload_turn_of_node(uint64_t delay_ms, const char *node)
{
	unsigned char hash[DIGEST_BYTES];
	uint64_t number = 0;

	(void)digest(node, strlen(node), hash);
	for (unsigned i = 0; i < sizeof number; i++)
		number = number << 8 | hash[i];
	return delay_ms ? number % delay_ms : 0;
}

/* How long the file, as it was read last, waits; 0: it is wrong, changes nothing, or has no delay.
 */
static uint64_t time_to_wait(struct daemon *d)
{
	auto_free struct settings *wanted = xcalloc(1, sizeof *wanted);
	auto_free char *was = xcalloc(SETTING_TEXT_MAX, 1), *is = xcalloc(SETTING_TEXT_MAX, 1);
	struct config_sections sections;
	struct setting_doc doc;
	bool changes = false;

	if (config_read(d->configured.config, wanted, &sections, NULL) ||
		settings_check_daemon(wanted, &d->topo, NULL, NULL))
		return 0;
	for (unsigned i = 0; settings_doc(i, &doc) && !changes; i++)
		changes = differ(&d->configured.asked, wanted, i, was, is);
	return changes ? reload_turn_of_node(wanted->rollout_delay_ms, d->node_name) : 0;
}

static void reload_at_turn(void *ctx)
{
	reload_and_note(ctx);
}

/* The file, or its directory's ..data, was touched. */
static void reload_look_at_file(void *ctx)
{
	struct daemon *d = ctx;
	struct reload *r = d->configured.reload;

	if (!is_news(d))
		return;
	uint64_t wait_ms = time_to_wait(d);
	if (!wait_ms) {
		reload_and_note(d);
		return;
	}
	r->due_ns = loop_monotonic_ns() + wait_ms * NS_PER_MS;
	r->refused = (struct err){0};
	loop_timer_set(r->turn, wait_ms);
	log_line(LOG_INFO, "config-waits",
		"seconds=%llu text=\"the settings file has changed, and is put in force then: "
		"rolloutDelay\" action=\"none; SIGHUP puts it in force now\"",
		(unsigned long long)((wait_ms + MS_PER_S - 1) / MS_PER_S));
}

static void config_touched(void *ctx)
{
	struct daemon *d = ctx;

	loop_timer_set(d->configured.reload->settled, SETTLE_MS);
}

/* Somebody who sends a signal wants an answer, be it the same as before. */
static void asked_to(void *ctx)
{
	struct daemon *d = ctx;

	d->configured.reload->refused = (struct err){0};
	(void)is_news(d);
	if (!d->configured.config->from.file)
		log_line(LOG_INFO, "no-config-file", "text=\"SIGHUP has nothing to read\"");
	else if (!d->configured.reload->unreadable)
		reload_and_note(d);
}

int reload_start(struct daemon *d, void (*reloaded)(struct daemon *d), struct err *e)
{
	const char *file = d->configured.config->from.file;

	d->configured.reload = xcalloc(1, sizeof *d->configured.reload);
	d->configured.reload->reloaded = reloaded;
	d->configured.reload->settled = loop_timer_new(d->loop, reload_look_at_file, d);
	d->configured.reload->turn = loop_timer_new(d->loop, reload_at_turn, d);
	if (file)
		note_digest(d->configured.config, d->configured.reload);
	if (file &&
		!file_watch_start(&d->configured.reload->file, d->loop, file, config_touched, d))
		log_line(LOG_WARN, "config-not-watched",
			"file=%s action=\"send SIGHUP when it has changed\"", file);
	log_sections(d);
	log_idle_settings(&d->configured.asked);
	log_version(d);
	return loop_on_signal(d->loop, SIGHUP, asked_to, d)
		       ? err_set(e, EIO, "the handler of SIGHUP cannot be set")
		       : 0;
}

void reload_stop(struct daemon *d)
{
	struct reload *r = d->configured.reload;

	if (!r)
		return;
	file_watch_stop(&r->file);
	loop_timer_close(r->settled);
	loop_timer_close(r->turn);
	free(r);
	d->configured.reload = NULL;
}

bool reload_wants_labels(const struct daemon *d)
{
	return d->configured.sections.by_labels && !d->configured.config->labels_given;
}

void reload_set_labels(struct daemon *d, const struct key_value *labels, size_t nr)
{
	bool first = !d->configured.config->knows_labels;
	char buf[2 * sizeof d->configured.reload->refused.text];
	struct err e;
	int rc =
		config_take_labels(d->configured.config, labels, nr, d->settings.run_directory, &e);

	if (rc < 0)
		log_line(LOG_WARN, "labels-not-kept",
			"error=%s action=\"none now: a restart asks for them once more\"",
			log_text(buf, sizeof buf, e.text));
	if (!rc || !d->configured.sections.by_labels)
		return;
	reload_unless_it_waits(d);
	/* who could not keep them would not know them the next time either */
	if (!first || rc < 0 || !*d->configured.reload->restart || d->runtime.launch.name)
		return;
	d->configured.reload->must_restart = true;
	loop_stop(d->loop);
}

void reload_set_kubelet(struct daemon *d, const char *kubelet_version)
{
	struct config *c = d->configured.config;
	bool remembered = c->kubelet_from == KUBELET_REMEMBERED;
	enum kubernetes_version before = c->kubelet;
	char buf[2 * sizeof d->configured.reload->refused.text];
	struct err e;

	if (config_take_kubelet(c, kubelet_version, d->settings.run_directory, &e) < 0)
		log_line(LOG_WARN, "kubelet-version-not-kept",
			"error=%s action=\"none now: a start without the API server decides as the "
			"newest kubelet does, unless kubernetesVersion is set\"",
			log_text(buf, sizeof buf, e.text));
	if (!c->by_kubelet)
		return;
	if (c->kubelet != before)
		reload_unless_it_waits(d);
	if (c->kubelet != before || remembered)
		log_version(d);
}

int reload_verdict(const struct daemon *d, struct err *e)
{
	return d->configured.reload->must_restart
		       ? err_set(e, EAGAIN,
				 "the node's labels are known now, and choose settings that need a "
				 "restart (%s): start it again",
				 d->configured.reload->restart)
		       : 0;
}

static uint64_t time_left_ms(const struct reload *r)
{
	uint64_t now = loop_monotonic_ns();

	if (!r->due_ns)
		return 0;
	return r->due_ns > now ? (r->due_ns - now + NS_PER_MS - 1) / NS_PER_MS : 1;
}

bool reload_status(const struct daemon *d, struct status_config *out)
{
	const struct reload *r = d->configured.reload;

	if (!r || !d->configured.config->from.file)
		return false;
	*out = (struct status_config){
		.file = d->configured.config->from.file,
		.refused = r->refused.code ? r->refused.text : NULL,
		.restart = *r->restart ? r->restart : NULL,
		.digest = *r->digest ? r->digest : NULL,
		.waits_ms = time_left_ms(r),
		.reloads = r->reloads,
		.refusals = r->refusals,
	};
	return true;
}
