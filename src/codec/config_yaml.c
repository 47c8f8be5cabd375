#include <codec/config_yaml.h>

#include <codec/flat_yaml.h>
#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

enum { KEY_MAX = 256 };

/* A section that says anything of such a list says all of it. */
static const char *const lists[] = {"reservedMemory", "namespaces", "frequencyProfiles"};
enum { NR_LISTS = sizeof lists / sizeof *lists };

/* Which nodes a section is for, as its names and labels have said so far. */
struct section {
	bool has_names, is_named;
	bool has_labels, lacks_label;
};

struct reader {
	const struct config_node *node; /* NULL: none */
	struct config_sections *out;
	struct mistakes *all; /* NULL: the first one ends the reading */
	struct section section[CONFIG_SECTIONS_MAX];
	bool unmatched_off;
	struct settings read;
	/* the second time, section by section */
	unsigned at;
	bool has_list[NR_LISTS]; /* of each, anew */
	struct settings other; /* of nodes that we are not: only whether it can be said */
};

/* One key of the file's top. */
static int take_setting(
	struct settings *s, const char *key, const char *value, unsigned line, struct err *e)
{
	/* a map or list whose lines are all commented out looks like a key without value */
	if (text_equal(value, "") && settings_is_group(key))
		return 0;
	if (!value)
		return err_set(e, EINVAL,
			"line %u: %.64s: an empty map or list does not belong here", line, key);
	int rc = settings_set(s, key, value, e);

	return rc < 0 ? err_add(e, rc, "line %u", line) : 0;
}

/* The part of path behind the first word, which is this one; "": nothing is behind it; NULL: it is
 * another one. */
static const char *path_behind_word(const char *path, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(path, word, len) != 0 || (path[len] && path[len] != '.'))
		return NULL;
	return path[len] ? path + len + 1 : "";
}

/* The same for the number of a section. */
static const char *behind_number(const char *path, unsigned *nr)
{
	size_t len = strcspn(path, ".");
	uint64_t number;

	if (text_u64(path, len, UINT32_MAX, &number, NULL) < 0)
		return NULL;
	*nr = (unsigned)number;
	return path[len] ? path + len + 1 : "";
}

static int section_take_name(struct reader *r, struct section *s, const char *name, struct err *e)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789-.*?";

	if (!*name || name[strspn(name, alphabet)])
		return err_set(e, EINVAL,
			"\"%.64s\" can be no node's name: small letters, digits, '-' and '.', and "
			"* and ? for any",
			name);
	s->has_names = true;
	s->is_named = s->is_named || (r->node && text_fits(r->node->name, name, strlen(name)));
	return 0;
}

static void take_label(struct reader *r, struct section *s, const char *key, const char *value)
{
	const struct config_node *n = r->node;
	bool has = false;

	for (size_t i = 0; n && i < n->nr_labels; i++)
		has = has ||
		      (text_equal(n->labels[i].key, key) && text_equal(n->labels[i].value, value));
	s->has_labels = r->out->by_labels = true;
	s->lacks_label = s->lacks_label || !has;
}

/* What stands in a section. Its settings come in their turn. */
static int take_whom(
	struct reader *r, struct section *s, const char *key, const char *value, struct err *e)
{
	const char *name = path_behind_word(key, "names"), *label = path_behind_word(key, "labels"),
		   *setting = path_behind_word(key, "settings");

	if (name && *name && value)
		return section_take_name(r, s, value, e);
	if (name)
		return err_set(e, EINVAL, "names: a list of nodes' names is expected");
	if (label && *label && value) {
		take_label(r, s, label, value);
		return 0;
	}
	if (label)
		return err_set(e, EINVAL, "labels: a map of nodes' labels is expected");
	if (setting && !*setting && value && *value)
		return err_set(e, EINVAL, "settings: a map is expected");
	return setting ? 0
		       : err_set(e, ENOENT, "%.64s%sa section has names, labels and settings", key,
				 *key ? ": " : "");
}

static int take_in_section(
	struct reader *r, const char *path, const char *value, unsigned line, struct err *e)
{
	unsigned nr = 0;
	const char *key = behind_number(path, &nr);

