#ifndef TEST_REGISTRATION_KUBELET_H
#define TEST_REGISTRATION_KUBELET_H

#include <dirent.h>
#include <errno.h>
#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>
#include <kubelet/registration_pb.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* What of a kubelet a registration meets: it wipes its directory when it starts, listens there,
 * calls back during Register, and watches. It is killed, and behaves badly, on demand. */

enum { REQUEST_BYTES = 1024, NR_WATCHES = 4 };

/* What it does when Register comes. */
enum on_register {
	KUBELET_WATCHES,
	KUBELET_NEVER_WATCHES,
	KUBELET_REFUSES,
	KUBELET_HANGS,
	KUBELET_WIPES, /* our socket, then hangs */
};

struct kubelet {
	struct loop *l;
	struct rpc_pump *pump;
	char dir[PATH_MAX], socket[PATH_MAX], plugin[PATH_MAX];
	enum on_register behaviour;
	const char *words; /* of a refusal */
	struct rpc_server *server;
	struct acceptor *door;
	struct rpc *asked; /* the Register that is owed an answer */
	struct rpc_call *options;
	struct watching {
		struct kubelet *k;
		struct rpc_call *call; /* NULL: free */
	} watches[NR_WATCHES];
	unsigned nr_watches, nr_overlaps, nr_registers;
	uint64_t registered_ns, unwatched_ns; /* when Register came, when a watch had ended */
	char request[REQUEST_BYTES];
};

static void ignore_message(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
}

static void kubelet_unwatched(struct watching *w)
{
	w->call = NULL;
	w->k->nr_watches--;
	w->k->unwatched_ns = loop_monotonic_ns();
	loop_stop(w->k->l);
}

static void watch_ended(void *ctx, enum rpc_code code, const char *text)
{
	(void)code, (void)text;
	kubelet_unwatched(ctx);
}

static void kubelet_watch(struct kubelet *k)
{
	struct rpc_request request = {.socket = k->plugin,
		.method = DEVICE_PLUGIN_PATH("ListAndWatch"),
		.kind = RPC_STREAM};
	struct watching *w = k->watches;

	while (w->call)
		w++;
	assert_true(w < k->watches + NR_WATCHES);
	w->k = k;
	struct rpc_call_events events = {w, ignore_message, watch_ended};
	w->call = rpc_call_start(k->pump, &request, &events, NULL);
	assert_non_null(w->call);
	k->nr_watches++;
}

static void kubelet_unwatch(struct kubelet *k)
{
	for (struct watching *w = k->watches; w < k->watches + NR_WATCHES; w++) {
		if (w->call) {
			rpc_call_cancel(w->call);
			kubelet_unwatched(w);
		}
	}
}

static void called_back(void *ctx, enum rpc_code code, const char *text)
{
	struct kubelet *k = ctx;

	(void)text;
	k->options = NULL;
	if (code != RPC_OK) {
		rpc_end(steal(k->asked), RPC_UNKNOWN, "failed to get device plugin options");
		return;
	}
	rpc_answer(steal(k->asked), "", 0);
	if (k->behaviour != KUBELET_NEVER_WATCHES)
		kubelet_watch(k);
	loop_stop(k->l);
}

static void on_register(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct kubelet *k = ctx;
	struct rpc_request options = {
		.socket = k->plugin, .method = DEVICE_PLUGIN_PATH("GetDevicePluginOptions")};
	struct rpc_call_events events = {k, ignore_message, called_back};

	k->nr_registers++;
	k->registered_ns = loop_monotonic_ns();
	k->nr_overlaps += k->nr_watches > 0;
	assert_true(len < sizeof k->request);
	memcpy(k->request, request, len);
	if (k->asked) /* nobody waits any more */
		rpc_end(k->asked, RPC_CANCELLED, NULL);
	k->asked = r;
	rpc_call_cancel(steal(k->options));
	if (k->behaviour == KUBELET_REFUSES)
		rpc_end(steal(k->asked), RPC_UNKNOWN, k->words);
	else if (k->behaviour == KUBELET_WIPES)
		(void)unlink(k->plugin);
	else if (k->behaviour != KUBELET_HANGS)
		k->options = rpc_call_start(k->pump, &options, &events, NULL); /* or it hangs */
	loop_stop(k->l);
}

static const struct rpc_method kubelet_methods[] = {
	{.path = REGISTRATION_REGISTER_PATH, .kind = RPC_UNARY, .called = on_register},
};

static void kubelet_wipe(const struct kubelet *k)
{
	DIR *d = opendir(k->dir);

	assert_non_null(d);
	for (struct dirent *file; (file = readdir(d));) {
		if (file->d_type == DT_SOCK)
			assert_int_equal(unlinkat(dirfd(d), file->d_name, 0), 0);
	}
	(void)closedir(d);
}

static void kubelet_listen(struct kubelet *k)
{
	struct err e = {0};

	k->door = rpc_server_listen(k->server, k->socket, &e);
	assert_string_equal(e.text, "");
}

static void kubelet_start(struct kubelet *k)
{
	struct rpc_server_options options = {.request_max = REQUEST_BYTES};

	assert_null(k->server);
	assert_true(mkdir(k->dir, 0750) == 0 || errno == EEXIST);
	kubelet_wipe(k);
	k->server = rpc_server_new(k->pump, &options);
	rpc_server_add(k->server, kubelet_methods, 1, k);
	kubelet_listen(k);
}

/* Nobody listens any more; the socket's file stays. */
static void kubelet_leave_socket(struct kubelet *k)
{
	char aside[PATH_MAX + sizeof ".aside"];

	(void)snprintf(aside, sizeof aside, "%s.aside", k->socket);
	bool there = rename(k->socket, aside) == 0;
	acceptor_close(steal(k->door));
	if (there)
		assert_int_equal(rename(aside, k->socket), 0);
}

/* As by SIGKILL or, with its socket removed, by SIGTERM. */
static void kubelet_die(struct kubelet *k, bool socket_stays)
{
	if (socket_stays)
		kubelet_leave_socket(k);
	acceptor_close(steal(k->door));
	rpc_call_cancel(steal(k->options));
	kubelet_unwatch(k);
	if (k->asked)
		rpc_end(steal(k->asked), RPC_UNAVAILABLE, "transport is closing");
	rpc_server_free(steal(k->server));
}

static void kubelet_init(struct kubelet *k, struct loop *l, struct rpc_pump *pump, const char *dir,
	const char *endpoint)
{
	*k = (struct kubelet){.l = l, .pump = pump};
	assert_true(snprintf(k->dir, sizeof k->dir, "%s", dir) < (int)sizeof k->dir);
	assert_true(snprintf(k->socket, sizeof k->socket, "%s/kubelet.sock", dir) <
		    (int)sizeof k->socket);
	assert_true(snprintf(k->plugin, sizeof k->plugin, "%s/%s", dir, endpoint) <
		    (int)sizeof k->plugin);
}

#endif
