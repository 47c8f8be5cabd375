#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <numafit-cli/object_yaml.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What comes out is a JSON list, but for what JSON readers refuse: keys that come twice, and byte 0
 * and broken UTF-8 in strings. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *json = NULL;
	json_t *list;
	json_error_t where;
	struct err e = {0};

	if (object_yaml_to_json((const char *)data, size, &json, &e)) {
		if (!e.text[0] || json)
			abort();
		return 0;
	}
	list = json_loads(json, JSON_ALLOW_NUL, &where);
	if (!list) {
		enum json_error_code code = json_error_code(&where);

		if (code != json_error_invalid_utf8 && code != json_error_null_byte_in_key &&
			code != json_error_numeric_overflow && code != json_error_stack_overflow)
			abort();
		return 0;
	}
	if (!json_is_array(list))
		abort();
	json_decref(list);
	return 0;
}
