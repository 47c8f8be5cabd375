#include <plugin-args/args_json.h>

#include <codec/fields_json.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_MAX = 512, DEPTH_MAX = 16 };

static void args_add_problem(struct args_problems *p, const char *text)
{
	struct text t = {.at = p->text, .cap = sizeof p->text, .len = strlen(p->text)};

	text_add(&t, "%s%s", p->nr++ ? ", " : "", text);
}

void args_problem(
	struct args_problems *p, const char *place, enum args_fault fault, const char *fmt, ...)
{
	static const char *const faults[] = {
		[ARGS_INVALID] = "Invalid value",
		[ARGS_UNSUPPORTED] = "Unsupported value",
		[ARGS_REQUIRED] = "Required value",
		[ARGS_FORBIDDEN] = "Forbidden",
		[ARGS_DUPLICATE] = "Duplicate value",
	};
	char detail[PLACE_MAX], text[2 * PLACE_MAX];
	va_list list;

	va_start(list, fmt);
	(void)vsnprintf(detail, sizeof detail, fmt, list);
	va_end(list);
	(void)snprintf(text, sizeof text, "%s: %s: %s", place, faults[fault], detail);
	if (!strstr(p->text, text))
		args_add_problem(p, text);
}

const char *args_problems_text(const struct args_problems *p, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
	text_add(&t, p->nr > 1 ? "[%s]" : "%s", p->text);
	return buf;
}

/* Reading. Go's decoder goes on after a value of the wrong type and reports the first at the end;
 * only if there is none does the strict one report all unknown fields. */
struct reading {
	const struct fields *in; /* the struct whose field is read */
	struct args_problems unknown;
	char wrong[PLACE_MAX];      /* the first value of the wrong type */
	const char *key[DEPTH_MAX]; /* of the struct fields that lead here */
	unsigned depth;
	char place[PLACE_MAX]; /* the same with the places in lists: "a.b[0]" */
};

static void args_describe_value(const json_t *v, char *buf, size_t cap)
{
	static const char *const kinds[] = {
		[JSON_OBJECT] = "object",
		[JSON_ARRAY] = "array",
		[JSON_STRING] = "string",
		[JSON_INTEGER] = "number",
		[JSON_REAL] = "number",
		[JSON_TRUE] = "bool",
		[JSON_FALSE] = "bool",
		[JSON_NULL] = "null",
	};

	(void)snprintf(buf, cap, "%s", kinds[json_typeof(v)]);
}

static void args_describe_number(const json_t *v, char *buf, size_t cap)
{
	if (json_is_integer(v))
		(void)snprintf(buf, cap, "number %lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		(void)snprintf(buf, cap, "number %g", json_real_value(v));
	else
		args_describe_value(v, buf, cap);
}

/* json.UnmarshalTypeError */
static void wrong_type(struct reading *r, const char *go, const char *value)
{
	struct text t;

	if (r->wrong[0])
		return;
	text_init(&t, r->wrong, sizeof r->wrong);
	text_add(&t, "json: cannot unmarshal %s into Go ", value);
	if (!r->depth) {
		text_add(&t, "value of type %s", go);
		return;
	}
	const char *dot = strrchr(r->in->go, '.'); /* behind the package */
	text_add(&t, "struct field %s.", dot ? dot + 1 : r->in->go);
	for (unsigned i = 0; i < r->depth; i++)
		text_add(&t, "%s%s", i ? "." : "", r->key[i]);
	text_add(&t, " of type %s", go);
}

/* {"cpu": 2} as [{"name": "cpu", "weight": 2}]; a new one. */
static json_t *as_list(const struct field *f, json_t *map)
{
	json_t *list = json_array();

	for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
		json_t *one = json_object();

		(void)json_object_set_new(
			one, f->fields->row[0].key, json_string(json_object_iter_key(it)));
		(void)json_object_set(one, f->fields->row[1].key, json_object_iter_value(it));
		(void)json_array_append_new(list, one);
	}
	return list;
}

