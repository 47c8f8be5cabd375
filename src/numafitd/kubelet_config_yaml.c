#include <numafitd/kubelet_config_yaml.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>
#include <yaml.h>

/* One key, and what takes its value; the text of an error says what is wrong with it. */
struct key {
	const char *name;
	int (*take)(const char *value, struct report_policy *p, struct err *e);
};

static int kubelet_config_unknown_word(const char *value, struct err *e)
{
	return err_set(e, EINVAL, "\"%.64s\" is nothing that a kubelet knows", value);
}

static int take_kind(const char *value, struct report_policy *p, struct err *e)
{
	(void)p;
	return text_equal(value, "KubeletConfiguration")
		       ? 0
		       : err_set(e, EINVAL, "should be KubeletConfiguration, is %.64s", value);
}

static int kubelet_config_take_policy(const char *value, struct report_policy *p, struct err *e)
{
	int policy = topology_policy_from_name(value);

	if (policy < 0)
		return kubelet_config_unknown_word(value, e);
	p->policy = (enum topology_policy)policy;
	return 0;
}

static int take_scope(const char *value, struct report_policy *p, struct err *e)
{
	if (!text_equal(value, "container") && !text_equal(value, "pod"))
		return kubelet_config_unknown_word(value, e);
	p->scope = text_equal(value, "pod") ? SCOPE_POD : SCOPE_CONTAINER;
	return 0;
}

static int take_cpu_manager(const char *value, struct report_policy *p, struct err *e)
{
	if (!text_equal(value, "none") && !text_equal(value, "static"))
		return kubelet_config_unknown_word(value, e);
	p->cpu_manager = text_equal(value, "static") ? MANAGER_STATIC : MANAGER_NONE;
	return 0;
}

static int take_prefer_closest(const char *value, struct report_policy *p, struct err *e)
{
	return text_bool(value, &p->prefer_closest_numa_nodes, e);
}

static int take_max_allowable(const char *value, struct report_policy *p, struct err *e)
{
	uint64_t nr;
	int rc = text_u64(value, strlen(value), INT32_MAX, &nr, e);

	if (!rc)
		p->max_allowable_numa_nodes = (unsigned)nr;
	return rc;
}

static int take_strategy(const char *value, struct report_policy *p, struct err *e)
{
	static const char *const words[] = {"none", "most-allocated", "least-allocated"};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (text_equal(value, words[i])) {
			p->strategy = (enum allocation_strategy)i;
			return 0;
		}
	return kubelet_config_unknown_word(value, e);
}

static const struct key keys[] = {
	{"kind", take_kind},
	{"topologyManagerPolicy", kubelet_config_take_policy},
	{"topologyManagerScope", take_scope},
	{"cpuManagerPolicy", take_cpu_manager},
	{NULL, NULL},
};
static const char options_key[] = "topologyManagerPolicyOptions";
static const struct key options[] = {
	{"prefer-closest-numa-nodes", take_prefer_closest},
	{"max-allowable-numa-nodes", take_max_allowable},
	{"numa-allocation-strategy", take_strategy},
	{NULL, NULL},
};

/* The text of a scalar; NULL: it is none, or holds a NUL. A null is no text either. */
static const char *scalar(const yaml_node_t *node)
{
	const char *value;

	if (!node || node->type != YAML_SCALAR_NODE)
		return NULL;
	value = (const char *)node->data.scalar.value;
	if (strlen(value) != node->data.scalar.length)
		return NULL;
	if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		(text_equal(value, "null") || text_equal(value, "~")))
		return "";
	return value;
}

static int kubelet_config_take(
	const struct key *key, const yaml_node_t *node, struct report_policy *p, struct err *e)
{
	const char *value = scalar(node);
	int rc;

	if (!value)
		rc = err_set(e, EINVAL, "should be a word");
	else
		rc = *value ? key->take(value, p, e) : 0; /* as if it were not there */
	return rc ? err_add(e, -EINVAL, "%s", key->name) : 0;
}

static int kubelet_config_read_map(yaml_document_t *d, const yaml_node_t *map,
	const struct key *list, struct report_policy *p, struct err *e)
{
	int rc = 0;

	for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
		pair < map->data.mapping.pairs.top && !rc; pair++) {
		const char *name = scalar(yaml_document_get_node(d, pair->key));
		const yaml_node_t *value = yaml_document_get_node(d, pair->value);

		if (!name)
			continue;
		for (const struct key *k = list; k->name && !rc; k++)
			if (text_equal(k->name, name))
				rc = kubelet_config_take(k, value, p, e);
		if (list != options && text_equal(name, options_key) && value &&
			value->type == YAML_MAPPING_NODE) {
			rc = kubelet_config_read_map(d, value, options, p, e);
			if (rc)
				rc = err_add(e, rc, "%s", options_key);
		}
	}
	return rc;
}

static int read_document(yaml_document_t *d, struct report_policy *out, struct err *e)
{
	struct report_policy p = {0};
	const yaml_node_t *root = yaml_document_get_root_node(d);

	if (!root || root->type != YAML_MAPPING_NODE)
		return err_set(e, EINVAL, "is no KubeletConfiguration");
	int rc = kubelet_config_read_map(d, root, keys, &p, e);
	if (!rc)
		*out = p;
	return rc;
}

int kubelet_config_yaml_read(const char *text, size_t len, struct report_policy *out, struct err *e)
{
	yaml_document_t document;
	yaml_parser_t parser;
	int rc;

	if (len > KUBELET_CONFIG_BYTES_MAX)
		return err_set(
			e, E2BIG, "%zu bytes, %d are read at most", len, KUBELET_CONFIG_BYTES_MAX);
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (yaml_parser_load(&parser, &document)) {
		rc = read_document(&document, out, e);
		yaml_document_delete(&document);
	} else {
		rc = err_set(e, EINVAL, "line %zu: %s", parser.problem_mark.line + 1,
			parser.problem ? parser.problem : "no YAML");
	}
	yaml_parser_delete(&parser);
	return rc;
}
