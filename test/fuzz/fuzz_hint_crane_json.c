#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return hint_fuzz("topology.crane.io/topology-result", data, size, NULL);
}
