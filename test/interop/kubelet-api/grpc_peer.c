#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>

#include <errno.h>
#include <numafit/mem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our side of the interop tests of src/kubelet/grpc_*: a server of methods for tests, and a client
 * for one call that prints what came.
 * usage: grpc_peer serve SOCKET
 *        grpc_peer unary|stream SOCKET METHOD TIMEOUT-MS REQUEST */

enum { REQUEST_MAX = 16 << 20, FLOOD_BYTES = 1 << 20, NUMBER_MAX = 16 };

struct peer {
	struct loop *l;
	struct rpc_pump *pump;
	unsigned nr_open; /* streams of "Hang" */
	char *flood;
	int rc;
};

static void answer_number(struct rpc *r, unsigned number)
{
	char text[NUMBER_MAX];

	rpc_answer(r, text, (size_t)snprintf(text, sizeof text, "%u", number));
}

static void echo(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx;
	rpc_answer(r, request, len);
}

static void fail(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx;
	(void)request;
	(void)len;
	rpc_end(r, RPC_NOT_FOUND, "pod \xc3\xa4: 100 % of it\nis gone");
}

static void tell_open(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct peer *p = ctx;

	(void)request;
	(void)len;
	answer_number(r, p->nr_open);
}

static void quit(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct peer *p = ctx;

	rpc_answer(r, request, len);
	loop_stop(p->l);
}

/* A stream's state, found again by its address: a list, newest first. */
struct count {
	struct count *next;
	struct rpc *r;
	unsigned at, to;
};
static struct count *counts;

static struct count **count_of(const struct rpc *r)
{
	struct count **c = &counts;

	while ((*c)->r != r)
		c = &(*c)->next;
	return c;
}

static void count_on(void *ctx, struct rpc *r)
{
	struct count *c = *count_of(r);
	char text[NUMBER_MAX];

	(void)ctx;
	if (c->at++ < c->to)
		(void)rpc_send(r, text, (size_t)snprintf(text, sizeof text, "%u", c->at));
	else
		rpc_end(r, RPC_OK, NULL);
}

static void count(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct count *c = xcalloc(1, sizeof *c);
	char text[NUMBER_MAX] = "";

	memcpy(text, request, len < sizeof text ? len : sizeof text - 1);
	c->r = r;
	c->to = (unsigned)atoi(text);
	c->next = counts;
	counts = c;
	count_on(ctx, r);
}

static void count_closed(void *ctx, struct rpc *r)
{
	struct count **c = count_of(r), *gone = *c;

	(void)ctx;
	*c = gone->next;
	free(gone);
}

static void hang(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct peer *p = ctx;

	p->nr_open++;
	(void)rpc_send(r, request, len);
}

static void hang_closed(void *ctx, struct rpc *r)
{
	struct peer *p = ctx;

	(void)r;
	p->nr_open--;
}

static void flood_on(void *ctx, struct rpc *r)
{
	struct peer *p = ctx;

	(void)rpc_send(r, p->flood, FLOOD_BYTES);
}

static void flood(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)request;
	(void)len;
	flood_on(ctx, r);
}

static void flood_closed(void *ctx, struct rpc *r)
{
	(void)ctx;
	(void)r;
}

static const struct rpc_method methods[] = {
	{.path = "/test.Test/Echo", .called = echo},
	{.path = "/test.Test/Fail", .called = fail},
	{.path = "/test.Test/Open", .called = tell_open},
	{.path = "/test.Test/Quit", .called = quit},
	{"/test.Test/Count", RPC_STREAM, count, count_on, count_closed},
	{"/test.Test/Hang", RPC_STREAM, hang, NULL, hang_closed},
	{"/test.Test/Flood", RPC_STREAM, flood, flood_on, flood_closed},
};

static void stop(void *ctx)
{
	struct peer *p = ctx;

	loop_stop(p->l);
}

static int serve(struct peer *p, char **words, struct err *e)
{
	struct rpc_server_options options = {.request_max = REQUEST_MAX};
	struct rpc_server *s = rpc_server_new(p->pump, &options);

	rpc_server_add(s, methods, sizeof methods / sizeof methods[0], p);
	struct acceptor *door = rpc_server_listen(s, words[0], e);
	if (door) {
		(void)loop_on_signal(p->l, SIGTERM, stop, p);
		puts("ready");
		(void)fflush(stdout);
		loop_run(p->l);
	}
	acceptor_close(door);
	rpc_server_free(s);
	return door ? 0 : -e->code;
}

static void print_message(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	(void)data;
	printf("message %zu\n", len);
}

static void print_end(void *ctx, enum rpc_code code, const char *text)
{
	struct peer *p = ctx;

	printf("ended %d %s\n", (int)code, text);
	loop_stop(p->l);
}

static int call(struct peer *p, enum rpc_kind kind, char **words, struct err *e)
{
	struct rpc_request request = {.socket = words[0],
		.method = words[1],
		.kind = kind,
		.data = words[3],
		.len = strlen(words[3]),
		.timeout_ms = (unsigned)atoi(words[2])};
	struct rpc_call_events events = {p, print_message, print_end};

	if (rpc_call_start(p->pump, &request, &events, e))
		loop_run(p->l);
	else
		puts(e->text);
	return 0;
}

static int run(struct peer *p, int nr, char **words, struct err *e)
{
	if (nr == 2 && !strcmp(words[0], "serve"))
		return serve(p, words + 1, e);
	if (nr == 5 && !strcmp(words[0], "unary"))
		return call(p, RPC_UNARY, words + 1, e);
	if (nr == 5 && !strcmp(words[0], "stream"))
		return call(p, RPC_STREAM, words + 1, e);
	return err_set(e, EINVAL,
		"usage: serve SOCKET, or unary or stream with SOCKET METHOD "
		"TIMEOUT-MS REQUEST");
}

int main(int argc, char **argv)
{
	struct peer p = {.l = loop_new(), .flood = xcalloc(1, FLOOD_BYTES)};
	struct err e = {0};
	int rc = -EINVAL;

	p.pump = rpc_pump_new(p.l, &e);
	if (p.pump)
		rc = run(&p, argc - 1, argv + 1, &e);
	if (rc < 0)
		(void)fprintf(stderr, "grpc_peer: %s\n", e.text);
	rpc_pump_free(p.pump);
	loop_free(p.l);
	free(p.flood);
	return rc < 0;
}
