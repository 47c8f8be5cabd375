#include <numafit-cli/redact_json.h>

#include <numafit/mem.h>
#include <numafit/text.h>

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define uthash_malloc(bytes)  xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

enum { NAME_SHORTEST = 3, ID_SHORTEST = 12, UID_CHARS = 36, WORD_MAX = 32, DEPTH_MAX = 64 };

enum name_kind {
	NAME_NONE,
	NAME_NAMESPACE,
	NAME_POD,
	NAME_CONTAINER,
	NAME_CLAIM,
	NAME_ID,
	NR_NAME_KINDS
};
static const char *const kind_words[NR_NAME_KINDS] = {
	[NAME_NAMESPACE] = "namespace",
	[NAME_POD] = "pod",
	[NAME_CONTAINER] = "container",
	[NAME_CLAIM] = "claim",
	[NAME_ID] = "id",
};

static const struct {
	const char *key;
	enum name_kind kind;
} name_keys[] = {
	{"namespace", NAME_NAMESPACE},
	{"pod_namespace", NAME_NAMESPACE},
	{"pod", NAME_POD},
	{"pod_name", NAME_POD},
	{"container", NAME_CONTAINER},
	{"container_name", NAME_CONTAINER},
	{"claim", NAME_CLAIM},
	{"id", NAME_ID},
	{"uid", NAME_ID},
	{"container_id", NAME_ID},
	{"sandbox_id", NAME_ID},
	{"pod_uid", NAME_ID},
	{"shares", NAME_ID},
	{"for_pods", NAME_ID},
};

/* A name, or how an id begins, and the word for it. */
struct redacted {
	char *name;
	char word[WORD_MAX];
	UT_hash_handle hh;
};

struct redaction {
	struct redacted *names,
		*begins; /* by the whole name; ids by their first ID_SHORTEST bytes */
	unsigned used[NR_NAME_KINDS];
};

struct redaction *redaction_new(void)
{
	return xcalloc(1, sizeof(struct redaction));
}

static void free_names(struct redacted *list)
{
	struct redacted *n, *next;

	HASH_ITER(hh, list, n, next)
	{
		HASH_DEL(list, n);
		free(n->name);
		free(n);
	}
}

void redaction_free(struct redaction *r)
{
	free_names(r->names);
	free_names(r->begins);
	free(r);
}

size_t redaction_names(const struct redaction *r)
{
	return HASH_COUNT(r->names);
}

static const struct redacted *find(const struct redacted *list, const char *name, size_t len)
{
	const struct redacted *n = NULL;

	HASH_FIND(hh, list, name, len, n);
	return n;
}

static void learn(struct redaction *r, enum name_kind kind, const char *name, size_t len)
{
	if (!len || find(r->names, name, len))
		return;
	struct redacted *n = xcalloc(1, sizeof *n);

	n->name = xstrndup(name, len);
	(void)snprintf(n->word, sizeof n->word, "%s-%u", kind_words[kind], ++r->used[kind]);
	HASH_ADD_KEYPTR(hh, r->names, n->name, len, n);
	if (kind != NAME_ID || len < ID_SHORTEST || find(r->begins, name, ID_SHORTEST))
		return;
	struct redacted *begin = xcalloc(1, sizeof *begin);

	begin->name = xstrndup(name, ID_SHORTEST);
	memcpy(begin->word, n->word, sizeof begin->word);
	HASH_ADD_KEYPTR(hh, r->begins, begin->name, ID_SHORTEST, begin);
}

/* Which kind of name has that key; members is the object that it is in, NULL in a log. A "name" is
 * a container's where CPUs are asked for, and a pod's beside its uid; a short "id" is a NUMA node's
 * or the like. */
