#include <codec/merge_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>

enum { MIB_SHIFT = 20 };

static int read_mask(const json_t *mask, struct node_bits *b, struct hint *h, struct err *e)
{
	h->any = json_is_null(mask);
	if (h->any)
		return 0;
	return json_is_array(mask) ? node_bits_read(mask, b, &h->mask, e)
				   : json_want("a list of node ids or null", mask, e);
}

static int read_hint(json_t *v, struct node_bits *b, struct hint *h, struct err *e)
{
	static const char *const keys[] = {"mask", "preferred", NULL};
	const json_t *preferred = json_object_get(v, "preferred");

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = json_only_keys(v, keys, e);
	if (rc)
		return rc;
	if (!json_is_boolean(preferred))
		return err_add(e, json_want("true or false", preferred, e), "preferred");
	h->preferred = json_is_true(preferred);
	rc = read_mask(json_object_get(v, "mask"), b, h, e);
	return rc ? err_add(e, rc, "mask") : 0;
}

static int one_any(struct arena *a, bool preferred, struct hint_list *out, struct err *e)
{
	struct hint *h = arena_alloc(a, sizeof *h);

	if (!h)
		return err_set(e, ENOMEM, "too large");
	*h = (struct hint){.any = true, .preferred = preferred};
	*out = (struct hint_list){h, 1};
	return 0;
}

/* One resource: null has no preference, an empty list cannot be satisfied (kubelet
 * filterProvidersHints). */
static int read_list(
	json_t *v, struct node_bits *b, struct arena *a, struct hint_list *out, struct err *e)
{
	size_t nr = json_array_size(v);

	if (!json_is_array(v) && !json_is_null(v))
		return json_want("a list of hints or null", v, e);
	if (!nr)
		return one_any(a, json_is_null(v), out, e);
	struct hint *h = arena_array(a, nr, sizeof *h);
	if (!h)
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < nr; i++) {
		int rc = read_hint(json_array_get(v, i), b, &h[i], e);

		if (rc)
			return err_add(e, rc, "hint %zu", i);
	}
	*out = (struct hint_list){h, nr};
	return 0;
}

/* A provider: null or {} has no preference, else one list for each resource. */
static int read_provider(json_t *v, struct node_bits *b, struct arena *a, struct hint_list *lists,
	size_t *nr, struct err *e)
{
	if (!json_is_object(v) && !json_is_null(v))
		return json_want("an object or null", v, e);
	if (!json_object_size(v))
		return one_any(a, true, &lists[(*nr)++], e);
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
		int rc = read_list(json_object_iter_value(it), b, a, &lists[(*nr)++], e);

		if (rc)
			return err_add(e, rc, "%.64s", json_object_iter_key(it));
	}
	return 0;
}

static int read_providers(const json_t *providers, struct node_bits *b, struct arena *a,
	struct merge_question *q, struct err *e)
{
	size_t room = 0;

	if (!json_is_array(providers))
		return json_want("a list", providers, e);
	for (size_t i = 0; i < json_array_size(providers); i++)
		room += 1 + json_object_size(json_array_get(providers, i));
	struct hint_list *lists = arena_array(a, room + 1, sizeof *lists);
	if (!lists)
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < json_array_size(providers); i++) {
		int rc = read_provider(json_array_get(providers, i), b, a, lists, &q->nr_lists, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	q->lists = lists;
	return 0;
}

int merge_json_read(json_t *item, struct arena *a, struct merge_question *q, struct err *e)
{
	static const char *const keys[] = {"name", "nodes", "policy", "options", "distances",
		"providers", "expected", "sparse", "why", NULL};
	struct merge_question question = {0};
	struct node_bits b = {0};
	int rc = json_only_keys(item, keys, e);

	if (!rc)
		rc = policy_json_machine(item, &b, &question.put_to, e);
	if (rc)
		return rc;
	rc = read_providers(json_object_get(item, "providers"), &b, a, &question, e);
	if (rc)
		return err_add(e, rc, "providers");
	rc = policy_json_start(item, &question.put_to, e);
	if (!rc)
		*q = question;
	return rc;
}

int merge_json_answer(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	struct merge_question q;
	struct policy_answer answer;
	struct err why;
	int rc = merge_json_read(item, a, &q, &why);

	if (rc < 0)
		return err_set(e, -rc, "%s", why.text);
	if (rc) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	const struct hint_space space = policy_question_space(&q.put_to);
	if (policy_merge_lists(q.put_to.policy, &space, q.lists, q.nr_lists, a, &answer))
		return err_set(e, ENOMEM, "the merge needs more than %zu MiB",
			a->limit_bytes >> MIB_SHIFT);
	*result = policy_json_result(&q.put_to, &answer);
	return 0;
}
