#include <kubelet/grpc_private.h>

#include <io/inbox.h>
#include <numafit/mem.h>

#include <assert.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	INBOX_ITEMS = 256,
	PATIENCE_MS = 1000,
	ROOM_BYTES = 8 << 20 /* of gRPC's buffers beside the largest message */
};

struct rpc_pump {
	struct loop *loop;
	struct inbox *inbox;
	grpc_completion_queue *queue;
	pthread_t thread;
	size_t nr_held;
	bool ended;
};

static void *pump_run(void *arg)
{
	struct rpc_pump *p = arg;

	for (;;) {
		gpr_timespec forever = gpr_inf_future(GPR_CLOCK_MONOTONIC);
		grpc_event ev = grpc_completion_queue_next(p->queue, forever, NULL);

		if (ev.type == GRPC_QUEUE_SHUTDOWN)
			break;
		inbox_put(p->inbox, ev.tag, ev.success);
	}
	inbox_put(p->inbox, NULL, 0);
	return NULL;
}

static void pump_on_completed(void *ctx, void *what, int value)
{
	struct rpc_pump *p = ctx;
	struct rpc_tag *tag = what;

	if (tag)
		tag->done(tag->owner, value);
	else
		p->ended = true;
}

#ifdef __SANITIZE_THREAD__
/* The sanitizer does not see how libraries that were built without it synchronize. What it reports
 * of their code is left out; ours is never called from it, so nothing of ours hides behind that. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:libgrpc_unsecure.so\ncalled_from_lib:libgpr.so\n"
	       "race:libgrpc_unsecure.so\nrace:libgpr.so\nrace:libabsl_\n";
}
#endif

/* gRPC reports to stderr what its callers hear of as well. Its last words before it aborts are said
 * nowhere else. */
static void log_last_words(gpr_log_func_args *args)
{
	static const char last_words[] = "assertion failed";

	if (!strncmp(args->message, last_words, sizeof last_words - 1))
		(void)dprintf(
			STDERR_FILENO, "gRPC: %s:%d: %s\n", args->file, args->line, args->message);
}

void rpc_block_signals(sigset_t *before)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, before);
}

void rpc_restore_signals(const sigset_t *before)
{
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* What gRPC frees on threads of its own keeps it up beyond our shutdown; the last of that shuts it
 * down for good. */
static void grpc_shut_down(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	grpc_shutdown_blocking();
	for (int ms = 0; ms < PATIENCE_MS && grpc_is_initialized(); ms++)
		(void)nanosleep(&step, NULL);
}

static void pump_end(struct rpc_pump *p)
{
	grpc_completion_queue_destroy(p->queue);
	inbox_close(p->inbox);
	grpc_shut_down();
	free(p);
}

struct rpc_pump *rpc_pump_new(struct loop *l, struct err *e)
{
	struct rpc_pump *p = xcalloc(1, sizeof *p);
	sigset_t before;

	p->loop = l;
	p->inbox = inbox_new(l, INBOX_ITEMS, pump_on_completed, p);
	rpc_block_signals(&before);
	gpr_set_log_function(log_last_words);
	grpc_init();
	p->queue = grpc_completion_queue_create_for_next(NULL);
	int rc = pthread_create(&p->thread, NULL, pump_run, p);
	rpc_restore_signals(&before);
	if (!rc) {
		(void)pthread_setname_np(p->thread, "grpc-pump");
		return p;
	}
	(void)err_set(e, rc, "gRPC: a thread for its completions: %s", strerror(rc));
	grpc_completion_queue_shutdown(p->queue);
	pump_end(p);
	return NULL;
}

void rpc_pump_free(struct rpc_pump *p)
{
	if (!p)
		return;
	while (p->nr_held)
		(void)rpc_pump_wait(p, PATIENCE_MS);
	grpc_completion_queue_shutdown(p->queue);
	while (!p->ended)
		(void)rpc_pump_wait(p, PATIENCE_MS);
	(void)pthread_join(p->thread, NULL);
	pump_end(p);
}

grpc_completion_queue *rpc_pump_queue(struct rpc_pump *p)
{
	return p->queue;
}

struct loop *rpc_pump_loop(struct rpc_pump *p)
{
	return p->loop;
}

void rpc_pump_hold(struct rpc_pump *p)
{
	p->nr_held++;
}

void rpc_pump_release(struct rpc_pump *p)
{
	assert(p->nr_held);
	p->nr_held--;
}

bool rpc_pump_wait(struct rpc_pump *p, unsigned timeout_ms)
{
	return inbox_wait(p->inbox, timeout_ms) > 0;
}

/* gRPC 1.51 compares a message's length with its limit when the message is there as a whole; the
 * quota ends the call that fills the buffers before. The length of what is unpacked is compared
 * with nothing. */
void rpc_bounds(size_t message_max, grpc_resource_quota *quota, grpc_arg *out)
{
	static char max_key[] = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH;
	static char quota_key[] = GRPC_ARG_RESOURCE_QUOTA;
	static char unpack_key[] = GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION;
	static char algorithms_key[] = GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET;
	const int algorithms = 1 << GRPC_COMPRESS_NONE;

	assert(message_max <= INT_MAX);
	grpc_resource_quota_resize(quota, message_max + ROOM_BYTES);
	out[0] = (grpc_arg){GRPC_ARG_INTEGER, max_key, {.integer = (int)message_max}};
	out[1] = (grpc_arg){GRPC_ARG_POINTER, quota_key,
		{.pointer = {quota, grpc_resource_quota_arg_vtable()}}};
	out[2] = (grpc_arg){GRPC_ARG_INTEGER, unpack_key, {.integer = 0}};
	out[3] = (grpc_arg){GRPC_ARG_INTEGER, algorithms_key, {.integer = algorithms}};
}

grpc_byte_buffer *rpc_bytes(const void *data, size_t len)
{
	grpc_slice slice = grpc_slice_from_copied_buffer(data, len);
	grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return message;
}

bool rpc_bytes_read(grpc_byte_buffer *message, grpc_slice *bytes)
{
	grpc_byte_buffer_reader reader;

	if (message->data.raw.compression != GRPC_COMPRESS_NONE ||
		!grpc_byte_buffer_reader_init(&reader, message))
		return false;
	*bytes = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	return true;
}
