#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/reasons_json.h>
#include <numafit/mem.h>
#include <jansson.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 1 << 20 };

/* Reasons that can be read come out in one form, which reads back as the same, and can be printed.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[TEXT_BYTES], twice[TEXT_BYTES];
	static struct topo t = {.ids = {.nr = 4, .id = {0, 1, 8, 255}}};
	static struct reasons r, back;
	const struct fields_context c = {.ids = &t.ids};
	struct err e = {0};
	struct text to;

	memset(&r, 0, sizeof r);
	memset(&back, 0, sizeof back);
	if (fields_parse((const char *)data, size, &reasons_fields, &r, &c, &e)) {
		if (!e.text[0])
			abort();
		return 0;
	}
	text_init(&to, once, sizeof once);
	fields_write(&to, &reasons_fields, &r, &t.ids);
	if (to.cut || fields_parse(once, to.len, &reasons_fields, &back, &c, &e))
		abort();
	text_init(&to, twice, sizeof twice);
	fields_write(&to, &reasons_fields, &back, &t.ids);
	json_t *printed = reasons_json(&r, &t);
	if (strcmp(once, twice) != 0 || !printed)
		abort();
	json_decref(printed);
	return 0;
}
