#include <codec/families_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

/* Amounts below AMOUNT_MAX can be added up over all nodes. */
#define AMOUNT_MAX (UINT64_C(1) << 56)
enum { MIB_SHIFT = 20, FAMILIES_MAX = 64 };

/* What reading needs besides the object. */
struct reader {
	struct arena *arena;
	struct node_ids ids;
};

static int too_large(struct err *e)
{
	return err_set(e, ENOMEM, "too large");
}

/* The dense index of a node's id as a key, or -errno. */
static int node_of_key(const struct reader *r, const char *key, struct err *e)
{
	uint64_t id;
	int rc = text_u64(key, strlen(key), NODE_ID_MAX, &id, e);

	if (rc)
		return rc;
	int node = node_index(&r->ids, (unsigned)id);
	return node < 0 ? err_set(e, EINVAL, "node %.16s is not in nodes", key) : node;
}

static int read_nodes(
	const struct reader *r, const json_t *list, bool strict, struct nodeset *out, struct err *e)
{
	if (!json_is_array(list))
		return json_want("a list of node ids", list, e);
	for (size_t i = 0; i < json_array_size(list); i++) {
		uint64_t id;
		int rc = json_number(json_array_get(list, i), NODE_ID_MAX, &id, e);
		int node = rc ? rc : node_index(&r->ids, (unsigned)id);

		if (!rc && node < 0 && strict)
			rc = err_set(e, EINVAL, "node %u is not in nodes", (unsigned)id);
		if (rc)
			return err_add(e, rc, "element %zu", i);
		if (node >= 0)
			*out = nodeset_or(*out, nodeset_of((unsigned)node));
	}
	return 0;
}

/* {id: amount} as a row by dense node; the nodes it names into *named. */
static int read_row(const struct reader *r, json_t *object, uint64_t row[NODES_MAX],
	struct nodeset *named, struct err *e)
{
	if (!json_is_object(object))
		return json_want("an object", object, e);
	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
		int node = node_of_key(r, json_object_iter_key(it), e);

		if (node < 0)
			return node;
		int rc = json_number(json_object_iter_value(it), AMOUNT_MAX, &row[node], e);
		if (rc)
			return err_add(e, rc, "%.16s", json_object_iter_key(it));
		*named = nodeset_or(*named, nodeset_of((unsigned)node));
	}
	return 0;
}

/* The size that a mask has when it is preferred: the smallest by what the nodes have in all, or
 * `otherwise` when all of them are too small. */
static unsigned size_by_capacity(struct nodeset ground, const struct family_demand *demand,
	unsigned nr, unsigned otherwise, struct arena *a)
{
	struct family f = {.kind = FAMILY_CAPACITY, .ground = ground, .nr_demands = nr};

	memcpy(f.demand, demand, nr * sizeof *demand);
	struct budget endless = budget_of(0);
	unsigned k = family_smallest(&f, &endless, a);
	return k ? k : otherwise;
}

