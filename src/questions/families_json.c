#include <questions/families_json.h>

#include <questions/family_rule_json.h>
#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/cpus.h>
#include <numafit/devices.h>
#include <numafit/memory.h>
#include <numafit/text.h>
#include <string.h>

enum { MIB_SHIFT = 20, FAMILIES_MAX = 64, WORK_BYTES = 1 << 20 };

/* The CPU manager's. */
static int families_read_cpu(
	const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {
		"kind", "cap", "avail", "request", "reusable", "sockets", NULL};
	struct cpus_per_node *n = arena_alloc(r->arena, sizeof *n);
	uint64_t reusable[NODES_MAX] = {0};
	struct cpus_wanted w = {0};
	struct nodeset free = {0};
	int rc = json_want_object(v, keys, e);

	if (rc)
		return rc;
	if (!n)
		return err_set(e, ENOMEM, "too large");
	rc = family_row_read(r, json_object_get(v, "cap"), n->total, &w.nodes, e);
	if (rc)
		return err_add(e, rc, "cap");
	rc = family_row_read(r, json_object_get(v, "avail"), n->free, &free, e);
	if (rc)
		return err_add(e, rc, "avail");
	rc = json_number(json_object_get(v, "request"), FAMILY_AMOUNT_MAX, &w.count, e);
	if (rc)
		return err_add(e, rc, "request");
	rc = family_row_read_of(r, v, "reusable", reusable, &w.reusable, e);
	if (!rc)
		rc = family_sockets_read(r, v, w.nodes, n->sockets, &w.nr_sockets, e);
	if (rc)
		return rc;
	nodeset_each (node, w.reusable) {
		w.nr_reusable += reusable[node];
		if (!reusable[node])
			w.reusable = nodeset_minus(w.reusable, nodeset_of(node));
	}
	cpus_family_by_node(&w, n, f);
	return 0;
}

/* The memory manager's state, as far as it matters for the types asked for: kinds of memory, as
 * the request names them. */
struct mem {
	const char *type[TOPO_KINDS];
	struct topo topo; /* only its nodes and kinds */
	struct memory_state state;
	struct memory_demand demand;
	struct memory_reuse reuse;
	struct memory_rows rows;
};

static int families_read_request(json_t *request, struct mem *m, struct err *e)
{
	if (!json_is_object(request))
		return json_want("an object", request, e);
	for (void *it = json_object_iter(request); it; it = json_object_iter_next(request, it)) {
		unsigned kind = m->topo.nr_kinds;

		if (kind == TOPO_KINDS)
			return err_set(e, ERANGE, "more than %d types of memory", TOPO_KINDS);
		m->type[kind] = json_object_iter_key(it);
		int rc = json_number(
			json_object_iter_value(it), FAMILY_AMOUNT_MAX, &m->demand.bytes[kind], e);
		if (rc)
			return err_add(e, rc, "%.48s", json_object_iter_key(it));
		m->demand.kinds |= 1u << kind;
		m->topo.nr_kinds++;
	}
	return 0;
}

/* A type that the node does not name is none of it. */
static int families_read_amounts(
	json_t *amounts, const struct mem *m, uint64_t bytes[TOPO_KINDS], struct err *e)
{
	if (!json_is_object(amounts))
		return json_want("an object", amounts, e);
	for (unsigned k = 0; k < m->topo.nr_kinds; k++) {
		const json_t *v = json_object_get(amounts, m->type[k]);
		int rc = v ? json_number(v, FAMILY_AMOUNT_MAX, &bytes[k], e) : 0;

		if (rc)
			return err_add(e, rc, "%.48s", m->type[k]);
	}
	return 0;
}

static int check_mem_node(
	const struct mem *m, const struct memory_node *node, unsigned at, struct err *e)
{
	if (!node->assignments && !nodeset_equal(node->group, nodeset_of(at)))
		return err_set(e, EINVAL, "cells are other nodes, but assign is 0");
	for (unsigned k = 0; k < m->topo.nr_kinds; k++)
		if (node->free[k] > node->allocatable[k])
			return err_set(e, EINVAL, "free: %.48s: more than alloc", m->type[k]);
	return 0;
}

static int families_read_mem_node(
	const struct family_reader *r, json_t *v, unsigned at, struct mem *m, struct err *e)
{
	static const char *const keys[] = {"assign", "cells", "alloc", "free", NULL};
	struct memory_node *node = &m->state.node[at];
	uint64_t assign;
	int rc = json_want_object(v, keys, e);

	if (rc)
		return rc;
	rc = json_number(json_object_get(v, "assign"), FAMILY_AMOUNT_MAX, &assign, e);
	if (rc)
		return err_add(e, rc, "assign");
	node->assignments = assign > 0;
	rc = family_nodes_read(r, json_object_get(v, "cells"), true, &node->group, e);
	if (rc)
		return err_add(e, rc, "cells");
	rc = families_read_amounts(json_object_get(v, "alloc"), m, node->allocatable, e);
	if (rc)
		return err_add(e, rc, "alloc");
	rc = families_read_amounts(json_object_get(v, "free"), m, node->free, e);
	return rc ? err_add(e, rc, "free") : check_mem_node(m, node, at, e);
}

