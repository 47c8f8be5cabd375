#include <io/http_server_listen.h>

#include <numafit/text.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int no_address(const char *text, struct err *e)
{
	return err_set(e, EINVAL,
		"\"%s\" is no address to listen at: 127.0.0.1:9465, [::1]:9465 or, for every "
		"address, :9465 is expected",
		text);
}

/* What stands before the last colon, without the brackets of an IPv6 address. */
static bool split_address(
	const char *text, char host[INET6_ADDRSTRLEN], bool *bracketed, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	uint64_t number;

	if (!colon || text_u64(colon + 1, strlen(colon + 1), UINT16_MAX, &number, NULL) < 0)
		return false;
	size_t len = (size_t)(colon - text);
	*bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
	if (*bracketed) {
		text++;
		len -= 2;
	}
	if (len >= INET6_ADDRSTRLEN)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	*port = (uint16_t)number;
	return true;
}

static int parse_address(const char *text, union address *a, struct err *e)
{
	char host[INET6_ADDRSTRLEN];
	bool bracketed;
	uint16_t port;

	*a = (union address){0};
	if (!split_address(text, host, &bracketed, &port))
		return no_address(text, e);
	if (bracketed || !*host) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(port);
		/* no host: zeros are every address */
		if (*host && inet_pton(AF_INET6, host, &a->v6.sin6_addr) != 1)
			return no_address(text, e);
		return 0;
	}
	a->v4.sin_family = AF_INET;
	a->v4.sin_port = htons(port);
	return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 ? 0 : no_address(text, e);
}

/* A socket at that address; listening where there is room for that many. */
static int bind_to(const union address *a, int backlog)
{
	const int on = 1, off = 0;
	socklen_t size = a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* a restart must not wait for the last one's connections; an IPv6 socket serves IPv4, too,
	 * whatever the system's default is */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, &a->any, size) == 0 && (!backlog || listen(fd, backlog) == 0))
		return fd;
	int rc = -errno;
	(void)close(fd);
	return rc;
}

static int bind_address(const char *address, union address a, int backlog, struct err *e)
{
	int rc = bind_to(&a, backlog);

	if ((rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) && a.any.sa_family == AF_INET6 &&
		IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr)) {
		/* a system without IPv6 */
		a.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = a.v6.sin6_port};
		rc = bind_to(&a, backlog);
	}
	return rc < 0 ? err_set(e, -rc, "address %s: %s", address, strerror(-rc)) : rc;
}

int http_listen(const char *address, struct err *e)
{
	union address a;
	int rc = parse_address(address, &a, e);

	return rc ? rc : bind_address(address, a, BACKLOG, e);
}

int http_check_address(const char *address, enum http_address_check how, struct err *e)
{
	union address a;
	int rc = parse_address(address, &a, e);

	if (rc || how == HTTP_ADDRESS_TEXT)
		return rc;
	rc = bind_address(address, a, 0, e);
	if (rc >= 0)
		(void)close(rc);
	return rc >= 0 || rc == -EADDRINUSE ? 0 : rc;
}

unsigned http_port_of(int fd)
{
	union address a = {0};
	socklen_t len = sizeof a;

	(void)getsockname(fd, &a.any, &len);
	return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}
