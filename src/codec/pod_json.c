#include <codec/pod_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/devices.h>
#include <numafit/text.h>

static int pod_json_too_large(struct err *e)
{
	return err_set(e, ENOMEM, "a v1.Pod that is too large");
}

/* The member's text; "" when it is not there. */
static int pod_json_read_text(
	const json_t *object, const char *key, const char **out, struct err *e)
{
	int rc = json_member_string(object, key, out, e);

	if (!rc && !*out)
		*out = "";
	return rc;
}

/* The spec. */

int resource_list_json_read(const json_t *object, const char *key, struct arena *a,
	struct resource_list *out, struct err *e)
{
	json_t *v;
	int rc = json_member_object(object, key, &v, e);
	struct resource_amount *at = rc ? NULL : arena_array(a, json_object_size(v), sizeof *at);

	if (!at)
		return rc ? rc : pod_json_too_large(e);
	*out = (struct resource_list){at, json_object_size(v)};
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it), at++) {
		at->name = json_object_iter_key(it);
		if ((rc = json_quantity(json_object_iter_value(it), &at->q, e)))
			return err_add(e, rc, "%s.%.64s", key, at->name);
	}
	return 0;
}

static int pod_json_read_resources(
	const json_t *owner, struct arena *a, struct resource_spec *out, struct err *e)
{
	json_t *v, *claims = NULL;
	int rc = json_member_object(owner, "resources", &v, e);

	if (rc)
		return rc;
	out->said = v;
	rc = json_member_list(v, "claims", &claims, e);
	out->has_claims = json_array_size(claims);
	if (!rc)
		rc = resource_list_json_read(v, "requests", a, &out->requests, e);
	if (!rc)
		rc = resource_list_json_read(v, "limits", a, &out->limits, e);
	return rc ? err_add(e, rc, "resources") : 0;
}

static int pod_json_read_container(
	const json_t *v, bool init, struct arena *a, struct container_spec *c, struct err *e)
{
	const char *restart;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = pod_json_read_text(v, "name", &c->name, e);
	if (!rc)
		rc = pod_json_read_text(v, "restartPolicy", &restart, e);
	if (rc)
		return rc;
	c->kind = container_kind_of(init, restart);
	rc = pod_json_read_resources(v, a, &c->resources, e);
	return rc && *c->name ? err_add(e, rc, "%.64s", c->name) : rc;
}

static int pod_json_read_containers(
	const json_t *list, bool init, struct arena *a, struct container_spec *c, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = pod_json_read_container(json_array_get(list, i), init, a, &c[i], e);

		if (rc)
			return err_add(e, rc, "%s[%zu]", init ? "initContainers" : "containers", i);
	}
	return 0;
}

static int pod_json_read_spec(
	const json_t *spec, struct arena *a, struct pod_spec *out, struct err *e)
{
	json_t *init, *app;
	int rc = json_member_list(spec, "initContainers", &init, e);

	if (!rc)
		rc = json_member_list(spec, "containers", &app, e);
	if (!rc)
		rc = pod_spec_alloc(out, json_array_size(init), json_array_size(app), a, e);
	if (!rc)
		rc = pod_json_read_containers(init, true, a, out->container, e);
	if (!rc)
		rc = pod_json_read_containers(
			app, false, a, out->container + json_array_size(init), e);
	if (!rc)
		rc = pod_json_read_resources(spec, a, &out->resources, e);
	return rc ? rc : resource_list_json_read(spec, "overhead", a, &out->overhead, e);
}

/* The metadata */

static int pod_json_read_annotations(
	const json_t *metadata, struct arena *a, struct pod_spec *out, struct err *e)
{
	json_t *v;
	int rc = json_member_object(metadata, "annotations", &v, e);
	struct key_value *at = rc ? NULL : arena_array(a, json_object_size(v), sizeof *at);

	if (!at)
		return rc ? rc : pod_json_too_large(e);
	out->annotations = at;
	out->nr_annotations = json_object_size(v);
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it), at++) {
		json_t *value = json_object_iter_value(it);

		*at = (struct key_value){json_object_iter_key(it), json_string_value(value)};
		if (!at->value)
			return err_add(
				e, json_want("a string", value, e), "annotations.%.64s", at->key);
	}
	return 0;
}

