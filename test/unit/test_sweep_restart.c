/* A runtime that has forgotten what it set is not believed: cgroups are read instead. */
#include "sweep_rig.h"

#include <numafit-cli/journal_fold.h>

/* It is CRI-O now, and has been started again since it created the containers. */
static void forget(struct rig *r)
{
	r->forgets = true;
	r->runtime.options = (struct nri_runtime_options){"cri-o", "1.34.0", true, 0};
}

/* A runtime that forgets */

/* What its limits are now; without the hierarchies of v1 nobody can see them. */
static void set_limits(const struct rig *r, const struct box *b)
{
	char quota[LIST_BYTES];

	(void)snprintf(quota, sizeof quota, "%u00000 100000\n", b->cpus);
	put_cgroup(r, b, "cpu.max", b->cpus ? quota : "max 100000\n");
	put_cgroup(r, b, "memory.max", "max\n");
}

static void resize_box(struct rig *r, struct box *b, unsigned cpus)
{
	b->cpus = cpus;
	call(r, NRI_CALL_UPDATE, b);
	wait_until(r, is_quiet);
	set_limits(r, b);
}

static bool is_connected_again(struct rig *r)
{
	return r->d.measured.counters.connects == 2 && is_ready(r);
}

/* It starts again, with all that happens meanwhile, and has forgotten. */
static void restart_runtime(struct rig *r, void (*meanwhile)(struct rig *r))
{
	stream_close(r->runtime.stream);
	r->runtime.stream = NULL;
	forget(r);
	if (meanwhile)
		meanwhile(r);
	wait_until(r, is_connected_again);
	r->set = r->unasked = 0;
}

static void a_resize_outlives_a_runtime_that_forgets_it(void **state)
{
	static const unsigned sizes[] = {6, 2};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		struct rig *r = rig_new(i % 2, "v0.10.0");
		struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

		resize_box(r, web, sizes[i / 2]);
		sweep_stop(&r->d); /* which does not help */
		set_limits(r, log);
		restart_runtime(r, NULL);
		assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), sizes[i / 2]);
		assert_true(all_are_as_held(r));
		/* of v2 all could be read, and is in force */
		assert_int_equal(r->nr_updates, r->v2 ? 0 : 1);
		(void)start_box(r, 2, 4);
		assert_true(all_are_as_held(r));
		rig_free(r);
	}
}

static void without_cgroups_a_container_is_updated_to_what_the_journal_has(void **state)
{
	struct rig *r = rig_new(true, "v0.10.0");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	resize_box(r, web, 6);
	set_cpus(r, web, "3"); /* nobody can see it */
	sweep_stop(&r->d);
	r->hides_cgroups = true;
	restart_runtime(r, NULL);
	assert_int_equal(r->nr_updates, 1);
	assert_true(is_as_held(r, web));
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	rig_free(r);
}

static void second_ends(struct rig *r)
{
	r->box[1].c.runs = false;
}

static void a_shared_container_follows_the_pool_although_the_report_looks_right(void **state)
{
	(void)state;
	for (unsigned v2 = 0; v2 < 2; v2++) {
		struct rig *r = rig_new(v2, "v0.10.0");
		struct box *log = start_box(r, 0, 0);

		(void)start_box(r, 1, 4);
		assert_false(cpus_are(r, log, log->c.cpus));
		sweep_stop(&r->d);
		restart_runtime(r, second_ends);
		assert_true(cpus_are(r, log, log->c.cpus));
		assert_true(is_as_held(r, log));
		rig_free(r);
	}
}

static void both_are_elsewhere(struct rig *r)
{
	set_cpus(r, &r->box[0], "3");
	set_cpus(r, &r->box[1], "4");
	r->d.follow.in_force.budget_ns = 0;
}

