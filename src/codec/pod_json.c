#include <codec/pod_json.h>

#include <codec/fields_json.h>
#include <codec/sched_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/qos.h>
#include <numafit/text.h>
#include <string.h>

static const char hugepages[] = "hugepages-";
enum { CONTAINERS_MAX = 512 };

int quantity_json_read(const json_t *v, bool milli, uint64_t *out, struct err *e)
{
	char number[TEXT_SIZE_MAX];
	const char *text = json_string_value(v);
	struct text t;

	if (json_is_integer(v)) {
		text_init(&t, number, sizeof number);
		text_add(&t, "%lld", (long long)json_integer_value(v));
		text = number;
	}
	if (!text)
		return json_want("a quantity", v, e);
	return quantity_parse_count(text, milli ? QUANTITY_MILLI : QUANTITY_WHOLE, out, e);
}

static int add_to_qos(
	const json_t *requests, const json_t *limits, struct qos_sums *sums, struct err *e)
{
	static const char *const name[NR_QOS_RESOURCES] = {"cpu", "memory"};
	struct quantity request[NR_QOS_RESOURCES], limit[NR_QOS_RESOURCES];
	struct qos_said said = {0};

	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		const json_t *l = json_object_get(limits, name[r]);
		const json_t *q = json_object_get(requests, name[r]);
		int rc = l ? sched_quantity_json_read(l, &limit[r], e) : 0;

		if (!rc && q)
			rc = sched_quantity_json_read(q, &request[r], e);
		if (rc)
			return err_add(e, rc, "%s", name[r]);
		said.limit[r] = l ? &limit[r] : NULL;
		said.request[r] = q ? &request[r] : said.limit[r];
	}
	qos_add(sums, &said);
	return 0;
}

static int read_memory(const char *name, const json_t *v, struct ask *c, struct err *e)
{
	bool huge = strncmp(name, hugepages, sizeof hugepages - 1) == 0;
	uint64_t page = huge ? page_bytes_from_name(name + sizeof hugepages - 1) : 0, bytes;

	if (huge && !page)
		return err_set(e, EINVAL, "no size of huge pages");
	int rc = quantity_json_read(v, false, &bytes, e);
	if (rc)
		return rc;
	if (c->nr_memory == TOPO_KINDS)
		return err_set(e, ERANGE, "more than %d kinds of memory", TOPO_KINDS);
	c->memory[c->nr_memory++] = (struct memory_ask){page, bytes};
	return 0;
}

static int read_request(const char *name, const json_t *v, struct ask *c, struct err *e)
{
	if (text_equal(name, "cpu"))
		return quantity_json_read(v, true, &c->cpu_milli, e);
	if (text_equal(name, "memory") || strncmp(name, hugepages, sizeof hugepages - 1) == 0)
		return read_memory(name, v, c, e);
	return 0;
}

static int read_limit(const char *name, const json_t *v, const struct device_resource *resources,
	unsigned nr_resources, struct ask *c, struct err *e)
{
	for (unsigned i = 0; i < nr_resources; i++) {
		if (!text_equal(resources[i].name, name))
			continue;
		if (c->nr_devices == POD_DEVICES_MAX)
			return err_set(e, ERANGE, "more than %d device resources", POD_DEVICES_MAX);
		c->device[c->nr_devices].resource = i;
		return quantity_json_read(v, false, &c->device[c->nr_devices++].count, e);
	}
	return 0;
}

static int read_resources(json_t *requests, json_t *limits, const struct device_resource *resources,
	unsigned nr_resources, struct ask *c, struct err *e)
{
	for (void *it = json_object_iter(limits); it; it = json_object_iter_next(limits, it)) {
		const char *name = json_object_iter_key(it);
		json_t *v = json_object_iter_value(it);
		int rc = read_limit(name, v, resources, nr_resources, c, e);

		if (!rc && !json_object_get(requests, name))
			rc = read_request(name, v, c, e);
		if (rc)
			return err_add(e, rc, "limits.%.64s", name);
	}
	for (void *it = json_object_iter(requests); it; it = json_object_iter_next(requests, it)) {
		const char *name = json_object_iter_key(it);
		int rc = read_request(name, json_object_iter_value(it), c, e);

		if (rc)
			return err_add(e, rc, "requests.%.64s", name);
	}
	return 0;
}

