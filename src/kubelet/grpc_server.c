#include <kubelet/grpc_server.h>

#include <kubelet/grpc_private.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/vec.h>

#include <assert.h>
#include <errno.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <limits.h>
#include <string.h>

struct service {
	const struct rpc_method *methods;
	size_t nr;
	void *ctx;
};

struct rpc_server {
	struct rpc_pump *pump;
	struct rpc_server_options options;
	grpc_resource_quota *quota; /* of its memory; outlives it */
	grpc_server *server;
	grpc_server_credentials *insecure;
	struct {
		VEC(struct service);
	} services;
	struct rpc *open; /* list of those that came and are not over */
	size_t nr_open;
	bool armed; /* the next call has a struct rpc waiting */
	struct rpc_tag down;
	bool closing, is_down;
};

/* A call from its arrival to its end. Waiting to hear of its end (heard) is an operation, too, and
 * pending all the time: a call without pending operations is over. */
struct rpc {
	struct rpc_server *server;
	struct rpc *next, **link;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	const struct rpc_method *method; /* from the callback on */
	void *ctx;
	struct rpc_tag came, heard, received, sent, ended;
	unsigned nr_pending; /* of these */
	int cut_off;         /* where gRPC says whether the end was not ours */
	grpc_byte_buffer *request, *message;
	struct loop_timer *limit; /* of the end */
	enum rpc_code code;
	char *text;
	bool owed;   /* RPC_UNARY: the method has it and has not answered */
	bool opened; /* the initial metadata went */
	bool sending, ending, gone;
};

static void rpc_start(struct rpc *r, const grpc_op *ops, size_t nr, struct rpc_tag *tag)
{
	grpc_call_error rc = grpc_call_start_batch(r->call, ops, nr, tag, NULL);

	assert(rc == GRPC_CALL_OK);
	(void)rc;
	r->nr_pending++;
}

static void rpc_free(struct rpc *r)
{
	grpc_byte_buffer_destroy(r->request);
	grpc_byte_buffer_destroy(r->message);
	grpc_call_details_destroy(&r->details);
	grpc_metadata_array_destroy(&r->metadata);
	if (r->call)
		grpc_call_unref(r->call);
	loop_timer_close(r->limit);
	free(r->text);
	free(r);
}

static void rpc_free_if_over(struct rpc *r)
{
	if (r->nr_pending || r->owed)
		return;
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	r->server->nr_open--;
	if (r->method && r->method->kind == RPC_STREAM)
		r->method->closed(r->ctx, r);
	rpc_free(r);
}

static void rpc_completed(struct rpc *r)
{
	r->nr_pending--;
	rpc_free_if_over(r);
}

static void rpc_cut_off(void *ctx)
{
	struct rpc *r = ctx;

	(void)grpc_call_cancel(r->call, NULL);
}

static void rpc_send_status(struct rpc *r)
{
	grpc_slice text = grpc_slice_from_copied_string(r->text);
	grpc_op ops[2] = {
		{.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
			.data.send_status_from_server = {.status = (grpc_status_code)r->code,
				.status_details = &text}},
		{.op = GRPC_OP_SEND_INITIAL_METADATA}};

	rpc_start(r, ops, r->opened ? 1 : 2, &r->ended);
	r->opened = true;
	grpc_slice_unref(text);
}

void rpc_end(struct rpc *r, enum rpc_code code, const char *text)
{
	if (!r->ending) {
		r->ending = true;
		r->code = code;
		r->text = xstrdup(text);
		if (r->method && r->method->kind == RPC_STREAM) {
			r->limit = loop_timer_new(rpc_pump_loop(r->server->pump), rpc_cut_off, r);
			loop_timer_set(r->limit, RPC_END_MS);
		}
		if (!r->sending && !r->gone)
			rpc_send_status(r);
	}
	r->owed = false;
	rpc_free_if_over(r);
}

/* Send a message, and the status after it if there is one. */
static void rpc_send_message(struct rpc *r, const void *data, size_t len, bool last)
{
	grpc_op ops[3];
	size_t nr = 0;

	r->message = rpc_bytes(data, len);
	if (!r->opened)
		ops[nr++] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
	ops[nr++] =
		(grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = r->message};
	if (last)
		ops[nr++] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
			.data.send_status_from_server.status = GRPC_STATUS_OK};
	r->opened = true;
	rpc_start(r, ops, nr, last ? &r->ended : &r->sent);
}

