#include <numafit/mem.h>

#include <string.h>

void *xcalloc(size_t nr, size_t size)
{
	void *p = calloc(nr ? nr : 1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *xrealloc(void *p, size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes))
		abort();
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		abort();
	return p;
}

char *xstrndup(const char *s, size_t len)
{
	size_t most = strnlen(s, len);
	char *copy = xcalloc(most + 1, 1);

	memcpy(copy, s, most);
	return copy;
}

char *xstrdup(const char *s)
{
	size_t size = s ? strlen(s) + 1 : 1;
	char *copy = xcalloc(size, 1);

	if (s)
		memcpy(copy, s, size);
	return copy;
}