static enum name_kind kind_of(const char *key, size_t len, const char *value, const json_t *members)
{
	for (size_t i = 0; i < sizeof name_keys / sizeof *name_keys; i++) {
		if (strlen(name_keys[i].key) != len || memcmp(name_keys[i].key, key, len) != 0)
			continue;
		bool is_short = strlen(value) < ID_SHORTEST && text_equal(name_keys[i].key, "id");

		return is_short ? NAME_NONE : name_keys[i].kind;
	}
	if (len != strlen("name") || memcmp(key, "name", len) != 0 || !members)
		return NAME_NONE;
	return json_object_get(members, "uid")         ? NAME_POD
	       : json_object_get(members, "cpu_milli") ? NAME_CONTAINER
						       : NAME_NONE;
}

/* Lines of a log: what prefix a line has, then KEY=VALUE or KEY="VALUE" */

struct pair {
	const char *key, *value; /* inside the quotes */
	size_t key_len, value_len;
	bool quoted;
};

/* The next pair from *at on, which moves behind it. */
static bool next_pair(const char **at, struct pair *p)
{
	const char *s = *at;
	size_t len;

	for (;; s += len) {
		s += strspn(s, " ");
		len = strcspn(s, " =");
		if (!*s)
			return false;
		if (s[len] == '=' && len)
			break;
		len += s[len] == '=';
	}
	*p = (struct pair){.key = s, .key_len = len, .value = s + len + 1};
	p->quoted = *p->value == '"';
	p->value += p->quoted;
	const char *end = p->value;
	while (*end && *end != (p->quoted ? '"' : ' '))
		end += p->quoted && end[0] == '\\' && end[1] ? 2 : 1;
	p->value_len = (size_t)(end - p->value);
	*at = end + (p->quoted && *end);
	return true;
}

static enum name_kind kind_of_pair(const struct pair *p)
{
	auto_free char *value = xstrndup(p->value, p->value_len);

	return kind_of(p->key, p->key_len, value, NULL);
}

static bool is_word_character(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._-", c));
}

/* Learning */

static bool is_wildcard(char c)
{
	return c == '*' || c == '?';
}

/* A list of names and patterns. A pattern is no name. */
static void learn_list(struct redaction *r, const char *text, size_t len)
{
	size_t word;

	for (size_t at = 0; at < len; at += word + 1) {
		bool pattern = false;

		for (word = 0; at + word < len &&
			       (is_word_character(text[at + word]) || is_wildcard(text[at + word]));
			word++)
			pattern = pattern || is_wildcard(text[at + word]);
		if (!pattern)
			learn(r, NAME_NAMESPACE, text + at, word);
	}
}

/* In the setting "namespaces": names=LIST KEY=VALUE; names=LIST KEY=VALUE */
static bool has_namespaces(const struct pair *p)
{
	return p->key_len == strlen("names") && memcmp(p->key, "names", p->key_len) == 0;
}

static void learn_settings(struct redaction *r, const json_t *settings)
{
	const char *sections = json_string_value(json_object_get(settings, "namespaces"));
	struct pair p;

	while (sections && next_pair(&sections, &p))
		if (has_namespaces(&p))
			learn_list(r, p.value, p.value_len);
}

static void learn_value(struct redaction *r, const json_t *v, unsigned depth)
{
	const char *key;
	size_t i;
	json_t *member;

	if (depth == DEPTH_MAX)
		return;
	json_array_foreach(v, i, member) learn_value(r, member, depth + 1);
	if (!json_is_object(v))
		return;
	json_object_foreach((json_t *)(uintptr_t)v, key, member)
	{
		const char *text = json_string_value(member);
		enum name_kind kind = text ? kind_of(key, strlen(key), text, v) : NAME_NONE;

		if (kind)
			learn(r, kind, text, strlen(text));
		if (!depth && text_equal(key, "settings"))
			learn_settings(r, member);
		learn_value(r, member, depth + 1);
	}
}

