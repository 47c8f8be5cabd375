/* Writes structs as JSON by their tables of fields: the same struct always gives the same bytes. */
#include <codec/fields.h>

#include <ctype.h>
#include <numafit/cpuset.h>
#include <numafit/pod.h>
#include <string.h>

enum { CONTROL_END = 0x20, UTF8_LONGEST = 4 };

static void put_escape(struct text *t, char c)
{
	static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t i = 0; shorts[i]; i += 2)
		if (shorts[i] == c) {
			text_put(t, (const char[]){'\\', shorts[i + 1]}, 2);
			return;
		}
	text_add(t, "\\u%04x", (unsigned char)c);
}

/* Appends the character at s, whose text is not UTF-8 as a whole: a message that was cut to fit may
 * end within a character. What is none becomes no longer by that, or a char[max] that is full could
 * not be read back. Returns its bytes. */
static size_t put_repaired(struct text *t, const char *s)
{
	size_t n = 1, len = strnlen(s, UTF8_LONGEST);

	while (n <= len && !text_is_utf8(s, n))
		n++;
	if (n > len) {
		text_put(t, "?", 1);
		return 1;
	}
	text_put(t, s, n);
	return n;
}

/* How much of s can stand as it is; whole: all that is not ASCII can. */
static size_t plain_length(const char *s, bool whole)
{
	const char *end = s;

	while ((unsigned char)*end >= CONTROL_END && *end != '"' && *end != '\\' &&
		(whole || isascii((unsigned char)*end)))
		end++;
	return (size_t)(end - s);
}

void fields_write_string(struct text *t, const char *s)
{
	size_t plain = plain_length(s, false);
	bool whole = s[plain] && text_is_utf8(s, strlen(s));

	text_put(t, "\"", 1);
	for (; *s; plain = plain_length(s, whole)) {
		text_put(t, s, plain);
		s += plain;
		if (!isascii((unsigned char)*s))
			s += put_repaired(t, s);
		else if (*s)
			put_escape(t, *s++);
	}
	text_put(t, "\"", 1);
}

/* The member of *from at that offset, as a value of type T. */
#define MEMBER(T, from, offset) (*(T const *)(const void *)((const char *)(from) + (offset)))

/* A set of what the type says, as its list. */
static void put_set(
	struct text *t, enum field_type type, const void *set, const struct node_ids *ids)
{
	char list[TOKENSET_TEXT_MAX]; /* the longest of the three */

	if (type == FIELD_CPUS)
		(void)cpuset_format(set, list, sizeof list);
	else if (type == FIELD_NODES)
		(void)nodeset_format(*(const struct nodeset *)set, ids, list, sizeof list);
	else
		(void)tokenset_format(set, ids, list, sizeof list);
	fields_write_string(t, list);
}

static void put_array(struct text *t, const struct fields *f, const char *first, size_t nr,
	const struct node_ids *ids)
{
	text_put(t, "[", 1);
	for (size_t i = 0; i < nr; i++) {
		text_put(t, ",", i > 0);
		fields_write(t, f, first + i * f->size, ids);
	}
	text_put(t, "]", 1);
}

static void put_map(struct text *t, const struct key_value *pairs, size_t nr)
{
	text_put(t, "{", 1);
	for (size_t i = 0; i < nr; i++) {
		text_put(t, ",", i > 0);
		fields_write_string(t, pairs[i].key);
		text_put(t, ":", 1);
		fields_write_string(t, pairs[i].value);
	}
	text_put(t, "}", 1);
}

static bool is_true(const struct field *f, const char *at)
{
	return f->type == FIELD_BOOL ? MEMBER(bool, at, 0) : MEMBER(unsigned, at, 0) == f->max;
}

static const char *name_of(const struct field *f, unsigned value)
{
	return f->words[f->newer && value == f->newer ? f->older : value];
}