static bool arg_fits(const struct field *f, const json_t *v)
{
	json_int_t n = json_integer_value(v), max = f->max;

	if (f->type == FIELD_I64)
		return json_is_integer(v) && (!max || (n <= max && n >= -max - 1));
	if (f->type == FIELD_BOOL)
		return json_is_boolean(v);
	if (f->type == FIELD_STRING)
		return json_is_string(v);
	if (f->type == FIELD_POINTER)
		return json_is_object(v);
	return json_is_array(v) || (f->map && json_is_object(v));
}

/* Whether all of a list of strings are such. */
static bool strings_fit(struct reading *r, const json_t *list)
{
	char value[PLACE_MAX];
	bool fit = true;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		if (json_is_string(v) || json_is_null(v))
			continue;
		args_describe_value(v, value, sizeof value);
		wrong_type(r, "string", value);
		fit = false;
	}
	return fit;
}

static int args_read_value(
	const struct fields_context *c, const struct field *f, json_t *v, void *to, struct err *e)
{
	struct reading *r = c->reader;
	char value[PLACE_MAX];

	if (!arg_fits(f, v)) {
		if (f->type == FIELD_I64)
			args_describe_number(v, value, sizeof value);
		else
			args_describe_value(v, value, sizeof value);
		wrong_type(r, f->go, value);
		return 0;
	}
	if (f->type == FIELD_STRINGS && !strings_fit(r, v))
		return 0;
	json_t *taken = f->map && json_is_object(v) ? as_list(f, v) : json_incref(v);
	int rc = fields_read_member(taken, f, to, c, e);
	json_decref(taken);
	return rc;
}

static int args_read_field(
	const struct fields_context *c, const char *key, json_t *v, void *to, struct err *e)
{
	struct reading *r = c->reader;
	const struct fields *in = r->in;
	size_t len = strlen(r->place), i = 0;

	while (i < in->nr && !text_equal(in->row[i].key, key))
		i++;
	if (i == in->nr) {
		char text[2 * PLACE_MAX];

		(void)snprintf(text, sizeof text, "unknown field \"%s%s%s\"", r->place,
			len ? "." : "", key);
		args_add_problem(&r->unknown, text);
		return 0;
	}
	if (json_is_null(v) || r->depth == DEPTH_MAX)
		return 0;
	r->key[r->depth++] = in->row[i].key;
	(void)snprintf(
		r->place + len, sizeof r->place - len, "%s%s", len ? "." : "", in->row[i].key);
	int rc = args_read_value(c, &in->row[i], v, to, e);
	r->place[len] = '\0';
	r->depth--;
	return rc;
}

/* Of what is no object the struct that it is in is named. */
static int args_read_object(const struct fields_context *c, json_t *v, const struct fields *f,
	void *to, int nr, struct err *e)
{
	struct reading *r = c->reader;
	const struct fields *in = r->in;
	size_t len = strlen(r->place);
	char value[PLACE_MAX];
	int rc = 0;

	if (json_is_null(v))
		return 0;
	if (nr >= 0)
		(void)snprintf(r->place + len, sizeof r->place - len, "[%d]", nr);
	if (json_is_object(v)) {
		r->in = f;
		for (void *it = json_object_iter(v); it && !rc; it = json_object_iter_next(v, it))
			rc = args_read_field(
				c, json_object_iter_key(it), json_object_iter_value(it), to, e);
		r->in = in;
	} else {
		args_describe_value(v, value, sizeof value);
		wrong_type(r, f->go, value);
	}
	r->place[len] = '\0';
	return rc;
}

int args_json_read(json_t *v, const struct fields *args, void *to, struct arena *a,
	struct args_problems *p, struct err *e)
{
	struct reading r = {.in = args};
	const struct fields_context c = {.arena = a, .read = args_read_object, .reader = &r};
	int rc = v ? args_read_object(&c, v, args, to, -1, e) : 0;

	if (rc)
		return rc;
	if (r.wrong[0]) {
		args_add_problem(p, r.wrong);
	} else if (r.unknown.nr) {
		struct text t = {.at = p->text, .cap = sizeof p->text, .len = strlen(p->text)};

		text_add(&t, "strict decoding error: %s", r.unknown.text);
		p->nr++;
	}
	return p->nr > 0;
}
