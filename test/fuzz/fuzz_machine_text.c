#include <stddef.h>
#include <stdint.h>

#include <codec/machine_text.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is a machine that keeps its promises, and reads back from what is written of it.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char written[MACHINE_TEXT_MAX];
	static struct topo before, after;
	struct text out;
	struct err e = {0};

	if (machine_text_parse((const char *)data, size, &before, &e)) {
		if (!e.code || !e.text[0])
			abort();
		return 0;
	}
	text_init(&out, written, sizeof written);
	machine_text_write(&before, &out);
	if (out.cut || machine_text_parse(written, out.len, &after, &e))
		abort();
	if (strcmp(before.name, after.name) != 0 ||
		topo_fingerprint(&before) != topo_fingerprint(&after))
		abort();
	return 0;
}
