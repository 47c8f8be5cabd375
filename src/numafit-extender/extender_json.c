#include <numafit-extender/extender_json.h>

#include <codec/api_json.h>
#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 32, DECIMAL = 10 };

/* Reading without values: filter and prioritize */

/* The member of that name, in whatever case. null is not there. */
static bool span_find_member(struct span v, const char *name, struct span *out)
{
	struct span_walk w = span_walk(v);
	struct span key, value, plain;
	bool found = false;

	while (w.object && span_next(&w, &key, &value)) {
		if (!span_plain(key, &plain) || plain.len != strlen(name) ||
			strncasecmp(plain.at, name, plain.len) != 0)
			continue;
		*out = value;
		found = span_kind(value) != 'n';
	}
	return found;
}

/* A name such as nodes have: nothing in it is ever escaped. */
static int extender_take_name(struct span string, struct arena *a, const char **out, struct err *e)
{
	struct span plain;

	if (span_kind(string) != '"')
		return err_set(e, EINVAL, "should be a string");
	if (!span_plain(string, &plain) || !plain.len)
		return err_set(e, EINVAL, "%.*s is no node's name",
			string.len < NUMBER_MAX ? (int)string.len : NUMBER_MAX, string.at);
	*out = arena_strndup(a, plain.at, plain.len);
	return *out ? 0 : err_set(e, ENOMEM, "too large");
}

static int extender_read_name_of(struct span node, struct arena *a, const char **out, struct err *e)
{
	struct span metadata = {0}, name = {0};

	if (span_kind(node) != '{')
		return err_set(e, EINVAL, "should be an object");
	if (!span_member(node, "metadata", &metadata) || !span_member(metadata, "name", &name))
		return err_set(e, EINVAL, "has no metadata.name");
	int rc = extender_take_name(name, a, out, e);
	return rc ? err_add(e, rc, "metadata.name") : 0;
}

/* What becomes values. */
static int check_length(size_t len, size_t max, struct err *e)
{
	return len <= max ? 0 : err_set(e, EINVAL, "too long: %zu bytes of %zu", len, max);
}

static int extender_read_nodes(
	struct span list, struct extender_args *out, const char *what, struct err *e)
{
	struct span_walk w = span_walk(list);
	struct span key, value;

	if (span_kind(list) != '[')
		return err_set(e, EINVAL, "%s: should be a list", what);
	if (span_count(list) > EXTENDER_NODES_MAX)
		return err_set(e, EINVAL, "%s: more than %d nodes", what, EXTENDER_NODES_MAX);
	out->node = arena_array(&out->arena, span_count(list) + 1, sizeof *out->node);
	if (!out->node)
		return err_set(e, ENOMEM, "%s: too large", what);
	while (span_next(&w, &key, &value)) {
		struct extender_node *n = &out->node[out->nr];
		int rc = out->by_name ? extender_take_name(value, &out->arena, &n->name, e)
				      : extender_read_name_of(value, &out->arena, &n->name, e);

		if (rc)
			return err_add(e, rc, "%s[%zu]", what, out->nr);
		n->object = value;
		out->nr++;
	}
	return 0;
}

static int extender_read_pod(struct span root, struct json_t **out, struct err *e)
{
	struct span pod;

	if (!span_find_member(root, "Pod", &pod) || span_kind(pod) != '{')
		return err_set(e, EINVAL, "Pod: should be an object");
	int rc = check_length(pod.len, EXTENDER_POD_TEXT_MAX, e);
	if (!rc)
		rc = api_json_parse(pod.at, pod.len, out, e);
	return rc ? err_add(e, rc, "Pod") : 0;
}

static int extender_read_args(struct span root, struct extender_args *out, struct err *e)
{
	struct span nodes, items;
	int rc = span_kind(root) == '{' ? extender_read_pod(root, &out->pod, e)
					: err_set(e, EINVAL, "should be an object");

	if (rc)
		return rc;
	out->by_name = !span_find_member(root, "Nodes", &nodes);
	if (out->by_name)
		return span_find_member(root, "NodeNames", &nodes)
			       ? extender_read_nodes(nodes, out, "NodeNames", e)
			       : 0;
	if (span_kind(nodes) != '{')
		return err_set(e, EINVAL, "Nodes: should be an object");
	(void)span_find_member(nodes, "metadata", &out->list_metadata);
	return span_find_member(nodes, "items", &items)
		       ? extender_read_nodes(items, out, "Nodes.items", e)
		       : 0;
}

int extender_args_read(const char *text, size_t len, struct extender_args *out, struct err *e)
{
	enum { NODE_BYTES = 64 }; /* at most, for each byte "," and "0" of a list */
	struct span root;
	int rc = span_read(text, len, &root, e);

	*out = (struct extender_args){0};
	if (rc)
		return rc;
	arena_init(&out->arena, (len + 1) * NODE_BYTES);
	rc = extender_read_args(root, out, e);
	if (rc)
		extender_args_fini(out);
	return rc;
}

