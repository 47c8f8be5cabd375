#ifndef NUMAFIT_IO_DIGEST_H
#define NUMAFIT_IO_DIGEST_H

#include <stddef.h>

/* SHA-256, by GnuTLS. */

enum { DIGEST_BYTES = 32, DIGEST_SHOWN = 12, DIGEST_TEXT_MAX = DIGEST_SHOWN + 1 };

/* Of len bytes. 0, or -EIO: the library refuses (out is all 0 then). */
int digest(const void *data, size_t len, unsigned char out[DIGEST_BYTES]);

/* Its first DIGEST_SHOWN hexadecimal digits, as sha256sum prints them; "" if there is none. Returns
 * text. */
const char *digest_text(const void *data, size_t len, char text[DIGEST_TEXT_MAX]);

#endif
