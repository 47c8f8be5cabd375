#include <questions/policy_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

enum { KEY_MAX = 128, VALUE_MAX = 128, ASCII_END = 0x80 };

int json_number(const json_t *v, uint64_t max, uint64_t *out, struct err *e)
{
	if (!json_is_integer(v))
		return json_want("an integer", v, e);
	if (json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
		return err_set(e, ERANGE, "%lld is outside 0..%llu",
			(long long)json_integer_value(v), (unsigned long long)max);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

json_t *json_message(const char *why)
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

static int policy_read_ids(const json_t *nodes, struct node_ids *ids, struct err *e)
{
	struct cpuset listed = {0}; /* sorts them */
	uint64_t id;

	if (!json_is_array(nodes) || !json_array_size(nodes))
		return json_want("a list of node ids", nodes, e);
	if (json_array_size(nodes) > NODES_MAX)
		return err_set(e, ERANGE, "%zu NUMA nodes, more than %d", json_array_size(nodes),
			NODES_MAX);
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int rc = json_number(json_array_get(nodes, i), NODE_ID_MAX, &id, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
		if (cpuset_has(&listed, (unsigned)id))
			return err_set(e, EINVAL, "node %u comes twice", (unsigned)id);
		cpuset_add(&listed, (unsigned)id);
	}
	cpuset_each (node, &listed)
		ids->id[ids->nr++] = (uint16_t)node;
	return 0;
}

static int policy_read_row(const json_t *row, const json_t *nodes, const struct node_ids *ids,
	uint8_t *distance, struct err *e)
{
	uint64_t value;

	if (!json_is_array(row))
		return json_want("a list of distances", row, e);
	if (json_array_size(row) != json_array_size(nodes))
		return err_set(e, EINVAL, "has %zu entries for %zu nodes", json_array_size(row),
			json_array_size(nodes));
	for (size_t i = 0; i < json_array_size(row); i++) {
		int rc = json_number(json_array_get(row, i), UINT8_MAX, &value, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
		unsigned id = (unsigned)json_integer_value(json_array_get(nodes, i));
		distance[node_index(ids, id)] = (uint8_t)value;
	}
	return 0;
}

static int policy_read_distances(
	json_t *table, const json_t *nodes, struct policy_question *q, struct err *e)
{
	if (!json_is_object(table))
		return json_want("an object", table, e);
	for (void *it = json_object_iter(table); it; it = json_object_iter_next(table, it)) {
		const char *key = json_object_iter_key(it);
		uint64_t id;
		int rc = text_u64(key, strlen(key), NODE_ID_MAX, &id, e);
		int node = rc ? rc : node_index(&q->ids, (unsigned)id);

		if (!rc && node < 0)
			rc = err_set(e, EINVAL, "is not in nodes");
		if (!rc)
			rc = policy_read_row(
				json_object_iter_value(it), nodes, &q->ids, q->distance[node], e);
		if (rc)
			return err_add(e, rc, "row %.64s", key);
	}
	/* keys are unique and all are nodes, except that "1" and "01" are two keys */
	if (json_object_size(table) != q->ids.nr)
		return err_set(
			e, EINVAL, "%zu rows for %u nodes", json_object_size(table), q->ids.nr);
	return 0;
}

int policy_json_machine(const json_t *item, struct policy_question *q, struct err *e)
{
	const json_t *nodes = json_object_get(item, "nodes");
	json_t *distances = json_object_get(item, "distances");
	int rc = policy_read_ids(nodes, &q->ids, e);

	if (rc)
		return err_add(e, rc, "nodes");
	if (!distances)
		return 0;
	rc = policy_read_distances(distances, nodes, q, e);
	return rc ? err_add(e, rc, "distances") : 0;
}

/* An option's value as the kubelet's config has it, a string, or the JSON value that means it. */
static int policy_option_text(const json_t *v, char *buf, size_t cap, struct err *e)
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
static int policy_read_option(struct settings *s, const char *name, const json_t *v, struct err *e)
{
	char key[KEY_MAX], value[VALUE_MAX];
	struct text t;
	int rc = policy_option_text(v, value, sizeof value, e);

	text_init(&t, key, sizeof key);
	text_add(&t, "topologyManagerPolicyOptions.%s", name);
	if (!rc && t.cut)
		rc = err_set(e, ERANGE, "the option's name is too long");
	if (rc)
		return err_add(e, rc, "%.64s", name);
	return settings_set(s, key, value, e) ? 1 : 0;
}

static int policy_read_options(json_t *options, struct policy_question *q, struct err *e)
{
	struct settings s;

	settings_init(&s);
	if (options && !json_is_object(options))
		return json_want("an object", options, e);
	for (void *it = json_object_iter(options); it; it = json_object_iter_next(options, it)) {
		int rc = policy_read_option(
			&s, json_object_iter_key(it), json_object_iter_value(it), e);

		if (rc)
			return rc;
	}
	q->closest = s.prefer_closest_numa_nodes;
	q->max_nodes = s.max_allowable_numa_nodes;
	return 0;
}

/* 1: the kubelet knows no such policy. */
static int policy_read_policy(const json_t *v, enum topology_policy *out, struct err *e)
{
	int policy;

	if (!json_is_string(v))
		return err_add(e, json_want("a string", v, e), "policy");
	policy = text_index(topology_policy_words, NR_POLICIES, json_string_value(v));
	if (policy < 0) {
		(void)err_set(e, EINVAL, "unknown policy: \"%.64s\"", json_string_value(v));
		return 1;
	}
	*out = (enum topology_policy)policy;
	return 0;
}

int policy_json_start(const json_t *item, struct policy_question *q, struct err *e)
{
	int rc = policy_read_policy(json_object_get(item, "policy"), &q->policy, e);

	/* with policy none the kubelet does not look at the options (topology_manager.go,
	 * NewManager) */
	if (rc || q->policy == POLICY_NONE)
		return rc;
	rc = policy_read_options(json_object_get(item, "options"), q, e);
	if (rc)
		return rc < 0 ? err_add(e, rc, "options") : rc;
	if (q->closest && !json_object_get(item, "distances")) {
		(void)err_set(e, EINVAL,
			"cannot discover NUMA topology: error getting NUMA distances from "
			"cadvisor");
		return 1;
	}
	return policy_check_nodes(q->policy, q->ids.nr, q->max_nodes, e) ? 1 : 0;
}

int policy_json_version(const json_t *item, enum kubernetes_version *out, struct err *e)
{
	const json_t *v = json_object_get(item, VERSION_KEY);
	int said = text_index(kubernetes_words, NR_KUBERNETES_VERSIONS, json_string_value(v));

	*out = said < 0 ? KUBERNETES_AUTO : (enum kubernetes_version)said;
	return v && said < 0 ? err_add(e, json_want("auto, 1.36 or 1.37", v, e), VERSION_KEY) : 0;
}

struct hint_space policy_question_space(const struct policy_question *q)
{
	return (struct hint_space){
		.all = nodeset_first(q->ids.nr), .distance = q->closest ? q->distance : NULL};
}

json_t *policy_json_result(const struct policy_question *q, const struct policy_answer *p)
{
	const struct hint *h = &p->affinity;

	return json_pack("{s:o, s:b, s:b}", "affinity",
		h->any ? json_null() : json_node_ids(h->mask, &q->ids), "preferred", h->preferred,
		"admit", p->admit);
}

json_t *policy_json_refusal(const char *why)
{
	return json_pack("{s:o}", "error", json_message(why));
}