/* The kubelet's generateCPUTopologyHints. */
static int read_cpu(const struct reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {"kind", "cap", "avail", "request", NULL};
	uint64_t *cap = arena_array(r->arena, NODES_MAX, sizeof *cap);
	uint64_t *avail = arena_array(r->arena, NODES_MAX, sizeof *avail);
	struct nodeset free = {0};
	uint64_t request;
	int rc = json_only_keys(v, keys, e);

	if (rc)
		return rc;
	if (!cap || !avail)
		return too_large(e);
	rc = read_row(r, json_object_get(v, "cap"), cap, &f->ground, e);
	if (rc)
		return err_add(e, rc, "cap");
	rc = read_row(r, json_object_get(v, "avail"), avail, &free, e);
	if (rc)
		return err_add(e, rc, "avail");
	rc = json_number(json_object_get(v, "request"), AMOUNT_MAX, &request, e);
	if (rc)
		return err_add(e, rc, "request");
	if (!request)
		return 0; /* no preference */
	const struct family_demand capacity = {.weight = cap, .need = request};
	f->nr_demands = 1;
	f->demand[0] = (struct family_demand){.weight = avail, .need = request};
	f->preferred_size =
		size_by_capacity(f->ground, &capacity, 1, nodeset_count(f->ground), r->arena);
	f->kind = family_has(f, f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
	return 0;
}

/* The memory manager's state, as far as it matters for the types asked for. */
struct mem {
	unsigned nr_types;
	const char *type[TOPO_KINDS];
	uint64_t need[TOPO_KINDS];
	uint64_t alloc[TOPO_KINDS][NODES_MAX], free[TOPO_KINDS][NODES_MAX];
	struct nodeset known, busy, cells[NODES_MAX];
};

static int read_request(json_t *request, struct mem *m, struct err *e)
{
	if (!json_is_object(request))
		return json_want("an object", request, e);
	for (void *it = json_object_iter(request); it; it = json_object_iter_next(request, it)) {
		if (m->nr_types == TOPO_KINDS)
			return err_set(e, ERANGE, "more than %d types of memory", TOPO_KINDS);
		m->type[m->nr_types] = json_object_iter_key(it);
		int rc = json_number(
			json_object_iter_value(it), AMOUNT_MAX, &m->need[m->nr_types++], e);
		if (rc)
			return err_add(e, rc, "%.48s", json_object_iter_key(it));
	}
	return 0;
}

/* A type that the node does not name is none of it. */
static int read_amounts(json_t *amounts, const struct mem *m, unsigned node,
	uint64_t rows[TOPO_KINDS][NODES_MAX], struct err *e)
{
	if (!json_is_object(amounts))
		return json_want("an object", amounts, e);
	for (unsigned t = 0; t < m->nr_types; t++) {
		const json_t *v = json_object_get(amounts, m->type[t]);
		int rc = v ? json_number(v, AMOUNT_MAX, &rows[t][node], e) : 0;

		if (rc)
			return err_add(e, rc, "%.48s", m->type[t]);
	}
	return 0;
}

static int read_mem_node(
	const struct reader *r, json_t *v, unsigned node, struct mem *m, struct err *e)
{
	static const char *const keys[] = {"assign", "cells", "alloc", "free", NULL};
	uint64_t assign;
	int rc = json_only_keys(v, keys, e);

	if (rc)
		return rc;
	rc = json_number(json_object_get(v, "assign"), AMOUNT_MAX, &assign, e);
	if (rc)
		return err_add(e, rc, "assign");
	if (assign)
		m->busy = nodeset_or(m->busy, nodeset_of(node));
	rc = read_nodes(r, json_object_get(v, "cells"), true, &m->cells[node], e);
	if (rc)
		return err_add(e, rc, "cells");
	rc = read_amounts(json_object_get(v, "alloc"), m, node, m->alloc, e);
	if (rc)
		return err_add(e, rc, "alloc");
	rc = read_amounts(json_object_get(v, "free"), m, node, m->free, e);
	return rc ? err_add(e, rc, "free") : 0;
}

static int read_mem_state(const struct reader *r, json_t *state, struct mem *m, struct err *e)
{
	if (!json_is_object(state))
		return json_want("an object", state, e);
	for (void *it = json_object_iter(state); it; it = json_object_iter_next(state, it)) {
		int node = node_of_key(r, json_object_iter_key(it), e);

		if (node < 0)
			return node;
		m->known = nodeset_or(m->known, nodeset_of((unsigned)node));
		int rc = read_mem_node(r, json_object_iter_value(it), (unsigned)node, m, e);
		if (rc)
			return err_add(e, rc, "%.16s", json_object_iter_key(it));
	}
	return 0;
}

/* Whether the nodes may serve one container together: each that is in use alone, or with just its
 * group. */
static bool may_share(const struct mem *m, struct nodeset mask)
{
	if (nodeset_count(mask) == 1)
		return nodeset_count(m->cells[nodeset_next(mask, 0)]) <= 1;
	nodeset_each (n, nodeset_and(mask, m->busy))
		if (!nodeset_equal(m->cells[n], mask))
			return false;
	return true;
}

/* Masks that hold a node in use stand outside the rule for the others. */
static void add_groups(const struct mem *m, struct family *f)
{
	nodeset_each (n, m->busy) {
		const struct nodeset masks[] = {nodeset_of(n), m->cells[n]};

		for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
			struct family alone = *f;

			alone.ground = masks[i];
			alone.nr_extra = 0;
			if (nodeset_within(masks[i], m->known) && may_share(m, masks[i]) &&
				family_has(&alone, masks[i]) && !family_has(f, masks[i]))
				f->extra[f->nr_extra++] = masks[i];
		}
	}
}

