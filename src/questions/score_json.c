#include <questions/score_json.h>

#include <questions/diff_json.h>
#include <codec/fields_json.h>
#include <codec/nrt_json.h>
#include <codec/numatopology_json.h>
#include <questions/policy_json.h>
#include <plugin-args/score_args_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

/* What a plugin looks at of a node besides the node itself. */
enum topology_kind { WITHOUT_TOPOLOGY, NODE_RESOURCE_TOPOLOGY, NUMATOPOLOGY };

struct candidate {
	struct sched_node node;
	struct sched_topology *topology; /* owned */
	const struct volcano_node *volcano;
};

struct question {
	json_t *item;
	const struct steps *steps;
	struct resource_table names;
	struct sched_reader r;
	struct sched_pod pod;
	struct candidate *at;
	size_t nr;
};

/* Reading. */

static int check_keys(json_t *object, const char *const *known, size_t nr, struct err *e)
{
	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
		const char *key = json_object_iter_key(it);
		size_t i = 0;

		while (i < nr && strcmp(known[i], key))
			i++;
		if (i == nr)
			return err_set(e, EINVAL, "unknown key \"%.64s\"", key);
	}
	return 0;
}

static int score_read_pods(
	const json_t *v, struct question *q, struct sched_node *out, struct err *e)
{
	json_t *list;
	int rc = json_member_list(v, "pods", &list, e);

	if (rc)
		return rc;
	struct sched_pod *pods = arena_array(q->r.arena, json_array_size(list), sizeof *pods);
	if (!pods && json_array_size(list))
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < json_array_size(list); i++)
		if ((rc = sched_pod_json_read(json_array_get(list, i), &q->r, &pods[i], e)))
			return err_add(e, rc, "pods[%zu]", i);
	out->pods = pods;
	out->nr_pods = json_array_size(list);
	return 0;
}

static int score_read_volcano(json_t *v, struct question *q, struct candidate *out, struct err *e)
{
	struct volcano_node *node = arena_alloc(q->r.arena, sizeof *node);

	if (!node)
		return err_set(e, ENOMEM, "too large");
	out->volcano = node;
	return numatopology_json_read(v, q->r.arena, node, e);
}

static int score_read_topology(const json_t *v, enum topology_kind kind, struct question *q,
	struct candidate *out, struct err *e)
{
	json_t *topology = json_member(v, "topology");
	int rc = 0;

	if (!topology)
		return 0;
	if (kind == NODE_RESOURCE_TOPOLOGY)
		rc = nrt_json_read(topology, &q->r, &out->topology, e);
	else if (kind == NUMATOPOLOGY)
		rc = score_read_volcano(topology, q, out, e);
	out->node.topology = out->topology;
	return rc ? err_add(e, rc, "topology") : 0;
}

static int score_read_candidate(json_t *v, enum topology_kind kind, struct question *q,
	struct candidate *out, struct err *e)
{
	static const char *const keys[] = {"node", "topology", "pods"};

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = check_keys(v, keys, sizeof keys / sizeof *keys, e);
	if (!rc && (rc = sched_node_json_read(json_object_get(v, "node"), &q->r, &out->node, e)))
		rc = err_add(e, rc, "node");
	if (!rc)
		rc = score_read_pods(v, q, &out->node, e);
	return rc ? rc : score_read_topology(v, kind, q, out, e);
}

/* The nodes and the pod. */
static int score_read_objects(struct question *q, enum topology_kind kind, struct err *e)
{
	json_t *nodes = json_object_get(q->item, "nodes");

	if (!json_is_array(nodes))
		return err_add(e, json_want("a list", nodes, e), "nodes");
	q->at = arena_array(q->r.arena, json_array_size(nodes), sizeof *q->at);
	if (!q->at && json_array_size(nodes))
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int rc =
			score_read_candidate(json_array_get(nodes, i), kind, q, &q->at[q->nr++], e);

		if (rc)
			return err_add(e, rc, "nodes[%zu]", i);
	}
	int rc = sched_pod_json_read(json_object_get(q->item, "pod"), &q->r, &q->pod, e);
	return rc ? err_add(e, rc, "pod") : 0;
}

/* Answers. */

