#include <nri/runtime.h>

#include <assert.h>
#include <errno.h>
#include <nri/nri_runtime_pb.h>
#include <nri/ttrpc.h>
#include <numafit/mem.h>
#include <numafit/vec.h>
#include <stdio.h>
#include <string.h>

/* What containerd sends as its timeouts. */
enum { REGISTRATION_TIMEOUT_MS = 5000, REQUEST_TIMEOUT_MS = 2000 };
static const int64_t request_timeout_ns = INT64_C(2000000000);
/* The events that a runtime of either kind knows: bits above make it close the connection. */
enum { EVENTS_BEFORE_0_10 = 0x7ff, EVENTS_SINCE_0_10 = 0x3fff };
enum { TEXT_MAX = 160 };

/* How each call goes over the wire. Synchronize is no event: nobody subscribes to it. */
static const struct {
	const char *method;
	enum nri_event event;
	bool state_change; /* sent that way by runtimes before NRI 0.12 */
} calls[] = {
	[NRI_CALL_SYNCHRONIZE] = {"Synchronize", NRI_EVENT_NONE, false},
	[NRI_CALL_RUN_POD] = {"RunPodSandbox", NRI_EVENT_RUN_POD, true},
	[NRI_CALL_CREATE] = {"CreateContainer", NRI_EVENT_CREATE, false},
	[NRI_CALL_POST_CREATE] = {"PostCreateContainer", NRI_EVENT_POST_CREATE, true},
	[NRI_CALL_POST_START] = {"PostStartContainer", NRI_EVENT_POST_START, true},
	[NRI_CALL_UPDATE] = {"UpdateContainer", NRI_EVENT_UPDATE, false},
	[NRI_CALL_STOP] = {"StopContainer", NRI_EVENT_STOP, false},
	[NRI_CALL_REMOVE] = {"RemoveContainer", NRI_EVENT_REMOVE, true},
	[NRI_CALL_STOP_POD] = {"StopPodSandbox", NRI_EVENT_STOP_POD, true},
	[NRI_CALL_REMOVE_POD] = {"RemovePodSandbox", NRI_EVENT_REMOVE_POD, true},
};

struct queued {
	enum nri_call call;
	bool more;        /* Synchronize: not its last chunk */
	char *unsendable; /* why it cannot be sent, or NULL */
	struct bytes payload;
};

struct nri_runtime {
	struct nri_runtime_options options;
	char *name, *version;
	struct nri_runtime_events events;
	struct err error;
	struct mux mux;
	struct ttrpc plugin;  /* where we call the plugin */
	struct ttrpc runtime; /* where it calls us */
	struct outbox out;
	char *plugin_name, *plugin_index; /* NULL until it registered */
	bool configuring, configured, sending;
	uint32_t wanted;       /* the events that it subscribed to */
	struct queued current; /* the call on its way; its payload is gone already */
	struct {
		VEC(struct queued);
	} queue;
	const char *nri_version; /* NULL: not sent; then nobody sets containers */
	bool (*set)(void *ctx, const struct nri_update *updates, size_t nr);
};

static const struct nri_answer no_answer = {.message = "", .cpus = "", .mems = ""};

/* Sending */

static bool by_state_change(const struct nri_runtime *r, enum nri_call call)
{
	return r->options.state_change && calls[call].state_change;
}

static int runtime_send_one(struct nri_runtime *r, struct queued *q, struct err *e)
{
	const char *method = by_state_change(r, q->call) ? "StateChange" : calls[q->call].method;
	uint32_t bit = nri_event_bit(calls[q->call].event);
	struct nri_answer answer = no_answer;

	if (q->unsendable) {
		answer.status = TTRPC_INTERNAL;
		answer.message = q->unsendable;
	}
	if (q->unsendable || (bit && !(r->wanted & bit))) {
		r->events.answered(r->events.ctx, q->call, &answer);
		return 0;
	}
	r->current = (struct queued){.call = q->call, .more = q->more};
	return ttrpc_call(&r->plugin, method, (struct blob){q->payload.at, q->payload.len},
		request_timeout_ns, e);
}

