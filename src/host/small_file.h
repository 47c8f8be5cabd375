#ifndef NUMAFIT_HOST_SMALL_FILE_H
#define NUMAFIT_HOST_SMALL_FILE_H

#include <numafit/err.h>
#include <stddef.h>

/* The whole file at path as a string into buf of cap bytes, without heap. Its length; -EFBIG when
 * it does not fit; -errno. The text names the path. */
int small_file_read(const char *path, char *buf, size_t cap, struct err *e);

#endif
