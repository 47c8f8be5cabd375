/* The shared pool as bounds of cgroups, in a daemon whose cgroups are files of a folder. What the
 * kernel makes of them is test_bounds' matter, and that of a virtual machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sweep_rig.h"

static struct rig *begin(void)
{
	struct rig *r = rig_new_by(true, "v0.12.5", true);

	assert_int_equal(r->d.settings.pool_enforced, POOL_BY_CGROUPS);
	put_unbounded(r);
	return r;
}

static bool pool_is_written(struct rig *r)
{
	char list[CPUSET_TEXT_MAX];
	const struct cpuset *pool = &ledger_view(engine_ledger(r->d.engine))->pool;

	return text_equal(content(r, burstable), cpuset_format(pool, list, sizeof list));
}

static void an_exclusive_create_bounds_the_others_before_its_answer(void **state)
{
	struct rig *r = begin();
	struct box *log = start_box(r, 0, 0);

	(void)state;
	assert_string_equal(content(r, burstable), "0-15");
	assert_true(cpus_are(r, log, "0-15")); /* any set that has the pool */
	for (unsigned i = 1; i <= 3; i++) {
		struct box *own = create_box(r, i, 4);
		char name[PATH_BYTES / 2];

		assert_int_equal(r->nr_updates, 0);
		assert_true(pool_is_written(r));
		assert_int_equal(cpuset_count(&held(r, own)->decision.cpus), 4);
		(void)snprintf(name, sizeof name, "sys/fs/cgroup/kubepods/podp%u/cpuset.cpus", i);
		assert_true(cpus_are(r, own, content(r, name)));
		call(r, NRI_CALL_POST_START, own);
		wait_until(r, is_quiet);
	}
	assert_string_equal(content(r, burstable), "12-15"); /* nothing lies idle */
	assert_true(cpus_are(r, log, "0-15"));
	call(r, NRI_CALL_STOP, &r->box[1]);
	r->box[1].c.runs = false;
	wait_until(r, is_quiet);
	assert_string_equal(content(r, burstable), "0-3,12-15");
	assert_int_equal(r->unasked, 0);
	rig_free(r);
}

static void a_container_is_told_the_cpus_that_its_cgroups_leave_it(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 4);
	assert_string_equal(r->told, ""); /* unless the operator wants it */
	r->d.settings.container_environment = true;
	assert_true(cpus_are(r, start_box(r, 1, 4), r->told));
	assert_true(cpus_are(r, start_box(r, 2, 0), "0-15"));
	assert_string_equal(r->told, content(r, burstable));
	assert_string_equal(r->told, "8-15");
	assert_string_equal(r->told_nodes, "1"); /* its memory may be on both */
	rig_free(r);
}

static void what_another_program_writes_is_written_again(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	for (unsigned i = 0; i < 3; i++) {
		put(r, burstable, i == 1 ? "\n" : "0-15\n");
		wait_until(r, pool_is_written);
	}
	assert_true(pool_status(&r->d).rewritten >= 3);
	rig_free(r);
}

static void a_set_that_cannot_be_read_is_written_again(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	put(r, burstable, "0-99999\n"); /* CPUs that a kernel may have room for */
	wait_until(r, pool_is_written);
	rig_free(r);
}

static void its_own_writes_are_not_those_of_another_program(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	(void)place_box(
		r, 2, 4, "/kubepods/burstable/podp2/c2"); /* so pods there are bounded one by one */
	assert_string_equal(
		content(r, "sys/fs/cgroup/kubepods/burstable/podp0/cpuset.cpus"), "8-15");
	r->box[2].c.runs = false;
	call(r, NRI_CALL_STOP, &r->box[2]);
	wait_until(r, is_quiet);
	assert_string_equal(
		content(r, "sys/fs/cgroup/kubepods/burstable/podp0/cpuset.cpus"), "0-15");
	pass_rounds(r, &r->box[0]);
	assert_int_equal(pool_status(&r->d).rewritten, 0);
	rig_free(r);
}

/* The kernel, or a mount, refuses. A folder in a file's place does so for root, too. */
static void break_cgroup(const struct rig *r, const char *name, bool broken)
{
	char path[PATH_BYTES], aside[PATH_BYTES + 8];

	(void)snprintf(path, sizeof path, "%s/%s", r->root, name);
	(void)snprintf(aside, sizeof aside, "%s.aside", path);
	if (broken)
		assert_int_equal(rename(path, aside) || mkdir(path, 0755), 0);
	else
		assert_int_equal(rmdir(path) || rename(aside, path), 0);
}

static void break_file(const struct rig *r, bool broken)
{
	break_cgroup(r, burstable, broken);
}

static bool has_a_problem(struct rig *r)
{
	return pool_status(&r->d).problem != NULL;
}

/* One that cannot be written keeps no other one from losing CPUs, nor what is bounded from
 * starting. */
