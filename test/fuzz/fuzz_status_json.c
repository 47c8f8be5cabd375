#include <stddef.h>
#include <stdint.h>

#include <codec/status_json.h>
#include <numafit/mem.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* Whatever answers on the daemon's socket is read, or refused with a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct status st;
	struct arena a;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	if (!status_json_parse((const char *)data, size, &a, &st, &e)) {
		for (size_t i = 0; i < st.nr_containers; i++)
			if (!st.containers[i].cpus || st.containers[i].qos >= NR_QOS)
				abort();
	} else if (!e.code || !e.text[0]) {
		abort();
	}
	arena_fini(&a);
	return 0;
}