void rpc_answer(struct rpc *r, const void *message, size_t len)
{
	assert(r->owed && !r->ending);
	r->ending = true;
	r->owed = false;
	if (!r->gone)
		rpc_send_message(r, message, len, true);
	rpc_free_if_over(r);
}

int rpc_send(struct rpc *r, const void *message, size_t len)
{
	assert(r->method->kind == RPC_STREAM);
	if (r->gone || r->ending)
		return -EPIPE;
	if (r->sending)
		return -EBUSY;
	r->sending = true;
	rpc_send_message(r, message, len, false);
	return 0;
}

static void rpc_on_sent(void *owner, bool ok)
{
	struct rpc *r = owner;

	r->sending = false;
	grpc_byte_buffer_destroy(steal(r->message));
	if (r->ending && !r->gone)
		rpc_send_status(r);
	else if (ok && !r->ending && !r->gone && r->method && r->method->sendable)
		r->method->sendable(r->ctx, r);
	rpc_completed(r);
}

static void rpc_on_ended(void *owner, bool ok)
{
	(void)ok;
	rpc_completed(owner);
}

/* The peer is gone, or it has our status. */
static void rpc_on_heard(void *owner, bool ok)
{
	struct rpc *r = owner;

	(void)ok;
	r->gone = true;
	rpc_completed(r);
}

/* Which method a call wants, from the bytes of its path. */
static const struct rpc_method *server_find_method(
	const struct rpc_server *s, grpc_slice path, void **ctx)
{
	for (size_t n = 0; n < s->services.nr; n++) {
		const struct service *v = &s->services.at[n];

		for (size_t m = 0; m < v->nr; m++) {
			if (grpc_slice_str_cmp(path, v->methods[m].path))
				continue;
			*ctx = v->ctx;
			return &v->methods[m];
		}
	}
	return NULL;
}

static void rpc_call_method(struct rpc *r, grpc_slice request)
{
	void *ctx = NULL;
	const struct rpc_method *m = server_find_method(r->server, r->details.method, &ctx);

	r->method = m;
	r->ctx = ctx;
	r->owed = m->kind == RPC_UNARY;
	m->called(ctx, r, GRPC_SLICE_START_PTR(request), GRPC_SLICE_LENGTH(request));
}

static void rpc_on_received(void *owner, bool ok)
{
	struct rpc *r = owner;
	grpc_byte_buffer *request = steal(r->request);
	grpc_slice bytes;

	if (ok && !r->gone && !r->ending) {
		if (!request) {
			rpc_end(r, RPC_INTERNAL, "there is no request message");
		} else if (!rpc_bytes_read(request, &bytes)) {
			rpc_end(r, RPC_INTERNAL, "the request message is compressed");
		} else {
			rpc_call_method(r, bytes);
			grpc_slice_unref(bytes);
		}
	}
	grpc_byte_buffer_destroy(request);
	rpc_completed(r);
}

static void server_arm(struct rpc_server *s);

static void server_accept_call(struct rpc *r)
{
	struct rpc_server *s = r->server;
	grpc_op heard = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
		.data.recv_close_on_server.cancelled = &r->cut_off};
	grpc_op receive = {
		.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &r->request};
	void *ctx;

	r->next = s->open;
	if (r->next)
		r->next->link = &r->next;
	r->link = &s->open;
	s->open = r;
	s->nr_open++;
	rpc_start(r, &heard, 1, &r->heard);
	if (s->closing)
		rpc_end(r, RPC_UNAVAILABLE, "numafit is going down");
	else if (!server_find_method(s, r->details.method, &ctx))
		rpc_end(r, RPC_UNIMPLEMENTED, "numafit does not serve this method");
	else if (s->nr_open > RPC_OPEN_MAX)
		rpc_end(r, RPC_RESOURCE_EXHAUSTED, "too many calls are open");
	else
		rpc_start(r, &receive, 1, &r->received);
}

static void rpc_on_came(void *owner, bool ok)
{
	struct rpc *r = owner;
	struct rpc_server *s = r->server;

	s->armed = false;
	if (!ok) { /* the server goes down */
		rpc_free(r);
		return;
	}
	if (!s->closing)
		server_arm(s);
	server_accept_call(r);
}

/* Get a struct rpc ready for the next call, of whatever method: with gRPC's own tables of methods
 * an unknown one would hang. */
