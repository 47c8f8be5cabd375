#ifndef REFLECTOR_RIG_H
#define REFLECTOR_RIG_H

#include <apiserver/reflector.h>

#include <codec/api_json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "fake_api.h"

/* A reflector against an API server of ours that follows a script, for test_reflector*.c. */

enum { SOON_MS = 50, RETRY_MIN_MS = 1, RETRY_MAX_MS = 4, NEVER_MS = 3600000, BIG = 5 << 20 };

struct world {
	struct fake_api f;
	struct api *api;
	struct reflector_options o;
	struct reflector *r;
	char reported[4096]; /* "begin", "+name:version", "-name", "synced", each after a blank */
	unsigned nr_synced;
};

static void note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct world *w, const char *fmt, ...)
{
	size_t had = strlen(w->reported);
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(w->reported + had, sizeof w->reported - had, fmt, ap);
	va_end(ap);
	assert_true(len > 0 && (size_t)len < sizeof w->reported - had);
	loop_stop(w->f.loop);
}

static void on_begin(void *ctx)
{
	note(ctx, " begin");
}

static void on_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct api_meta m;

	api_json_meta(object, &m);
	if (change == REFLECTOR_PUT)
		note(ctx, " +%s:%s", m.name, m.version);
	else
		note(ctx, " -%s", m.name);
}

static void on_synced(void *ctx)
{
	struct world *w = ctx;

	w->nr_synced++;
	note(w, " synced");
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

/* What the calls say is another test's. */
static void on_api_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx, (void)bad, (void)event, (void)text;
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	struct err e = {0};

	fake_api_init(&w->f);
	const struct api_options o = {.kubeconfig = w->f.kubeconfig,
		.user_agent = "tester/1",
		.timeout_ms = NEVER_MS,
		.on_event = on_api_event};
	w->api = api_new(w->f.loop, &o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
	w->o = (struct reflector_options){.path = "/pods",
		.query = "fieldSelector=a%3Db",
		.page = 2,
		.retry_min_ms = RETRY_MIN_MS,
		.retry_max_ms = RETRY_MAX_MS,
		.idle_ms = NEVER_MS};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	reflector_close(w->r);
	api_free(w->api);
	fake_api_fini(&w->f);
	free(w);
	return 0;
}

static void begin_with(struct world *w, const struct fake_answer *script, size_t nr)
{
	fake_api_script(&w->f, script, nr);
	w->r = reflector_new(w->api, &w->o,
		&(struct reflector_handler){w, on_begin, on_object, on_synced, on_event});
}

#define BEGIN(w, script) begin_with((w), (script), sizeof(script) / sizeof *(script))

#define UNTIL_NOTED(w, want)                                                                       \
	do {                                                                                       \
		FAKE_UNTIL(&(w)->f, strlen((w)->reported) >= strlen(want));                        \
		assert_string_equal((w)->reported, want);                                          \
	} while (0)
/* So many requests came. */
#define UNTIL_ASKED(w, want) FAKE_UNTIL(&(w)->f, (w)->f.asked >= (want))

#define META(name, version)                                                                        \
	"\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}"
#define OBJECT(name, version) "{" META(name, version) "}"
#define LIST(version, more, items)                                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                       \
	"\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define STATUS(code, message)      "{\"kind\":\"Status\",\"code\":" #code ",\"message\":\"" message "\"}"
#define ERROR(code, message)       "{\"type\":\"ERROR\",\"object\":" STATUS(code, message) "}\n"

#define LISTED LIST("5", "", OBJECT("a", "1"))
#define GOES_ON(version)                                                                           \
	{                                                                                          \
		.ask = "resourceVersion=" version, .how = FAKE_GOES_ON                             \
	}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
