#include <stddef.h>
#include <stdint.h>

#include <codec/journal_json.h>
#include <errno.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_BYTES = 1 << 20, ARENA_BYTES = 1 << 20 };
static char once[LINE_BYTES], twice[LINE_BYTES];

static void try_record(const char *text, size_t size)
{
	static const struct node_ids ids = {.nr = 4, .id = {0, 1, 8, 255}};
	struct decoded_record r;
	struct arena a;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	if (!journal_json_parse(text, size, &ids, &a, &r, &e)) {
		int len = journal_json_record(&r.record, &ids, once, sizeof once, &e);

		if (len < 0 || memchr(once, '\n', (size_t)len))
			abort();
		if (journal_json_parse(once, (size_t)len, &ids, &a, &r, &e) && e.code != ENOMEM)
			abort();
		if (e.code != ENOMEM &&
			(journal_json_record(&r.record, &ids, twice, sizeof twice, &e) != len ||
				strcmp(once, twice) != 0))
			abort();
	} else if (!e.code || !e.text[0]) {
		abort();
	}
	arena_fini(&a);
}

static void try_header(const char *text, size_t size)
{
	struct journal_header h;
	struct arena a;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	if (!journal_json_parse_header(text, size, &a, &h, &e)) {
		int len = journal_json_header(&h, once, sizeof once, &e);

		if (len < 0 || memchr(once, '\n', (size_t)len))
			abort();
		if (journal_json_parse_header(once, (size_t)len, &a, &h, &e) && e.code != ENOMEM)
			abort();
	}
	arena_fini(&a);
}

/* What is accepted comes out in one form, without a newline, which reads back as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_record((const char *)data, size);
	try_header((const char *)data, size);
	return 0;
}
