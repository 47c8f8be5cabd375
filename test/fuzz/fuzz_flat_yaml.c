#include <stddef.h>
#include <stdint.h>

#include <codec/flat_yaml.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A path is never empty, and lines only go on. */
static int check(void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	unsigned *last = ctx;
	size_t len = strlen(path);

	(void)e;
	if (!len || len >= FLAT_YAML_PATH_MAX || path[0] == '.' || path[len - 1] == '.' || !line)
		abort();
	if (value && line < *last)
		abort();
	*last = value ? line : *last; /* an empty map has the line where it began */
	return value && strcmp(value, "stop") == 0 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	unsigned last = 0;

	if (flat_yaml_read((const char *)data, size, check, &last, &e) < 0 && e.code && !e.text[0])
		abort();
	return 0;
}
