#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/moves_json.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* Whatever answers on the daemon's socket is refused with a reason; or it is read, and what is
 * written of that is read the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct moves m, again;
	struct err e = {0};
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	if (moves_json_parse((const char *)data, size, &a, &m, &e)) {
		assert(e.code && e.text[0]);
	} else {
		assert(m.nr <= DEFRAG_MOVES_MAX && m.state < NR_MOVES_STATES);
		auto_free char *text = moves_json_format(&m);
		if (text) {
			assert(moves_json_parse(text, strlen(text), &a, &again, &e) == 0);
			assert(again.nr == m.nr && again.bytes == m.bytes && again.state == m.state);
		}
	}
	arena_fini(&a);
	return 0;
}
