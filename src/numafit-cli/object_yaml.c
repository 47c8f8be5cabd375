#include <numafit-cli/object_yaml.h>

#include <codec/flat_yaml.h>
#include <ctype.h>
#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum kind { DOCUMENTS, MAP, LIST };

struct nest {
	enum kind kind;
	bool has_key; /* of a map: its value is next */
	unsigned nr;  /* keys or elements so far */
};

struct converter {
	FILE *to;
	struct nest nest[YAML_DEPTH_MAX + 1];
	unsigned depth;
	unsigned line;
};

static const char *digits(const char *c)
{
	while (isdigit((unsigned char)*c))
		c++;
	return c;
}

/* A number of JSON: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool is_json_number(const char *c)
{
	c += *c == '-';
	const char *end = digits(c);
	if (end == c || (*c == '0' && end > c + 1))
		return false;
	if (*end == '.') {
		c = end + 1;
		end = digits(c);
		if (end == c)
			return false;
	}
	if (*end == 'e' || *end == 'E') {
		c = end + 1;
		c += *c == '-' || *c == '+';
		end = digits(c);
		if (end == c)
			return false;
	}
	return !*end;
}

static void put_json_string(FILE *to, const char *text, size_t len)
{
	(void)putc('"', to);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			(void)fprintf(to, "\\%c", c);
		else if (c < ' ')
			(void)fprintf(to, "\\u%04x", c);
		else
			(void)putc(c, to);
	}
	(void)putc('"', to);
}

static void put_scalar(FILE *to, const char *text, size_t len, bool plain)
{
	static const char *const words[] = {"true", "false", "null"};

	if (plain && (!len || text_equal(text, "~")))
		text = words[2];
	else if (!plain || strlen(text) != len || !is_json_number(text)) {
		bool word = false;

		for (size_t i = 0; plain && i < sizeof words / sizeof *words; i++)
			word = word || text_equal(text, words[i]);
		if (!word) {
			put_json_string(to, text, len);
			return;
		}
	}
	(void)fputs(text, to);
}

/* A value, or a key, is next: what parts it from the one before. */
static int begin_item(struct converter *x, bool is_scalar, struct err *e)
{
	struct nest *in = &x->nest[x->depth];
	bool is_key = in->kind == MAP && !in->has_key;

	if (is_key && !is_scalar)
		return err_set(e, EINVAL, "line %u: a key that is a map or a list", x->line);
	if (in->kind == MAP && in->has_key) {
		in->has_key = false;
		(void)putc(':', x->to);
		return 0;
	}
	if (in->nr++)
		(void)putc(',', x->to);
	in->has_key = is_key;
	return 0;
}

static int put_event_scalar(struct converter *x, const yaml_event_t *event, struct err *e)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	int rc = begin_item(x, true, e);
	const struct nest *in = &x->nest[x->depth];

	if (rc)
		return rc;
	if (in->kind == MAP && in->has_key)
		put_json_string(x->to, text, len);
	else
		put_scalar(x->to, text, len, plain);
	return 0;
}

static int begin_nest(struct converter *x, enum kind kind, struct err *e)
{
	int rc = begin_item(x, false, e);

	if (rc)
		return rc;
	x->nest[++x->depth] = (struct nest){.kind = kind};
	(void)putc(kind == MAP ? '{' : '[', x->to);
	return 0;
}

static void end_nest(struct converter *x)
{
	(void)putc(x->nest[x->depth--].kind == MAP ? '}' : ']', x->to);
}

/* An empty document is one plain scalar of no bytes, and none of the list. */
static bool is_empty_document(const struct converter *x, const yaml_event_t *event)
{
	return !x->depth && event->type == YAML_SCALAR_EVENT && !event->data.scalar.length &&
	       event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int put_yaml_event(void *ctx, const yaml_event_t *event, struct err *e)
{
	struct converter *x = ctx;
	const yaml_char_t *anchor = NULL;

	x->line = (unsigned)event->start_mark.line + 1;
	if (event->type == YAML_SCALAR_EVENT)
		anchor = event->data.scalar.anchor;
	if (event->type == YAML_MAPPING_START_EVENT)
		anchor = event->data.mapping_start.anchor;
	if (event->type == YAML_SEQUENCE_START_EVENT)
		anchor = event->data.sequence_start.anchor;
	if (anchor || event->type == YAML_ALIAS_EVENT)
		return err_set(
			e, EINVAL, "line %u: anchors and aliases are not supported", x->line);
	if (is_empty_document(x, event))
		return 0;
	if (event->type == YAML_SCALAR_EVENT)
		return put_event_scalar(x, event, e);
	if (event->type == YAML_MAPPING_START_EVENT)
		return begin_nest(x, MAP, e);
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return begin_nest(x, LIST, e);
	if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT)
		end_nest(x);
	return 0;
}

int object_yaml_to_json(const char *text, size_t len, char **json, struct err *e)
{
	struct converter x = {.nest = {{.kind = DOCUMENTS}}};
	auto_free char *out = NULL;
	size_t out_len = 0;

	if (len > OBJECT_YAML_BYTES_MAX)
		return err_set(e, E2BIG, "more than %d MiB", OBJECT_YAML_BYTES_MAX >> 20);
	x.to = open_memstream(&out, &out_len);
	if (!x.to)
		return err_set(e, ENOMEM, "not enough memory");
	(void)putc('[', x.to);
	int rc = yaml_read_events(text, len, put_yaml_event, &x, e);
	(void)putc(']', x.to);
	if (fclose(x.to))
		return err_set(e, ENOMEM, "not enough memory");
	if (!rc)
		*json = steal(out);
	return rc;
}
