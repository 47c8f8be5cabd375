/* Reading advice: what all readers share; and our own form, both ways. */
#include <codec/advice_json.h>

#include <codec/advice_parts.h>
#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/quantity.h>
#include <string.h>

enum { MILLI = 1000, DIST_PER_UNIT = 100 };

/* Whether brackets nest deeper than any form needs, before a parser recurses into them. In text
 * that is not JSON there are none that matter. */
static bool nests_too_deep(const char *text)
{
	unsigned depth = 0;
	bool quoted = false;

	for (; *text; text++) {
		if (quoted && *text == '\\' && text[1])
			text++;
		else if (*text == '"')
			quoted = !quoted;
		else if (!quoted && (*text == '{' || *text == '['))
			depth++;
		else if (!quoted && depth && (*text == '}' || *text == ']'))
			depth--;
		if (depth > ADVICE_DEPTH_MAX)
			return true;
	}
	return false;
}

int advice_read(const struct advice_source *source, const char *text,
	const struct advice_context *c, struct advice *out, struct err *e)
{
	struct advice_reading r = {.t = c->t, .arena = c->arena, .text = text};
	struct advice h = {.format = source->format};
	int rc = 0;

	if (strnlen(text, ADVICE_TEXT_MAX + 1) > ADVICE_TEXT_MAX)
		return err_set(e, E2BIG, "is longer than %d bytes", ADVICE_TEXT_MAX);
	if (nests_too_deep(text))
		return err_set(e, EINVAL, "nests deeper than %d levels", ADVICE_DEPTH_MAX);
	if (source->form != ADVICE_TEXT)
		rc = json_parse(text, strlen(text), &r.json, e);
	if (!rc && source->form == ADVICE_OBJECT && !json_is_object(r.json))
		rc = json_want("an object", r.json, e);
	if (!rc && source->form == ADVICE_LIST && !json_is_array(r.json))
		rc = json_want("a list", r.json, e);
	if (!rc)
		rc = source->read(&r, &h, e);
	json_decref(r.json);
	if (!rc)
		*out = h;
	return rc;
}

void advice_add_node(struct advice_container *to, const struct topo *t, unsigned id)
{
	int node = node_index(&t->ids, id);

	if (node >= 0) {
		to->nodes = nodeset_or(to->nodes, nodeset_of((unsigned)node));
	} else if (!to->has_unknown) {
		to->has_unknown = true;
		to->unknown_id = id;
	}
}

int advice_add_nodes(
	struct advice_container *to, const struct topo *t, const char *list, struct err *e)
{
	struct cpuset ids;
	int rc = cpuset_parse(&ids, list, strlen(list), e);

	if (rc)
		return rc;
	if (cpuset_empty(&ids))
		return err_set(e, EINVAL, "names no NUMA node");
	cpuset_each (id, &ids)
		advice_add_node(to, t, id);
	return 0;
}

int advice_node_id(const char *s, unsigned *out, struct err *e)
{
	uint64_t id;
	int rc = text_u64(s, strlen(s), NODE_ID_MAX, &id, e);

	if (rc)
		return err_add(e, rc, "NUMA node \"%.64s\"", s);
	*out = (unsigned)id;
	return 0;
}

int advice_add_amount(struct advice_reading *r, unsigned node_id, const char *resource,
	const char *quantity, struct err *e)
{
	int node = node_index(&r->t->ids, node_id);
	bool cpu = text_equal(resource, "cpu");
	uint64_t amount;
	int rc = quantity_parse_count(quantity, cpu ? QUANTITY_MILLI : QUANTITY_WHOLE, &amount, e);

	if (rc)
		return err_add(e, rc, "%.64s of NUMA node %u", resource, node_id);
	if (!*resource)
		return err_set(e, EINVAL, "NUMA node %u: a resource without a name", node_id);
	if (node < 0)
		return 0;
	if (!r->amount) { /* room for all: in all forms one of these stands before each */
		for (const char *s = r->text; *s; s++)
			r->room += *s == ':' || *s == '=';
		r->amount = arena_array(r->arena, r->room, sizeof *r->amount);
	}
	resource = arena_strndup(r->arena, resource, strlen(resource));
	if (!resource || !r->amount || r->nr_amounts == r->room)
		return err_set(e, ENOMEM, "too large");
	r->amount[r->nr_amounts++] = (struct advice_amount){(unsigned)node, resource, amount};
	return 0;
}

