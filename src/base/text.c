/* Texts in buffers of a fixed size: appending, comparing, and making bytes well-formed. */
#include <numafit/text.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_init(struct text *t, char *buf, size_t cap)
{
	*t = (struct text){.at = buf, .cap = cap};
	if (cap)
		buf[0] = '\0';
}

void text_add(struct text *t, const char *fmt, ...)
{
	size_t left = t->cap - t->len;
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(t->at + t->len, left, fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < left) {
		t->len += (size_t)len;
		return;
	}
	t->cut = true;
	if (left)
		t->len += left - 1;
}

size_t text_position(const void *sorted, size_t nr, size_t size, const char *s)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		char *const *key = (const void *)((const char *)sorted + mid * size);

		if (strcmp(*key, s) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void text_put(struct text *t, const char *s, size_t len)
{
	size_t left = t->cap - t->len, fits = len < left ? len : left - (left > 0);

	t->cut = t->cut || fits < len;
	if (!left)
		return;
	memcpy(t->at + t->len, s, fits);
	t->len += fits;
	t->at[t->len] = '\0';
}

void text_put_u64(struct text *t, uint64_t number)
{
	char digits[sizeof "18446744073709551615" - 1], *at = digits + sizeof digits;

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	text_put(t, at, (size_t)(digits + sizeof digits - at));
}

bool text_copy(char *dst, size_t cap, const char *s)
{
	int len = snprintf(dst, cap, "%s", s ? s : "");

	return len >= 0 && (size_t)len < cap;
}

bool text_fits(const char *s, const char *pattern, size_t len)
{
	const char *end = pattern + len, *star = NULL, *from = NULL;

	while (*s) {
		if (pattern < end && *pattern == '*') {
			star = pattern++;
			from = s;
		} else if (pattern < end && (*pattern == '?' || *pattern == *s)) {
			pattern++;
			s++;
		} else if (star) { /* let it stand for one byte more */
			pattern = star + 1;
			s = ++from;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool text_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

const char *text_next_word(const char **list, size_t *len)
{
	const char *at = *list ? *list + strspn(*list, " ") : "";

	*len = strcspn(at, " ");
	*list = at + *len;
	return *len ? at : NULL;
}

bool text_has_word(const char *list, const char *word)
{
	const size_t wanted = strlen(word);
	size_t len;

	for (const char *at; (at = text_next_word(&list, &len));)
		if (len == wanted && memcmp(at, word, len) == 0)
			return true;
	return false;
}

const char *text_behind(const char *s, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(s, prefix, len) == 0 ? s + len : NULL;
}

int text_index(const char *const *words, unsigned nr, const char *s)
{
	for (unsigned i = 0; i < nr; i++)
		if (text_equal(words[i], s))
			return (int)i;
	return -1;
}

/* The lead bytes of UTF-8's longer forms, and which first continuation byte each allows: the table
 * of well-formed sequences in the Unicode standard, section 3.9. */
static const struct {
	unsigned char lead_lo, lead_hi, next_lo, next_hi, more;
} utf8_forms[] = {
	{0xc2, 0xdf, 0x80, 0xbf, 1},
	{0xe0, 0xe0, 0xa0, 0xbf, 2},
	{0xe1, 0xec, 0x80, 0xbf, 2},
	{0xed, 0xed, 0x80, 0x9f, 2},
	{0xee, 0xef, 0x80, 0xbf, 2},
	{0xf0, 0xf0, 0x90, 0xbf, 3},
	{0xf1, 0xf3, 0x80, 0xbf, 3},
	{0xf4, 0xf4, 0x80, 0x8f, 3},
};
enum { ASCII_END = 0x80, TAIL_LO = 0x80, TAIL_HI = 0xbf };

/* Bytes of the well-formed sequence at s, which is not ASCII; 0 when there is none. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
	for (size_t i = 0; i < sizeof utf8_forms / sizeof *utf8_forms; i++) {
		size_t more = utf8_forms[i].more;

		if (s[0] < utf8_forms[i].lead_lo || s[0] > utf8_forms[i].lead_hi)
			continue;
		if (len <= more || s[1] < utf8_forms[i].next_lo || s[1] > utf8_forms[i].next_hi)
			return 0;
		for (size_t k = 2; k <= more; k++)
			if (s[k] < TAIL_LO || s[k] > TAIL_HI)
				return 0;
		return more + 1;
	}
	return 0;
}

/* Whether the eight bytes at s are all ASCII. */
static bool is_ascii_word(const char *s)
{
	uint64_t word;

	memcpy(&word, s, sizeof word);
	return !(word & UINT64_C(0x8080808080808080));
}

bool text_is_utf8(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		const unsigned char *at = (const unsigned char *)s + i;
		size_t step = 1;

		if (len - i >= sizeof(uint64_t) && is_ascii_word(s + i))
			step = sizeof(uint64_t);
		else if (*at >= ASCII_END)
			step = utf8_length(at, len - i);
		if (!step)
			return false;
		i += step;
	}
	return true;
}

size_t text_character(const char *s, size_t len, uint32_t *code)
{
	enum { TAIL_BITS = 6, TAIL_MASK = 0x3f };
	static const unsigned char lead_mask[] = {0, 0, 0x1f, 0x0f, 0x07};
	const unsigned char *at = (const unsigned char *)s;
	size_t nr = *at < ASCII_END ? 1 : utf8_length(at, len);

	*code = nr == 1 ? *at : nr ? *at & lead_mask[nr] : TEXT_NO_CHARACTER;
	for (size_t i = 1; i < nr; i++)
		*code = *code << TAIL_BITS | (at[i] & TAIL_MASK);
	return nr ? nr : 1;
}

/* Unicode's categories Cc, Zl and Zp, and of Cf those that change how other text is read: bidi
 * controls (UAX 9), byte order mark, interlinear annotations, tags. */
static const struct {
	uint32_t first, last;
} not_shown[] = {
	{0x00, 0x1f},
	{0x7f, 0x9f},
	{0x061c, 0x061c},
	{0x200e, 0x200f},
	{0x2028, 0x202e},
	{0x2066, 0x2069},
	{0xfeff, 0xfeff},
	{0xfff9, 0xfffb},
	{0xe0000, 0xe007f},
	{TEXT_NO_CHARACTER, UINT32_MAX},
};

bool text_is_shown(uint32_t code)
{
	for (size_t i = 0; i < sizeof not_shown / sizeof *not_shown; i++)
		if (code >= not_shown[i].first && code <= not_shown[i].last)
			return false;
	return true;
}

void text_make_shown(char *s, enum text_lines lines)
{
	size_t len = strlen(s), nr;
	uint32_t code;

	for (size_t at = 0; at < len; at += nr) {
		nr = text_character(s + at, len - at, &code);
		if (!text_is_shown(code) && !(code == '\n' && lines == TEXT_LINES))
			memset(s + at, '?', nr);
	}
}

int text_u64(const char *s, size_t len, uint64_t max, uint64_t *out, struct err *e)
{
	uint64_t value = 0;
	bool above = false;

	if (!len)
		return err_set(e, EINVAL, "a number is missing");
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return err_set(e, EINVAL, "\"%.*s\" is not a number",
				(int)(len < 64 ? len : 64), s);
		above = above || __builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(s[i] - '0'), &value);
	}
	if (above || value > max)
		return err_set(e, ERANGE, "%.*s is above %llu", (int)(len < 64 ? len : 64), s,
			(unsigned long long)max);
	*out = value;
	return 0;
}

int text_bool(const char *s, bool *out, struct err *e)
{
	static const char *const words[2][6] = {
		{"0", "f", "F", "FALSE", "false", "False"},
		{"1", "t", "T", "TRUE", "true", "True"},
	};

	for (unsigned v = 0; v < 2; v++)
		for (unsigned i = 0; i < 6; i++)
			if (text_equal(s, words[v][i])) {
				*out = v;
				return 0;
			}
	return err_set(e, EINVAL, "\"%s\" is not true or false", s);
}

static const char *const binary_suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
enum { NR_BINARY = sizeof binary_suffixes / sizeof *binary_suffixes, BINARY_BITS = 10 };

const char *text_size(char *buf, uint64_t bytes)
{
	unsigned unit = 0;

	while (bytes && unit + 1 < NR_BINARY && bytes % (1u << BINARY_BITS) == 0) {
		bytes >>= BINARY_BITS;
		unit++;
	}
	(void)snprintf(
		buf, TEXT_SIZE_MAX, "%llu%s", (unsigned long long)bytes, binary_suffixes[unit]);
	return buf;
}

const char *text_size_rounded(char *buf, uint64_t bytes)
{
	enum { DIGITS = 4, PERCENT = 100 };
	unsigned unit = 0;

	(void)text_size(buf, bytes);
	if (strspn(buf, "0123456789") <= DIGITS)
		return buf;
	while (unit + 1 < NR_BINARY && bytes >> BINARY_BITS * (unit + 1))
		unit++;
	/* of what is behind the point ten bits are enough for two digits */
	uint64_t parts = bytes >> BINARY_BITS * (unit - 1), rest = parts % (1u << BINARY_BITS);
	unsigned decimals = (unsigned)(rest * PERCENT >> BINARY_BITS);
	struct text t;

	text_init(&t, buf, TEXT_SIZE_MAX);
	text_add(&t, "%llu", (unsigned long long)(parts >> BINARY_BITS));
	if (decimals)
		text_add(&t, decimals % 10 ? ".%02u" : ".%u",
			decimals % 10 ? decimals : decimals / 10);
	text_add(&t, "%s", binary_suffixes[unit]);
	return buf;
}

/* What 0 to 15 come to where 1, 2, 4 and 8 come to these. */
#define COMBINED(one, two, four, eight)                                                            \
	{                                                                                          \
		0, (one), (two), (two) ^ (one), (four), (four) ^ (one), (four) ^ (two),            \
			(four) ^ (two) ^ (one), (eight), (eight) ^ (one), (eight) ^ (two),         \
			(eight) ^ (two) ^ (one), (eight) ^ (four), (eight) ^ (four) ^ (one),       \
			(eight) ^ (four) ^ (two), (eight) ^ (four) ^ (two) ^ (one)                 \
	}

/* The reflected Castagnoli polynomial: [k][i] is i run through 4 * (k + 1) steps. */
enum { CRC_NIBBLES = 8, CRC_BYTES = CRC_NIBBLES / 2, NIBBLE_BITS = 4, NIBBLE = 15 };
static const uint32_t crc_steps[CRC_NIBBLES][NIBBLE + 1] = {
	COMBINED(0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
	COMBINED(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf),
	COMBINED(0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
	COMBINED(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8),
	COMBINED(0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
	COMBINED(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5),
	COMBINED(0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
	COMBINED(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6),
};

/* crc run through the steps of that many nibbles: all of them are looked up side by side. */
static uint32_t crc_run(uint32_t crc, unsigned nibbles)
{
	uint32_t out = nibbles < CRC_NIBBLES ? crc >> NIBBLE_BITS * nibbles : 0;

	for (unsigned k = nibbles; k-- > 0; crc >>= NIBBLE_BITS)
		out ^= crc_steps[k][crc & NIBBLE];
	return out;
}

uint32_t text_crc32c(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint32_t crc = ~UINT32_C(0);

	for (; len >= CRC_BYTES; len -= CRC_BYTES, p += CRC_BYTES) {
		crc ^= p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		crc = crc_run(crc, CRC_NIBBLES);
	}
	for (; len; len--)
		crc = crc_run(crc ^ *p++, 2);
	return ~crc;
}
