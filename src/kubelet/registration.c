#include <kubelet/registration.h>

#include <assert.h>
#include <kubelet/registration_state.h>
#include <numafit/mem.h>
#include <numafit/text.h>

enum {
	CONNECT_MIN_MS = 10,
	CONNECT_MAX_MS = 1000,
	REGISTER_MS = 15000, /* the kubelet gives 10 s to its own connecting to us */
	WATCH_MS = 10000,
	ENDING_MS = 1000,
	REFUSED_MIN_MS = 1000,
	REFUSED_MAX_MS = 60000
};
enum { REQUEST_MAX = 8 << 10 };

/* What happens in each state. Every entry into one sets its time, and when that is up a look is
 * planned before anything else: none is left by accident only.
 *
 *             | the files may have changed     | streams have come or gone  | its time is up
 * ------------+--------------------------------+----------------------------+---------------------
 * waiting     | attempt                        | some: up                   | attempt
 * connecting  | another kubelet: attempt       | some: up                   | attempt
 * registering | another kubelet, or our socket |                            | as if files changed
 *             | is gone: cancel, connecting    |                            |
 * expecting   | another kubelet: attempt       | some: up                   | not watched:
 *             |                                |                            | connecting, later
 * up          | another kubelet: ending;       | fewer: ending, or none and | as if files changed
 *             | our socket is gone: bind it    | another kubelet: connecting|
 * ending      | the kubelet ended the streams, | none: pause                | attempt
 *             | and there is another: attempt  |                            |
 *
 * An attempt ends in: ending (there are streams), waiting (no directory, no socket of ours or of
 * the kubelet), connecting (refused, or too soon after the last Register), registering. That ends
 * in: up, expecting (yes), connecting (no). */
static void attempt_if_another(struct registration *r);
static void check_up(struct registration *r);
static void check_pause(struct registration *r);
static void watched_already(struct registration *r, unsigned before);
static void perhaps_lost(struct registration *r, unsigned before);
static void perhaps_ended(struct registration *r, unsigned before);
static void ignore_streams(struct registration *r, unsigned before);

static const struct {
	const char *name;
	void (*looked)(struct registration *r);
	void (*watched)(struct registration *r, unsigned before); /* so many streams */
	void (*timed)(struct registration *r);
} states[] = {
	[REGISTRATION_WAITING] = {"waiting", registration_attempt, watched_already,
		registration_attempt},
	[REGISTRATION_CONNECTING] = {"connecting", attempt_if_another, watched_already,
		registration_attempt},
	[REGISTRATION_REGISTERING] = {"registering", registration_check_call, ignore_streams,
		registration_check_call},
	[REGISTRATION_EXPECTING] = {"expecting", attempt_if_another, watched_already,
		registration_not_watched},
	[REGISTRATION_UP] = {"up", check_up, perhaps_lost, check_up},
	[REGISTRATION_ENDING] = {"ending", check_pause, perhaps_ended, registration_attempt},
};

const char *registration_state_name(enum registration_state s)
{
	return states[s].name;
}

static void ignore_streams(struct registration *r, unsigned before)
{
	(void)r, (void)before;
}

static void attempt_if_another(struct registration *r)
{
	if (registration_is_another(r))
		registration_attempt(r);
}

/* The end of the streams. */

static void perhaps_ended(struct registration *r, unsigned before)
{
	(void)before;
	if (!r->nr_streams)
		registration_enter(r, REGISTRATION_ENDING, r->o.ending_ms);
}

/* The kubelet has ended them, perhaps by its own end: then there is nobody to wait for. */
static void pause_for(struct registration *r, unsigned ms)
{
	r->hurry = true;
	if (plugin_files_kubelet(r->files) == KUBELET_SOCKET_KNOWN)
		registration_enter(r, REGISTRATION_ENDING, ms);
	else
		registration_enter(r, REGISTRATION_CONNECTING, 0);
}

static void check_pause(struct registration *r)
{
	if (r->hurry && !r->nr_streams)
		attempt_if_another(r);
}

/* While the kubelet watches. */

