/* Claims, containers' lives and the daemon's in every order: short sequences of events all of them,
 * long ones at random. SEED, EVENTS and DEPTH choose others. */
#include "events_rig.h"

enum { EVENTS_DEFAULT = 10000, DEPTH_DEFAULT = 3, DEPTH_MAX = 8 };

/* Sequences */

/* One container on its claim beside one with CPUs of its own. */
static const struct {
	unsigned event, i;
} short_events[] = {
	{0, 0},
	{1, 0},
	{2, 0},
	{3, 0},
	{4, 0},
	{5, 0},
	{6, 0},
	{7, 0},
	{8, 0},
	{9, 0},
	{10, 0},
	{11, 3},
	{4, 3},
};
enum { NR_SHORT = sizeof short_events / sizeof *short_events };

static void each_short_sequence_keeps_cpus_apart(void **state)
{
	const char *depth = getenv("DEPTH");
	const unsigned nr = depth ? (unsigned)atoi(depth) : DEPTH_DEFAULT;
	struct world *w = world_new();
	unsigned at[DEPTH_MAX] = {0}, k = 0;

	(void)state;
	assert_in_range(nr, DEPTH_DEFAULT, DEPTH_MAX);
	while (at[0] < NR_SHORT) {
		for (k = 0; k < nr; k++)
			if (!happen(w, &events[short_events[at[k]].event], short_events[at[k]].i))
				break;
		drain(w);
		k -= k == nr; /* where an event cannot happen, all that would follow is left out */
		for (at[k]++; k && at[k] == NR_SHORT; at[--k]++)
			;
		for (k++; k < nr; k++)
			at[k] = 0;
	}
	print_message("%u sequences, %u events, %u containers ran, %u claims\n", w->count.sequences,
		w->count.events, w->count.ran, w->count.prepared);
	assert_true(w->count.ran && w->count.prepared && w->count.waited);
	world_free(w);
}

static const struct event *some_event(struct world *w)
{
	unsigned all = 0, at;

	for (unsigned i = 0; i < NR_EVENTS; i++)
		all += events[i].weight;
	at = random_below(&w->r, all);
	for (const struct event *e = events;; e++) {
		if (at < e->weight)
			return e;
		at -= e->weight;
	}
}

static void long_random_sequences_keep_cpus_apart(void **state)
{
	const char *events_max = getenv("EVENTS");
	const unsigned nr = events_max ? (unsigned)atoi(events_max) : EVENTS_DEFAULT;
	struct world *w = world_new();

	(void)state;
	while (w->count.events < nr) {
		for (unsigned left = 1 + random_below(&w->r, 400); left; left--) {
			const struct event *e = some_event(w);

			(void)happen(w, e, random_below(&w->r, e->nr));
		}
		drain(w);
	}
	print_message("%u sequences, %u events, %u containers ran, %u claims, %u waited\n",
		w->count.sequences, w->count.events, w->count.ran, w->count.prepared,
		w->count.waited);
	assert_true(w->count.ran > nr / 50 && w->count.prepared > nr / 50 && w->count.waited);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_short_sequence_keeps_cpus_apart),
		cmocka_unit_test(long_random_sequences_keep_cpus_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
