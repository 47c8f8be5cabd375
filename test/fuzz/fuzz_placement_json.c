#include <stddef.h>
#include <stdint.h>

#include <codec/placement_json.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted comes out in one form, which reads back as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct node_ids ids = {.nr = 4, .id = {0, 1, 8, 255}};
	char once[PLACEMENT_JSON_MAX], twice[PLACEMENT_JSON_MAX];
	auto_free char *text = xcalloc(size + 1, 1);
	struct placement p;
	struct err e = {0};

	memcpy(text, data, size);
	if (placement_json_parse(text, &ids, &p, &e)) {
		if (!e.code || !e.text[0])
			abort();
		return 0;
	}
	(void)placement_json_format(&p, &ids, once, sizeof once);
	if (placement_json_parse(once, &ids, &p, &e))
		abort();
	if (strcmp(once, placement_json_format(&p, &ids, twice, sizeof twice)) != 0)
		abort();
	return 0;
}
