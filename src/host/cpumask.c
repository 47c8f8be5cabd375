/* The kernel's masks and lists of CPUs, as text. */
#include <host/cpumask.h>

#include <ctype.h>
#include <errno.h>
#include <io/file.h>
#include <string.h>

enum { NIBBLE_BITS = 4, LIST_BYTES_MAX = 16 << 10 };

static int nibble_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

int cpumask_parse(const char *text, struct cpuset *out, struct err *e)
{
	const size_t len = strcspn(text, "\n");
	struct cpuset cpus = {0};
	unsigned bit = 0;

	for (size_t i = len; i-- > 0;) {
		const int nibble = nibble_of(text[i]);

		if (text[i] == ',')
			continue;
		if (nibble < 0)
			return err_set(e, EINVAL, "\"%.64s\" is no mask of CPUs", text);
		for (unsigned k = 0; k < NIBBLE_BITS; k++)
			if (nibble >> k & 1 && bit + k >= CPUSET_BITS)
				return err_set(e, ERANGE, "\"%.64s\" has a CPU above %d", text,
					CPUSET_BITS - 1);
			else if (nibble >> k & 1)
				cpuset_add(&cpus, bit + k);
		bit += NIBBLE_BITS;
	}
	*out = cpus;
	return len ? 0 : err_set(e, EINVAL, "it is empty");
}

int cpulist_read(const char *path, struct cpuset *out, struct err *e)
{
	char text[LIST_BYTES_MAX];
	int len = file_read_into(path, text, sizeof text, e);

	if (len < 0)
		return len;
	int rc = cpuset_parse(out, text, (size_t)len, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}
