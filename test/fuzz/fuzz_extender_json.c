#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <numafit-extender/extender_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we answer is JSON. */
static void check(char *text, size_t len)
{
	json_t *v = json_loadb(text, len, JSON_DECODE_ANY, NULL);

	assert(v && strlen(text) == len);
	json_decref(v);
	free(text);
}

static void fuzz_args(const char *text, size_t size)
{
	struct extender_args args;
	struct err e = {0};
	size_t len;

	if (extender_args_read(text, size, &args, &e)) {
		assert(e.text[0]);
		return;
	}
	auto_free struct extender_verdict *v = xcalloc(args.nr + 1, sizeof *v);
	auto_free int64_t *score = xcalloc(args.nr + 1, sizeof *score);
	for (size_t i = 0; i < args.nr; i++) {
		assert(args.node[i].name[0]);
		v[i] = (struct extender_verdict){i % 3 ? "why" : NULL, i % 2};
		score[i] = i % 2 ? INT64_MIN : (int64_t)i;
	}
	char *text_of_filter = extender_filter_write(&args, v, &len);
	check(text_of_filter, len);
	char *text_of_scores = extender_scores_write(&args, score, &len);
	check(text_of_scores, len);
	extender_args_fini(&args);
}

/* Whatever jansson takes, the scanner takes: numbers may be larger here, and depth is less. jansson
 * also takes a NUL for a blank, which is no JSON (RFC 8259, 2). */
static void fuzz_scan(const char *text, size_t size)
{
	json_t *v = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	struct span span;
	struct err e = {0};

	if (span_read(text, size, &span, &e))
		assert(!v || strstr(e.text, "too deep") || memchr(text, '\0', size));
	else if (v && json_is_array(v))
		assert(span_count(span) == json_array_size(v));
	json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct extender_preempt p;
	struct extender_bind b;
	size_t len;

	fuzz_scan(text, size);
	fuzz_args(text, size);
	if (extender_preempt_read(text, size, &p, NULL) == 0) {
		char *answer = extender_preempt_write(&p, &len);

		check(answer, len);
		extender_preempt_fini(&p);
	}
	if (extender_bind_read(text, size, &b, NULL) == 0) {
		assert(*b.name && *b.ns && *b.uid && *b.node);
		extender_bind_fini(&b);
	}
	return 0;
}
