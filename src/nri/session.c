#include <nri/session.h>

#include <assert.h>
#include <errno.h>
#include <io/fault.h>
#include <nri/nri_pb.h>
#include <nri/ttrpc.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* NRI's own defaults (pkg/adaptation/adaptation.go), for runtimes that do not send theirs, and a
 * bound for those that send too much. */
enum { REGISTRATION_TIMEOUT_MS = 5000, REQUEST_TIMEOUT_MS = 2000, TIMEOUT_MAX_MS = 10 * 60 * 1000 };
/* How many times as long again the handshake is waited for: containerd synchronizes no plugin while
 * it stops a container, for the whole of its grace period (30 s, unless its author has another
 * one). Who gives up then comes too late for the containers that it creates next. A runtime that
 * could not list what runs synchronizes nobody until we come anew: so there is an end. */
enum { HANDSHAKE_MORE = 10 };
/* What the chunks of one Synchronize may add up to; a node runs a few hundred containers. */
enum { RUNNING_BYTES_MAX = 64 << 20, RUNNING_CONTAINERS_MAX = 16384 };
enum { TEXT_MAX = 160 };

struct nri_session {
	const struct nri_handler *handler;
	enum nri_state state;
	struct err error;
	uint64_t now_ms, deadline_ms, patience_ms;
	bool is_late; /* patience_ms have passed: it was logged, and the next deadline is the end */
	uint64_t request_timeout_ms; /* the runtime's, for each event */
	struct mux mux;
	struct ttrpc plugin;  /* where the runtime calls us */
	struct ttrpc runtime; /* where we call the runtime: RegisterPlugin, UpdateContainers */
	struct outbox out;
	struct bytes running; /* the chunks of Synchronize so far */
	char *runtime_name;
	bool launched;
	struct nri_failure_policy on_failure;
	bool updates_are_safe; /* this runtime may be sent UpdateContainers */
	bool forgets;          /* nri_session_forgets() */
	bool sets_policies;    /* nri_session_sets_memory_policies() */
	bool shows_cdi;        /* nri_session_shows_cdi() */
	void (*updated)(void *ctx, const char *problem); /* called with the answer to one */
};

/* One call on its way through. */
struct call {
	struct blob payload;
	struct arena *a;
	struct ttrpc_response *reply;
};

static void session_log(struct nri_session *s, const char *event, const char *text)
{
	if (s->handler->on_event)
		s->handler->on_event(s->handler->ctx, event, text);
}

/* Answer a call that cannot be served with an error, and log it here too. Returns 0. */
static int session_refuse(
	struct nri_session *s, struct call *c, enum ttrpc_status status, const char *text)
{
	session_log(s, "nri-call-refused", text);
	return ttrpc_refuse(c->reply, c->a, status, text);
}

static void session_after(void *ctx)
{
	struct nri_session *s = ctx;

	if (s->handler->after)
		s->handler->after(s->handler->ctx);
}

/* Events */

static int compare_cpuset_owners(const void *a, const void *b)
{
	const struct nri_cpuset *const *x = a, *const *y = b;

	return strcmp((*x)->container_id, (*y)->container_id);
}

/* An update of the container being created, or two of one container, make the runtime fail the
 * whole call (pkg/adaptation/result.go): our own mistake, so it must not get there. */
static void assert_updates_are_sound(const struct nri_reply *reply, const char *creating)
{
	auto_free const struct nri_cpuset **sorted = xcalloc(reply->nr_updates, sizeof *sorted);

	for (size_t i = 0; i < reply->nr_updates; i++) {
		sorted[i] = &reply->updates[i];
		assert(!creating || strcmp(sorted[i]->container_id, creating) != 0);
	}
	qsort(sorted, reply->nr_updates, sizeof *sorted, compare_cpuset_owners);
	for (size_t i = 1; i < reply->nr_updates; i++)
		assert(strcmp(sorted[i - 1]->container_id, sorted[i]->container_id) != 0);
}

static void event_answer_with_updates(
	struct nri_session *s, const struct nri_reply *reply, struct call *c)
{
	struct err wrong;

	assert_updates_are_sound(reply, NULL);
	if (nri_updates_encode(reply, c->a, &c->reply->payload, &wrong) < 0)
		(void)session_refuse(s, c, TTRPC_INTERNAL, wrong.text);
}

