/* Reads JSON into structs by their tables of fields. */
#include <codec/fields_json.h>

#include <errno.h>
#include <jansson.h>
#include <numafit/cpuset.h>
#include <numafit/pod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_seed(void)
{
	json_object_seed(0);
}

int json_parse(const char *text, size_t len, json_t **out, struct err *e)
{
	json_error_t where;
	json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);

	if (!value)
		return err_set(e, EINVAL, "not JSON: column %d: %s", where.column, where.text);
	*out = value;
	return 0;
}

int json_want(const char *wanted, const json_t *got, struct err *e)
{
	static const char *const kinds[] = {
		[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "a list",
		[JSON_STRING] = "a string",
		[JSON_INTEGER] = "an integer",
		[JSON_REAL] = "a fraction",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null",
	};

	return err_set(e, EINVAL, "should be %s, is %s", wanted,
		got ? kinds[json_typeof(got)] : "nothing");
}

int json_only_keys(json_t *object, const char *const *keys, struct err *e)
{
	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
		const char *key = json_object_iter_key(it);
		const char *const *known = keys;

		while (*known && !text_equal(*known, key))
			known++;
		if (!*known)
			return err_set(e, EINVAL, "unknown key \"%.64s\"", key);
	}
	return 0;
}

int json_want_object(json_t *v, const char *const *keys, struct err *e)
{
	return json_is_object(v) ? json_only_keys(v, keys, e) : json_want("an object", v, e);
}

json_t *json_member(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_null(v) ? NULL : v;
}

/* The member of that type, or NULL. */
static int json_find_member(const json_t *object, const char *key, json_type type, const char *what,
	json_t **out, struct err *e)
{
	json_t *v = json_member(object, key);

	if (v && json_typeof(v) != type)
		return err_add(e, json_want(what, v, e), "%s", key);
	*out = v;
	return 0;
}

int json_member_string(const json_t *object, const char *key, const char **out, struct err *e)
{
	json_t *v = NULL;
	int rc = json_find_member(object, key, JSON_STRING, "a string", &v, e);

	if (!rc)
		*out = json_string_value(v);
	return rc;
}

int json_member_list(const json_t *object, const char *key, json_t **out, struct err *e)
{
	return json_find_member(object, key, JSON_ARRAY, "a list", out, e);
}

int json_member_object(const json_t *object, const char *key, json_t **out, struct err *e)
{
	return json_find_member(object, key, JSON_OBJECT, "an object", out, e);
}

json_t *json_node_ids(struct nodeset nodes, const struct node_ids *ids)
{
	json_t *list = json_array();

	nodeset_each (node, nodes)
		if (node < ids->nr)
			(void)json_array_append_new(list, json_integer(ids->id[node]));
	return list;
}

enum { NUMBER_TEXT_MAX = 40, DIGITS_EXACT = 15, DIGITS_MAX = 17 };

/* A fraction as it was written, of up to 15 digits: the fewest digits that are this double. */
static void print_real(double d, char *text)
{
	for (int digits = DIGITS_EXACT; digits <= DIGITS_MAX; digits++) {
		(void)snprintf(text, NUMBER_TEXT_MAX, "%.*g", digits, d);
		if (!(strtod(text, NULL) < d) && !(strtod(text, NULL) > d))
			return;
	}
}

int json_quantity(const json_t *v, struct quantity *out, struct err *e)
{
	char number[NUMBER_TEXT_MAX];

	if (json_is_string(v))
		return quantity_parse(out, json_string_value(v), e);
	if (json_is_integer(v)) {
		*out = quantity_of(json_integer_value(v));
		return 0;
	}
	if (!json_is_real(v))
		return json_want("a quantity", v, e);
	print_real(json_real_value(v), number);
	return quantity_parse(out, number, e);
}

int json_quantity_count(const json_t *v, enum quantity_unit unit, uint64_t *out, struct err *e)
{
	struct quantity q;
	int rc = json_quantity(v, &q, e);

	return rc ? rc : quantity_count(q, unit, out, e);
}