static void queued_fini(struct queued *q)
{
	bytes_fini(&q->payload);
	free(q->unsendable);
}

/* Send what is next unless a call is on its way. Callbacks may queue more, sent here as well. */
static int runtime_send_next(struct nri_runtime *r, struct err *e)
{
	int rc = 0;

	if (r->sending)
		return 0;
	r->sending = true;
	while (rc == 0 && r->configured && !r->plugin.waiting && r->queue.nr) {
		struct queued q = r->queue.at[0];

		vec_remove(&r->queue, 0);
		rc = runtime_send_one(r, &q, e);
		queued_fini(&q);
	}
	r->sending = false;
	return rc;
}

/* Queue a call whose payload was encoded with rc. */
static void enqueue(
	struct nri_runtime *r, struct queued q, struct blob payload, int rc, const struct err *e)
{
	if (rc < 0)
		q.unsendable = xstrdup(e->text);
	else
		bytes_append(&q.payload, payload.data, payload.len);
	*vec_push(&r->queue) = q;
}

/* The same outside nri_runtime_feed(): an error stays for its next call. */
static void runtime_send_now(struct nri_runtime *r)
{
	struct err e;

	if (!r->error.code && runtime_send_next(r, &e) < 0)
		r->error = e;
}

void nri_runtime_call(struct nri_runtime *r, enum nri_call call, const struct nri_container *c)
{
	struct queued q = {.call = call};
	struct blob payload = {0};
	struct arena a;
	struct err e = {0};

	assert(call != NRI_CALL_SYNCHRONIZE);
	arena_init(&a, TTRPC_MEMORY_MAX);
	int rc = nri_subject_encode(
		calls[call].event, by_state_change(r, call), c, &a, &payload, &e);
	enqueue(r, q, payload, rc, &e);
	arena_fini(&a);
	runtime_send_now(r);
}

static int by_sandbox(const void *a, const void *b)
{
	const struct nri_container *const *x = a, *const *y = b;
	int order = strcmp((*x)->sandbox_id, (*y)->sandbox_id);

	if (order)
		return order;
	return (*x > *y) - (*x < *y);
}

/* Which containers are the first of their pods; the caller frees. */
static bool *first_of_pods(const struct nri_container *containers, size_t nr)
{
	auto_free const struct nri_container **sorted = xcalloc(nr, sizeof *sorted);
	bool *first = xcalloc(nr, sizeof *first);

	for (size_t i = 0; i < nr; i++)
		sorted[i] = &containers[i];
	qsort(sorted, nr, sizeof *sorted, by_sandbox);
	for (size_t i = 0; i < nr; i++)
		first[sorted[i] - containers] =
			i == 0 || strcmp(sorted[i - 1]->sandbox_id, sorted[i]->sandbox_id) != 0;
	return first;
}

void nri_runtime_synchronize(
	struct nri_runtime *r, const struct nri_container *containers, size_t nr)
{
	auto_free bool *with_pod = first_of_pods(containers, nr);
	size_t step = r->options.chunk_objects ? r->options.chunk_objects : nr;
	size_t at = 0;

	do {
		size_t take = nr - at < step ? nr - at : step;
		struct nri_chunk chunk = {containers + at, with_pod + at, take, at + take < nr};
		struct queued q = {.call = NRI_CALL_SYNCHRONIZE, .more = chunk.more};
		struct blob payload = {0};
		struct arena a;
		struct err e = {0};

		arena_init(&a, TTRPC_MEMORY_MAX);
		int rc = nri_running_encode(&chunk, &a, &payload, &e);
		enqueue(r, q, payload, rc, &e);
		arena_fini(&a);
		at += take;
	} while (at < nr);
	runtime_send_now(r);
}

/* Answers of the plugin */

static int runtime_take_configured(struct nri_runtime *r, const struct ttrpc_response *response,
	struct arena *a, struct err *e)
{
	uint32_t known = r->options.state_change ? EVENTS_BEFORE_0_10 : EVENTS_SINCE_0_10;
	uint32_t events;

