#include <numafit/sched_quantity.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* Suffixes, as apimachinery's suffixer reads them; an exponent takes the place of one. */
static const struct {
	char text[3];
	int8_t power, shift;
} suffixes[] = {
	{"", 0, 0},
	{"n", -9, 0},
	{"u", -6, 0},
	{"m", -3, 0},
	{"k", 3, 0},
	{"M", 6, 0},
	{"G", 9, 0},
	{"T", 12, 0},
	{"P", 15, 0},
	{"E", 18, 0},
	{"Ki", 0, 10},
	{"Mi", 0, 20},
	{"Gi", 0, 30},
	{"Ti", 0, 40},
	{"Pi", 0, 50},
	{"Ei", 0, 60},
};
enum { NR_SUFFIXES = sizeof suffixes / sizeof *suffixes, NANO_POWER = 9, RADIX = 10 };
/* 20 digits and 60 bits of a suffix are within 128 bits, and so exact. */
enum { DIGITS_MAX = 20, POWER_MAX = 40 };

/* digits * 10^power * 2^shift */
struct parts {
	unsigned __int128 digits;
	int power, shift;
};

/* The digits and the point; what follows, or NULL when there is no such number. */
static const char *read_digits(const char *s, struct parts *p)
{
	bool point = false, any = false;
	unsigned significant = 0;

	for (;; s++) {
		if (*s == '.' && !point) {
			point = true;
			continue;
		}
		if (*s < '0' || *s > '9')
			break;
		any = true;
		significant += significant || *s != '0';
		if (significant > DIGITS_MAX || p->power <= -POWER_MAX)
			return NULL;
		p->digits = p->digits * RADIX + (unsigned)(*s - '0');
		p->power -= point;
	}
	return any ? s : NULL;
}

static bool read_suffix(const char *s, struct parts *p)
{
	for (unsigned i = 0; i < NR_SUFFIXES; i++)
		if (!strcmp(s, suffixes[i].text)) {
			p->power += suffixes[i].power;
			p->shift = suffixes[i].shift;
			return true;
		}
	if (*s != 'e' && *s != 'E')
		return false;
	bool negative = s[1] == '-';
	uint64_t power;

	s += 1 + (negative || s[1] == '+');
	if (text_u64(s, strlen(s), POWER_MAX, &power, NULL) < 0)
		return false;
	p->power += negative ? -(int)power : (int)power;
	return true;
}

/* In billionths, rounded up; above what a struct quantity holds it is any number that is, too. */
static unsigned __int128 to_nanos(struct parts p)
{
	const unsigned __int128 too_many = (unsigned __int128)INT64_MAX * QUANTITY_NANOS * 2;
	unsigned __int128 v = p.digits << p.shift;
	int power = p.power + NANO_POWER;
	bool rest = false;

	for (; power < 0; power++) {
		rest = rest || v % RADIX;
		v /= RADIX;
	}
	for (; power > 0 && v && v < too_many; power--)
		v *= RADIX;
	return v + rest;
}

static struct quantity negated(struct quantity q)
{
	if (q.whole == INT64_MIN)
		return quantity_of(INT64_MAX);
	if (q.nano)
		return (struct quantity){-q.whole - 1, QUANTITY_NANOS - q.nano};
	return quantity_of(-q.whole);
}

int quantity_parse(struct quantity *out, const char *s, struct err *e)
{
	struct parts p = {0};
	bool negative = *s == '-';
	const char *rest = read_digits(s + (negative || *s == '+'), &p);

	if (!rest || !read_suffix(rest, &p))
		return err_set(
			e, EINVAL, "\"%.64s\" is not a quantity such as 500m, 2, 1.5 or 16Gi", s);
	unsigned __int128 nanos = to_nanos(p);
	struct quantity q = {INT64_MAX, 0};

	if (nanos / QUANTITY_NANOS < INT64_MAX)
		q = (struct quantity){
			(int64_t)(nanos / QUANTITY_NANOS), (uint32_t)(nanos % QUANTITY_NANOS)};
	*out = negative ? negated(q) : q;
	return 0;
}

static int64_t saturated(bool up)
{
	return up ? INT64_MAX : INT64_MIN;
}

struct quantity quantity_add(struct quantity a, struct quantity b)
{
	struct quantity sum = {.nano = a.nano + b.nano};
	bool carry = sum.nano >= QUANTITY_NANOS;

	if (__builtin_add_overflow(a.whole, b.whole, &sum.whole) ||
		__builtin_add_overflow(sum.whole, carry, &sum.whole))
		return quantity_of(saturated(b.whole >= 0));
	sum.nano -= carry ? QUANTITY_NANOS : 0;
	return sum;
}

struct quantity quantity_sub(struct quantity a, struct quantity b)
{
	bool borrow = a.nano < b.nano;
	struct quantity rest = {.nano = a.nano - b.nano + (borrow ? QUANTITY_NANOS : 0)};

	if (__builtin_sub_overflow(a.whole, b.whole, &rest.whole) ||
		__builtin_sub_overflow(rest.whole, borrow, &rest.whole))
		return quantity_of(saturated(b.whole < 0));
	return rest;
}

int64_t quantity_milli(struct quantity q)
{
	int64_t milli, part = (q.nano + QUANTITY_NANOS_OF_MILLI - 1) / QUANTITY_NANOS_OF_MILLI;

	if (__builtin_mul_overflow(q.whole, (int64_t)QUANTITY_MILLIS, &milli) ||
		__builtin_add_overflow(milli, part, &milli))
		return saturated(q.whole >= 0);
	return milli;
}

const char *quantity_text(char *buf, struct quantity q)
{
	bool negative = q.whole < 0;
	struct quantity size = negative ? negated(q) : q;
	const char *sign = negative ? "-" : "";
	char whole[TEXT_SIZE_MAX];

	if (size.nano && size.nano % QUANTITY_NANOS_OF_MILLI == 0 &&
		size.whole < INT64_MAX / QUANTITY_MILLIS)
		(void)snprintf(
			buf, QUANTITY_TEXT_MAX, "%s%lldm", sign, (long long)quantity_milli(size));
	else if (size.nano)
		(void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%lld.%09u", sign, (long long)size.whole,
			size.nano);
	else
		(void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%s", sign,
			text_size(whole, (uint64_t)size.whole));
	return buf;
}
