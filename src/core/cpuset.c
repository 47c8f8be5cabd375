#include <numafit/cpuset.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>

struct cpuset cpuset_and(struct cpuset a, const struct cpuset *b)
{
	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		a.w[i] &= b->w[i];
	return a;
}

struct cpuset cpuset_or(struct cpuset a, const struct cpuset *b)
{
	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		a.w[i] |= b->w[i];
	return a;
}

struct cpuset cpuset_minus(struct cpuset a, const struct cpuset *b)
{
	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		a.w[i] &= ~b->w[i];
	return a;
}

bool cpuset_equal(const struct cpuset *a, const struct cpuset *b)
{
	return memcmp(a->w, b->w, sizeof a->w) == 0;
}

bool cpuset_empty(const struct cpuset *s)
{
	return cpuset_next(s, 0) == CPUSET_BITS;
}

bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b)
{
	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		if (a->w[i] & b->w[i])
			return true;
	return false;
}

bool cpuset_within(const struct cpuset *a, const struct cpuset *b)
{
	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		if (a->w[i] & ~b->w[i])
			return false;
	return true;
}

unsigned cpuset_count(const struct cpuset *s)
{
	return cpuset_count_and(s, s);
}

unsigned cpuset_count_and(const struct cpuset *a, const struct cpuset *b)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		nr += (unsigned)__builtin_popcountll(a->w[i] & b->w[i]);
	return nr;
}

static void skip_blank(const char **s, const char *end)
{
	while (*s < end && (**s == ' ' || **s == '\t' || **s == '\n'))
		(*s)++;
}

static int read_cpu_id(const char **s, const char *end, unsigned *id, struct err *e)
{
	const char *from = *s;
	uint64_t value;

	while (*s < end && **s >= '0' && **s <= '9')
		(*s)++;
	int rc = text_u64(from, (size_t)(*s - from), CPUSET_BITS - 1, &value, e);
	if (!rc)
		*id = (unsigned)value;
	return rc;
}

int cpuset_parse(struct cpuset *out, const char *s, size_t len, struct err *e)
{
	const char *text = s, *end = s + len;
	struct cpuset set = {0};
	unsigned lo, hi;

	for (skip_blank(&s, end); s < end; skip_blank(&s, end)) {
		int rc = read_cpu_id(&s, end, &lo, e);

		hi = lo;
		if (!rc && s < end && *s == '-') {
			s++;
			rc = read_cpu_id(&s, end, &hi, e);
		}
		if (rc)
			return err_add(e, rc, "list \"%.*s\"", (int)(len < 64 ? len : 64), text);
		if (hi < lo)
			return err_set(e, EINVAL, "list \"%.*s\": %u-%u runs backwards",
				(int)(len < 64 ? len : 64), text, lo, hi);
		for (unsigned cpu = lo; cpu <= hi; cpu++)
			cpuset_add(&set, cpu);
		skip_blank(&s, end);
		if (s == end)
			break;
		bool comma = *s == ',';
		s += comma;
		skip_blank(&s, end);
		if (!comma || s == end)
			return err_set(e, EINVAL,
				"list \"%.*s\": a comma and a number should follow %u",
				(int)(len < 64 ? len : 64), text, hi);
	}
	*out = set;
	return 0;
}

const char *cpuset_format(const struct cpuset *s, char *buf, size_t cap)
{
	struct cpuset others;
	struct text t;

	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		others.w[i] = ~s->w[i];
	text_init(&t, buf, cap);
	for (unsigned lo = cpuset_next(s, 0); lo < CPUSET_BITS;) {
		unsigned hi = cpuset_next(&others, lo) - 1;

		text_put(&t, ",", t.len > 0);
		text_put_u64(&t, lo);
		if (hi > lo) {
			text_put(&t, "-", 1);
			text_put_u64(&t, hi);
		}
		lo = cpuset_next(s, hi + 1);
	}
	return buf;
}
