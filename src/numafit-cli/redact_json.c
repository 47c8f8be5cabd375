/* Documents and log lines without names: each value by its key. */
#include <numafit-cli/redact_json.h>

#include <numafit/mem.h>
#include <numafit/setting_text.h>
#include <numafit/text.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define uthash_malloc(bytes)  xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

enum { ID_SHORTEST = 12, WORD_MAX = 32, DEPTH_MAX = 64 };
#define LEFT_OUT "(left-out)"

/* What a text is. */
enum kind {
	LEAVE_OUT,
	KEEP,
	NAME_NAMESPACE,
	NAME_POD,
	NAME_CONTAINER,
	NAME_CLAIM,
	NAME_RESOURCE,
	NAME_DEVICE,
	NAME_CLASS,
	NAME_CGROUP,
	NAME_PATTERN,
	NAME_ID,
	NR_KINDS,
	LIST_OF_IDS = NR_KINDS, /* words of UID, UID/NUMBER, ~UID/NAME */
	RESOURCE,               /* cpu, memory, hugepages-SIZE, or a device's resource */
	QUIET_WISH,             /* irq,frequency=PROFILE */
	TOKENS_ANNOTATION,      /* v1:5000:0=0-3, or whatever an author wrote */
	ODD_WISH                /* a text whose presence refuses the container */
};
static const char *const kind_words[NR_KINDS] = {
	[NAME_NAMESPACE] = "namespace",
	[NAME_POD] = "pod",
	[NAME_CONTAINER] = "container",
	[NAME_CLAIM] = "claim",
	[NAME_RESOURCE] = "resource",
	[NAME_DEVICE] = "device",
	[NAME_CLASS] = "class",
	[NAME_CGROUP] = "cgroup",
	[NAME_PATTERN] = "pattern",
	[NAME_ID] = "id",
};

/* Keys of the journal, of `numafit status --json` and of the log. Their texts are of fixed sets, or
 * numbers, sizes, CPUs and NUMA nodes. */
static const char *const kept_keys[] = {
	"all",
	"allocatable",
	"apart",
	"asked",
	"by",
	"bytes",
	"bytes_before",
	"cause",
	"claims",
	"confined",
	"connection",
	"containers",
	"core_rule",
	"cpus",
	"cpus_held",
	"cpus_pool",
	"cpus_reserved",
	"device_plugin",
	"disagree",
	"enforced",
	"event",
	"exclusive",
	"files",
	"fingerprint",
	"format",
	"found_cpus",
	"found_mems",
	"free",
	"frequency_cpus",
	"from",
	"from_cpus",
	"from_nodes",
	"to_cpus",
	"given",
	"held",
	"hint",
	"interrupts",
	"irq_cpus",
	"isolated",
	"keep_connected",
	"kind",
	"left",
	"left_on",
	"level",
	"limit",
	"lines",
	"memory",
	"memory_bytes",
	"memory_policy",
	"mems",
	"mode",
	"moved",
	"moves",
	"nodeless",
	"nodes",
	"off",
	"offline",
	"online",
	"op",
	"owner",
	"pid",
	"placed_by",
	"pod_facts",
	"pod_resources",
	"pods",
	"pods_api",
	"policy",
	"pool",
	"prefer_closest",
	"preferred",
	"qos",
	"registration",
	"reserved",
	"runtime",
	"scope",
	"seconds",
	"sections",
	"share_of",
	"shared",
	"shares_in_pod",
	"slices_watch",
	"so_far",
	"source",
	"spread",
	"state",
	"status",
	"time",
	"to",
	"to_nodes",
	"tokens",
	"took_ms",
	"took_us",
	"type",
	"unmovable",
	"updates",
	"use",
	"used",
	"verdict",
	"version",
	"waited_ms",
	"was",
	"wish_cores",
	"wish_cpus",
	"wish_isolated",
	"wish_memory_policy",
	"wish_movable",
	"wish_spread",
};
static const struct {
	const char *key;
	enum kind kind;
} other_keys[] = {
	{"namespace", NAME_NAMESPACE},
	{"pod_namespace", NAME_NAMESPACE},
	{"pod", NAME_POD},
	{"pod_name", NAME_POD},
	{"container", NAME_CONTAINER},
	{"container_name", NAME_CONTAINER},
	{"claim", NAME_CLAIM},
	{"wish_rdt_class", NAME_CLASS},
	{"wish_blockio_class", NAME_CLASS},
	{"wish_quiet", QUIET_WISH},
	{"resource", RESOURCE},
	{"odd_wish", ODD_WISH},
	{"allocated", TOKENS_ANNOTATION},
	{"cgroup", NAME_CGROUP},
	{"boot_id", NAME_ID},
	{"id", LIST_OF_IDS},
	{"uid", LIST_OF_IDS},
	{"container_id", LIST_OF_IDS},
	{"sandbox_id", LIST_OF_IDS},
	{"pod_uid", LIST_OF_IDS},
	{"share", LIST_OF_IDS},
	{"shares", LIST_OF_IDS},
	{"for_pods", LIST_OF_IDS},
};