static void add_demands(
	const struct mem *m, const uint64_t rows[TOPO_KINDS][NODES_MAX], struct family *f)
{
	for (unsigned t = 0; t < m->nr_types; t++)
		f->demand[f->nr_demands++] =
			(struct family_demand){.weight = rows[t], .need = m->need[t]};
}

/* The kubelet's calculateHints; every type gets the same masks. No mask at all is no preference. */
static void mem_families(const struct reader *r, const struct mem *m, struct family *f, size_t *nr)
{
	struct family one = {.kind = FAMILY_CAPACITY, .ground = nodeset_minus(m->known, m->busy)};

	add_demands(m, m->alloc, &one);
	one.preferred_size = size_by_capacity(
		m->known, one.demand, one.nr_demands, nodeset_count(m->known), r->arena);
	add_demands(m, m->free, &one);
	add_groups(m, &one);
	if (!m->nr_types || (!one.nr_extra && !family_has(&one, one.ground)))
		one = (struct family){.kind = FAMILY_ANY};
	for (unsigned t = 0; t < (one.kind == FAMILY_ANY ? 1 : m->nr_types); t++)
		f[(*nr)++] = one;
}

static int read_mem(const struct reader *r, json_t *v, struct family *f, size_t *nr, struct err *e)
{
	static const char *const keys[] = {"kind", "state", "request", NULL};
	struct mem *m = arena_alloc(r->arena, sizeof *m);
	int rc = json_only_keys(v, keys, e);

	if (rc)
		return rc;
	if (!m)
		return too_large(e);
	rc = read_request(json_object_get(v, "request"), m, e);
	if (rc)
		return err_add(e, rc, "request");
	rc = read_mem_state(r, json_object_get(v, "state"), m, e);
	if (rc)
		return err_add(e, rc, "state");
	nodeset_each (n, nodeset_minus(m->known, m->busy))
		if (!nodeset_equal(m->cells[n], nodeset_of(n)))
			return err_set(e, EINVAL,
				"state: %u: cells are other nodes, but assign is 0", r->ids.id[n]);
	mem_families(r, m, f, nr);
	return 0;
}

/* All devices of a resource and the available ones, by the nodes that each lies on. */
struct devices {
	size_t nr_all, nr_avail, nr_named; /* nr_named: available ones, on nodes or not */
	struct family_cover *all, *avail;
	bool any_nodes; /* some device says where it is */
};

static int read_device(const struct reader *r, json_t *all, const char *name,
	struct family_cover *cover, struct err *e)
{
	const json_t *nodes = json_object_get(all, name);
	int rc = 0;

	*cover = (struct family_cover){.count = 1};
	if (!json_is_null(nodes))
		rc = read_nodes(r, nodes, false, &cover->nodes, e);
	return rc ? err_add(e, rc, "%.48s", name) : 0;
}

static int read_all(const struct reader *r, json_t *all, struct devices *d, struct nodeset *ground,
	struct err *e)
{
	if (!json_is_object(all))
		return json_want("an object", all, e);
	d->all = arena_array(r->arena, json_object_size(all), sizeof *d->all);
	if (!d->all)
		return too_large(e);
	for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
		struct family_cover *cover = &d->all[d->nr_all++];
		int rc = read_device(r, all, json_object_iter_key(it), cover, e);

		if (rc)
			return rc;
		d->any_nodes = d->any_nodes || json_array_size(json_object_iter_value(it));
		*ground = nodeset_or(*ground, cover->nodes);
	}
	return 0;
}

static int read_avail(
	const struct reader *r, json_t *all, json_t *avail, struct devices *d, struct err *e)
{
	if (!json_is_array(avail))
		return json_want("a list of devices", avail, e);
	d->avail = arena_array(r->arena, json_array_size(avail), sizeof *d->avail);
	if (!d->avail)
		return too_large(e);
	for (; d->nr_avail < json_array_size(avail); d->nr_avail++) {
		const char *name = json_string_value(json_array_get(avail, d->nr_avail));

		if (!name || !json_object_get(all, name))
			return err_set(e, EINVAL, "element %zu is no device of all", d->nr_avail);
		int rc = read_device(r, all, name, &d->avail[d->nr_avail], e);
		if (rc)
			return rc;
	}
	return 0;
}

