#include <assert.h>
#include <errno.h>
#include <kubelet/plugin_registration_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20 };

/* What was read can be written. */
static void check_status(const struct plugin_status *status, struct arena *a)
{
	struct plugin_info info = {
		status->error, status->error, status->error, &status->error, status->registered};
	struct blob out;

	assert(text_is_utf8(status->error, strlen(status->error)));
	assert(plugin_info_encode(&info, a, &out, NULL) != -EILSEQ);
}

/* The bytes as a message, and as the string that everything is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plugin_status status;
	struct arena a;
	struct blob out;

	arena_init(&a, MEMORY_MAX);
	if (plugin_status_decode((struct blob){data, size}, &a, &status, NULL) == 0)
		check_status(&status, &a);
	const char *text = size ? arena_strndup(&a, (const char *)data, size) : "";
	assert(text);
	struct plugin_info info = {text, text, text, &text, 1};
	bool good = text_is_utf8(text, strlen(text));
	assert(plugin_info_encode(&info, &a, &out, NULL) == (good ? 0 : -EILSEQ));
	arena_fini(&a);
	return 0;
}
