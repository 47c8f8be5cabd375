#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)hint_fuzz("katalyst.kubewharf.io/numa_bind_result", data, size, NULL);
	return hint_fuzz("numafit.io/topology-policy", data, size, NULL);
}
