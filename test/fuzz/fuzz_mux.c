#include <assert.h>
#include <nri/mux.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct bytes of[MUX_RUNTIME + 1];
};

static int collect(void *ctx, enum mux_stream stream, const void *data, size_t len, struct err *e)
{
	struct seen *s = ctx;

	(void)e;
	assert(len > 0);
	bytes_append(&s->of[stream], data, len);
	return 0;
}

/* However the bytes are split, the same comes out. The first byte says where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mux whole = {0}, split = {0};
	struct seen a = {0}, b = {0};

	if (!size)
		return 0;
	size_t cut = data[0] < size - 1 ? data[0] : size - 1;
	int rc = mux_feed(&whole, data + 1, size - 1, collect, &a, NULL);
	int rc2 = mux_feed(&split, data + 1, cut, collect, &b, NULL);
	if (rc2 == 0)
		rc2 = mux_feed(&split, data + 1 + cut, size - 1 - cut, collect, &b, NULL);
	assert(rc == rc2);
	for (unsigned i = MUX_PLUGIN; i <= MUX_RUNTIME; i++) {
		assert(a.of[i].len == b.of[i].len);
		assert(!a.of[i].len || memcmp(a.of[i].at, b.of[i].at, a.of[i].len) == 0);
		bytes_fini(&a.of[i]);
		bytes_fini(&b.of[i]);
	}
	return 0;
}
