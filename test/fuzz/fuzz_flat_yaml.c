#include <stddef.h>
#include <stdint.h>

#include <codec/flat_yaml.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A path is never empty, and lines only go on. */
static int check(void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	unsigned *last = ctx;
	size_t len = strlen(path);

	if (!len || len >= FLAT_YAML_PATH_MAX || path[0] == '.' || path[len - 1] == '.' || !line)
		abort();
	if (value && line < *last)
		abort();
	*last = value ? line : *last; /* an empty map has the line where it began */
	return value && strcmp(value, "stop") == 0 ? err_set(e, EINVAL, "stop") : 0;
}

/* With a list of all mistakes the same ones are wrong, and paths and lines are as good. */
static void read_to_the_end(const uint8_t *data, size_t size, bool wrong)
{
	struct mistakes all = {0};
	struct err e = {0};
	unsigned last = 0;
	int rc = flat_yaml_read((const char *)data, size, check, &last, &all, &e);

	if ((rc != 0) != wrong || (all.found.nr != 0) != wrong || all.found.nr > MISTAKES_MAX ||
		(wrong && !e.text[0]))
		abort();
	mistakes_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	unsigned last = 0;
	int rc = flat_yaml_read((const char *)data, size, check, &last, NULL, &e);

	if (rc < 0 && e.code && !e.text[0])
		abort();
	read_to_the_end(data, size, rc != 0);
	return 0;
}
