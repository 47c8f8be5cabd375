#include <codec/pod_spec.h>

#include <errno.h>
#include <numafit/qos.h>
#include <numafit/request.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

static const char hugepages[] = "hugepages-";

static bool is_hugepages(const char *name)
{
	return strncmp(name, hugepages, sizeof hugepages - 1) == 0;
}

bool resource_is_extended(const char *name)
{
	static const char quota[] = "requests.";

	return strchr(name, '/') && !strstr(name, "kubernetes.io/") &&
	       strncmp(name, quota, sizeof quota - 1) != 0;
}

/* The extended resources that containers ask for */

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static unsigned sort_once_each(const char **name, unsigned nr)
{
	unsigned kept = 0;

	qsort(name, nr, sizeof *name, compare_strings);
	for (unsigned i = 0; i < nr; i++)
		if (!kept || strcmp(name[kept - 1], name[i]) != 0)
			name[kept++] = name[i];
	return kept;
}

int pod_spec_list_resources(struct pod_spec *s, struct arena *a, struct err *e)
{
	size_t room = 0;
	unsigned nr = 0;

	for (unsigned c = 0; c < s->nr; c++)
		room += s->container[c].resources.limits.nr;
	const char **name = arena_array(a, room, sizeof *name);
	if (!name)
		return err_set(e, ENOMEM, "%zu limits are too many", room);
	for (unsigned c = 0; c < s->nr; c++) {
		const struct resource_list *limits = &s->container[c].resources.limits;

		for (size_t i = 0; i < limits->nr; i++)
			if (resource_is_extended(limits->at[i].key))
				name[nr++] = limits->at[i].key;
	}
	s->resource = name;
	s->nr_resources = sort_once_each(name, nr);
	return 0;
}

/* One container's asks. What comes later takes the place of what came earlier: first its limits are
 * put in, then its requests. */

static int put_memory(const struct key_value *r, struct ask *c, struct err *e)
{
	bool huge = is_hugepages(r->key);
	uint64_t page = huge ? page_bytes_from_name(r->key + sizeof hugepages - 1) : 0;
	unsigned i = 0;
	uint64_t bytes;

	if (huge && !page)
		return err_set(e, EINVAL, "no size of huge pages");
	int rc = quantity_parse_count(r->value, QUANTITY_WHOLE, &bytes, e);
	if (rc)
		return rc;
	while (i < c->nr_memory && c->memory[i].page_bytes != page)
		i++;
	if (i == TOPO_KINDS)
		return err_set(e, ERANGE, "more than %d kinds of memory", TOPO_KINDS);
	if (i == c->nr_memory)
		c->nr_memory++;
	c->memory[i] = (struct memory_ask){page, bytes};
	return 0;
}

static int put_resources(const struct resource_list *list, struct ask *c, struct err *e)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct key_value *r = &list->at[i];
		int rc = 0;

		if (text_equal(r->key, "cpu"))
			rc = quantity_parse_count(r->value, QUANTITY_MILLI, &c->cpu_milli, e);
		else if (text_equal(r->key, "memory") || is_hugepages(r->key))
			rc = put_memory(r, c, e);
		if (rc)
			return err_add(e, rc, "%.64s", r->key);
	}
	return 0;
}