int advice_add_resources(
	struct advice_reading *r, unsigned node_id, json_t *resources, struct err *e)
{
	if (!json_is_object(resources))
		return err_add(e, json_want("an object", resources, e), "resources of NUMA node %u",
			node_id);
	for (void *it = json_object_iter(resources); it;
		it = json_object_iter_next(resources, it)) {
		const char *name = json_object_iter_key(it);
		const json_t *v = json_object_iter_value(it);
		char number[TEXT_SIZE_MAX];
		const char *quantity = json_string_value(v);

		if (json_is_integer(v)) {
			(void)snprintf(
				number, sizeof number, "%lld", (long long)json_integer_value(v));
			quantity = number;
		}
		int rc = quantity ? advice_add_amount(r, node_id, name, quantity, e)
				  : err_add(e, json_want("a quantity", v, e),
					    "%.64s of NUMA node %u", name, node_id);
		if (rc)
			return rc;
	}
	return 0;
}

int advice_for_all(const struct advice_reading *r, struct advice *h, struct err *e)
{
	struct advice_container *all = arena_alloc(r->arena, sizeof *all);

	if (!all)
		return err_set(e, ENOMEM, "too large");
	*all = r->all;
	all->name = "*";
	all->amount = r->amount;
	all->nr_amounts = r->nr_amounts;
	h->mode = ADVICE_PREFER;
	h->scope = SCOPE_POD;
	h->container = all;
	h->nr_containers = h->cpus || !nodeset_empty(all->nodes) || all->has_unknown;
	return 0;
}

/* Our own form. */

/* Everything but the containers. */
struct head {
	unsigned version, ttl_s, mode, scope;
	const char *node, *uid, *fingerprint;
	uint64_t generation;
	int64_t at_ms;
};

/* Advice cannot ask to be passed over: the words begin after "off". */
enum { NR_MODES_ASKED = NR_ADVICE_MODES - ADVICE_PREFER };

#define AT(member) offsetof(struct head, member)
static const struct field head_rows[] = {
	FIELD("v", UNSIGNED, AT(version)),
	FIELD("node", STRING, AT(node)),
	FIELD("uid", STRING, AT(uid)),
	FIELD("gen", U64, AT(generation), .optional = true),
	FIELD("pfp", STRING, AT(fingerprint), .optional = true),
	FIELD("at", I64, AT(at_ms)),
	FIELD("ttl", UNSIGNED, AT(ttl_s), .max = ADVICE_TTL_MAX_S),
	FIELD("mode", NAME, AT(mode), .optional = true, .words = advice_mode_words + ADVICE_PREFER,
		.max = NR_MODES_ASKED),
	FIELD("scope", NAME, AT(scope), .optional = true, .words = topology_scope_words,
		.max = SCOPE_POD + 1),
};
static const struct fields head_fields = FIELDS(head_rows, struct head);

static const char *const head_keys[] = {
	"v", "node", "uid", "gen", "pfp", "at", "ttl", "mode", "scope", "containers", NULL};
static const char *const container_keys[] = {"numa", "dist", "res", NULL};
static const char *const share_keys[] = {"node", "resources", NULL};

