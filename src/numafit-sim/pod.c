#include <numafit-sim/pod.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

static bool is_in_pod_spec(const struct container *c, const struct container *of)
{
	return of->state == CONTAINER_CREATING && text_equal(of->sandbox_id, c->sandbox_id);
}

static int compare_resource_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The resources that its containers ask for, ascending, each once. */
static unsigned list_pod_resources(
	const struct sim_node *n, const struct container *c, const char **name)
{
	unsigned nr = 0, kept = 0;

	for (size_t i = 0; i < n->nr; i++)
		for (unsigned k = 0; is_in_pod_spec(c, n->at[i]) && k < n->at[i]->nr_devices; k++)
			name[nr++] = n->at[i]->device[k].resource;
	if (nr)
		qsort(name, nr, sizeof *name, compare_resource_names);
	for (unsigned i = 0; i < nr; i++)
		if (!kept || !text_equal(name[kept - 1], name[i]))
			name[kept++] = name[i];
	return kept;
}

static void ask_add_memory(struct ask *ask, uint64_t page_bytes, uint64_t bytes)
{
	if (bytes)
		ask->memory[ask->nr_memory++] = (struct memory_ask){page_bytes, bytes};
}

static struct ask ask_of_container(const struct container *c, const struct known_pod *pod)
{
	struct ask ask = {.name = c->name, .kind = c->kind, .cpu_milli = c->asked.cpu_milli};

	ask_add_memory(&ask, 0, c->asked.memory_bytes);
	for (unsigned i = 0; i < c->asked.nr_hugepages; i++)
		ask_add_memory(&ask, c->asked.hugepages[i].page_bytes, c->asked.hugepages[i].bytes);
	for (unsigned r = 0; r < pod->nr_resources; r++)
		for (unsigned k = 0; k < c->nr_devices; k++)
			if (text_equal(c->device[k].resource, pod->resource[r]))
				ask.device[ask.nr_devices++] =
					(struct device_ask){r, c->device[k].count};
	return ask;
}

int sim_pod_spec(const struct sim_node *n, const struct container *c, struct arena *a,
	struct known_pod *out, struct err *e)
{
	struct known_pod pod = {.pod = {
					.uid = c->pod_uid,
					.ns = c->ns,
					.name = c->pod,
					.qos = c->asked.qos,
					.source = POD_FROM_KUBELET,
				}};
	size_t nr = 0;

	for (size_t i = 0; i < n->nr; i++)
		nr += is_in_pod_spec(c, n->at[i]);
	const char **name = arena_array(a, nr * POD_DEVICES_MAX, sizeof *name);
	struct ask *list = arena_array(a, nr, sizeof *list);
	if (!name || !list)
		return err_set(
			e, ENOMEM, "pod %s/%s: %zu containers are too many", c->ns, c->pod, nr);
	pod.resource = name;
	pod.nr_resources = list_pod_resources(n, c, name);
	if (pod.nr_resources > POD_DEVICES_MAX)
		return err_set(e, E2BIG, "pod %s/%s asks for more than %d resources", c->ns, c->pod,
			POD_DEVICES_MAX);
	pod.pod.container = list;
	for (size_t i = 0; i < n->nr; i++)
		if (is_in_pod_spec(c, n->at[i]))
			list[pod.pod.nr++] = ask_of_container(n->at[i], &pod);
	*out = pod;
	return 0;
}
