#include <stddef.h>
#include <stdint.h>

#include "advice_fuzz.h"

#include <codec/advice_json.h>
#include <errno.h>

/* What is read can be written, and then comes out the same again, unless it names what the machine
 * lacks. */
static void write_twice(const struct advice *h, const struct topo *t)
{
	auto_free char *once = NULL, *twice = NULL;
	struct advice back;
	struct arena a;

	for (size_t i = 0; i < h->nr_containers; i++)
		if (h->container[i].has_unknown)
			return;
	int rc = advice_json_write(h, t, &once, NULL);
	if (rc == -E2BIG) /* numbers may be longer than they were */
		return;
	arena_init(&a, ADVICE_ARENA_BYTES);
	if (rc || advice_read(advice_source_of(ADVICE_KEY), once,
			  &(struct advice_context){.t = t, .arena = &a}, &back, NULL))
		abort();
	if (advice_json_write(&back, t, &twice, NULL) || strcmp(once, twice) != 0)
		abort();
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return advice_fuzz(ADVICE_KEY, data, size, write_twice);
}