static void event_run_pod(struct nri_session *s, const struct request *req, struct call *c)
{
	struct err e = {0};

	if (s->handler->run_pod(s->handler->ctx, &req->pod, &e) < 0)
		(void)ttrpc_refuse(c->reply, c->a, TTRPC_FAILED_PRECONDITION, e.text);
}

static void event_create(struct nri_session *s, const struct request *req, struct call *c)
{
	struct nri_reply reply = {.arena = c->a};
	struct err e = {0};

	if (s->handler->create(s->handler->ctx, req, &reply, &e) < 0) {
		(void)ttrpc_refuse(c->reply, c->a, TTRPC_FAILED_PRECONDITION, e.text);
		return;
	}
	assert_updates_are_sound(&reply, req->container_id);
	if (nri_created_encode(&reply, c->a, &c->reply->payload, &e) < 0)
		(void)session_refuse(s, c, TTRPC_INTERNAL, e.text);
	fault_point(FAULT_ENCODED);
}

static void event_update(struct nri_session *s, const struct request *req, struct call *c)
{
	struct nri_reply reply = {.arena = c->a};

	s->handler->update(s->handler->ctx, req, &reply);
	if (reply.refusal)
		(void)ttrpc_refuse(c->reply, c->a, TTRPC_FAILED_PRECONDITION, reply.refusal);
	else
		event_answer_with_updates(s, &reply, c);
}

static void event_stop(struct nri_session *s, const struct request *req, struct call *c)
{
	struct nri_reply reply = {.arena = c->a};

	s->handler->stop(s->handler->ctx, req, &reply);
	event_answer_with_updates(s, &reply, c);
}

static void event_removed(struct nri_session *s, const struct request *req, struct call *c)
{
	(void)c;
	s->handler->remove(s->handler->ctx, req);
}

static void event_live(struct nri_session *s, const struct request *req, struct call *c)
{
	(void)c;
	s->handler->live(s->handler->ctx, req);
}

static void event_started(struct nri_session *s, const struct request *req, struct call *c)
{
	(void)c;
	s->handler->started(s->handler->ctx, req);
}

/* A runtime that has forgotten the pod may send an empty one. */
static void event_pod_gone(struct nri_session *s, const struct request *req, struct call *c)
{
	(void)c;
	if (*req->pod.sandbox_id)
		s->handler->remove_pod(s->handler->ctx, &req->pod);
}

/* Every event comes as a method of its own or, from runtimes before NRI 0.12, as the number that
 * is its index here, through StateChange. Those without a function are answered with nothing. We
 * ask for those that are wanted, and for none above number 11: older runtimes refuse them. */
static const struct {
	const char *method;
	bool wanted;
	void (*handle)(struct nri_session *s, const struct request *req, struct call *c);
} events[NR_NRI_EVENTS] = {
	[NRI_EVENT_RUN_POD] = {"RunPodSandbox", true, event_run_pod},
	[NRI_EVENT_STOP_POD] = {"StopPodSandbox", true, event_pod_gone},
	[NRI_EVENT_REMOVE_POD] = {"RemovePodSandbox", true, event_pod_gone},
	[NRI_EVENT_CREATE] = {"CreateContainer", true, event_create},
	[NRI_EVENT_POST_CREATE] = {"PostCreateContainer", true, event_live},
	[NRI_EVENT_START] = {"StartContainer", false, NULL},
	[NRI_EVENT_POST_START] = {"PostStartContainer", true, event_started},
	[NRI_EVENT_UPDATE] = {"UpdateContainer", true, event_update},
	[NRI_EVENT_POST_UPDATE] = {"PostUpdateContainer", false, NULL},
	[NRI_EVENT_STOP] = {"StopContainer", true, event_stop},
	[NRI_EVENT_REMOVE] = {"RemoveContainer", true, event_removed},
	[NRI_EVENT_UPDATE_POD] = {"UpdatePodSandbox", false, NULL},
	[NRI_EVENT_POST_UPDATE_POD] = {"PostUpdatePodSandbox", false, NULL},
	[NRI_EVENT_VALIDATE] = {"ValidateContainerAdjustment", false, NULL},
};

