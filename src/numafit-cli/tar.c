#include <numafit-cli/tar.h>

#include <assert.h>
#include <string.h>

enum { BLOCK = 512, END_BLOCKS = 2 };

/* One block; numbers are octal digits and a NUL. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(struct tar_header) == BLOCK, "a header is a block");

#define OCTAL(field, value)                                                                        \
	(void)snprintf(field, sizeof(field), "%0*llo", (int)sizeof(field) - 1,                     \
		(unsigned long long)(value))

void tar_add(FILE *to, const char *name, const void *data, size_t len, int64_t mtime_s)
{
	static const char zeros[BLOCK];
	struct tar_header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	(void)snprintf(h.name, sizeof h.name, "%s", name);
	OCTAL(h.mode, 0600);
	OCTAL(h.uid, 0);
	OCTAL(h.gid, 0);
	OCTAL(h.size, len);
	OCTAL(h.mtime, mtime_s);
	memset(h.sum, ' ', sizeof h.sum); /* as which it counts */
	for (size_t i = 0; i < sizeof h; i++)
		sum += bytes[i];
	(void)snprintf(h.sum, sizeof h.sum, "%06o", sum); /* and a blank behind the NUL */
	(void)fwrite(&h, 1, sizeof h, to);
	(void)fwrite(data, 1, len, to);
	(void)fwrite(zeros, 1, (BLOCK - len % BLOCK) % BLOCK, to);
}

void tar_end(FILE *to)
{
	static const char zeros[END_BLOCKS * BLOCK];

	(void)fwrite(zeros, 1, sizeof zeros, to);
}
