#include <cluster-sim/trace.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster_trace t;

	if (cluster_trace_read(&t, (const char *)data, size, NULL) == 0)
		cluster_trace_fini(&t);
	return 0;
}
