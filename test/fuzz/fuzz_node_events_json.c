#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/node_events_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 4 << 20, NODES = 4, CPUS_PER_NODE = 8, NODE_BYTES = 1 << 30 };

static const struct topo *machine(void)
{
	static struct topo t;

	if (t.ids.nr)
		return &t;
	topo_init(&t, "fuzz");
	for (unsigned n = 0; n < NODES; n++) {
		(void)topo_add_node(&t, n, NULL);
		(void)topo_set_memory(&t, n, 0, NODE_BYTES, NULL);
		for (unsigned c = n * CPUS_PER_NODE; c < (n + 1) * CPUS_PER_NODE; c++)
			(void)topo_add_cpu(&t, c, n, c / 2, n / 2, n, NULL);
	}
	if (topo_seal(&t, NULL))
		abort();
	return &t;
}

/* Whatever events come in whatever order: answers, or an error that says where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *steps = NULL, *results;
	struct settings s;
	struct err e = {0};
	struct arena a;

	if (json_parse((const char *)data, size, &steps, &e))
		return 0;
	settings_init(&s);
	s.shared_pool_step = (unsigned)size % 3;
	arena_init(&a, ARENA_BYTES);
	results = json_array();
	int rc = node_events_answer(machine(), &s, size & 1, steps, &a, results, &e);
	if (rc ? !e.text[0] : json_array_size(results) != json_array_size(steps))
		abort();
	json_decref(results);
	arena_fini(&a);
	json_decref(steps);
	return 0;
}