static int families_read_mem_state(
	const struct family_reader *r, json_t *state, struct mem *m, struct err *e)
{
	if (!json_is_object(state))
		return json_want("an object", state, e);
	for (void *it = json_object_iter(state); it; it = json_object_iter_next(state, it)) {
		int node = family_node_of_key(r, json_object_iter_key(it), e);

		if (node < 0)
			return node;
		m->topo.nodes = nodeset_or(m->topo.nodes, nodeset_of((unsigned)node));
		int rc =
			families_read_mem_node(r, json_object_iter_value(it), (unsigned)node, m, e);
		if (rc)
			return err_add(e, rc, "%.16s", json_object_iter_key(it));
	}
	return 0;
}

static int families_read_reuse(
	const struct family_reader *r, json_t *v, struct mem *m, struct err *e)
{
	static const char *const keys[] = {"nodes", "bytes", NULL};
	struct nodeset nodes = {0};
	uint64_t bytes[TOPO_KINDS] = {0};
	int rc = json_want_object(v, keys, e);

	if (rc)
		return rc;
	rc = family_nodes_read(r, json_object_get(v, "nodes"), true, &nodes, e);
	if (rc)
		return err_add(e, rc, "nodes");
	rc = families_read_amounts(json_object_get(v, "bytes"), m, bytes, e);
	if (rc)
		return err_add(e, rc, "bytes");
	for (unsigned k = 0; k < m->topo.nr_kinds; k++) {
		if (!bytes[k])
			continue;
		if (m->reuse.nr == MEMORY_REUSE_MAX)
			return err_set(e, ERANGE, "more than %d amounts", MEMORY_REUSE_MAX);
		m->reuse.entry[m->reuse.nr++] = (struct memory_block){k, nodes, bytes[k]};
	}
	return 0;
}

/* The memory manager's, one family for each type. */
static int families_read_mem(
	const struct family_reader *r, json_t *v, struct family *f, size_t *nr, struct err *e)
{
	static const char *const keys[] = {"kind", "state", "request", "reusable", NULL};
	const json_t *reusable = json_object_get(v, "reusable");
	struct mem *m = arena_alloc(r->arena, sizeof *m);
	struct budget endless = budget_of(0);
	int rc = json_want_object(v, keys, e);

	if (rc)
		return rc;
	if (!m)
		return err_set(e, ENOMEM, "too large");
	m->topo.ids = r->ids;
	rc = families_read_request(json_object_get(v, "request"), m, e);
	if (rc)
		return err_add(e, rc, "request");
	rc = families_read_mem_state(r, json_object_get(v, "state"), m, e);
	if (rc)
		return err_add(e, rc, "state");
	for (size_t i = 0; i < json_array_size(reusable); i++) {
		rc = families_read_reuse(r, json_array_get(reusable, i), m, e);
		if (rc)
			return err_add(e, rc, "reusable: element %zu", i);
	}
	*nr += memory_families(
		&m->topo, &m->state, &m->demand, &m->reuse, &m->rows, &endless, r->arena, &f[*nr]);
	return 0;
}

/* The devices of a resource, in the order of "all". */
struct claimed {
	struct device *device;
	bool *held, *reusable;
	json_t *place; /* by id */
};

static int families_read_device(
	const struct family_reader *r, const json_t *nodes, struct device *d, struct err *e)
{
	d->healthy = true;
	d->has_topology = !json_is_null(nodes);
	d->placed = json_array_size(nodes);
	return d->has_topology ? family_nodes_read(r, nodes, false, &d->nodes, e) : 0;
}

static int families_read_all(
	const struct family_reader *r, json_t *all, struct claimed *c, struct err *e)
{
	const size_t nr = json_object_size(all);
	size_t i = 0;

	if (!json_is_object(all))
		return json_want("an object", all, e);
	c->device = arena_array(r->arena, nr, sizeof *c->device);
	c->held = arena_array(r->arena, nr, sizeof *c->held);
	c->reusable = arena_array(r->arena, nr, sizeof *c->reusable);
	if (!c->device || !c->held || !c->reusable)
		return err_set(e, ENOMEM, "too large");
	for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it), i++) {
		const char *id = json_object_iter_key(it);
		int rc = families_read_device(r, json_object_iter_value(it), &c->device[i], e);

		if (rc)
			return err_add(e, rc, "%.48s", id);
		c->device[i].id = id;
		c->held[i] = true;
		(void)json_object_set_new(c->place, id, json_integer((json_int_t)i));
	}
	return 0;
}

/* Set the flag of each device that the list names. */
static int families_read_flags(
	const json_t *list, const struct claimed *c, bool *flags, bool to, struct err *e)
{
	if (!json_is_array(list))
		return json_want("a list of devices", list, e);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *id = json_string_value(json_array_get(list, i));
		const json_t *place = id ? json_object_get(c->place, id) : NULL;

		if (!place)
			return err_set(e, EINVAL, "element %zu is no device of all", i);
		flags[json_integer_value(place)] = to;
	}
	return 0;
}

