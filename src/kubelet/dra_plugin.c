#include <kubelet/dra_plugin.h>

#include <assert.h>
#include <errno.h>
#include <kubelet/dra_pb.h>
#include <numafit/mem.h>
#include <numafit/resource_claim.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

enum {
	MEMORY_MAX = 32 << 20, /* for one call or list and all that is made of it */
	ERROR_MAX = sizeof((struct err *)0)->text
};

/* The two calls differ in the callback that they make, and in where the answer has its error. */
struct call_kind {
	void (*ask)(const struct dra_plugin_handler *h, struct dra_job *job,
		const struct dra_claim_ref *ref);
	int (*encode_error)(const char *text, struct arena *a, struct blob *out, struct err *e);
	enum dra_version version;
};

struct dra_job {
	struct dra_call *call;
	struct dra_claim_ref ref;
	struct blob answer;
	bool answered;
};

/* One call, until all of its claims have an answer. */
struct dra_call {
	struct dra_call *next, **link;
	struct rpc *r;
	const struct call_kind *kind;
	struct arena a;
	size_t nr, nr_open;
	bool no_room; /* in a, for what is to be said of a claim */
	struct dra_job job[];
};

struct health_stream {
	struct rpc *r;
	bool sending, changed; /* a message has not left yet; and there is news since */
};

struct dra_plugin {
	struct dra_plugin_handler handler;
	struct dra_call *calls;
	struct {
		VEC(struct health_stream);
	} streams;
};

/* Answers. */

static void call_free(struct dra_call *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	arena_fini(&c->a);
	free(c);
}

static void rpc_end_with(struct rpc *r, struct err *e)
{
	static const struct {
		int error;
		enum rpc_code code;
	} codes[] = {
		{EBADMSG, RPC_INVALID_ARGUMENT},
		{E2BIG, RPC_RESOURCE_EXHAUSTED},
		{EMSGSIZE, RPC_RESOURCE_EXHAUSTED},
		{ENOMEM, RPC_RESOURCE_EXHAUSTED},
	};
	enum rpc_code code = RPC_INTERNAL;

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (codes[i].error == e->code)
			code = codes[i].code;
	text_make_shown(e->text, TEXT_ONE_LINE); /* a status has to be that */
	rpc_end(r, code, e->text);
}

static void call_answer(struct dra_call *c)
{
	struct dra_claim_answer *list = arena_array(&c->a, c->nr, sizeof *list);
	struct err e = {0};
	struct blob out;
	int rc = 0;

	if (!list || c->no_room)
		rc = err_set(&e, ENOMEM, "the answers to %zu claims are too large", c->nr);
	for (size_t i = 0; !rc && i < c->nr; i++)
		list[i] = (struct dra_claim_answer){c->job[i].ref.uid, c->job[i].answer};
	if (!rc)
		rc = dra_answers_encode(list, c->nr, &c->a, &out, &e);
	if (rc)
		rpc_end_with(c->r, &e);
	else
		rpc_answer(c->r, out.data, out.len);
	call_free(c);
}

static void call_drop_one(struct dra_call *c)
{
	if (--c->nr_open == 0)
		call_answer(c);
}

static void job_answer(struct dra_job *job, struct blob answer)
{
	assert(!job->answered);
	job->answered = true;
	job->answer = answer;
	call_drop_one(job->call);
}

void dra_failed(struct dra_job *job, const char *text)
{
	struct dra_call *c = job->call;
	struct blob answer;
	char words[ERROR_MAX];

	/* an answer without an error would be one of success */
	(void)text_copy(words, sizeof words, text && *text ? text : "numafit does not say why");
	text_make_shown(words, TEXT_ONE_LINE);
	if (c->kind->encode_error(words, &c->a, &answer, NULL) < 0) {
		c->no_room = true;
		answer = (struct blob){0};
	}
	job_answer(job, answer);
}

void dra_prepared(struct dra_job *job, const struct dra_device *devices, size_t nr)
{
	struct dra_call *c = job->call;
	struct blob answer;
	struct err e = {0};

	if (dra_prepared_encode(devices, nr, c->kind->version, &c->a, &answer, &e) < 0)
		dra_failed(job, e.text);
	else
		job_answer(job, answer);
}

void dra_unprepared(struct dra_job *job)
{
	job_answer(job, (struct blob){0});
}

/* Calls. */

static bool call_has_uid(const struct dra_call *c, const char *uid)
{
	for (size_t i = 0; i < c->nr; i++)
		if (text_equal(c->job[i].ref.uid, uid))
			return true;
	return false;
}

/* Each uid once: the answer is a map. */
static void call_take_claims(struct dra_call *c, const struct dra_claim_ref *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!call_has_uid(c, list[i].uid))
			c->job[c->nr++] = (struct dra_job){.call = c, .ref = list[i]};
}

static struct dra_call *call_new(struct dra_plugin *p, struct rpc *r, const struct call_kind *kind)
{
	struct dra_call *c = xcalloc(1, sizeof *c + DRA_CLAIMS_MAX * sizeof c->job[0]);

	c->r = r;
	c->kind = kind;
	arena_init(&c->a, MEMORY_MAX);
	c->next = p->calls;
	c->link = &p->calls;
	if (c->next)
		c->next->link = &c->next;
	p->calls = c;
	return c;
}

/* The handler may answer at once: until all jobs were given out, the call holds itself. */
static void call_ask_handler(struct dra_call *c, const struct dra_plugin_handler *h)
{
	c->nr_open = c->nr + 1;
	for (size_t i = 0; i < c->nr; i++) {
		c->kind->ask(h, &c->job[i], &c->job[i].ref);
	}
	call_drop_one(c);
}

