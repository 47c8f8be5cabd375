#include <numafit/cpuset.h>
#include <numafit/text.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 4096 };

/* What was read as a list comes back from its text. */
static void check_list(const char *text, size_t len)
{
	char buf[CPUSET_TEXT_MAX];
	struct cpuset set, again;

	if (cpuset_parse(&set, text, len, NULL))
		return;
	(void)cpuset_format(&set, buf, sizeof buf);
	assert(cpuset_parse(&again, buf, strlen(buf), NULL) == 0 && cpuset_equal(&set, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_BYTES + 1];
	uint64_t number;
	bool flag;
	struct err e;

	if (size > TEXT_BYTES)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_list((const char *)data, size);
	(void)text_is_utf8((const char *)data, size);
	(void)text_u64((const char *)data, size, UINT64_MAX, &number, &e);
	(void)text_bool(text, &flag, &e);
	return 0;
}