/* Also when the kubelet comes to watch after a Register that we had given up. */
static void watched_already(struct registration *r, unsigned before)
{
	(void)before;
	if (r->nr_streams && !registration_is_another(r))
		registration_go_up(r);
}

static void report_lost(struct registration *r, const char *why)
{
	struct err e;

	(void)err_set(&e, 0, "%s: %s is registered anew", why, r->o.resource);
	registration_report(r, false, "device-plugin-lost", &e);
}

/* A kubelet that lets go of us again and again is asked less and less often. */
static unsigned pause_after_loss(struct registration *r)
{
	unsigned ms = 0;

	if (registration_ms_since(r->up_ns) >= r->refused_ms)
		r->refused_ms = r->o.refused_min_ms;
	else
		ms = registration_grow(&r->refused_ms, r->o.refused_max_ms);
	return ms > r->o.ending_ms ? ms : r->o.ending_ms;
}

/* One of several streams may be the kubelet's, or that of somebody else: when one ends,
 * the rest proves nothing. */
static void perhaps_lost(struct registration *r, unsigned before)
{
	if (r->nr_streams > before)
		return;
	report_lost(r, "a watch has ended");
	if (r->nr_streams)
		registration_end_streams(r);
	else
		pause_for(r, pause_after_loss(r));
}

static void check_up(struct registration *r)
{
	struct err e = {0};

	if (registration_is_another(r)) {
		report_lost(r, "there is another kubelet");
		registration_end_streams(r);
	} else {
		(void)plugin_files_bind(r->files, &e); /* the next attempt reports what is wrong */
	}
}

/* Events. */

static void registration_on_files(void *ctx)
{
	struct registration *r = ctx;

	states[r->state].looked(r);
}

static void registration_on_time(void *ctx)
{
	struct registration *r = ctx;

	loop_timer_set(r->timer, registration_seldom_ms(r));
	plugin_files_watch(r->files);
	states[r->state].timed(r);
}

void registration_watched(struct registration *r, unsigned nr_streams)
{
	unsigned before = r->nr_streams;

	r->nr_streams = nr_streams;
	if (nr_streams != before)
		states[r->state].watched(r, before);
}

enum registration_state registration_state(const struct registration *r)
{
	return r->state;
}

static struct registration_options with_defaults(struct registration_options o)
{
	o.connect_min_ms = o.connect_min_ms ?: CONNECT_MIN_MS;
	o.connect_max_ms = o.connect_max_ms ?: CONNECT_MAX_MS;
	o.register_ms = o.register_ms ?: REGISTER_MS;
	o.watch_ms = o.watch_ms ?: WATCH_MS;
	o.ending_ms = o.ending_ms ?: ENDING_MS;
	o.refused_min_ms = o.refused_min_ms ?: REFUSED_MIN_MS;
	o.refused_max_ms = o.refused_max_ms ?: REFUSED_MAX_MS;
	return o;
}

struct registration *registration_new(struct loop *l, struct rpc_pump *p, struct rpc_server *s,
	const struct registration_options *o, const struct registration_handler *handler)
{
	struct registration *r = xcalloc(1, sizeof *r);
	struct plugin_registration plugin = {o->endpoint, o->resource, o->options};

	r->p = p;
	r->o = with_defaults(*o);
	r->handler = handler;
	r->files = plugin_files_new(l, s, o->directory, o->endpoint, registration_on_files, r);
	r->timer = loop_timer_new(l, registration_on_time, r);
	r->pace_ms = r->o.connect_min_ms;
	registration_reset_waits(r);
	arena_init(&r->a, REQUEST_MAX);
	if (registration_encode(&plugin, &r->a, &r->request, NULL) < 0)
		assert(!"the endpoint and the resource are names of ours");
	registration_enter(r, REGISTRATION_WAITING, 0);
	return r;
}

void registration_close(struct registration *r)
{
	if (!r)
		return;
	rpc_call_cancel(r->call);
	loop_timer_close(r->timer);
	plugin_files_close(r->files);
	arena_fini(&r->a);
	free(r);
}