	if (!*path && (!value || !*value))
		return 0; /* "nodes:" and nothing behind it */
	if (!key)
		return err_set(e, EINVAL, "line %u: nodes: a list of sections is expected", line);
	if (nr >= CONFIG_SECTIONS_MAX)
		return err_set(e, E2BIG, "line %u: nodes: more than %d sections", line,
			CONFIG_SECTIONS_MAX);
	while (r->out->nr < nr) /* of which no key can be read */
		r->out->nr++;
	if (nr == r->out->nr)
		r->out->at[r->out->nr++].line = line;
	int rc = take_whom(r, &r->section[nr], key, value, e);

	return rc < 0 ? err_add(e, rc, "line %u: nodes.%u", line, nr) : 0;
}

/* The first time: all but sections' settings. */
static int config_take_value(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct reader *r = ctx;
	const char *rest = path_behind_word(path, "nodes");

	if (rest)
		return take_in_section(r, rest, value, line, e);
	if (!text_equal(path, "unmatchedNodes")) {
		mistakes_note_key(r->all, path, MISTAKE_IN_FILE, line);
		return take_setting(&r->read, path, value, line, e);
	}
	r->unmatched_off = text_equal(value, "off");
	return r->unmatched_off || text_equal(value, "as-above")
		       ? 0
		       : err_set(e, EINVAL,
				 "line %u: unmatchedNodes: \"%.64s\" is not one of as-above, off",
				 line, value ? value : "");
}

static enum config_match match(const struct reader *r, const struct section *s)
{
	if (!r->node || (s->has_names && !s->is_named))
		return CONFIG_OTHER_NODES;
	if (s->has_labels && !r->node->knows_labels)
		return CONFIG_NEEDS_LABELS;
	return s->lacks_label ? CONFIG_OTHER_NODES : CONFIG_THIS_NODE;
}

static int judge_sections(struct reader *r, struct err *e)
{
	struct config_sections *out = r->out;
	bool matched = false;
	int rc = 0;

	for (unsigned i = 0; i < out->nr; i++) {
		const struct section *s = &r->section[i];

		if (!s->has_names && !s->has_labels && out->at[i].line) {
			rc = err_set(e, EINVAL,
				"line %u: nodes.%u: which nodes it is for is missing: names or "
				"labels",
				out->at[i].line, i);
			if (!r->all)
				return rc;
			mistakes_add(r->all, MISTAKE_IN_FILE, out->at[i].line, e);
		}
		out->at[i].match = match(r, s);
		matched = matched || out->at[i].match == CONFIG_THIS_NODE;
	}
	out->off = r->node && r->unmatched_off && !matched;
	if (out->off)
		r->read.mode = MODE_OFF;
	return rc;
}

/* One key of a section, over what the file's top and earlier sections say. */
static int override(struct reader *r, struct settings *s, const char *key, const char *value,
	unsigned line, struct err *e)
{
	static const char *const of_the_file[] = {"nodeName", "runDirectory"};

	for (size_t i = 0; i < sizeof of_the_file / sizeof *of_the_file; i++)
		if (text_equal(key, of_the_file[i]))
			return err_set(e, EINVAL,
				"line %u: %s: it belongs to the top of the file: what is for a "
				"node is found by it",
				line, key);
	if (!value && settings_is_group(key)) {
		settings_reset(s, key);
		return 0;
	}
	for (size_t i = 0; i < NR_LISTS; i++)
		if (path_behind_word(key, lists[i]) && !r->has_list[i]) {
			settings_reset(s, lists[i]);
			r->has_list[i] = true;
		}
	return take_setting(s, key, value, line, e);
}

/* The second time: sections' settings. */
static int take_override(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct reader *r = ctx;
	const char *rest = path_behind_word(path, "nodes");
	unsigned nr = 0;

	rest = rest ? behind_number(rest, &nr) : NULL;
	rest = rest ? path_behind_word(rest, "settings") : NULL;
	if (!rest || !*rest || nr >= r->out->nr) /* a mistake of the first time */
		return 0;
	bool ours = r->out->at[nr].match == CONFIG_THIS_NODE;
	if (nr != r->at) {
		r->at = nr;
		memset(r->has_list, 0, sizeof r->has_list);
	}
	if (ours)
		mistakes_note_key(r->all, rest, MISTAKE_IN_FILE, line);
	return override(r, ours ? &r->read : &r->other, rest, value, line, e);
}

