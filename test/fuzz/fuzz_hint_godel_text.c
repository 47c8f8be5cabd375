#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return hint_fuzz("godel.bytedance.com/micro-topology", data, size, NULL);
}
