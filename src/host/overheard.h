#ifndef NUMAFIT_HOST_OVERHEARD_H
#define NUMAFIT_HOST_OVERHEARD_H

#include <stddef.h>

/* What a library prints on standard error, which is where some say why they fail. Between the two
 * calls all of it, of every thread, goes into memory: only while there is one thread. */
struct overheard {
	int real, memory; /* descriptors; -1: nothing is overheard */
};

void overhear(struct overheard *o);
/* Standard error is as it was. Its first max bytes as a text that the caller frees; "" when nothing
 * was printed or could be heard. */
char *overheard_end(struct overheard *o, size_t max);

#endif
