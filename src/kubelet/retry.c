#include <kubelet/retry.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <io/backoff.h>
#include <io/watch.h>
#include <numafit/mem.h>
#include <numafit/text.h>

enum { LISTENS_SOON_MS = 10 };
/* What a kubelet does not have it will not have before it is another one: so many times the longest
 * delay. */
enum { UNIMPLEMENTED_DELAYS = 10 };

struct retry {
	struct loop *loop;
	struct retry_options options;
	struct loop_timer *timer;
	struct watch *watch; /* of the socket, or of its directory while that is not there; NULL:
				neither can be watched */
	bool changed;        /* the socket, since the last attempt began */
	struct backoff backoff;
	struct {
		const char *event; /* NULL: nothing yet */
		bool bad;
		int reason;
	} reported;
};

static void retry_on_timer(void *ctx)
{
	struct retry *r = ctx;

	r->options.attempt(r->options.ctx);
}

static void retry_on_changed(void *ctx)
{
	struct retry *r = ctx;

	r->changed = true;
	retry_reset(r);
	retry_in(r, 0);
}

struct retry *retry_new(struct loop *l, const struct retry_options *o)
{
	struct retry *r = xcalloc(1, sizeof *r);

	r->loop = l;
	r->options = *o;
	r->timer = loop_timer_new(l, retry_on_timer, r);
	r->backoff = (struct backoff){.min_ms = o->min_ms, .max_ms = o->max_ms};
	retry_reset(r);
	retry_in(r, 0);
	return r;
}

static struct watch *watch_of_directory(struct retry *r)
{
	const char *slash = strrchr(r->options.socket, '/');
	char directory[PATH_MAX];

	if (!slash || (size_t)(slash - r->options.socket) >= sizeof directory)
		return NULL;
	(void)snprintf(directory, sizeof directory, "%.*s", (int)(slash - r->options.socket),
		r->options.socket);
	return watch_new(r->loop, directory, retry_on_changed, r);
}

void retry_begin(struct retry *r)
{
	r->changed = false;
	watch_close(r->watch); /* the directory may be another one by now */
	r->watch = watch_new(r->loop, r->options.socket, retry_on_changed, r);
	if (!r->watch) /* that comes with the first kubelet that serves it */
		r->watch = watch_of_directory(r);
}

void retry_in(struct retry *r, unsigned delay_ms)
{
	loop_timer_set(r->timer, r->changed ? LISTENS_SOON_MS : delay_ms);
}

void retry_later(struct retry *r)
{
	retry_in(r, backoff_next(&r->backoff, 0));
}

void retry_reset(struct retry *r)
{
	backoff_reset(&r->backoff);
}

void retry_report(struct retry *r, bool bad, const char *event, int reason, const char *text)
{
	if (text_equal(r->reported.event, event) && r->reported.bad == bad &&
		r->reported.reason == reason)
		return;
	r->reported.event = event;
	r->reported.bad = bad;
	r->reported.reason = reason;
	r->options.on_event(r->options.log, bad, event, text);
}

void retry_no_connection(struct retry *r, const struct err *e)
{
	bool bad = e->code != ENOENT && e->code != ECONNREFUSED && e->code != EAGAIN;

	retry_report(r, bad, r->options.waiting, bad ? -e->code : 0, e->text);
	retry_later(r);
}

/* What the end of a call means. Others than these are a no for good, as far as we can see. */
enum verdict { SAYS_NO, NOT_SERVED, NOT_NOW };
static const enum verdict verdicts[] = {
	[RPC_OK] = NOT_SERVED, /* a stream's end, before it said anything */
	[RPC_CANCELLED] = NOT_SERVED,
	[RPC_UNAVAILABLE] = NOT_SERVED,
	[RPC_UNIMPLEMENTED] = NOT_SERVED,
	[RPC_DEADLINE_EXCEEDED] = NOT_NOW,
	[RPC_RESOURCE_EXHAUSTED] = NOT_NOW,  /* the kubelet's limit of its rate */
	[RPC_FAILED_PRECONDITION] = NOT_NOW, /* it does not know all its pods yet */
};

void retry_ended(struct retry *r, enum rpc_code code, const char *text)
{
	size_t i = (size_t)code;
	enum verdict v = i < sizeof verdicts / sizeof verdicts[0] ? verdicts[i] : SAYS_NO;
	bool bad = v == SAYS_NO || (v == NOT_NOW && r->backoff.next_ms >= r->options.max_ms);
	struct err e;

	(void)err_set(&e, EIO, "%s: %s (gRPC status %d)", r->options.socket, text, (int)code);
	if (v == NOT_SERVED)
		retry_report(r, false, r->options.waiting, 0, e.text);
	else
		retry_report(r, bad, r->options.refused, (int)code, e.text);
	if (code == RPC_UNIMPLEMENTED)
		retry_in(r, UNIMPLEMENTED_DELAYS * r->options.max_ms);
	else
		retry_later(r);
}

void retry_unreadable(struct retry *r, const struct err *e)
{
	retry_report(r, true, r->options.refused, -e->code, e->text);
	retry_later(r);
}

void retry_free(struct retry *r)
{
	if (!r)
		return;
	watch_close(r->watch);
	loop_timer_close(r->timer);
	free(r);
}
