#include <kubelet/grpc_client.h>

#include <io/socket_path.h>
#include <kubelet/grpc_private.h>
#include <numafit/mem.h>

#include <assert.h>
#include <errno.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AUTHORITY "localhost"

struct rpc_call {
	struct rpc_pump *pump;
	struct rpc_call_events events;
	enum rpc_kind kind;
	grpc_resource_quota *quota; /* of the channel's memory; outlives the channel */
	grpc_channel *channel;
	grpc_call *call;
	struct rpc_tag sent, received, ended;
	unsigned nr_pending; /* of these */
	grpc_byte_buffer *request, *message;
	grpc_byte_buffer *reply; /* RPC_UNARY: kept until the status is known */
	grpc_metadata_array initial, trailing;
	grpc_status_code code;
	grpc_slice text;
	const char *fault; /* what is wrong with the answer, as seen by us */
	bool cancelled;
};

static int connect_to_socket(const char *path, struct err *e)
{
	struct sockaddr_un address;
	int rc = socket_path_address(path, &address, e);

	if (rc < 0)
		return rc;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	rc = err_set(e, errno, "socket %s: %s", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* A channel from a descriptor of ours resolves nothing, knows no proxy, shares no back-off with
 * others; its default authority would be "test.authority". */
static grpc_channel *channel_on(int fd, grpc_resource_quota *quota)
{
	char authority_key[] = GRPC_ARG_DEFAULT_AUTHORITY, authority[] = AUTHORITY;
	grpc_arg arg[RPC_BOUNDS + 1] = {
		{.type = GRPC_ARG_STRING, .key = authority_key, .value.string = authority},
	};
	grpc_channel_args args = {.num_args = sizeof arg / sizeof arg[0], .args = arg};
	rpc_bounds(RPC_REPLY_MAX, quota, arg + 1);
	grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create_from_fd(AUTHORITY, fd, insecure, &args);

	grpc_channel_credentials_release(insecure);
	return channel;
}

static void call_start(struct rpc_call *c, const grpc_op *ops, size_t nr, struct rpc_tag *tag)
{
	grpc_call_error rc = grpc_call_start_batch(c->call, ops, nr, tag, NULL);

	assert(rc == GRPC_CALL_OK);
	(void)rc;
	c->nr_pending++;
}

static void call_receive(struct rpc_call *c)
{
	grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->message};

	call_start(c, &op, 1, &c->received);
}

static void call_free_all(struct rpc_call *c)
{
	grpc_byte_buffer_destroy(c->request);
	grpc_byte_buffer_destroy(c->message);
	grpc_byte_buffer_destroy(c->reply);
	grpc_metadata_array_destroy(&c->initial);
	grpc_metadata_array_destroy(&c->trailing);
	grpc_slice_unref(c->text);
	grpc_call_unref(c->call);
	grpc_channel_destroy(c->channel);
	grpc_resource_quota_unref(c->quota);
	rpc_pump_release(c->pump);
	free(c);
}

/* What is wrong is what the caller hears, instead of what the server says. */
static void grpc_call_fail(struct rpc_call *c, const char *fault)
{
	if (!c->fault)
		c->fault = fault;
	(void)grpc_call_cancel(c->call, NULL);
}

static void call_deliver(struct rpc_call *c, grpc_byte_buffer *message)
{
	grpc_slice bytes;

	if (!rpc_bytes_read(message, &bytes)) {
		grpc_call_fail(c, "the message is compressed");
		return;
	}
	c->events.message(c->events.ctx, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
	grpc_slice_unref(bytes);
}

/* gRPC's words for a full quota name neither message nor limit, and have no code of their own. */
static const char *text_of_end(grpc_status_code code, const char *text)
{
	static const char full[] = "the answer is larger than " RPC_REPLY_MAX_TEXT;

	return code == GRPC_STATUS_RESOURCE_EXHAUSTED && !strcmp(text, "Buffers full") ? full
										       : text;
}

static void call_report_end(struct rpc_call *c)
{
	if (c->kind == RPC_UNARY && c->code == GRPC_STATUS_OK && !c->fault) {
		if (c->reply)
			call_deliver(c, c->reply);
		else
			c->fault = "there is no reply";
	}
	if (c->cancelled) /* by message() */
		return;
	char *text = grpc_slice_to_c_string(c->text);
	const char *why = c->fault ? c->fault : text_of_end(c->code, text);
	enum rpc_code code = c->fault ? RPC_INTERNAL : (enum rpc_code)c->code;
	c->cancelled = true;
	c->events.ended(c->events.ctx, code, why);
	gpr_free(text);
}

static void call_completed(struct rpc_call *c)
{
	if (--c->nr_pending)
		return;
	if (!c->cancelled)
		call_report_end(c);
	call_free_all(c);
}

static void call_on_sent(void *owner, bool ok)
{
	(void)ok; /* the status says how it went */
	call_completed(owner);
}

static void call_on_received(void *owner, bool ok)
{
	struct rpc_call *c = owner;
	grpc_byte_buffer *message = steal(c->message);

	bool more = ok && message && !c->cancelled;
	if (more && c->kind == RPC_STREAM)
		call_deliver(c, message);
	else if (more && c->reply)
		grpc_call_fail(c, "there is more than one reply");
	else if (more)
		c->reply = steal(message);
	grpc_byte_buffer_destroy(message); /* the next message needs the room of the quota */
	if (more)
		call_receive(c);
	call_completed(c);
}

static void call_start_all(struct rpc_call *c)
{
	grpc_op send[] = {
		{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = c->request},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &c->initial},
	};
	grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		.data.recv_status_on_client = {.trailing_metadata = &c->trailing,
			.status = &c->code,
			.status_details = &c->text}};

	call_start(c, send, sizeof send / sizeof send[0], &c->sent);
	call_start(c, &status, 1, &c->ended);
	call_receive(c);
}

static gpr_timespec deadline_in(unsigned timeout_ms)
{
	if (!timeout_ms)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	return gpr_time_add(
		gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
}

struct rpc_call *rpc_call_start(struct rpc_pump *p, const struct rpc_request *request,
	const struct rpc_call_events *events, struct err *e)
{
	int fd = connect_to_socket(request->socket, e);
	sigset_t before;

	if (fd < 0)
		return NULL;
	struct rpc_call *c = xcalloc(1, sizeof *c);
	c->pump = p;
	c->events = *events;
	c->kind = request->kind;
	c->sent = (struct rpc_tag){call_on_sent, c};
	c->received = (struct rpc_tag){call_on_received, c};
	c->ended = (struct rpc_tag){call_on_sent, c};
	c->request = rpc_bytes(request->data, request->len);
	c->text = grpc_empty_slice();
	grpc_slice method = grpc_slice_from_copied_string(request->method);
	rpc_block_signals(&before);
	c->quota = grpc_resource_quota_create(NULL);
	c->channel = channel_on(fd, c->quota);
	c->call = grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		rpc_pump_queue(p), method, NULL, deadline_in(request->timeout_ms), NULL);
	grpc_slice_unref(method);
	rpc_pump_hold(p);
	call_start_all(c);
	rpc_restore_signals(&before);
	return c;
}

void rpc_call_cancel(struct rpc_call *c)
{
	if (!c)
		return;
	c->cancelled = true;
	(void)grpc_call_cancel(c->call, NULL);
}
