#include <assert.h>
#include <kubelet/pod_resources_server_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20 };

/* What a client reads of what we write of what it has read is the same. */
static void check_again(const struct pods_held *held, struct arena *a)
{
	struct pods_held again;
	struct blob out;

	if (pod_resources_list_encode(held, a, &out, NULL) < 0 ||
		pod_resources_list_decode(out, a, &again, NULL) < 0)
		return; /* no room */
	assert(again.nr == held->nr);
	for (size_t p = 0; p < held->nr; p++) {
		assert(text_equal(again.pod[p].name, held->pod[p].name));
		assert(again.pod[p].nr == held->pod[p].nr);
		for (size_t c = 0; c < held->pod[p].nr; c++)
			assert(again.pod[p].container[c].nr_devices ==
				held->pod[p].container[c].nr_devices);
	}
}

static void check_devices_again(const struct devices_allocatable *all, struct arena *a)
{
	struct devices_allocatable again;
	struct blob out;

	if (pod_resources_allocatable_encode(all, a, &out, NULL) < 0 ||
		pod_resources_allocatable_decode(out, a, &again, NULL) < 0)
		return; /* no room */
	assert(again.nr == all->nr);
	for (size_t i = 0; i < all->nr; i++)
		assert(text_equal(again.device[i].id, all->device[i].id) &&
			again.device[i].nodes.nr == all->device[i].nodes.nr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct devices_allocatable all;
	struct pods_held held;
	struct arena a;

	arena_init(&a, MEMORY_MAX);
	if (pod_resources_allocatable_decode(in, &a, &all, NULL) == 0)
		check_devices_again(&all, &a);
	if (pod_resources_list_decode(in, &a, &held, NULL) == 0)
		check_again(&held, &a);
	arena_fini(&a);
	return 0;
}
