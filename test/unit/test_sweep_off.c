/* A sweepInterval of 0 that a running daemon takes: what was noted for a round is not kept. */
#include "sweep_rig.h"

#include <numafitd/sweep.c> /* in the place of the library's */

static void set_interval(struct rig *r, unsigned ms)
{
	r->d.settings.sweep_interval_ms = ms;
	sweep_settings_changed(&r->d);
}

static bool round_is_over(struct rig *r)
{
	return r->d.follow.sweep->step == LOOK_AT_CPUS;
}

static void note_updates(struct rig *r)
{
	char id[16];

	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(id, sizeof id, "c%u", i);
		sweep_note_update(&r->d, id);
	}
}

static void updates_are_not_noted_while_no_round_begins(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");
	struct sweep *s = r->d.follow.sweep;

	(void)state;
	set_interval(r, 0);
	wait_until(r, round_is_over);
	note_updates(r);
	assert_int_equal(s->drifts.nr, 0);
	rig_free(r);
}

static void what_was_noted_is_forgotten_when_no_more_rounds_begin(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");
	struct sweep *s = r->d.follow.sweep;
	const struct box *web = start_box(r, 0, 4);

	(void)state;
	for (int within_a_round = 0; within_a_round < 2; within_a_round++) {
		set_interval(r, 60 * 60 * 1000);
		wait_until(r, round_is_over);
		sweep_note_update(&r->d, web->c.id);
		assert_non_null(find_drift(s, web->c.id));
		if (within_a_round) { /* at its end, which leaves what the ledger knows */
			s->step = UPDATE;
			loop_timer_set(s->timer, 1);
		}
		set_interval(r, 0);
		wait_until(r, round_is_over);
		assert_null(find_drift(s, web->c.id));
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(updates_are_not_noted_while_no_round_begins),
		cmocka_unit_test(what_was_noted_is_forgotten_when_no_more_rounds_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