/* {"node":0,"resources":{...}} of a container's res; each of its NUMA nodes has one at most. */
static int advice_json_read_share(
	json_t *share, struct cpuset *ids_left, struct advice_reading *r, struct err *e)
{
	const json_t *node = json_object_get(share, "node");
	json_int_t id = json_integer_value(node);
	int rc = json_want_object(share, share_keys, e);

	if (rc)
		return rc;
	if (!json_is_integer(node))
		return err_add(e, json_want("an integer", node, e), "node");
	if (id < 0 || id > NODE_ID_MAX || !cpuset_has(ids_left, (unsigned)id))
		return err_set(
			e, EINVAL, "node: %lld is not in numa, or is here twice", (long long)id);
	cpuset_del(ids_left, (unsigned)id);
	return advice_add_resources(r, (unsigned)id, json_object_get(share, "resources"), e);
}

static int advice_json_read_shares(
	const json_t *res, const char *numa, struct advice_reading *r, struct err *e)
{
	struct cpuset ids_left;
	int rc = cpuset_parse(&ids_left, numa, strlen(numa), e);

	if (res && !json_is_array(res))
		return json_want("a list", res, e);
	for (size_t i = 0; i < json_array_size(res) && !rc; i++) {
		rc = advice_json_read_share(json_array_get(res, i), &ids_left, r, e);
		if (rc)
			(void)err_add(e, rc, "element %zu", i);
	}
	return rc;
}

static int advice_json_read_container(
	json_t *v, struct advice_reading *r, struct advice_container *to, struct err *e)
{
	const json_t *numa = json_object_get(v, "numa");
	const json_t *dist = json_object_get(v, "dist");
	const char *list = json_string_value(numa);
	json_int_t distance = json_integer_value(dist);
	size_t first = r->nr_amounts;
	int rc = json_want_object(v, container_keys, e);

	if (rc)
		return rc;
	if (!list)
		return err_add(e, json_want("a string", numa, e), "numa");
	rc = advice_add_nodes(to, r->t, list, e);
	if (rc)
		return err_add(e, rc, "numa");
	if (dist && !json_is_integer(dist))
		return err_add(e, json_want("an integer", dist, e), "dist");
	if (distance < 0 || distance > DISTANCE_MAX * DIST_PER_UNIT)
		return err_set(e, ERANGE, "dist: %lld is not between 0 and %d", (long long)distance,
			DISTANCE_MAX * DIST_PER_UNIT);
	to->distance_x100 = (unsigned)distance;
	rc = advice_json_read_shares(json_object_get(v, "res"), list, r, e);
	if (rc)
		return err_add(e, rc, "res");
	to->nr_amounts = r->nr_amounts - first;
	to->amount = to->nr_amounts ? &r->amount[first] : NULL;
	return 0;
}

static int advice_json_read_containers(
	json_t *all, struct advice_reading *r, struct advice *out, struct err *e)
{
	size_t nr = json_object_size(all);
	struct advice_container *c = arena_array(r->arena, nr, sizeof *c);

	if (!nr)
		return json_is_object(all) ? err_set(e, EINVAL, "there is none")
					   : json_want("an object", all, e);
	if (!c)
		return err_set(e, ENOMEM, "too large");
	out->container = c;
	out->nr_containers = nr;
	for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it), c++) {
		const char *name = json_object_iter_key(it);
		int rc = *name ? advice_json_read_container(json_object_iter_value(it), r, c, e)
			       : err_set(e, EINVAL, "it has no name");

		if (rc)
			return err_add(e, rc, "container \"%.64s\"", name);
		c->name = arena_strndup(r->arena, name, strlen(name));
		if (!c->name)
			return err_set(e, ENOMEM, "too large");
	}
	return 0;
}

/* The version first: a later one may look different in everything else. */
static int advice_json_check_version(json_t *root, struct err *e)
{
	const json_t *v = json_object_get(root, "v");

	if (!json_is_integer(v))
		return err_add(e, json_want("an integer", v, e), "v");
	if (json_integer_value(v) != ADVICE_VERSION)
		return err_set(e, ENOTSUP, "v: version %lld is not known, only %d",
			(long long)json_integer_value(v), ADVICE_VERSION);
	return json_want_object(root, head_keys, e);
}

