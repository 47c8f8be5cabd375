/* Messages that are far too large cost the process that they are sent to little memory: its peer is
 * another process, so that the two are measured apart. */
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <grpc/grpc_security.h>
#include <kubelet/grpc_private.h>

#include "grpc_rig.h"

enum {
	HUGE_BYTES = 200 << 20,
	PEAK_MORE_MAX_KB = 64 << 10 /* gRPC, and messages that have the largest size */
};

/* The most memory that a process has had, in kB. */
static long peak_kb(pid_t pid)
{
	char path[64], line[TEXT_MAX];
	long kb = -1;

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		(void)sscanf(line, "VmHWM: %ld", &kb);
	(void)fclose(f);
	assert_true(kb > 0);
	return kb;
}

/* Serve as the rig does, in a process that ends with the test's. */
static _Noreturn void serve_elsewhere(struct world *w, int ready)
{
	struct err e;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	w->l = loop_new();
	w->pump = rpc_pump_new(w->l, &e);
	start_server(w);
	assert_int_equal(write(ready, "r", 1), 1);
	for (;;)
		loop_run(w->l);
}

struct pair {
	struct world w;
	pid_t server;
};

static int setup_pair(void **state)
{
	struct pair *p = calloc(1, sizeof *p);
	struct world *w = &p->w;
	const char *tmp = getenv("TMPDIR");
	int ready[2];
	char c;
	struct err e;

	snprintf(w->dir, sizeof w->dir, "%s/test_grpc.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	w->big = calloc(1, HUGE_BYTES); /* pages come when they are read */
	assert_int_equal(pipe(ready), 0);
	p->server = fork(); /* before gRPC begins */
	assert_true(p->server >= 0);
	if (!p->server)
		serve_elsewhere(w, ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	w->l = loop_new();
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->pump = rpc_pump_new(w->l, &e);
	*state = p;
	return 0;
}

static int teardown_pair(void **state)
{
	struct pair *p = *state;
	struct world *w = &p->w;

	(void)kill(p->server, SIGKILL);
	(void)waitpid(p->server, NULL, 0);
	rpc_pump_free(w->pump);
	loop_free(w->l);
	(void)unlink(w->path);
	assert_int_equal(rmdir(w->dir), 0);
	free(w->big);
	free(p);
	return 0;
}

static void an_answer_of_200_megabytes_takes_little_memory(void **state)
{
	struct pair *p = *state;
	uint32_t size = HUGE_BYTES;

	still_serves(&p->w);
	long before = peak_kb(getpid());
	struct seen s = call(&p->w, "/test.Test/Big", RPC_UNARY, &size, sizeof size);
	assert_int_equal(s.nr_messages, 0);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(s.text, "the answer is larger than 16 MiB");
	assert_true(peak_kb(getpid()) - before < PEAK_MORE_MAX_KB);
	still_serves(&p->w);
}

static void a_request_of_200_megabytes_takes_little_memory(void **state)
{
	struct pair *p = *state;

	still_serves(&p->w);
	long before = peak_kb(p->server);
	struct seen s = call(&p->w, "/test.Test/Echo", RPC_UNARY, p->w.big, HUGE_BYTES);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	assert_true(peak_kb(p->server) - before < PEAK_MORE_MAX_KB);
	still_serves(&p->w);
}

/* Send a message to the rig's server as somebody does who compresses, and wait for the status. */
static grpc_status_code send_compressed(const struct world *w, const void *data, size_t len)
{
	char key[] = GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM;
	grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = key, .value.integer = GRPC_COMPRESS_GZIP};
	grpc_channel_args args = {1, &arg};
	char target[PATH_BYTES + 8];

	snprintf(target, sizeof target, "unix:%s", w->path);
	grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create(target, insecure, &args);
	grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck(NULL);
	grpc_call *c = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
		grpc_slice_from_static_string("/test.Test/Echo"), NULL,
		gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	grpc_byte_buffer *message = rpc_bytes(data, len), *reply = NULL;
	grpc_metadata_array initial = {0}, trailing = {0};
	grpc_status_code code;
	grpc_slice text;
	grpc_op ops[] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &initial},
		{.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &reply},
		{.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			.data.recv_status_on_client = {.trailing_metadata = &trailing,
				.status = &code,
				.status_details = &text}}};

	assert_int_equal(grpc_call_start_batch(c, ops, sizeof ops / sizeof ops[0], c, NULL), 0);
	(void)grpc_completion_queue_pluck(queue, c, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	grpc_slice_unref(text);
	grpc_byte_buffer_destroy(message);
	grpc_byte_buffer_destroy(reply);
	grpc_metadata_array_destroy(&initial);
	grpc_metadata_array_destroy(&trailing);
	grpc_call_unref(c);
	grpc_channel_destroy(channel);
	grpc_channel_credentials_release(insecure);
	grpc_completion_queue_shutdown(queue);
	grpc_completion_queue_destroy(queue);
	return code;
}

static void a_small_request_that_unpacks_to_200_megabytes_takes_little_memory(void **state)
{
	struct pair *p = *state;

	still_serves(&p->w);
	long before = peak_kb(p->server);
	grpc_status_code code = send_compressed(&p->w, p->w.big, HUGE_BYTES);
	assert_int_equal(code, GRPC_STATUS_UNIMPLEMENTED);
	assert_true(peak_kb(p->server) - before < PEAK_MORE_MAX_KB);
	still_serves(&p->w);
}

#define IN_PAIR(f) cmocka_unit_test_setup_teardown(f, setup_pair, teardown_pair)

/* A process for each: gRPC does not begin anew after a fork. */
static bool passes(const struct CMUnitTest *test)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PAIR(an_answer_of_200_megabytes_takes_little_memory),
		IN_PAIR(a_request_of_200_megabytes_takes_little_memory),
		IN_PAIR(a_small_request_that_unpacks_to_200_megabytes_takes_little_memory),
	};
	size_t nr_failed = 0;

	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		nr_failed += !passes(&tests[i]);
	return nr_failed > 0;
}
