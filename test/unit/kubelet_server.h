#ifndef TEST_KUBELET_SERVER_H
#define TEST_KUBELET_SERVER_H

#include <kubelet/grpc_server.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory in which a kubelet's socket comes and goes, a loop, and what a client of that socket
 * says for the log. What it serves is the test's. */

enum { SERVER_PATIENCE_MS = 60000, SERVER_REQUEST_MAX = 1 << 20, SERVER_LOG_MAX = 4096 };

struct kubelet {
	struct loop *loop;
	struct loop_timer *deadline;
	char top[64], dir[80], path[100];
	struct rpc_pump *pump;
	struct rpc_server *server; /* NULL: it does not run */
	struct acceptor *door;
	const struct rpc_method *methods;
	size_t nr_methods;
	void *ctx;
	char log[SERVER_LOG_MAX]; /* events, each after a blank; a bad one has a "!" */
	char last_text[240];
	bool was_quiet;
};

/* Callbacks stop the loop, so that the condition is looked at again. */
#define UNTIL(k, condition)                                                                        \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((k)->loop);                                                       \
	} while (0)

static inline void kubelet_is_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", SERVER_PATIENCE_MS);
}

static inline void kubelet_init(
	struct kubelet *k, const struct rpc_method *methods, size_t nr, void *ctx)
{
	const char *tmp = getenv("TMPDIR");
	struct err e;

	(void)snprintf(k->top, sizeof k->top, "%.40s/numafit-kubelet.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(k->top));
	(void)snprintf(k->dir, sizeof k->dir, "%s/served", k->top);
	(void)snprintf(k->path, sizeof k->path, "%s/kubelet.sock", k->dir);
	k->methods = methods;
	k->nr_methods = nr;
	k->ctx = ctx;
	k->loop = loop_new();
	k->deadline = loop_timer_new(k->loop, kubelet_is_late, NULL);
	loop_timer_set(k->deadline, SERVER_PATIENCE_MS);
	k->pump = rpc_pump_new(k->loop, &e);
	assert_non_null(k->pump);
}

/* The kubelet's way to make its socket: under another name, then renamed, already listening. */
static inline void kubelet_listen(struct kubelet *k)
{
	char elsewhere[sizeof k->path + 4];
	struct err e = {0};

	(void)snprintf(elsewhere, sizeof elsewhere, "%s.new", k->path);
	k->door = rpc_server_listen(k->server, elsewhere, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(rename(elsewhere, k->path), 0);
}

static inline void kubelet_start(struct kubelet *k)
{
	const struct rpc_server_options options = {.request_max = SERVER_REQUEST_MAX};

	(void)mkdir(k->dir, 0700);
	k->server = rpc_server_new(k->pump, &options);
	rpc_server_add(k->server, k->methods, k->nr_methods, k->ctx);
	kubelet_listen(k);
}

/* It dies, its socket stays. */
static inline void kubelet_die(struct kubelet *k)
{
	acceptor_close(k->door);
	rpc_server_free(k->server);
	k->door = NULL;
	k->server = NULL;
}

static inline void kubelet_fini(struct kubelet *k)
{
	kubelet_die(k);
	rpc_pump_free(k->pump);
	loop_free(k->loop);
	(void)unlink(k->path);
	(void)rmdir(k->dir);
	assert_int_equal(rmdir(k->top), 0);
}

static inline void kubelet_time_is_up(void *ctx)
{
	struct kubelet *k = ctx;

	k->was_quiet = true;
	loop_stop(k->loop);
}

/* Nothing is to happen, and nothing of it can be waited for. */
static inline void kubelet_stay_quiet(struct kubelet *k)
{
	enum { QUIET_MS = 100 };
	struct loop_timer *t = loop_timer_new(k->loop, kubelet_time_is_up, k);

	k->was_quiet = false;
	loop_timer_set(t, QUIET_MS);
	UNTIL(k, k->was_quiet);
	loop_timer_close(t);
}

static inline void kubelet_log(struct kubelet *k, bool bad, const char *event, const char *text)
{
	size_t len = strlen(k->log);

	assert_true(strlen(text) > 0);
	assert_true(len + strlen(event) + 3 < sizeof k->log);
	(void)snprintf(k->log + len, sizeof k->log - len, " %s%s", event, bad ? "!" : "");
	(void)text_copy(k->last_text, sizeof k->last_text, text);
	loop_stop(k->loop);
}

#endif
