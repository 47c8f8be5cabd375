#ifndef NUMAFIT_TEST_ADVICE_FUZZ_H
#define NUMAFIT_TEST_ADVICE_FUZZ_H

#include <codec/advice.h>
#include <codec/machine_text.h>
#include <numafit/mem.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A machine whose NUMA nodes have gaps in their numbers. */
static inline const struct topo *advice_fuzz_machine(void)
{
	static const char text[] = "machine gaps\nnode 0 memory 4Gi cpus 0-3\nnode 1 cpus 4-7\n"
				   "node 8 memory 4Gi cpus 8-11\nnode 255 memory 4Gi\n";
	static struct topo t;

	if (!t.nr_cpus && machine_text_parse(text, sizeof text - 1, &t, NULL))
		abort();
	return &t;
}

static inline void advice_fuzz_check(const struct advice *h, const struct topo *t)
{
	for (size_t i = 0; i < h->nr_containers; i++) {
		const struct advice_container *c = &h->container[i];

		if (!c->name[0] || !nodeset_within(c->nodes, t->nodes) ||
			(nodeset_empty(c->nodes) && !c->has_unknown && !h->cpus))
			abort();
		for (size_t a = 0; a < c->nr_amounts; a++)
			if (!nodeset_has(t->nodes, c->amount[a].node) || !c->amount[a].resource[0])
				abort();
	}
}

/* Any value: a hint that keeps its header's promises, or an error that says what is wrong and
 * leaves nothing behind. then() may look further. */
static inline int advice_fuzz(const char *key, const uint8_t *data, size_t size,
	void (*then)(const struct advice *h, const struct topo *t))
{
	const struct topo *t = advice_fuzz_machine();
	const struct advice_facts facts = {.uid = "u", .node = "n", .now_ms = 1000, .t = t};
	auto_free char *text = xcalloc(size + 1, 1);
	struct advice h, none;
	struct err e = {0};
	struct arena a;

	if (size)
		memcpy(text, data, size);
	memset(&h, 0, sizeof h);
	memset(&none, 0, sizeof none);
	arena_init(&a, ADVICE_ARENA_BYTES);
	int rc = advice_read(
		advice_source_of(key), text, &(struct advice_context){.t = t, .arena = &a}, &h, &e);
	if (rc && (!e.text[0] || e.code != -rc || memcmp(&h, &none, sizeof h) != 0))
		abort();
	if (!rc) {
		advice_fuzz_check(&h, t);
		(void)advice_check(&h, &facts, &e);
		if (then)
			then(&h, t);
	}
	arena_fini(&a);
	return 0;
}

#endif