static void cgroups_beyond_the_time_limit_are_read_later(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

	(void)state;
	resize_box(r, web, 6);
	set_limits(r, log);
	sweep_stop(&r->d);
	restart_runtime(r, both_are_elsewhere);
	assert_int_equal(r->nr_updates, 0);
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static void web_grew(struct rig *r)
{
	r->box[0].cpus = 8;
	set_limits(r, &r->box[0]);
	r->d.follow.in_force.budget_ns = 0;
}

static bool has_grown_to_eight(struct rig *r)
{
	return cpuset_count(&held(r, &r->box[0])->decision.cpus) == 8 && all_are_as_held(r);
}

static void a_resize_that_is_read_later_counts(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");

	(void)state;
	(void)start_box(r, 0, 4);
	(void)start_box(r, 1, 0);
	set_limits(r, &r->box[0]);
	set_limits(r, &r->box[1]);
	sweep_stop(&r->d);
	restart_runtime(r, web_grew);
	wait_until(r, has_grown_to_eight);
	rig_free(r);
}

static void in_shadow_mode_the_cpusets_in_force_are_read_too(void **state)
{
	struct rig *r = rig_new(true, "v0.10.0");
	struct box *web = start_box(r, 0, 4);
	struct cpuset want;

	(void)state;
	stop_daemon(r);
	web->cpus = 6; /* by the kubelet */
	set_limits(r, web);
	set_cpus(r, web, "2-7");
	forget(r);
	r->in_shadow = true;
	read_machine(r, machine);
	start_daemon(r);
	assert_int_equal(cpuset_parse(&want, "2-7", strlen("2-7"), NULL), 0);
	assert_true(cpuset_equal(&held(r, web)->decision.cpus, &want));
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	rig_free(r);
}

enum { BOXES_USED = 8 };

static void random_event(struct rig *r, struct random *random)
{
	struct box *b = &r->box[random_below(random, BOXES_USED)];
	char list[LIST_BYTES];
	unsigned cpu = random_below(random, 16);

	if (!b->c.runs) {
		(void)start_box(r, (unsigned)(b - r->box), random_below(random, 2) * 2);
	} else if (random_chance(random, 20)) {
		b->c.runs = false;
		call(r, NRI_CALL_STOP, b);
	} else if (random_chance(random, 20)) {
		call(r, NRI_CALL_UPDATE, b);
	} else if (random_chance(random, 10)) {
		(void)snprintf(list, sizeof list, "0-%u,%u-15\n", cpu / 2, cpu / 2 + 1 + cpu % 2);
		put(r, "sys/devices/system/cpu/online", list);
	} else {
		(void)snprintf(list, sizeof list, "%u-15", cpu);
		set_cpus(r, b, list);
	}
	fake_runtime_flush(&r->runtime);
}

static bool a_round_or_so(struct rig *r)
{
	static unsigned calls;

	(void)r;
	return calls++ % 2;
}

static void after_random_changes_every_cpuset_is_restored(void **state)
{
	static const char *const versions[] = {"v0.12.5", "v0.11.0"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rig *r = rig_new(i % 2, versions[i / 2]);
		struct random random = {.state = 11 + (uint64_t)i};
		struct err e;

		for (unsigned n = 0; n < 150; n++) {
			random_event(r, &random);
			wait_until(r, a_round_or_so);
			if (ledger_check(engine_ledger(r->d.engine), &e))
				fail_msg("seed %d, event %u: %s", 11 + i, n, e.text);
		}
		wait_until(r, is_quiet);
		if (i / 2 == 0)
			wait_until(r, all_are_as_held);
		else
			assert_int_equal(r->unasked, 0);
		assert_false(is_there(r, "journal.damaged"));
		rig_free(r);
	}
}

/* By updates the pool grows in steps only, and an entry's record says how far the pool has grown.
 */
static void a_journal_without_entries_has_the_pool_as_well(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct journal_fold f;
	struct err e;

	(void)state;
	r->d.settings.shared_pool_step = 4;
	struct box *own = start_box(r, 0, 4);
	own->c.runs = false;
	call(r, NRI_CALL_STOP, own);
	wait_until(r, is_quiet);
	assert_int_equal(ledger_count(engine_ledger(r->d.engine)), 0);
	const struct cpuset *pool = &ledger_view(engine_ledger(r->d.engine))->pool;
	assert_true(cpuset_count(pool) < 16);
	recorder_write_anew(&r->d);
	if (journal_fold(&f, r->d.run.journal_path, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(cpuset_equal(&ledger_view(engine_ledger(f.engine))->pool, pool));
	journal_fold_fini(&f);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_resize_outlives_a_runtime_that_forgets_it),
		cmocka_unit_test(without_cgroups_a_container_is_updated_to_what_the_journal_has),
		cmocka_unit_test(
			a_shared_container_follows_the_pool_although_the_report_looks_right),
		cmocka_unit_test(a_journal_without_entries_has_the_pool_as_well),
		cmocka_unit_test(cgroups_beyond_the_time_limit_are_read_later),
		cmocka_unit_test(a_resize_that_is_read_later_counts),
		cmocka_unit_test(in_shadow_mode_the_cpusets_in_force_are_read_too),
		cmocka_unit_test(after_random_changes_every_cpuset_is_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
