#include <assert.h>
#include <kubelet/pods_pb.h>
#include <codec/pod_spec.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s)
{
	assert(s && text_is_utf8(s, strlen(s)));
}

static void check_container(const struct known_pod *p, const struct ask *c)
{
	check_text(c->name);
	assert(c->kind < NR_CONTAINER_KINDS);
	assert(c->cpu_milli <= INT64_MAX);
	assert(c->nr_memory <= TOPO_KINDS && c->nr_devices <= POD_DEVICES_MAX);
	for (unsigned i = 0; i < c->nr_memory; i++)
		for (unsigned k = 0; k < i; k++)
			assert(c->memory[k].page_bytes != c->memory[i].page_bytes);
	for (unsigned i = 0; i < c->nr_devices; i++) {
		assert(c->device[i].resource < p->nr_resources);
		assert(!i || c->device[i - 1].resource < c->device[i].resource);
	}
}

static void check_pod(const struct known_pod *p)
{
	const struct pod *ask = &p->pod;
	bool apps = false;

	check_text(p->pod.uid);
	check_text(p->pod.ns);
	check_text(p->pod.name);
	for (size_t i = 0; i < p->pod.nr_annotations; i++)
		check_text(p->pod.annotations[i].value);
	for (unsigned i = 1; i < p->nr_resources; i++)
		assert(strcmp(p->resource[i - 1], p->resource[i]) < 0);
	assert(*p->pod.uid && ask && ask->qos < NR_QOS && ask->nr <= POD_SPEC_CONTAINERS_MAX);
	for (unsigned i = 0; i < ask->nr; i++) {
		check_container(p, &ask->container[i]);
		assert(!apps || ask->container[i].kind == CONTAINER_APP);
		apps = ask->container[i].kind == CONTAINER_APP;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct pods_event event;
	struct known_pod pod;
	struct arena a;

	arena_init(&a, PODS_MEMORY_MAX);
	if (pods_event_decode(in, &a, &event, NULL) == 0) {
		assert(event.type <= PODS_SYNCED);
		if (pods_pod_decode(event.pod, &a, &pod, NULL) == 0)
			check_pod(&pod);
	}
	if (pods_pod_decode(in, &a, &pod, NULL) == 0)
		check_pod(&pod);
	arena_fini(&a);
	return 0;
}
