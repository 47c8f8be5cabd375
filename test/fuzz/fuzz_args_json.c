#include <stddef.h>
#include <stdint.h>

#include <plugin-args/args_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20, TEXT_MAX = 64 };

struct item {
	const char *name;
	int64_t weight;
};
struct inner {
	const struct item *list;
	size_t nr;
	const char *const *words;
	size_t nr_words;
	bool flag;
};
struct outer {
	const char *name;
	struct inner *inner;
};

static const struct field item_rows[] = {
	{.key = "a", .type = FIELD_STRING, .at = offsetof(struct item, name), .go = "string"},
	{.key = "b",
		.type = FIELD_I64,
		.at = offsetof(struct item, weight),
		.go = "int8",
		.max = 127},
};
static const struct fields item_args = {item_rows, 2, sizeof(struct item), "v1.Item"};
static const struct field inner_rows[] = {
	{.key = "l",
		.type = FIELD_LIST,
		.at = offsetof(struct inner, list),
		.count = offsetof(struct inner, nr),
		.go = "[]v1.Item",
		.fields = &item_args,
		.map = true},
	{.key = "w",
		.type = FIELD_STRINGS,
		.at = offsetof(struct inner, words),
		.count = offsetof(struct inner, nr_words),
		.go = "[]string"},
	{.key = "f", .type = FIELD_BOOL, .at = offsetof(struct inner, flag), .go = "bool"},
};
static const struct fields inner_args = {inner_rows, 3, sizeof(struct inner), "v1.Inner"};
static const struct field outer_rows[] = {
	{.key = "n", .type = FIELD_STRING, .at = offsetof(struct outer, name), .go = "string"},
	{.key = "i",
		.type = FIELD_POINTER,
		.at = offsetof(struct outer, inner),
		.go = "v1.Inner",
		.fields = &inner_args},
};
static const struct fields outer_args = {outer_rows, 2, sizeof(struct outer), "v1.Outer"};

/* What is read lies within its types; what is refused has a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct args_problems p;
	struct outer o = {0};
	struct err e = {0};
	struct arena a;
	char text[TEXT_MAX];
	json_t *v;

	if (json_parse((const char *)data, size, &v, NULL))
		return 0;
	memset(&p, 0, sizeof p);
	arena_init(&a, ARENA_BYTES);
	int rc = args_json_read(v, &outer_args, &o, &a, &p, &e);
	if (rc > 0 && (!p.nr || !*args_problems_text(&p, text, sizeof text)))
		abort();
	if (rc < 0 && !e.text[0])
		abort();
	for (unsigned i = 0; !rc && o.inner && i < o.inner->nr; i++)
		if (o.inner->list[i].weight > 127 || o.inner->list[i].weight < -128)
			abort();
	for (unsigned i = 0; !rc && o.inner && i < o.inner->nr_words; i++)
		if (!o.inner->words[i])
			abort();
	arena_fini(&a);
	json_decref(v);
	return 0;
}
