/* Reads a settings file: YAML as keys with dots, with the line of each mistake, within bounds of
 * depth and work. */
#include <codec/flat_yaml.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

enum level_kind { DOCUMENT, MAP, LIST };

/* A map or list that is not closed yet; the first level is the document that holds the whole. */
struct level {
	enum level_kind kind;
	bool has_key;      /* a map's key is read, its value is next */
	unsigned nr;       /* keys or elements so far */
	unsigned line;     /* where it begins */
	size_t path_len;   /* of its own path */
	size_t first_name; /* where its keys begin in names */
};

struct reader {
	flat_yaml_scalar *scalar;
	void *ctx;
	struct level level[FLAT_YAML_DEPTH_MAX + 1];
	unsigned depth, nr_documents;
	struct mistakes *all; /* NULL: the first one ends the reading */
	struct err first;     /* of them; code 0: none */
	unsigned skipping;    /* the level of the map whose value is passed over; 0: none is */
	unsigned line;        /* of what was read last */
	char path[FLAT_YAML_PATH_MAX];
	/* the keys of the open maps, each with its NUL: never more bytes than the text */
	char *names;
	size_t names_len, names_cap;
};

static unsigned line_of(const yaml_mark_t *mark)
{
	return (unsigned)mark->line + 1;
}

static struct level *innermost(struct reader *r)
{
	return &r->level[r->depth];
}

/* A mistake after which the rest can be read; e says which, if rc says that there is one. 0: it is
 * to be read. */
static int flat_mistake(struct reader *r, unsigned line, int rc, struct err *e)
{
	if (!rc || !r->all)
		return rc;
	if (r->skipping)
		return 0;
	mistakes_add(r->all, MISTAKE_IN_FILE, line, e);
	if (!r->first.code) {
		r->first = *e;
		r->first.code = -rc;
	}
	return 0;
}

/* Make the path that of the element or key name of in, the innermost level. */
static int flat_enter(
	struct reader *r, const struct level *in, const char *name, unsigned line, struct err *e)
{
	size_t len = in->path_len;
	struct text t;

	text_init(&t, r->path + len, sizeof r->path - len);
	text_add(&t, "%s%s", len ? "." : "", name);
	return t.cut ? err_set(e, EINVAL, "line %u: %.80s...: the keys exceed %d bytes", line,
			       r->path, FLAT_YAML_PATH_MAX)
		     : 0;
}

/* The next value may begin: find its path. */
static int begin_value(struct reader *r, unsigned line, struct err *e)
{
	struct level *in = innermost(r);
	char number[TEXT_SIZE_MAX];
	struct text t;

	if (in->kind != LIST)
		return 0; /* a map's path was made when its key came */
	text_init(&t, number, sizeof number);
	text_add(&t, "%u", in->nr++);
	return flat_enter(r, in, number, line, e);
}

static void end_value(struct reader *r)
{
	struct level *in = innermost(r);

	in->has_key = false;
	r->path[in->path_len] = '\0';
	if (r->skipping == r->depth)
		r->skipping = 0;
}

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

static bool flat_is_word(const char *s)
{
	return *s && strspn(s, WORD) == strlen(s);
}

/* Kubernetes' "kubernetes.io/arch". */
static bool is_label(const char *s)
{
	size_t len = strlen(s);

	return len && strspn(s, WORD "./") == len && s[0] != '.' && s[len - 1] != '.';
}

/* Whether the map's own key is "labels". */
static bool holds_labels(const struct reader *r, const struct level *map)
{
	static const char labels[] = "labels";
	size_t len = sizeof labels - 1;

	return map->path_len >= len && strncmp(r->path + map->path_len - len, labels, len) == 0 &&
	       (map->path_len == len || r->path[map->path_len - len - 1] == '.');
}

/* Remember the map's key; refuse the second one of that name. */
static int flat_add_name(
	struct reader *r, struct level *map, const char *name, unsigned line, struct err *e)
{
	size_t size = strlen(name) + 1;

	for (size_t at = map->first_name; at < r->names_len; at += strlen(r->names + at) + 1)
		if (text_equal(r->names + at, name))
			return err_set(
				e, EINVAL, "line %u: %.80s: the key is there twice", line, r->path);
	if (map->nr == FLAT_YAML_KEYS_MAX || size > r->names_cap - r->names_len)
		return err_set(e, EINVAL, "line %u: more than %d keys in one map", line,
			FLAT_YAML_KEYS_MAX);
	map->nr++;
	memcpy(r->names + r->names_len, name, size);
	r->names_len += size;
	map->has_key = true;
	return 0;
}

static int on_key(
	struct reader *r, struct level *map, const char *name, unsigned line, struct err *e)
{
	if (!flat_is_word(name) && !(holds_labels(r, map) && is_label(name)))
		return err_set(e, EINVAL,
			"line %u: \"%.80s\" is not a key: letters, digits, '-' and '_' are", line,
			name);
	int rc = flat_enter(r, map, name, line, e);

