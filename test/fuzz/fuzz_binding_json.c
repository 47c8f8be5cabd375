#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <numafit-extender/binding_json.h>
#include <jansson.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 6 };

/* Names from lines: what is written is JSON and says them, or they are not UTF-8. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + NAMES + 1), *name[NAMES], *at = text;

	assert(text);
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : 'x';
	for (unsigned i = 0; i < NAMES; i++) {
		size_t len = strcspn(at, "\n");

		name[i] = at;
		at += len + (at[len] == '\n');
		name[i][len] = '\0';
	}
	const struct key_value annotation = {name[4], name[5]};
	char *out = binding_json_write(
		&(struct binding){name[0], name[1], name[2], name[3], &annotation, size % 2});
	bool is_utf8 = true;
	for (unsigned i = 0; i < (size % 2 ? NAMES : NAMES - 2); i++)
		is_utf8 = is_utf8 && text_is_utf8(name[i], strlen(name[i]));
	assert(!out || is_utf8);
	if (out) {
		json_t *v = json_loads(out, 0, NULL);
		const char *uid =
			json_string_value(json_object_get(json_object_get(v, "metadata"), "uid"));

		assert(uid && strcmp(uid, name[2]) == 0);
		json_decref(v);
	}
	free(out);
	free(text);
	return 0;
}
