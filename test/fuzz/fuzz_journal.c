#include <io/journal.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_line(void *ctx, char *text, size_t len, struct err *e)
{
	size_t *total = ctx;

	(void)e;
	assert(text[len] == '\0');
	memset(text, 'x', len);
	*total += len;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	size_t total = 0;
	int fd = memfd_create("journal", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	(void)journal_read(path, on_line, &total, NULL);
	assert(total <= size);
	(void)close(fd);
	return 0;
}
