#include <codec/merge_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

enum { KEY_MAX = 128, VALUE_MAX = 128, MASK_BITS = NODES_MAX };

static bool is_listed(const char *key, const char *const *keys)
{
	while (*keys && !text_equal(key, *keys))
		keys++;
	return *keys;
}

/* A key that is misspelt would otherwise be a question that was never asked. */
static int check_keys(json_t *object, const char *const *known, struct err *e)
{
	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
		const char *key = json_object_iter_key(it);

		if (!is_listed(key, known))
			return err_set(e, EINVAL, "unknown key \"%.64s\"", key);
	}
	return 0;
}

static int read_number(const json_t *v, unsigned max, unsigned *out, struct err *e)
{
	if (!json_is_integer(v))
		return json_want("an integer", v, e);
	if (json_integer_value(v) < 0 || json_integer_value(v) > (json_int_t)max)
		return err_set(
			e, ERANGE, "%lld is outside 0..%u", (long long)json_integer_value(v), max);
	*out = (unsigned)json_integer_value(v);
	return 0;
}

/* How the question's node ids become bits: the machine's own nodes ascending from 0, each further
 * id that a mask names the next free bit. Masks are merged by their count, by equality and by what
 * they share with the machine, so the order of the further bits means nothing. */
struct bits {
	unsigned nr;
	uint8_t at[NODE_ID_MAX + 1]; /* bit + 1; 0: none yet */
};

static int bit_of(struct bits *b, unsigned id, unsigned *bit, struct err *e)
{
	if (!b->at[id]) {
		if (b->nr == MASK_BITS)
			return err_set(
				e, ERANGE, "%u: more than %d different NUMA nodes", id, MASK_BITS);
		b->at[id] = (uint8_t)++b->nr;
	}
	*bit = b->at[id] - 1u;
	return 0;
}

static int read_ids(const json_t *nodes, struct node_ids *ids, struct bits *b, struct err *e)
{
	struct cpuset listed = {0}; /* sorts them */
	unsigned id, bit = 0;

	if (!json_is_array(nodes) || !json_array_size(nodes))
		return json_want("a list of node ids", nodes, e);
	if (json_array_size(nodes) > NODES_MAX)
		return err_set(e, ERANGE, "%zu NUMA nodes, more than %d", json_array_size(nodes),
			NODES_MAX);
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int rc = read_number(json_array_get(nodes, i), NODE_ID_MAX, &id, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
		if (cpuset_has(&listed, id))
			return err_set(e, EINVAL, "node %u comes twice", id);
		cpuset_add(&listed, id);
	}
	cpuset_each (node, &listed) {
		(void)bit_of(b, node, &bit, NULL);
		ids->id[ids->nr++] = (uint16_t)node;
	}
	return 0;
}

static int read_row(const json_t *row, const json_t *nodes, const struct bits *b, uint8_t *distance,
	struct err *e)
{
	unsigned value;

