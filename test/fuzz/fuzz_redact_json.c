#include <numafit-cli/redact_json.h>

#include <assert.h>
#include <numafit/mem.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text is learned from and redacted; a line stays a line, and what is learned again is nothing
 * new. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xcalloc(size + 1, 1);

	memcpy(text, data, size);
	struct redaction *r = redaction_new();
	redaction_learn(r, text);
	size_t names = redaction_names(r);
	auto_free char *out = redaction_apply(r, text);

	assert(out);
	assert(strchr(text, '\n') || !strchr(out, '\n'));
	redaction_learn(r, text);
	assert(redaction_names(r) == names);
	redaction_free(r);
	return 0;
}
