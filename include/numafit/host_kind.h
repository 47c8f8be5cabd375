#ifndef NUMAFIT_HOST_KIND_H
#define NUMAFIT_HOST_KIND_H

#include <stddef.h>

/* What "127.0.0.1:9466", "[::1]" or "localhost:80" names: an address to listen at, or what the
 * header Host of a request says. No name is looked up. */

enum host_kind {
	HOST_NONE,    /* it is none of these, or empty (":9466" is every address) */
	HOST_NAME,    /* a name */
	HOST_ADDRESS, /* an address of IPv4, or one in brackets */
	HOST_LOOPBACK /* localhost, 127.0.0.0/8 or [::1] */
};

/* The kind of the host in text, be there a port behind it or not. */
enum host_kind host_kind_of(const char *text);

/* text with "localhost" replaced by 127.0.0.1, for what looks no name up; in buf, of cap bytes.
 * Another text, or one that does not fit, is returned as it is. */
const char *host_as_address(const char *text, char *buf, size_t cap);

#endif