	if (!json_is_array(row))
		return json_want("a list of distances", row, e);
	if (json_array_size(row) != json_array_size(nodes))
		return err_set(e, EINVAL, "has %zu entries for %zu nodes", json_array_size(row),
			json_array_size(nodes));
	for (size_t i = 0; i < json_array_size(row); i++) {
		int rc = read_number(json_array_get(row, i), UINT8_MAX, &value, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
		distance[b->at[json_integer_value(json_array_get(nodes, i))] - 1] = (uint8_t)value;
	}
	return 0;
}

static int read_distances(json_t *table, const json_t *nodes, const struct bits *b,
	struct merge_question *q, struct err *e)
{
	if (!json_is_object(table))
		return json_want("an object", table, e);
	for (void *it = json_object_iter(table); it; it = json_object_iter_next(table, it)) {
		const char *key = json_object_iter_key(it);
		uint64_t id;
		int rc = text_u64(key, strlen(key), NODE_ID_MAX, &id, e);

		if (!rc && !b->at[id])
			rc = err_set(e, EINVAL, "is not in nodes");
		if (!rc)
			rc = read_row(json_object_iter_value(it), nodes, b,
				q->distance[b->at[id] - 1], e);
		if (rc)
			return err_add(e, rc, "row %.64s", key);
	}
	/* keys are unique and all are nodes, except that "1" and "01" are two keys */
	if (json_object_size(table) != q->ids.nr)
		return err_set(
			e, EINVAL, "%zu rows for %u nodes", json_object_size(table), q->ids.nr);
	return 0;
}

/* An option's value as the kubelet's config has it, a string, or the JSON value that means it. */
static int option_text(const json_t *v, char *buf, size_t cap, struct err *e)
{
	struct text t;

	text_init(&t, buf, cap);
	if (json_is_string(v))
		text_add(&t, "%s", json_string_value(v));
	else if (json_is_boolean(v))
		text_add(&t, "%s", json_is_true(v) ? "true" : "false");
	else if (json_is_integer(v))
		text_add(&t, "%lld", (long long)json_integer_value(v));
	else
		return json_want("a string, true, false or an integer", v, e);
	return t.cut ? err_set(e, ERANGE, "is longer than %zu bytes", cap - 1) : 0;
}

/* The kubelet's rules for each option are those of our own setting of that name. 1: refused. */
static int read_option(struct settings *s, const char *name, const json_t *v, struct err *e)
{
	char key[KEY_MAX], value[VALUE_MAX];
	struct text t;
	int rc = option_text(v, value, sizeof value, e);

	text_init(&t, key, sizeof key);
	text_add(&t, "topologyManagerPolicyOptions.%s", name);
	if (!rc && t.cut)
		rc = err_set(e, ERANGE, "the option's name is too long");
	if (rc)
		return err_add(e, rc, "%.64s", name);
	return settings_set(s, key, value, e) ? 1 : 0;
}

static int read_options(json_t *options, struct merge_question *q, struct err *e)
{
	struct settings s;

	settings_init(&s);
	if (options && !json_is_object(options))
		return json_want("an object", options, e);
	for (void *it = json_object_iter(options); it; it = json_object_iter_next(options, it)) {
		int rc = read_option(&s, json_object_iter_key(it), json_object_iter_value(it), e);

		if (rc)
			return rc;
	}
	q->closest = s.prefer_closest_numa_nodes;
	q->max_nodes = s.max_allowable_numa_nodes;
	return 0;
}

static int read_mask(const json_t *mask, struct bits *b, struct hint *h, struct err *e)
{
	if (json_is_null(mask)) {
		h->any = true;
		return 0;
	}
	if (!json_is_array(mask))
		return json_want("a list of node ids or null", mask, e);
	for (size_t i = 0; i < json_array_size(mask); i++) {
		unsigned id, bit = 0;
		int rc = read_number(json_array_get(mask, i), NODE_ID_MAX, &id, e);

		if (!rc)
			rc = bit_of(b, id, &bit, e);
		if (rc)
			return err_add(e, rc, "element %zu", i);
		h->mask = nodeset_or(h->mask, nodeset_of(bit));
	}
	return 0;
}

static int read_hint(json_t *v, struct bits *b, struct hint *h, struct err *e)
{
	static const char *const keys[] = {"mask", "preferred", NULL};
	const json_t *preferred = json_object_get(v, "preferred");

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = check_keys(v, keys, e);
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
	json_t *v, struct bits *b, struct arena *a, struct hint_list *out, struct err *e)
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
static int read_provider(json_t *v, struct bits *b, struct arena *a, struct hint_list *lists,
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

static int read_providers(const json_t *providers, struct bits *b, struct arena *a,
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

/* 1: the kubelet knows no such policy. */
static int read_policy(const json_t *v, enum topology_policy *out, struct err *e)
{
	int policy;

	if (!json_is_string(v))
		return err_add(e, json_want("a string", v, e), "policy");
	policy = topology_policy_from_name(json_string_value(v));
	if (policy < 0) {
		(void)err_set(e, EINVAL, "unknown policy: \"%.64s\"", json_string_value(v));
		return 1;
	}
	*out = (enum topology_policy)policy;
	return 0;
}

static int read_machine(const json_t *item, struct bits *b, struct merge_question *q, struct err *e)
{
	const json_t *nodes = json_object_get(item, "nodes");
	json_t *distances = json_object_get(item, "distances");
	int rc = read_ids(nodes, &q->ids, b, e);

	if (rc)
		return err_add(e, rc, "nodes");
	if (!distances)
		return 0;
	rc = read_distances(distances, nodes, b, q, e);
	return rc ? err_add(e, rc, "distances") : 0;
}

/* What a kubelet does with policy and options when it starts. 1: it does not. */
static int read_start(const json_t *item, struct merge_question *q, struct err *e)
{
	int rc = read_policy(json_object_get(item, "policy"), &q->policy, e);

	/* with policy none the kubelet does not look at the options (topology_manager.go,
	 * NewManager) */
	if (rc || q->policy == POLICY_NONE)
		return rc;
	rc = read_options(json_object_get(item, "options"), q, e);
	if (rc)
		return rc < 0 ? err_add(e, rc, "options") : rc;
	if (q->closest && !json_object_get(item, "distances")) {
		(void)err_set(e, EINVAL,
			"cannot discover NUMA topology: error getting NUMA distances from "
			"cadvisor");
		return 1;
	}
	return 0;
}

int merge_json_read(json_t *item, struct arena *a, struct merge_question *q, struct err *e)
{
	static const char *const keys[] = {"name", "nodes", "policy", "options", "distances",
		"providers", "expected", "sparse", "why", NULL};
	struct merge_question question = {0};
	struct bits b = {0};
	int rc = check_keys(item, keys, e);

	if (!rc)
		rc = read_machine(item, &b, &question, e);
	if (rc)
		return rc;
	rc = read_providers(json_object_get(item, "providers"), &b, a, &question, e);
	if (rc)
		return err_add(e, rc, "providers");
	rc = read_start(item, &question, e);
	if (!rc)
		*q = question;
	return rc;
}
