#include <questions/diff_json.h>

#include <codec/fields_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

/* Deeper than this, values are compared as a whole; paths that are too long are cut. */
enum { DEPTH_MAX = 32, PATH_TEXT_MAX = 256 };

struct comparison {
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got);
	void *ctx;
	int nr;
};

/* A place in both values; each knows where it came from. */
struct place {
	const struct place *parent;
	const char *key; /* NULL: an element of a list */
	size_t element;
	unsigned depth;
};

static void put_path(struct text *t, const struct place *at)
{
	if (!at->parent)
		return;
	put_path(t, at->parent);
	if (at->key)
		text_add(t, "%s%s", at->parent->parent ? "." : "", at->key);
	else
		text_add(t, "[%zu]", at->element);
}

static char *as_text(const json_t *value)
{
	return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : xstrdup("nothing");
}

static void diff_report(
	struct comparison *c, const struct place *at, const json_t *wanted, const json_t *got)
{
	auto_free char *wanted_text = as_text(wanted);
	auto_free char *got_text = as_text(got);
	char path[PATH_TEXT_MAX];
	struct text t;

	text_init(&t, path, sizeof path);
	put_path(&t, at);
	c->differs(c->ctx, path, wanted_text, got_text);
	c->nr++;
}

static void diff_compare(struct comparison *c, const struct place *at, json_t *wanted, json_t *got);

static void compare_objects(
	struct comparison *c, const struct place *at, json_t *wanted, json_t *got)
{
	struct place inner = {.parent = at, .depth = at->depth + 1};

	for (void *it = json_object_iter(wanted); it; it = json_object_iter_next(wanted, it)) {
		inner.key = json_object_iter_key(it);
		diff_compare(
			c, &inner, json_object_iter_value(it), json_object_get(got, inner.key));
	}
	for (void *it = json_object_iter(got); it; it = json_object_iter_next(got, it)) {
		inner.key = json_object_iter_key(it);
		if (!json_object_get(wanted, inner.key))
			diff_report(c, &inner, NULL, json_object_iter_value(it));
	}
}

static void compare_lists(struct comparison *c, const struct place *at, json_t *wanted, json_t *got)
{
	struct place inner = {.parent = at, .depth = at->depth + 1};
	size_t nr_wanted = json_array_size(wanted), nr_got = json_array_size(got);

	for (; inner.element < nr_wanted || inner.element < nr_got; inner.element++)
		diff_compare(c, &inner, json_array_get(wanted, inner.element),
			json_array_get(got, inner.element));
}

static void diff_compare(struct comparison *c, const struct place *at, json_t *wanted, json_t *got)
{
	bool descend = at->depth < DEPTH_MAX;

	if (descend && json_is_object(wanted) && json_is_object(got))
		compare_objects(c, at, wanted, got);
	else if (descend && json_is_array(wanted) && json_is_array(got))
		compare_lists(c, at, wanted, got);
	else if (!json_equal(wanted, got))
		diff_report(c, at, wanted, got);
}

int json_diff(json_t *wanted, json_t *got,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	struct comparison c = {differs, ctx, 0};

	diff_compare(&c, &(struct place){0}, wanted, got);
	return c.nr;
}

int json_diff_texts(const char *wanted, const char *got,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	json_t *a = NULL, *b = NULL;
	int nr = 0;

	if (text_equal(wanted, got))
		return 0;
	if (!json_parse(wanted, strlen(wanted), &a, NULL) &&
		!json_parse(got, strlen(got), &b, NULL))
		nr = json_diff(a, b, differs, ctx);
	json_decref(a);
	json_decref(b);
	if (nr)
		return nr;
	differs(ctx, "", wanted, got);
	return 1;
}
