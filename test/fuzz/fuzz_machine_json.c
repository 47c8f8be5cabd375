#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/machine_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 4 << 20 };

/* Whatever a machine is said to be: one that can be decided for, or an error that says where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free struct machine *m = xcalloc(1, sizeof *m);
	json_t *v = NULL;
	struct err e = {0};
	struct arena a;

	if (json_parse((const char *)data, size, &v, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = machine_json_read(v, NULL, &a, m, &e);
	if ((rc < 0 && !e.text[0]) || (rc == 0 && !m->topo.ids.nr))
		abort();
	arena_fini(&a);
	json_decref(v);
	return 0;
}
