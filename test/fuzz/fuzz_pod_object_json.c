#include <stddef.h>
#include <stdint.h>

#include <codec/api_json.h>
#include <apiserver/pod_object_json.h>
#include <codec/pod_spec.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_container(const struct known_pod *p, const struct ask *c)
{
	CHECK(c->name && c->kind < NR_CONTAINER_KINDS && c->cpu_milli <= INT64_MAX);
	CHECK(c->nr_memory <= TOPO_KINDS && c->nr_devices <= POD_DEVICES_MAX);
	for (unsigned i = 0; i < c->nr_devices; i++)
		CHECK(c->device[i].resource < p->nr_resources);
}

static void check_pod(const struct known_pod *p)
{
	const struct pod *ask = &p->pod;

	CHECK(*p->pod.uid && p->pod.ns && p->pod.name && p->pod.source == POD_FROM_API_SERVER);
	CHECK(ask && ask->qos < NR_QOS && ask->nr <= POD_SPEC_CONTAINERS_MAX);
	CHECK(p->owner != POD_OWNER_UNKNOWN);
	for (unsigned i = 0; i < ask->nr; i++)
		check_container(p, &ask->container[i]);
	for (unsigned i = 1; i < p->nr_resources; i++)
		CHECK(strcmp(p->resource[i - 1], p->resource[i]) < 0);
	for (size_t i = 0; i < p->pod.nr_annotations; i++)
		CHECK(p->pod.annotations[i].key && p->pod.annotations[i].value);
}

/* A pod that was read is kept as it was read, and is the same as itself. */
static void check_store(const struct known_pod *p)
{
	struct pod_store *s = pod_store_new();
	const struct known_pod *kept;

	CHECK(pod_store_put(s, p, &kept));
	check_pod(kept);
	CHECK(!pod_store_put(s, p, &kept));
	CHECK(pod_store_find(s, p->pod.uid) == kept && pod_store_remove(s, p->pod.uid));
	pod_store_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_t *v = NULL;
	struct known_pod pod;
	struct err e = {0};
	struct arena a;

	if (api_json_parse((const char *)data, size, &v, &e))
		return 0;
	arena_init(&a, POD_OBJECT_BYTES_MAX);
	if (pod_object_json_read(v, &a, &pod, &e) < 0) {
		CHECK(e.code && e.text[0]);
	} else {
		check_pod(&pod);
		check_store(&pod);
	}
	arena_fini(&a);
	api_json_free(v);
	return 0;
}
