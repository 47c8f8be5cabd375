#include <host/overheard.h>

#include <fcntl.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void overhear(struct overheard *o)
{
	(void)fflush(stderr);
	*o = (struct overheard){fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), -1};
	if (o->real >= 0)
		o->memory = memfd_create("overheard", MFD_CLOEXEC);
	if (o->memory >= 0)
		(void)dup2(o->memory, STDERR_FILENO);
}

char *overheard_end(struct overheard *o, size_t max)
{
	char *text = xcalloc(1, max + 1);

	(void)fflush(stderr);
	if (o->memory >= 0) {
		ssize_t len = pread(o->memory, text, max, 0);

		text[len < 0 ? 0 : len] = '\0';
		(void)dup2(o->real, STDERR_FILENO);
		(void)close(o->memory);
	}
	if (o->real >= 0)
		(void)close(o->real);
	return text;
}
