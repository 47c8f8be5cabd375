#include <numafit/nrt_fingerprint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md): its primes, lanes and rotations. */
static const uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F,
		      prime3 = 0x165667B19E3779F9, prime4 = 0x85EBCA77C2B2AE63,
		      prime5 = 0x27D4EB2F165667C5;
enum { LANES = 4, LANE = sizeof(uint64_t), HALF_LANE = sizeof(uint32_t), STRIPE = LANES * LANE };

static uint64_t rotated(uint64_t v, unsigned bits)
{
	return v << bits | v >> (64 - bits);
}

/* The first nr bytes as a number, least significant byte first. */
static uint64_t little(const unsigned char *p, unsigned nr)
{
	uint64_t v = 0;

	while (nr-- > 0)
		v = v << 8 | p[nr];
	return v;
}

static uint64_t mixed(uint64_t sum, uint64_t lane)
{
	return rotated(sum + lane * prime2, 31) * prime1;
}

/* All whole stripes from *p on; the lanes' sums as one. */
static uint64_t stripes(const unsigned char **p, size_t len, uint64_t seed)
{
	static const unsigned turn[LANES] = {1, 7, 12, 18};
	uint64_t sum[LANES] = {seed + prime1 + prime2, seed + prime2, seed, seed - prime1};
	uint64_t h = 0;

	for (; len >= STRIPE; len -= STRIPE)
		for (unsigned i = 0; i < LANES; i++, *p += LANE)
			sum[i] = mixed(sum[i], little(*p, LANE));
	for (unsigned i = 0; i < LANES; i++)
		h += rotated(sum[i], turn[i]);
	for (unsigned i = 0; i < LANES; i++)
		h = (h ^ mixed(0, sum[i])) * prime1 + prime4;
	return h;
}

uint64_t xxh64(const void *data, size_t len, uint64_t seed)
{
	const unsigned char *p = data, *end = p + len;
	uint64_t h = len >= STRIPE ? stripes(&p, len, seed) : seed + prime5;

	h += len;
	for (; end - p >= LANE; p += LANE)
		h = rotated(h ^ mixed(0, little(p, LANE)), 27) * prime1 + prime4;
	if (end - p >= HALF_LANE) {
		h = rotated(h ^ (little(p, HALF_LANE) * prime1), 23) * prime2 + prime3;
		p += HALF_LANE;
	}
	for (; p < end; p++)
		h = rotated(h ^ (*p * prime5), 11) * prime1;
	h = (h ^ h >> 33) * prime2;
	h = (h ^ h >> 29) * prime3;
	return h ^ h >> 32;
}

uint64_t xxh64_text(const char *text)
{
	return xxh64(text, strlen(text), 0);
}

uint64_t fingerprint_pod(const char *ns, const char *name)
{
	return xxh64(name, strlen(name), xxh64_text(ns));
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static const char prefix[] = "pfp0", version[] = "v001";
enum {
	PREFIX_LEN = sizeof prefix - 1,
	VERSION_LEN = sizeof version - 1,
	FINGERPRINT_MIN = 16 /* what a reader looks at all */
};

const char *fingerprint_text(char *text, uint64_t *pods, size_t nr)
{
	if (nr)
		qsort(pods, nr, sizeof *pods, by_number);
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		for (size_t i = 0; i < nr; i++)
			pods[i] = __builtin_bswap64(pods[i]);
	(void)snprintf(text, FINGERPRINT_TEXT_MAX, "%s%s%016llx", prefix, version,
		(unsigned long long)xxh64(pods, nr * sizeof *pods, 0));
	return text;
}

int fingerprint_check(const char *said, uint64_t *pods, size_t nr, struct err *e)
{
	char text[FINGERPRINT_TEXT_MAX];

	if (strlen(said) < FINGERPRINT_MIN || strncmp(said, prefix, PREFIX_LEN))
		return err_set(e, EINVAL, "\"%.64s\" is no fingerprint of pods", said);
	if (strncmp(said + PREFIX_LEN, version, VERSION_LEN))
		return err_set(e, ENOTSUP, "fingerprint %.64s is not of version %s", said, version);
	if (strcmp(said, fingerprint_text(text, pods, nr)))
		return err_set(e, ESTALE, "fingerprint %.64s is of other pods than %s", said, text);
	return 0;
}
