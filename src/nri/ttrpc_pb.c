#include <nri/ttrpc_pb.h>

#include <codec/pb_message.h>
#include <errno.h>
#include <numafit/text.h>
#include <ttrpc.pb-c.h>

static ProtobufCBinaryData binary(struct blob b)
{
	return (ProtobufCBinaryData){b.len, (uint8_t *)(uintptr_t)b.data};
}

int ttrpc_request_decode(
	struct blob body, struct arena *a, struct ttrpc_request *out, struct err *e)
{
	const Ttrpc__Request *m = pb_decode(&ttrpc__request__descriptor, body, a, e);

	if (!m)
		return -EBADMSG;
	*out = (struct ttrpc_request){.service = m->service,
		.method = m->method,
		.payload = {m->payload.data, m->payload.len},
		.timeout_ns = m->timeout_nano};
	return 0;
}

int ttrpc_response_decode(
	struct blob body, struct arena *a, struct ttrpc_response *out, struct err *e)
{
	const Ttrpc__Response *m = pb_decode(&ttrpc__response__descriptor, body, a, e);

	if (!m)
		return -EBADMSG;
	*out = (struct ttrpc_response){.status = m->status ? m->status->code : 0,
		.message = m->status ? m->status->message : "",
		.payload = {m->payload.data, m->payload.len}};
	return 0;
}

int ttrpc_request_encode(
	const struct ttrpc_request *req, struct arena *a, struct blob *out, struct err *e)
{
	Ttrpc__Request m;

	ttrpc__request__init(&m);
	m.service = pb_string(req->service);
	m.method = pb_string(req->method);
	m.payload = binary(req->payload);
	m.timeout_nano = req->timeout_ns;
	return pb_encode(&m.base, a, out, e);
}

int ttrpc_response_encode(
	const struct ttrpc_response *r, struct arena *a, struct blob *out, struct err *e)
{
	Ttrpc__Response m;
	Ttrpc__Status status;

	ttrpc__response__init(&m);
	ttrpc__status__init(&status);
	if (r->status) {
		char *message = arena_strdup(a, r->message);

		if (message)
			text_make_shown(message, TEXT_ONE_LINE);
		status.code = r->status;
		status.message = pb_string(message);
		m.status = &status;
	} else {
		m.payload = binary(r->payload);
	}
	return pb_encode(&m.base, a, out, e);
}
