#ifndef TEST_FAKE_CALLS_H
#define TEST_FAKE_CALLS_H

#include <apiserver/api.h>
#include <codec/api_json.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/vec.h>

/* An API server behind the functions of api.h: calls wait until the test answers them. They take
 * the place of api.c's, which is not linked then. */

enum { CALLS_PATIENCE_MS = 60000, CALLS_LOG_MAX = 4096 };

struct api {
	struct loop *loop;
	struct loop_timer *deadline;
	struct {
		VEC(struct api_call *);
	} open; /* asked, and not answered yet; in that order */
	unsigned asked, cancelled;
	char log[CALLS_LOG_MAX]; /* events, each after a blank; a bad one has "!" */
	char last_text[sizeof((struct err *)0)->text];
};

struct api_call {
	struct api *api;
	char *method, *path, *type, *body;
	void *ctx;
	void (*done)(void *ctx, const struct api_answer *answer);
};

static inline void calls_free_one(struct api_call *c)
{
	struct api *a = c->api;

	for (size_t i = 0; i < a->open.nr; i++)
		if (a->open.at[i] == c) {
			vec_remove(&a->open, i);
			break;
		}
	free(c->method);
	free(c->path);
	free(c->type);
	free(c->body);
	free(c);
}

struct api_call *api_call(struct api *a, const struct api_ask *ask, void *ctx,
	void (*done)(void *ctx, const struct api_answer *answer))
{
	struct api_call *c = xcalloc(1, sizeof *c);

	*c = (struct api_call){a, xstrdup(ask->method), xstrdup(ask->path),
		xstrdup(ask->content_type), xcalloc(1, ask->len + 1), ctx, done};
	if (ask->len)
		memcpy(c->body, ask->body, ask->len);
	*vec_push(&a->open) = c;
	a->asked++;
	loop_stop(a->loop);
	return c;
}

void api_cancel(struct api_call *call)
{
	if (!call)
		return;
	call->api->cancelled++;
	calls_free_one(call);
}

static inline void calls_too_slow(void *ctx)
{
	struct api *a = ctx;

	fail_msg("nothing happens; events:%s", a->log);
}

static inline void calls_init(struct api *a)
{
	*a = (struct api){.loop = loop_new()};
	a->deadline = loop_timer_new(a->loop, calls_too_slow, a);
	loop_timer_set(a->deadline, CALLS_PATIENCE_MS);
}

/* After what is tested was closed: it leaves no calls. */
static inline void calls_fini(struct api *a)
{
	assert_int_equal(a->open.nr, 0);
	vec_fini(&a->open);
	loop_free(a->loop);
}

/* Until so many calls were made, since the start. */
static inline void calls_until(struct api *a, unsigned asked)
{
	while (a->asked < asked)
		loop_run(a->loop);
	assert_int_equal(a->asked, asked);
}

static inline void calls_stop(void *ctx)
{
	loop_stop(ctx);
}

/* Let so much time pass, whatever is asked meanwhile. */
static inline void calls_pass(struct api *a, unsigned ms)
{
	uint64_t until = loop_monotonic_ns() + ms * UINT64_C(1000000);
	struct loop_timer *t = loop_timer_new(a->loop, calls_stop, a->loop);

	while (loop_monotonic_ns() < until) {
		loop_timer_set(t, 1);
		loop_run(a->loop);
	}
	loop_timer_close(t);
}

/* The oldest call that waits. */
static inline struct api_call *calls_first(struct api *a)
{
	assert_true(a->open.nr > 0);
	return a->open.at[0];
}

/* Answers it as api.c would: the body is a Status's, or NULL. */
static inline void calls_answer_with(struct api *a, struct api_answer answer, const char *body)
{
	static const int passing[] = {0, 429, 500, 502, 503, 504};
	struct api_call *c = calls_first(a);
	struct api_status s = {.reason = "", .message = "the server's words"};

	if (body)
		assert_int_equal(api_json_parse(body, strlen(body), &answer.body, NULL), 0);
	if (body)
		(void)api_json_status(answer.body, &s);
	answer.reason = s.reason;
	answer.message = s.message;
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		answer.again = answer.again || answer.status == passing[i];
	void (*done)(void *, const struct api_answer *) = c->done;
	void *ctx = c->ctx;
	calls_free_one(c);
	done(ctx, &answer);
	api_json_free(answer.body);
}

static inline void calls_answer(struct api *a, int status)
{
	calls_answer_with(a, (struct api_answer){.status = status}, NULL);
}

/* For on_event(), with the api as ctx. */
static inline void calls_log(void *ctx, bool bad, const char *event, const char *text)
{
	struct api *a = ctx;
	struct text t = {a->log, sizeof a->log, strlen(a->log), false};

	text_add(&t, " %s%s", bad ? "!" : "", event);
	(void)text_copy(a->last_text, sizeof a->last_text, text);
	loop_stop(a->loop);
}

#endif
