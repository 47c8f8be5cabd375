#ifndef NUMAFIT_TEST_RELOAD_RIG_H
#define NUMAFIT_TEST_RELOAD_RIG_H

#include <codec/fields_json.h>
#include <codec/placement_json.h>
#include <codec/status_json.h>
#include <host/discover.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit-cli/ask.h>
#include <numafitd/cluster.h>
#include <daemon-files/config.h>
#include <numafitd/daemon.h>

#include "live_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "fake_api.h"

/* A live daemon whose settings change: what the next container gets, and what `numafit status`
 * says. */

enum { STATUS_BYTES = 4 << 20, SET_MAX = PATH_MAX + 128 };

/* The API server, in the test that has one, and what it was asked. */
struct api_side {
	struct fake_api server;
	unsigned reports, watches;
	bool knows_us;
	char evicted[128]; /* pods, each after a blank */
	char event[2048], events[16384]; /* the last event, and all events */
	unsigned observed; /* patches of pods, and the last one */
	char observation[2048];
};

/* Its answer in *st, from *a. */
static inline void ask_status(struct rig *r, struct arena *a, struct status *st)
{
	char path[PATH_MAX + 64], *document;
	struct err e = {0};
	size_t len;

	(void)snprintf(path, sizeof path, "%s/numafitd.sock", r->daemon.run);
	if (ask_daemon(path, "status", &document, &len, &e) < 0)
		fail_msg("%s", e.text);
	arena_init(a, STATUS_BYTES);
	if (status_json_parse(document, len, a, st, &e) < 0)
		fail_msg("%s", e.text);
	free(document);
}

static inline bool has_policy(const struct fake_container *b, const char *policy)
{
	char text[64];

	(void)snprintf(text, sizeof text, "\"policy\":\"%s\"", policy);
	return strstr(b->placement, text);
}

static inline bool runs_on_cpu_0(const struct fake_container *b)
{
	const struct cpuset cpus = fake_container_cpus(b);

	return cpuset_has(&cpus, 0);
}

static inline int setup(void **state)
{
	struct rig *r = rig_new();

	json_seed();
	r->starts = true;
	r->runtime.nri_version = "0.13.0";
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	if (r->daemon.pid)
		(void)rig_end(&r->daemon, SIGKILL);
	if (r->api)
		fake_api_fini_on(&r->api->server);
	free(r->api);
	rig_free(r);
	return 0;
}

/* What comes now is placed by that policy, on reserved CPU 0 or not. */
static inline void assert_newcomer(struct rig *r, const char *policy, bool strict)
{
	struct fake_container *b = create(r, "new", 0);

	assert_non_null(b);
	if (!has_policy(b, policy))
		fail_msg("wanted %s: %s", policy, b->placement);
	assert_int_equal(runs_on_cpu_0(b), !strict);
	stop(r, b);
}

#endif
