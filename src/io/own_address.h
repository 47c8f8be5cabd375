#ifndef NUMAFIT_IO_OWN_ADDRESS_H
#define NUMAFIT_IO_OWN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Which addresses are this host's own: the loopback, those of its interfaces, and those that are
 * configured. They are read when an address is none of them, at most once in OWN_ADDRESS_FRESH_MS.
 */
struct own_addresses;
enum { OWN_ADDRESS_FRESH_MS = 1000 };

/* also: more of them, with commas between; NULL: none. "gateway" is where the default routes lead:
 * in a pod's network namespace that is the node, as a network plugin with a bridge makes it. What
 * is no address is passed over. */
struct own_addresses *own_addresses_new(const char *also);
void own_addresses_free(struct own_addresses *o); /* NULL is fine */
/* now_ms: of a clock that never jumps. */
bool own_addresses_have(struct own_addresses *o, const struct sockaddr *a, uint64_t now_ms);

/* An IPv4 or IPv6 address in one form, IPv4 as ::ffff:a.b.c.d; others are "::". */
struct in6_addr address_of(const struct sockaddr *a);
/* Whether it is one of the loopback. */
bool address_is_loopback(const struct sockaddr *a);

#endif
