#include <stddef.h>
#include <stdint.h>

#include <codec/status_json.h>
#include <numafit-cli/top_frame.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* What `numafit top` makes of it stays within the lines, and is nothing but printable ASCII. */
static void draw(const struct status *st, int columns, int rows)
{
	const struct top_view v = {
		.columns = columns, .rows = rows, .filter = "", .has_keys = rows > 0};
	struct frame f;

	top_frame(&f, st, &v);
	for (size_t i = 0; i < f.nr; i++) {
		if (strlen(f.at[i].text) > (size_t)columns)
			abort();
		for (const char *c = f.at[i].text; *c; c++)
			if (*c < ' ' || *c > '~')
				abort();
	}
	frame_fini(&f);
}

/* Whatever answers on the daemon's socket is read, or refused with a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct status st;
	struct arena a;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	if (!status_json_parse((const char *)data, size, &a, &st, &e)) {
		for (size_t i = 0; i < st.nr_containers; i++)
			if (!st.containers[i].cpus || st.containers[i].qos >= NR_QOS)
				abort();
		draw(&st, 80, 24);
		draw(&st, 200, 0);
	} else if (!e.code || !e.text[0]) {
		abort();
	}
	arena_fini(&a);
	return 0;
}
