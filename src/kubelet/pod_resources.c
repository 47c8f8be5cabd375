#include <kubelet/pod_resources.h>

#include <errno.h>
#include <kubelet/retry.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* All that one List has brought. */
struct answer {
	struct arena memory;
	struct pods_held held;
	const struct pod_held **by_name; /* ascending by namespace, then name; each once */
	size_t nr;
};

/* What GetAllocatableResources has brought. */
struct devices {
	struct arena memory;
	struct devices_allocatable all;
};

struct pod_resources {
	struct rpc_pump *pump;
	struct pod_resources_options options;
	const struct pod_resources_handler *handler;
	struct retry *retry;
	struct rpc_call *call; /* NULL: no question is on its way */
	uint64_t asked;        /* the number of the last question */
	uint64_t asked_ns;     /* and when */
	bool wanted;           /* somebody knows of a change since then */
	bool failing;          /* the last question: retry decides when the next one comes */
	struct err unreadable; /* what is wrong with the reply at hand; code 0: nothing */
	struct answer answer;
	uint64_t age; /* of the answer: the number of its question */
	struct rpc_call *devices_call;
	struct devices devices;
	struct err no_devices; /* logged: why they are not known; code 0: nothing */
};

/* The answer */

static int compare_pod_names(const struct pod_held *a, const struct pod_held *b)
{
	int rc = strcmp(a->ns, b->ns);

	return rc ? rc : strcmp(a->name, b->name);
}

static bool holds_something(const struct pod_held *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct container_held *c = &p->container[i];

		if (c->nr_devices || c->nr_memory || c->nr_claims || !cpuset_empty(&c->cpus))
			return true;
	}
	return false;
}

/* Of pods with the same name the one that counts comes last: one that holds something, or else the
 * one that the kubelet lists last. Kubelets before 1.34 list a pod that has ended, and whose name
 * another has by now, as well; it holds nothing, List itself takes its devices away. */
static int compare_entries(const void *a, const void *b)
{
	const struct pod_held *x = *(const struct pod_held *const *)a,
			      *y = *(const struct pod_held *const *)b;
	int rc = compare_pod_names(x, y);

	if (!rc)
		rc = (int)holds_something(x) - (int)holds_something(y);
	return rc ? rc : (x > y) - (x < y);
}

static int index_pods(struct answer *a, struct err *e)
{
	const struct pod_held **list = arena_array(&a->memory, a->held.nr, sizeof *list);

	if (!list)
		return err_set(e, EBADMSG, "%zu pods are too many", a->held.nr);
	for (size_t i = 0; i < a->held.nr; i++)
		list[i] = &a->held.pod[i];
	if (a->held.nr)
		qsort(list, a->held.nr, sizeof *list, compare_entries);
	for (size_t i = 0; i < a->held.nr; i++) {
		bool same = a->nr && compare_pod_names(list[a->nr - 1], list[i]) == 0;

		list[same ? a->nr - 1 : a->nr++] = list[i];
	}
	a->by_name = list;
	return 0;
}

static int read_list_reply(struct blob reply, struct answer *out, struct err *e)
{
	struct answer a = {0};

	arena_init(&a.memory, POD_RESOURCES_MEMORY_MAX);
	int rc = pod_resources_list_decode(reply, &a.memory, &a.held, e);
	if (!rc)
		rc = index_pods(&a, e);
	if (rc)
		arena_fini(&a.memory);
	else
		*out = a;
	return rc;
}

/* The question */

static void list_on_reply(void *ctx, const void *data, size_t len)
{
	struct pod_resources *r = ctx;
	struct answer fresh;

	if (read_list_reply((struct blob){data, len}, &fresh, &r->unreadable) < 0)
		return;
	arena_fini(&r->answer.memory);
	r->answer = fresh;
	r->age = r->asked;
}

