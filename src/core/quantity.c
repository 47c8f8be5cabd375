#include <numafit/quantity.h>

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
enum { NR_SUFFIXES = sizeof suffixes / sizeof *suffixes, RADIX = 10 };
/* Further behind the point a digit matters only in that it is not 0: a unit of the largest suffix,
 * 10^9 * 2^60 billionths, divides 10^69. */
enum { FRACTION_DIGITS = 69 };

/* 0.DIGITS * 10^point * 2^shift */
struct parts {
	const char *digits; /* with a point in them, or not */
	size_t len;
	int64_t point;
	int shift;
};

static bool read_suffix(const char *s, struct parts *p)
{
	for (unsigned i = 0; i < NR_SUFFIXES; i++)
		if (!strcmp(s, suffixes[i].text)) {
			p->point += suffixes[i].power;
			p->shift = suffixes[i].shift;
			return true;
		}
	if (*s != 'e' && *s != 'E')
		return false;
	bool negative = s[1] == '-';
	uint64_t power;

	s += 1 + (negative || s[1] == '+');
	if (text_u64(s, strlen(s), INT32_MAX, &power, NULL) < 0)
		return false;
	p->point += negative ? -(int64_t)power : (int64_t)power;
	return true;
}

/* What a number comes to, in billionths. */
struct nanos {
	unsigned __int128 sum;
	bool rest; /* there is a part of a billionth */
};

/* The digits before the point; false when they are more than INT64_MAX units. */
static bool add_whole(const struct parts *p, struct nanos *n)
{
	uint64_t whole = 0;
	int64_t digits = 0;

	for (size_t i = 0; i < p->len && digits < p->point; i++) {
		if (p->digits[i] == '.')
			continue;
		if (whole > INT64_MAX / RADIX)
			return false;
		whole = whole * RADIX + (unsigned)(p->digits[i] - '0');
		digits++;
	}
	for (; digits < p->point && whole; digits++) {
		if (whole > INT64_MAX / RADIX)
			return false;
		whole *= RADIX;
	}
	n->sum = ((unsigned __int128)whole << p->shift) * QUANTITY_NANOS;
	return whole <= (uint64_t)INT64_MAX >> p->shift;
}

/* Those behind it, the last one first: each is a tenth of what stands before it. */
static void add_fraction(const struct parts *p, struct nanos *n)
{
	const unsigned __int128 unit = (unsigned __int128)QUANTITY_NANOS << p->shift;
	bool has_point = memchr(p->digits, '.', p->len);
	int64_t place = (int64_t)(p->len - has_point) - p->point; /* behind the point, from 1 */
	unsigned __int128 part = 0;

	for (size_t i = p->len; i-- > 0 && place > 0;) {
		if (p->digits[i] == '.')
			continue;
		unsigned digit = (unsigned)(p->digits[i] - '0');

		if (place-- > FRACTION_DIGITS) {
			n->rest = n->rest || digit;
			continue;
		}
		part += digit * unit;
		n->rest = n->rest || part % RADIX;
		part /= RADIX;
	}
	for (; place > 0 && part; place--) {
		n->rest = n->rest || part % RADIX;
		part /= RADIX;
	}
	n->sum += part;
}

static const struct quantity most = {INT64_MAX, QUANTITY_NANOS - 1}, least = {INT64_MIN, 0};

static struct quantity quantity_of_parts(const struct parts *p)
{
	const struct quantity cap = p->shift ? quantity_of(INT64_MAX) : most;
	struct nanos n = {0};

	if (!add_whole(p, &n))
		return cap;
	add_fraction(p, &n);
	n.sum += n.rest;
	if (n.sum / QUANTITY_NANOS > INT64_MAX)
		return cap;
	struct quantity q = {(int64_t)(n.sum / QUANTITY_NANOS), (uint32_t)(n.sum % QUANTITY_NANOS)};

	return quantity_compare(q, cap) > 0 ? cap : q;
}