/* With a list for all mistakes the three go on after those of the ones before, and *s is what was
 * right. */
static int config_yaml_read_all(struct settings *s, const struct config_source *from,
	const struct config_node *node, struct config_sections *sections, struct err *e)
{
	auto_free struct reader *r = xcalloc(1, sizeof *r);
	struct err next = {0};

	*sections = (struct config_sections){0};
	r->node = node;
	r->out = sections;
	r->all = from->all;
	r->read = *s;
	r->at = CONFIG_SECTIONS_MAX;
	int rc = flat_yaml_read(from->text, from->len, config_take_value, r, from->all, e);
	if (!rc || from->all) {
		int judged = judge_sections(r, rc ? &next : e);

		rc = rc ? rc : judged;
	}
	if (!rc || from->all) {
		int read = flat_yaml_read(
			from->text, from->len, take_override, r, from->all, rc ? &next : e);

		rc = rc ? rc : read;
	}
	if (!rc || from->all)
		*s = r->read;
	return rc;
}

int config_yaml_read(struct settings *s, const char *text, size_t len,
	const struct config_node *node, struct config_sections *sections, struct err *e)
{
	const struct config_source from = {.text = text, .len = len};

	return config_yaml_read_all(s, &from, node, sections, e);
}

const char *config_sections_text(
	const struct config_sections *s, char buf[CONFIG_SECTIONS_TEXT_MAX])
{
	static const char *const words[] = {
		[CONFIG_OTHER_NODES] = "for other nodes",
		[CONFIG_THIS_NODE] = "for this node",
		[CONFIG_NEEDS_LABELS] = "by labels, and this node's are not known: not used",
	};
	struct text t;

	text_init(&t, buf, CONFIG_SECTIONS_TEXT_MAX);
	for (unsigned i = 0; i < s->nr; i++)
		text_add(&t, "nodes.%u (line %u): %s\n", i, s->at[i].line, words[s->at[i].match]);
	if (s->off)
		text_add(&t, "no section is for this node, and unmatchedNodes is off: mode off\n");
	return buf;
}

static int set_one(struct settings *s, const char *assignment, struct mistakes *all, struct err *e)
{
	const char *equals = strchr(assignment, '=');
	char key[KEY_MAX];
	struct text t;

	if (!equals)
		return err_set(e, EINVAL, "--set %.64s: KEY=VALUE is expected", assignment);
	text_init(&t, key, sizeof key);
	text_add(&t, "%.*s", (int)(equals - assignment), assignment);
	mistakes_note_key(all, key, MISTAKE_ON_COMMAND_LINE, 0);
	int rc = settings_set(s, key, equals + 1, e);

	return rc ? err_add(e, rc, "--set") : 0;
}

static int config_read_source(struct settings *s, const struct config_source *from,
	const struct config_node *node, struct config_sections *sections, struct err *e)
{
	struct err next = {0};
	int rc = 0;

	settings_init(s);
	mistakes_forget_keys(from->all);
	*sections = (struct config_sections){0};
	if (from->file)
		rc = config_yaml_read_all(s, from, node, sections, e);
	if (rc)
		(void)err_add(e, rc, "config file %s", from->file);
	for (size_t i = 0; i < from->nr_sets && (!rc || from->all); i++) {
		struct err *at = rc ? &next : e;
		int set = set_one(s, from->sets[i], from->all, at);

		if (set)
			mistakes_add(from->all, MISTAKE_ON_COMMAND_LINE, 0, at);
		rc = rc ? rc : set;
	}
	return rc;
}

/* Twice: what the node is called may be said in there. */
int config_settings(struct settings *s, const struct config_source *from,
	const struct config_node *node, struct config_sections *sections, struct err *e)
{
	auto_free struct settings *read = xcalloc(1, sizeof *read);
	struct config_node named = *node;
	char name[NODE_NAME_MAX];
	int rc = config_read_source(read, from, NULL, sections, e);

	if (rc && !from->all)
		return rc;
	if (text_copy(name, sizeof name, read->node_name) && *name)
		named.name = name;
	rc = config_read_source(read, from, &named, sections, e);
	if (!rc || from->all)
		*s = *read;
	return rc;
}
