#ifndef NUMAFIT_IO_SOCKET_PATH_H
#define NUMAFIT_IO_SOCKET_PATH_H

#include <numafit/err.h>
#include <sys/un.h>

/* Paths of unix sockets. */

/* path as an address. -ENAMETOOLONG when it does not fit. */
int socket_path_address(const char *path, struct sockaddr_un *address, struct err *e);
/* Make way at path for a socket: a socket file that nobody listens on is removed. -EEXIST:
 * something else is there; -EADDRINUSE: somebody listens; -ENAMETOOLONG; -errno. */
int socket_path_clear(const char *path, struct err *e);

#endif
