#include <nri/bytes.h>

#include <numafit/mem.h>
#include <string.h>

enum { BYTES_KEEP = 64 << 10 };

unsigned char *bytes_extend(struct bytes *b, size_t len)
{
	size_t need;

	if (__builtin_add_overflow(b->len, len, &need))
		abort();
	if (need > b->cap) {
		b->cap = need > b->cap * 2 ? need : b->cap * 2;
		b->at = xrealloc(b->at, b->cap, 1);
	}
	b->len = need;
	return b->at + need - len;
}

void bytes_append(struct bytes *b, const void *data, size_t len)
{
	if (len)
		memcpy(bytes_extend(b, len), data, len);
}

void bytes_clear(struct bytes *b)
{
	b->len = 0;
	if (b->cap > BYTES_KEEP)
		bytes_fini(b);
}

void bytes_fini(struct bytes *b)
{
	free(b->at);
	*b = (struct bytes){0};
}

size_t outbox_take(struct outbox *o, const void **data)
{
	struct bytes sent = o->taken;

	bytes_clear(&sent);
	o->taken = o->filling;
	o->filling = sent;
	*data = o->taken.at;
	return o->taken.len;
}

void outbox_fini(struct outbox *o)
{
	bytes_fini(&o->filling);
	bytes_fini(&o->taken);
}
