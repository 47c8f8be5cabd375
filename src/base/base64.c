#include <numafit/base64.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { BITS = 6, DIGITS = 4, BYTE = 8, BYTE_MASK = 0xff };

static int digit_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = memchr(digits, c, sizeof digits - 1);

	return at ? (int)(at - digits) : -1;
}

long base64_decode(const char *s, size_t len, char *out)
{
	unsigned nr_digits = 0, nr_padding = 0, held = 0; /* bits of word that are not out yet */
	uint32_t word = 0;
	char *at = out;

	for (size_t i = 0; i < len; i++) {
		int digit = digit_of(s[i]);

		if (s[i] == '\n' || s[i] == '\r')
			continue;
		if (s[i] == '=')
			nr_padding++;
		else if (digit < 0 || nr_padding)
			return -EINVAL;
		if (s[i] == '=')
			continue;
		nr_digits++;
		word = word << BITS | (uint32_t)digit;
		held += BITS;
		if (held < BYTE)
			continue;
		held -= BYTE;
		*at++ = (char)(word >> held & BYTE_MASK);
	}
	if ((nr_digits + nr_padding) % DIGITS || nr_padding > 2 || word & ((1u << held) - 1))
		return -EINVAL;
	*at = '\0';
	return at - out;
}