	return rc ? rc : flat_add_name(r, map, name, line, e);
}

/* The value of a key that is wrong is passed over. */
static int skip_wrong_key(struct reader *r, struct level *map, unsigned line, int rc, struct err *e)
{
	if (!rc)
		return 0;
	rc = flat_mistake(r, line, rc, e);
	map->has_key = true;
	map->nr += !map->nr; /* it is not an empty one */
	if (!r->skipping)
		r->skipping = r->depth;
	return rc;
}

static int refuse_marked(struct reader *r, unsigned line, const yaml_char_t *anchor,
	const yaml_char_t *tag, struct err *e)
{
	int rc = 0;

	if (anchor)
		rc = err_set(e, EINVAL, "line %u: anchors (&%.40s) are not supported", line,
			(const char *)anchor);
	else if (tag)
		rc = err_set(e, EINVAL, "line %u: tags (%.40s) are not supported", line,
			(const char *)tag);
	return flat_mistake(r, line, rc, e);
}

static int report_scalar(struct reader *r, const char *value, unsigned line, struct err *e)
{
	return r->skipping ? 0
			   : flat_mistake(r, line, r->scalar(r->ctx, r->path, value, line, e), e);
}

static int flat_on_scalar(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	const char *value = (const char *)ev->data.scalar.value;
	unsigned line = line_of(&ev->start_mark);
	struct level *in = innermost(r);
	int rc = refuse_marked(r, line, ev->data.scalar.anchor, ev->data.scalar.tag, e);

	if (rc)
		return rc;
	if (strlen(value) != ev->data.scalar.length)
		return err_set(e, EINVAL, "line %u: a NUL character in \"%.80s\"", line, value);
	if (in->kind == DOCUMENT && !*value)
		return 0; /* "---" and nothing behind it */
	if (in->kind == DOCUMENT)
		return err_set(e, EINVAL, "line %u: \"%.80s\": a key with a colon is expected",
			line, value);
	if (in->kind == MAP && !in->has_key)
		return skip_wrong_key(r, in, line, on_key(r, in, value, line, e), e);
	rc = begin_value(r, line, e);
	if (!rc)
		rc = report_scalar(r, value, line, e);
	end_value(r);
	return rc;
}

static int open_level(struct reader *r, enum level_kind kind, unsigned line, struct err *e)
{
	const struct level *in = innermost(r);

	if (in->kind == DOCUMENT && kind == LIST)
		return err_set(
			e, EINVAL, "line %u: a key with a colon is expected, not a list", line);
	if (in->kind == MAP && !in->has_key)
		return err_set(e, EINVAL, "line %u: a map or a list is no key", line);
	if (r->depth == FLAT_YAML_DEPTH_MAX)
		return err_set(e, EINVAL, "line %u: more than %d maps and lists inside each other",
			line, FLAT_YAML_DEPTH_MAX);
	int rc = begin_value(r, line, e);

	r->level[++r->depth] = (struct level){
		.kind = kind,
		.line = line,
		.path_len = strlen(r->path),
		.first_name = r->names_len,
	};
	return rc;
}

static int on_map(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	unsigned line = line_of(&ev->start_mark);
	int rc = refuse_marked(
		r, line, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, e);

	return rc ? rc : open_level(r, MAP, line, e);
}

static int flat_on_list(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	unsigned line = line_of(&ev->start_mark);
	int rc = refuse_marked(
		r, line, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, e);

	return rc ? rc : open_level(r, LIST, line, e);
}

static int on_end(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	const struct level closed = r->level[r->depth--];
	int rc = 0;

	(void)ev;
	r->names_len = closed.first_name;
	if (!closed.nr && r->depth)
		rc = report_scalar(r, NULL, closed.line, e);
	end_value(r);
	return rc;
}

static int on_alias(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	struct level *in = innermost(r);
	unsigned line = line_of(&ev->start_mark);
	int rc = err_set(e, EINVAL, "line %u: aliases (*%.40s) are not supported", line,
		(const char *)ev->data.alias.anchor);

	if (in->kind == MAP && !in->has_key)
		return skip_wrong_key(r, in, line, rc, e);
	rc = flat_mistake(r, line, rc, e);
	if (!rc)
		rc = begin_value(r, line, e);
	end_value(r);
	return rc;
}

static int on_document(struct reader *r, const yaml_event_t *ev, struct err *e)
{
	if (r->nr_documents++)
		return err_set(
			e, EINVAL, "line %u: a second document begins", line_of(&ev->start_mark));
	return 0;
}

/* By libyaml's type of event; the others say nothing that we need. */
typedef int event_handler(struct reader *r, const yaml_event_t *ev, struct err *e);
static event_handler *const handlers[] = {
	[YAML_DOCUMENT_START_EVENT] = on_document,
	[YAML_ALIAS_EVENT] = on_alias,
	[YAML_SCALAR_EVENT] = flat_on_scalar,
	[YAML_SEQUENCE_START_EVENT] = flat_on_list,
	[YAML_SEQUENCE_END_EVENT] = on_end,
	[YAML_MAPPING_START_EVENT] = on_map,
	[YAML_MAPPING_END_EVENT] = on_end,
};

