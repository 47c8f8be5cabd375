#ifndef NUMAFIT_IO_HTTP_SERVER_LISTEN_H
#define NUMAFIT_IO_HTTP_SERVER_LISTEN_H

#include <numafit/err.h>

/* Where an HTTP server listens. */

/* Listen at "127.0.0.1:9465", "[::1]:9465", or at every address with ":9465" or "[::]:9465" (IPv4
 * and IPv6, as far as the system has them); port 0 is any that is free. A descriptor, or -errno
 * with text: -EINVAL is no such address (names are not looked up), -EADDRINUSE, -EADDRNOTAVAIL,
 * -EACCES. */
int http_listen(const char *address, struct err *e);
/* Whether http_listen() could: only by what the text says, or also whether this machine has the
 * address and we may use the port; that somebody uses it now is no mistake. 0, or as
 * http_listen(). */
enum http_address_check { HTTP_ADDRESS_TEXT, HTTP_ADDRESS_HERE };
int http_check_address(const char *address, enum http_address_check how, struct err *e);
/* The port that a socket is bound to. */
unsigned http_port_of(int fd);

#endif