int advice_json_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	struct head h = {0};
	int rc = advice_json_check_version(r->json, e);

	if (!rc)
		rc = fields_read(r->json, &head_fields, &h,
			&(struct fields_context){.ids = &r->t->ids, .arena = r->arena}, e);
	if (rc)
		return rc;
	if (!*h.node || !*h.uid)
		return err_set(e, EINVAL, "%s: is empty", *h.node ? "uid" : "node");
	if (h.at_ms <= 0)
		return err_set(e, ERANGE, "at: %lld is no time", (long long)h.at_ms);
	if (!h.ttl_s)
		return err_set(e, ERANGE, "ttl: should be 1 at least, is 0");
	*out = (struct advice){.format = out->format,
		.version = h.version,
		.node = h.node,
		.uid = h.uid,
		.generation = h.generation,
		.fingerprint = h.fingerprint,
		.at_ms = h.at_ms,
		.ttl_s = h.ttl_s,
		.mode = (enum advice_mode)(h.mode + ADVICE_PREFER),
		.scope = (enum topology_scope)h.scope};
	rc = advice_json_read_containers(json_object_get(r->json, "containers"), r, out, e);
	return rc ? err_add(e, rc, "containers") : 0;
}

/* Writing. Jansson's setters take a NULL, of text that is no UTF-8, for a failure: it is gathered
 * in `bad`. */

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

static json_t *advice_json_of_resources(const struct advice_container *c, unsigned node, int *bad)
{
	json_t *all = json_object();

	for (size_t i = 0; i < c->nr_amounts; i++)
		if (c->amount[i].node == node)
			*bad |= json_object_set_new(
				all, c->amount[i].resource, amount_text(&c->amount[i]));
	return all;
}

static json_t *advice_json_of_container(
	const struct advice_container *c, const struct node_ids *ids, int *bad)
{
	char list[NODESET_TEXT_MAX];
	json_t *to = json_object(), *res = json_array();

	*bad |= json_object_set_new(
		to, "numa", json_string(nodeset_format(c->nodes, ids, list, sizeof list)));
	if (c->distance_x100)
		*bad |= json_object_set_new(to, "dist", json_integer(c->distance_x100));
	nodeset_each (n, c->nodes) {
		json_t *resources = advice_json_of_resources(c, n, bad);

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

static json_t *advice_json_of_head(const struct advice *h, int *bad)
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
	*bad |= json_object_set_new(to, "mode", json_string(advice_mode_words[h->mode]));
	*bad |= json_object_set_new(to, "scope", json_string(topology_scope_words[h->scope]));
	return to;
}

static char *advice_json_print(const struct advice *h, const struct node_ids *ids)
{
	int bad = 0;
	json_t *root = advice_json_of_head(h, &bad), *containers = json_object();

	for (size_t i = 0; i < h->nr_containers; i++) {
		bad |= h->container[i].has_unknown;
		bad |= json_object_set_new(containers, h->container[i].name,
			advice_json_of_container(&h->container[i], ids, &bad));
	}
	bad |= json_object_set_new(root, "containers", containers);
	char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

int advice_json_write(const struct advice *h, const struct topo *t, char **out, struct err *e)
{
	const struct advice_source own = ADVICE_OWN_SOURCE;
	auto_free char *text = NULL;
	struct advice back;
	struct arena a;

	if (!h->node || !h->uid)
		return err_set(e, EINVAL, "%s is missing", h->node ? "uid" : "node");
	text = advice_json_print(h, &t->ids);
	if (!text)
		return err_set(
			e, EINVAL, "text that is not UTF-8, or a NUMA node that is not known");
	arena_init(&a, ADVICE_ARENA_BYTES);
	int rc = advice_read(&own, text, &(struct advice_context){.t = t, .arena = &a}, &back, e);
	arena_fini(&a);
	if (!rc)
		*out = steal(text);
	return rc;
}
