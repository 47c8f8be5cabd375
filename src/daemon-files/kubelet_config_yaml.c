#include <daemon-files/kubelet_config_yaml.h>

#include <codec/flat_yaml.h>
#include <errno.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* Settings of ours have the kubelet's keys and values: these are taken from its file. */
static const char *const keys[] = {"topologyManagerPolicy", "topologyManagerScope",
	"cpuManagerPolicy", "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
	"topologyManagerPolicyOptions.max-allowable-numa-nodes",
	"topologyManagerPolicyOptions.numa-allocation-strategy"};
static const char options[] = "topologyManagerPolicyOptions";
enum { KEY_BYTES = 128, ANCHORS_MAX = 256 };

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
	const char *key, const yaml_node_t *node, struct settings *s, struct err *e)
{
	const char *value = scalar(node);

	if (!value)
		return err_set(e, EINVAL, "%s: should be a word", key);
	if (!*value)
		return 0; /* as if it were not there */
	if (text_equal(key, "kind"))
		return text_equal(value, "KubeletConfiguration")
			       ? 0
			       : err_set(e, EINVAL,
					 "kind: should be KubeletConfiguration, is %.64s", value);
	return settings_set(s, key, value, e) ? -EINVAL : 0;
}

/* group: "", or the key that the map stands behind, with a dot. */
static int kubelet_config_read_map(yaml_document_t *d, const yaml_node_t *map, const char *group,
	struct settings *s, struct err *e)
{
	int rc = 0;

	for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
		pair < map->data.mapping.pairs.top && !rc; pair++) {
		const char *name = scalar(yaml_document_get_node(d, pair->key));
		const yaml_node_t *value = yaml_document_get_node(d, pair->value);
		char key[KEY_BYTES];
		bool top = !*group;

		/* a dot within a name is another key's */
		if (!name || strchr(name, '.') ||
			snprintf(key, sizeof key, "%s%s", group, name) >= (int)sizeof key)
			continue;
		if (top && text_equal(name, "kind"))
			rc = kubelet_config_take(key, value, s, e);
		for (size_t i = 0; i < sizeof keys / sizeof *keys && !rc; i++)
			if (text_equal(keys[i], key))
				rc = kubelet_config_take(key, value, s, e);
		if (!rc && top && text_equal(name, options) && value &&
			value->type == YAML_MAPPING_NODE)
			rc = kubelet_config_read_map(
				d, value, "topologyManagerPolicyOptions.", s, e);
	}
	return rc;
}

static int read_document(yaml_document_t *d, struct report_policy *out, struct err *e)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s); /* zeros are the kubelet's defaults */
	const yaml_node_t *root = yaml_document_get_root_node(d);

	if (!root || root->type != YAML_MAPPING_NODE)
		return err_set(e, EINVAL, "is no KubeletConfiguration");
	int rc = kubelet_config_read_map(d, root, "", s, e);
	if (rc)
		return rc;
	*out = (struct report_policy){0};
	out->policy = s->topology_policy;
	out->scope = s->topology_scope;
	out->prefer_closest_numa_nodes = s->prefer_closest_numa_nodes;
	out->max_allowable_numa_nodes = s->max_allowable_numa_nodes;
	out->strategy = s->allocation_strategy;
	out->cpu_manager = s->cpu_manager_policy;
	return 0;
}

/* libyaml compares each anchor with all before. */
static int count_anchors(void *ctx, const yaml_event_t *ev, struct err *e)
{
	bool anchored = (ev->type == YAML_SCALAR_EVENT && ev->data.scalar.anchor) ||
			(ev->type == YAML_MAPPING_START_EVENT && ev->data.mapping_start.anchor) ||
			(ev->type == YAML_SEQUENCE_START_EVENT && ev->data.sequence_start.anchor);
	unsigned *nr = ctx;

	*nr += anchored;
	return *nr > ANCHORS_MAX ? err_set(e, E2BIG, "line %zu: more than %d anchors",
					   ev->start_mark.line + 1, ANCHORS_MAX)
				 : 0;
}

int kubelet_config_yaml_read(const char *text, size_t len, struct report_policy *out, struct err *e)
{
	yaml_document_t document;
	yaml_parser_t parser;
	unsigned anchors = 0;
	int rc;

	if (len > KUBELET_CONFIG_BYTES_MAX)
		return err_set(
			e, E2BIG, "%zu bytes, %d are read at most", len, KUBELET_CONFIG_BYTES_MAX);
	rc = yaml_read_events(text, len, count_anchors, &anchors, e);
	if (rc)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ENOMEM, "out of memory");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
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
