#include <numafit-sim/trace_yaml.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace t;

	if (trace_yaml_read(&t, (const char *)data, size, NULL) == 0)
		trace_fini(&t);
	return 0;
}
