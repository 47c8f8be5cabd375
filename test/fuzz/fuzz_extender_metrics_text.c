#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <numafit-extender/extender_metrics_text.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the numbers, every line is whole. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct extender_metrics m;
	size_t len;

	memset(&m, size ? data[0] : 0, sizeof m);
	memcpy(&m, data, size < sizeof m ? size : sizeof m);
	m.version = "1";
	for (unsigned i = 0; i < NR_WATCHES; i++)
		m.synced[i] = size % 2;
	char *text = extender_metrics_text(&m, &len);
	assert(len && strlen(text) == len && text[len - 1] == '\n');
	assert(strstr(text, "process_start_time_seconds "));
	free(text);
	return 0;
}
