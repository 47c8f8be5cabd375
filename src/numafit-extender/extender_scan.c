#include <numafit-extender/extender_scan.h>

#include <ctype.h>
#include <errno.h>
#include <numafit/text.h>
#include <string.h>

struct scan {
	const char *at, *end;
	unsigned depth;
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
}

static bool scan_take_char(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool skip_escape(struct scan *s)
{
	enum { HEX_DIGITS = 4 };

	if (s->at == s->end || !*s->at || !strchr("\"\\/bfnrtu", *s->at))
		return false;
	if (*s->at++ != 'u')
		return true;
	for (unsigned i = 0; i < HEX_DIGITS; i++)
		if (s->at == s->end || !isxdigit((unsigned char)*s->at++))
			return false;
	return true;
}

static bool skip_string(struct scan *s)
{
	enum { FIRST_PRINTABLE = ' ' };

	if (!scan_take_char(s, '"'))
		return false;
	while (s->at < s->end) {
		unsigned char c = (unsigned char)*s->at++;

		if (c == '"')
			return true;
		if (c < FIRST_PRINTABLE || (c == '\\' && !skip_escape(s)))
			return false;
	}
	return false;
}

static bool skip_digits(struct scan *s)
{
	const char *first = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > first;
}

static bool skip_number(struct scan *s)
{
	(void)scan_take_char(s, '-');
	if (!scan_take_char(s, '0') && !skip_digits(s))
		return false;
	if (scan_take_char(s, '.') && !skip_digits(s))
		return false;
	if (!scan_take_char(s, 'e') && !scan_take_char(s, 'E'))
		return true;
	if (!scan_take_char(s, '+'))
		(void)scan_take_char(s, '-');
	return skip_digits(s);
}

static bool scan_skip_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static bool scan_skip_value(struct scan *s);

/* The key of a member, and what stands around it. */
static bool skip_key(struct scan *s)
{
	if (!skip_string(s))
		return false;
	skip_space(s);
	return scan_take_char(s, ':');
}

static bool skip_all(struct scan *s, char close)
{
	if (s->depth++ == SPAN_DEPTH_MAX)
		return false;
	s->at++;
	skip_space(s);
	if (!scan_take_char(s, close)) {
		do {
			skip_space(s);
			if (close == '}' && !skip_key(s))
				return false;
			skip_space(s);
			if (!scan_skip_value(s))
				return false;
			skip_space(s);
		} while (scan_take_char(s, ','));
		if (!scan_take_char(s, close))
			return false;
	}
	s->depth--;
	return true;
}

static bool scan_skip_value(struct scan *s)
{
	switch (s->at < s->end ? *s->at : '\0') {
	case '{':
		return skip_all(s, '}');
	case '[':
		return skip_all(s, ']');
	case '"':
		return skip_string(s);
	case 't':
		return scan_skip_word(s, "true");
	case 'f':
		return scan_skip_word(s, "false");
	case 'n':
		return scan_skip_word(s, "null");
	default:
		return skip_number(s);
	}
}

/* The same of what was checked already, faster. */

static void pass_string(struct scan *s)
{
	size_t backslashes;

	do {
		s->at = memchr(s->at + 1, '"', (size_t)(s->end - s->at));
		for (backslashes = 0; s->at[-1 - (ptrdiff_t)backslashes] == '\\';)
			backslashes++;
	} while (backslashes % 2);
	s->at++;
}

static void pass_value(struct scan *s)
{
	unsigned depth = 0;

	if (*s->at != '{' && *s->at != '[' && *s->at != '"') {
		(void)scan_skip_value(s);
		return;
	}
	do {
		char c = *s->at;

		if (c == '"') {
			pass_string(s);
			continue;
		}
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		s->at++;
	} while (depth);
}

int span_read(const char *text, size_t len, struct span *out, struct err *e)
{
	struct scan s = {.at = text, .end = text + len};

	skip_space(&s);
	const char *first = s.at;
	bool ok = scan_skip_value(&s);
	size_t size = (size_t)(s.at - first);

	if (ok)
		skip_space(&s);
	if (!ok || s.at != s.end)
		return err_set(e, EINVAL, "not JSON: byte %zu: %s", (size_t)(s.at - text),
			s.depth > SPAN_DEPTH_MAX ? "too deep"
			: s.at == s.end          ? "it ends too early"
						 : "something else is expected");
	if (!text_is_utf8(text, len))
		return err_set(e, EINVAL, "not JSON: bytes that are not UTF-8");
	*out = (struct span){first, size};
	return 0;
}

struct span_walk span_walk(struct span v)
{
	char kind = span_kind(v);

	if (kind != '{' && kind != '[')
		return (struct span_walk){0};
	return (struct span_walk){v.at + 1, v.at + v.len - 1, kind == '{'};
}

static struct span take_value(struct scan *s)
{
	skip_space(s);
	const char *first = s->at;

	pass_value(s);
	return (struct span){first, (size_t)(s->at - first)};
}

bool span_next(struct span_walk *w, struct span *key, struct span *value)
{
	struct scan s = {.at = w->at, .end = w->end};

	skip_space(&s);
	if (s.at == s.end)
		return false;
	if (w->object) {
		*key = take_value(&s);
		skip_space(&s);
		(void)scan_take_char(&s, ':');
	}
	*value = take_value(&s);
	skip_space(&s);
	(void)scan_take_char(&s, ',');
	w->at = s.at;
	return true;
}

size_t span_count(struct span v)
{
	struct span_walk w = span_walk(v);
	struct span key, value;
	size_t nr = 0;

	while (span_next(&w, &key, &value))
		nr++;
	return nr;
}

bool span_plain(struct span string, struct span *out)
{
	if (span_kind(string) != '"')
		return false;
	*out = (struct span){string.at + 1, string.len - 2};
	return !memchr(out->at, '\\', out->len);
}

bool span_member(struct span v, const char *name, struct span *out)
{
	struct span_walk w = span_walk(v);
	struct span key, value, plain;
	bool found = false;

	while (w.object && span_next(&w, &key, &value))
		if (span_plain(key, &plain) && plain.len == strlen(name) &&
			memcmp(plain.at, name, plain.len) == 0) {
			*out = value;
			found = true;
		}
	return found;
}
