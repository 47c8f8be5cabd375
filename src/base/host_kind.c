#include <numafit/host_kind.h>

#include <numafit/text.h>

#include <string.h>

enum { PORT_MAX = UINT16_MAX, OCTETS = 4, LOOPBACK_OCTET = 127 };

static const char localhost[] = "localhost", loopback[] = "127.0.0.1";

/* Where the host of text ends: at a port, or at the end. NULL: what is behind it is no port. */
static const char *host_end(const char *text)
{
	const char *end = *text == '[' ? strchr(text, ']') : text + strcspn(text, ":");
	uint64_t port;

	if (!end)
		return NULL;
	end += *text == '[';
	if (!*end)
		return end;
	return *end == ':' && text_u64(end + 1, strlen(end + 1), PORT_MAX, &port, NULL) == 0 ? end
											     : NULL;
}

static bool is_localhost(const char *text, const char *end)
{
	return (size_t)(end - text) == strlen(localhost) &&
	       memcmp(text, localhost, strlen(localhost)) == 0;
}

/* The first number of an IPv4 address; -1: it is none. */
static int first_octet(const char *text, const char *end)
{
	int first = -1;

	for (unsigned i = 0; i < OCTETS; i++) {
		size_t len = strspn(text, "0123456789");
		uint64_t octet;

		if (text_u64(text, len, UINT8_MAX, &octet, NULL) || (len > 1 && *text == '0'))
			return -1;
		first = i ? first : (int)octet;
		text += len;
		if (i + 1 < OCTETS && *text++ != '.')
			return -1;
	}
	return text == end ? first : -1;
}

enum host_kind host_kind_of(const char *text)
{
	const char *end = host_end(text);

	if (!end || end == text)
		return HOST_NONE;
	if (*text == '[') {
		size_t len = (size_t)(end - text);

		if (strspn(text + 1, "0123456789abcdefABCDEF:.") != len - 2)
			return HOST_NONE;
		return len == 5 && memcmp(text, "[::1]", 5) == 0 ? HOST_LOOPBACK : HOST_ADDRESS;
	}
	int first = first_octet(text, end);
	if (first >= 0)
		return first == LOOPBACK_OCTET ? HOST_LOOPBACK : HOST_ADDRESS;
	return is_localhost(text, end) ? HOST_LOOPBACK : HOST_NAME;
}

const char *host_as_address(const char *text, char *buf, size_t cap)
{
	const char *end = host_end(text);
	struct text t;

	if (!end || !is_localhost(text, end))
		return text;
	text_init(&t, buf, cap);
	text_add(&t, "%s%s", loopback, end);
	return t.cut ? text : buf;
}
