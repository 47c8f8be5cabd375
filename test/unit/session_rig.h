#ifndef NUMAFIT_TEST_SESSION_RIG_H
#define NUMAFIT_TEST_SESSION_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_runtime_pb.h>
#include <nri/session.h>
#include <numafit/text.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A plugin that writes down what it is asked, and the session around it. */

/* A plugin that writes down its calls, and the session around it. */
struct plugin {
	struct nri_handler handler;
	struct nri_session *session;
	struct bytes sent; /* all that the session gave out */
	char calls[1024];  /* "create c1;live c1;" */
	char events[1024];
	struct nri_cpuset updates[2];
	size_t nr_updates;
	const char *note; /* the annotation's value */
	const char *refusal;
	size_t nr_running;
	bool notes_around;   /* began, ended and after are written down, too */
	const char *created; /* the id of the last one, in the call's memory */
};

static inline void note(char *text, size_t cap, const char *word, const char *what)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, cap - len, "%s %s;", word, what);
}
#define note_call(p, word, what) note((p)->calls, sizeof(p)->calls, word, what)

static inline void give_updates(struct plugin *p, struct nri_reply *reply)
{
	struct nri_cpuset *copy = arena_array(reply->arena, 2, sizeof *copy);

	memcpy(copy, p->updates, sizeof p->updates);
	reply->updates = copy;
	reply->nr_updates = p->nr_updates;
}

static inline void on_synchronize(
	void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct plugin *p = ctx;

	p->nr_running = what->nr;
	note_call(p, "synchronize", what->nr ? what->containers[0].container_id : "-");
	for (size_t i = 1; i < what->nr && i < 3; i++)
		note_call(p, "and", what->containers[i].container_id);
	give_updates(p, reply);
}

static inline int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	struct plugin *p = ctx;

	note_call(p, "run-pod", pod->sandbox_id);
	return p->refusal ? err_set(e, ENOSPC, "%s", p->refusal) : 0;
}

static inline int on_create(
	void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	struct plugin *p = ctx;

	note_call(p, "create", req->container_id);
	p->created = req->container_id;
	if (p->refusal)
		return err_set(e, ENOSPC, "%s", p->refusal);
	reply->adjust = true;
	reply->cpus = "0-7";
	reply->mems = "0";
	if (p->note)
		reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, p->note};
	give_updates(p, reply);
	return 0;
}

static inline void on_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	note_call((struct plugin *)ctx, "update", req->container_id);
	give_updates(ctx, reply);
}

static inline void on_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	note_call((struct plugin *)ctx, "stop", req->container_id);
	give_updates(ctx, reply);
}

static inline void on_remove(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "remove", req->container_id);
}

static inline void on_live(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "live", req->container_id);
}

static inline void on_started(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "started", req->container_id);
}

static inline void on_remove_pod(void *ctx, const struct pod *pod)
{
	note_call((struct plugin *)ctx, "remove-pod", pod->sandbox_id);
}

static inline void on_event(void *ctx, const char *event, const char *text)
{
	struct plugin *p = ctx;

	note(p->events, sizeof p->events, event, text);
}

static inline void on_began(void *ctx)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "began", "-");
}

static inline void on_ended(void *ctx, enum nri_event event)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "ended", event == NRI_EVENT_CREATE ? "create" : "other");
}

/* What was decoded is there still. */
static inline void on_after(void *ctx)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "after", p->created);
}

static inline void init_as(struct plugin *p, const struct nri_plugin *plugin)
{
	*p = (struct plugin){.handler = {p, on_synchronize, on_run_pod, on_create, on_update,
				     on_stop, on_remove, on_live, on_started, on_remove_pod,
				     on_began, on_ended, on_after, on_event, NULL}};
	p->session = nri_session_new(plugin, &p->handler, 0);
}

static inline void plugin_init(struct plugin *p)
{
	init_as(p, &(struct nri_plugin){.name = "numapin", .index = "10"});
}

static inline void plugin_fini(struct plugin *p)
{
	nri_session_free(p->session);
	bytes_fini(&p->sent);
}

static inline int feed(struct plugin *p, const void *data, size_t len, uint64_t now_ms)
{
	const void *out;
	int rc = nri_session_feed(p->session, data, len, now_ms);
	size_t n = nri_session_take(p->session, &out);

	bytes_append(&p->sent, out, n);
	return rc;
}

/* Feed what was built, and free it. */
static inline int feed_bytes(struct plugin *p, struct bytes *in, uint64_t now_ms)
{
	int rc = feed(p, in->at, in->len, now_ms);

	bytes_fini(in);
	return rc;
}

static inline int feed_hex(struct plugin *p, const char *hex, uint64_t now_ms)
{
	struct bytes in = {0};

	add_hex(&in, hex);
	return feed_bytes(p, &in, now_ms);
}

static inline int feed_call(
	struct plugin *p, uint32_t id, const char *method, struct bytes *payload)
{
	struct bytes in = {0};

	put_call(&in, id, method, payload);
	return feed_bytes(p, &in, 0);
}

/* Bring the session to where events come in, and forget what was said until then. */
static inline void make_ready(struct plugin *p)
{
	assert_int_equal(feed_hex(p, registered_hex, 0), 0);
	assert_int_equal(feed_hex(p, configure_0_12_hex, 0), 0);
	assert_int_equal(feed_hex(p, synchronize_hex, 0), 0);
	assert_int_equal(nri_session_state(p->session), NRI_READY);
	p->sent.len = 0;
	p->calls[0] = p->events[0] = '\0';
}

static const struct {
	const char *in, *out; /* out NULL: nothing is answered */
} conversation[] = {
	{"", register_hex},
	{registered_hex, NULL},
	{configure_0_8_hex, configured_hex},
	{synchronize_hex, synchronized_hex},
	{create_hex, created_c7_hex},
	{state_change_hex, "000000010000000a 000000000000000b0200"},
	{remove_hex, "000000010000000a 000000000000000d0200"},
};
enum { NR_CONVERSATION = sizeof conversation / sizeof *conversation };

#endif
