#include <stddef.h>
#include <stdint.h>

#include <apiserver/event_json.h>
#include <codec/fields_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXTS = 7 };

/* Whatever the texts are, it is one JSON object, with a message that the API server takes. The
 * input: the texts, one after the other, each with a NUL behind it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *input = xcalloc(1, size + TEXTS);
	const char *text[TEXTS], *at = input;
	json_t *v = NULL;

	if (size)
		memcpy(input, data, size);
	for (unsigned i = 0; i < TEXTS; i++) {
		text[i] = at;
		if (at < input + size)
			at += strlen(at) + 1;
	}
	const struct pod_event event = {EVENT_OF_REFUSAL, size % 2, text[0], text[1], NULL, text[2],
		text[3], text[4], size % 3 ? text[5] : NULL,
		(enum container_kind)(size % NR_CONTAINER_KINDS),
		(enum advice_verdict)(size % NR_ADVICE_VERDICTS)};
	const struct event_times times = {(int64_t)size, INT64_MAX, (unsigned)size};
	auto_free char *json = event_json_format(&event, &times, text[6], size);
	if (json_parse(json, strlen(json), &v, NULL))
		abort();
	const json_t *message = json_object_get(v, "message");
	if (!json_is_string(message) || json_string_length(message) > EVENT_MESSAGE_MAX)
		abort();
	json_decref(v);
	return 0;
}
