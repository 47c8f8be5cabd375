#include <stddef.h>
#include <stdint.h>

#include "advice_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return advice_fuzz("topology.crane.io/topology-result", data, size, NULL);
}
