#include <assert.h>
#include <kubelet/device_count.h>
#include <kubelet/pod_resources_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s)
{
	assert(s && text_is_utf8(s, strlen(s)));
}

static void check_nodes(const struct node_id_list *n)
{
	for (size_t i = 1; i < n->nr; i++)
		assert(n->id[i - 1] < n->id[i]);
}

static void check_memory(const struct held_memory *memory, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		check_nodes(&memory[i].nodes);
}

static void check_devices(const struct held_device *device, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct held_device *d = &device[i];

		check_text(d->resource);
		check_text(d->id);
		check_nodes(&d->nodes);
		assert(d->has_topology || !d->nodes.nr);
		if (!i)
			continue;
		int order = strcmp(d[-1].resource, d->resource);
		assert(order < 0 || (order == 0 && strcmp(d[-1].id, d->id) < 0));
	}
}

/* Nobody has more than there is. */
static void check_count(
	const struct devices_allocatable *devices, const struct pods_held *held, struct arena *a)
{
	const struct device_count *count;
	size_t nr;

	if (devices_count(devices, held, a, &count, &nr) < 0)
		return; /* no room */
	for (size_t i = 0; i < nr; i++)
		for (size_t n = 0; n < count[i].nr; n++) {
			assert(count[i].on[n].used <= count[i].on[n].allocatable);
			assert(!n || count[i].on[n - 1].id < count[i].on[n].id);
		}
}

static void check_container(const struct container_held *c)
{
	check_text(c->name);
	check_memory(c->memory, c->nr_memory);
	check_devices(c->device, c->nr_devices);
	for (size_t i = 0; i < c->nr_claims; i++) {
		check_text(c->claim[i].device);
		check_text(c->claim[i].share);
		for (size_t k = 0; k < c->claim[i].nr_cdi; k++)
			check_text(c->claim[i].cdi[k]);
	}
}

static void check_pod(const struct pod_held *pod)
{
	check_text(pod->ns);
	check_text(pod->name);
	check_memory(pod->memory, pod->nr_memory);
	for (size_t i = 0; i < pod->nr; i++)
		check_container(&pod->container[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct pods_held all = {0};
	struct devices_allocatable devices;
	struct arena a;

	arena_init(&a, POD_RESOURCES_MEMORY_MAX);
	if (pod_resources_list_decode(in, &a, &all, NULL) == 0)
		for (size_t i = 0; i < all.nr; i++)
			check_pod(&all.pod[i]);
	if (pod_resources_allocatable_decode(in, &a, &devices, NULL) == 0) {
		check_devices(devices.device, devices.nr);
		check_count(&devices, &all, &a);
	}
	arena_fini(&a);
	return 0;
}
