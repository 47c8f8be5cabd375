#ifndef NUMAFIT_ARENA_H
#define NUMAFIT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* Memory that is given out piece by piece and taken back all at once: all that is decoded from
 * one message, or all that one decision needs. Open only so that it can live on a stack. */
struct arena {
	struct arena_block *blocks; /* heap blocks, newest first; NULL on fixed memory */
	char *at;
	size_t left;
	size_t given;       /* bytes given out so far, alignment included */
	size_t limit_bytes; /* never gives out more than this */
	bool fixed;
};

/* An arena that grows on the heap up to limit_bytes. */
void arena_init(struct arena *a, size_t limit_bytes);
/* An arena over the caller's len bytes at mem: never touches the heap. */
void arena_init_fixed(struct arena *a, void *mem, size_t len);
/* Give everything back; the arena may be used again. Accepts NULL and an arena of zeros. */
void arena_fini(struct arena *a);

/* Where a fixed arena is now; arena_release() gives back all that it has given out since. */
struct arena_mark {
	size_t given;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_release(struct arena *a, struct arena_mark m);

/* size zeroed bytes, aligned for any type, valid until arena_fini(). NULL when the limit is
 * reached: the message or the decision is too large, which is an answer and not a crash. */
void *arena_alloc(struct arena *a, size_t size);
/* The same with whatever is there: for a caller that fills all of it. */
void *arena_alloc_raw(struct arena *a, size_t size);
/* The same for nr elements; NULL also when nr * size overflows. */
void *arena_array(struct arena *a, size_t nr, size_t size);
/* The len bytes at s as a string; NULL as above. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
/* A copy of the string; NULL as above, and of NULL. */
char *arena_strdup(struct arena *a, const char *s);

#endif
