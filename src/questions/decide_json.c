#include <questions/decide_json.h>

#include <questions/cpu_json.h>
#include <questions/diff_json.h>
#include <questions/families_json.h>
#include <codec/fields_json.h>
#include <questions/memory_json.h>
#include <questions/node_json.h>
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

json_t *decide_item(const struct decide_items *d, size_t i)
{
	return d->is_array ? json_array_get(d->root, i) : d->root;
}

/* Hints written out, up to 2^n for each resource. Rules say the same. */
static int refuse_lists(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	(void)item, (void)a, (void)result;
	return err_set(e, EINVAL,
		"providers: lists of hints are not merged; ask what they follow from: "
		"\"families\": [{\"kind\": \"cpu\", \"cap\": {\"0\": 8}, \"avail\": {\"0\": 6}, "
		"\"request\": 4}, ...], see numafit decide --help");
}

/* The forms of a question, each by a key that only it has; one more has a "machine". */
static const struct form {
	const char *key;
	int (*answer)(json_t *item, struct arena *a, json_t **result, struct err *e);
} forms[] = {
	{"providers", refuse_lists},
	{"families", families_json_answer},
	{"cpus_fields", cpu_json_answer},
	{"node_reservation", memory_json_answer},
};

int decide_item_answer(const struct decide_items *d, size_t i, machine_loader *load,
	struct arena *a, json_t **result, struct err *e)
{
	json_t *item = decide_item(d, i);
	json_t *name = json_object_get(item, "name");

	if (!json_is_object(item))
		return json_want("an object", item, e);
	if (name && !json_is_string(name))
		return err_add(e, json_want("a string", name, e), "name");
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		if (!json_object_get(item, forms[f].key))
			continue;
		return forms[f].answer(item, a, result, e);
	}
	if (json_object_get(item, "machine"))
		return node_json_answer(item, load, a, result, e);
	return err_set(e, EINVAL,
		"no question: none of the keys families, cpus_fields, node_reservation, machine");
}

void decide_result_free(json_t *result)
{
	json_decref(result);
}

/* Which question it was, as the first member of its answer. */
static json_t *answer_start(const struct decide_items *d, size_t i, size_t line)
{
	json_t *name = d ? json_object_get(decide_item(d, i), "name") : NULL;
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

char *decide_item_print(const struct decide_items *d, size_t i, size_t line, json_t *result)
{
	json_t *answer = answer_start(d, i, line);
	json_t *warnings = json_object_get(result, DECIDE_WARNINGS);

	if (warnings)
		(void)json_object_set(answer, DECIDE_WARNINGS, warnings);
	(void)json_object_del(result, DECIDE_WARNINGS);
	(void)json_object_set(answer, "result", result);
	return dump_and_free(answer);
}

char *decide_item_error(const struct decide_items *d, size_t i, size_t line, const char *why)
{
	json_t *answer = answer_start(d, i, line);

	(void)json_object_set_new(answer, "error", json_message(why));
	return dump_and_free(answer);
}

const char *decide_item_name(
	const struct decide_items *d, size_t i, size_t line, char *buf, size_t cap)
{
	const json_t *name = d ? json_object_get(decide_item(d, i), "name") : NULL;
	struct text t;

	text_init(&t, buf, cap);
	if (json_is_string(name))
		text_add(&t, "%s", json_string_value(name));
	else
		text_add(&t, d && d->is_array ? "item %zu" : "line %zu",
			d && d->is_array ? i + 1 : line);
	return buf;
}

/* How many of the recorded steps can be compared: those before the released kubelet gave somebody
 * CPUs that were not free, which we never do. */
static size_t comparable_steps(json_t *expected)
{
	const json_t *steps = json_object_get(expected, "steps");
	size_t i = 0;

	while (i < json_array_size(steps) &&
		!json_is_true(json_object_get(json_array_get(steps, i), "takes_unavailable")))
		i++;
	return i;
}

/* A copy of the answer with no more than so many steps. */
static json_t *with_steps(json_t *answer, size_t nr)
{
	json_t *copy = json_copy(answer), *steps = json_array();

	for (size_t i = 0; i < nr; i++)
		(void)json_array_append(steps, json_array_get(json_object_get(answer, "steps"), i));
	(void)json_object_set_new(copy, "steps", steps);
	return copy;
}

int decide_item_check(const struct decide_items *d, size_t i, json_t *result,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	json_t *item = decide_item(d, i);
	json_t *expected = json_object_get(item, "expected");

	(void)json_object_del(result, DECIDE_WARNINGS);
	if (json_is_true(json_object_get(item, "takes_unavailable")))
		return 0;
	if (!expected)
		return -ENOENT;
	if (json_is_array(expected))
		result = json_object_get(result, "cpus");
	size_t nr = comparable_steps(expected);
	if (nr == json_array_size(json_object_get(expected, "steps")))
		return json_diff(expected, result, differs, ctx);
	json_t *wanted = with_steps(expected, nr), *got = with_steps(result, nr);
	int rc = json_diff(wanted, got, differs, ctx);
	json_decref(wanted);
	json_decref(got);
	return rc;
}
