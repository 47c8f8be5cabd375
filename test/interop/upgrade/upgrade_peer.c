/* A node whose numafitd is upgraded and taken back while containers run: this program is its
 * container runtime. Containers come and go under one version, which is ended or killed; then the
 * other version starts beside what runs. Nobody is moved, no CPU is given twice, and what fits
 * nowhere is refused by both. In some rounds the journal is lost: then what is written on the
 * containers must do. usage, at the repository's root: upgrade_peer OLDER-NUMAFITD [SEED] */
#include <codec/placement_json.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../unit/core_random.h"
#include "../../unit/live_rig.h"

enum {
	ROUNDS = 40,
	STEPS = 6,
	CPUS_MOST = 6,
	NR_VERSIONS = 2,
	TOO_MANY_CPUS = 200,
	NAME_BYTES = 32
};

static const char *older;
static struct random chance;

struct seen {
	unsigned starts, folded, adopted, creates, refused, lost_journals, kills;
};

static unsigned running(const struct rig *r)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < BOXES; i++)
		nr += r->box[i].runs;
	return nr;
}

static void assert_nothing_given_twice(const struct rig *r)
{
	for (unsigned a = 0; a < BOXES; a++)
		for (unsigned b = 0; b < BOXES; b++)
			fake_container_assert_apart(&r->box[a], &r->box[b]);
}

static void assert_not_moved(const struct rig *r, const struct fake_container before[BOXES])
{
	for (unsigned i = 0; i < BOXES; i++) {
		const struct fake_container *b = &r->box[i], *was = &before[i];

		assert_int_equal(b->runs, was->runs);
		if (!b->runs || !b->cpu_milli)
			continue;
		if (strcmp(b->cpus, was->cpus) != 0 || strcmp(b->mems, was->mems) != 0)
			fail_msg("%s had CPUs %s and memory of %s, and now %s and %s", b->id,
				was->cpus, was->mems, b->cpus, b->mems);
	}
}

static void come_or_go(struct rig *r, struct seen *s)
{
	static unsigned named;
	char id[NAME_BYTES];

	if (running(r) == BOXES || (running(r) && random_chance(&chance, 40))) {
		unsigned i = random_below(&chance, BOXES);

		while (!r->box[i].runs)
			i = (i + 1) % BOXES;
		stop(r, &r->box[i]);
		return;
	}
	(void)snprintf(id, sizeof id, "c%u", ++named);
	struct fake_container *b = create(r, id, random_below(&chance, CPUS_MOST));

	s->creates += b != NULL;
	s->refused += !b;
	if (b)
		b->exclusive = b->cpu_milli > 0;
}

static void live_under(struct rig *r, struct seen *s)
{
	for (unsigned i = 0; i < STEPS; i++) {
		come_or_go(r, s);
		assert_nothing_given_twice(r);
	}
	if (running(r) < BOXES) {
		assert_null(create(r, "too-large", TOO_MANY_CPUS));
		s->refused++;
	}
}

static void run_that_version(struct rig *r, bool old, char now[PATH_MAX + 16])
{
	(void)snprintf(r->daemon.program, sizeof r->daemon.program, "%s", old ? older : now);
}

static void versions_take_over_from_each_other(void **state)
{
	struct rig *r = rig_new();
	struct seen s[NR_VERSIONS] = {0};
	char now[PATH_MAX + 16];

	(void)state;
	(void)snprintf(now, sizeof now, "%s", r->daemon.program);
	r->starts = true;
	r->runtime.nri_version = "0.12.5";
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct fake_container before[BOXES];
		bool old = round % 2 == 0, kill = random_chance(&chance, 50);
		bool lose = round && random_chance(&chance, 20);

		memcpy(before, r->box, sizeof before);
		run_that_version(r, old, now);
		if (lose)
			rig_must(unlink(r->daemon.journal) == 0, r->daemon.journal);
		begin(r, NULL);
		assert_not_moved(r, before);
		assert_nothing_given_twice(r);
		s[old].adopted += running(r);
		s[old].folded += count_log(r, "event=journal-folded");
		live_under(r, &s[old]);
		s[old].starts++;
		s[old].lost_journals += lose;
		s[old].kills += kill;
		end(r, kill ? SIGKILL : SIGTERM);
	}
	for (unsigned v = 0; v < NR_VERSIONS; v++) {
		print_message(
			"%s: %u starts (%u journals read, %u lost; the other version was killed "
			"%u times) beside %u containers; %u created, %u refused\n",
			v ? "older" : "this", s[v].starts, s[v].folded, s[v].lost_journals,
			s[!v].kills, s[v].adopted, s[v].creates, s[v].refused);
		assert_true(s[v].adopted > ROUNDS && s[v].creates > ROUNDS && s[v].refused);
	}
	rig_free(r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(versions_take_over_from_each_other)};

	if (argc < 2)
		return 2;
	older = argv[1];
	chance.state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
