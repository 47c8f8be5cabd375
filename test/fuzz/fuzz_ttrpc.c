#include <assert.h>
#include <nri/ttrpc.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int serve(void *ctx, const struct ttrpc_request *req, struct arena *a,
	struct ttrpc_response *reply, struct err *e)
{
	(void)ctx, (void)e;
	assert(text_is_utf8(req->method, strlen(req->method)));
	reply->payload = req->payload;
	return *req->method == 'R' ? ttrpc_refuse(reply, a, TTRPC_UNKNOWN, req->method) : 0;
}

static int answered(void *ctx, const struct ttrpc_response *r, struct arena *a, struct err *e)
{
	(void)ctx, (void)a, (void)e;
	assert(!r->message || text_is_utf8(r->message, strlen(r->message)));
	return 0;
}

static void feed(const struct ttrpc_events *events, const uint8_t *data, size_t size)
{
	struct bytes out = {0};
	struct ttrpc t;

	ttrpc_init(&t, MUX_PLUGIN, "s", events, NULL, &out);
	if (events->answered)
		(void)ttrpc_call(&t, "m", (struct blob){0}, 0, NULL);
	int rc = ttrpc_feed(&t, data, size / 2, NULL);
	assert(rc == 0);
	rc = ttrpc_feed(&t, data + size / 2, size - size / 2, NULL);
	assert(rc == 0);
	ttrpc_fini(&t);
	bytes_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ttrpc_events server = {.serve = serve}, client = {.answered = answered};

	feed(&server, data, size);
	feed(&client, data, size);
	return 0;
}
