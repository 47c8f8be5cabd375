#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/api_json.h>
#include <numafit-extender/extender_args_json.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20, LINE_MAX_BYTES = 256 };

/* Lines of "path=value" become arguments, which each plugin takes or refuses with a reason. */
static json_t *read_lines(const char *text, size_t size)
{
	json_t *root = NULL;
	char line[LINE_MAX_BYTES];

	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t len = end ? (size_t)(end - text) : size;

		if (len < sizeof line && !memchr(text, '\0', len)) {
			memcpy(line, text, len);
			line[len] = '\0';
			char *equals = strchr(line, '=');
			if (equals)
				*equals = '\0';
			(void)extender_args_put(&root, line, equals ? equals + 1 : NULL, NULL);
		}
		text += len + (end != NULL);
		size -= len + (end != NULL);
	}
	return root;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct args_problems problems;
	json_t *v = read_lines((const char *)data, size);
	struct resource_table names;
	struct arena a;
	struct err e;

	resource_table_init(&names);
	for (unsigned i = 0; sched_plugin_at(i); i++) {
		struct sched_use use = {.plugin = sched_plugin_at(i), .weight = 1};
		struct sched_cluster_args cluster = {0};

		arena_init(&a, ARENA_BYTES);
		problems = (struct args_problems){0};
		int rc = extender_args_json_read(
			v, &(struct sched_reader){&names, &a}, &use, &cluster, &problems, &e);
		assert(rc <= 0 || (problems.nr && problems.text[0]));
		assert(rc || (use.weight >= 1 && use.weight <= SCHED_WEIGHT_MAX));
		arena_fini(&a);
	}
	resource_table_fini(&names);
	api_json_free(v);
	return 0;
}