static int session_serve_event(
	struct nri_session *s, const struct nri_subject *what, enum nri_event event, struct call *c)
{
	if (s->state != NRI_READY)
		return session_refuse(
			s, c, TTRPC_FAILED_PRECONDITION, "an event came before Synchronize");
	if (event >= NRI_EVENT_CREATE && !*what->req.container_id)
		return session_refuse(
			s, c, TTRPC_INTERNAL, "an event about a container names none");
	if (what->odd.code && event == NRI_EVENT_CREATE)
		return session_refuse(s, c, TTRPC_FAILED_PRECONDITION, what->odd.text);
	if (what->odd.code)
		session_log(s, "nri-odd-resources", what->odd.text);
	if (s->handler->wait && s->handler->wait(s->handler->ctx, event, &what->req))
		return TTRPC_PARKED;
	if (s->handler->began)
		s->handler->began(s->handler->ctx);
	events[event].handle(s, &what->req, c);
	if (s->handler->ended)
		s->handler->ended(s->handler->ctx, event);
	return 0;
}

static int session_state_change(struct nri_session *s, struct call *c, struct err *e)
{
	struct nri_subject what;
	struct err wrong;

	(void)e;
	if (nri_state_change_decode(c->payload, c->a, &what, &wrong) < 0)
		return session_refuse(s, c, TTRPC_INTERNAL, wrong.text);
	return events[what.event].handle ? session_serve_event(s, &what, what.event, c) : 0;
}

/* The handshake */

static uint64_t timeout_from(int64_t sent, uint64_t otherwise)
{
	if (sent <= 0)
		return otherwise;
	return sent < TIMEOUT_MAX_MS ? (uint64_t)sent : TIMEOUT_MAX_MS;
}

static void session_wait_for(struct nri_session *s, enum nri_state state, uint64_t patience_ms)
{
	s->state = state;
	s->patience_ms = patience_ms;
	s->is_late = false;
	s->deadline_ms = s->launched ? UINT64_MAX : s->now_ms + patience_ms;
}

static void session_become_ready(struct nri_session *s)
{
	s->state = NRI_READY;
	s->deadline_ms = UINT64_MAX;
}

enum { VERSION_PARTS = 3 };

/* Whether a runtime's version, "v0.12.5" for one, is that one or a later one. */
static bool is_at_least(const char *version, const unsigned since[VERSION_PARTS])
{
	const char *at = version + (*version == 'v');

	for (size_t i = 0; i < VERSION_PARTS; i++) {
		size_t digits = strspn(at, "0123456789");
		uint64_t number = UINT64_MAX; /* stays, if it is larger still */

		if (!digits)
			return false;
		(void)text_u64(at, digits, UINT64_MAX, &number, NULL);
		if (number != since[i])
			return number > since[i];
		at += digits;
		at += *at == '.';
	}
	return true;
}

/* Before this NRI an UpdateContainers that meets any other event locks up the runtime (containerd
 * issue 13733, NRI pull request 301). A runtime that gives no version may be older. */
static const unsigned safe_updates_since[VERSION_PARTS] = {0, 12, 1};
/* Since these a runtime knows Container.CDI_devices, LinuxMemoryPolicy and FailurePolicy. */
static const unsigned cdi_since[VERSION_PARTS] = {0, 10, 0};
static const unsigned memory_policy_since[VERSION_PARTS] = {0, 12, 0};
static const unsigned failure_policy_since[VERSION_PARTS] = {0, 12, 4};

/* One that was built without its version ("0.0.0-unknown") may know it: if not, it skips the field,
 * as protobuf demands. */
static bool may_know(const struct nri_configuration *conf, const unsigned since[VERSION_PARTS])
{
	return strstr(conf->nri_version, "unknown") || is_at_least(conf->nri_version, since);
}

/* What to answer Configure with, beside the events: NULL when nothing is wanted or of use. */
static const struct nri_failure_policy *configured_failure_policy(
	struct nri_session *s, const struct nri_configuration *conf)
{
	const struct nri_failure_policy *p = &s->on_failure;
	char text[TEXT_MAX];

	if (!p->fail_request && !p->keep_connected)
		return NULL;
	if (!may_know(conf, failure_policy_since)) {
		session_log(s, "nri-failure-policy",
			"this runtime has none: while the daemon hangs, containers start unpinned");
		return NULL;
	}
	(void)snprintf(text, sizeof text, "fail_request=%d keep_connected=%d", p->fail_request,
		p->keep_connected);
	session_log(s, "nri-failure-policy", text);
	return p;
}