/* A name, or how an id begins, and the word for it. */
struct redacted {
	char *name; /* with its kind's letter before it */
	char word[WORD_MAX];
	UT_hash_handle hh;
};

struct redaction {
	struct redacted *names, *begins; /* ids by their first ID_SHORTEST bytes */
	unsigned used[NR_KINDS];
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

static const struct redacted *find(const struct redacted *list, const char *key, size_t len)
{
	const struct redacted *n = NULL;

	HASH_FIND(hh, list, key, len, n);
	return n;
}

static const struct redacted *add(
	struct redacted **list, const char *key, size_t len, const char *word)
{
	struct redacted *n = xcalloc(1, sizeof *n);

	n->name = xstrndup(key, len);
	(void)text_copy(n->word, sizeof n->word, word);
	HASH_ADD_KEYPTR(hh, *list, n->name, len, n);
	return n;
}

/* The word of a name of that kind. */
static const char *word_of(struct redaction *r, enum kind kind, const char *name, size_t len)
{
	char word[WORD_MAX];
	char *key = xcalloc(len + 2, 1);
	const struct redacted *n, *begin = NULL;

	if (kind == NAME_ID && len >= ID_SHORTEST)
		begin = find(r->begins, name, ID_SHORTEST);
	key[0] = (char)('a' + kind);
	memcpy(key + 1, name, len);
	n = find(r->names, key, len + 1);
	if (!n && begin && len == ID_SHORTEST)
		n = begin; /* the log has how an id begins */
	if (!n) {
		(void)snprintf(word, sizeof word, "%s-%u", kind_words[kind], ++r->used[kind]);
		n = add(&r->names, key, len + 1, word);
		if (kind == NAME_ID && len >= ID_SHORTEST && !begin)
			(void)add(&r->begins, name, ID_SHORTEST, word);
	}
	free(key);
	return n->word;
}

/* Which kind of text has that key; members is the object that the text is in, NULL in a log. */
static enum kind kind_of(const char *key, size_t len, const json_t *members)
{
	for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++)
		if (strlen(other_keys[i].key) == len && !memcmp(other_keys[i].key, key, len)) {
			bool is_device = json_object_get(members, "has_topology") != NULL;

			return is_device && text_equal(other_keys[i].key, "id")
				       ? NAME_DEVICE
				       : other_keys[i].kind;
		}
	for (size_t i = 0; i < sizeof kept_keys / sizeof *kept_keys; i++)
		if (strlen(kept_keys[i]) == len && !memcmp(kept_keys[i], key, len))
			return KEEP;
	if (members && len == strlen("reason") && !memcmp(key, "reason", len))
		return json_object_get(members, "admit") ? KEEP : LEAVE_OUT;
	if (!members || len != strlen("name") || memcmp(key, "name", len) != 0)
		return LEAVE_OUT;
	return json_object_get(members, "uid")         ? NAME_POD
	       : json_object_get(members, "cpu_milli") ? NAME_CONTAINER
	       : json_object_get(members, "devices")   ? NAME_RESOURCE
						       : LEAVE_OUT;
}

/* Values */

static bool is_of(const char *text, size_t len, const char *characters)
{
	size_t is = 0;

	while (is < len && strchr(characters, text[is]))
		is++;
	return is == len;
}

#define DIGITS "0123456789"

/* "UID", "UID/NUMBER", "~UID/NAME"; a number alone is a NUMA node's or the like. */
static void put_id(struct redaction *r, const char *id, size_t len, FILE *out)
{
	const size_t tilde = len && *id == '~';
	const char *slash = memchr(id, '/', len);
	const size_t uid = (slash ? (size_t)(slash - id) : len) - tilde;
	const char *rest = id + tilde + uid;
	const size_t rest_len = len - tilde - uid;

	if (is_of(id, len, DIGITS) && len < ID_SHORTEST) {
		(void)fwrite(id, 1, len, out);
		return;
	}
	(void)fprintf(out, "%.*s%s", (int)tilde, "~", word_of(r, NAME_ID, id + tilde, uid));
	if (rest_len < 2 || is_of(rest + 1, rest_len - 1, DIGITS))
		(void)fwrite(rest, 1, rest_len, out);
	else
		(void)fprintf(out, "/%s", word_of(r, NAME_CONTAINER, rest + 1, rest_len - 1));
}

