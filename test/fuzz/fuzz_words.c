#include <stddef.h>
#include <stdint.h>

#include <codec/words.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20, PAIRS_MAX = 32 };

/* Lines of KEY=VALUE as a journal's settings: what is taken has words that are taken again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xcalloc(size + 1, 1);
	struct key_value pairs[PAIRS_MAX];
	struct word_list words = {pairs, 0}, again;
	struct settings s;
	struct arena a;
	char *rest;

	memcpy(text, data, size);
	for (char *key = strtok_r(text, "\n", &rest); key && words.nr < PAIRS_MAX;
		key = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(key, '=');

		if (value)
			*value++ = '\0';
		pairs[words.nr++] = (struct key_value){key, value ? value : ""};
	}
	arena_init(&a, ARENA_BYTES);
	if (!settings_of_words(&words, &a, &s, NULL) && !words_of_settings(&s, &a, &again, NULL) &&
		settings_of_words(&again, &a, &s, NULL))
		abort();
	arena_fini(&a);
	return 0;
}
