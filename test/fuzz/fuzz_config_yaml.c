#include <stddef.h>
#include <stdint.h>

#include <codec/config_yaml.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All mistakes: some exactly when there is one, and what was right can be checked. */
static void find_all(const uint8_t *data, size_t size, const struct config_node *node)
{
	static struct settings s;
	struct mistakes all = {0};
	const struct config_source from = {
		.file = "f", .text = (const char *)data, .len = size, .all = &all};
	struct config_sections sections;
	struct err e = {0};

	bool wrong = config_settings(&s, &from, node, &sections, &e) != 0;

	if ((all.found.nr != 0) != wrong || all.found.nr > MISTAKES_MAX)
		abort();
	(void)settings_check_daemon(&s, NULL, &all, &e);
	mistakes_fini(&all);
}

/* What was read can be checked and printed; an error has a text and leaves the settings alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct settings before, s;
	char value[SETTING_TEXT_MAX];
	struct err e = {0};

	settings_init(&before);
	s = before;
	static const struct key_value labels[] = {
		{"pool", "latency"}, {"kubernetes.io/arch", "amd64"}};
	const struct config_node node = {.name = "gpu-07.example",
		.knows_labels = size % 2,
		.labels = labels,
		.nr_labels = 2};
	struct config_sections sections;
	char text[CONFIG_SECTIONS_TEXT_MAX];

	if (config_yaml_read(&s, (const char *)data, size, &node, &sections, &e) < 0) {
		if (!e.code || !e.text[0] || memcmp(&s, &before, sizeof s) != 0)
			abort();
		find_all(data, size, &node);
		return 0;
	}
	find_all(data, size, &node);
	(void)settings_check(&s, NULL, NULL);
	if (strlen(config_sections_text(&sections, text)) + 1 >= sizeof text ||
		(sections.off && s.mode != MODE_OFF))
		abort();
	for (unsigned i = 0; settings_get(&s, i, value, sizeof value); i++)
		if (strlen(value) >= sizeof value)
			abort();
	return 0;
}
