#include <nri/ttrpc.h>

#include <assert.h>
#include <errno.h>
#include <numafit/number.h>
#include <stdio.h>
#include <string.h>

/* Where things are in a message's header, and its types. */
enum { STREAM_OFFSET = 4, TYPE_OFFSET = 8, FLAGS_OFFSET = 9 };
enum { TYPE_REQUEST = 1, TYPE_RESPONSE = 2 };
enum { TEXT_MAX = 160 };

void ttrpc_init(struct ttrpc *t, enum mux_stream stream, const char *service,
	const struct ttrpc_events *events, void *ctx, struct bytes *out)
{
	*t = (struct ttrpc){
		.stream = stream, .service = service, .events = events, .ctx = ctx, .out = out};
}

void ttrpc_fini(struct ttrpc *t)
{
	arena_fini(&t->call);
	bytes_fini(&t->body);
	bytes_fini(&t->later);
}

static void ttrpc_send(struct ttrpc *t, uint32_t stream, unsigned char type, struct blob body)
{
	unsigned char header[TTRPC_HEADER_BYTES] = {[TYPE_OFFSET] = type};

	wire_put_u32(header, (uint32_t)body.len);
	wire_put_u32(header + STREAM_OFFSET, stream);
	mux_append(t->out, t->stream, (struct blob){header, sizeof header}, body);
}

int ttrpc_refuse(
	struct ttrpc_response *reply, struct arena *a, enum ttrpc_status status, const char *text)
{
	*reply = (struct ttrpc_response){.status = (int)status, .message = arena_strdup(a, text)};
	return 0;
}

/* A reply that ttrpc would not accept goes out as an error: the call fails, the connection lives.
 */
static void ttrpc_send_reply(struct ttrpc *t, uint32_t stream, const struct ttrpc_response *reply)
{
	struct arena a;
	struct blob body;
	char text[TEXT_MAX];
	struct ttrpc_response too_large = {.status = TTRPC_RESOURCE_EXHAUSTED, .message = text};

	arena_init(&a, TTRPC_BODY_OUT_MAX);
	if (ttrpc_response_encode(reply, &a, &body, NULL) < 0) {
		(void)snprintf(text, sizeof text,
			"a reply of %zu bytes exceeds the maximum message size of %d",
			reply->payload.len, TTRPC_BODY_OUT_MAX);
		arena_fini(&a);
		int rc = ttrpc_response_encode(&too_large, &a, &body, NULL);
		assert(rc == 0);
		(void)rc;
	}
	ttrpc_send(t, stream, TYPE_RESPONSE, body);
	arena_fini(&a);
}

static uint32_t ttrpc_stream(const struct ttrpc *t)
{
	return wire_get_u32(t->header + STREAM_OFFSET);
}

/* The call in body. */
static int ttrpc_serve(
	struct ttrpc *t, struct arena *a, struct ttrpc_response *reply, struct err *e)
{
	struct ttrpc_request req;
	struct err wrong;
	char text[TEXT_MAX];

	if (ttrpc_request_decode((struct blob){t->body.at, t->body.len}, a, &req, &wrong) < 0)
		return ttrpc_refuse(reply, a, TTRPC_INVALID_ARGUMENT, wrong.text);
	if (strcmp(req.service, t->service) != 0) {
		(void)snprintf(text, sizeof text, "service %s", req.service);
		return ttrpc_refuse(reply, a, TTRPC_UNIMPLEMENTED, text);
	}
	return t->events->serve(t->ctx, &req, a, reply, e);
}

/* Go through what can be wrong with a call before its service sees it (ttrpc's server.go). */
static int ttrpc_answer_call(
	struct ttrpc *t, struct arena *a, struct ttrpc_response *reply, struct err *e)
{
	uint32_t stream = ttrpc_stream(t);
	char text[TEXT_MAX];

	if (stream % 2 == 0)
		return ttrpc_refuse(reply, a, TTRPC_INVALID_ARGUMENT,
			"StreamID must be odd for client initiated streams");
	if (stream <= t->last_stream)
		return ttrpc_refuse(reply, a, TTRPC_INVALID_ARGUMENT,
			"StreamID cannot be re-used and must increment");
	t->last_stream = stream;
	if (t->too_long) {
		(void)snprintf(text, sizeof text,
			"message length %u exceed maximum message size of %d",
			wire_get_u32(t->header), TTRPC_BODY_IN_MAX);
		return ttrpc_refuse(reply, a, TTRPC_RESOURCE_EXHAUSTED, text);
	}
	if (t->header[FLAGS_OFFSET])
		return ttrpc_refuse(reply, a, TTRPC_UNIMPLEMENTED, "NRI has no streaming calls");
	return ttrpc_serve(t, a, reply, e);
}

