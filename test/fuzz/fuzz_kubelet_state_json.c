#include <stddef.h>
#include <stdint.h>

#include <daemon-files/kubelet_state_json.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer, or an error with a text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_static;
	struct err e = {0};

	if (kubelet_state_json_parse((const char *)data, size, &is_static, &e) && !e.text[0])
		abort();
	return 0;
}
