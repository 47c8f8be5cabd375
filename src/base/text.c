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

bool text_copy(char *dst, size_t cap, const char *s)
{
	struct text t;

	text_init(&t, dst, cap);
	text_add(&t, "%s", s);
	return !t.cut;
}

bool text_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
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

/* Bytes of the well-formed sequence at s, 0 when there is none. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
	if (s[0] < ASCII_END)
		return 1;
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

bool text_is_utf8(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t step = utf8_length((const unsigned char *)s + i, len - i);

		if (!step)
			return false;
		i += step;
	}
	return true;
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

static const struct {
	char suffix[2];
	int power;
} decimal_suffixes[] = {
	{"n", -9},
	{"u", -6},
	{"m", -3},
	{"k", 3},
	{"M", 6},
	{"G", 9},
	{"T", 12},
	{"P", 15},
	{"E", 18},
};
enum { NR_DECIMAL = sizeof decimal_suffixes / sizeof *decimal_suffixes };

/* A quantity taken apart: digits * 10^power * 2^shift. */
struct quantity {
	unsigned __int128 digits;
	int power;
	unsigned shift;
};
enum { DIGITS_MAX = 27, POWER_MAX = 40 };

/* The digits and the point; returns what follows, or NULL when there is no number. */
static const char *read_digits(const char *s, struct quantity *q)
{
	bool point = false;
	unsigned seen = 0, significant = 0;

	for (;; s++) {
		if (*s == '.' && !point) {
			point = true;
			continue;
		}
		if (*s < '0' || *s > '9')
			break;
		seen++;
		if (significant || *s != '0')
			significant++;
		if (significant > DIGITS_MAX)
			return NULL;
		q->digits = q->digits * 10 + (unsigned)(*s - '0');
		q->power -= point;
	}
	return seen && q->power >= -POWER_MAX ? s : NULL;
}

static bool read_exponent(const char *s, struct quantity *q)
{
	bool negative = *s == '-';
	uint64_t power;

	if (*s == '-' || *s == '+')
		s++;
	if (text_u64(s, strlen(s), POWER_MAX, &power, NULL) < 0)
		return false;
	q->power += negative ? -(int)power : (int)power;
	return true;
}

static bool read_suffix(const char *s, struct quantity *q)
{
	for (unsigned i = 0; i < NR_BINARY; i++)
		if (text_equal(s, binary_suffixes[i])) {
			q->shift = i * BINARY_BITS;
			return true;
		}
	for (unsigned i = 0; i < NR_DECIMAL; i++)
		if (text_equal(s, decimal_suffixes[i].suffix)) {
			q->power += decimal_suffixes[i].power;
			return true;
		}
	return (*s == 'e' || *s == 'E') && read_exponent(s + 1, q);
}

/* digits * 10^power * 2^shift, rounded up; false above INT64_MAX. */
static bool scaled_value(struct quantity q, int64_t *out)
{
	unsigned __int128 v = q.digits, limit = INT64_MAX;

	if (!v) {
		*out = 0;
		return true;
	}
	/* shift first: fractions of a binary suffix are exact ("1.5Gi"); 27 digits leave 38 bits */
	for (; q.shift; q.shift--) {
		if (v >> 126 && q.power >= 0)
			return false;
		if (v >> 126) {
			v = v / 10 + (v % 10 != 0);
			q.power++;
		}
		v <<= 1;
	}
	for (; q.power > 0; q.power--) {
		if (v > limit)
			return false;
		v *= 10;
	}
	bool rest = false;
	for (; q.power < 0; q.power++) {
		rest = rest || v % 10;
		v /= 10;
	}
	v += rest;
	if (v > limit)
		return false;
	*out = (int64_t)v;
	return true;
}

static int quantity_scaled(const char *s, int scale, int64_t *out, struct err *e)
{
	struct quantity q = {0};
	const char *rest = read_digits(*s == '+' ? s + 1 : s, &q);

	if (*s == '-')
		return err_set(e, ERANGE, "quantity \"%s\" is negative", s);
	if (!rest || !read_suffix(rest, &q))
		return err_set(
			e, EINVAL, "\"%.64s\" is not a quantity such as 500m, 2, 1.5 or 16Gi", s);
	q.power += scale;
	if (!scaled_value(q, out))
		return err_set(e, ERANGE, "quantity \"%.64s\" is too large", s);
	return 0;
}

int text_quantity(const char *s, int64_t *out, struct err *e)
{
	return quantity_scaled(s, 0, out, e);
}

int text_quantity_milli(const char *s, int64_t *out, struct err *e)
{
	return quantity_scaled(s, 3, out, e);
}

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

uint32_t text_crc32c(const void *data, size_t len)
{
	/* reflected Castagnoli polynomial, four bits at a time: entry i is i run through 4 steps */
	static const uint32_t nibble[16] = {
		0x00000000,
		0x105ec76f,
		0x20bd8ede,
		0x30e349b1,
		0x417b1dbc,
		0x5125dad3,
		0x61c69362,
		0x7198540d,
		0x82f63b78,
		0x92a8fc17,
		0xa24bb5a6,
		0xb21572c9,
		0xc38d26c4,
		0xd3d3e1ab,
		0xe330a81a,
		0xf36e6f75,
	};
	const unsigned char *p = data;
	uint32_t crc = ~UINT32_C(0);

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}