/* The next question comes as soon as it may. */
static void ask_for_list_soon(struct pod_resources *r)
{
	uint64_t since_ms = (loop_monotonic_ns() - r->asked_ns) / NS_PER_MS;

	retry_in(r->retry, r->asked && since_ms < r->options.gap_ms
				   ? r->options.gap_ms - (unsigned)since_ms
				   : 0);
}

static void list_answered(struct pod_resources *r)
{
	char text[sizeof "of 18446744073709551615 pods"];

	(void)snprintf(text, sizeof text, "of %zu pod%s", r->answer.nr, text_plural(r->answer.nr));
	r->failing = false;
	retry_reset(r->retry);
	retry_in(r->retry, r->options.every_ms);
	if (r->wanted)
		ask_for_list_soon(r);
	retry_report(r->retry, false, "pod-resources-up", 0, text);
	r->handler->updated(r->handler->ctx, &r->answer.held);
}

static void list_on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct pod_resources *r = ctx;

	r->call = NULL;
	r->failing = true;
	if (r->unreadable.code)
		retry_unreadable(r->retry, &r->unreadable);
	else if (code != RPC_OK)
		retry_ended(r->retry, code, text);
	else
		list_answered(r);
}

/* The devices: asked for beside the pods, and nobody waits for them */

static bool same_devices(const struct devices_allocatable *a, const struct devices_allocatable *b)
{
	bool same = a->nr == b->nr;

	for (size_t i = 0; i < a->nr && same; i++) {
		const struct held_device *x = &a->device[i], *y = &b->device[i];

		same = text_equal(x->resource, y->resource) && text_equal(x->id, y->id) &&
		       x->nodes.nr == y->nodes.nr &&
		       (!x->nodes.nr || !memcmp(x->nodes.id, y->nodes.id,
						x->nodes.nr * sizeof *x->nodes.id));
	}
	return same;
}

static void log_no_devices(struct pod_resources *r, const struct err *e)
{
	if (text_equal(r->no_devices.text, e->text))
		return;
	r->no_devices = *e;
	r->handler->on_event(r->handler->ctx, true, "pod-resources-no-devices", e->text);
}

static void devices_on_reply(void *ctx, const void *data, size_t len)
{
	struct pod_resources *r = ctx;
	struct devices fresh = {0};
	struct err e;

	arena_init(&fresh.memory, POD_RESOURCES_MEMORY_MAX);
	if (pod_resources_allocatable_decode(
		    (struct blob){data, len}, &fresh.memory, &fresh.all, &e) < 0) {
		arena_fini(&fresh.memory);
		log_no_devices(r, &e);
		return;
	}
	bool changed = !same_devices(&fresh.all, &r->devices.all);
	arena_fini(&r->devices.memory);
	r->devices = fresh;
	r->no_devices = (struct err){0};
	if (changed && r->age)
		r->handler->updated(r->handler->ctx, &r->answer.held);
}

/* The other question logs a kubelet's end; its limit of calls and its delays leave this one to the
 * next time. */
static bool will_pass(enum rpc_code code)
{
	return code == RPC_UNAVAILABLE || code == RPC_CANCELLED || code == RPC_DEADLINE_EXCEEDED ||
	       code == RPC_RESOURCE_EXHAUSTED;
}

static void devices_on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct pod_resources *r = ctx;
	struct err e;

	r->devices_call = NULL;
	if (code == RPC_OK || will_pass(code))
		return;
	(void)err_set(&e, EIO, "GetAllocatableResources: %s (gRPC status %d)", text, (int)code);
	log_no_devices(r, &e);
}

static void ask_for_devices(struct pod_resources *r)
{
	const struct rpc_request all = {.socket = r->options.socket,
		.method = POD_RESOURCES_PATH("GetAllocatableResources"),
		.kind = RPC_UNARY,
		.timeout_ms = r->options.answer_ms};
	const struct rpc_call_events events = {r, devices_on_reply, devices_on_ended};

	if (r->options.devices && !r->devices_call)
		r->devices_call = rpc_call_start(r->pump, &all, &events, NULL);
}

