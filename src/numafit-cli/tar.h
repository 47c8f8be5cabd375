#ifndef NUMAFIT_CLI_TAR_H
#define NUMAFIT_CLI_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An archive of plain files that any tar reads (POSIX.1-1988 ustar). Errors stay on the stream, for
 * ferror(). */

enum { TAR_NAME_MAX = 99 };

/* One file of len bytes, below 8 GiB, with mode 0600: name has at most TAR_NAME_MAX bytes. */
void tar_add(FILE *to, const char *name, const void *data, size_t len, int64_t mtime_s);
void tar_end(FILE *to);

#endif
