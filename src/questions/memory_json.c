#include <questions/memory_json.h>

#include <codec/fields_json.h>
#include <questions/memory_play.h>
#include <codec/pod_json.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

/* A node's bytes are small enough that the sum over all nodes is a number. */
static const uint64_t node_bytes_max = UINT64_C(1) << 56;
static const char hugepages[] = "hugepages-";
enum { KIND_NAME_MAX = TEXT_SIZE_MAX + 10 };

/* The machine and its configuration, and how its kinds of memory are called. */
struct setup {
	struct topo t;
	struct settings s;
	struct reserved_memory node_allocatable[RESERVED_MEMORY_MAX];
	unsigned nr_node_allocatable;
	unsigned kinds[NODES_MAX]; /* bit k: the node has kind k, if only 0 bytes */
	char kind_name[TOPO_KINDS][KIND_NAME_MAX];
	unsigned by_name[TOPO_KINDS]; /* kinds in order of their names */
};

static bool is_memory(const char *type)
{
	return text_equal(type, "memory") || strncmp(type, hugepages, sizeof hugepages - 1) == 0;
}

/* ---- reading ---- */

static int memory_json_read_hugepages(json_t *sizes, struct setup *u, unsigned node, struct err *e)
{
	for (void *it = json_object_iter(sizes); it; it = json_object_iter_next(sizes, it)) {
		const char *type = json_object_iter_key(it);
		bool huge = strncmp(type, hugepages, sizeof hugepages - 1) == 0;
		uint64_t page = huge ? page_bytes_from_name(type + sizeof hugepages - 1) : 0, pages;

		if (!page)
			return err_set(e, EINVAL, "\"%.64s\" is no size of huge pages", type);
		int rc = json_number(json_object_iter_value(it), node_bytes_max / page, &pages, e);
		if (!rc)
			rc = topo_set_memory(&u->t, node, page, pages * page, e);
		if (rc)
			return err_add(e, rc, "%.64s", type);
	}
	return 0;
}

static int memory_json_read_node(json_t *v, struct setup *u, struct err *e)
{
	static const char *const keys[] = {"id", "memory", "hugepages", NULL};
	json_t *sizes = json_object_get(v, "hugepages");
	uint64_t id = (uint64_t)json_integer_value(json_object_get(v, "id")), bytes;
	int rc = json_only_keys(v, keys, e), node;

	if (rc)
		return rc;
	if (sizes && !json_is_object(sizes))
		return err_add(e, json_want("an object", sizes, e), "hugepages");
	rc = json_quantity_count(json_object_get(v, "memory"), QUANTITY_WHOLE, &bytes, e);
	if (!rc && bytes > node_bytes_max)
		rc = err_set(e, ERANGE, "is above 64Pi");
	if (rc)
		return err_add(e, rc, "memory");
	node = topo_add_node(&u->t, (unsigned)id, e);
	if (node < 0)
		return node;
	/* the machine is no machine without a CPU; nothing here looks at it */
	rc = node ? 0 : topo_add_cpu(&u->t, 0, 0, 0, 0, 0, e);
	if (!rc)
		rc = topo_set_memory(&u->t, (unsigned)node, 0, bytes, e);
	if (rc)
		return rc;
	rc = memory_json_read_hugepages(sizes, u, (unsigned)node, e);
	return rc ? err_add(e, rc, "hugepages") : 0;
}

/* A node's kinds are known once the machine's are. */
static void note_kinds(const json_t *v, struct setup *u, unsigned node)
{
	json_t *sizes = json_object_get(v, "hugepages");

	u->kinds[node] = 1;
	for (void *it = json_object_iter(sizes); it; it = json_object_iter_next(sizes, it)) {
		const char *size = json_object_iter_key(it) + sizeof hugepages - 1;

		u->kinds[node] |= 1u << topo_kind_of_page(&u->t, page_bytes_from_name(size));
	}
}

static void name_kinds(struct setup *u)
{
	for (unsigned k = 0; k < u->t.nr_kinds; k++) {
		unsigned at = k;

		(void)topo_kind_name(&u->t, k, u->kind_name[k], sizeof u->kind_name[k]);
		for (; at && strcmp(u->kind_name[u->by_name[at - 1]], u->kind_name[k]) > 0; at--)
			u->by_name[at] = u->by_name[at - 1];
		u->by_name[at] = k;
	}
}