void extender_args_fini(struct extender_args *a)
{
	json_decref(a->pod);
	arena_fini(&a->arena);
	*a = (struct extender_args){0};
}

/* Writing */

struct out {
	VEC(char);
};

static void out_add(struct out *o, const char *text, size_t len)
{
	if (o->cap - o->nr < len) {
		o->cap = 2 * (o->cap + len);
		o->at = xrealloc(o->at, o->cap, 1);
	}
	memcpy(o->at + o->nr, text, len);
	o->nr += len;
}

static void out_add_text(struct out *o, const char *text)
{
	out_add(o, text, strlen(text));
}

static void add_span(struct out *o, struct span v)
{
	out_add(o, v.at, v.len);
}

static void add_escaped(struct out *o, const char *s)
{
	char escape[sizeof "\\u0000"];
	size_t plain;

	for (; *s; s++) {
		plain = 0;
		while ((unsigned char)s[plain] >= ' ' && s[plain] != '"' && s[plain] != '\\')
			plain++;
		out_add(o, s, plain);
		s += plain;
		if (!*s)
			return;
		(void)snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*s);
		out_add_text(o, escape);
	}
}

static void out_add_number(struct out *o, int64_t n)
{
	char digits[NUMBER_MAX], *at = digits + sizeof digits;
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;

	do
		*--at = (char)('0' + left % DECIMAL);
	while (left /= DECIMAL);
	if (n < 0)
		*--at = '-';
	out_add(o, at, (size_t)(digits + sizeof digits - at));
}

static void add_string(struct out *o, const char *s)
{
	out_add_text(o, "\"");
	add_escaped(o, s);
	out_add_text(o, "\"");
}

static char *out_finish(struct out *o, size_t *len)
{
	*len = o->nr;
	out_add(o, "", 1);
	return o->at;
}

/* The nodes that fit, in the form in which they came. */
static void add_fitting(
	struct out *o, const struct extender_args *a, const struct extender_verdict *v)
{
	const char *between = "";

	for (size_t i = 0; i < a->nr; i++) {
		if (v[i].why)
			continue;
		out_add_text(o, between);
		add_span(o, a->node[i].object);
		between = ",";
	}
}

static void add_failed(struct out *o, const struct extender_args *a,
	const struct extender_verdict *v, bool unresolvable)
{
	const char *between = "";

	out_add_text(o, "{");
	for (size_t i = 0; i < a->nr; i++) {
		if (!v[i].why || v[i].unresolvable != unresolvable)
			continue;
		out_add_text(o, between);
		add_string(o, a->node[i].name);
		out_add_text(o, ":\"numafit: ");
		add_escaped(o, v[i].why);
		out_add_text(o, "\"");
		between = ",";
	}
	out_add_text(o, "}");
}

char *extender_filter_write(
	const struct extender_args *a, const struct extender_verdict *verdict, size_t *len)
{
	struct out o = {0};

	if (a->by_name) {
		out_add_text(&o, "{\"Nodes\":null,\"NodeNames\":[");
		add_fitting(&o, a, verdict);
		out_add_text(&o, "]");
	} else {
		out_add_text(&o, "{\"Nodes\":{\"metadata\":");
		if (a->list_metadata.len)
			add_span(&o, a->list_metadata);
		else
			out_add_text(&o, "{}");
		out_add_text(&o, ",\"items\":[");
		add_fitting(&o, a, verdict);
		out_add_text(&o, "]},\"NodeNames\":null");
	}
	out_add_text(&o, ",\"FailedNodes\":");
	add_failed(&o, a, verdict, false);
	out_add_text(&o, ",\"FailedAndUnresolvableNodes\":");
	add_failed(&o, a, verdict, true);
	out_add_text(&o, ",\"Error\":\"\"}");
	return out_finish(&o, len);
}

char *extender_scores_write(const struct extender_args *a, const int64_t *score, size_t *len)
{
	struct out o = {0};

	out_add_text(&o, "[");
	for (size_t i = 0; i < a->nr; i++) {
		out_add_text(&o, i ? ",{\"Host\":" : "{\"Host\":");
		add_string(&o, a->node[i].name);
		out_add_text(&o, ",\"Score\":");
		out_add_number(&o, score[i]);
		out_add_text(&o, "}");
	}
	out_add_text(&o, "]");
	return out_finish(&o, len);
}

char *extender_bind_write(const char *error, size_t *len)
{
	struct out o = {0};

	out_add_text(&o, "{\"Error\":");
	add_string(&o, error);
	out_add_text(&o, "}");
	return out_finish(&o, len);
}

/* Reading with values: preempt and bind */

static json_t *member_in_any_case(json_t *object, const char *name)
{
	json_t *found = NULL;

	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
		if (strcasecmp(json_object_iter_key(it), name) == 0)
			found = json_object_iter_value(it);
	return json_is_null(found) ? NULL : found;
}

static int extender_read_string(json_t *object, const char *name, const char **out, struct err *e)
{
	const json_t *v = member_in_any_case(object, name);

	if (!json_is_string(v))
		return err_add(e, json_want("a string", v, e), "%s", name);
	*out = json_string_value(v);
	return **out ? 0 : err_set(e, EINVAL, "%s: is empty", name);
}

