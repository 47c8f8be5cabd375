#include <assert.h>
#include <nri/ttrpc_pb.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 16 << 20 };

/* What can be read can be written, and is read again as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size}, out;
	struct ttrpc_request req, req2;
	struct ttrpc_response r, r2;
	struct arena a;
	int rc;

	arena_init(&a, MEMORY_MAX);
	if (ttrpc_request_decode(in, &a, &req, NULL) == 0) {
		rc = ttrpc_request_encode(&req, &a, &out, NULL);
		assert(rc == 0);
		rc = ttrpc_request_decode(out, &a, &req2, NULL);
		assert(rc == 0 && strcmp(req.method, req2.method) == 0 &&
			req.timeout_ns == req2.timeout_ns && req.payload.len == req2.payload.len);
	}
	if (ttrpc_response_decode(in, &a, &r, NULL) == 0) {
		rc = ttrpc_response_encode(&r, &a, &out, NULL);
		assert(rc == 0);
		rc = ttrpc_response_decode(out, &a, &r2, NULL);
		assert(rc == 0 && r.status == r2.status);
	}
	arena_fini(&a);
	return 0;
}