/* List alone, whatever the wish. Get would cost the kubelet's bucket as many tokens, and one for
 * each pod, where one List answers every wish that is pending; it cannot distinguish a pod that is
 * not there from a method that is off (both are UNKNOWN, before 1.34 it is off); and that nobody
 * holds a device, which is what unclaimed ones are found by, only all pods together show. A List of
 * 500 pods is 70 KB, two milliseconds of the kubelet's time. */
static void ask_for_list(void *ctx)
{
	struct pod_resources *r = ctx;
	const struct rpc_request list = {.socket = r->options.socket,
		.method = POD_RESOURCES_PATH("List"),
		.kind = RPC_UNARY,
		.timeout_ms = r->options.answer_ms};
	const struct rpc_call_events events = {r, list_on_reply, list_on_ended};
	struct err e;

	if (r->call)
		return;
	r->asked++;
	r->asked_ns = loop_monotonic_ns();
	r->wanted = false;
	r->unreadable.code = 0;
	retry_begin(r->retry);
	r->call = rpc_call_start(r->pump, &list, &events, &e);
	if (r->call) {
		ask_for_devices(r);
		return;
	}
	r->failing = true;
	retry_no_connection(r->retry, &e);
}

struct pod_resources *pod_resources_new(struct loop *l, struct rpc_pump *p,
	const struct pod_resources_options *o, const struct pod_resources_handler *handler)
{
	enum { EVERY_MS = 30000, ANSWER_MS = 5000, MIN_MS = 100, MAX_MS = 60000, GAP_MS = 50 };
	struct pod_resources *r = xcalloc(1, sizeof *r);

	r->pump = p;
	r->handler = handler;
	r->options = (struct pod_resources_options){
		.socket = o->socket,
		.every_ms = o->every_ms ?: EVERY_MS,
		.answer_ms = o->answer_ms ?: ANSWER_MS,
		.gap_ms = o->gap_ms ?: GAP_MS,
		.devices = o->devices,
	};
	r->retry = retry_new(l, &(struct retry_options){
					.socket = o->socket,
					.min_ms = o->retry_min_ms ?: MIN_MS,
					.max_ms = o->retry_max_ms ?: MAX_MS,
					.ctx = r,
					.attempt = ask_for_list,
					.waiting = "pod-resources-waiting",
					.refused = "pod-resources-refused",
					.log = handler->ctx,
					.on_event = handler->on_event,
				});
	return r;
}

uint64_t pod_resources_refresh(struct pod_resources *r)
{
	r->wanted = true;
	if (!r->call && !r->failing)
		ask_for_list_soon(r);
	return r->asked + 1;
}

void pod_resources_hurry(struct pod_resources *r)
{
	r->wanted = true;
	retry_reset(r->retry);
	if (!r->call)
		ask_for_list_soon(r);
}

uint64_t pod_resources_age(const struct pod_resources *r)
{
	return r->age;
}

const struct container_held *pod_resources_find(
	const struct pod_resources *r, const char *ns, const char *pod, const char *container)
{
	const struct pod_held names = {.ns = ns, .name = pod};
	size_t low = 0, high = r->answer.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct pod_held *p = r->answer.by_name[middle];
		int order = compare_pod_names(&names, p);

		for (size_t i = 0; !order && i < p->nr; i++)
			if (text_equal(p->container[i].name, container))
				return &p->container[i];
		if (!order)
			return NULL;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct pods_held *pod_resources_held(const struct pod_resources *r)
{
	return &r->answer.held;
}

int pod_resources_devices(
	const struct pod_resources *r, struct arena *a, const struct device_count **out, size_t *nr)
{
	return devices_count(&r->devices.all, &r->answer.held, a, out, nr);
}

void pod_resources_close(struct pod_resources *r)
{
	if (!r)
		return;
	rpc_call_cancel(r->call);
	rpc_call_cancel(r->devices_call);
	retry_free(r->retry);
	arena_fini(&r->answer.memory);
	arena_fini(&r->devices.memory);
	free(r);
}
