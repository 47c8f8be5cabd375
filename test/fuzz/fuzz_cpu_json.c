#include <stddef.h>
#include <stdint.h>

#include <questions/cpu_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

static int has(const json_t *list, json_int_t id)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_integer_value(json_array_get(list, i)) == id)
			return 1;
	return 0;
}

/* What is given is as much as was asked for, and was there to be given. */
static void check(const json_t *item, const json_t *result)
{
	const json_t *cpus = json_object_get(result, "cpus");
	const json_t *from = json_object_get(item, "available");

	if (!json_is_array(cpus))
		return;
	if ((json_int_t)json_array_size(cpus) != json_integer_value(json_object_get(item, "want")))
		abort();
	for (size_t i = 0; from && i < json_array_size(cpus); i++)
		if (!has(from, json_integer_value(json_array_get(cpus, i))))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *item = NULL, *result = NULL;
	struct arena a;
	struct err e = {0};

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	if (json_is_object(item)) {
		int rc = cpu_json_answer(item, &a, &result, &e);

		if (rc ? rc > 0 || !e.text[0] : !result)
			abort();
		if (!rc)
			check(item, result);
	}
	arena_fini(&a);
	json_decref(result);
	json_decref(item);
	return 0;
}