/* The kubelet's generateDeviceTopologyHints (1.36: masks over the nodes that own devices). */
static int read_devices(const struct reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {"kind", "all", "avail", "request", NULL};
	json_t *all = json_object_get(v, "all");
	struct devices d = {0};
	uint64_t request;
	int rc = json_only_keys(v, keys, e);

	if (rc)
		return rc;
	rc = read_all(r, all, &d, &f->ground, e);
	if (rc)
		return err_add(e, rc, "all");
	rc = read_avail(r, all, json_object_get(v, "avail"), &d, e);
	if (rc)
		return err_add(e, rc, "avail");
	rc = json_number(json_object_get(v, "request"), AMOUNT_MAX, &request, e);
	if (rc)
		return err_add(e, rc, "request");
	if (!d.any_nodes)
		return 0; /* no preference */
	if (nodeset_empty(f->ground))
		f->ground = nodeset_first(r->ids.nr);
	const struct family_demand registered = {
		.cover = d.all, .nr_covers = d.nr_all, .need = request};
	f->nr_demands = 1;
	f->demand[0] =
		(struct family_demand){.cover = d.avail, .nr_covers = d.nr_avail, .need = request};
	f->preferred_size =
		size_by_capacity(f->ground, &registered, 1, nodeset_count(f->ground), r->arena);
	f->kind = d.nr_avail >= request && family_has(f, f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
	return 0;
}

/* One element becomes one family, memory one for each type. */
static int read_family(
	const struct reader *r, json_t *v, struct family *f, size_t *nr, struct err *e)
{
	const char *kind = json_string_value(json_object_get(v, "kind"));

	if (!json_is_object(v))
		return json_want("an object", v, e);
	if (kind && text_equal(kind, "cpu"))
		return read_cpu(r, v, &f[(*nr)++], e);
	if (kind && text_equal(kind, "mem"))
		return read_mem(r, v, f, nr, e);
	if (kind && (text_equal(kind, "device") || text_equal(kind, "dev")))
		return read_devices(r, v, &f[(*nr)++], e);
	return err_set(e, EINVAL, "kind: should be cpu, mem or device");
}

static int read_families(
	const struct reader *r, const json_t *list, struct families_question *q, struct err *e)
{
	size_t nr = json_array_size(list);

	if (!json_is_array(list))
		return json_want("a list", list, e);
	if (nr > FAMILIES_MAX / TOPO_KINDS)
		return err_set(
			e, ERANGE, "%zu families, more than %d", nr, FAMILIES_MAX / TOPO_KINDS);
	struct family *f = arena_array(r->arena, nr * TOPO_KINDS, sizeof *f);
	if (!f)
		return too_large(e);
	for (size_t i = 0; i < nr; i++) {
		int rc = read_family(r, json_array_get(list, i), f, &q->nr_families, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	q->families = f;
	return 0;
}

int families_json_read(json_t *item, struct arena *a, struct families_question *q, struct err *e)
{
	static const char *const keys[] = {"name", "nodes", "policy", "options", "distances",
		"families", "expected", "sparse", "why", "checked_against_cross_product", NULL};
	struct families_question question = {0};
	struct reader r = {.arena = a};
	int rc = json_only_keys(item, keys, e);

	if (!rc)
		rc = policy_json_machine(item, &question.put_to, e);
	if (rc)
		return rc;
	r.ids = question.put_to.ids;
	rc = read_families(&r, json_object_get(item, "families"), &question, e);
	if (rc)
		return err_add(e, rc, "families");
	rc = policy_json_start(item, &question.put_to, e);
	if (!rc)
		*q = question;
	return rc;
}

int families_json_answer(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	struct families_question q;
	struct policy_answer answer;
	struct err why;
	int rc = families_json_read(item, a, &q, &why);

	if (rc < 0)
		return err_set(e, -rc, "%s", why.text);
	if (rc) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	const struct hint_space space = policy_question_space(&q.put_to);
	struct budget endless = budget_of(0);
	rc = policy_merge_families(
		q.put_to.policy, &space, q.families, q.nr_families, &endless, a, &answer);
	if (rc > 0)
		return err_set(e, E2BIG,
			"too many ways to leave NUMA nodes out: none is certain to be "
			"the best");
	if (rc)
		return err_set(e, ENOMEM, "the merge needs more than %zu MiB",
			a->limit_bytes >> MIB_SHIFT);
	*result = policy_json_result(&q.put_to, &answer);
	return 0;
}
