#include <codec/reasons_json.h>

#include <codec/fields_json.h>
#include <inttypes.h>
#include <jansson.h>

static const char *const family_kind_words[] = {
	[FAMILY_ANY] = "any", [FAMILY_NONE] = "none", [FAMILY_CAPACITY] = "capacity"};

static const struct field set_rows[] = {
	FIELD("nodes", NODES, 0),
};
static const struct fields set_fields = FIELDS(set_rows, struct nodeset);

#define AT(member) offsetof(struct hint, member)
static const struct field hint_rows[] = {
	FIELD("nodes", NODES, AT(mask)),
	FIELD("any", BOOL, AT(any)),
	FIELD("preferred", BOOL, AT(preferred)),
};
static const struct fields hint_fields = FIELDS(hint_rows, struct hint);
#undef AT

#define AT(member) offsetof(struct reasons_resource, member)
static const struct field resource_rows[] = {
	FIELD("resource", CHARS, AT(resource), .max = REASONS_NAME_MAX),
	FIELD("kind", NAME, AT(kind), .words = family_kind_words, .max = FAMILY_CAPACITY + 1),
	FIELD("masks", U64, AT(masks)),
	FIELD("masks_at_least", BOOL, AT(more_masks)),
	FIELD("smallest", UNSIGNED, AT(smallest), .max = NODES_MAX),
	FIELD("preferred_size", UNSIGNED, AT(preferred_size)),
	FIELD("best", ARRAY, AT(best), .count = AT(nr_best), .max = REASONS_BEST,
		.fields = &set_fields),
};
static const struct fields resource_fields = FIELDS(resource_rows, struct reasons_resource);
#undef AT

#define AT(member) offsetof(struct reasons, member)
static const struct field reasons_rows[] = {
	FIELD("admit", BOOL, AT(admit)),
	FIELD("affinity", OBJECT, AT(affinity), .fields = &hint_fields),
	FIELD("runner_up", OBJECT, AT(runner_up), .has_flag = true, .flag = AT(has_runner_up),
		.fields = &hint_fields),
	FIELD("cut_short", BOOL, AT(cut_short)),
	FIELD("resources", ARRAY, AT(resource), .count = AT(nr), .max = REASONS_RESOURCES,
		.fields = &resource_fields),
};
const struct fields reasons_fields = FIELDS(reasons_rows, struct reasons);
#undef AT

static json_t *affinity_of(const struct hint *h, const struct topo *t)
{
	return h->any ? json_null() : json_node_ids(h->mask, &t->ids);
}

static json_t *runner_up_of(const struct reasons *r, const struct topo *t)
{
	if (!r->has_runner_up)
		return json_null();
	return json_pack("{s:o, s:b}", "affinity", affinity_of(&r->runner_up, t), "preferred",
		r->runner_up.preferred);
}

static json_t *resource_json(const struct reasons_resource *r, const struct topo *t)
{
	json_t *best = json_array();
	json_t *masks = r->masks <= INT64_MAX ? json_integer((json_int_t)r->masks)
					      : json_sprintf("%" PRIu64, r->masks);

	for (unsigned i = 0; i < r->nr_best; i++)
		(void)json_array_append_new(best, json_node_ids(r->best[i], &t->ids));
	return json_pack("{s:s, s:s, s:o, s:b, s:i, s:i, s:o}", "resource", r->resource, "kind",
		family_kind_words[r->kind], "masks", masks, "masks_at_least", r->more_masks,
		"smallest", (int)r->smallest, "preferred_size", (int)r->preferred_size, "best",
		best);
}

json_t *reasons_json(const struct reasons *r, const struct topo *t)
{
	if (!r)
		return json_null();
	json_t *resources = json_array();

	for (unsigned i = 0; i < r->nr; i++)
		(void)json_array_append_new(resources, resource_json(&r->resource[i], t));
	return json_pack("{s:s, s:o, s:b, s:o, s:b, s:o}", "verdict",
		r->admit ? "admitted" : "refused", "affinity", affinity_of(&r->affinity, t),
		"preferred", r->affinity.preferred, "runner_up", runner_up_of(r, t), "cut_short",
		r->cut_short, "resources", resources);
}