static json_t *load(const char *text)
{
	return *text == '{' || *text == '[' ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

void redaction_learn(struct redaction *r, const char *text)
{
	json_t *document = load(text);
	struct pair p;

	if (document) {
		learn_value(r, document, 0);
		json_decref(document);
		return;
	}
	while (next_pair(&text, &p)) {
		enum name_kind kind = kind_of_pair(&p);

		/* the log has how an id begins: its word is the one of the whole id, where that is
		 * known */
		if (kind && !(kind == NAME_ID && p.value_len >= ID_SHORTEST &&
				    find(r->begins, p.value, ID_SHORTEST)))
			learn(r, kind, p.value, p.value_len);
	}
}

/* Replacing */

static bool is_id_character(char c)
{
	return isxdigit((unsigned char)c) || c == '-' || c == '_';
}

static const struct redacted *find_id(const struct redaction *r, const char *run, size_t len)
{
	char id[UID_CHARS];

	if (len < ID_SHORTEST)
		return NULL;
	len = len < sizeof id ? len : sizeof id;
	for (size_t i = 0; i < len; i++)
		id[i] = run[i] == '_' ? '-' : run[i];
	return find(r->begins, id, ID_SHORTEST);
}

/* The word with its ids replaced, wherever in it these begin. */
static void put_with_ids(const struct redaction *r, const char *word, size_t len, FILE *out)
{
	for (size_t at = 0; at < len;) {
		size_t run = 0;

		while (at + run < len && is_id_character(word[at + run]))
			run++;
		const struct redacted *id = find_id(r, word + at, run);

		if (id) {
			(void)fputs(id->word, out);
			at += run;
		} else {
			(void)fputc(word[at++], out);
		}
	}
}

/* Whether the word can be a name in a sentence. The namespace "default" is on every cluster, and
 * sentences that replay compares have that word. */
static bool is_distinct(const char *word, size_t len)
{
	static const char everywhere[] = "default";

	return len >= NAME_SHORTEST && strspn(word, "0123456789") < len &&
	       !(len == sizeof everywhere - 1 && memcmp(word, everywhere, len) == 0);
}

static void put_word(const struct redaction *r, const char *word, size_t len, FILE *out)
{
	size_t bare = len;
	const struct redacted *n = NULL;

	for (; bare && !n; bare--)
		if (bare == len ||
			!isalnum((unsigned char)word[bare])) /* "web-0." ends a sentence */
			n = is_distinct(word, bare) ? find(r->names, word, bare) : NULL;
		else
			break;
	if (!n) {
		put_with_ids(r, word, len, out);
		return;
	}
	(void)fputs(n->word, out);
	(void)fwrite(word + bare + 1, 1, len - bare - 1, out);
}

/* A value that is no name: a sentence, a path, a list, or one word of a fixed set. */
static void put_value(const struct redaction *r, const char *text, size_t len, FILE *out)
{
	bool is_text = memchr(text, ' ', len) || memchr(text, '/', len);
	size_t word;

	for (size_t at = 0; at < len; at += word) {
		for (word = 0; at + word < len && is_word_character(text[at + word]);)
			word++;
		if (word && is_text)
			put_word(r, text + at, word, out);
		else if (word)
			put_with_ids(r, text + at, word, out);
		else
			(void)fputc(text[at + word++], out);
	}
}

static void put_name(const struct redaction *r, const char *name, size_t len, FILE *out)
{
	const struct redacted *n = find(r->names, name, len);

	if (!n && len >= ID_SHORTEST)
		n = find(r->begins, name, ID_SHORTEST);
	(void)fputs(n ? n->word : "", out);
}

/* A list of names and patterns. */
static void put_list(const struct redaction *r, const char *text, size_t len, FILE *out)
{
	size_t word;

	for (size_t at = 0; at < len; at += word) {
		for (word = 0; at + word < len && is_word_character(text[at + word]);)
			word++;
		const struct redacted *n = word ? find(r->names, text + at, word) : NULL;

		word += !word; /* what is between them */
		if (n)
			(void)fputs(n->word, out);
		else
			(void)fwrite(text + at, 1, word, out);
	}
}

/* A text of pairs KEY=VALUE, each value as put() writes it. */
static char *redact_pairs(const struct redaction *r, const char *text,
	void (*put)(const struct redaction *r, const struct pair *p, FILE *out))
{
	const char *at = text, *done = text;
	char *said = NULL;
	struct pair p;
	size_t len;
	FILE *out = open_memstream(&said, &len);

	if (!out)
		abort();
	while (next_pair(&at, &p)) {
		(void)fwrite(done, 1, (size_t)(p.value - done), out);
		put(r, &p, out);
		done = p.value + p.value_len;
	}
	(void)fputs(done, out);
	(void)fclose(out);
	return said;
}

static void put_in_section(const struct redaction *r, const struct pair *p, FILE *out)
{
	if (has_namespaces(p))
		put_list(r, p->value, p->value_len, out);
	else
		(void)fwrite(p->value, 1, p->value_len, out);
}

/* The settings in force have no names but in one. */
static json_t *redact_settings(const struct redaction *r, json_t *settings)
{
	json_t *copy = json_copy(settings);
	const char *sections = json_string_value(json_object_get(copy, "namespaces"));

	if (sections) {
		auto_free char *said = redact_pairs(r, sections, put_in_section);

		(void)json_object_set_new(copy, "namespaces", json_string(said));
	}
	return copy;
}

/* What a document, as a journal's first line, says of the machine and the settings is read by
 * replay, and has words that a container may be called: "node", "memory", "run". NULL: that is no
 * such member. */
static json_t *redact_header(const struct redaction *r, const char *key, json_t *member)
{
	if (text_equal(key, "machine") || text_equal(key, "topology"))
		return json_incref(member);
	return text_equal(key, "settings") ? redact_settings(r, member) : NULL;
}

static json_t *redact_text(const struct redaction *r, enum name_kind kind, const char *text)
{
	auto_free char *said = NULL;
	size_t len;
	FILE *out = open_memstream(&said, &len);

	if (!out)
		abort();
	if (kind)
		put_name(r, text, strlen(text), out);
	else
		put_value(r, text, strlen(text), out);
	(void)fclose(out);
	return json_string(said);
}

static json_t *redact_value(const struct redaction *r, json_t *v, unsigned depth)
{
	json_t *copy, *member;
	const char *key;
	size_t i;

	if (depth == DEPTH_MAX)
		return json_null();
	if (json_is_string(v))
		return redact_text(r, NAME_NONE, json_string_value(v));
	if (json_is_array(v)) {
		copy = json_array();
		json_array_foreach(v, i, member)(void)
			json_array_append_new(copy, redact_value(r, member, depth + 1));
		return copy;
	}
	if (!json_is_object(v))
		return json_incref(v);
	copy = json_object();
	json_object_foreach(v, key, member)
	{
		const char *text = json_string_value(member);
		enum name_kind kind = text ? kind_of(key, strlen(key), text, v) : NAME_NONE;
		json_t *redacted = depth ? NULL : redact_header(r, key, member);

		if (!redacted)
			redacted = kind ? redact_text(r, kind, text)
					: redact_value(r, member, depth + 1);
		(void)json_object_set_new(copy, key, redacted);
	}
	return copy;
}

static void put_in_line(const struct redaction *r, const struct pair *p, FILE *out)
{
	if (kind_of_pair(p))
		put_name(r, p->value, p->value_len, out);
	else
		put_value(r, p->value, p->value_len, out);
}

char *redaction_apply(const struct redaction *r, const char *text)
{
	json_t *document = load(text);

	if (!document)
		return redact_pairs(r, text, put_in_line);
	json_t *copy = redact_value(r, document, 0);
	char *said = json_dumps(copy, JSON_COMPACT);

	json_decref(copy);
	json_decref(document);
	return said ? said : xstrdup("");
}
