#include <kubelet/registration_state.h>

#include <errno.h>
#include <numafit/mem.h>

/* Register, and its answer. */

/* Nobody there is usual when a kubelet starts or was killed: worth a report only if it lasts. */
static void register_not_answered(struct registration *r, bool usual, const struct err *e)
{
	unsigned ms = registration_grow(&r->connect_ms, r->o.connect_max_ms);

	registration_enter(r, REGISTRATION_CONNECTING, ms);
	if (!usual || ms == r->o.connect_max_ms)
		registration_report(r, !usual, "device-plugin-waiting", e);
}

static void register_refused(struct registration *r, const char *event, const struct err *e)
{
	registration_enter(
		r, REGISTRATION_CONNECTING, registration_grow(&r->refused_ms, r->o.refused_max_ms));
	registration_report(r, true, event, e);
}

void registration_not_watched(struct registration *r)
{
	struct err e;

	(void)err_set(&e, ETIMEDOUT,
		"the kubelet accepted %s and has not come to watch it in %u ms: its log says why",
		r->o.resource, r->o.watch_ms);
	register_refused(r, "device-plugin-not-watched", &e);
}

static void register_on_reply(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len; /* it has no fields */
}

static void register_on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct registration *r = ctx;
	struct err e;

	r->call = NULL;
	if (code == RPC_OK) {
		r->connect_ms = r->o.connect_min_ms;
		if (r->nr_streams)
			registration_go_up(r);
		else
			registration_enter(r, REGISTRATION_EXPECTING, r->o.watch_ms);
	} else if (code == RPC_UNAVAILABLE) {
		(void)err_set(&e, ECONNRESET, "the kubelet went away before it answered: %s", text);
		register_not_answered(r, true, &e);
	} else if (code == RPC_DEADLINE_EXCEEDED) {
		(void)err_set(&e, ETIMEDOUT,
			"no answer in %u ms: the kubelet must reach our socket in the same "
			"directory as its own",
			r->o.register_ms);
		register_refused(r, "device-plugin-refused", &e);
	} else {
		(void)err_set(&e, EPROTO, "the kubelet refuses %s: %s (status %d)", r->o.resource,
			text, (int)code);
		register_refused(r, "device-plugin-refused", &e);
	}
}

static void register_with_kubelet(struct registration *r)
{
	struct rpc_request request = {.socket = plugin_files_kubelet_path(r->files),
		.method = REGISTRATION_REGISTER_PATH,
		.kind = RPC_UNARY,
		.data = r->request.data,
		.len = r->request.len,
		.timeout_ms = r->o.register_ms};
	struct rpc_call_events events = {r, register_on_reply, register_on_ended};
	struct err e = {0};

	r->call = rpc_call_start(r->p, &request, &events, &e);
	if (!r->call) {
		register_not_answered(
			r, e.code == ECONNREFUSED || e.code == ENOENT || e.code == EAGAIN, &e);
		return;
	}
	if (registration_ms_since(r->asked_ns) > 2 * r->o.connect_max_ms)
		r->pace_ms = r->o.connect_min_ms;
	else
		(void)registration_grow(&r->pace_ms, r->o.connect_max_ms);
	r->asked_ns = loop_monotonic_ns();
	registration_enter(r, REGISTRATION_REGISTERING, registration_seldom_ms(r));
}

/* A kubelet that starts removes every socket in its directory, and cannot call us back then: what
 * is on its way would hang until its own deadline. */
void registration_check_call(struct registration *r)
{
	bool bound = plugin_files_bound(r->files);
	struct err e;

	if (plugin_files_kubelet(r->files) == KUBELET_SOCKET_KNOWN && bound)
		return;
	rpc_call_cancel(steal(r->call));
	registration_enter(r, REGISTRATION_CONNECTING, 0);
	if (!bound && r->pace_ms == r->o.connect_max_ms) {
		(void)err_set(&e, ENOENT, "somebody removes %s again and again", r->o.endpoint);
		registration_report(r, true, "device-plugin-no-socket", &e);
	}
}

/* The attempt. */

static void registration_wait(
	struct registration *r, unsigned ms, bool bad, const char *event, const struct err *e)
{
	registration_enter(r, REGISTRATION_WAITING, ms);
	registration_report(r, bad, event, e);
}

static bool has_directory(struct registration *r)
{
	struct err e;

	if (plugin_files_directory(r->files, &e) == 0)
		return true;
	registration_wait(r, r->o.connect_max_ms, true, "device-plugin-no-directory", &e);
	return false;
}

static bool has_socket(struct registration *r)
{
	struct err e = {0};

	if (plugin_files_bind(r->files, &e) == 0)
		return true;
	if (e.code == ENOENT) /* the kubelet is at it just now */
		register_not_answered(r, true, &e);
	else
		registration_wait(r, r->o.connect_max_ms, true, "device-plugin-no-socket", &e);
	return false;
}

static bool has_kubelet(struct registration *r)
{
	struct err e;

	if (plugin_files_kubelet(r->files) != KUBELET_SOCKET_MISSING)
		return true;
	(void)err_set(&e, ENOENT, "no %s: it comes when the kubelet starts",
		plugin_files_kubelet_path(r->files));
	registration_wait(r, registration_seldom_ms(r), false, "device-plugin-waiting", &e);
	return false;
}

void registration_attempt(struct registration *r)
{
	unsigned asked_ms = registration_ms_since(r->asked_ns);

	if (r->nr_streams) {
		registration_end_streams(r);
		return;
	}
	if (!has_directory(r) || !has_socket(r) || !has_kubelet(r))
		return;
	if (registration_is_another(
		    r)) { /* the sooner it knows us, the fewer pods it has to refuse */
		registration_reset_waits(r);
		r->pace_ms = r->o.connect_min_ms;
	}
	plugin_files_know(r->files);
	if (asked_ms < r->pace_ms)
		registration_enter(r, REGISTRATION_CONNECTING, r->pace_ms - asked_ms);
	else
		register_with_kubelet(r);
}
