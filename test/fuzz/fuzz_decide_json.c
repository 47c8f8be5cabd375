#include <stddef.h>
#include <stdint.h>

#include <questions/decide_json.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 16 << 20 };

static void ignore(void *ctx, const char *path, const char *wanted, const char *got)
{
	(void)ctx;
	if (!path || !wanted || !got)
		abort();
}

static void answer(const struct decide_items *d, size_t i)
{
	struct json_t *result = NULL;
	struct arena a;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	int rc = decide_item_answer(d, i, NULL, &a, &result, &e);
	if (rc ? !e.text[0] : !result)
		abort();
	auto_free char *text =
		rc ? decide_item_error(d, i, 1, e.text) : decide_item_print(d, i, 1, result);
	if (!text || strchr(text, '\n'))
		abort();
	if (!rc)
		(void)decide_item_check(d, i, result, ignore, NULL);
	decide_result_free(result);
	arena_fini(&a);
}

/* Every question gets one line, a result or an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct decide_items *d = NULL;
	struct err e = {0};

	if (decide_items_parse((const char *)data, size, &d, &e)) {
		auto_free char *text = decide_item_error(NULL, 0, 1, e.text);

		if (!e.text[0] || !text)
			abort();
		return 0;
	}
	for (size_t i = 0; i < decide_items_count(d); i++)
		answer(d, i);
	decide_items_free(d);
	return 0;
}