/* What comes after Configure: Synchronize, unless the runtime is one that never calls it. (It is of
 * the releases that do not send their timeouts.) */
static void session_expect_synchronize(struct nri_session *s, const struct nri_configuration *conf)
{
	if (s->launched && !conf->registration_timeout_ms && !conf->request_timeout_ms) {
		session_become_ready(s);
		session_log(s, "nri-not-synchronized",
			"this runtime does not list what runs for plugins that it starts itself: "
			"containers are taken over as they are started or change");
		return;
	}
	session_wait_for(s, NRI_SYNCHRONIZING,
		timeout_from(conf->registration_timeout_ms, REGISTRATION_TIMEOUT_MS) +
			s->request_timeout_ms);
}

static int session_configure(struct nri_session *s, struct call *c, struct err *e)
{
	struct nri_configuration conf;
	uint32_t wanted = 0;
	struct err wrong;

	if (s->state != NRI_REGISTERING)
		return session_refuse(
			s, c, TTRPC_FAILED_PRECONDITION, "Configure came a second time");
	if (nri_configuration_decode(c->payload, c->a, &conf, &wrong) < 0)
		return session_refuse(s, c, TTRPC_INTERNAL, wrong.text);
	free(s->runtime_name);
	size_t size = strlen(conf.runtime_name) + strlen(conf.runtime_version) + sizeof " ";
	s->runtime_name = xcalloc(size, 1);
	(void)snprintf(s->runtime_name, size, "%s%s%s", conf.runtime_name,
		*conf.runtime_name && *conf.runtime_version ? " " : "", conf.runtime_version);
	s->request_timeout_ms = timeout_from(conf.request_timeout_ms, REQUEST_TIMEOUT_MS);
	s->updates_are_safe = is_at_least(conf.nri_version, safe_updates_since);
	s->sets_policies = may_know(&conf, memory_policy_since);
	s->shows_cdi = is_at_least(conf.nri_version, cdi_since);
	s->forgets = !text_equal(conf.runtime_name, "containerd");
	session_log(s, "nri-configured", s->runtime_name);
	if (*conf.config)
		session_log(s, "nri-config-ignored", "settings come from --config and --set alone");
	for (int i = NRI_EVENT_NONE; i < NR_NRI_EVENTS; i++)
		if (events[i].wanted)
			wanted |= nri_event_bit((enum nri_event)i);
	int rc = nri_configured_encode(
		wanted, configured_failure_policy(s, &conf), c->a, &c->reply->payload, e);
	if (rc < 0)
		return rc;
	session_expect_synchronize(s, &conf);
	return 0;
}

/* All chunks are here: from now on events may come. */
static int session_synchronize_all(struct nri_session *s, struct call *c, struct err *e)
{
	struct nri_reply reply = {.arena = c->a};
	struct nri_running all;
	char text[TEXT_MAX];
	struct blob chunks = {s->running.at, s->running.len};
	int rc = nri_running_decode(chunks, RUNNING_CONTAINERS_MAX, c->a, &all, e);

	if (rc < 0)
		return err_add(e, rc, "Synchronize");
	if (all.odd.code)
		session_log(s, "nri-odd-resources", all.odd.text);
	const struct nri_inventory what = {all.containers, all.nr, all.pods, all.nr_pods};
	if (s->handler->began)
		s->handler->began(s->handler->ctx);
	s->handler->synchronize(s->handler->ctx, &what, &reply);
	if (s->handler->ended)
		s->handler->ended(s->handler->ctx, NRI_EVENT_NONE);
	assert_updates_are_sound(&reply, NULL);
	rc = nri_updates_encode(&reply, c->a, &c->reply->payload, e);
	if (rc < 0)
		return err_add(e, rc, "the answer to Synchronize");
	bytes_fini(&s->running);
	session_become_ready(s);
	(void)snprintf(text, sizeof text, "%zu container%s", all.nr, text_plural(all.nr));
	session_log(s, "nri-synchronized", text);
	return 0;
}

static int session_synchronize(struct nri_session *s, struct call *c, struct err *e)
{
	struct err wrong;
	bool more;

	if (s->state != NRI_SYNCHRONIZING)
		return session_refuse(
			s, c, TTRPC_FAILED_PRECONDITION, "Synchronize came out of turn");
	if (nri_chunk_decode(c->payload, &more, &wrong) < 0)
		return session_refuse(s, c, TTRPC_INTERNAL, wrong.text);
	if (c->payload.len > RUNNING_BYTES_MAX - s->running.len)
		return err_set(e, EPROTO, "Synchronize: more than %d bytes of pods and containers",
			RUNNING_BYTES_MAX);
	bytes_append(&s->running, c->payload.data, c->payload.len);
	return more ? nri_chunk_encode(c->a, &c->reply->payload, e)
		    : session_synchronize_all(s, c, e);
}