static void server_arm(struct rpc_server *s)
{
	struct rpc *r = xcalloc(1, sizeof *r);
	grpc_completion_queue *queue = rpc_pump_queue(s->pump);

	r->server = s;
	r->came = (struct rpc_tag){rpc_on_came, r};
	r->heard = (struct rpc_tag){rpc_on_heard, r};
	r->received = (struct rpc_tag){rpc_on_received, r};
	r->sent = (struct rpc_tag){rpc_on_sent, r};
	r->ended = (struct rpc_tag){rpc_on_ended, r};
	grpc_call_details_init(&r->details);
	grpc_metadata_array_init(&r->metadata);
	grpc_call_error rc = grpc_server_request_call(
		s->server, &r->call, &r->details, &r->metadata, queue, queue, &r->came);
	assert(rc == GRPC_CALL_OK);
	(void)rc;
	s->armed = true;
}

static void server_on_down(void *owner, bool ok)
{
	struct rpc_server *s = owner;

	(void)ok;
	s->is_down = true;
}

/* A kubelet sends no pings; should one do it one day, it is not to be cut off for them. */
static grpc_server *make_grpc_server(size_t request_max, grpc_resource_quota *quota)
{
	char streams_key[] = GRPC_ARG_MAX_CONCURRENT_STREAMS;
	char strikes_key[] = GRPC_ARG_HTTP2_MAX_PING_STRIKES;
	grpc_arg arg[RPC_BOUNDS + 2] = {
		{.type = GRPC_ARG_INTEGER, .key = streams_key, .value.integer = RPC_STREAMS_MAX},
		{.type = GRPC_ARG_INTEGER, .key = strikes_key, .value.integer = 0},
	};
	grpc_channel_args args = {.num_args = sizeof arg / sizeof arg[0], .args = arg};

	rpc_bounds(request_max, quota, arg + 2);
	return grpc_server_create(&args, NULL);
}

struct rpc_server *rpc_server_new(struct rpc_pump *p, const struct rpc_server_options *options)
{
	struct rpc_server *s = xcalloc(1, sizeof *s);
	sigset_t before;

	s->pump = p;
	s->options = *options;
	s->down = (struct rpc_tag){server_on_down, s};
	rpc_block_signals(&before);
	s->quota = grpc_resource_quota_create(NULL);
	s->server = make_grpc_server(options->request_max, s->quota);
	s->insecure = grpc_insecure_server_credentials_create();
	grpc_server_register_completion_queue(s->server, rpc_pump_queue(p), NULL);
	grpc_server_start(s->server);
	rpc_restore_signals(&before);
	server_arm(s);
	return s;
}

void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, size_t nr, void *ctx)
{
	*vec_push(&s->services) = (struct service){methods, nr, ctx};
}

static void server_on_connected(void *ctx, int fd)
{
	struct rpc_server *s = ctx;
	sigset_t before;

	rpc_block_signals(&before);
	grpc_server_add_channel_from_fd(s->server, fd, s->insecure);
	rpc_restore_signals(&before);
}

static void server_on_refused(void *ctx, pid_t pid, uid_t uid)
{
	struct rpc_server *s = ctx;

	if (s->options.refused)
		s->options.refused(s->options.ctx, pid, uid);
}

struct acceptor *rpc_server_listen(struct rpc_server *s, const char *path, struct err *e)
{
	struct acceptor_events events = {s, server_on_connected, server_on_refused};

	return acceptor_new(rpc_pump_loop(s->pump), path, &events, e);
}

static bool server_is_over(const struct rpc_server *s)
{
	return s->is_down && !s->armed && !s->open;
}

static void server_wait_until_over(struct rpc_server *s, unsigned limit_ms)
{
	uint64_t now = loop_monotonic_ns(), until = now + (uint64_t)limit_ms * NS_PER_MS;

	for (; !server_is_over(s) && now < until; now = loop_monotonic_ns())
		(void)rpc_pump_wait(s->pump, (unsigned)((until - now) / NS_PER_MS) + 1);
}

void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	s->closing = true;
	grpc_server_shutdown_and_notify(s->server, rpc_pump_queue(s->pump), &s->down);
	for (struct rpc *r = s->open, *next; r; r = next) {
		next = r->next;
		r->method = NULL; /* its functions are not called any more */
		rpc_end(r, RPC_UNAVAILABLE, "numafit is going down");
	}
	server_wait_until_over(s, RPC_END_MS);
	if (!server_is_over(s))
		grpc_server_cancel_all_calls(s->server);
	while (!server_is_over(s))
		server_wait_until_over(s, RPC_END_MS);
	grpc_server_destroy(s->server);
	grpc_resource_quota_unref(s->quota);
	grpc_server_credentials_release(s->insecure);
	vec_fini(&s->services);
	free(s);
}
