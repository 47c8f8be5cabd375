#include <codec/pod_object_json.h>

#include <codec/fields_json.h>
#include <codec/advice.h>
#include <codec/pod_spec.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

/* pkg/kubelet/types/pod_update.go, ConfigMirrorAnnotationKey: its value is the static pod's uid. */
static const char mirror[] = "kubernetes.io/config.mirror";
static const char ours[] = "numafit.io/";

/* The member's text; "" when it is absent, or something else. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int too_large(struct err *e)
{
	return err_set(e, ENOMEM, "a v1.Pod that is too large");
}

/* Absent, or of that type, or null: Go writes what it has none of in either way. */
static int check_type(const json_t *v, json_type type, const char *what, struct err *e)
{
	return !v || json_is_null(v) || json_typeof(v) == type ? 0 : json_want(what, v, e);
}

/* The spec */

static int read_list(json_t *v, struct arena *a, struct resource_list *out, struct err *e)
{
	int rc = check_type(v, JSON_OBJECT, "an object", e);
	size_t nr = json_object_size(v);

	if (rc)
		return rc;
	if (nr > POD_OBJECT_RESOURCES_MAX)
		return err_set(
			e, E2BIG, "%zu resources, more than %d", nr, POD_OBJECT_RESOURCES_MAX);
	struct key_value *list = arena_array(a, nr, sizeof *list);
	if (!list)
		return too_large(e);
	*out = (struct resource_list){list, nr};
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it), list++) {
		const json_t *quantity = json_object_iter_value(it);

		*list = (struct key_value){json_object_iter_key(it), json_string_value(quantity)};
		if (!list->value)
			return err_add(e, json_want("a quantity", quantity, e), "%.64s", list->key);
	}
	return 0;
}

static int read_resources(
	const json_t *owner, struct arena *a, struct resource_spec *out, struct err *e)
{
	const json_t *v = json_object_get(owner, "resources");
	int rc = check_type(v, JSON_OBJECT, "an object", e);

	if (!rc)
		rc = read_list(json_object_get(v, "limits"), a, &out->limits, e);
	if (!rc)
		rc = read_list(json_object_get(v, "requests"), a, &out->requests, e);
	return rc;
}

static int read_containers(
	const json_t *list, bool init, struct arena *a, struct container_spec *to, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		bool restarts = text_equal(text_of(v, "restartPolicy"), "Always");

		to[i].name = text_of(v, "name");
		to[i].kind = !init ? CONTAINER_APP : restarts ? CONTAINER_SIDECAR : CONTAINER_INIT;
		int rc = read_resources(v, a, &to[i].resources, e);
		if (rc)
			return err_add(e, rc, "container %.64s", to[i].name);
	}
	return 0;
}

static int read_spec(const json_t *spec, struct arena *a, struct pod_spec *out, struct err *e)
{
	const json_t *inits = json_object_get(spec, "initContainers"),
		     *apps = json_object_get(spec, "containers");
	size_t nr_inits = json_array_size(inits), nr = nr_inits + json_array_size(apps);
	int rc = check_type(inits, JSON_ARRAY, "a list", e);

	if (!rc)
		rc = check_type(apps, JSON_ARRAY, "a list", e);
	if (rc)
		return rc;
	if (nr > POD_OBJECT_CONTAINERS_MAX)
		return err_set(
			e, E2BIG, "%zu containers, more than %d", nr, POD_OBJECT_CONTAINERS_MAX);
	struct container_spec *list = arena_array(a, nr, sizeof *list);
	if (!list)
		return too_large(e);
	out->container = list;
	out->nr = (unsigned)nr;
	rc = read_containers(inits, true, a, list, e);
	if (!rc)
		rc = read_containers(apps, false, a, list + nr_inits, e);
	return rc ? rc : read_resources(spec, a, &out->resources, e);
}

/* The metadata */

static bool is_needed(const char *key)
{
	return strncmp(key, ours, sizeof ours - 1) == 0 || advice_source_of(key);
}

static int read_annotations(json_t *v, struct arena *a, struct pod *to, struct err *e)
{
	int rc = check_type(v, JSON_OBJECT, "an object", e);
	size_t nr = 0;

	if (rc)
		return err_add(e, rc, "annotations");
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it))
		nr += is_needed(json_object_iter_key(it));
	struct key_value *list = arena_array(a, nr, sizeof *list);
	if (!list)
		return too_large(e);
	to->annotations = list;
	to->nr_annotations = nr;
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
		const char *key = json_object_iter_key(it);

		if (is_needed(key))
			*list++ = (struct key_value){key, text_of(v, key)};
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

static enum pod_owner owner_of_kind(const char *kind)
{
	for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
		if (text_equal(kind, owners[i].kind))
			return owners[i].owner;
	return POD_OWNER_CONTROLLER;
}

static enum pod_owner owner_of(const json_t *references)
{
	for (size_t i = 0; i < json_array_size(references); i++) {
		const json_t *r = json_array_get(references, i);

		if (json_is_true(json_object_get(r, "controller")))
			return owner_of_kind(text_of(r, "kind"));
	}
	return POD_OWNER_NONE;
}

static int read_metadata(const json_t *v, struct arena *a, struct known_pod *out, struct err *e)
{
	json_t *annotations = json_object_get(v, "annotations");
	const char *static_uid = text_of(annotations, mirror);

	out->owner = *static_uid ? POD_OWNER_NODE : owner_of(json_object_get(v, "ownerReferences"));
	out->pod = (struct pod){
		.sandbox_id = "",
		.uid = *static_uid ? static_uid : text_of(v, "uid"),
		.ns = text_of(v, "namespace"),
		.name = text_of(v, "name"),
		.source = POD_FROM_API_SERVER,
	};
	if (!*out->pod.uid)
		return err_set(e, EINVAL, "no v1.Pod with a uid");
	return read_annotations(annotations, a, &out->pod, e);
}

static bool has_ended(const char *phase)
{
	return text_equal(phase, "Succeeded") || text_equal(phase, "Failed");
}

static int read_pod(const json_t *pod, struct arena *a, struct known_pod *out, struct err *e)
{
	const json_t *status = json_object_get(pod, "status");
	struct pod_spec spec = {.qos = text_of(status, "qosClass")};
	int rc = read_metadata(json_object_get(pod, "metadata"), a, out, e);

	if (!rc)
		rc = read_spec(json_object_get(pod, "spec"), a, &spec, e);
	if (!rc)
		rc = pod_spec_list_resources(&spec, a, e);
	if (!rc)
		rc = pod_spec_ask(&spec, a, &out->pod, e);
	if (rc)
		return rc;
	out->resource = spec.resource;
	out->nr_resources = spec.nr_resources;
	out->ended = has_ended(text_of(status, "phase"));
	return 0;
}

int pod_object_json_read(const json_t *pod, struct arena *a, struct known_pod *out, struct err *e)
{
	struct known_pod read = {0};
	int rc = read_pod(pod, a, &read, e);

	if (rc)
		return err_add(e, rc, "pod %.64s/%.64s", read.pod.ns ? read.pod.ns : "",
			read.pod.name ? read.pod.name : "");
	*out = read;
	return 0;
}
