/* Writing our advice. Jansson's setters take a NULL, of text that is no UTF-8, for a failure: it is
 * gathered in `bad`. */
#include <codec/advice_json.h>

#include <codec/advice.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <string.h>

enum { MILLI = 1000 };

/* Bytes as people write them, pieces as plain numbers. */
static json_t *amount_text(const struct advice_amount *a)
{
	bool bytes = text_equal(a->resource, "memory") ||
		     strncmp(a->resource, "hugepages-", strlen("hugepages-")) == 0;
	unsigned long long n = a->amount;
	char size[TEXT_SIZE_MAX];

	if (text_equal(a->resource, "cpu"))
		return n % MILLI ? json_sprintf("%llum", n) : json_sprintf("%llu", n / MILLI);
	return bytes ? json_string(text_size(size, n)) : json_sprintf("%llu", n);
}

static json_t *resources_of(const struct advice_container *c, unsigned node, int *bad)
{
	json_t *all = json_object();

	for (size_t i = 0; i < c->nr_amounts; i++)
		if (c->amount[i].node == node)
			*bad |= json_object_set_new(
				all, c->amount[i].resource, amount_text(&c->amount[i]));
	return all;
}

static json_t *container_of(const struct advice_container *c, const struct node_ids *ids, int *bad)
{
	char list[NODESET_TEXT_MAX];
	json_t *to = json_object(), *res = json_array();

	*bad |= json_object_set_new(
		to, "numa", json_string(nodeset_format(c->nodes, ids, list, sizeof list)));
	if (c->distance_x100)
		*bad |= json_object_set_new(to, "dist", json_integer(c->distance_x100));
	nodeset_each (n, c->nodes) {
		json_t *resources = resources_of(c, n, bad);

		if (json_object_size(resources))
			*bad |= json_array_append_new(
				res, json_pack("{s:i, s:O}", "node", ids->id[n], "resources",
					     resources));
		json_decref(resources);
	}
	if (json_array_size(res))
		*bad |= json_object_set(to, "res", res);
	json_decref(res);
	return to;
}

static json_t *head_of(const struct advice *h, int *bad)
{
	json_t *to =
		json_pack("{s:i, s:s, s:s}", "v", ADVICE_VERSION, "node", h->node, "uid", h->uid);

	if (h->generation)
		*bad |= json_object_set_new(to, "gen",
			h->generation > INT64_MAX
				? json_sprintf("%llu", (unsigned long long)h->generation)
				: json_integer((json_int_t)h->generation));
	if (h->fingerprint)
		*bad |= json_object_set_new(to, "pfp", json_string(h->fingerprint));
	*bad |= json_object_set_new(to, "at", json_integer(h->at_ms));
	*bad |= json_object_set_new(to, "ttl", json_integer(h->ttl_s));
	*bad |= json_object_set_new(to, "mode", json_string(advice_mode_name(h->mode)));
	*bad |= json_object_set_new(to, "scope", json_string(topology_scope_name(h->scope)));
	return to;
}

static char *print(const struct advice *h, const struct node_ids *ids)
{
	int bad = 0;
	json_t *root = head_of(h, &bad), *containers = json_object();

	for (size_t i = 0; i < h->nr_containers; i++) {
		bad |= h->container[i].has_unknown;
		bad |= json_object_set_new(containers, h->container[i].name,
			container_of(&h->container[i], ids, &bad));
	}
	bad |= json_object_set_new(root, "containers", containers);
	char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

int advice_json_write(const struct advice *h, const struct topo *t, char **out, struct err *e)
{
	auto_free char *text = NULL;
	struct advice back;
	struct arena a;

	if (!h->node || !h->uid)
		return err_set(e, EINVAL, "%s is missing", h->node ? "uid" : "node");
	text = print(h, &t->ids);
	if (!text)
		return err_set(
			e, EINVAL, "text that is not UTF-8, or a NUMA node that is not known");
	arena_init(&a, ADVICE_ARENA_BYTES);
	int rc = advice_read(advice_source_of(ADVICE_KEY), text,
		&(struct advice_context){.t = t, .arena = &a}, &back, e);
	arena_fini(&a);
	if (!rc)
		*out = steal(text);
	return rc;
}
