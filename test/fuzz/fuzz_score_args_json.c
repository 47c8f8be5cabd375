#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <plugin-args/score_args_json.h>
#include <jansson.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20, NR_READERS = 6 };

static void check_weights(const struct resource_weights *w, const struct resource_table *names)
{
	for (unsigned i = 0; i < w->nr; i++)
		if (w->at[i].resource >= names->nr || w->at[i].weight < 1)
			abort();
}

static void check_parts(const struct generic_args *g, const struct resource_table *names)
{
	if (!g->nr || g->nr > NR_PORTIONS)
		abort();
	for (unsigned i = 0; i < g->nr; i++)
		check_weights(&g->part[i].resources, names);
}

/* What plugin i makes of it; it is checked where it is accepted. */
static int read_args(
	unsigned i, json_t *v, const struct sched_reader *r, struct args_problems *p, struct err *e)
{
	struct fit_args fit;
	struct resource_weights w;
	struct generic_args g;
	struct nrt_args nrt;
	int64_t weight;
	int rc;

	switch (i) {
	case 0:
		if (!(rc = fit_args_json_read(v, r, &fit, p, e)))
			check_parts(&fit.score, r->names);
		return rc;
	case 1:
		if (!(rc = balanced_args_json_read(v, r, &w, p, e)))
			check_weights(&w, r->names);
		return rc;
	case 2:
		if (!(rc = allocatable_args_json_read(v, r, &g, p, e)))
			check_parts(&g, r->names);
		return rc;
	case 3:
		if (!(rc = generic_args_json_read(v, r, &g, p, e)))
			check_parts(&g, r->names);
		return rc;
	case 4:
		return nrt_args_json_read(v, r, &nrt, p, e);
	default:
		return volcano_args_json_read(v, r, &weight, p, e);
	}
}

/* Arguments are accepted, or refused with a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *v;

	if (json_parse((const char *)data, size, &v, NULL))
		return 0;
	for (unsigned i = 0; i < NR_READERS; i++) {
		static struct args_problems p;
		struct resource_table names;
		struct err e = {0};
		struct arena a;

		memset(&p, 0, sizeof p);
		arena_init(&a, ARENA_BYTES);
		resource_table_init(&names);
		int rc = read_args(i, v, &(struct sched_reader){&names, &a}, &p, &e);
		if (rc > 0 ? !p.nr || !p.text[0] : p.nr || (rc < 0 && !e.text[0]))
			abort();
		resource_table_fini(&names);
		arena_fini(&a);
	}
	json_decref(v);
	return 0;
}
