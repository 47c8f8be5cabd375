#include <stddef.h>
#include <stdint.h>

#include "advice_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return advice_fuzz("volcano.sh/topology-decision", data, size, NULL);
}
