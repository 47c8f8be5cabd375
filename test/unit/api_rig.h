#ifndef API_RIG_H
#define API_RIG_H

#include <apiserver/api.h>

#include <apiserver/api_private.h>
#include <apiserver/auth.h>
#include <codec/api_json.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "fake_api.h"

/* Calls against an API server of ours that follows a script, for test_api.c and
 * test_api_credentials.c. */

enum {
	SOON_MS = 50,
	NEVER_MS = 3600000,
	PIECE = 1 << 20,
	ANSWER_LIMIT = 4 << 20,
	RETRY_AFTER_MAX_MS = 300000,
	VALUE_MAX = 256
};

/* What an answer was. */
struct answered {
	unsigned nr;
	int status;
	bool again, has_body;
	unsigned after_ms;
	char reason[64], message[512], name[64];
};

struct world {
	struct fake_api f;
	struct api_options o;
	struct api *api;
	struct answered answered;
	char data[256]; /* of a stream */
	int data_rc;
	/* who we are, instead of apiserver/auth.c, which sends none over plain HTTP */
	char url[64], header[64];
	const char *token;
	bool is_old, unreadable, no_server;
	unsigned renewed;
	struct loop_timer *flood;
	char *piece;
	struct api_call *victim;
};

/* auth.h */

struct auth {
	struct world *w;
};

struct auth *auth_new(const struct api_options *o, struct err *e)
{
	struct auth *a = xcalloc(1, sizeof *a);

	a->w = o->ctx;
	if (!a->w->no_server) {
		a->w->renewed = 0;
		(void)auth_renew(a, e);
		return a;
	}
	(void)err_set(e, ENOENT, "no kubeconfig");
	free(a);
	return NULL;
}

void auth_free(struct auth *a)
{
	free(a);
}

bool auth_is_old(const struct auth *a)
{
	return a->w->is_old;
}

int auth_renew(struct auth *a, struct err *e)
{
	struct world *w = a->w;

	w->renewed++;
	w->is_old = false;
	if (w->unreadable)
		return err_set(e, ENOENT, "no token");
	(void)snprintf(w->header, sizeof w->header, "Authorization: Bearer %s", w->token);
	return 1; /* http_client_trust() is called each time */
}

const char *auth_url(const struct auth *a)
{
	return a->w->url;
}

const struct http_trust *auth_trust(const struct auth *a)
{
	static const struct http_trust none;

	(void)a;
	return &none;
}

const char *auth_header(const struct auth *a)
{
	return a->w->token ? a->w->header : NULL;
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static void on_done(void *ctx, const struct api_answer *a)
{
	struct world *w = ctx;
	struct api_meta meta = {.name = ""};

	if (a->body)
		api_json_meta(a->body, &meta);
	w->answered.nr++;
	w->answered.status = a->status;
	w->answered.again = a->again;
	w->answered.has_body = a->body;
	w->answered.after_ms = a->after_ms;
	(void)text_copy(w->answered.reason, sizeof w->answered.reason, a->reason);
	(void)text_copy(w->answered.message, sizeof w->answered.message, a->message);
	(void)text_copy(w->answered.name, sizeof w->answered.name, meta.name);
	loop_stop(w->f.loop);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	fake_api_init(&w->f);
	(void)snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u", (unsigned)w->f.port);
	w->token = "old";
	w->o = (struct api_options){
		.user_agent = "tester/1",
		.timeout_ms = NEVER_MS,
		.ctx = w,
		.on_event = on_event,
	};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	loop_timer_close(w->flood);
	api_free(w->api);
	fake_api_fini(&w->f);
	free(w->piece);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	struct err e = {0};

	w->api = api_new(w->f.loop, &w->o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
}

static void begin_with(struct world *w, const struct fake_answer *script, size_t nr)
{
	fake_api_script(&w->f, script, nr);
	begin(w);
}

#define BEGIN(w, script) begin_with((w), (script), sizeof(script) / sizeof *(script))

static const struct answered *get(struct world *w, const char *path)
{
	unsigned before = w->answered.nr;

	(void)api_call(w->api, &(struct api_ask){.path = path}, w, on_done);
	assert_int_equal(w->answered.nr, before); /* in a later turn */
	FAKE_UNTIL(&w->f, w->answered.nr > before);
	return &w->answered;
}

#define STATUS(code, reason, message, details)                                                     \
	"{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"" message \
	"\",\"details\":{" details "}}"
#define OBJECT "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}"

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
