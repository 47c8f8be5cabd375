#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/node_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 4 << 20 };

/* Whatever pods come to whatever node: an answer, or an error that says where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *item = NULL, *result = NULL;
	struct err e = {0};
	struct arena a;

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = json_is_object(item) ? node_json_answer(item, NULL, &a, &result, &e) : 1;
	if ((rc < 0 && !e.text[0]) || (rc == 0 && !json_is_object(result)))
		abort();
	json_decref(result);
	arena_fini(&a);
	json_decref(item);
	return 0;
}