void ttrpc_release(struct ttrpc *t)
{
	if (t->answered && t->events->after)
		t->events->after(t->ctx);
	t->answered = false;
	arena_fini(&t->call);
}

/* Answer the call, which is new, or was parked; or park it. */
static int ttrpc_take_call(struct ttrpc *t, struct err *e)
{
	struct ttrpc_response reply = {0};

	ttrpc_release(t);
	arena_init(&t->call, TTRPC_MEMORY_MAX);
	int rc = t->parked ? ttrpc_serve(t, &t->call, &reply, e)
			   : ttrpc_answer_call(t, &t->call, &reply, e);
	t->answered = rc == 0;
	t->parked = rc == TTRPC_PARKED;
	if (t->answered)
		ttrpc_send_reply(t, ttrpc_stream(t), &reply);
	return t->parked ? 0 : rc;
}

static int ttrpc_take_answer(struct ttrpc *t, struct err *e)
{
	struct ttrpc_response r;
	struct err wrong = {.text = "the answer is too long"};
	struct arena a;

	arena_init(&a, TTRPC_MEMORY_MAX);
	t->waiting = false;
	if (t->too_long ||
		ttrpc_response_decode((struct blob){t->body.at, t->body.len}, &a, &r, &wrong) < 0)
		(void)ttrpc_refuse(&r, &a, TTRPC_INTERNAL, wrong.text);
	int rc = t->events->answered(t->ctx, &r, &a, e);
	arena_fini(&a);
	return rc;
}

static void ttrpc_next_message(struct ttrpc *t)
{
	t->have = 0;
	bytes_clear(&t->body);
}

static int ttrpc_take_message(struct ttrpc *t, struct err *e)
{
	unsigned type = t->header[TYPE_OFFSET];
	int rc = 0;

	if (type == TYPE_REQUEST && t->events->serve)
		rc = ttrpc_take_call(t, e);
	else if (type == TYPE_RESPONSE && t->waiting && ttrpc_stream(t) == t->last_stream)
		rc = ttrpc_take_answer(t, e);
	if (!t->parked)
		ttrpc_next_message(t);
	return rc;
}

/* Behind a call that is parked. */
static int ttrpc_keep_for_later(struct ttrpc *t, const void *data, size_t len, struct err *e)
{
	if (len > TTRPC_LATER_MAX - t->later.len)
		return err_set(
			e, EPROTO, "more than %d bytes behind a call that waits", TTRPC_LATER_MAX);
	bytes_append(&t->later, data, len);
	return 0;
}

int ttrpc_feed(struct ttrpc *t, const void *data, size_t len, struct err *e)
{
	const unsigned char *at = data, *end = at + len;
	int rc = 0;

	while (at < end && rc == 0) {
		size_t n;

		if (t->parked)
			return ttrpc_keep_for_later(t, at, (size_t)(end - at), e);
		if (t->have < TTRPC_HEADER_BYTES) {
			n = number_min(TTRPC_HEADER_BYTES - t->have, (size_t)(end - at));
			memcpy(t->header + t->have, at, n);
			t->have += (unsigned)n;
			t->left = t->have == TTRPC_HEADER_BYTES ? wire_get_u32(t->header) : 0;
			t->too_long = t->left > TTRPC_BODY_IN_MAX;
		} else {
			n = number_min(t->left, (size_t)(end - at));
			if (!t->too_long)
				bytes_append(&t->body, at, n);
			t->left -= (uint32_t)n;
		}
		at += n;
		if (t->have == TTRPC_HEADER_BYTES && !t->left)
			rc = ttrpc_take_message(t, e);
	}
	return rc;
}

int ttrpc_resume(struct ttrpc *t, struct err *e)
{
	struct bytes later = t->later;

	if (!t->parked)
		return 0;
	int rc = ttrpc_take_call(t, e);
	if (rc < 0 || t->parked)
		return rc;
	ttrpc_next_message(t);
	t->later = (struct bytes){0};
	rc = ttrpc_feed(t, later.at, later.len, e);
	bytes_fini(&later);
	return rc;
}

int ttrpc_call(
	struct ttrpc *t, const char *method, struct blob payload, int64_t timeout_ns, struct err *e)
{
	struct ttrpc_request req = {t->service, method, payload, timeout_ns};
	struct arena a;
	struct blob body;

	assert(!t->waiting && t->events->answered);
	arena_init(&a, TTRPC_MEMORY_MAX);
	int rc = ttrpc_request_encode(&req, &a, &body, e);
	if (rc == 0) {
		t->last_stream = t->last_stream ? t->last_stream + 2 : 1;
		t->waiting = true;
		ttrpc_send(t, t->last_stream, TYPE_REQUEST, body);
	}
	arena_fini(&a);
	return rc;
}
