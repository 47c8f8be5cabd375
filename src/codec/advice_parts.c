#include <codec/advice_parts.h>

#include <errno.h>
#include <numafit/quantity.h>
#include <string.h>

int advice_amounts_init(
	struct advice_amounts *a, const char *text, const struct advice_context *c, struct err *e)
{
	size_t room = 0;

	/* in all forms there is one of these before every amount */
	for (const char *s = text; *s; s++)
		room += *s == ':' || *s == '=';
	*a = (struct advice_amounts){.t = c->t, .arena = c->arena, .room = room};
	a->at = arena_array(c->arena, room, sizeof *a->at);
	return a->at || !room ? 0 : err_set(e, ENOMEM, "too large");
}

int advice_amounts_add(struct advice_amounts *a, unsigned node_id, const char *resource,
	const char *quantity, struct err *e)
{
	int node = node_index(&a->t->ids, node_id);
	bool cpu = text_equal(resource, "cpu");
	uint64_t amount;
	int rc = quantity_parse_count(quantity, cpu ? QUANTITY_MILLI : QUANTITY_WHOLE, &amount, e);

	if (rc)
		return err_add(e, rc, "%.64s of NUMA node %u", resource, node_id);
	if (!*resource)
		return err_set(e, EINVAL, "NUMA node %u: a resource without a name", node_id);
	if (node < 0)
		return 0;
	resource = arena_strndup(a->arena, resource, strlen(resource));
	if (!resource || a->nr == a->room)
		return err_set(e, ENOMEM, "too large");
	a->at[a->nr++] = (struct advice_amount){(unsigned)node, resource, amount};
	return 0;
}

void advice_nodes_add(struct advice_container *to, const struct topo *t, unsigned id)
{
	int node = node_index(&t->ids, id);

	if (node >= 0) {
		to->nodes = nodeset_or(to->nodes, nodeset_of((unsigned)node));
	} else if (!to->has_unknown) {
		to->has_unknown = true;
		to->unknown_id = id;
	}
}

int advice_nodes_add_list(
	struct advice_container *to, const struct topo *t, const char *list, struct err *e)
{
	struct cpuset ids;
	int rc = cpuset_parse(&ids, list, strlen(list), e);

	if (rc)
		return rc;
	if (cpuset_empty(&ids))
		return err_set(e, EINVAL, "names no NUMA node");
	cpuset_each (id, &ids)
		advice_nodes_add(to, t, id);
	return 0;
}

int advice_node_id(const char *s, size_t len, unsigned *out, struct err *e)
{
	uint64_t id;
	int rc = text_u64(s, len, NODE_ID_MAX, &id, e);

	if (rc)
		return err_add(e, rc, "NUMA node \"%.*s\"", (int)(len < 64 ? len : 64), s);
	*out = (unsigned)id;
	return 0;
}

int advice_for_all(struct advice *h, struct advice_container nodes, const struct advice_amounts *a,
	struct err *e)
{
	struct advice_container *all = arena_alloc(a->arena, sizeof *all);

	if (!all)
		return err_set(e, ENOMEM, "too large");
	*all = nodes;
	all->name = "*";
	all->amount = a->at;
	all->nr_amounts = a->nr;
	h->mode = ADVICE_PREFER;
	h->scope = SCOPE_POD;
	h->container = all;
	h->nr_containers = h->cpus || !nodeset_empty(all->nodes) || all->has_unknown;
	return 0;
}