static void put_value(
	struct text *t, const struct field *f, const void *from, const struct node_ids *ids)
{
	const char *p = (const char *)from + f->at, *word;
	uint64_t n;

	switch (f->type) {
	case FIELD_BOOL:
	case FIELD_WHETHER:
		word = is_true(f, p) ? "true" : "false";
		text_put(t, word, strlen(word));
		return;
	case FIELD_UNSIGNED:
		text_put_u64(t, MEMBER(unsigned, p, 0));
		return;
	case FIELD_U64:
		n = MEMBER(uint64_t, p, 0);
		text_put(t, "\"", n > INT64_MAX);
		text_put_u64(t, n);
		text_put(t, "\"", n > INT64_MAX);
		return;
	case FIELD_I64:
		n = MEMBER(uint64_t, p, 0); /* in two's complement */
		text_put(t, "-", n > INT64_MAX);
		text_put_u64(t, n > INT64_MAX ? -n : n);
		return;
	case FIELD_STRING:
		fields_write_string(t, MEMBER(char *, p, 0) ? MEMBER(char *, p, 0) : "");
		return;
	case FIELD_CHARS:
		fields_write_string(t, p);
		return;
	case FIELD_NAME:
		fields_write_string(t, name_of(f, MEMBER(unsigned, p, 0)));
		return;
	case FIELD_CPUS:
	case FIELD_NODES:
	case FIELD_TOKENS:
		put_set(t, f->type, p, ids);
		return;
	case FIELD_OBJECT:
		fields_write(t, f->fields, p, ids);
		return;
	case FIELD_POINTER:
		fields_write(t, f->fields, MEMBER(void *, p, 0), ids);
		return;
	case FIELD_ARRAY:
		put_array(t, f->fields, p, MEMBER(unsigned, from, f->count), ids);
		return;
	case FIELD_LIST:
		put_array(t, f->fields, MEMBER(char *, p, 0), MEMBER(size_t, from, f->count), ids);
		return;
	case FIELD_MAP:
		put_map(t, MEMBER(struct key_value *, p, 0), MEMBER(size_t, from, f->count));
		return;
	case FIELD_STRINGS:
		return;
	}
}

static bool is_absent(const struct field *f, const void *from)
{
	if (f->has_flag)
		return !MEMBER(bool, from, f->flag);
	if (!f->optional)
		return false;
	if (f->type == FIELD_ARRAY)
		return !MEMBER(unsigned, from, f->count);
	if (f->type == FIELD_LIST)
		return !MEMBER(size_t, from, f->count);
	if (f->type == FIELD_BOOL || f->type == FIELD_WHETHER)
		return !is_true(f, (const char *)from + f->at);
	if (f->type == FIELD_U64)
		return !MEMBER(uint64_t, from, f->at);
	if (f->type == FIELD_I64)
		return !MEMBER(int64_t, from, f->at);
	if (f->type == FIELD_CHARS)
		return !MEMBER(char, from, f->at);
	if (f->type == FIELD_CPUS)
		return cpuset_empty(&MEMBER(struct cpuset, from, f->at));
	if (f->type == FIELD_NODES)
		return nodeset_empty(MEMBER(struct nodeset, from, f->at));
	if (f->type == FIELD_NAME)
		return !MEMBER(unsigned, from, f->at);
	return (f->type == FIELD_STRING || f->type == FIELD_POINTER) &&
	       !MEMBER(char *, from, f->at);
}

void fields_write(
	struct text *t, const struct fields *f, const void *from, const struct node_ids *ids)
{
	const char *before = "{\"";

	for (size_t i = 0; i < f->nr; i++) {
		if (is_absent(&f->row[i], from))
			continue;
		text_put(t, before, 2);
		text_put(t, f->row[i].key, strlen(f->row[i].key));
		text_put(t, "\":", 2);
		put_value(t, &f->row[i], from, ids);
		before = ",\"";
	}
	if (*before == '{')
		text_put(t, "{", 1);
	text_put(t, "}", 1);
}
