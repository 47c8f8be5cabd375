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

static const char *kind_of(const json_t *value)
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

	return value ? kinds[json_typeof(value)] : "nothing";
}

int json_want(const char *wanted, const json_t *got, struct err *e)
{
	return err_set(e, EINVAL, "should be %s, is %s", wanted, kind_of(got));
}

json_t *json_member(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_null(v) ? NULL : v;
}

/* The member of that type, or NULL. */
static int find_member(const json_t *object, const char *key, json_type type, const char *what,
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
	int rc = find_member(object, key, JSON_STRING, "a string", &v, e);

	if (!rc)
		*out = json_string_value(v);
	return rc;
}

int json_member_list(const json_t *object, const char *key, json_t **out, struct err *e)
{
	return find_member(object, key, JSON_ARRAY, "a list", out, e);
}

int json_member_object(const json_t *object, const char *key, json_t **out, struct err *e)
{
	return find_member(object, key, JSON_OBJECT, "an object", out, e);
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

static int read_u64(const json_t *v, uint64_t max, uint64_t *out, struct err *e)
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

static int read_unsigned(const json_t *v, unsigned max, unsigned *out, struct err *e)
{
	uint64_t n;
	int rc = read_u64(v, max ? max : UINT32_MAX, &n, e);

	if (!rc)
		*out = (unsigned)n;
	return rc;
}

static int read_u32(const json_t *v, uint32_t *out, struct err *e)
{
	uint64_t n;
	int rc = read_u64(v, UINT32_MAX, &n, e);

	if (!rc)
		*out = (uint32_t)n;
	return rc;
}

static int read_name(const json_t *v, const struct field *f, unsigned *out, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	for (unsigned i = 0; i < f->max; i++)
		if (text_equal(f->words[i], json_string_value(v))) {
			*out = i;
			return 0;
		}
	return err_set(e, EINVAL, "there is no \"%.64s\"", json_string_value(v));
}

static int read_string(const json_t *v, char **out, struct arena *a, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	*out = arena_strndup(a, json_string_value(v), json_string_length(v));
	return *out ? 0 : err_set(e, ENOMEM, "too large");
}

static int read_chars(const json_t *v, char *out, size_t cap, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	if (!text_copy(out, cap, json_string_value(v)))
		return err_set(e, ERANGE, "is longer than %zu bytes", cap - 1);
	return 0;
}

static int read_cpus(const json_t *v, struct cpuset *out, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	return cpuset_parse(out, json_string_value(v), json_string_length(v), e);
}

static int read_nodes(
	const json_t *v, struct nodeset *out, const struct node_ids *ids, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	return nodeset_parse(out, ids, json_string_value(v), json_string_length(v), e);
}

static int read_tokens(
	const json_t *v, struct tokenset *out, const struct node_ids *ids, struct err *e)
{
	if (!json_is_string(v))
		return json_want("a string", v, e);
	return tokenset_parse(out, ids, json_string_value(v), e);
}

static int read_elements(const json_t *v, const struct fields *f, char *first,
	const struct fields_context *c, struct err *e)
{
	for (size_t i = 0; i < json_array_size(v); i++) {
		int rc = fields_read(json_array_get(v, i), f, first + i * f->size, c, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

static int read_array(const json_t *v, const struct field *f, char *first, unsigned *nr,
	const struct fields_context *c, struct err *e)
{
	if (!json_is_array(v))
		return json_want("a list", v, e);
	if (json_array_size(v) > f->max)
		return err_set(
			e, ERANGE, "has %zu elements, more than %u", json_array_size(v), f->max);
	*nr = (unsigned)json_array_size(v);
	return read_elements(v, f->fields, first, c, e);
}

static int read_pointer(
	json_t *v, const struct fields *f, void **to, const struct fields_context *c, struct err *e)
{
	*to = arena_alloc(c->arena, f->size);
	return *to ? fields_read(v, f, *to, c, e) : err_set(e, ENOMEM, "too large");
}

static int read_list(const json_t *v, const struct field *f, char **first, size_t *nr,
	const struct fields_context *c, struct err *e)
{
	if (!json_is_array(v))
		return json_want("a list", v, e);
	*nr = json_array_size(v);
	*first = arena_array(c->arena, *nr, f->fields->size);
	if (!*first && *nr)
		return err_set(e, ENOMEM, "too large");
	return read_elements(v, f->fields, *first, c, e);
}

static int read_map(json_t *v, struct key_value **pairs, size_t *nr, struct arena *a, struct err *e)
{
	struct key_value *pair;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	*nr = json_object_size(v);
	pair = *pairs = arena_array(a, *nr, sizeof **pairs);
	if (!pair && *nr)
		return err_set(e, ENOMEM, "too large");
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
		const char *key = json_object_iter_key(it);
		char *text = NULL;
		int rc = read_string(json_object_iter_value(it), &text, a, e);

		if (rc)
			return err_add(e, rc, "%.64s", key);
		*pair = (struct key_value){arena_strndup(a, key, strlen(key)), text};
		if (!pair++->key)
			return err_set(e, ENOMEM, "too large");
	}
	return 0;
}

#define SLOT(T, to, offset) ((T *)(void *)((char *)(to) + (offset)))

static int read_value(
	json_t *v, const struct field *f, void *to, const struct fields_context *c, struct err *e)
{
	switch (f->type) {
	case FIELD_BOOL:
		*SLOT(bool, to, f->at) = json_is_true(v);
		return json_is_boolean(v) ? 0 : json_want("true or false", v, e);
	case FIELD_UNSIGNED:
		return read_unsigned(v, f->max, SLOT(unsigned, to, f->at), e);
	case FIELD_U32:
		return read_u32(v, SLOT(uint32_t, to, f->at), e);
	case FIELD_U64:
		return read_u64(v, UINT64_MAX, SLOT(uint64_t, to, f->at), e);
	case FIELD_I64:
		*SLOT(int64_t, to, f->at) = json_integer_value(v);
		return json_is_integer(v) ? 0 : json_want("an integer", v, e);
	case FIELD_STRING:
		return read_string(v, SLOT(char *, to, f->at), c->arena, e);
	case FIELD_CHARS:
		return read_chars(v, SLOT(char, to, f->at), f->max, e);
	case FIELD_NAME:
		return read_name(v, f, SLOT(unsigned, to, f->at), e);
	case FIELD_CPUS:
		return read_cpus(v, SLOT(struct cpuset, to, f->at), e);
	case FIELD_NODES:
		return read_nodes(v, SLOT(struct nodeset, to, f->at), c->ids, e);
	case FIELD_TOKENS:
		return read_tokens(v, SLOT(struct tokenset, to, f->at), c->ids, e);
	case FIELD_OBJECT:
		return fields_read(v, f->fields, SLOT(void, to, f->at), c, e);
	case FIELD_POINTER:
		return read_pointer(v, f->fields, SLOT(void *, to, f->at), c, e);
	case FIELD_ARRAY:
		return read_array(v, f, SLOT(char, to, f->at), SLOT(unsigned, to, f->count), c, e);
	case FIELD_LIST:
		return read_list(v, f, SLOT(char *, to, f->at), SLOT(size_t, to, f->count), c, e);
	case FIELD_MAP:
		return read_map(v, SLOT(struct key_value *, to, f->at), SLOT(size_t, to, f->count),
			c->arena, e);
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
		int rc = read_value(v, row, to, c, e);
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
