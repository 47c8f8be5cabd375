#include <codec/sched_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_TEXT_MAX = 40, CONTAINERS_MAX = 512, DIGITS_EXACT = 15, DIGITS_MAX = 17 };

json_t *sched_json_member(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_null(v) ? NULL : v;
}

int sched_json_string(const json_t *object, const char *key, const char **out, struct err *e)
{
	const json_t *v = sched_json_member(object, key);

	if (v && !json_is_string(v))
		return err_add(e, json_want("a string", v, e), "%s", key);
	*out = json_string_value(v);
	return 0;
}

int sched_json_list(const json_t *object, const char *key, json_t **out, struct err *e)
{
	json_t *v = sched_json_member(object, key);

	if (v && !json_is_array(v))
		return err_add(e, json_want("a list", v, e), "%s", key);
	*out = v;
	return 0;
}

/* An object member, or NULL. */
static int read_object(const json_t *object, const char *key, json_t **out, struct err *e)
{
	json_t *v = sched_json_member(object, key);

	if (v && !json_is_object(v))
		return err_add(e, json_want("an object", v, e), "%s", key);
	*out = v;
	return 0;
}

/* A fraction as it was written, of up to 15 digits: the fewest digits that are this double. */
static void print_real(double d, char *text)
{
	for (int digits = DIGITS_EXACT; digits <= DIGITS_MAX; digits++) {
		(void)snprintf(text, NUMBER_TEXT_MAX, "%.*g", digits, d);
		if (!(strtod(text, NULL) < d) && !(strtod(text, NULL) > d))
			return;
	}
}

int sched_quantity_json_read(const json_t *v, struct quantity *out, struct err *e)
{
	char number[NUMBER_TEXT_MAX];

	if (json_is_string(v))
		return quantity_parse(out, json_string_value(v), e);
	if (json_is_integer(v)) {
		*out = quantity_of(json_integer_value(v));
		return 0;
	}
	if (!json_is_real(v))
		return json_want("a quantity", v, e);
	print_real(json_real_value(v), number);
	return quantity_parse(out, number, e);
}

int sched_amounts_json_read(
	json_t *v, const struct sched_reader *r, struct amounts *out, struct err *e)
{
	struct amount *at;
	unsigned nr = 0;

	*out = (struct amounts){0};
	if (!v)
		return 0;
	if (!json_is_object(v))
		return json_want("an object", v, e);
	at = arena_array(r->arena, json_object_size(v), sizeof *at);
	if (!at && json_object_size(v))
		return err_set(e, ENOMEM, "too large");
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
		const char *name = json_object_iter_key(it);
		int rc = sched_quantity_json_read(json_object_iter_value(it), &at[nr].q, e);

		if (rc)
			return err_add(e, rc, "%.64s", name);
		at[nr++].resource = resource_number(r->names, name);
	}
	*out = (struct amounts){at, nr};
	return 0;
}

/* The lists "requests" and "limits" of the object's member "resources". */
static int read_resources(const json_t *object, const struct sched_reader *r,
	struct amounts *requests, struct amounts *limits, struct err *e)
{
	json_t *resources;
	int rc = read_object(object, "resources", &resources, e);

	if (rc)
		return rc;
	rc = sched_amounts_json_read(sched_json_member(resources, "requests"), r, requests, e);
	if (rc)
		return err_add(e, rc, "resources.requests");
	rc = sched_amounts_json_read(sched_json_member(resources, "limits"), r, limits, e);
	return rc ? err_add(e, rc, "resources.limits") : 0;
}

static int read_container(const json_t *v, bool init, const struct sched_reader *r,
	struct sched_container *c, struct err *e)
{
	const char *restart;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = sched_json_string(v, "name", &c->name, e);
	if (!rc)
		rc = sched_json_string(v, "restartPolicy", &restart, e);
	if (rc)
		return rc;
	c->name = c->name ? c->name : "";
	c->kind = !init                           ? CONTAINER_APP
		  : text_equal(restart, "Always") ? CONTAINER_SIDECAR
						  : CONTAINER_INIT;
	return read_resources(v, r, &c->requests, &c->limits, e);
}

static int read_containers(const json_t *list, bool init, const struct sched_reader *r,
	struct sched_container *first, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = read_container(json_array_get(list, i), init, r, &first[i], e);

		if (rc)
			return err_add(e, rc, "%s[%zu]", init ? "initContainers" : "containers", i);
	}
	return 0;
}

