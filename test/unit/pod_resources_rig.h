#ifndef NUMAFIT_TEST_POD_RESOURCES_RIG_H
#define NUMAFIT_TEST_POD_RESOURCES_RIG_H

#include <kubelet/pod_resources.h>

#include <io/watch.h>
#include <kubelet/pod_resources_server_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kubelet_server.h"

/* A kubelet whose PodResources answer as a test wants, and our client of it, on one loop. */

/* The client against a server of ours that says what the case wants. */

enum {
	NEVER_MS = 20 * SERVER_PATIENCE_MS,
	SLOW_MS = NEVER_MS / 2,
	NS_PER_MS = 1000000,
	HELD_MAX = 8
};

enum reply { REPLY_ANSWER, REPLY_CODE, REPLY_LATER };

struct world {
	struct kubelet k;
	struct pod_resources *r;
	struct pod_resources_options options;
	struct pod_resources_handler handler;
	enum reply reply;
	enum rpc_code code;  /* REPLY_CODE */
	unsigned after;      /* so many of them an answer follows; 0: none does */
	struct arena memory; /* of the answer */
	struct blob answer;
	struct rpc *later[HELD_MAX];
	unsigned nr_later, nr_asked, nr_updated;
	size_t nr_pods;
	bool changed;               /* the socket */
	struct blob devices;        /* the answer to GetAllocatableResources, */
	enum rpc_code devices_code; /* or why there is none */
	unsigned nr_devices_asked;
	unsigned wishes; /* of updated(), each for another question */
};

static inline void on_list(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_asked++;
	if (w->reply == REPLY_LATER) {
		assert_true(w->nr_later < HELD_MAX);
		w->later[w->nr_later++] = r;
	} else if (w->reply == REPLY_CODE) {
		rpc_end(r, w->code, "the kubelet's words");
		if (w->after && !--w->after)
			w->reply = REPLY_ANSWER;
	} else {
		rpc_answer(r, w->answer.data, w->answer.len);
	}
	loop_stop(w->k.loop);
}

static inline void on_allocatable(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_devices_asked++;
	if (w->devices_code)
		rpc_end(r, w->devices_code, "not today");
	else
		rpc_answer(r, w->devices.data, w->devices.len);
	loop_stop(w->k.loop);
}

static const struct rpc_method methods[] = {
	{.path = POD_RESOURCES_PATH("List"), .kind = RPC_UNARY, .called = on_list},
	{.path = POD_RESOURCES_PATH("GetAllocatableResources"),
		.kind = RPC_UNARY,
		.called = on_allocatable},
};

static inline void on_updated(void *ctx, const struct pods_held *held)
{
	struct world *w = ctx;

	w->nr_updated++;
	w->nr_pods = held->nr;
	if (w->wishes) {
		w->wishes--;
		(void)pod_resources_refresh(w->r);
	}
	loop_stop(w->k.loop);
}

static inline void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	kubelet_log(&w->k, bad, event, text);
}

static inline int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	kubelet_init(&w->k, methods, sizeof methods / sizeof methods[0], w);
	arena_init(&w->memory, SIZE_MAX);
	w->handler = (struct pod_resources_handler){w, on_updated, on_event};
	w->options = (struct pod_resources_options){.socket = w->k.path,
		.every_ms = NEVER_MS,
		.answer_ms = NEVER_MS,
		.retry_min_ms = 1,
		.retry_max_ms = NEVER_MS,
		.gap_ms = 1};
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	pod_resources_close(w->r);
	for (unsigned i = 0; i < w->nr_later; i++)
		rpc_end(w->later[i], RPC_UNAVAILABLE, NULL);
	kubelet_fini(&w->k);
	arena_fini(&w->memory);
	free(w);
	return 0;
}

static inline void begin(struct world *w)
{
	w->r = pod_resources_new(w->k.loop, w->k.pump, &w->options, &w->handler);
}

/* The answer has these pods. */
static inline void will_answer(struct world *w, const struct pod_held *pod, size_t nr)
{
	const struct pods_held held = {pod, nr};

	assert_int_equal(pod_resources_list_encode(&held, &w->memory, &w->answer, NULL), 0);
	w->reply = REPLY_ANSWER;
}

static const struct held_device gpus[] = {
	{"vendor.example/gpu", "gpu0", true, {(const int64_t[]){2}, 1}},
	{"vendor.example/gpu", "gpu1", true, {(const int64_t[]){3}, 1}},
};
static const struct container_held with_gpu = {.name = "app", .device = &gpus[0], .nr_devices = 1},
				   with_other = {.name = "app",
					   .device = &gpus[1],
					   .nr_devices = 1},
				   bare = {.name = "app"};

#define POD(ns_, name_, container_)                                                                \
	{                                                                                          \
		.ns = (ns_), .name = (name_), .container = (container_), .nr = 1                   \
	}
static const struct pod_held two_pods[] = {
	POD("ml", "train", &with_gpu), POD("default", "web", &bare)};

static inline void assert_holds(
	const struct world *w, const char *ns, const char *pod, const char *device)
{
	const struct container_held *c = pod_resources_find(w->r, ns, pod, "app");

	assert_non_null(c);
	assert_int_equal(c->nr_devices, device ? 1 : 0);
	if (device)
		assert_string_equal(c->device[0].id, device);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