static void one_that_cannot_be_written_concerns_nobody_else(void **state)
{
	static const char first[] = "sys/fs/cgroup/kubepods/podp1/cpuset.cpus",
			  second[] = "sys/fs/cgroup/kubepods/podp2/cpuset.cpus";
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 1, 4);
	(void)start_box(r, 0, 0);
	break_cgroup(r, first, true);
	wait_until(r, has_a_problem);
	put(r, burstable, "\n");
	wait_until(r, pool_is_written);
	r->refusal = "podp1/cpuset.cpus";
	(void)create_box(r, 3, 2);
	break_cgroup(r, second, true);
	(void)place_box(
		r, 2, 0, "/kubepods/podp2/c2"); /* it shares, below what cannot be bounded */
	assert_null(held(r, &r->box[2]));
	r->refusal = NULL;
	call(r, NRI_CALL_RUN_POD, name_box(r, 4, 0));
	wait_until(r, is_quiet);
	(void)start_box(r, 4, 0);
	assert_non_null(held(r, &r->box[4]));
	break_cgroup(r, first, false);
	break_cgroup(r, second, false);
	rig_free(r);
}

/* A container whose cgroup the runtime does not show is bounded by no cgroup: the container leaves
 * CPUs by an update alone. Where the answer has no room for the update, no container gets these
 * CPUs. */
static void cpus_that_only_an_update_frees_are_not_given_without_that_update(void **state)
{
	static const char room[] = "NUMAFIT_FAULT_UPDATES";
	struct rig *r = begin();

	(void)state;
	r->hides_cgroups = true;
	(void)start_box(r, 0, 0);
	r->hides_cgroups = false;
	assert_int_equal(ledger_view(engine_ledger(r->d.engine))->nr_unbounded, 1);
#ifdef NUMAFIT_FAULTS
	assert_int_equal(setenv(room, "1", 1), 0);
	r->refusal = "1 container has to be updated before it starts";
	assert_null(held(r, create_box(r, 1, 4)));
	r->refusal = NULL;
	assert_int_equal(unsetenv(room), 0);
#else
	(void)room;
#endif
	(void)create_box(r, 1, 4);
	assert_int_equal(r->nr_updates, 1);
	assert_true(cpus_are(r, &r->box[0], "4-15"));
	rig_free(r);
}

static bool is_enforced(struct rig *r)
{
	return pool_is_enforced(&r->d) && pool_is_written(r);
}

static void a_create_whose_pool_cannot_be_written_is_refused_and_nothing_moves(void **state)
{
	struct rig *r = begin();
	const struct cpuset *pool = &ledger_view(engine_ledger(r->d.engine))->pool;

	(void)state;
	(void)start_box(r, 0, 0);
	break_file(r, true);
	r->refusal = "burstable/cpuset.cpus";
	struct box *own = create_box(r, 1, 4);
	assert_null(held(r, own));
	assert_int_equal(cpuset_count(pool), 16);
	assert_non_null(pool_status(&r->d).problem);
	break_file(r, false);
	wait_until(r, is_enforced);
	r->refusal = NULL;
	(void)start_box(r, 2, 4);
	assert_int_equal(cpuset_count(pool), 12);
	assert_true(pool_is_written(r));
	assert_null(pool_status(&r->d).problem);
	rig_free(r);
}

static void a_restart_goes_on_and_mode_release_gives_back(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	stop_daemon(r);
	put(r, burstable, "\n"); /* meanwhile */
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, pool_is_written);
	assert_string_equal(content(r, burstable), "4-15");
	assert_int_equal(r->unasked, 0);
	stop_daemon(r);
	read_machine(r, machine);
	r->mode = MODE_RELEASE;
	start_daemon(r);
	assert_string_equal(content(r, burstable), "");
	assert_string_equal(content(r, "sys/fs/cgroup/kubepods/podp1/cpuset.cpus"), "");
	assert_int_equal(r->nr_updates, 2);
	rig_free(r);
}

static bool is_placed(struct rig *r)
{
	return is_enforced(r) && is_as_held(r, &r->box[1]);
}

/* It came while the daemon was away, and the CPUs that it is given then are others' as long as
 * these can stay there. */
static void a_container_that_came_meanwhile_is_placed_once_the_pool_is_written(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	stop_daemon(r);
	struct box *own = name_box(r, 1, 4);
	own->c.runs = true;
	set_cpus(r, own, "0-15");
	set_mems(r, own, "0-1");
	set_populated(r, own, true);
	break_file(r, true);
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, has_a_problem);
	assert_int_equal(cpuset_count(&held(r, own)->decision.cpus), 4);
	assert_int_equal(r->nr_updates, 0);
	assert_true(cpus_are(r, own, "0-15"));
	break_file(r, false);
	wait_until(r, is_placed);
	rig_free(r);
}

