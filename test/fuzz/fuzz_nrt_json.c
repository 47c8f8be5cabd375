#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/nrt_json.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* A topology is whole, or there is a reason why it is none. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sched_topology *t = NULL;
	struct resource_table names;
	struct arena a;
	struct err e = {0};
	json_t *v;

	if (json_parse((const char *)data, size, &v, NULL))
		return 0;
	arena_init(&a, ARENA_BYTES);
	resource_table_init(&names);
	int rc = nrt_json_read(v, &(struct sched_reader){&names, &a}, &t, &e);
	if (rc ? t || !e.text[0] : !t || t->nr_zones > ZONES_MAX || t->max_numa_nodes < 2)
		abort();
	for (size_t i = 0; t && i < t->resources.nr; i++)
		if (t->resources.at[i].resource >= names.nr)
			abort();
	sched_topology_free(t);
	resource_table_fini(&names);
	arena_fini(&a);
	json_decref(v);
	return 0;
}