static void put_ids(struct redaction *r, const char *text, size_t len, FILE *out)
{
	for (size_t at = 0; at < len;) {
		const char *blank = memchr(text + at, ' ', len - at);
		const size_t word = blank ? (size_t)(blank - text) - at : len - at;

		if (word)
			put_id(r, text + at, word, out);
		at += word;
		if (at < len)
			(void)fputc(text[at++], out);
	}
}

static void put_resource(struct redaction *r, const char *name, size_t len, FILE *out)
{
	auto_free char *copy = xstrndup(name, len);
	bool native = text_equal(copy, "cpu") || text_equal(copy, "memory") ||
		      text_behind(copy, "hugepages-");

	(void)fputs(native || !len ? copy : word_of(r, NAME_RESOURCE, name, len), out);
}

static void put_quiet(struct redaction *r, const char *text, size_t len, FILE *out)
{
	static const char by[] = "frequency=";
	auto_free char *copy = xstrndup(text, len);
	const char *profile = strstr(copy, by);

	if (text_behind(copy, "irq"))
		(void)fputs(profile ? "irq," : "irq", out);
	if (profile)
		(void)fprintf(out, "%s%s", by,
			word_of(r, NAME_CLASS, profile + sizeof by - 1,
				strlen(profile + sizeof by - 1)));
}

static void put(struct redaction *r, enum kind kind, const char *text, size_t len, FILE *out,
	const char *left_out)
{
	switch (kind) {
	case KEEP:
		(void)fwrite(text, 1, len, out);
		return;
	case LIST_OF_IDS:
		put_ids(r, text, len, out);
		return;
	case RESOURCE:
		put_resource(r, text, len, out);
		return;
	case QUIET_WISH:
		put_quiet(r, text, len, out);
		return;
	case TOKENS_ANNOTATION:
		(void)fwrite(text, 1, is_of(text, len, DIGITS "v:=;,-") ? len : 0, out);
		return;
	case ODD_WISH:
		(void)fputs("an annotation that numafit does not follow " LEFT_OUT, out);
		return;
	case LEAVE_OUT:
		(void)fputs(len ? left_out : "", out);
		return;
	case NAME_NAMESPACE:
	case NAME_POD:
	case NAME_CONTAINER:
	case NAME_CLAIM:
	case NAME_RESOURCE:
	case NAME_DEVICE:
	case NAME_CLASS:
	case NAME_CGROUP:
	case NAME_PATTERN:
	case NAME_ID:
	default:
		(void)fputs(len ? word_of(r, kind, text, len) : "", out);
		return;
	}
}

static char *redact_text(
	struct redaction *r, enum kind kind, const char *text, size_t len, const char *left_out)
{
	char *said = NULL;
	size_t said_len;
	FILE *out = open_memstream(&said, &said_len);

	if (!out)
		abort();
	put(r, kind, text, len, out, left_out);
	(void)fclose(out);
	return said;
}

/* Pairs KEY=VALUE or KEY="VALUE" */

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

/* Settings */

/* "kube-system,team-*": names, and patterns, which are names as well. */
static void put_patterns(struct redaction *r, const char *text, size_t len, FILE *out)
{
	for (size_t at = 0; at < len;) {
		const char *comma = memchr(text + at, ',', len - at);
		const size_t word = comma ? (size_t)(comma - text) - at : len - at;
		bool is_name = !memchr(text + at, '*', word) && !memchr(text + at, '?', word);

		put(r, is_name ? NAME_NAMESPACE : NAME_PATTERN, text + at, word, out, "");
		at += word;
		if (at < len)
			(void)fputc(text[at++], out);
	}
}

/* The sections of a setting, with `names` as patterns of namespaces, and of other keys those whose
 * values are fixed words. */
