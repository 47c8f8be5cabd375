#include <kubelet/device_count.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare_held_devices(const void *a, const void *b)
{
	const struct held_device *x = *(const struct held_device *const *)a,
				 *y = *(const struct held_device *const *)b;
	int rc = strcmp(x->resource, y->resource);

	return rc ? rc : strcmp(x->id, y->id);
}

/* All devices that pods hold, sorted. */
struct held {
	const struct held_device **at;
	size_t nr;
};

static int sort_held(const struct pods_held *pods, struct arena *a, struct held *out)
{
	size_t room = 0;

	for (size_t p = 0; p < pods->nr; p++)
		for (size_t c = 0; c < pods->pod[p].nr; c++)
			room += pods->pod[p].container[c].nr_devices;
	*out = (struct held){.at = arena_array(a, room, sizeof *out->at)};
	if (!out->at)
		return -ENOMEM;
	for (size_t p = 0; p < pods->nr; p++)
		for (size_t c = 0; c < pods->pod[p].nr; c++) {
			const struct container_held *of = &pods->pod[p].container[c];

			for (size_t i = 0; i < of->nr_devices; i++)
				out->at[out->nr++] = &of->device[i];
		}
	if (out->nr)
		qsort(out->at, out->nr, sizeof *out->at, compare_held_devices);
	return 0;
}

static int compare_node_ids(const void *a, const void *b)
{
	const struct device_count_node *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* One of the nr devices of a resource that is on a node, as that node's count: sorted, then those
 * of a node made one. */
static int count_resource(const struct held_device *device, size_t nr, const struct held *held,
	struct arena *a, struct device_count *out)
{
	size_t room = 0, listed = 0, kept = 0;

	for (size_t i = 0; i < nr; i++)
		room += device[i].nodes.nr;
	struct device_count_node *on = arena_array(a, room, sizeof *on);
	if (!on)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct held_device *d = &device[i];
		bool is_held = held->nr && bsearch(&d, held->at, held->nr, sizeof *held->at,
						   compare_held_devices);

		for (size_t k = 0; k < d->nodes.nr; k++)
			on[listed++] = (struct device_count_node){d->nodes.id[k], 1, is_held};
	}
	if (listed)
		qsort(on, listed, sizeof *on, compare_node_ids);
	for (size_t i = 0; i < listed; i++) {
		if (!kept || on[kept - 1].id != on[i].id) {
			on[kept++] = on[i];
			continue;
		}
		on[kept - 1].allocatable++;
		on[kept - 1].used += on[i].used;
	}
	*out = (struct device_count){device->resource, on, kept};
	return 0;
}

int devices_count(const struct devices_allocatable *all, const struct pods_held *pods,
	struct arena *a, const struct device_count **out, size_t *nr)
{
	struct device_count *list = arena_array(a, all->nr, sizeof *list);
	size_t kept = 0, same;
	struct held held;

	if (!list || sort_held(pods, a, &held))
		return -ENOMEM;
	for (size_t i = 0; i < all->nr; i += same) {
		for (same = 1; i + same < all->nr &&
			       text_equal(all->device[i + same].resource, all->device[i].resource);)
			same++;
		if (count_resource(&all->device[i], same, &held, a, &list[kept]))
			return -ENOMEM;
		kept += list[kept].nr > 0;
	}
	*out = list;
	*nr = kept;
	return 0;
}
