#ifndef NUMAFIT_TEST_ADVICE_RIG_H
#define NUMAFIT_TEST_ADVICE_RIG_H

#include <codec/advice.h>
#include <codec/machine_text.h>
#include <numafit/mem.h>

#include <string.h>

/* Reading hints in tests: machines of n NUMA nodes of 32 CPUs each, and a hint as one line. */

static inline void rig_machine(unsigned nodes, struct topo *t)
{
	enum { CPUS = 32, LINES = 2048 };
	char lines[LINES];
	struct text text;

	text_init(&text, lines, sizeof lines);
	text_add(&text, "machine rig\n");
	for (unsigned n = 0; n < nodes; n++)
		text_add(&text, "node %u memory 256Gi cpus %u-%u\n", n, n * CPUS,
			n * CPUS + CPUS - 1);
	assert_int_equal(machine_text_parse(lines, strlen(lines), t, NULL), 0);
}

static inline struct advice_context rig_context(const struct topo *t, struct arena *a)
{
	arena_init(a, ADVICE_ARENA_BYTES);
	return (struct advice_context){.t = t, .arena = a};
}

/* Field by field: padding may differ. */
static inline bool rig_same_answer(const struct policy_answer *a, const struct policy_answer *b)
{
	return a->admit == b->admit && a->affinity.any == b->affinity.any &&
	       a->affinity.preferred == b->affinity.preferred &&
	       nodeset_equal(a->affinity.mask, b->affinity.mask);
}

static inline bool rig_same_ruling(const struct advice_ruling *a, const struct advice_ruling *b)
{
	return a->verdict == b->verdict && a->cause == b->cause && a->refuse == b->refuse &&
	       nodeset_equal(a->asked, b->asked) && nodeset_equal(a->given, b->given) &&
	       text_equal(a->lacking, b->lacking) && rig_same_answer(&a->answer, &b->answer);
}

#endif