static void score_put(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

/* A node's answer, not scored yet; why becomes part of it. */
static json_t *score_add_node(
	json_t *nodes, const struct sched_node *n, enum sched_code code, json_t *why)
{
	json_t *node = json_object();

	score_put(node, "name", json_string(n->name));
	score_put(node, "fits", json_boolean(code == SCHED_SUCCESS));
	score_put(node, "code", json_string(sched_code_words[code]));
	score_put(node, "why", why);
	score_put(node, "score", json_null());
	(void)json_array_append_new(nodes, node);
	return node;
}

static json_t *one_reason(const char *why)
{
	json_t *list = json_array();

	if (*why)
		(void)json_array_append_new(list, json_message(why));
	return list;
}

static void put_score(const struct question *q, json_t *node, int64_t score)
{
	score_put(node, "score", json_integer(score));
	steps_add(q->steps, "score %lld", (long long)score);
}

static struct fit_view view_of(const struct question *q, size_t i)
{
	steps_add(q->steps, "node %s", q->at[i].node.name);
	return (struct fit_view){&q->names, &q->at[i].node, &q->pod};
}

static int64_t *scores_of(struct question *q, struct err *e)
{
	int64_t *score = arena_array(q->r.arena, q->nr + 1, sizeof *score);

	if (!score)
		(void)err_set(e, ENOMEM, "too large");
	return score;
}

/* NodeResourcesFit */

static json_t *lack_texts(const struct question *q, const unsigned *lacks, unsigned nr)
{
	json_t *why = json_array();

	for (unsigned i = 0; i < nr; i++)
		(void)json_array_append_new(
			why, lacks[i] == RESOURCE_PODS
				     ? json_string("Too many pods")
				     : json_sprintf("Insufficient %s", q->names.at[lacks[i]].name));
	return why;
}

static int answer_fit(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	struct fit_args a;
	int rc = fit_args_json_read(args, &q->r, &a, p, e);

	if (rc || (rc = score_read_objects(q, WITHOUT_TOPOLOGY, e)))
		return rc;
	unsigned nr, *lacks = arena_array(q->r.arena, q->names.nr, sizeof *lacks);
	if (!lacks)
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < q->nr; i++) {
		struct fit_view v = view_of(q, i);
		enum sched_code code = fit_filter(&v, &a.ignored, lacks, &nr);
		json_t *node = score_add_node(
			json_object_get(result, "nodes"), v.node, code, lack_texts(q, lacks, nr));

		if (code == SCHED_SUCCESS)
			put_score(q, node, generic_raw(&a.score, &v, q->steps));
	}
	return 0;
}

/* NodeResourcesBalancedAllocation */

static bool asks_for_any(const struct question *q, const struct resource_weights *w)
{
	for (unsigned i = 0; i < w->nr; i++)
		if (fit_request(&q->names, &q->pod, w->at[i].resource, FIT_MISSING_IS_NOTHING))
			return true;
	return false;
}

static int answer_balanced(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	struct resource_weights w;
	int rc = balanced_args_json_read(args, &q->r, &w, p, e);

	if (rc || (rc = score_read_objects(q, WITHOUT_TOPOLOGY, e)))
		return rc;
	bool skip = !asks_for_any(q, &w);
	if (skip)
		score_put(result, "prescore", json_string("Skip"));
	for (size_t i = 0; i < q->nr; i++) {
		struct fit_view v = view_of(q, i);
		json_t *node = score_add_node(
			json_object_get(result, "nodes"), v.node, SCHED_SUCCESS, json_array());

		if (!skip)
			put_score(q, node, generic_balance_gain(&w, &v, q->steps));
	}
	return 0;
}

/* NodeResourcesAllocatable and GenericNodeResources */

static int put_generic(struct question *q, const struct generic_args *g, bool with_raw,
	json_t *nodes, struct err *e)
{
	int64_t *score = scores_of(q, e);

	if (!score)
		return -ENOMEM;
	for (size_t i = 0; i < q->nr; i++) {
		struct fit_view v = view_of(q, i);

		score[i] = generic_raw(g, &v, q->steps);
		json_t *node = score_add_node(nodes, v.node, SCHED_SUCCESS, json_array());
		if (with_raw)
			score_put(node, "raw", json_integer(score[i]));
	}
	if (!generic_is_final(g))
		generic_normalise(score, q->nr);
	for (size_t i = 0; i < q->nr; i++) {
		steps_add(q->steps, "node %s", q->at[i].node.name);
		put_score(q, json_array_get(nodes, i), score[i]);
	}
	return 0;
}

static int answer_allocatable(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	struct generic_args g;
	int rc = allocatable_args_json_read(args, &q->r, &g, p, e);

	if (!rc)
		rc = score_read_objects(q, WITHOUT_TOPOLOGY, e);
	return rc ? rc : put_generic(q, &g, true, json_object_get(result, "nodes"), e);
}

static int answer_generic(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	struct generic_args g;
	int rc = generic_args_json_read(args, &q->r, &g, p, e);

	if (!rc)
		rc = score_read_objects(q, WITHOUT_TOPOLOGY, e);
	return rc ? rc : put_generic(q, &g, false, json_object_get(result, "nodes"), e);
}

/* NodeResourceTopologyMatch */

