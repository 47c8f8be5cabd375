#include <numafit-cli/whatif_devices.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

int whatif_device_read(const struct option_row *o, void *member, char *value, struct err *e)
{
	char *slash = strrchr(value, '/');
	const char *nodes = slash ? text_behind(slash + 1, "node") : NULL;
	struct cpuset ids; /* a list of NUMA nodes has the grammar of a CPU list */

	(void)o;
	if (!nodes || slash == value || cpuset_parse(&ids, nodes, strlen(nodes), NULL) ||
		cpuset_empty(&ids))
		return err_set(e, EINVAL,
			"it should be a name and NUMA nodes up to %d, as gpu.example.com/node2 or "
			"gpu.example.com/node0-1,4",
			NODE_ID_MAX);
	*slash = '\0';
	*vec_push((struct whatif_devices *)member) = (struct whatif_device){value, nodes};
	return 0;
}

static int by_device_name(const void *a, const void *b)
{
	const struct device *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* All of them, ascending by their name; their id is the name. */
static int list_devices(const struct whatif_devices *devices, const struct topo *t,
	struct device *list, struct err *e)
{
	for (size_t i = 0; i < devices->nr; i++) {
		const struct whatif_device *d = &devices->at[i];
		struct nodeset nodes;
		struct err why;

		if (nodeset_parse(&nodes, &t->ids, d->nodes, strlen(d->nodes), &why))
			return err_set(e, EINVAL, "--device %.64s/node%.64s: machine %s: %s",
				d->name, d->nodes, t->name, why.text);
		list[i] = (struct device){.id = d->name,
			.has_topology = true,
			.placed = true,
			.nodes = nodes,
			.healthy = true};
	}
	qsort(list, devices->nr, sizeof *list, by_device_name);
	return 0;
}

/* A resource for each name, of this container. */
static bool give_to_container(size_t nr, struct pod *pod, struct ask *c, struct whatif_given *given)
{
	for (size_t i = 0, end; i < nr; i = end) {
		const struct device *first = &given->device[i];

		for (end = i; end < nr && text_equal(given->device[end].id, first->id);)
			end++;
		if (pod->nr_attached == POD_DEVICES_MAX || c->nr_devices == POD_DEVICES_MAX)
			return false;
		c->device[c->nr_devices++] =
			(struct device_ask){(unsigned)pod->nr_attached, end - i};
		given->resource[pod->nr_attached++] =
			(struct device_resource){first->id, end - i, first};
	}
	return true;
}

int whatif_devices_give(const struct whatif_devices *devices, bool to_all, const struct topo *t,
	struct pod *pod, struct ask *containers, struct whatif_given *given, struct err *e)
{
	if (!devices->nr)
		return 0;
	given->device = xcalloc(devices->nr, sizeof *given->device);
	int rc = list_devices(devices, t, given->device, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < pod->nr; i++)
		if ((to_all || containers[i].has_claims) &&
			!give_to_container(devices->nr, pod, &containers[i], given))
			return err_set(e, EINVAL,
				"--device: the pod's containers may have %d kinds of devices in all",
				POD_DEVICES_MAX);
	if (!pod->nr_attached)
		return err_set(e, EINVAL,
			"--device: no container of the file's pod has claims (resources.claims)");
	pod->attached = given->resource;
	return 0;
}

void whatif_given_fini(struct whatif_given *given)
{
	free(given->device);
}
