#ifndef NUMAFIT_BASE64_H
#define NUMAFIT_BASE64_H

#include <stddef.h>

/* Base64 as RFC 4648, section 4 has it: padded, without white space but line ends, the unused bits
 * zero. */

/* Enough for what len characters say, complete or not, and a NUL. */
#define BASE64_ROOM(len) ((len) / 4 * 3 + 3)

/* Decode the len characters at s into out of BASE64_ROOM(len) bytes, and put a NUL behind them.
 * The number of bytes; -EINVAL when it is no base64, and then out is of no use. */
long base64_decode(const char *s, size_t len, char *out);

#endif
