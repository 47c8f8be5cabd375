#include <questions/family_rule_json.h>

#include <codec/fields_json.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>

static int family_rule_read_covers(
	const struct family_reader *r, const json_t *covers, struct family_demand *d, struct err *e)
{
	static const char *const keys[] = {"nodes", "count", NULL};
	size_t nr = json_array_size(covers);
	struct family_cover *cover = arena_array(r->arena, nr + 1, sizeof *cover);

	if (!json_is_array(covers))
		return json_want("a list", covers, e);
	if (!cover)
		return err_set(e, ENOMEM, "too large");
	for (size_t i = 0; i < nr; i++) {
		json_t *v = json_array_get(covers, i);
		int rc = json_want_object(v, keys, e);

		if (!rc)
			rc = family_nodes_read(
				r, json_object_get(v, "nodes"), true, &cover[i].nodes, e);
		if (!rc)
			rc = json_number(json_object_get(v, "count"), FAMILY_AMOUNT_MAX / nr,
				&cover[i].count, e);
		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	d->cover = cover;
	d->nr_covers = nr;
	return 0;
}

static int family_rule_read_demand(
	const struct family_reader *r, json_t *v, struct family_demand *d, struct err *e)
{
	static const char *const keys[] = {"weights", "covers", "base", "need", NULL};
	const json_t *covers = json_object_get(v, "covers");
	uint64_t *weight = arena_array(r->arena, NODES_MAX, sizeof *weight);
	struct nodeset named = {0};
	int rc = json_want_object(v, keys, e);

	if (!rc && !weight)
		rc = err_set(e, ENOMEM, "too large");
	if (!rc && covers && json_object_get(v, "weights"))
		rc = err_set(e, EINVAL, "either weights or covers");
	if (!rc)
		rc = covers ? family_rule_read_covers(r, covers, d, e)
			    : family_row_read_of(r, v, "weights", weight, &named, e);
	if (!rc)
		rc = family_amount_read(v, "base", &d->base, e);
	if (!rc)
		rc = family_amount_read(v, "need", &d->need, e);
	if (!rc && !covers)
		d->weight = weight;
	return rc;
}

/* Lists of a rule: its demands, its extra masks. */
static int family_rule_read_demands(
	const struct family_reader *r, const json_t *list, struct family *f, struct err *e)
{
	if (json_array_size(list) > FAMILY_DEMANDS)
		return err_set(e, ERANGE, "more than %d", FAMILY_DEMANDS);
	for (; f->nr_demands < json_array_size(list); f->nr_demands++) {
		int rc = family_rule_read_demand(
			r, json_array_get(list, f->nr_demands), &f->demand[f->nr_demands], e);

		if (rc)
			return err_add(e, rc, "element %u", f->nr_demands);
	}
	return 0;
}

static int family_rule_read_extra(
	const struct family_reader *r, const json_t *list, struct family *f, struct err *e)
{
	if (json_array_size(list) > FAMILY_EXTRA)
		return err_set(e, ERANGE, "more than %d", FAMILY_EXTRA);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct nodeset *mask = &f->extra[f->nr_extra++];
		int rc = family_nodes_read(r, json_array_get(list, i), true, mask, e);

		if (!rc && nodeset_empty(*mask))
			rc = err_set(e, EINVAL, "no node");
		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

static int family_rule_read_preference(
	const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	uint64_t *sockets = arena_array(r->arena, NODES_MAX, sizeof *sockets);
	uint64_t size = 0, touched = 0;
	unsigned nr = 0;
	int rc = sockets ? family_amount_read(v, "preferred_size", &size, e)
			 : err_set(e, ENOMEM, "too large");

	if (!rc)
		rc = family_amount_read(v, "preferred_sockets", &touched, e);
	if (!rc)
		rc = family_sockets_read(r, v, nodeset_first(r->ids.nr), sockets, &nr, e);
	if (!rc && touched && !nr)
		rc = err_set(e, EINVAL, "preferred_sockets: the key sockets is missing");
	if (rc)
		return rc;
	f->preferred_size = size > NODES_MAX ? NODES_MAX + 1 : (unsigned)size;
	f->preferred_sockets = touched > nr ? nr + 1 : (unsigned)touched;
	f->sockets_of_node = sockets;
	return 0;
}

int family_rule_json_read(const struct family_reader *r, json_t *v, struct family *f, struct err *e)
{
	static const char *const keys[] = {"kind", "ground", "required", "demands", "extra",
		"preferred_size", "preferred_sockets", "sockets", NULL};
	static const struct {
		const char *key;
		int (*read)(const struct family_reader *r, const json_t *list, struct family *f,
			struct err *e);
	} lists[] = {{"demands", family_rule_read_demands}, {"extra", family_rule_read_extra}};
	const json_t *required = json_object_get(v, "required");
	int rc = json_want_object(v, keys, e);

	if (rc)
		return rc;
	rc = family_nodes_read(r, json_object_get(v, "ground"), true, &f->ground, e);
	if (rc)
		return err_add(e, rc, "ground");
	rc = required ? family_nodes_read(r, required, true, &f->required, e) : 0;
	if (rc)
		return err_add(e, rc, "required");
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const json_t *list = json_object_get(v, lists[i].key);

		if (list && !json_is_array(list))
			rc = json_want("a list", list, e);
		else if (list)
			rc = lists[i].read(r, list, f, e);
		if (rc)
			return err_add(e, rc, "%s", lists[i].key);
	}
	f->kind = f->nr_extra || family_has(f, f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
	return family_rule_read_preference(r, v, f, e);
}