static json_t *redact_sections(struct redaction *r, const char *sections)
{
	static const char *const kept[] = {"allowed", "cpus", "cores", "isolated", "spread",
		"memory-policy", "force", "reserved", "movable"};
	const char *at = sections;
	bool begins = false;
	char *said = NULL;
	size_t len;
	struct pair p;
	FILE *out = open_memstream(&said, &len);

	if (!out)
		abort();
	while (next_pair(&at, &p)) {
		auto_free char *key = xstrndup(p.key, p.key_len);
		bool ends = p.value_len && p.value[p.value_len - 1] == ';';
		bool names = text_equal(key, "names");

		p.value_len -= ends;
		if (begins)
			(void)fputs(names ? "; " : " ", out);
		begins = true;
		(void)fprintf(out, "%s=", key);
		if (names)
			put_patterns(r, p.value, p.value_len, out);
		else
			put(r,
				text_index(kept, sizeof kept / sizeof *kept, key) >= 0 ? KEEP
										       : NAME_CLASS,
				p.value, p.value_len, out, "");
	}
	(void)fclose(out);
	json_t *text = json_string(said);
	free(said);
	return text;
}

static json_t *redact_settings(struct redaction *r, json_t *settings)
{
	json_t *copy = json_object(), *value;
	const char *key;

	json_object_foreach(settings, key, value)
	{
		if (text_equal(key, "namespaces") && *json_string_value(value))
			(void)json_object_set_new(
				copy, key, redact_sections(r, json_string_value(value)));
		else if (!setting_is_any_text(key))
			(void)json_object_set(copy, key, value);
	}
	return copy;
}

/* Documents */

static bool are_settings(const json_t *settings)
{
	const char *key;
	json_t *value;

	json_object_foreach(
		(json_t *)(uintptr_t)settings, key, value) if (!json_is_string(value)) return false;
	return json_is_object(settings);
}

static json_t *redact_value(struct redaction *r, json_t *v, unsigned depth);

/* Texts in a list have the list's key. */
static json_t *redact_member(struct redaction *r, enum kind kind, json_t *v, unsigned depth)
{
	json_t *copy, *member;
	size_t i;

	if (json_is_string(v)) {
		auto_free char *said =
			redact_text(r, kind, json_string_value(v), json_string_length(v), "");

		return json_string(said);
	}
	if (!json_is_array(v) || depth == DEPTH_MAX)
		return redact_value(r, v, depth);
	copy = json_array();
	json_array_foreach(v, i, member)(void)
		json_array_append_new(copy, redact_member(r, kind, member, depth + 1));
	return copy;
}

static json_t *redact_value(struct redaction *r, json_t *v, unsigned depth)
{
	json_t *copy, *member;
	const char *key;

	if (depth == DEPTH_MAX)
		return json_null();
	if (!json_is_object(v))
		return json_is_array(v) || json_is_string(v) ? redact_member(r, LEAVE_OUT, v, depth)
							     : json_incref(v);
	copy = json_object();
	json_object_foreach(v, key, member)
	{
		json_t *redacted;

		if (!depth && text_equal(key, "settings") && are_settings(member))
			redacted = redact_settings(r, member);
		else if (!depth && text_equal(key, "topology"))
			redacted = json_incref(member); /* the machine, which replay reads */
		else
			redacted =
				redact_member(r, kind_of(key, strlen(key), v), member, depth + 1);
		(void)json_object_set_new(copy, key, redacted);
	}
	return copy;
}

/* Lines of a log */

static char *redact_line(struct redaction *r, const char *line)
{
	const char *at = line, *between = "";
	char *said = NULL;
	size_t len;
	struct pair p;
	FILE *out = open_memstream(&said, &len);

	if (!out)
		abort();
	while (next_pair(&at, &p)) {
		/* lines of libraries do not begin so */
		if (!*between && !text_behind(p.key + (*p.key == '<' ? 3 : 0), "time="))
			break;
		/* the priority may stand before the first key: <6>time= */
		const size_t prefix = *p.key == '<' && p.key_len > 3 && p.key[2] == '>' ? 3 : 0;
		const enum kind kind = kind_of(p.key + prefix, p.key_len - prefix, NULL);

		const char *quote = p.quoted ? "\"" : "";

		(void)fprintf(out, "%s%.*s=%s", between, (int)p.key_len, p.key, quote);
		put(r, kind, p.value, p.value_len, out, LEFT_OUT);
		(void)fputs(quote, out);
		between = " ";
	}
	(void)fclose(out);
	return said;
}

static json_t *load(const char *text)
{
	return *text == '{' || *text == '[' ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

char *redaction_apply(struct redaction *r, const char *text)
{
	json_t *document = load(text);

	if (!document)
		return redact_line(r, text);
	json_t *copy = redact_value(r, document, 0);
	char *said = json_dumps(copy, JSON_COMPACT);

	json_decref(copy);
	json_decref(document);
	return said ? said : xstrdup("");
}