/* Nodes may come in any order; the machine wants them by ascending id. */
static int sort_nodes(const json_t *nodes, json_t **sorted, unsigned *nr, struct err *e)
{
	if (!json_is_array(nodes) || !json_array_size(nodes))
		return json_want("a list of nodes", nodes, e);
	if (json_array_size(nodes) > MEMORY_JSON_NODES_MAX)
		return err_set(e, ERANGE, "%zu NUMA nodes, hints are listed for at most %d",
			json_array_size(nodes), MEMORY_JSON_NODES_MAX);
	for (*nr = 0; *nr < json_array_size(nodes); (*nr)++) {
		json_t *v = json_array_get(nodes, *nr);
		unsigned at = *nr;
		uint64_t id;
		int rc = json_number(json_object_get(v, "id"), NODE_ID_MAX, &id, e);

		if (rc)
			return err_add(e, rc, "element %u: id", *nr);
		for (; at &&
			json_integer_value(json_object_get(sorted[at - 1], "id")) > (json_int_t)id;
			at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = v;
	}
	return 0;
}

static int memory_json_read_machine(const json_t *nodes, struct setup *u, struct err *e)
{
	json_t *sorted[MEMORY_JSON_NODES_MAX];
	unsigned nr = 0;
	int rc = sort_nodes(nodes, sorted, &nr, e);

	topo_init(&u->t, "nodes");
	for (unsigned i = 0; !rc && i < nr; i++) {
		rc = memory_json_read_node(sorted[i], u, e);
		if (rc)
			(void)err_add(e, rc, "node %lld",
				(long long)json_integer_value(json_object_get(sorted[i], "id")));
	}
	if (!rc)
		rc = topo_seal(&u->t, e);
	if (rc)
		return err_add(e, rc, "nodes");
	name_kinds(u);
	for (unsigned i = 0; i < nr; i++)
		note_kinds(sorted[i], u, i);
	return 0;
}

/* The amounts by type into list[*nr..], all with the node's id. */
static int memory_json_read_amounts(json_t *amounts, unsigned node_id, struct reserved_memory *list,
	unsigned *nr, struct err *e)
{
	if (!json_is_object(amounts))
		return json_want("an object", amounts, e);
	for (void *it = json_object_iter(amounts); it; it = json_object_iter_next(amounts, it)) {
		struct reserved_memory r = {.has_node = true, .node_id = node_id};

		if (*nr == RESERVED_MEMORY_MAX)
			return err_set(e, ERANGE, "more than %d amounts", RESERVED_MEMORY_MAX);
		if (!text_copy(r.type, sizeof r.type, json_object_iter_key(it)))
			return err_set(
				e, ERANGE, "\"%.64s\" is too long", json_object_iter_key(it));
		int rc = json_quantity_count(
			json_object_iter_value(it), QUANTITY_WHOLE, &r.bytes, e);
		if (rc)
			return err_add(e, rc, "%s", r.type);
		if (is_memory(r.type))
			list[(*nr)++] = r;
	}
	return 0;
}

static int memory_json_read_reserved(const json_t *entries, struct settings *s, struct err *e)
{
	static const char *const keys[] = {"numaNode", "limits", NULL};

	if (!json_is_array(entries))
		return json_want("a list", entries, e);
	for (size_t i = 0; i < json_array_size(entries); i++) {
		json_t *v = json_array_get(entries, i);
		uint64_t id;
		int rc = json_want_object(v, keys, e);

		if (!rc && (rc = json_number(json_object_get(v, "numaNode"), UINT32_MAX, &id, e)))
			(void)err_add(e, rc, "numaNode");
		if (!rc && (rc = memory_json_read_amounts(json_object_get(v, "limits"),
				    (unsigned)id, s->reserved_memory, &s->nr_reserved_memory, e)))
			(void)err_add(e, rc, "limits");
		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

static int memory_json_read_setup(const json_t *item, struct setup *u, struct err *e)
{
	int rc = memory_json_read_machine(json_object_get(item, "nodes"), u, e);

	if (rc)
		return rc;
	rc = memory_json_read_reserved(json_object_get(item, "reserved_memory"), &u->s, e);
	if (rc)
		return err_add(e, rc, "reserved_memory");
	rc = memory_json_read_amounts(json_object_get(item, "node_reservation"), 0,
		u->node_allocatable, &u->nr_node_allocatable, e);
	return rc ? err_add(e, rc, "node_reservation") : 0;
}

static int memory_json_read_mask(
	const json_t *list, const struct topo *t, struct nodeset *out, struct err *e)
{
	if (!json_is_array(list))
		return json_want("a list of node ids or null", list, e);
	for (size_t i = 0; i < json_array_size(list); i++) {
		uint64_t id;
		int rc = json_number(json_array_get(list, i), NODE_ID_MAX, &id, e), node;

		if (rc)
			return err_add(e, rc, "element %zu", i);
		node = node_index(&t->ids, (unsigned)id);
		if (node < 0)
			return err_set(e, ENOENT, "the machine has no NUMA node %u", (unsigned)id);
		*out = nodeset_or(*out, nodeset_of((unsigned)node));
	}
	return 0;
}

/* What the Topology Manager hands out for the container. One that it knows nothing of has no
 * affinity. */
static int memory_json_read_affinity(
	json_t *affinities, const char *name, const struct topo *t, struct hint *h, struct err *e)
{
	static const char *const keys[] = {"mask", "preferred", NULL};
	json_t *v = json_object_get(affinities, name);
	const json_t *mask = json_object_get(v, "mask"),
		     *preferred = json_object_get(v, "preferred");

	*h = (struct hint){.any = !v || json_is_null(mask), .preferred = json_is_true(preferred)};
	if (!v)
		return 0;
	int rc = json_want_object(v, keys, e);
	if (!rc && !json_is_boolean(preferred))
		rc = err_add(e, json_want("true or false", preferred, e), "preferred");
	if (!rc && !h->any && (rc = memory_json_read_mask(mask, t, &h->mask, e)))
		(void)err_add(e, rc, "mask");
	return rc ? err_add(e, rc, "affinities: %.64s", name) : 0;
}

/* ---- writing ---- */

static json_t *memory_json_number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* The masks of one family, by size and then by their nodes. */
struct listing {
	const struct topo *t;
	const struct family *f;
	json_t *list;
};

static void list_masks(struct listing *l, struct nodeset chosen, unsigned from, unsigned left)
{
	if (!left && family_has(l->f, chosen))
		(void)json_array_append_new(l->list,
			json_pack("{s:o, s:b}", "mask", json_node_ids(chosen, &l->t->ids),
				"preferred", nodeset_count(chosen) == l->f->preferred_size));
	for (unsigned n = from; left && n + left <= l->t->ids.nr; n++)
		list_masks(l, nodeset_or(chosen, nodeset_of(n)), n + 1, left - 1);
}

static json_t *family_json(const struct topo *t, const struct family *f)
{
	struct listing l = {t, f, json_array()};

	for (unsigned size = 1; size <= t->ids.nr; size++)
		list_masks(&l, (struct nodeset){0}, 0, size);
	return l.list;
}

static json_t *blocks_json(const struct setup *u, const struct memory_container *c)
{
	json_t *blocks = c->nr_blocks ? json_array() : json_null();

	for (unsigned i = 0; i < u->t.nr_kinds; i++)
		for (unsigned b = 0; b < c->nr_blocks; b++)
			if (c->blocks[b].kind == u->by_name[i])
				(void)json_array_append_new(blocks,
					json_pack("{s:s, s:o, s:o}", "type",
						u->kind_name[u->by_name[i]], "nodes",
						json_node_ids(c->blocks[b].nodes, &u->t.ids),
						"size", memory_json_number(c->blocks[b].bytes)));
	return blocks;
}

static json_t *by_kind(const struct setup *u, unsigned node, const uint64_t bytes[TOPO_KINDS])
{
	json_t *o = json_object();

	for (unsigned i = 0; i < u->t.nr_kinds; i++)
		if (u->kinds[node] >> u->by_name[i] & 1)
			(void)json_object_set_new(o, u->kind_name[u->by_name[i]],
				memory_json_number(bytes[u->by_name[i]]));
	return o;
}

static void set_by_id(json_t *o, const struct topo *t, unsigned node, json_t *value)
{
	char id[TEXT_SIZE_MAX];
	struct text text;

	text_init(&text, id, sizeof id);
	text_add(&text, "%u", t->ids.id[node]);
	(void)json_object_set_new(o, id, value);
}

static json_t *state_json(const struct setup *u, const struct memory_state *m)
{
	json_t *state = json_object();

	nodeset_each (n, u->t.nodes) {
		const struct memory_node *node = &m->node[n];

		set_by_id(state, &u->t, n,
			json_pack("{s:i, s:o, s:o, s:o}", "assignments", (int)node->assignments,
				"cells", json_node_ids(node->group, &u->t.ids), "free",
				by_kind(u, n, node->free), "reserved",
				by_kind(u, n, node->reserved)));
	}
	return state;
}

static json_t *initial_json(const struct setup *u, const struct memory_state *m)
{
	json_t *initial = json_object();

	nodeset_each (n, u->t.nodes) {
		json_t *kinds = json_object();

		for (unsigned i = 0; i < u->t.nr_kinds; i++) {
			unsigned k = u->by_name[i];

			if (u->kinds[n] >> k & 1)
				(void)json_object_set_new(kinds, u->kind_name[k],
					json_pack("{s:o, s:o, s:o}", "total",
						memory_json_number(u->t.node[n].memory[k]),
						"system_reserved",
						memory_json_number(
							memory_reserved(&u->t, &u->s, n, k)),
						"allocatable",
						memory_json_number(m->node[n].allocatable[k])));
		}
		set_by_id(initial, &u->t, n, kinds);
	}
	return initial;
}

/* ---- the steps ---- */

static json_t *hints_json(const struct topo *t, const struct memory_hints *h)
{
	json_t *hints = h->nil ? json_null() : json_object();

	for (unsigned i = 0; i < h->nr; i++)
		(void)json_object_set_new(hints, h->f[i].resource, family_json(t, &h->f[i]));
	return hints;
}

/* What the steps are played with. */
struct player {
	const struct setup *setup;
	struct memory_play play;
	struct memory_hints hints;
};

/* One container of the pod; 1: it is refused, and the pod with it. */
static int add_container(struct player *g, struct memory_pod *p, unsigned i, json_t *step,
	json_t *list, struct err *e)
{
	bool by_pod = text_equal(json_string_value(json_object_get(step, "scope")), "pod");
	const char *name = p->ask->container[i].name;
	struct hint affinity;
	struct err why;
	int rc = memory_json_read_affinity(
		json_object_get(step, "affinities"), name, &g->setup->t, &affinity, e);

	if (rc)
		return rc;
	if (!by_pod)
		memory_play_hints(&g->play, p, i, &g->hints);
	json_t *answer = json_pack("{s:s, s:o}", "name", name, "hints",
		by_pod ? json_null() : hints_json(&g->setup->t, &g->hints));
	bool refused = memory_play_allocate(&g->play, p, i, &affinity, &why) < 0;
	if (refused)
		(void)json_object_set_new(answer, "error", json_message(why.text));
	(void)json_object_set_new(answer, "blocks", blocks_json(g->setup, &p->container[i]));
	(void)json_array_append_new(list, answer);
	return refused;
}

static int add_pod(
	struct player *g, const struct pod *ask, json_t *step, json_t *answer, struct err *e)
{
	json_t *list = json_array();
	struct memory_pod *p = NULL;
	int rc = memory_play_enter(&g->play, ask, &p, e);

	(void)json_object_set_new(answer, "containers", list);
	if (rc)
		return err_add(e, rc, "pod");
	if (text_equal(json_string_value(json_object_get(step, "scope")), "pod")) {
		memory_play_pod_hints(&g->play, p, &g->hints);
		(void)json_object_set_new(answer, "pod_hints", hints_json(&g->setup->t, &g->hints));
	}
	for (unsigned i = 0; i < ask->nr && !rc; i++)
		rc = add_container(g, p, i, step, list, e);
	if (rc > 0)
		memory_play_remove(&g->play, ask->uid);
	return rc < 0 ? rc : 0;
}

static int memory_json_step_add(struct player *g, json_t *step, json_t *answer, struct err *e)
{
	static const char *const keys[] = {"op", "pod", "scope", "affinities", NULL};
	const char *scope = json_string_value(json_object_get(step, "scope"));
	const json_t *affinities = json_object_get(step, "affinities");
	struct pod *ask = arena_alloc(g->play.arena, sizeof *ask);
	int rc = json_only_keys(step, keys, e);

	if (rc)
		return rc;
	if (!text_equal(scope, "pod") && !text_equal(scope, "container"))
		return err_set(e, EINVAL, "scope: should be \"container\" or \"pod\"");
	if (!json_is_object(affinities))
		return err_add(e, json_want("an object", affinities, e), "affinities");
	if (!ask)
		return err_set(e, ENOMEM, "too large");
	rc = pod_json_read_ask(
		json_object_get(step, "pod"), NULL, 0, g->play.arena, g->play.s, ask, e);
	return rc ? err_add(e, rc, "pod") : add_pod(g, ask, step, answer, e);
}

static int memory_json_read_uid(const json_t *step, const char **uid, struct err *e)
{
	const json_t *v = json_object_get(step, "uid");

	*uid = json_string_value(v);
	return *uid ? 0 : err_add(e, json_want("a string", v, e), "uid");
}

static int memory_json_step_start(struct player *g, json_t *step, json_t *answer, struct err *e)
{
	static const char *const keys[] = {"op", "uid", "containers", NULL};
	const json_t *names = json_object_get(step, "containers");
	const char *uid;
	int rc = json_only_keys(step, keys, e);

	(void)answer;
	if (!rc)
		rc = memory_json_read_uid(step, &uid, e);
	if (rc)
		return rc;
	if (!json_is_array(names))
		return err_add(e, json_want("a list", names, e), "containers");
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);

		if (!json_is_string(name))
			return err_add(e, json_want("a string", name, e), "containers");
		memory_play_start(&g->play, uid, json_string_value(name));
	}
	return 0;
}

static int memory_json_step_remove(struct player *g, json_t *step, json_t *answer, struct err *e)
{
	static const char *const keys[] = {"op", "uid", NULL};
	const char *uid;
	int rc = json_only_keys(step, keys, e);

	(void)answer;
	if (!rc)
		rc = memory_json_read_uid(step, &uid, e);
	if (!rc)
		memory_play_remove(&g->play, uid);
	return rc;
}

static const struct op {
	const char *name;
	int (*play)(struct player *g, json_t *step, json_t *answer, struct err *e);
} ops[] = {{"add", memory_json_step_add}, {"start", memory_json_step_start},
	{"remove", memory_json_step_remove}};

static int play_step(struct player *g, json_t *step, json_t *answer, struct err *e)
{
	const json_t *op = json_object_get(step, "op");

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		if (!text_equal(json_string_value(op), ops[i].name))
			continue;
		int rc = ops[i].play(g, step, answer, e);
		if (!rc)
			(void)json_object_set_new(
				answer, "after", state_json(g->setup, &g->play.state));
		return rc;
	}
	return err_set(e, EINVAL, "op: should be \"add\", \"start\" or \"remove\"");
}