/* Kinds of owners that are not like any controller. */
static const struct {
	const char *kind;
	enum pod_owner owner;
} owners[] = {
	{"DaemonSet", POD_OWNER_DAEMON_SET},
	{"Node", POD_OWNER_NODE},
};

/* metav1.GetControllerOf(): the one that says it is the controller. */
static enum pod_owner owner_of(const json_t *references)
{
	for (size_t i = 0; i < json_array_size(references); i++) {
		const json_t *r = json_array_get(references, i);
		const char *kind = json_string_value(json_object_get(r, "kind"));

		if (!json_is_true(json_object_get(r, "controller")))
			continue;
		for (size_t k = 0; k < sizeof owners / sizeof *owners; k++)
			if (text_equal(kind, owners[k].kind))
				return owners[k].owner;
		return POD_OWNER_CONTROLLER;
	}
	return POD_OWNER_NONE;
}

static int pod_json_read_metadata(
	const json_t *metadata, struct arena *a, struct pod_spec *out, struct err *e)
{
	int rc = pod_json_read_text(metadata, "uid", &out->uid, e);

	if (!rc)
		rc = pod_json_read_text(metadata, "namespace", &out->ns, e);
	if (!rc)
		rc = pod_json_read_text(metadata, "name", &out->name, e);
	out->owner = owner_of(json_object_get(metadata, "ownerReferences"));
	return rc ? rc : pod_json_read_annotations(metadata, a, out, e);
}

static int pod_json_read_status(const json_t *status, struct pod_spec *out, struct err *e)
{
	int rc = pod_json_read_text(status, "qosClass", &out->qos, e);

	return rc ? rc : pod_json_read_text(status, "phase", &out->phase, e);
}

int pod_json_read(const json_t *pod, struct arena *a, struct pod_spec *out, struct err *e)
{
	struct pod_spec read = {0};
	json_t *metadata, *spec, *status;

	if (!json_is_object(pod))
		return json_want("a v1.Pod", pod, e);
	int rc = json_member_object(pod, "metadata", &metadata, e);
	if (!rc && (rc = pod_json_read_metadata(metadata, a, &read, e)))
		rc = err_add(e, rc, "metadata");
	if (!rc)
		rc = json_member_object(pod, "spec", &spec, e);
	if (!rc && (rc = pod_json_read_spec(spec, a, &read, e)))
		rc = err_add(e, rc, "spec");
	if (!rc)
		rc = json_member_object(pod, "status", &status, e);
	if (!rc && (rc = pod_json_read_status(status, &read, e)))
		rc = err_add(e, rc, "status");
	if (!rc)
		*out = read;
	return rc;
}

static int check_names(const struct pod_spec *s, struct err *e)
{
	unsigned nr_init = 0;

	for (unsigned i = 0; i < s->nr; i++) {
		bool init = s->container[i].kind != CONTAINER_APP;

		nr_init += init;
		if (!*s->container[i].name)
			return err_set(e, EINVAL, "spec: %s: number %u has no name",
				init ? "initContainers" : "containers", init ? i : i - nr_init);
	}
	return 0;
}

int pod_json_read_ask(const json_t *pod, const struct device_resource *resources,
	unsigned nr_resources, struct arena *a, const struct settings *rules, struct pod *out,
	struct err *e)
{
	const char **name = arena_array(a, nr_resources, sizeof *name);
	struct pod_spec s;

	if (!json_is_object(json_object_get(pod, "spec")))
		return json_want("a v1.Pod", pod, e);
	int rc = name ? pod_json_read(pod, a, &s, e) : pod_json_too_large(e);
	if (!rc)
		rc = check_names(&s, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < nr_resources; i++)
		name[i] = resources[i].name;
	return pod_spec_ask(&s, &(struct resource_names){name, nr_resources}, a, rules, out, e);
}