static json_t *zone_ids(const struct sched_topology *t, uint64_t zones)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->nr_zones; i++)
		if (zones >> i & 1)
			(void)json_array_append_new(list, json_integer(t->zone_id[i]));
	return list;
}

static void put_zones(const struct question *q, const struct nrt_ask *ask,
	const struct sched_topology *t, json_t *node)
{
	json_t *zones = json_object();
	bool whole = t && t->scope == SCOPE_POD;

	for (unsigned i = 0; t && i < (whole ? 1 : q->pod.nr_containers); i++)
		if (nrt_taken(ask, i))
			score_put(zones, whole ? "*" : q->pod.container[i].name,
				zone_ids(t, nrt_taken(ask, i)));
	score_put(node, "zones", zones);
}

static void put_match(struct question *q, struct nrt_ask *ask, struct candidate *c,
	const struct nrt_args *a, json_t *nodes)
{
	if (a->over_reserve && !a->discard_reserved && c->topology) {
		struct sched_topology *shown =
			nrt_over_reserve(c->topology, c->node.pods, c->node.nr_pods);

		sched_topology_free(c->topology);
		c->node.topology = c->topology = shown;
	}
	steps_add(q->steps, "node %s", c->node.name);
	enum nrt_reason why = nrt_filter(ask, &c->node);
	json_t *node = score_add_node(nodes, &c->node,
		why == NRT_FITS ? SCHED_SUCCESS : SCHED_UNSCHEDULABLE,
		one_reason(why == NRT_FITS ? "" : nrt_reason_texts[why]));
	if (why != NRT_FITS)
		return;
	put_score(q, node, nrt_score(ask, &c->node));
	put_zones(q, ask, c->topology, node);
}

static int answer_match(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	struct nrt_args a;
	int rc = nrt_args_json_read(args, &q->r, &a, p, e);

	if (rc || (rc = score_read_objects(q, NODE_RESOURCE_TOPOLOGY, e)))
		return rc;
	a.compat = json_is_true(json_object_get(q->item, "compat"));
	struct nrt_ask *ask = nrt_ask_new(&q->pod, &a, &q->names);
	nrt_ask_listen(ask, q->steps);
	for (size_t i = 0; i < q->nr; i++)
		put_match(q, ask, &q->at[i], &a, json_object_get(result, "nodes"));
	nrt_ask_free(ask);
	return 0;
}

/* numa-aware */

static void put_cpus(const struct volcano_answer *a, const struct volcano_node *n, json_t *node)
{
	char list[CPUSET_TEXT_MAX];

	if (!n || cpuset_empty(&a->cpus))
		return;
	json_t *ids = json_array();
	score_put(node, "cpus", json_string(cpuset_format(&a->cpus, list, sizeof list)));
	nodeset_each (i, a->nodes)
		(void)json_array_append_new(ids, json_integer(n->ids.id[i]));
	score_put(node, "zones", json_pack("{s:o}", "*", ids));
}

static int answer_volcano(
	struct question *q, json_t *args, json_t *result, struct args_problems *p, struct err *e)
{
	json_t *nodes = json_object_get(result, "nodes");
	int64_t weight, *score;
	size_t nr = 0;
	int rc = volcano_args_json_read(args, &q->r, &weight, p, e);

	if (rc || (rc = score_read_objects(q, NUMATOPOLOGY, e)))
		return rc;
	if (!(score = scores_of(q, e)))
		return -ENOMEM;
	for (size_t i = 0; i < q->nr; i++) {
		struct fit_view v = view_of(q, i);
		struct volcano_answer a;

		volcano_predicate(q->at[i].volcano, &q->pod, &a, q->steps);
		put_cpus(&a, q->at[i].volcano,
			score_add_node(nodes, v.node, a.code, one_reason(a.why)));
		if (a.code == SCHED_SUCCESS)
			score[nr++] = nodeset_count(a.nodes);
	}
	if (!volcano_scores(&q->pod))
		return 0;
	volcano_score(score, nr, weight);
	for (size_t i = 0, scored = 0; i < q->nr; i++) {
		json_t *node = json_array_get(nodes, i);

		if (!json_is_true(json_object_get(node, "fits")))
			continue;
		steps_add(q->steps, "node %s", q->at[i].node.name);
		put_score(q, node, score[scored++]);
	}
	return 0;
}

/* Questions. */

static const struct plugin {
	const char *name;
	/* 0; 1: it refuses its arguments, *p says why; negative: the question cannot be read. */
	int (*answer)(struct question *q, json_t *args, json_t *result, struct args_problems *p,
		struct err *e);
} plugins[] = {
	{"NodeResourceTopologyMatch", answer_match},
	{"NodeResourcesFit", answer_fit},
	{"NodeResourcesBalancedAllocation", answer_balanced},
	{"NodeResourcesAllocatable", answer_allocatable},
	{"GenericNodeResources", answer_generic},
	{"numa-aware", answer_volcano},
};
enum { NR_PLUGINS = sizeof plugins / sizeof *plugins };