static int play_steps(struct player *g, json_t *steps, json_t *answers, struct err *e)
{
	for (size_t i = 0; i < json_array_size(steps); i++) {
		json_t *answer = json_object();
		int rc = play_step(g, json_array_get(steps, i), answer, e);

		(void)json_array_append_new(answers, answer);
		if (rc)
			return err_add(e, rc, "steps: element %zu", i);
	}
	return 0;
}

static int memory_json_play(
	const struct setup *u, json_t *steps, struct arena *a, json_t **result, struct err *e)
{
	struct player *g = arena_alloc(a, sizeof *g);
	int rc;

	if (!json_is_array(steps))
		return err_add(e, json_want("a list", steps, e), "steps");
	if (!g)
		return err_set(e, ENOMEM, "too large");
	g->setup = u;
	rc = memory_play_init(&g->play, &u->t, &u->s, json_array_size(steps), a, e);
	if (rc)
		return rc;
	json_t *answers = json_array();
	json_t *all = json_pack(
		"{s:o, s:o}", "initial", initial_json(u, &g->play.state), "steps", answers);
	rc = play_steps(g, steps, answers, e);
	if (rc)
		json_decref(all);
	else
		*result = all;
	return rc;
}

int memory_json_answer(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	static const char *const keys[] = {"name", VERSION_KEY, "nodes", "reserved_memory",
		"node_reservation", "steps", "expected", NULL};
	struct setup *u = arena_alloc(a, sizeof *u);
	struct err why;
	int rc = json_only_keys(item, keys, e);

	if (rc)
		return rc;
	if (!u)
		return err_set(e, ENOMEM, "too large");
	rc = memory_json_read_setup(item, u, e);
	if (!rc)
		rc = policy_json_version(item, &u->s.cpu_options.kubernetes, e);
	if (rc)
		return rc;
	if (memory_check_reserved(
		    &u->t, &u->s, u->node_allocatable, u->nr_node_allocatable, &why)) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	return memory_json_play(u, json_object_get(item, "steps"), a, result, e);
}
