#include <assert.h>
#include <errno.h>
#include <nri/mux.h>
#include <nri/session.h>
#include <nri/ttrpc.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	(void)ctx, (void)reply;
	for (size_t i = 0; i < what->nr_pods; i++)
		assert(*what->pods[i].sandbox_id);
}

static int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx;
	return pod->totals.known ? 0 : err_set(e, ENOSPC, "%s has no sums", pod->name);
}

static int on_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	(void)ctx;
	reply->adjust = true;
	reply->cpus = req->cpus;
	reply->mems = req->mems;
	reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, req->pod.name};
	return req->ask.nr_memory ? err_set(e, ENOSPC, "%s does not fit", req->container_id) : 0;
}

static void on_change(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct nri_cpuset *keep = arena_array(reply->arena, 1, sizeof *keep);

	(void)ctx;
	assert(*req->container_id);
	if (!keep)
		return;
	*keep = (struct nri_cpuset){req->container_id, "0", "0", false};
	reply->updates = keep;
	reply->nr_updates = 1;
}

static void on_container(void *ctx, const struct request *req)
{
	(void)ctx;
	assert(*req->container_id);
}

static void on_pod(void *ctx, const struct pod *pod)
{
	(void)ctx;
	assert(*pod->sandbox_id);
}

/* Each message is a frame with a header and, unless it is empty, a frame with the whole body. */
static void check_shape(const unsigned char *at, size_t len)
{
	const unsigned char *end = at + len;

	while (at < end) {
		assert(wire_get_u32(at + 4) == TTRPC_HEADER_BYTES);
		uint32_t stream = wire_get_u32(at), body = wire_get_u32(at + MUX_HEADER_BYTES);
		at += MUX_HEADER_BYTES + TTRPC_HEADER_BYTES;
		if (!body)
			continue;
		assert(wire_get_u32(at) == stream && wire_get_u32(at + 4) == body);
		at += MUX_HEADER_BYTES + body;
	}
	assert(at == end);
}

static unsigned asked;

static bool every_third_waits(void *ctx, enum nri_event event, const struct request *req)
{
	(void)ctx, (void)event, (void)req;
	return asked++ % 3 == 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nri_handler handler = {NULL, on_synchronize, on_run_pod, on_create,
		on_change, on_change, on_container, on_container, on_container, on_pod, NULL, NULL,
		NULL, NULL, every_third_waits};
	const struct nri_plugin plugin = {.name = "numafit",
		.index = "50",
		.launched = size % 2,
		.on_failure = {.fail_request = true}};
	struct nri_session *s = nri_session_new(&plugin, &handler, 0);
	const void *out;

	asked = 0;
	(void)nri_session_feed(s, data, size / 2, 0);
	(void)nri_session_resume(s, 0);
	(void)nri_session_feed(s, data + size / 2, size - size / 2, 1);
	(void)nri_session_resume(s, 2);
	size_t len = nri_session_take(s, &out);
	check_shape(out, len);
	nri_session_free(s);
	return 0;
}