struct reading {
	const struct device_resource *resources;
	unsigned nr_resources, nr;
	struct ask *container;
	struct qos_sums sums;
};

static int read_container(json_t *v, bool init, struct reading *r, struct err *e)
{
	json_t *resources = json_object_get(v, "resources");
	json_t *requests = json_object_get(resources, "requests"),
	       *limits = json_object_get(resources, "limits");
	const char *name = json_string_value(json_object_get(v, "name"));
	const char *restart = json_string_value(json_object_get(v, "restartPolicy"));
	struct ask *c = &r->container[r->nr];

	if (!name)
		return json_want("an object with a name", v, e);
	c->name = name;
	c->place = r->nr++;
	c->kind = !init                           ? CONTAINER_APP
		  : text_equal(restart, "Always") ? CONTAINER_SIDECAR
						  : CONTAINER_INIT;
	int rc = read_resources(requests, limits, r->resources, r->nr_resources, c, e);
	if (!rc)
		rc = add_to_qos(requests, limits, &r->sums, e);
	return rc ? err_add(e, rc, "%.64s: resources", name) : 0;
}

static int read_containers(const json_t *list, bool init, struct reading *r, struct err *e)
{
	if (list && !json_is_array(list))
		return json_want("a list", list, e);
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = read_container(json_array_get(list, i), init, r, e);

		if (rc)
			return err_add(e, rc, "spec.%s", init ? "initContainers" : "containers");
	}
	return 0;
}

static bool has_pod_resources(const json_t *resources)
{
	return json_object_size(json_object_get(resources, "requests")) ||
	       json_object_size(json_object_get(resources, "limits"));
}

int pod_json_read(const json_t *pod, const struct device_resource *resources, unsigned nr_resources,
	struct arena *a, struct pod *out, struct err *e)
{
	const json_t *metadata = json_object_get(pod, "metadata"),
		     *spec = json_object_get(pod, "spec");
	const json_t *init = json_object_get(spec, "initContainers"),
		     *app = json_object_get(spec, "containers");
	const json_t *of_pod = json_object_get(spec, "resources");
	const char *class =
		json_string_value(json_object_get(json_object_get(pod, "status"), "qosClass"));
	size_t room = json_array_size(init) + json_array_size(app);
	struct reading r = {.resources = resources, .nr_resources = nr_resources};

	if (!json_is_object(spec))
		return json_want("a v1.Pod", pod, e);
	if (room > CONTAINERS_MAX)
		return err_set(e, ERANGE, "more than %d containers", CONTAINERS_MAX);
	r.container = arena_array(a, room, sizeof *r.container);
	if (!r.container)
		return err_set(e, ENOMEM, "too large");
	int rc = read_containers(init, true, &r, e);
	if (!rc)
		rc = read_containers(app, false, &r, e);
	if (!rc && has_pod_resources(of_pod)) {
		r.sums = (struct qos_sums){0};
		rc = add_to_qos(json_object_get(of_pod, "requests"),
			json_object_get(of_pod, "limits"), &r.sums, e);
	}
	if (rc)
		return rc;
	int told = class ? qos_from_name(class) : -1;
	const char *uid = json_string_value(json_object_get(metadata, "uid"));
	*out = (struct pod){
		.uid = uid ? uid : "",
		.qos = told >= 0 ? (enum qos)told : qos_of(&r.sums),
		.pod_level = has_pod_resources(of_pod),
		.nr = r.nr,
		.container = r.container,
	};
	return 0;
}