/* Longer than the updater gathers. */
static bool news_were_gathered(struct rig *r)
{
	enum { GATHERED_MS = 400 };

	return ++r->answers * POLL_MS > GATHERED_MS;
}

/* Without rounds of the sweep and without events of the runtime. */
static void the_end_of_a_failure_has_the_runtime_told_what_has_waited_for_the_pool(void **state)
{
	struct rig *r = begin();
	struct box *own = start_box(r, 1, 4);

	(void)state;
	(void)start_box(r, 0, 0);
	sweep_stop(&r->d);
	break_file(r, true);
	r->refusal = "burstable/cpuset.cpus";
	(void)create_box(r, 2, 4);
	r->refusal = NULL;
	assert_false(pool_is_enforced(&r->d));
	set_cpus(r, own, "0-15");
	engine_must_update(r->d.engine, own->c.id);
	updater_note_change(&r->d);
	wait_until(r, news_were_gathered);
	assert_true(cpus_are(r, own, "0-15"));
	break_file(r, false);
	wait_until(r, is_placed);
	rig_free(r);
}

static bool has_followed(struct rig *r)
{
	const struct holding *h = held(r, &r->box[1]);
	char list[CPUSET_TEXT_MAX];

	return !cpuset_has(&h->decision.cpus, 3) && cpuset_count(&h->decision.cpus) == 4 &&
	       pool_is_written(r) && is_as_held(r, &r->box[1]) &&
	       text_equal(content(r, "sys/fs/cgroup/kubepods/podp1/cpuset.cpus"),
		       cpuset_format(&h->decision.cpus, list, sizeof list));
}

static bool pool_has_all_again(struct rig *r)
{
	return pool_is_written(r) && cpuset_has(&ledger_view(engine_ledger(r->d.engine))->pool, 3);
}

static void cgroups_follow_cpus_that_go_and_come(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	assert_true(cpuset_has(&held(r, &r->box[1])->decision.cpus, 3));
	put(r, "sys/devices/system/cpu/online", "0-2,4-15\n");
	wait_until(r, has_followed);
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, pool_has_all_again);
	assert_true(has_followed(r));
	rig_free(r);
}

static bool is_updated(struct rig *r)
{
	return cpus_are(r, &r->box[0], "4-15");
}

static void by_updates_again_nothing_stays_bounded(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_box(r, 0, 0);
	(void)start_box(r, 1, 4);
	stop_daemon(r);
	read_machine(r, machine);
	r->enforced = POOL_BY_UPDATES;
	start_daemon(r);
	assert_string_equal(content(r, burstable), "");
	wait_until(r, is_updated);
	rig_free(r);
}

static void updates_are_taken_where_cgroups_cannot_be_written(void **state)
{
	struct daemon d = {.topo.this_machine = true, .settings.mode = MODE_MANAGE};
	struct err e;

	(void)state;
	assert_int_equal(pool_choose(&d, "test/cgroups/hybrid", &e), 0);
	assert_int_equal(d.settings.pool_enforced, POOL_BY_UPDATES);
	pool_stop(&d);
	d.settings.pool_enforced = POOL_BY_CGROUPS; /* which is demanded */
	assert_int_equal(pool_choose(&d, "test/cgroups/hybrid", &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "sharedPool.enforce"));
	pool_stop(&d);
	d.settings.pool_enforced = POOL_BY_EITHER;
	d.topo.this_machine = false;
	assert_int_equal(pool_choose(&d, "test/cgroups/v2", &e), 0);
	assert_int_equal(d.settings.pool_enforced, POOL_BY_UPDATES);
	pool_stop(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exclusive_create_bounds_the_others_before_its_answer),
		cmocka_unit_test(a_container_is_told_the_cpus_that_its_cgroups_leave_it),
		cmocka_unit_test(what_another_program_writes_is_written_again),
		cmocka_unit_test(a_set_that_cannot_be_read_is_written_again),
		cmocka_unit_test(its_own_writes_are_not_those_of_another_program),
		cmocka_unit_test(one_that_cannot_be_written_concerns_nobody_else),
		cmocka_unit_test(cpus_that_only_an_update_frees_are_not_given_without_that_update),
		cmocka_unit_test(
			a_create_whose_pool_cannot_be_written_is_refused_and_nothing_moves),
		cmocka_unit_test(a_restart_goes_on_and_mode_release_gives_back),
		cmocka_unit_test(
			a_container_that_came_meanwhile_is_placed_once_the_pool_is_written),
		cmocka_unit_test(
			the_end_of_a_failure_has_the_runtime_told_what_has_waited_for_the_pool),
		cmocka_unit_test(cgroups_follow_cpus_that_go_and_come),
		cmocka_unit_test(by_updates_again_nothing_stays_bounded),
		cmocka_unit_test(updates_are_taken_where_cgroups_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