	if (response->status)
		return err_set(
			e, EPROTO, "the plugin refuses its configuration: %s", response->message);
	if (nri_events_decode(response->payload, a, &events, e) < 0)
		return err_add(e, -EPROTO, "the plugin's answer to Configure");
	if (events & ~known)
		return err_set(e, EPROTO, "invalid plugin events: 0x%x", events & ~known);
	r->wanted = events ? events : known;
	r->configured = true;
	r->events.configured(r->events.ctx, r->plugin_name, r->plugin_index, r->wanted);
	return runtime_send_next(r, e);
}

static int decode_answer(enum nri_call call, struct blob payload, struct arena *a,
	struct nri_answer *out, bool *more, struct err *e)
{
	switch (call) {
	case NRI_CALL_SYNCHRONIZE:
		return nri_synchronized_decode(payload, a, out, more, e);
	case NRI_CALL_CREATE:
		return nri_created_decode(payload, a, out, e);
	case NRI_CALL_UPDATE:
	case NRI_CALL_STOP:
		return nri_updates_decode(payload, a, out, e);
	case NRI_CALL_RUN_POD:
	case NRI_CALL_POST_CREATE:
	case NRI_CALL_POST_START:
	case NRI_CALL_REMOVE:
	case NRI_CALL_STOP_POD:
	case NRI_CALL_REMOVE_POD:
		break;
	}
	return 0;
}

static int runtime_take_answer(struct nri_runtime *r, const struct ttrpc_response *response,
	struct arena *a, struct err *e)
{
	struct queued q = r->current;
	struct nri_answer answer = no_answer;
	bool more = false;

	if (response->status) {
		answer.status = response->status;
		answer.message = response->message;
	} else if (decode_answer(q.call, response->payload, a, &answer, &more, e) < 0) {
		answer.status = TTRPC_INTERNAL;
		answer.message = e->text;
	}
	if (q.more && answer.status)
		return err_set(e, EPROTO, "the plugin refuses a part of Synchronize: %s",
			arena_strdup(a, answer.message));
	if (q.more && (!more || answer.nr_updates))
		return err_set(e, EPROTO, "the plugin does not handle split sync requests");
	if (!q.more)
		r->events.answered(r->events.ctx, q.call, &answer);
	return runtime_send_next(r, e);
}

static int runtime_on_answer(
	void *ctx, const struct ttrpc_response *response, struct arena *a, struct err *e)
{
	struct nri_runtime *r = ctx;

	return r->configured ? runtime_take_answer(r, response, a, e)
			     : runtime_take_configured(r, response, a, e);
}

/* Calls of the plugin */

/* checkPluginIndex and the name check of NRI 0.12 */
static bool is_sound(const char *name, const char *index)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
	static const char digits[] = "0123456789";

	return *name && !name[strspn(name, allowed)] && strlen(index) == 2 &&
	       strspn(index, digits) == 2;
}

static int runtime_serve_updates(struct nri_runtime *r, const struct ttrpc_request *req,
	struct arena *a, struct ttrpc_response *reply)
{
	struct nri_answer list;
	struct err wrong;

	if (nri_updates_decode(req->payload, a, &list, &wrong) < 0)
		return ttrpc_refuse(reply, a, TTRPC_INTERNAL, wrong.text);
	if (!r->set(r->events.ctx, list.updates, list.nr_updates))
		return ttrpc_refuse(
			reply, a, TTRPC_UNKNOWN, "NRI update of some containers failed");
	return 0;
}

static int runtime_serve(void *ctx, const struct ttrpc_request *req, struct arena *a,
	struct ttrpc_response *reply, struct err *e)
{
	struct nri_runtime *r = ctx;
	const char *name, *index;
	char text[TEXT_MAX];
	struct err wrong;

