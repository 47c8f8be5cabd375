/* Whether the daemon can do its work, and what it lacks. */
#include "health.h"
#include "cluster.h"
#include "daemon.h"

#include <numafit/text.h>

/* livez says whether a restart would help, and none would but for a loop that stands still: then
 * nobody answers at all. readyz says whether containers are placed, or compared. It does not ask
 * for the API server: placing goes on without it, and a new version that is rolled out must not
 * wait for one that is away. Nor does it for credentials that cannot be used, or for a config file
 * that cannot be put in force: what was in force before goes on. Both are named beside the check,
 * by the log and by a metric. */
enum { LIVE = 1, READY = 2 };

static bool loop_turns(const struct daemon *d, struct text *why)
{
	(void)d, (void)why;
	return true;
}

static bool has_runtime(const struct daemon *d, struct text *why)
{
	if (nri_conn_state(d->runtime.conn) == NRI_READY)
		return true;
	text_add(why,
		"the container runtime is not connected, or has not reported yet what runs (%s)",
		d->runtime.launch.name ? "it has started numafitd itself" : d->settings.nri_socket);
	return false;
}

static bool can_record(const struct daemon *d, struct text *why)
{
	if (!d->recorder.error.code && !d->recorder.behind)
		return true;
	text_add(why, "%s",
		d->recorder.error.code ? d->recorder.error.text
				       : "it must be written anew before anything else can be");
	return false;
}

static bool has_settings(const struct daemon *d, struct text *why)
{
	struct status_config config;

	if (reload_status(d, &config) && config.refused)
		text_add(why, "the settings before it stay in force: %s", config.refused);
	return true;
}

static bool has_credentials(const struct daemon *d, struct text *why)
{
	struct status_apiserver apiserver;

	if (cluster_status(d, &apiserver) && apiserver.unusable)
		text_add(why, "the credentials for it cannot be used: %s", apiserver.unusable);
	return true;
}

static const struct check {
	const char *name;
	unsigned in;
	bool (*passes)(const struct daemon *d, struct text *why);
} checks[] = {
	{"loop", LIVE | READY, loop_turns},
	{"nri", READY, has_runtime},
	{"journal", READY, can_record},
	{"config", READY, has_settings},
	{"apiserver", READY, has_credentials},
};

static void one_line(char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			*text = ' ';
}

void health_check(const struct daemon *d, const char *which, struct health_verdict *out)
{
	unsigned in = text_equal(which, "readyz") ? READY : LIVE;
	struct text failures, all;

	out->ok = true;
	text_init(&failures, out->failures, sizeof out->failures);
	text_init(&all, out->all, sizeof out->all);
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		const struct check *c = &checks[i];
		char why[sizeof((struct err *)0)->text * 2];
		struct text t;

		if (!(c->in & in))
			continue;
		text_init(&t, why, sizeof why);
		bool ok = c->passes(d, &t);
		one_line(why);
		out->ok = out->ok && ok;
		if (!ok)
			text_add(&failures, "%s: %s\n", c->name, why);
		text_add(&all, "[%c]%s%s%s\n", ok ? '+' : '-', c->name, ok && !*why ? " ok" : ": ",
			why);
	}
	text_add(&all, "%s check %s\n", which, out->ok ? "passed" : "failed");
}
