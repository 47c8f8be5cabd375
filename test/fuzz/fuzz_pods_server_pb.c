#include <assert.h>
#include <kubelet/pods_server_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a client reads of what we write of what it has read is the same. */
static void check_again(const struct known_pod *pod, struct arena *a)
{
	struct pods_event event = {.type = PODS_MODIFIED};
	struct known_pod again;
	struct blob out;

	if (pods_pod_encode(pod, a, &event.pod, NULL) < 0 ||
		pods_event_encode(&event, a, &out, NULL) < 0 ||
		pods_event_decode(out, a, &event, NULL) < 0 ||
		pods_pod_decode(event.pod, a, &again, NULL) < 0)
		return; /* no room */
	assert(text_equal(again.pod.uid, pod->pod.uid) && again.pod.qos == pod->pod.qos);
	assert(again.nr_resources == pod->nr_resources && again.pod.nr == pod->pod.nr);
	for (unsigned i = 0; i < pod->pod.nr; i++) {
		const struct ask *x = &again.pod.container[i];
		const struct ask *y = &pod->pod.container[i];

		assert(text_equal(x->name, y->name) && x->kind == y->kind);
		assert(x->cpu_milli == y->cpu_milli && x->nr_memory == y->nr_memory);
		assert(x->nr_devices == y->nr_devices);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct known_pod pod;
	struct arena a;

	arena_init(&a, PODS_MEMORY_MAX);
	if (pods_pod_decode((struct blob){data, size}, &a, &pod, NULL) == 0)
		check_again(&pod, &a);
	arena_fini(&a);
	return 0;
}