/* The line of a byte: libyaml gives no mark where the bytes themselves are wrong. */
static unsigned line_of_offset(const char *text, size_t len, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < len && i < offset; i++)
		line += text[i] == '\n';
	return line;
}

static int flat_refuse_text(
	const yaml_parser_t *parser, const char *text, size_t len, struct err *e)
{
	bool no_mark = parser->error == YAML_READER_ERROR;

	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(e, ENOMEM, "no memory is left to read the file");
	return err_set(e, EINVAL, "line %u: %s",
		no_mark ? line_of_offset(text, len, parser->problem_offset)
			: line_of(&parser->problem_mark),
		parser->problem ? parser->problem : "no YAML");
}

/* The length of what libyaml takes for the end of a line at s (YAML 1.1, 5.4): LF, CR, CR LF, NEL,
 * and Unicode's separators of lines and paragraphs. 0: the line goes on. */
static size_t line_break_at(const char *s, size_t len)
{
	static const char *const breaks[] = {
		"\r\n", "\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};

	for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
		const size_t nr = strlen(breaks[i]);

		if (nr <= len && !memcmp(s, breaks[i], nr))
			return nr;
	}
	return 0;
}

/* libyaml compares each %TAG line with all before. A line amid a quoted text may begin with '%',
 * too, and is counted: libyaml alone knows the difference, and a few are allowed. */
static int refuse_many_directives(const char *text, size_t len, struct err *e)
{
	unsigned line = 1, nr = 0;
	bool begins = true;

	for (size_t at = 0, end; at < len; at += end ? end : 1) {
		if (begins && text[at] == '%' && nr++ == YAML_DIRECTIVES_MAX)
			return err_set(e, E2BIG, "line %u: more than %d lines begin with '%%'",
				line, YAML_DIRECTIVES_MAX);
		end = line_break_at(text + at, len - at);
		begins = end;
		line += begins;
	}
	return 0;
}

/* libyaml looks at all open maps and lists for each token. */
static int follow_depth(unsigned *depth, const yaml_event_t *ev, struct err *e)
{
	if (ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT)
		--*depth;
	if (ev->type != YAML_MAPPING_START_EVENT && ev->type != YAML_SEQUENCE_START_EVENT)
		return 0;
	return ++*depth > YAML_DEPTH_MAX
		       ? err_set(e, E2BIG, "line %u: more than %d maps and lists inside each other",
				 line_of(&ev->start_mark), YAML_DEPTH_MAX)
		       : 0;
}

int yaml_read_events(const char *text, size_t len,
	int (*on_event)(void *ctx, const yaml_event_t *ev, struct err *e), void *ctx, struct err *e)
{
	int rc = refuse_many_directives(text, len, e);
	yaml_parser_t parser;
	yaml_event_t ev;
	unsigned depth = 0;
	bool more = true;

	if (rc)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ENOMEM, "no memory is left to read the file");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (!rc && more) {
		if (!yaml_parser_parse(&parser, &ev)) {
			rc = flat_refuse_text(&parser, text, len, e);
			break;
		}
		rc = follow_depth(&depth, &ev, e);
		if (!rc)
			rc = on_event(ctx, &ev, e);
		more = ev.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&parser);
	return rc < 0 ? rc : 0;
}

static int flat_on_event(void *ctx, const yaml_event_t *ev, struct err *e)
{
	bool ours = ev->type < sizeof handlers / sizeof *handlers && handlers[ev->type];
	struct reader *r = ctx;
	int rc = ours ? handlers[ev->type](r, ev, e) : 0;

	r->line = line_of(&ev->start_mark);
	return rc;
}

static int flat_pass_over(void *ctx, const yaml_event_t *ev, struct err *e)
{
	(void)ctx, (void)ev, (void)e;
	return 0;
}

int flat_yaml_read(const char *text, size_t len, flat_yaml_scalar *scalar, void *ctx,
	struct mistakes *all, struct err *e)
{
	bool large = len > FLAT_YAML_BYTES_MAX;
	auto_free char *names = xcalloc(large ? 1 : len + 1, 1);
	struct reader r = {
		.scalar = scalar, .ctx = ctx, .names = names, .names_cap = len, .all = all};
	int rc = large ? err_set(e, E2BIG, "the file is larger than %d bytes", FLAT_YAML_BYTES_MAX)
		 : all ? yaml_read_events(text, len, flat_pass_over, NULL, e)
		       : 0;

	/* what stands before an open bracket or quote may be a mistake for that alone */
	if (!rc)
		rc = yaml_read_events(text, len, flat_on_event, &r, e);
	if (rc && all) {
		mistakes_add(all, MISTAKE_IN_FILE, r.line, e);
		all->unread = true;
	}
	if (r.first.code) { /* only where there is a list */
		*e = r.first;
		rc = -r.first.code;
	}
	return rc;
}
