#include <codec/fields.h>

#include <numafit/cpuset.h>
#include <numafit/pod.h>
#include <string.h>

enum { CONTROL_END = 0x20, UTF8_LONGEST = 4 };

/* text_add() would do; this is on the way of every container's creation */
static void put(struct text *t, const char *s, size_t len)
{
	size_t left = t->cap - t->len;

	if (len >= left) {
		t->cut = true;
		return;
	}
	memcpy(t->at + t->len, s, len);
	t->len += len;
	t->at[t->len] = '\0';
}

static void put_char(struct text *t, char c)
{
	put(t, &c, 1);
}

static bool is_plain(unsigned char c)
{
	return c >= CONTROL_END && c != '"' && c != '\\';
}

static void put_escape(struct text *t, char c)
{
	static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t i = 0; shorts[i]; i += 2)
		if (shorts[i] == c) {
			put_char(t, '\\');
			put_char(t, shorts[i + 1]);
			return;
		}
	text_add(t, "\\u%04x", (unsigned char)c);
}

/* Bytes of the character at s, 0 when it is not UTF-8. */
static size_t character(const char *s)
{
	size_t len = strnlen(s, UTF8_LONGEST);

	for (size_t n = 1; n <= len; n++)
		if (text_is_utf8(s, n))
			return n;
	return 0;
}

/* A message that was cut to fit may end within a character. */
static void put_repaired(struct text *t, const char *s)
{
	while (*s) {
		size_t n = character(s);

		if (!n)
			put(t, "\xef\xbf\xbd", 3);
		else if (n > 1 || is_plain((unsigned char)*s))
			put(t, s, n);
		else
			put_escape(t, *s);
		s += n ? n : 1;
	}
}

static void put_string(struct text *t, const char *s)
{
	put_char(t, '"');
	if (!text_is_utf8(s, strlen(s))) {
		put_repaired(t, s);
	} else {
		while (*s) {
			size_t n = 0;

			while (s[n] && is_plain((unsigned char)s[n]))
				n++;
			put(t, s, n);
			s += n;
			if (*s)
				put_escape(t, *s++);
		}
	}
	put_char(t, '"');
}

static void put_u64(struct text *t, uint64_t value)
{
	text_add(t, value > INT64_MAX ? "\"%llu\"" : "%llu", (unsigned long long)value);
}

static void put_cpus(struct text *t, const struct cpuset *set)
{
	char list[CPUSET_TEXT_MAX];

	put_string(t, cpuset_format(set, list, sizeof list));
}

static void put_nodes(struct text *t, struct nodeset set, const struct node_ids *ids)
{
	char list[NODESET_TEXT_MAX];

	put_string(t, nodeset_format(set, ids, list, sizeof list));
}

static void put_tokens(struct text *t, const struct tokenset *set, const struct node_ids *ids)
{
	char list[TOKENSET_TEXT_MAX];

	put_string(t, tokenset_format(set, ids, list, sizeof list));
}

static void put_array(struct text *t, const struct fields *f, const char *first, size_t nr,
	const struct node_ids *ids)
{
	put_char(t, '[');
	for (size_t i = 0; i < nr; i++) {
		if (i)
			put_char(t, ',');
		fields_write(t, f, first + i * f->size, ids);
	}
	put_char(t, ']');
}

static void put_map(struct text *t, const struct key_value *pairs, size_t nr)
{
	put_char(t, '{');
	for (size_t i = 0; i < nr; i++) {
		if (i)
			put_char(t, ',');
		put_string(t, pairs[i].key);
		put_char(t, ':');
		put_string(t, pairs[i].value);
	}
	put_char(t, '}');
}

/* The member of *from at that offset, as a value of type T. */
#define MEMBER(T, from, offset) (*(T const *)(const void *)((const char *)(from) + (offset)))

static void put_value(
	struct text *t, const struct field *f, const void *from, const struct node_ids *ids)
{
	const char *p = (const char *)from + f->at;

	switch (f->type) {
	case FIELD_BOOL:
		text_add(t, "%s", MEMBER(bool, p, 0) ? "true" : "false");
		return;
	case FIELD_UNSIGNED:
		put_u64(t, MEMBER(unsigned, p, 0));
		return;
	case FIELD_U32:
		put_u64(t, MEMBER(uint32_t, p, 0));
		return;
	case FIELD_U64:
		put_u64(t, MEMBER(uint64_t, p, 0));
		return;
	case FIELD_I64:
		text_add(t, "%lld", (long long)MEMBER(int64_t, p, 0));
		return;
	case FIELD_STRING:
		put_string(t, MEMBER(char *, p, 0) ? MEMBER(char *, p, 0) : "");
		return;
	case FIELD_CHARS:
		put_string(t, p);
		return;
	case FIELD_NAME:
		put_string(t, f->words[MEMBER(unsigned, p, 0)]);
		return;
	case FIELD_CPUS:
		put_cpus(t, &MEMBER(struct cpuset, p, 0));
		return;
	case FIELD_NODES:
		put_nodes(t, MEMBER(struct nodeset, p, 0), ids);
		return;
	case FIELD_TOKENS:
		put_tokens(t, &MEMBER(struct tokenset, p, 0), ids);
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
	if (f->type == FIELD_BOOL)
		return !MEMBER(bool, from, f->at);
	if (f->type == FIELD_U64)
		return !MEMBER(uint64_t, from, f->at);
	if (f->type == FIELD_CPUS)
		return cpuset_empty(&MEMBER(struct cpuset, from, f->at));
	if (f->type == FIELD_BOOL)
		return !MEMBER(bool, from, f->at);
	if (f->type == FIELD_NAME)
		return !MEMBER(unsigned, from, f->at);
	return (f->type == FIELD_STRING || f->type == FIELD_POINTER) &&
	       !MEMBER(char *, from, f->at);
}

void fields_write(
	struct text *t, const struct fields *f, const void *from, const struct node_ids *ids)
{
	char before = '{';

	for (size_t i = 0; i < f->nr; i++) {
		if (is_absent(&f->row[i], from))
			continue;
		put_char(t, before);
		put_char(t, '"');
		put(t, f->row[i].key, strlen(f->row[i].key));
		put(t, "\":", 2);
		put_value(t, &f->row[i], from, ids);
		before = ',';
	}
	if (before == '{')
		put_char(t, before);
	put_char(t, '}');
}
