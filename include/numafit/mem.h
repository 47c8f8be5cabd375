#ifndef NUMAFIT_MEM_H
#define NUMAFIT_MEM_H

#include <stddef.h>
#include <stdlib.h>

/* Heap memory that is always there: when the system has none left, the process aborts here and
 * nowhere else. Sizes that come from outside are checked by the caller before they get here. */

/* nr * size zeroed bytes; the caller frees. Never NULL; a product that overflows aborts. */
void *xcalloc(size_t nr, size_t size);
/* Like realloc(p, nr * size), same promises. */
void *xrealloc(void *p, size_t nr, size_t size);
/* A copy of the string s; the caller frees. NULL gives an empty string. */
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len); /* at most len bytes of it */

static inline void mem_free_slot(void *slot)
{
	free(*(void **)slot);
}
/* A local pointer that owns its memory: freed when the scope is left. */
#define auto_free __attribute__((cleanup(mem_free_slot)))
/* Take the value out of an owning local, so that leaving the scope frees nothing. */
#define steal(p)                                                                                   \
	({                                                                                         \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})

#endif
