#include <stddef.h>
#include <stdint.h>

#include "advice_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)advice_fuzz("scheduling.koordinator.sh/resource-status", data, size, NULL);
	return advice_fuzz("scheduling.koordinator.sh/resource-spec", data, size, NULL);
}
