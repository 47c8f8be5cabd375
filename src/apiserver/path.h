#ifndef NUMAFIT_APISERVER_PATH_H
#define NUMAFIT_APISERVER_PATH_H

#include <numafit/text.h>

/* Paths of the API server with names in them that came from elsewhere. */

enum { API_PATH_MAX = 1024 };

/* Appends the text as one segment of a path, or one value of a query: what is not a letter, a digit
 * or one of "-._~" as %XX (RFC 3986, 2.3). */
void path_add_escaped(struct text *t, const char *text);

#endif