static const struct plugin *find_plugin(json_t *item, struct err *e)
{
	static const char *const keys[] = {"name", "plugin", "compat", "args", "nodes", "pod",
		"expected", "reproduces", "upstream_bug"};
	json_t *plugin = json_object_get(item, "plugin"), *compat = json_object_get(item, "compat");

	if (check_keys(item, keys, sizeof keys / sizeof *keys, e))
		return NULL;
	if (compat && !json_is_boolean(compat)) {
		(void)err_add(e, json_want("true or false", compat, e), "compat");
		return NULL;
	}
	if (!json_is_string(plugin)) {
		(void)err_add(e, json_want("a string", plugin, e), "plugin");
		return NULL;
	}
	for (unsigned i = 0; i < NR_PLUGINS; i++)
		if (text_equal(plugins[i].name, json_string_value(plugin)))
			return &plugins[i];
	(void)err_set(e, EINVAL, "plugin: there is no \"%.64s\"", json_string_value(plugin));
	return NULL;
}

int score_json_answer(
	json_t *item, const struct steps *steps, struct arena *a, json_t **result, struct err *e)
{
	struct question q = {.item = item, .steps = steps};
	struct args_problems p = {0};
	char text[ARGS_PROBLEMS_MAX + sizeof "[]"];
	int rc;

	if (!json_is_object(item))
		return json_want("an object", item, e);
	const struct plugin *plugin = find_plugin(item, e);
	if (!plugin)
		return -EINVAL;
	resource_table_init(&q.names);
	q.r = (struct sched_reader){&q.names, a};
	json_t *out = json_pack("{s:[]}", "nodes");
	rc = plugin->answer(&q, json_member(item, "args"), out, &p, e);
	if (rc > 0) {
		json_decref(out);
		out = json_pack(
			"{s:o}", "error", json_message(args_problems_text(&p, text, sizeof text)));
	}
	for (size_t i = 0; i < q.nr; i++)
		sched_topology_free(q.at[i].topology);
	resource_table_fini(&q.names);
	if (rc < 0)
		json_decref(out);
	else
		*result = out;
	return rc < 0 ? rc : 0;
}

/* Checking. */

/* What result has of the keys that wanted has, the nodes' likewise; informative ones are left out
 * of both. */
static json_t *common(json_t *wanted, json_t *result)
{
	json_t *out = json_object();

	for (void *it = json_object_iter(wanted); it; it = json_object_iter_next(wanted, it)) {
		const char *key = json_object_iter_key(it);
		json_t *got = json_object_get(result, key);

		if (got && strcmp(key, "cpus"))
			(void)json_object_set(out, key, got);
	}
	return out;
}

static json_t *pruned(json_t *wanted, json_t *result)
{
	json_t *out = common(wanted, result), *nodes = json_object_get(wanted, "nodes");
	json_t *list = json_array(), *got = json_object_get(result, "nodes");

	for (size_t i = 0; i < json_array_size(got); i++) {
		json_t *w = json_array_get(nodes, i), *g = json_array_get(got, i);

		(void)json_array_append_new(list, w ? common(w, g) : json_incref(g));
	}
	if (nodes && got)
		(void)json_object_set(out, "nodes", list);
	json_decref(list);
	return out;
}

/* The place and what kind of mistake it is: all before the first value; the fields that nobody
 * knows are themselves the place. */
static size_t place_length(const char *error)
{
	static const char unknown[] = "strict decoding error: ";
	const char *kind = strstr(error, ": "), *detail = kind ? strstr(kind + 2, ": ") : NULL;

	if (!detail || !strncmp(error, unknown, sizeof unknown - 1))
		return strlen(error);
	return (size_t)(detail - error);
}

/* The wanted error in place of ours, where both mean the same. */
static void forgive_wording(json_t *wanted, json_t *result)
{
	json_t *w = json_object_get(wanted, "error");
	const char *a = json_string_value(w),
		   *b = json_string_value(json_object_get(result, "error"));

	if (a && b && place_length(a) == place_length(b) && !strncmp(a, b, place_length(a)))
		(void)json_object_set(result, "error", w);
}

int score_json_check(json_t *item, json_t *result,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	json_t *expected = json_object_get(item, "expected");

	if (!expected)
		return -ENOENT;
	if (json_is_null(expected))
		return 0;
	json_t *wanted = pruned(expected, expected), *got = pruned(expected, result);
	forgive_wording(wanted, got);
	int nr = json_diff(wanted, got, differs, ctx);
	json_decref(wanted);
	json_decref(got);
	return nr;
}
