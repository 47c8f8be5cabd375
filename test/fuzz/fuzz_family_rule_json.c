#include <stddef.h>
#include <stdint.h>

#include <questions/family_rule_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20, NODES = 8 };

/* What is refused says why; a rule names no node that the machine lacks, and a mask that it prefers
 * is known at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct family_reader r = {.ids.nr = NODES};
	struct family f = {0};
	json_t *item = NULL;
	struct arena a;
	struct err e = {0};

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	for (unsigned i = 0; i < NODES; i++)
		r.ids.id[i] = (uint16_t)(2 * i);
	arena_init(&a, ARENA_BYTES);
	r.arena = &a;
	int rc = family_rule_json_read(&r, item, &f, &e);
	if (rc && !e.text[0])
		abort();
	if (!rc && !nodeset_within(nodeset_or(f.ground, f.required), nodeset_first(NODES)))
		abort();
	for (uint64_t bits = 1; !rc && bits < 1u << NODES; bits++)
		if (family_has(&f, (struct nodeset){bits}))
			(void)family_prefers(&f, (struct nodeset){bits});
	arena_fini(&a);
	json_decref(item);
	return 0;
}
