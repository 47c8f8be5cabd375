#include <numafit-cli/redact_json.h>

#include <assert.h>
#include <numafit/mem.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A redacted line stays a line, and the same text has the same words once more. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xcalloc(size + 1, 1);

	memcpy(text, data, size);
	struct redaction *r = redaction_new();
	auto_free char *out = redaction_apply(r, text);
	size_t names = redaction_names(r);
	auto_free char *again = redaction_apply(r, text);

	assert(out);
	assert(strchr(text, '\n') || !strchr(out, '\n'));
	assert(redaction_names(r) == names && strlen(again) == strlen(out));
	redaction_free(r);
	return 0;
}
