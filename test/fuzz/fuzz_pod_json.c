#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/pod_json.h>
#include <jansson.h>
#include <numafit/devices.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* A pod that can be read has no more containers than it has room for, each with a name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct device_resource resource = {.name = "example.com/gpu"};
	json_t *pod = NULL;
	struct pod ask;
	struct err e = {0};
	struct arena a;

	if (json_parse((const char *)data, size, &pod, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = pod_json_read_ask(pod, &resource, 1, &a, NULL, &ask, &e);
	if (rc < 0 && !e.text[0])
		abort();
	for (unsigned i = 0; !rc && i < ask.nr; i++)
		if (!ask.container[i].name || ask.container[i].nr_memory > TOPO_KINDS ||
			ask.container[i].nr_devices > POD_DEVICES_MAX)
			abort();
	arena_fini(&a);
	json_decref(pod);
	return 0;
}
