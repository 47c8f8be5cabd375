#include <codec/decide_json.h>

#include <codec/diff_json.h>
#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

struct decide_items {
	json_t *root;
	bool is_array;
};

int decide_items_parse(const char *text, size_t len, struct decide_items **out, struct err *e)
{
	json_t *root;
	int rc = json_parse(text, len, &root, e);

	if (rc)
		return rc;
	if (!json_is_object(root) && !json_is_array(root)) {
		rc = json_want("an object", root, e);
		json_decref(root);
		return rc;
	}
	*out = xcalloc(1, sizeof **out);
	**out = (struct decide_items){root, json_is_array(root)};
	return 0;
}

void decide_items_free(struct decide_items *d)
{
	if (d)
		json_decref(d->root);
	free(d);
}

size_t decide_items_count(const struct decide_items *d)
{
	return d->is_array ? json_array_size(d->root) : 1;
}

static json_t *item_at(const struct decide_items *d, size_t i)
{
	return d->is_array ? json_array_get(d->root, i) : d->root;
}

/* The forms of a question, each by a key that only it has. */
static const struct form {
	const char *key, *name;
	int (*read)(json_t *item, struct arena *a, struct merge_question *q, struct err *e);
} forms[] = {
	{"providers", "merge", merge_json_read},
	{"families", "families", NULL},
	{"cpus_fields", "cpu", NULL},
	{"node_reservation", "memory", NULL},
	{"machine", "node", NULL},
};

int decide_item_read(const struct decide_items *d, size_t i, struct arena *a,
	struct merge_question *q, struct err *e)
{
	json_t *item = item_at(d, i);
	json_t *name = json_object_get(item, "name");

	if (!json_is_object(item))
		return json_want("an object", item, e);
	if (name && !json_is_string(name))
		return err_add(e, json_want("a string", name, e), "name");
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		if (!json_object_get(item, forms[f].key))
			continue;
		if (!forms[f].read)
			return err_set(e, ENOTSUP,
				"not decided yet: the form %s, only merge (providers)",
				forms[f].name);
		return forms[f].read(item, a, q, e);
	}
	return err_set(e, EINVAL,
		"no question: none of the keys providers, families, cpus_fields, node_reservation, "
		"machine");
}

static json_t *list_of(struct nodeset nodes, const struct node_ids *ids)
{
	json_t *list = json_array();

	nodeset_each (node, nodes)
		(void)json_array_append_new(list, json_integer(ids->id[node]));
	return list;
}

enum { ASCII_END = 0x80 };

/* Messages quote what they complain about, and may cut it within a character. */
static json_t *message(const char *why)
{
	json_t *text = json_string(why);
	auto_free char *ascii = text ? NULL : xstrdup(why);

	if (text)
		return text;
	for (char *c = ascii; *c; c++)
		if ((unsigned char)*c >= ASCII_END)
			*c = '?';
	return json_string(ascii);
}

static json_t *result_of(const struct merge_result *r)
{
	const struct hint *h = &r->answer.affinity;

	if (r->error)
		return json_pack("{s:o}", "error", message(r->error));
	return json_pack("{s:o, s:b, s:b}", "affinity",
		h->any ? json_null() : list_of(h->mask, &r->ids), "preferred", h->preferred,
		"admit", r->answer.admit);
}

/* Which question it was, as the first member of its answer. */
static json_t *answer_start(const struct decide_items *d, size_t i, size_t line)
{
	json_t *name = d ? json_object_get(item_at(d, i), "name") : NULL;
	json_t *answer = json_object();

	if (json_is_string(name))
		(void)json_object_set(answer, "name", name);
	else if (d && d->is_array)
		(void)json_object_set_new(answer, "item", json_integer((json_int_t)i + 1));
	else
		(void)json_object_set_new(answer, "line", json_integer((json_int_t)line));
	return answer;
}

static char *dump_and_free(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	json_decref(value);
	return text;
}

char *decide_item_answer(
	const struct decide_items *d, size_t i, size_t line, const struct merge_result *r)
{
	json_t *answer = answer_start(d, i, line);

	(void)json_object_set_new(answer, "result", result_of(r));
	return dump_and_free(answer);
}

char *decide_item_error(const struct decide_items *d, size_t i, size_t line, const char *why)
{
	json_t *answer = answer_start(d, i, line);

	(void)json_object_set_new(answer, "error", message(why));
	return dump_and_free(answer);
}

const char *decide_item_name(
	const struct decide_items *d, size_t i, size_t line, char *buf, size_t cap)
{
	const json_t *name = d ? json_object_get(item_at(d, i), "name") : NULL;
	struct text t;

	text_init(&t, buf, cap);
	if (json_is_string(name))
		text_add(&t, "%s", json_string_value(name));
	else
		text_add(&t, d && d->is_array ? "item %zu" : "line %zu",
			d && d->is_array ? i + 1 : line);
	return buf;
}

int decide_item_check(const struct decide_items *d, size_t i, const struct merge_result *r,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	json_t *expected = json_object_get(item_at(d, i), "expected");

	if (!expected)
		return -ENOENT;
	json_t *result = result_of(r);
	int nr = json_diff(expected, result, differs, ctx);
	json_decref(result);
	return nr;
}
