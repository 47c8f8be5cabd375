#include <numafit/arena.h>

#include <assert.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_MIN = 16 << 10 };

struct arena_block {
	struct arena_block *next;
	alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *a, size_t limit_bytes)
{
	*a = (struct arena){.limit_bytes = limit_bytes};
}

void arena_init_fixed(struct arena *a, void *mem, size_t len)
{
	size_t skew = (uintptr_t)mem % alignof(max_align_t);
	size_t skip = skew ? alignof(max_align_t) - skew : 0;

	if (skip > len)
		skip = len;
	*a = (struct arena){.at = (char *)mem + skip,
		.left = len - skip,
		.limit_bytes = len - skip,
		.fixed = true};
}

void arena_fini(struct arena *a)
{
	if (!a)
		return;
	while (a->blocks) {
		struct arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
	*a = (struct arena){.limit_bytes = a->limit_bytes};
}

struct arena_mark arena_mark(const struct arena *a)
{
	assert(a->fixed);
	return (struct arena_mark){a->given};
}

void arena_release(struct arena *a, struct arena_mark m)
{
	size_t bytes = a->given - m.given;

	assert(a->fixed && m.given <= a->given);
	a->at -= bytes;
	a->left += bytes;
	a->given -= bytes;
}

/* size up to where the next piece may begin. At least one byte, so that no success looks like NULL.
 * 0: it is too much. */
static size_t rounded_up(size_t size)
{
	size_t align = alignof(max_align_t);

	if (__builtin_add_overflow(size ? size : 1, align - 1, &size))
		return 0;
	return size - size % align;
}

void *arena_alloc_raw(struct arena *a, size_t size)
{
	size = rounded_up(size);
	if (!size || size > a->limit_bytes || a->given > a->limit_bytes - size)
		return NULL;
	if (size > a->left && a->fixed)
		return NULL;
	if (size > a->left) {
		/* the rest of the old block is given up: blocks double, so little is lost */
		size_t bytes = number_max(number_max(size, a->given), BLOCK_MIN);
		struct arena_block *b = xrealloc(NULL, 1, sizeof *b + bytes);

		b->next = a->blocks;
		a->blocks = b;
		a->at = b->bytes;
		a->left = bytes;
	}
	void *p = a->at;
	a->at += size;
	a->left -= size;
	a->given += size;
	return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p = arena_alloc_raw(a, size);

	return p ? memset(p, 0, size) : NULL;
}

void *arena_array(struct arena *a, size_t nr, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(nr, size, &bytes) ? NULL : arena_alloc(a, bytes);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;

	if (copy && len)
		memcpy(copy, s, len);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return s ? arena_strndup(a, s, strlen(s)) : NULL;
}
