#include <stddef.h>
#include <stdint.h>

#include <codec/config_yaml.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read can be checked and printed; an error has a text and leaves the settings alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct settings before, s;
	char value[CPUSET_TEXT_MAX];
	struct err e = {0};

	settings_init(&before);
	s = before;
	if (config_yaml_read(&s, (const char *)data, size, &e) < 0) {
		if (!e.code || !e.text[0] || memcmp(&s, &before, sizeof s) != 0)
			abort();
		return 0;
	}
	(void)settings_check(&s, NULL, NULL);
	for (unsigned i = 0; settings_get(&s, i, value, sizeof value); i++)
		if (strlen(value) >= sizeof value)
			abort();
	return 0;
}
