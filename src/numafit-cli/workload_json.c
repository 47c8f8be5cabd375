#include <numafit-cli/workload_json.h>

#include <codec/fields_json.h>
#include <codec/pod_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/devices.h>
#include <numafit/nearest.h>
#include <numafit/text.h>
#include <numafit/tokens.h>
#include <string.h>

/* Where an object of the kind has its pod: the path of members to it. */
static const struct {
	const char *kind;
	const char *path[4];
} kinds[] = {
	{"Pod", {NULL}},
	{"Deployment", {"spec", "template"}},
	{"StatefulSet", {"spec", "template"}},
	{"DaemonSet", {"spec", "template"}},
	{"ReplicaSet", {"spec", "template"}},
	{"ReplicationController", {"spec", "template"}},
	{"Job", {"spec", "template"}},
	{"CronJob", {"spec", "jobTemplate", "spec", "template"}},
};

static const char *object_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_member(object, key));

	return text ? text : "";
}

/* The pod of the object, or NULL when it makes none. */
static const json_t *pod_of(const json_t *object)
{
	const char *kind = object_text(object, "kind");
	const json_t *pod = object;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (!text_equal(kind, kinds[i].kind))
			continue;
		for (size_t k = 0; k < sizeof kinds[i].path / sizeof *kinds[i].path; k++)
			if (kinds[i].path[k])
				pod = json_member(pod, kinds[i].path[k]);
		return pod;
	}
	return NULL;
}

/* How many of the list make pods; the first one into *first. */
static unsigned find_workloads(const json_t *list, const json_t **first)
{
	unsigned nr = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *object = json_array_get(list, i);

		if (text_equal(object_text(object, "kind"), "List"))
			nr += find_workloads(json_member(object, "items"), first);
		else if (pod_of(object)) {
			*first = *first ? *first : object;
			nr++;
		}
	}
	return nr;
}

/* Names that are misspelt would be passed over, and the answer would be another pod's (kubectl
 * refuses them, too). */
static const char *const container_keys[] = {"name", "image", "command", "args", "workingDir",
	"ports", "envFrom", "env", "resources", "resizePolicy", "restartPolicy",
	"restartPolicyRules", "volumeMounts", "volumeDevices", "livenessProbe", "readinessProbe",
	"startupProbe", "lifecycle", "terminationMessagePath", "terminationMessagePolicy",
	"imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty", NULL};
static const char *const resources_keys[] = {"limits", "requests", "claims", NULL};
static const char *const resource_names[] = {"cpu", "memory", "ephemeral-storage", NULL};

static int check_name(const char *name, const char *const known[], const char *what, struct err *e)
{
	struct nearest near;

	nearest_begin(&near, name);
	for (size_t i = 0; known[i]; i++) {
		if (text_equal(name, known[i]))
			return 0;
		nearest_try(&near, known[i], known[i]);
	}
	return err_set(e, EINVAL, "%s: unknown key \"%.64s\"%s%s%s", what, name,
		near.best ? ", did you mean " : "", near.best ? near.best : "",
		near.best ? "?" : "");
}

static int check_members(
	const json_t *object, const char *const known[], const char *what, struct err *e)
{
	const char *key;
	json_t *value;
	int rc = 0;

	json_object_foreach((json_t *)(uintptr_t)object, key, value) if (!rc) rc =
		check_name(key, known, what, e);
	return rc;
}

/* limits or requests. A name with a slash is a device's, which is not looked at. */
static int check_amounts(const json_t *list, const char *what, struct workload *w, struct err *e)
{
	const char *key;
	json_t *value;
	int rc = 0;

	json_object_foreach((json_t *)(uintptr_t)list, key, value)
	{
		if (strchr(key, '/'))
			w->device = text_equal(key, TOKEN_RESOURCE) ? w->device : key;
		else if (!rc && !text_behind(key, "hugepages-"))
			rc = check_name(key, resource_names, what, e);
	}
	return rc;
}

static int check_containers(const json_t *list, struct workload *w, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		const json_t *container = json_array_get(list, i);
		const json_t *resources = json_member(container, "resources");

		rc = check_members(container, container_keys, "container", e);
		if (!rc)
			rc = check_members(resources, resources_keys, "resources", e);
		if (!rc)
			rc = check_amounts(json_member(resources, "limits"), "limits", w, e);
		if (!rc)
			rc = check_amounts(json_member(resources, "requests"), "requests", w, e);
		if (rc)
			(void)err_add(e, rc, "container %.63s", object_text(container, "name"));
	}
	return rc;
}

static const struct device_resource tokens = {.name = TOKEN_RESOURCE};

/* numafit.io/cpu is no device, but as many CPUs. */
static void count_tokens(struct pod *pod, struct arena *a)
{
	struct ask *list = arena_array(a, pod->nr, sizeof *list);

	for (size_t i = 0; list && i < pod->nr; i++) {
		list[i] = pod->container[i];
		if (list[i].nr_devices)
			list[i].tokens = list[i].device[0].count;
		list[i].nr_devices = 0;
	}
	pod->container = list ? list : pod->container;
}

static int read_workload(const json_t *object, struct arena *a, struct workload *w, struct err *e)
{
	const json_t *metadata = json_member(object, "metadata");
	const json_t *replicas = json_member(json_member(object, "spec"), "replicas");

	w->kind = object_text(object, "kind");
	w->name = object_text(metadata, "name");
	w->replicas = 1;
	if (json_is_integer(replicas) && json_integer_value(replicas) > 0)
		w->replicas = (uint64_t)json_integer_value(replicas);
	const json_t *spec = json_member(pod_of(object), "spec");
	int rc = check_containers(json_member(spec, "initContainers"), w, e);
	if (!rc)
		rc = check_containers(json_member(spec, "containers"), w, e);
	if (!rc)
		rc = pod_json_read_ask(pod_of(object), &tokens, 1, a, NULL, &w->pod, e);
	if (rc)
		return err_add(e, rc, "%s%s%.64s", w->kind, *w->name ? " " : "", w->name);
	count_tokens(&w->pod, a);
	w->pod.ns = object_text(metadata, "namespace");
	return w->pod.nr ? 0 : err_set(e, EINVAL, "%s %.64s has no containers", w->kind, w->name);
}

int workload_json_read(
	const char *json, size_t len, struct arena *a, struct workload *out, struct err *e)
{
	struct workload w = {0};
	const json_t *object = NULL;
	int rc = json_parse(json, len, &w.objects, e);

	if (rc)
		return rc;
	if (!json_is_array(w.objects))
		w.objects = json_pack("[o]", w.objects);
	w.nr = find_workloads(w.objects, &object);
	if (!w.nr)
		rc = err_set(e, ENOENT,
			"there is no Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or "
			"CronJob in it");
	else
		rc = read_workload(object, a, &w, e);
	if (rc)
		json_decref(w.objects);
	else
		*out = w;
	return rc;
}

void workload_fini(struct workload *w)
{
	json_decref(w->objects);
	w->objects = NULL;
}
