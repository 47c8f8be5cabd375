#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)hint_fuzz("scheduling.koordinator.sh/resource-status", data, size, NULL);
	return hint_fuzz("scheduling.koordinator.sh/resource-spec", data, size, NULL);
}