static int fields_read_u64(const json_t *v, uint64_t max, uint64_t *out, struct err *e)
{
	json_int_t n = json_integer_value(v);

	if (json_is_string(v))
		return text_u64(json_string_value(v), json_string_length(v), max, out, e);
	if (!json_is_integer(v))
		return json_want("an integer", v, e);
	if (n < 0)
		return err_set(e, ERANGE, "%lld is below 0", (long long)n);
	if ((uint64_t)n > max)
		return err_set(
			e, ERANGE, "%lld is above %llu", (long long)n, (unsigned long long)max);
	*out = (uint64_t)n;
	return 0;
}

/* A member that JSON has as a string, into *to. */
static int fields_read_text(const json_t *v, const struct field *f, void *to,
	const struct fields_context *c, struct err *e)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v);

	if (!s)
		return json_want("a string", v, e);
	if (f->type == FIELD_CPUS)
		return cpuset_parse(to, s, len, e);
	if (f->type == FIELD_NODES)
		return nodeset_parse(to, c->ids, s, len, e);
	if (f->type == FIELD_TOKENS)
		return tokenset_parse(to, c->ids, s, e);
	if (f->type == FIELD_STRING) {
		char *copy = *(char **)to = arena_strndup(c->arena, s, len);

		return copy ? 0 : err_set(e, ENOMEM, "too large");
	}
	if (f->type == FIELD_CHARS)
		return text_copy(to, f->max, s)
			       ? 0
			       : err_set(e, ERANGE, "is longer than %u bytes", f->max - 1);
	for (unsigned i = 0; i < f->max; i++)
		if (text_equal(f->words[i], s)) {
			*(unsigned *)to = i;
			return 0;
		}
	return err_set(e, EINVAL, "there is no \"%.64s\"", s);
}

#define SLOT(T, to, offset) ((T *)(void *)((char *)(to) + (offset)))

static int read_object(const json_t *v, const struct fields *f, void *to,
	const struct fields_context *c, int nr, struct err *e)
{
	return c->read ? c->read(c, (json_t *)(uintptr_t)v, f, to, nr, e)
		       : fields_read(v, f, to, c, e);
}

