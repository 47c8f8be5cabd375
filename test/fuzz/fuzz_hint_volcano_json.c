#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return hint_fuzz("volcano.sh/topology-decision", data, size, NULL);
}