/* devices_family() works on fixed memory, as a decision does. */
static int work_on_claim(
	const struct family_reader *r, const struct device_claim *c, struct family *f)
{
	const size_t bytes = WORK_BYTES + 4 * c->resource->nr * sizeof(struct family_cover);
	struct budget endless = budget_of(0);
	char *memory = arena_alloc(r->arena, bytes);
	struct arena work;

	if (!memory)
		return -ENOMEM;
	arena_init_fixed(&work, memory, bytes);
	return devices_family(c, nodeset_first(r->ids.nr), &endless, &work, f);
}

static int families_read_claim(const struct family_reader *r, json_t *v, struct claimed *c,
	struct family *f, struct err *e)
{
	const json_t *reusable = json_object_get(v, "reusable");
	uint64_t request;
	int rc = families_read_all(r, json_object_get(v, "all"), c, e);

	if (rc)
		return err_add(e, rc, "all");
	rc = families_read_flags(json_object_get(v, "avail"), c, c->held, false, e);
	if (rc)
		return err_add(e, rc, "avail");
	rc = reusable ? families_read_flags(reusable, c, c->reusable, true, e) : 0;
	if (rc)
		return err_add(e, rc, "reusable");
	rc = json_number(json_object_get(v, "request"), FAMILY_AMOUNT_MAX, &request, e);
	if (rc)
		return err_add(e, rc, "request");
	const struct device_resource resource = {
		.name = "device", .nr = json_object_size(c->place), .device = c->device};
	const struct device_claim claim = {&resource, request, c->held, c->reusable};
	return work_on_claim(r, &claim, f) ? err_set(e, ENOMEM, "too large") : 0;
}

/* The device manager's (1.36: masks over the nodes that own devices). */
static int families_read_devices(
	const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {"kind", "all", "avail", "request", "reusable", NULL};
	struct claimed c = {.place = json_object()};
	int rc = json_want_object(v, keys, e);

	if (!rc)
		rc = families_read_claim(r, v, &c, f, e);
	json_decref(c.place);
	return rc;
}

static int families_read_any(
	const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {"kind", NULL};

	(void)r;
	f->kind = FAMILY_ANY;
	return json_want_object(v, keys, e);
}

static int families_read_none(
	const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	int rc = families_read_any(r, v, f, e);

	f->kind = FAMILY_NONE;
	return rc;
}

/* One element becomes one family, memory one for each type. */
static int families_read_family(
	const struct family_reader *r, json_t *v, struct family *f, size_t *nr, struct err *e)
{
	static const struct {
		const char *kind;
		int (*read)(
			const struct family_reader *r, json_t *v, struct family *f, struct err *e);
	} kinds[] = {{"cpu", families_read_cpu}, {"device", families_read_devices},
		{"dev", families_read_devices}, {"rule", family_rule_json_read},
		{"any", families_read_any}, {"none", families_read_none}};
	const char *kind = json_string_value(json_object_get(v, "kind"));

	if (!json_is_object(v))
		return json_want("an object", v, e);
	if (kind && text_equal(kind, "mem"))
		return families_read_mem(r, v, f, nr, e);
	for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
		if (text_equal(kind, kinds[i].kind))
			return kinds[i].read(r, v, &f[(*nr)++], e);
	return err_set(e, EINVAL, "kind: should be cpu, mem, device, rule, any or none");
}

/* The merge asks one family at most how many sockets a mask touches. */
static int check_sockets(const struct families_question *q, struct err *e)
{
	unsigned nr = 0;

	for (size_t i = 0; i < q->nr_families; i++)
		nr += q->families[i].preferred_sockets > 0;
	return nr > 1 ? err_set(e, EINVAL, "more than one prefers a number of sockets") : 0;
}

static int families_read_families(const struct family_reader *r, const json_t *list,
	struct families_question *q, struct err *e)
{
	size_t nr = json_array_size(list);

	if (!json_is_array(list))
		return json_want("a list", list, e);
	if (nr > FAMILIES_MAX / TOPO_KINDS)
		return err_set(
			e, ERANGE, "%zu families, more than %d", nr, FAMILIES_MAX / TOPO_KINDS);
	struct family *f = arena_array(r->arena, nr * TOPO_KINDS, sizeof *f);
	if (!f)
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < nr; i++) {
		int rc = families_read_family(r, json_array_get(list, i), f, &q->nr_families, e);

		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	q->families = f;
	return check_sockets(q, e);
}

int families_json_read(json_t *item, struct arena *a, struct families_question *q, struct err *e)
{
	static const char *const keys[] = {"name", VERSION_KEY, "nodes", "policy", "options",
		"distances", "families", "expected", "sparse", "why",
		"checked_against_cross_product", NULL};
	struct families_question question = {0};
	struct family_reader r = {.arena = a};
	int rc = json_only_keys(item, keys, e);

	if (!rc)
		rc = policy_json_machine(item, &question.put_to, e);
	if (rc)
		return rc;
	r.ids = question.put_to.ids;
	rc = families_read_families(&r, json_object_get(item, "families"), &question, e);
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
