#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/memory_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 4 << 20 };

/* A question is either answered or refused with words, and what is answered can be printed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *item = NULL, *result = NULL;
	struct err e = {0};
	struct arena a;

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = memory_json_answer(item, &a, &result, &e);
	char *text = json_dumps(result, JSON_COMPACT);
	if (!rc == !text || (rc && !e.text[0]))
		abort();
	free(text);
	json_decref(result);
	json_decref(item);
	arena_fini(&a);
	return 0;
}
