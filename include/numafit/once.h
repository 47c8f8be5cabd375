#ifndef NUMAFIT_ONCE_H
#define NUMAFIT_ONCE_H

#include <numafit/err.h>
#include <stdbool.h>

/* Texts that were logged already, so that what comes again and again is logged once. A plain value,
 * zeros at first. */
enum { ONCE_MAX = 16 };
struct once {
	char text[ONCE_MAX][sizeof((struct err *)0)->text];
	unsigned nr; /* counts on: the oldest are forgotten */
};

/* Whether the text is none of the last ones, as it is from here on. */
bool once_is_new(struct once *o, const char *text);

#endif