/* The runtime's answer to our own call. */
static int session_on_answer(
	void *ctx, const struct ttrpc_response *r, struct arena *a, struct err *e)
{
	struct nri_session *s = ctx;
	void (*updated)(void *ctx, const char *problem) = s->updated;

	(void)a;
	s->updated = NULL;
	if (updated) {
		updated(s->handler->ctx, r->status ? r->message : NULL);
		return 0;
	}
	if (r->status)
		return err_set(e, EPROTO, "the runtime refuses the registration: %s", r->message);
	session_log(s, "nri-registered", "");
	return 0;
}

/* Calls */

/* What each call does that is no event; NULL: nothing. Below 0: the session has failed, and *e says
 * why. */
static const struct {
	const char *name;
	int (*serve)(struct nri_session *s, struct call *c, struct err *e);
} methods[] = {
	{"Configure", session_configure},
	{"Synchronize", session_synchronize},
	{"StateChange", session_state_change},
	{"Shutdown", NULL},
};

static int session_serve(void *ctx, const struct ttrpc_request *req, struct arena *a,
	struct ttrpc_response *reply, struct err *e)
{
	struct nri_session *s = ctx;
	struct call c = {req->payload, a, reply};
	int event = NRI_EVENT_NONE + 1;
	char text[TEXT_MAX];
	struct nri_subject what;
	struct err wrong;

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(methods[i].name, req->method) == 0)
			return methods[i].serve ? methods[i].serve(s, &c, e) : 0;
	while (event < NR_NRI_EVENTS && strcmp(events[event].method, req->method) != 0)
		event++;
	if (event == NR_NRI_EVENTS) {
		(void)snprintf(text, sizeof text, "method %s", req->method);
		return ttrpc_refuse(reply, a, TTRPC_UNIMPLEMENTED, text);
	}
	if (!events[event].handle)
		return 0;
	if (nri_subject_decode(req->payload, a, &what, &wrong) < 0)
		return session_refuse(s, &c, TTRPC_INTERNAL, wrong.text);
	return session_serve_event(s, &what, (enum nri_event)event, &c);
}

/* Bytes in and out */

static void session_fail(struct nri_session *s, const struct err *e)
{
	s->state = NRI_FAILED;
	s->error = *e;
	s->deadline_ms = 0;
}

static int session_on_stream(
	void *ctx, enum mux_stream stream, const void *data, size_t len, struct err *e)
{
	struct nri_session *s = ctx;

	return ttrpc_feed(stream == MUX_PLUGIN ? &s->plugin : &s->runtime, data, len, e);
}

int nri_session_feed(struct nri_session *s, const void *data, size_t len, uint64_t now_ms)
{
	struct err e = {0};

	if (s->state == NRI_FAILED)
		return -EPROTO;
	s->now_ms = now_ms;
	int rc = mux_feed(&s->mux, data, len, session_on_stream, s, &e);
	if (rc < 0)
		session_fail(s, &e);
	return rc;
}

int nri_session_resume(struct nri_session *s, uint64_t now_ms)
{
	struct err e = {0};

	if (s->state == NRI_FAILED)
		return -EPROTO;
	s->now_ms = now_ms;
	int rc = ttrpc_resume(&s->plugin, &e);
	if (rc < 0)
		session_fail(s, &e);
	return rc;
}

uint64_t nri_session_patience_ms(const struct nri_session *s)
{
	return s->request_timeout_ms;
}

static void session_wait_longer(struct nri_session *s, const char *what)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof text,
		"the runtime has sent no %s within %llu ms, as while it stops a container: it is "
		"waited for",
		what, (unsigned long long)s->patience_ms);
	session_log(s, "nri-waiting", text);
	s->is_late = true;
	s->deadline_ms += HANDSHAKE_MORE * s->patience_ms;
	s->patience_ms += HANDSHAKE_MORE * s->patience_ms;
}

