#include <numafit/config_file.h>

#include <codec/flat_yaml.h>
#include <errno.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>

/* A byte more than it may have is enough to tell that it has too many. */
enum { BYTES_READ = FLAT_YAML_BYTES_MAX + 1 };

char *config_file_text(const char *path, size_t *len, struct err *e)
{
	auto_free char *text = xcalloc(BYTES_READ, 1);
	FILE *f = fopen(path, "re");

	if (!f) {
		(void)err_set(e, errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	*len = fread(text, 1, BYTES_READ, f);
	int failed = ferror(f);
	(void)fclose(f);
	if (failed)
		(void)err_set(e, EIO, "%s: cannot be read", path);
	return failed ? NULL : steal(text);
}
