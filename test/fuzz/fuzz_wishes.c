#include <stddef.h>
#include <stdint.h>

#include <codec/wishes.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first line is what is allowed, the second a key, the rest its value. What is obeyed is one of
 * the values that there are, and what is odd has a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct node_ids ids = {.nr = 4, .id = {0, 1, 8, 255}};
	auto_free char *text = xcalloc(size + 1, 1);
	struct settings s;
	struct key_value annotation = {"", ""};
	const struct pod pod = {.annotations = &annotation, .nr_annotations = 1};
	const struct wishes_reader reader = {&s, &ids, false};
	struct ask ask = {.name = "web"};
	struct wishes_ignored ignored;
	struct arena a;

	memcpy(text, data, size);
	char *key = strchr(text, '\n'), *value = key ? strchr(key + 1, '\n') : NULL;
	if (!value)
		return 0;
	*key = *value = '\0';
	annotation = (struct key_value){key + 1, value + 1};
	settings_init(&s);
	(void)settings_set(&s, "podWishes.allowed", text, NULL);
	arena_init(&a, 1 << 16);
	wishes_take(&reader, &pod, &ask, &a, &ignored);
	if (ask.wishes.cpus >= NR_WISH_CPUS || ask.wishes.cores >= NR_WISH_CORES ||
		ask.wishes.spread >= NR_WISH_SPREADS || (ask.odd_wish && !*ask.odd_wish) ||
		(ask.odd_wish && (ask.advice || ask.wishes.cpus)))
		abort();
	arena_fini(&a);
	return 0;
}