static struct quantity negated(struct quantity q)
{
	if (q.nano)
		return (struct quantity){~q.whole, QUANTITY_NANOS - q.nano}; /* -whole - 1 */
	return q.whole == INT64_MIN ? most : quantity_of(-q.whole);
}

int quantity_parse(struct quantity *out, const char *s, struct err *e)
{
	static const char digit[] = "0123456789";
	bool negative = *s == '-';
	const char *digits = s + (negative || *s == '+');
	size_t whole = strspn(digits, digit);
	size_t fraction = digits[whole] == '.' ? 1 + strspn(digits + whole + 1, digit) : 0;
	struct parts p = {digits, whole + fraction, (int64_t)whole, 0};

	if ((!whole && fraction < 2) || !read_suffix(digits + p.len, &p))
		return err_set(
			e, EINVAL, "\"%.64s\" is not a quantity such as 500m, 2, 1.5 or 16Gi", s);
	struct quantity q = quantity_of_parts(&p);

	*out = negative ? negated(q) : q;
	return 0;
}

struct quantity quantity_add(struct quantity a, struct quantity b)
{
	struct quantity sum = {.nano = a.nano + b.nano};
	bool carry = sum.nano >= QUANTITY_NANOS;

	if (__builtin_add_overflow(a.whole, b.whole, &sum.whole) ||
		__builtin_add_overflow(sum.whole, carry, &sum.whole))
		return b.whole >= 0 ? most : least;
	sum.nano -= carry ? QUANTITY_NANOS : 0;
	return sum;
}

struct quantity quantity_sub(struct quantity a, struct quantity b)
{
	bool borrow = a.nano < b.nano;
	struct quantity rest = {.nano = a.nano - b.nano + (borrow ? QUANTITY_NANOS : 0)};

	if (__builtin_sub_overflow(a.whole, b.whole, &rest.whole) ||
		__builtin_sub_overflow(rest.whole, borrow, &rest.whole))
		return b.whole < 0 ? most : least;
	return rest;
}

int64_t quantity_milli(struct quantity q)
{
	int64_t milli, part = q.nano / QUANTITY_NANOS_OF_MILLI;
	bool up = q.whole >= 0 && q.nano % QUANTITY_NANOS_OF_MILLI;

	if (__builtin_mul_overflow(q.whole, (int64_t)QUANTITY_MILLIS, &milli) ||
		__builtin_add_overflow(milli, part + up, &milli))
		return q.whole >= 0 ? INT64_MAX : INT64_MIN;
	return milli;
}

/* The count into *out; or why q has none. */
static const char *count_quantity(struct quantity q, enum quantity_unit unit, uint64_t *out)
{
	static const struct quantity most_counted[] = {
		/* as INT64_MAX */
		[QUANTITY_WHOLE] = {INT64_MAX, 0},
		[QUANTITY_MILLI] = {INT64_MAX / QUANTITY_MILLIS,
			INT64_MAX % QUANTITY_MILLIS * QUANTITY_NANOS_OF_MILLI},
	};

	if (q.whole < 0)
		return "negative";
	if (quantity_compare(q, most_counted[unit]) > 0)
		return "too large";
	*out = (uint64_t)(unit == QUANTITY_MILLI ? quantity_milli(q) : quantity_value(q));
	return NULL;
}

int quantity_count(struct quantity q, enum quantity_unit unit, uint64_t *out, struct err *e)
{
	const char *why = count_quantity(q, unit, out);
	char text[QUANTITY_TEXT_MAX];

	return why ? err_set(e, ERANGE, "quantity \"%s\" is %s", quantity_text(text, q), why) : 0;
}

int quantity_parse_count(const char *s, enum quantity_unit unit, uint64_t *out, struct err *e)
{
	struct quantity q;
	int rc = quantity_parse(&q, s, e);
	const char *why = rc ? NULL : count_quantity(q, unit, out);

	return why ? err_set(e, ERANGE, "quantity \"%.64s\" is %s", s, why) : rc;
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
