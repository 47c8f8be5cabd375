#include <stddef.h>
#include <stdint.h>

#include "advice_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)advice_fuzz("godel.bytedance.com/micro-topology", data, size, NULL);
	(void)advice_fuzz("katalyst.kubewharf.io/numa_bind_result", data, size, NULL);
	return advice_fuzz("numafit.io/topology-policy", data, size, NULL);
}
