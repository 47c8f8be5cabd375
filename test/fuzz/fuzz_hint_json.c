#include <stddef.h>
#include <stdint.h>

#include "hint_fuzz.h"

#include <codec/hint_json.h>
#include <errno.h>

/* What is read can be written, and then comes out the same again, unless it names what the machine
 * lacks. */
static void write_twice(const struct sched_hint *h, const struct topo *t)
{
	auto_free char *once = NULL, *twice = NULL;
	struct sched_hint back;
	struct arena a;

	for (size_t i = 0; i < h->nr_containers; i++)
		if (h->container[i].has_unknown)
			return;
	int rc = hint_json_write(h, t, &once, NULL);
	if (rc == -E2BIG) /* numbers may be longer than they were */
		return;
	arena_init(&a, HINT_ARENA_BYTES);
	if (rc || hint_read(hint_source_of(HINT_KEY), once,
			  &(struct hint_context){.t = t, .arena = &a}, &back, NULL))
		abort();
	if (hint_json_write(&back, t, &twice, NULL) || strcmp(once, twice) != 0)
		abort();
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return hint_fuzz(HINT_KEY, data, size, write_twice);
}
