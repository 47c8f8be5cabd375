#include <codec/sched_json.h>

#include <codec/fields_json.h>
#include <codec/pod_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>

/* Room for as many amounts. */
static int sched_alloc_amounts(const struct resource_list *from, const struct sched_reader *r,
	struct amount **at, struct amounts *out, struct err *e)
{
	*at = arena_array(r->arena, from->nr, sizeof **at);
	if (!*at && from->nr)
		return err_set(e, ENOMEM, "too large");
	*out = (struct amounts){*at, (unsigned)from->nr};
	return 0;
}

static int to_amounts_of_node(const struct resource_list *from, const struct sched_reader *r,
	struct amounts *out, struct err *e)
{
	struct amount *at;
	int rc = sched_alloc_amounts(from, r, &at, out, e);

	for (size_t i = 0; i < from->nr && !rc; i++)
		at[i] = (struct amount){resource_number(r->names, from->at[i].name), from->at[i].q};
	return rc;
}

/* The API server lets no negative amount in, but whoever asks about a pod may write any; the
 * arithmetic behind this knows none. */
static int to_amount_of_pod(const struct resource_amount *from, const struct sched_reader *r,
	struct amount *out, struct err *e)
{
	out->q = from->q;
	if (quantity_compare(from->q, quantity_of(0)) < 0)
		return err_set(e, ERANGE, "it is negative");
	if (resource_number_of_pod(r->names, from->name, &out->resource))
		return 0;
	return err_set(e, E2BIG, "no node has it, and %d such names are known already",
		RESOURCES_OF_PODS_MAX);
}

static int to_amounts_of_pod(const struct resource_list *from, const char *list,
	const struct sched_reader *r, struct amounts *out, struct err *e)
{
	struct amount *at;

	if (from->nr > POD_SPEC_RESOURCES_MAX)
		return err_set(
			e, E2BIG, "%s: more than %d resources", list, POD_SPEC_RESOURCES_MAX);
	int rc = sched_alloc_amounts(from, r, &at, out, e);
	for (size_t i = 0; i < from->nr && !rc; i++)
		if ((rc = to_amount_of_pod(&from->at[i], r, &at[i], e)))
			return err_add(e, rc, "%s.%.64s", list, from->at[i].name);
	return rc;
}

static int to_requests_and_limits(const struct resource_spec *from, const struct sched_reader *r,
	struct amounts *requests, struct amounts *limits, struct err *e)
{
	int rc = to_amounts_of_pod(&from->requests, "requests", r, requests, e);

	return rc ? rc : to_amounts_of_pod(&from->limits, "limits", r, limits, e);
}

static int to_containers(const struct pod_spec *s, const struct sched_reader *r,
	struct sched_pod *out, struct err *e)
{
	struct sched_container *c = arena_array(r->arena, s->nr, sizeof *c);

	if (!c && s->nr)
		return err_set(e, ENOMEM, "too large");
	out->container = c;
	out->nr_containers = s->nr;
	for (unsigned i = 0; i < s->nr; i++) {
		c[i].name = s->container[i].name;
		c[i].kind = s->container[i].kind;
		int rc = to_requests_and_limits(
			&s->container[i].resources, r, &c[i].requests, &c[i].limits, e);
		if (rc)
			return err_add(e, rc, "container %.64s", c[i].name);
	}
	return 0;
}

int sched_pod_json_read(
	json_t *pod, const struct sched_reader *r, struct sched_pod *out, struct err *e)
{
	struct pod_spec s;
	int rc = pod_json_read(pod, r->arena, &s, e);

	if (rc)
		return rc;
	int said = text_index(qos_words, NR_QOS, s.qos);
	if (*s.qos && said < 0)
		return err_set(e, EINVAL, "status: qosClass: there is no \"%.64s\"", s.qos);
	*out = (struct sched_pod){
		.ns = s.ns,
		.name = s.name,
		.uid = s.uid,
		.annotations = s.annotations,
		.nr_annotations = s.nr_annotations,
	};
	rc = to_containers(&s, r, out, e);
	if (!rc)
		rc = to_requests_and_limits(
			&s.resources, r, &out->own_requests, &out->own_limits, e);
	if (!rc)
		rc = to_amounts_of_pod(&s.overhead, "overhead", r, &out->overhead, e);
	if (rc)
		return err_add(e, rc, "spec");
	out->qos = said >= 0 ? (enum qos)said : sched_pod_qos(out);
	return 0;
}

int sched_node_json_read(
	json_t *node, const struct sched_reader *r, struct sched_node *out, struct err *e)
{
	struct resource_list allocatable;
	json_t *metadata, *status;

	*out = (struct sched_node){0};
	if (!json_is_object(node))
		return json_want("a v1.Node", node, e);
	int rc = json_member_object(node, "metadata", &metadata, e);
	if (!rc && (rc = json_member_string(metadata, "name", &out->name, e)))
		rc = err_add(e, rc, "metadata");
	if (!rc)
		rc = json_member_object(node, "status", &status, e);
	if (rc)
		return rc;
	out->name = out->name ? out->name : "";
	rc = resource_list_json_read(status, "allocatable", r->arena, &allocatable, e);
	if (!rc)
		rc = to_amounts_of_node(&allocatable, r, &out->allocatable, e);
	return rc ? err_add(e, rc, "status") : 0;
}