/* An array in place, or a list that goes into the arena. */
static int fields_read_list(const json_t *v, const struct field *f, void *to,
	const struct fields_context *c, struct err *e)
{
	size_t nr = json_array_size(v);
	char *first = SLOT(char, to, f->at);

	if (!json_is_array(v))
		return json_want("a list", v, e);
	if (f->type == FIELD_LIST) {
		first = arena_array(c->arena, nr, f->fields->size);
		if (!first && nr)
			return err_set(e, ENOMEM, "too large");
		*SLOT(char *, to, f->at) = first;
		*SLOT(size_t, to, f->count) = nr;
	} else {
		if (nr > f->max)
			return err_set(e, ERANGE, "has %zu elements, more than %u", nr, f->max);
		*SLOT(unsigned, to, f->count) = (unsigned)nr;
	}
	for (size_t i = 0; i < nr; i++, first += f->fields->size) {
		int rc = read_object(json_array_get(v, i), f->fields, first, c, (int)i, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

static int fields_read_strings(const json_t *v, const struct field *f, void *to,
	const struct fields_context *c, struct err *e)
{
	static const struct field text = {.type = FIELD_STRING};
	size_t nr = json_array_size(v);
	const char **s = arena_array(c->arena, nr, sizeof *s);
	int rc = 0;

	if (!json_is_array(v))
		return json_want("a list", v, e);
	if (!s)
		return err_set(e, ENOMEM, "too large");
	*SLOT(const char **, to, f->at) = s;
	*SLOT(size_t, to, f->count) = nr;
	for (size_t i = 0; i < nr && !rc; i++) {
		s[i] = "";
		if (!json_is_null(json_array_get(v, i)))
			rc = fields_read_text(json_array_get(v, i), &text, &s[i], c, e);
	}
	return rc;
}

static int fields_read_map(
	json_t *v, const struct field *f, void *to, const struct fields_context *c, struct err *e)
{
	static const struct field text = {.type = FIELD_STRING};
	size_t nr = json_object_size(v);
	struct key_value *pair = arena_array(c->arena, nr, sizeof *pair);

	if (!json_is_object(v))
		return json_want("an object", v, e);
	if (!pair && nr)
		return err_set(e, ENOMEM, "too large");
	*SLOT(struct key_value *, to, f->at) = pair;
	*SLOT(size_t, to, f->count) = nr;
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it), pair++) {
		const char *key = json_object_iter_key(it);
		int rc = fields_read_text(json_object_iter_value(it), &text, &pair->value, c, e);

		if (rc)
			return err_add(e, rc, "%.64s", key);
		pair->key = arena_strndup(c->arena, key, strlen(key));
		if (!pair->key)
			return err_set(e, ENOMEM, "too large");
	}
	return 0;
}

int fields_read_member(
	json_t *v, const struct field *f, void *to, const struct fields_context *c, struct err *e)
{
	void *at = SLOT(void, to, f->at), *object;
	uint64_t n = 0;
	int rc;

	switch (f->type) {
	case FIELD_BOOL:
		*(bool *)at = json_is_true(v);
		return json_is_boolean(v) ? 0 : json_want("true or false", v, e);
	case FIELD_WHETHER:
		if (json_is_true(v))
			*(unsigned *)at = f->max;
		return json_is_boolean(v) ? 0 : json_want("true or false", v, e);
	case FIELD_UNSIGNED:
		rc = fields_read_u64(v, f->max ? f->max : UINT32_MAX, &n, e);
		*(unsigned *)at = (unsigned)n;
		return rc;
	case FIELD_U64:
		return fields_read_u64(v, UINT64_MAX, at, e);
	case FIELD_I64:
		*(int64_t *)at = json_integer_value(v);
		return json_is_integer(v) ? 0 : json_want("an integer", v, e);
	case FIELD_STRING:
	case FIELD_CHARS:
	case FIELD_NAME:
	case FIELD_CPUS:
	case FIELD_NODES:
	case FIELD_TOKENS:
		return fields_read_text(v, f, at, c, e);
	case FIELD_OBJECT:
		return read_object(v, f->fields, at, c, -1, e);
	case FIELD_POINTER:
		*(void **)at = object = arena_alloc(c->arena, f->fields->size);
		return object ? read_object(v, f->fields, object, c, -1, e)
			      : err_set(e, ENOMEM, "too large");
	case FIELD_ARRAY:
	case FIELD_LIST:
		return fields_read_list(v, f, to, c, e);
	case FIELD_MAP:
		return fields_read_map(v, f, to, c, e);
	case FIELD_STRINGS:
		return fields_read_strings(v, f, to, c, e);
	}
	return 0;
}

int fields_read(const json_t *object, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e)
{
	if (!json_is_object(object))
		return json_want("an object", object, e);
	for (size_t i = 0; i < f->nr; i++) {
		const struct field *row = &f->row[i];
		json_t *v = json_object_get(object, row->key);

		if (!v && (row->optional || row->has_flag))
			continue;
		if (!v)
			return err_set(e, EINVAL, "%s is missing", row->key);
		int rc = fields_read_member(v, row, to, c, e);
		if (rc)
			return err_add(e, rc, "%s", row->key);
		if (row->has_flag)
			*SLOT(bool, to, row->flag) = true;
	}
	return 0;
}

int fields_parse(const char *text, size_t len, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e)
{
	json_t *object;
	int rc = json_parse(text, len, &object, e);

	if (rc)
		return rc;
	rc = fields_read(object, f, to, c, e);
	json_decref(object);
	return rc;
}
