#include <kubelet/pods.h>

#include <kubelet/retry.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/once.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

struct pods {
	struct rpc_pump *pump;
	const char *socket;
	unsigned retry_max_ms;
	const struct pods_handler *handler;
	struct retry *retry;
	struct rpc_call *call; /* the watch; NULL: there is none */
	bool synced;
	uint64_t synced_ns; /* since when */
	struct pod_store *store;
	struct once odd; /* what was wrong with pods that could not be read */
};

/* The watch */

static void watch_report_odd_pod(struct pods *p, const struct err *e)
{
	if (once_is_new(&p->odd, e->text))
		p->handler->on_event(p->handler->ctx, true, "pods-api-odd-pod", e->text);
}

static void watch_report_gone(const struct pods *p)
{
	if (p->handler->gone)
		p->handler->gone(p->handler->ctx);
}

static void watch_on_synced(struct pods *p)
{
	char text[sizeof "18446744073709551615 pods"];

	if (p->synced)
		return;
	p->synced = true;
	p->synced_ns = loop_monotonic_ns();
	pod_store_sweep(p->store);
	(void)snprintf(text, sizeof text, "%zu pod%s", pod_store_count(p->store),
		text_plural(pod_store_count(p->store)));
	retry_report(p->retry, false, "pods-api-synced", 0, text);
	watch_report_gone(p);
}

static void watch_on_pod(struct pods *p, const struct pods_event *event, struct arena *a)
{
	struct known_pod pod;
	const struct known_pod *kept;
	struct err e;

	int rc = pods_pod_decode(event->pod, a, &pod, &e);
	if (rc)
		watch_report_odd_pod(p, &e);
	else if (event->type == PODS_DELETED) {
		if (pod_store_remove(p->store, pod.pod.uid))
			watch_report_gone(p);
	} else if (pod_store_put(p->store, &pod, &kept) && p->handler->changed)
		p->handler->changed(p->handler->ctx, kept);
}

static void watch_on_message(void *ctx, const void *data, size_t len)
{
	struct pods *p = ctx;
	struct pods_event event;
	struct arena a;
	struct err e;

	arena_init(&a, PODS_MEMORY_MAX);
	if (pods_event_decode((struct blob){data, len}, &a, &event, &e) < 0)
		watch_report_odd_pod(p, &e);
	else if (event.type == PODS_SYNCED)
		watch_on_synced(p);
	else if (event.type != PODS_UNKNOWN)
		watch_on_pod(p, &event, &a);
	arena_fini(&a);
}

/* A server that ends each watch as soon as it is synced is not asked ten times a second: only what
 * has lasted for as long as the longest delay starts the delays over. A kubelet that restarts is
 * another matter, its socket is made anew. */
static void watch_on_lost(struct pods *p, enum rpc_code code, const char *text)
{
	uint64_t lasted_ms = (loop_monotonic_ns() - p->synced_ns) / NS_PER_MS;

	p->synced = false;
	if (lasted_ms >= p->retry_max_ms)
		retry_reset(p->retry);
	retry_report(p->retry, false, "pods-api-lost", (int)code, text);
	retry_later(p->retry);
}

static void watch_on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct pods *p = ctx;

	p->call = NULL;
	if (p->synced)
		watch_on_lost(p, code, text);
	else
		retry_ended(p->retry, code, text);
}

/* Without a deadline: a kubelet that is stuck does not get better by being asked again, and one
 * that dies closes the connection. */
static void watch_begin(void *ctx)
{
	struct pods *p = ctx;
	const struct rpc_request watch = {
		.socket = p->socket, .method = PODS_WATCH_PATH, .kind = RPC_STREAM};
	const struct rpc_call_events events = {p, watch_on_message, watch_on_ended};
	struct err e;

	if (p->call)
		return;
	pod_store_begin(p->store);
	retry_begin(p->retry);
	p->call = rpc_call_start(p->pump, &watch, &events, &e);
	if (!p->call)
		retry_no_connection(p->retry, &e);
}

struct pods *pods_new(struct loop *l, struct rpc_pump *pump, const struct pods_options *o,
	const struct pods_handler *handler)
{
	enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 60000 };
	struct pods *p = xcalloc(1, sizeof *p);

	p->pump = pump;
	p->store = pod_store_new();
	p->socket = o->socket;
	p->handler = handler;
	p->retry_max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS;
	p->retry = retry_new(l, &(struct retry_options){
					.socket = o->socket,
					.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
					.max_ms = p->retry_max_ms,
					.ctx = p,
					.attempt = watch_begin,
					.waiting = "pods-api-waiting",
					.refused = "pods-api-refused",
					.log = handler->ctx,
					.on_event = handler->on_event,
				});
	return p;
}

const struct known_pod *pods_find(const struct pods *p, const char *uid)
{
	return pod_store_find(p->store, uid);
}

size_t pods_count(const struct pods *p)
{
	return pod_store_count(p->store);
}

bool pods_synced(const struct pods *p)
{
	return p->synced;
}

void pods_close(struct pods *p)
{
	if (!p)
		return;
	rpc_call_cancel(p->call);
	retry_free(p->retry);
	pod_store_free(p->store);
	free(p);
}
