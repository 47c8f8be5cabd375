#include <io/own_address.h>

#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512, MAPPED_AT = 12, MAPPED_FF = 10, LOOPBACK_NET = 127, HEX = 16 };

struct own_addresses {
	char *also;
	uint64_t read_ms;
	bool read; /* ever */
	struct {
		VEC(struct in6_addr);
	} all;
};

static struct in6_addr mapped_address(const struct in_addr *v4)
{
	struct in6_addr a = {0};

	memset(a.s6_addr + MAPPED_FF, UINT8_MAX, MAPPED_AT - MAPPED_FF);
	memcpy(a.s6_addr + MAPPED_AT, v4, sizeof *v4);
	return a;
}

struct in6_addr address_of(const struct sockaddr *a)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6 = {0};

	if (a->sa_family == AF_INET) {
		memcpy(&v4, a, sizeof v4);
		return mapped_address(&v4.sin_addr);
	}
	if (a->sa_family == AF_INET6)
		memcpy(&v6, a, sizeof v6);
	return v6.sin6_addr;
}

bool address_is_loopback(const struct sockaddr *address)
{
	struct in6_addr a = address_of(address);

	return IN6_IS_ADDR_V4MAPPED(&a) ? a.s6_addr[MAPPED_AT] == LOOPBACK_NET
					: IN6_IS_ADDR_LOOPBACK(&a);
}

static void addresses_add(struct own_addresses *o, struct in6_addr a)
{
	if (!IN6_IS_ADDR_UNSPECIFIED(&a))
		*vec_push(&o->all) = a;
}

static void add_interfaces(struct own_addresses *o)
{
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr)
			addresses_add(o, address_of(i->ifa_addr));
	freeifaddrs(list);
}

/* Linux's proc_pid_net(5): "eth0 00000000 0102000A 0003 ...", in the machine's byte order. */
static void add_route_v4(struct own_addresses *o, const char *line)
{
	struct in_addr via;
	unsigned to, gateway;

	if (sscanf(line, "%*s %8x %8x", &to, &gateway) != 2 || to || !gateway)
		return;
	via.s_addr = gateway;
	addresses_add(o, mapped_address(&via));
}

/* "00000000000000000000000000000000 00 000... 00 fe80...", 32 digits each. */
static void add_route_v6(struct own_addresses *o, const char *line)
{
	struct in6_addr via = {0};
	char to[33], length[3], gateway[33], byte[3] = "";

	if (sscanf(line, "%32s %2s %*s %*s %32s", to, length, gateway) != 3 ||
		!text_equal(length, "00") || strspn(to, "0") != strlen(to) ||
		strlen(gateway) != sizeof gateway - 1)
		return;
	for (size_t i = 0; i < sizeof via.s6_addr; i++) {
		memcpy(byte, gateway + 2 * i, 2);
		via.s6_addr[i] = (uint8_t)strtoul(byte, NULL, HEX);
	}
	addresses_add(o, via);
}

static void add_routes(struct own_addresses *o, const char *file,
	void (*add_route)(struct own_addresses *o, const char *line))
{
	char line[LINE_MAX_BYTES];
	FILE *f = fopen(file, "re");

	while (f && fgets(line, sizeof line, f))
		add_route(o, line);
	if (f)
		(void)fclose(f);
}

static void add_word(struct own_addresses *o, const char *word)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (text_equal(word, "gateway")) {
		add_routes(o, "/proc/net/route", add_route_v4);
		add_routes(o, "/proc/net/ipv6_route", add_route_v6);
	} else if (inet_pton(AF_INET, word, &v4) == 1) {
		addresses_add(o, mapped_address(&v4));
	} else if (inet_pton(AF_INET6, word, &v6) == 1) {
		addresses_add(o, v6);
	}
}

static bool addresses_find(const struct own_addresses *o, const struct in6_addr *a)
{
	for (size_t i = 0; i < o->all.nr; i++)
		if (memcmp(&o->all.at[i], a, sizeof *a) == 0)
			return true;
	return false;
}

struct own_addresses *own_addresses_new(const char *also)
{
	struct own_addresses *o = xcalloc(1, sizeof *o);

	o->also = xstrdup(also ? also : "");
	return o;
}

void own_addresses_free(struct own_addresses *o)
{
	if (!o)
		return;
	vec_fini(&o->all);
	free(o->also);
	free(o);
}

bool own_addresses_have(struct own_addresses *o, const struct sockaddr *address, uint64_t now_ms)
{
	struct in6_addr a = address_of(address);

	if (address_is_loopback(address) || addresses_find(o, &a))
		return true;
	if (o->read && now_ms - o->read_ms < OWN_ADDRESS_FRESH_MS)
		return false;
	o->read = true;
	o->read_ms = now_ms;
	o->all.nr = 0;
	add_interfaces(o);
	auto_free char *words = xstrdup(o->also);
	char *rest = words, *word;
	while ((word = strsep(&rest, ", ")))
		add_word(o, word);
	return addresses_find(o, &a);
}
