#include <assert.h>
#include <errno.h>
#include <kubelet/registration_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20, NR_TEXTS = 2 };

/* The input is the two names, each up to a NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char version[] = "\x0a\x07v1beta1";
	const char *text[NR_TEXTS];
	struct blob out;
	struct arena a;
	bool good = true;

	arena_init(&a, MEMORY_MAX);
	for (unsigned i = 0; i < NR_TEXTS; i++) {
		size_t len = size ? strnlen((const char *)data, size) : 0;

		text[i] = arena_strndup(&a, (const char *)data, len);
		assert(text[i]);
		good = good && text_is_utf8(text[i], len);
		len += len < size; /* the NUL */
		size -= len;
		data += len;
	}
	struct plugin_registration r = {.endpoint = text[0], .resource = text[1]};
	int rc = registration_encode(&r, &a, &out, NULL);
	assert(good ? rc == 0 : rc == -EILSEQ);
	assert(rc ||
		(out.len > sizeof version && memcmp(out.data, version, sizeof version - 1) == 0));
	arena_fini(&a);
	return 0;
}