static int compare_names(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

static int put_device(unsigned resource, const struct key_value *r, struct ask *c, struct err *e)
{
	unsigned i = c->nr_devices;
	uint64_t count;
	int rc = quantity_parse_count(r->value, QUANTITY_WHOLE, &count, e);

	if (rc)
		return rc;
	while (i > 0 && c->device[i - 1].resource > resource)
		i--;
	if (i == 0 || c->device[i - 1].resource != resource) {
		if (c->nr_devices == POD_DEVICES_MAX)
			return err_set(e, ERANGE, "more than %d device resources", POD_DEVICES_MAX);
		memmove(&c->device[i + 1], &c->device[i],
			(c->nr_devices++ - i) * sizeof c->device[0]);
		i++;
	}
	c->device[i - 1] = (struct device_ask){resource, count};
	return 0;
}

/* The kubelet's device manager goes by the limits (getContainerDeviceRequest). */
static int put_devices(
	const struct pod_spec *s, const struct resource_list *limits, struct ask *c, struct err *e)
{
	for (size_t i = 0; i < limits->nr && s->nr_resources; i++) {
		const struct key_value *r = &limits->at[i];
		const char *const *found = bsearch(
			r->key, s->resource, s->nr_resources, sizeof *s->resource, compare_names);
		int rc = found ? put_device((unsigned)(found - s->resource), r, c, e) : 0;

		if (rc)
			return err_add(e, rc, "%.64s", r->key);
	}
	return 0;
}

/* The amount of that name, as far as it is one: put_resources() has said what is none. */
static const struct quantity *find_amount(
	const struct resource_list *list, const char *name, struct quantity *room)
{
	const struct quantity *found = NULL;

	for (size_t i = 0; i < list->nr; i++)
		if (text_equal(list->at[i].key, name) &&
			!quantity_parse(room, list->at[i].value, NULL))
			found = room;
	return found;
}

static void add_to_qos(const struct resource_spec *s, struct qos_sums *sums)
{
	static const char *const name[NR_QOS_RESOURCES] = {"cpu", "memory"};
	struct quantity request[NR_QOS_RESOURCES], limit[NR_QOS_RESOURCES];
	struct qos_said said;

	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		said.limit[r] = find_amount(&s->limits, name[r], &limit[r]);
		said.request[r] = find_amount(&s->requests, name[r], &request[r]);
		if (!said.request[r])
			said.request[r] = said.limit[r];
	}
	qos_add(sums, &said);
}

/* What a container or a pod with these resources asks for, into *c, and to the sums. */
static int read_resources(const struct resource_spec *r, struct ask *c,
	struct qos_sums *sums, struct err *e)
{
	int rc = put_resources(&r->limits, c, e);

	if (rc)
		return err_add(e, rc, "limits");
	rc = put_resources(&r->requests, c, e);
	if (rc)
		return err_add(e, rc, "requests");
	add_to_qos(r, sums);
	return 0;
}

static int read_containers(
	const struct pod_spec *s, struct ask *ask, struct qos_sums *sums, struct err *e)
{
	for (unsigned i = 0; i < s->nr; i++) {
		const struct container_spec *c = &s->container[i];

		ask[i].name = c->name;
		ask[i].kind = c->kind;
		ask[i].place = i;
		int rc = read_resources(&c->resources, &ask[i], sums, e);
		if (!rc)
			rc = put_devices(s, &c->resources.limits, &ask[i], e);
		if (rc)
			return err_add(e, rc, "container %.64s", c->name);
	}
	return 0;
}

/* component-helpers/resource, IsPodLevelResourcesSet. */
static bool has_pod_level(const struct resource_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		if (text_equal(list->at[i].key, "cpu") || text_equal(list->at[i].key, "memory") ||
			is_hugepages(list->at[i].key))
			return true;
	return false;
}

int pod_spec_ask(const struct pod_spec *s, struct arena *a, struct pod *out, struct err *e)
{
	bool pod_level =
		has_pod_level(&s->resources.requests) || has_pod_level(&s->resources.limits);
	struct ask *ask = arena_array(a, s->nr, sizeof *ask), of_pod = {0};
	int told = qos_from_name(s->qos);
	struct qos_sums sums = {0};

	if (!ask)
		return err_set(e, ENOMEM, "%u containers are too many", s->nr);
	int rc = read_containers(s, ask, &sums, e);
	if (!rc && pod_level) {
		sums = (struct qos_sums){0};
		rc = read_resources(&s->resources, &of_pod, &sums, e);
	}
	if (rc)
		return rc;
	out->qos = told >= 0 ? (enum qos)told : qos_of(&sums);
	out->pod_level = pod_level;
	out->nr = s->nr;
	out->container = ask;
	return 0;
}
