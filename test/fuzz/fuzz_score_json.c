#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/score_json.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

static void ignore(void *ctx, const char *path, const char *wanted, const char *got)
{
	(void)ctx;
	if (!path || !wanted || !got)
		abort();
}

static void count_line(void *ctx, const char *text)
{
	*(unsigned *)ctx += *text != '\0';
}

static void answer(json_t *item)
{
	unsigned lines = 0;
	const struct steps steps = {count_line, &lines};
	json_t *result = NULL, *again = NULL;
	struct err e = {0};
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	int rc = score_json_answer(item, &steps, &a, &result, &e);
	if (rc ? !e.text[0] : !result)
		abort();
	arena_fini(&a);
	arena_init(&a, ARENA_BYTES);
	/* nobody listening changes nothing */
	if (score_json_answer(item, NULL, &a, &again, &e) != rc ||
		(!rc && !json_equal(result, again)))
		abort();
	arena_fini(&a);
	if (!rc)
		(void)score_json_check(item, result, ignore, NULL);
	json_decref(again);
	json_decref(result);
}

/* Every question gets an answer, or a reason why not. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *item;

	if (json_parse((const char *)data, size, &item, NULL))
		return 0;
	answer(item);
	json_decref(item);
	return 0;
}
