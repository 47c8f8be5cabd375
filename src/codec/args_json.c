#include <codec/args_json.h>

#include <errno.h>
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
	struct arena *arena;
	struct args_problems unknown;
	char wrong[PLACE_MAX]; /* the first value of the wrong type */
	bool full;
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
static void wrong_type(struct reading *r, const struct args *in, const char *go, const char *value)
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
	const char *dot = strrchr(in->go, '.'); /* behind the package */
	text_add(&t, "struct field %s.", dot ? dot + 1 : in->go);
	for (unsigned i = 0; i < r->depth; i++)
		text_add(&t, "%s%s", i ? "." : "", r->key[i]);
	text_add(&t, " of type %s", go);
}

static void wrong_value(
	struct reading *r, const struct args *in, const struct arg *f, const json_t *v)
{
	char value[PLACE_MAX];

	if (f->type == ARG_INT)
		args_describe_number(v, value, sizeof value);
	else
		args_describe_value(v, value, sizeof value);
	wrong_type(r, in, f->go, value);
}

static void args_read_struct(
	struct reading *r, const struct args *in, json_t *v, const struct args *args, void *to);

#define SLOT(T, to, offset) ((T *)(void *)((char *)(to) + (offset)))

static void *args_allocate(struct reading *r, size_t nr, size_t size)
{
	void *p = arena_array(r->arena, nr ? nr : 1, size);

	r->full = r->full || !p;
	return p;
}

/* {"cpu": 2} as [{"name": "cpu", "weight": 2}]; a new one. */
static json_t *as_list(const struct arg *f, json_t *map)
{
	json_t *list = json_array();

	for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
		json_t *one = json_object();

		(void)json_object_set_new(
			one, f->of->row[0].key, json_string(json_object_iter_key(it)));
		(void)json_object_set(one, f->of->row[1].key, json_object_iter_value(it));
		(void)json_array_append_new(list, one);
	}
	return list;
}

static void args_read_structs(
	struct reading *r, const struct args *in, json_t *list, const struct arg *f, void *to)
{
	size_t nr = json_array_size(list), len = strlen(r->place);
	char *first = args_allocate(r, nr, f->of->size);

	if (!first)
		return;
	for (size_t i = 0; i < nr; i++) {
		(void)snprintf(r->place + len, sizeof r->place - len, "[%zu]", i);
		args_read_struct(r, in, json_array_get(list, i), f->of, first + i * f->of->size);
		r->place[len] = '\0';
	}
	*SLOT(char *, to, f->at) = first;
	*SLOT(unsigned, to, f->count) = (unsigned)nr;
}

static char *args_copy_string(struct reading *r, const json_t *v)
{
	char *s = arena_strndup(r->arena, json_string_value(v), json_string_length(v));

	r->full = r->full || !s;
	return s;
}

static void args_read_strings(
	struct reading *r, const struct args *in, const struct arg *f, const json_t *list, void *to)
{
	size_t nr = json_array_size(list);
	const char **first = args_allocate(r, nr, sizeof *first);

	if (!first)
		return;
	for (size_t i = 0; i < nr; i++) {
		const json_t *v = json_array_get(list, i);
		char value[PLACE_MAX];

		first[i] = "";
		if (json_is_string(v)) {
			first[i] = args_copy_string(r, v);
		} else if (!json_is_null(v)) {
			args_describe_value(v, value, sizeof value);
			wrong_type(r, in, "string", value);
		}
	}
	*SLOT(const char **, to, f->at) = first;
	*SLOT(unsigned, to, f->count) = (unsigned)nr;
}

static bool arg_fits(const struct arg *f, const json_t *v)
{
	switch (f->type) {
	case ARG_INT:
		return json_is_integer(v) && json_integer_value(v) <= f->max &&
		       json_integer_value(v) >= -f->max - 1;
	case ARG_BOOL:
		return json_is_boolean(v);
	case ARG_STRING:
		return json_is_string(v);
	case ARG_STRUCT:
		return json_is_object(v);
	case ARG_STRUCTS:
		return json_is_array(v) || (f->map && json_is_object(v));
	case ARG_STRINGS:
		return json_is_array(v);
	}
	return false;
}

static void args_read_value(
	struct reading *r, const struct args *in, const struct arg *f, json_t *v, void *to)
{
	void *p;

	if (!arg_fits(f, v)) {
		wrong_value(r, in, f, v);
		return;
	}
	switch (f->type) {
	case ARG_INT:
		*SLOT(int64_t, to, f->at) = json_integer_value(v);
		return;
	case ARG_BOOL:
		*SLOT(bool, to, f->at) = json_is_true(v);
		return;
	case ARG_STRING:
		*SLOT(char *, to, f->at) = args_copy_string(r, v);
		return;
	case ARG_STRUCT:
		if ((p = args_allocate(r, 1, f->of->size)))
			args_read_struct(r, in, v, f->of, p);
		*SLOT(void *, to, f->at) = p;
		return;
	case ARG_STRUCTS:
		v = json_is_array(v) ? json_incref(v) : as_list(f, v);
		args_read_structs(r, in, v, f, to);
		json_decref(v);
		return;
	case ARG_STRINGS:
		args_read_strings(r, in, f, v, to);
		return;
	}
}

static void args_read_field(
	struct reading *r, const struct args *in, const char *key, json_t *v, void *to)
{
	size_t len = strlen(r->place), i = 0;

	while (i < in->nr && !text_equal(in->row[i].key, key))
		i++;
	if (i == in->nr) {
		char text[2 * PLACE_MAX];

		(void)snprintf(text, sizeof text, "unknown field \"%s%s%s\"", r->place,
			len ? "." : "", key);
		args_add_problem(&r->unknown, text);
		return;
	}
	if (json_is_null(v) || r->depth == DEPTH_MAX)
		return;
	r->key[r->depth++] = in->row[i].key;
	(void)snprintf(
		r->place + len, sizeof r->place - len, "%s%s", len ? "." : "", in->row[i].key);
	args_read_value(r, in, &in->row[i], v, to);
	r->place[len] = '\0';
	r->depth--;
}

/* in: the struct that it is in, which is named where it is no object. */
static void args_read_struct(
	struct reading *r, const struct args *in, json_t *v, const struct args *args, void *to)
{
	char value[PLACE_MAX];

	if (json_is_null(v))
		return;
	if (!json_is_object(v)) {
		args_describe_value(v, value, sizeof value);
		wrong_type(r, in, args->go, value);
		return;
	}
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it))
		args_read_field(r, args, json_object_iter_key(it), json_object_iter_value(it), to);
}

int args_json_read(json_t *v, const struct args *args, void *to, struct arena *a,
	struct args_problems *p, struct err *e)
{
	struct reading r = {.arena = a};

	if (v)
		args_read_struct(&r, args, v, args, to);
	if (r.full)
		return err_set(e, ENOMEM, "too large");
	if (r.wrong[0]) {
		args_add_problem(p, r.wrong);
	} else if (r.unknown.nr) {
		struct text t = {.at = p->text, .cap = sizeof p->text, .len = strlen(p->text)};

		text_add(&t, "strict decoding error: %s", r.unknown.text);
		p->nr++;
	}
	return p->nr > 0;
}
