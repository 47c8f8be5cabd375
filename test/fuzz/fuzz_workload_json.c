#include <stddef.h>
#include <stdint.h>

#include <numafit-cli/workload_json.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* A workload that can be read has a kind, and a pod with containers that have names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct workload w;
	struct err e = {0};
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	int rc = workload_json_read((const char *)data, size, &a, &w, &e);
	if (rc < 0 && !e.text[0])
		abort();
	if (!rc) {
		if (!*w.kind || !w.nr || !w.replicas || !w.pod.nr || !*w.pod.container[0].name)
			abort();
		workload_fini(&w);
	}
	arena_fini(&a);
	return 0;
}