static int extender_read_victims(
	json_t *v, bool meta, struct arena *a, struct extender_victims *out, struct err *e)
{
	const json_t *pods = member_in_any_case(v, "Pods");

	out->pdb_violations = json_integer_value(member_in_any_case(v, "NumPDBViolations"));
	if (pods && !json_is_array(pods))
		return err_add(e, json_want("a list", pods, e), "Pods");
	out->uid = arena_array(a, json_array_size(pods), sizeof *out->uid);
	if (!out->uid && json_array_size(pods))
		return err_set(e, ENOMEM, "too large");
	for (; out->nr < json_array_size(pods); out->nr++) {
		json_t *pod =
			json_array_get(pods, out->nr); /* {"UID": ...} of a MetaPod, or whole */
		int rc = extender_read_string(meta ? pod : json_object_get(pod, "metadata"),
			meta ? "UID" : "uid", &out->uid[out->nr], e);

		if (rc)
			return err_add(e, rc, "Pods[%zu]", out->nr);
	}
	return 0;
}

static int extender_read_map(json_t *map, bool meta, struct extender_preempt *out, struct err *e)
{
	if (!map)
		return 0;
	if (!json_is_object(map))
		return json_want("an object", map, e);
	out->at = arena_array(&out->arena, json_object_size(map), sizeof *out->at);
	if (!out->at && json_object_size(map))
		return err_set(e, ENOMEM, "too large");
	for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
		struct extender_victims *v = &out->at[out->nr++];

		v->node = json_object_iter_key(it);
		int rc = extender_read_victims(json_object_iter_value(it), meta, &out->arena, v, e);
		if (rc)
			return err_add(e, rc, "%.64s", v->node);
	}
	return 0;
}

int extender_preempt_read(const char *text, size_t len, struct extender_preempt *out, struct err *e)
{
	enum { VICTIM_BYTES = 64 };
	json_t *victims;

	*out = (struct extender_preempt){0};
	int rc = check_length(len, EXTENDER_PREEMPT_TEXT_MAX, e);
	if (!rc)
		rc = api_json_parse(text, len, &out->root, e);
	if (rc)
		return rc;
	arena_init(&out->arena, (len + 1) * VICTIM_BYTES);
	out->pod = member_in_any_case(out->root, "Pod");
	victims = member_in_any_case(out->root, "NodeNameToVictims");
	if (!json_is_object(out->pod))
		rc = err_add(e, json_want("an object", out->pod, e), "Pod");
	else if (victims && (rc = extender_read_map(victims, false, out, e)))
		rc = err_add(e, rc, "NodeNameToVictims");
	else if (!victims &&
		 (rc = extender_read_map(
			  member_in_any_case(out->root, "NodeNameToMetaVictims"), true, out, e)))
		rc = err_add(e, rc, "NodeNameToMetaVictims");
	if (rc)
		extender_preempt_fini(out);
	return rc;
}

void extender_preempt_fini(struct extender_preempt *p)
{
	json_decref(p->root);
	arena_fini(&p->arena);
	*p = (struct extender_preempt){0};
}

char *extender_preempt_write(const struct extender_preempt *p, size_t *len)
{
	const char *between = "";
	struct out o = {0};

	out_add_text(&o, "{\"NodeNameToMetaVictims\":{");
	for (size_t i = 0; i < p->nr; i++) {
		const struct extender_victims *v = &p->at[i];

		if (v->dropped)
			continue;
		out_add_text(&o, between);
		add_string(&o, v->node);
		out_add_text(&o, ":{\"Pods\":[");
		for (size_t k = 0; k < v->nr; k++) {
			out_add_text(&o, k ? ",{\"UID\":" : "{\"UID\":");
			add_string(&o, v->uid[k]);
			out_add_text(&o, "}");
		}
		out_add_text(&o, "],\"NumPDBViolations\":");
		out_add_number(&o, v->pdb_violations);
		out_add_text(&o, "}");
		between = ",";
	}
	out_add_text(&o, "}}");
	return out_finish(&o, len);
}

int extender_bind_read(const char *text, size_t len, struct extender_bind *out, struct err *e)
{
	*out = (struct extender_bind){0};
	int rc = check_length(len, EXTENDER_BIND_TEXT_MAX, e);

	if (!rc)
		rc = api_json_parse(text, len, &out->root, e);
	if (!rc)
		rc = extender_read_string(out->root, "PodName", &out->name, e);
	if (!rc)
		rc = extender_read_string(out->root, "PodNamespace", &out->ns, e);
	if (!rc)
		rc = extender_read_string(out->root, "PodUID", &out->uid, e);
	if (!rc)
		rc = extender_read_string(out->root, "Node", &out->node, e);
	if (rc)
		extender_bind_fini(out);
	return rc;
}

void extender_bind_fini(struct extender_bind *b)
{
	json_decref(b->root);
	*b = (struct extender_bind){0};
}