static void plugin_take_call(
	struct dra_plugin *p, struct rpc *r, struct blob request, const struct call_kind *kind)
{
	struct dra_call *c = call_new(p, r, kind);
	const struct dra_claim_ref *list;
	struct err e = {0};
	size_t nr;

	if (dra_claims_decode(request, &c->a, &list, &nr, &e) < 0) {
		rpc_end_with(r, &e);
		call_free(c);
		return;
	}
	call_take_claims(c, list, nr);
	call_ask_handler(c, &p->handler);
}

static void ask_to_prepare(
	const struct dra_plugin_handler *h, struct dra_job *job, const struct dra_claim_ref *ref)
{
	struct err e = {0};

	if (claim_check_ref(ref->ns, ref->uid, ref->name, &e))
		dra_failed(job, e.text);
	else
		h->prepare(h->ctx, job, ref);
}

/* The uid alone says what is to be given back: no name is refused, or a kubelet would ask for ever.
 */
static void ask_to_unprepare(
	const struct dra_plugin_handler *h, struct dra_job *job, const struct dra_claim_ref *ref)
{
	h->unprepare(h->ctx, job, ref);
}

static void on_prepare_v1(void *ctx, struct rpc *r, const void *request, size_t len)
{
	static const struct call_kind kind = {ask_to_prepare, dra_prepare_error_encode, DRA_V1};

	plugin_take_call(ctx, r, (struct blob){request, len}, &kind);
}

static void on_prepare_v1beta1(void *ctx, struct rpc *r, const void *request, size_t len)
{
	static const struct call_kind kind = {
		ask_to_prepare, dra_prepare_error_encode, DRA_V1BETA1};

	plugin_take_call(ctx, r, (struct blob){request, len}, &kind);
}

static void on_unprepare(void *ctx, struct rpc *r, const void *request, size_t len)
{
	static const struct call_kind kind = {ask_to_unprepare, dra_unprepare_error_encode, DRA_V1};

	plugin_take_call(ctx, r, (struct blob){request, len}, &kind);
}

/* Health. */

static size_t plugin_find_stream(const struct dra_plugin *p, const struct rpc *r)
{
	size_t i = 0;

	while (i < p->streams.nr && p->streams.at[i].r != r)
		i++;
	assert(i < p->streams.nr);
	return i;
}

/* A message is on its way at most: what changes meanwhile goes into the next one. */
static void plugin_send_health(struct dra_plugin *p, struct health_stream *s)
{
	struct dra_health *list = NULL;
	struct err e = {0};
	struct blob bytes;
	struct arena a;

	s->changed = s->sending;
	if (s->sending)
		return;
	arena_init(&a, MEMORY_MAX);
	size_t nr = p->handler.health(p->handler.ctx, &a, &list);
	if (dra_health_encode(list, nr, &a, &bytes, &e) < 0)
		rpc_end_with(s->r, &e);
	else
		s->sending =
			rpc_send(s->r, bytes.data, bytes.len) == 0; /* else it is over: closed() */
	arena_fini(&a);
}

static void on_health_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct dra_plugin *p = ctx;
	struct health_stream *s = vec_push(&p->streams);

	(void)request, (void)len; /* the empty message */
	s->r = r;
	plugin_send_health(p, s);
}

static void on_health_sendable(void *ctx, struct rpc *r)
{
	struct dra_plugin *p = ctx;
	struct health_stream *s = &p->streams.at[plugin_find_stream(p, r)];

	s->sending = false;
	if (s->changed)
		plugin_send_health(p, s);
}

static void on_health_closed(void *ctx, struct rpc *r)
{
	struct dra_plugin *p = ctx;

	vec_remove(&p->streams, plugin_find_stream(p, r));
}

/* From the last one on: a stream that ends at once is removed. */
void dra_plugin_health_changed(struct dra_plugin *p)
{
	for (size_t i = p->streams.nr; i-- > 0;)
		plugin_send_health(p, &p->streams.at[i]);
}

static const struct rpc_method dra_methods[] = {
	{DRA_PLUGIN_PATH("v1", "NodePrepareResources"), RPC_UNARY, on_prepare_v1, NULL, NULL},
	{DRA_PLUGIN_PATH("v1beta1", "NodePrepareResources"), RPC_UNARY, on_prepare_v1beta1, NULL,
		NULL},
	{DRA_PLUGIN_PATH("v1", "NodeUnprepareResources"), RPC_UNARY, on_unprepare, NULL, NULL},
	{DRA_PLUGIN_PATH("v1beta1", "NodeUnprepareResources"), RPC_UNARY, on_unprepare, NULL, NULL},
	{DRA_HEALTH_PATH("v1"), RPC_STREAM, on_health_watch, on_health_sendable, on_health_closed},
	{DRA_HEALTH_PATH("v1alpha1"), RPC_STREAM, on_health_watch, on_health_sendable,
		on_health_closed},
};

struct dra_plugin *dra_plugin_new(struct rpc_server *s, const struct dra_plugin_handler *handler)
{
	struct dra_plugin *p = xcalloc(1, sizeof *p);

	p->handler = *handler;
	rpc_server_add(s, dra_methods, sizeof dra_methods / sizeof dra_methods[0], p);
	return p;
}

void dra_plugin_free(struct dra_plugin *p)
{
	if (!p)
		return;
	while (p->calls)
		call_free(p->calls);
	vec_fini(&p->streams);
	free(p);
}
