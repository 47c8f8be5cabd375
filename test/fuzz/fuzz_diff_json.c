#include <stddef.h>
#include <stdint.h>

#include <questions/diff_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const char *path, const char *wanted, const char *got)
{
	(void)ctx;
	if (!path || !wanted || !got)
		abort();
}

/* Two values, with a newline between them: they differ nowhere exactly when they are equal. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
	size_t first = newline ? (size_t)(newline - data) : size;
	json_t *a = NULL, *b = NULL;

	if (newline && !json_parse((const char *)data, first, &a, NULL) &&
		!json_parse((const char *)newline + 1, size - first - 1, &b, NULL) &&
		(json_diff(a, b, ignore, NULL) == 0) != json_equal(a, b))
		abort();
	json_decref(a);
	json_decref(b);
	return 0;
}
