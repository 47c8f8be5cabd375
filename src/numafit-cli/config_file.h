#ifndef NUMAFIT_CLI_CONFIG_FILE_H
#define NUMAFIT_CLI_CONFIG_FILE_H

#include <numafit/err.h>
#include <stddef.h>

/* The text of numafitd's config file, of *len bytes, which the caller frees; NULL with text in *e:
 * it cannot be read. */
char *config_file_text(const char *path, size_t *len, struct err *e);

#endif