void nri_session_tick(struct nri_session *s, uint64_t now_ms)
{
	const char *what = s->state == NRI_REGISTERING ? "Configure" : "(complete) Synchronize";
	struct err e;

	s->now_ms = now_ms;
	if (s->state == NRI_FAILED || now_ms < s->deadline_ms)
		return;
	if (!s->is_late) {
		session_wait_longer(s, what);
		return;
	}
	(void)err_set(&e, ETIMEDOUT, "the runtime sent no %s within %llu ms", what,
		(unsigned long long)s->patience_ms);
	session_fail(s, &e);
}

static int session_send_registration(
	struct nri_session *s, const struct nri_plugin *plugin, struct err *e)
{
	struct arena a;
	struct blob payload;

	arena_init(&a, TTRPC_MEMORY_MAX);
	int rc = nri_register_encode(plugin->name, plugin->index, &a, &payload, e);
	if (rc == 0)
		rc = ttrpc_call(&s->runtime, "RegisterPlugin", payload, 0, e);
	arena_fini(&a);
	return rc;
}

struct nri_session *nri_session_new(
	const struct nri_plugin *plugin, const struct nri_handler *handler, uint64_t now_ms)
{
	static const struct ttrpc_events as_plugin = {.serve = session_serve,
						 .after = session_after},
					 as_caller = {.answered = session_on_answer};
	struct nri_session *s = xcalloc(1, sizeof *s);
	struct err e;

	s->handler = handler;
	s->now_ms = now_ms;
	s->launched = plugin->launched;
	s->on_failure = plugin->on_failure;
	s->runtime_name = xstrdup("");
	ttrpc_init(&s->plugin, MUX_PLUGIN, NRI_PLUGIN_SERVICE, &as_plugin, s, &s->out.filling);
	ttrpc_init(&s->runtime, MUX_RUNTIME, NRI_RUNTIME_SERVICE, &as_caller, s, &s->out.filling);
	session_wait_for(s, NRI_REGISTERING, REGISTRATION_TIMEOUT_MS);
	if (session_send_registration(s, plugin, &e) < 0)
		session_fail(s, &e);
	return s;
}

void nri_session_free(struct nri_session *s)
{
	if (!s)
		return;
	ttrpc_fini(&s->plugin);
	ttrpc_fini(&s->runtime);
	outbox_fini(&s->out);
	bytes_fini(&s->running);
	free(s->runtime_name);
	free(s);
}

bool nri_session_forgets(const struct nri_session *s)
{
	return s->forgets;
}

bool nri_session_shows_cdi(const struct nri_session *s)
{
	return s->shows_cdi;
}

bool nri_session_sets_memory_policies(const struct nri_session *s)
{
	return s->sets_policies;
}

bool nri_session_takes_updates(const struct nri_session *s)
{
	return s->state == NRI_READY && s->updates_are_safe && !s->runtime.waiting &&
	       !s->plugin.parked;
}

int nri_session_update(struct nri_session *s, const struct nri_cpuset *updates, size_t nr,
	void (*updated)(void *ctx, const char *problem), struct err *e)
{
	struct nri_reply list = {.updates = updates, .nr_updates = nr};
	struct arena a;
	struct blob payload;

	assert(nri_session_takes_updates(s) && !s->updated);
	assert_updates_are_sound(&list, NULL);
	arena_init(&a, TTRPC_MEMORY_MAX);
	int rc = nri_updates_encode(&list, &a, &payload, e);
	if (rc == 0)
		rc = ttrpc_call(&s->runtime, "UpdateContainers", payload, 0, e);
	arena_fini(&a);
	if (rc == 0)
		s->updated = updated;
	return rc;
}

void nri_session_sent(struct nri_session *s)
{
	ttrpc_release(&s->plugin);
}

bool nri_session_is_idle(const struct nri_session *s)
{
	return mux_is_idle(&s->mux) && ttrpc_is_idle(&s->plugin);
}

size_t nri_session_take(struct nri_session *s, const void **data)
{
	return outbox_take(&s->out, data);
}

uint64_t nri_session_deadline(const struct nri_session *s)
{
	return s->deadline_ms;
}

enum nri_state nri_session_state(const struct nri_session *s)
{
	return s->state;
}

const char *nri_session_error(const struct nri_session *s)
{
	return s->error.text;
}

const char *nri_session_runtime(const struct nri_session *s)
{
	return s->runtime_name;
}