static int read_spec(
	const json_t *spec, const struct sched_reader *r, struct sched_pod *out, struct err *e)
{
	struct sched_container *all;
	json_t *init, *app;
	int rc = sched_json_list(spec, "initContainers", &init, e);

	if (!rc)
		rc = sched_json_list(spec, "containers", &app, e);
	if (rc)
		return rc;
	size_t nr_init = json_array_size(init), nr = nr_init + json_array_size(app);
	if (nr > CONTAINERS_MAX)
		return err_set(e, ERANGE, "more than %d containers", CONTAINERS_MAX);
	all = arena_array(r->arena, nr, sizeof *all);
	if (!all && nr)
		return err_set(e, ENOMEM, "too large");
	rc = read_containers(init, true, r, all, e);
	if (!rc)
		rc = read_containers(app, false, r, all + nr_init, e);
	if (!rc)
		rc = read_resources(spec, r, &out->own_requests, &out->own_limits, e);
	if (rc)
		return rc;
	out->container = all;
	out->nr_containers = (unsigned)nr;
	rc = sched_amounts_json_read(sched_json_member(spec, "overhead"), r, &out->overhead, e);
	return rc ? err_add(e, rc, "overhead") : 0;
}

static int read_annotations(
	json_t *v, const struct sched_reader *r, struct sched_pod *out, struct err *e)
{
	struct key_value *pair = arena_array(r->arena, json_object_size(v), sizeof *pair);

	if (!pair && json_object_size(v))
		return err_set(e, ENOMEM, "too large");
	out->annotations = pair;
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it), pair++) {
		json_t *value = json_object_iter_value(it);

		*pair = (struct key_value){json_object_iter_key(it), json_string_value(value)};
		if (!pair->value)
			return err_add(e, json_want("a string", value, e), "%.64s", pair->key);
		out->nr_annotations++;
	}
	return 0;
}

static int read_metadata(
	const json_t *pod, const struct sched_reader *r, struct sched_pod *out, struct err *e)
{
	json_t *metadata, *annotations;
	int rc = read_object(pod, "metadata", &metadata, e);

	if (rc)
		return rc;
	rc = sched_json_string(metadata, "namespace", &out->ns, e);
	if (!rc)
		rc = sched_json_string(metadata, "name", &out->name, e);
	if (!rc)
		rc = sched_json_string(metadata, "uid", &out->uid, e);
	if (!rc)
		rc = read_object(metadata, "annotations", &annotations, e);
	if (!rc && (rc = read_annotations(annotations, r, out, e)))
		rc = err_add(e, rc, "annotations");
	if (rc)
		return err_add(e, rc, "metadata");
	out->ns = out->ns ? out->ns : "";
	out->name = out->name ? out->name : "";
	out->uid = out->uid ? out->uid : "";
	return 0;
}

static int read_class(const json_t *pod, struct sched_pod *out, struct err *e)
{
	const char *class;
	json_t *status;
	int rc = read_object(pod, "status", &status, e);

	if (!rc && (rc = sched_json_string(status, "qosClass", &class, e)))
		rc = err_add(e, rc, "status");
	if (rc)
		return rc;
	out->qos = sched_pod_qos(out);
	if (text_equal(class, ""))
		return 0;
	int told = qos_from_name(class);
	if (told < 0)
		return err_set(e, EINVAL, "status: qosClass: there is no \"%.64s\"", class);
	out->qos = (enum qos)told;
	return 0;
}

int sched_pod_json_read(
	json_t *pod, const struct sched_reader *r, struct sched_pod *out, struct err *e)
{
	json_t *spec;

	*out = (struct sched_pod){0};
	if (!json_is_object(pod))
		return json_want("a v1.Pod", pod, e);
	int rc = read_metadata(pod, r, out, e);
	if (!rc)
		rc = read_object(pod, "spec", &spec, e);
	if (!rc && (rc = read_spec(spec, r, out, e)))
		rc = err_add(e, rc, "spec");
	return rc ? rc : read_class(pod, out, e);
}

int sched_node_json_read(
	json_t *node, const struct sched_reader *r, struct sched_node *out, struct err *e)
{
	json_t *metadata, *status;

	*out = (struct sched_node){0};
	if (!json_is_object(node))
		return json_want("a v1.Node", node, e);
	int rc = read_object(node, "metadata", &metadata, e);
	if (!rc && (rc = sched_json_string(metadata, "name", &out->name, e)))
		rc = err_add(e, rc, "metadata");
	if (!rc)
		rc = read_object(node, "status", &status, e);
	if (rc)
		return rc;
	out->name = out->name ? out->name : "";
	rc = sched_amounts_json_read(
		sched_json_member(status, "allocatable"), r, &out->allocatable, e);
	return rc ? err_add(e, rc, "status.allocatable") : 0;
}