	(void)e;
	if (r->set && strcmp(req->method, "UpdateContainers") == 0)
		return runtime_serve_updates(r, req, a, reply);
	if (strcmp(req->method, "RegisterPlugin") != 0) {
		(void)snprintf(text, sizeof text, "method %s", req->method);
		return ttrpc_refuse(reply, a, TTRPC_UNIMPLEMENTED, text);
	}
	if (nri_registration_decode(req->payload, a, &name, &index, &wrong) < 0)
		return ttrpc_refuse(reply, a, TTRPC_INTERNAL, wrong.text);
	if (!is_sound(name, index) || r->plugin_name) {
		(void)snprintf(text, sizeof text, "invalid plugin name or index: \"%s\", \"%s\"",
			name, index);
		return ttrpc_refuse(reply, a, TTRPC_UNKNOWN, text);
	}
	r->plugin_name = xstrdup(name);
	r->plugin_index = xstrdup(index);
	return 0;
}

static int send_configuration(struct nri_runtime *r, struct err *e)
{
	struct nri_configuration conf = {
		.runtime_name = r->name,
		.runtime_version = r->version,
		.registration_timeout_ms = REGISTRATION_TIMEOUT_MS,
		.request_timeout_ms = REQUEST_TIMEOUT_MS,
		.nri_version = r->nri_version,
	};
	struct blob payload;
	struct arena a;

	r->configuring = true;
	arena_init(&a, TTRPC_MEMORY_MAX);
	int rc = nri_configuration_encode(&conf, &a, &payload, e);
	if (rc == 0)
		rc = ttrpc_call(&r->plugin, "Configure", payload, request_timeout_ns, e);
	arena_fini(&a);
	return rc;
}

/* Bytes in and out */

static int runtime_on_stream(
	void *ctx, enum mux_stream stream, const void *data, size_t len, struct err *e)
{
	struct nri_runtime *r = ctx;

	return ttrpc_feed(stream == MUX_PLUGIN ? &r->plugin : &r->runtime, data, len, e);
}

int nri_runtime_feed(struct nri_runtime *r, const void *data, size_t len)
{
	struct err e = {0};
	int rc = 0;

	if (!r->error.code)
		rc = mux_feed(&r->mux, data, len, runtime_on_stream, r, &e);
	if (rc == 0 && r->plugin_name && !r->configuring)
		rc = send_configuration(r, &e);
	if (rc < 0 && !r->error.code)
		r->error = e;
	return r->error.code ? -EPROTO : 0;
}

size_t nri_runtime_take(struct nri_runtime *r, const void **data)
{
	return outbox_take(&r->out, data);
}

const char *nri_runtime_error(const struct nri_runtime *r)
{
	return r->error.text;
}

struct nri_runtime *nri_runtime_new(
	const struct nri_runtime_options *o, const struct nri_runtime_events *ev)
{
	static const struct ttrpc_events as_runtime = {.serve = runtime_serve},
					 as_caller = {.answered = runtime_on_answer};
	struct nri_runtime *r = xcalloc(1, sizeof *r);

	r->options = *o;
	r->name = xstrdup(o->name);
	r->version = xstrdup(o->version);
	r->events = *ev;
	ttrpc_init(&r->plugin, MUX_PLUGIN, NRI_PLUGIN_SERVICE, &as_caller, r, &r->out.filling);
	ttrpc_init(&r->runtime, MUX_RUNTIME, NRI_RUNTIME_SERVICE, &as_runtime, r, &r->out.filling);
	return r;
}

void nri_runtime_accept_updates(struct nri_runtime *r, const char *nri_version,
	bool (*set)(void *ctx, const struct nri_update *updates, size_t nr))
{
	r->nri_version = nri_version;
	r->set = set;
}

void nri_runtime_free(struct nri_runtime *r)
{
	if (!r)
		return;
	ttrpc_fini(&r->plugin);
	ttrpc_fini(&r->runtime);
	outbox_fini(&r->out);
	for (size_t i = 0; i < r->queue.nr; i++)
		queued_fini(&r->queue.at[i]);
	vec_fini(&r->queue);
	free(r->plugin_name);
	free(r->plugin_index);
	free(r->name);
	free(r->version);
	free(r);
}
