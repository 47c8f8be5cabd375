/* Interrupts and frequencies of CPUs whose containers wish for quiet, in a daemon for which they are
 * files of a folder. What the kernel makes of them is a virtual machine's matter. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sweep_rig.h"

#include <io/fault.h>
#include <numafit/quiet.h>

#include <sys/mman.h>
#include <sys/wait.h>

#define DEFAULT "proc/irq/default_smp_affinity"
#define CPU     "sys/devices/system/cpu/cpu"

static const char fast[] = "name=fast governor=performance minMHz=2400 maxIdleLatencyUs=2; "
			   "name=cool maxMHz=800";

/* Files of the kernel's, with what they have before anything is done. */
static const struct {
	const char *name, *content;
} files[] = {
	{DEFAULT, "ffff"},
	{"proc/irq/1/smp_affinity_list", "0-15"},
	{"proc/irq/2/smp_affinity_list", "0"}, /* nothing of it, if container 1 is on CPU 0 */
	{"proc/irq/3/smp_affinity_list", "12-15"},
};

static void put_irq(const struct rig *r, unsigned nr, const char *list)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, "proc/irq/%u/smp_affinity_list", nr);
	put(r, name, list);
}

static void put_cpu(const struct rig *r, unsigned cpu, const char *file, const char *text)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, CPU "%u/%s", cpu, file);
	put(r, name, text);
}

static void put_all(const struct rig *r)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		put(r, files[i].name, files[i].content);
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		char alone[8];

		(void)snprintf(alone, sizeof alone, "%u\n", cpu);
		put_cpu(r, cpu, "cpufreq/affected_cpus", cpu < 14 ? alone : "14 15\n");
		put_cpu(r, cpu, "cpufreq/scaling_governor", "schedutil\n");
		put_cpu(r, cpu, "cpufreq/scaling_min_freq", "800000\n");
		put_cpu(r, cpu, "cpufreq/scaling_max_freq", "3000000\n");
		put_cpu(r, cpu, "cpuidle/state0/latency", "0\n");
		put_cpu(r, cpu, "cpuidle/state0/disable", "0\n");
		put_cpu(r, cpu, "cpuidle/state1/latency", "133\n");
		put_cpu(r, cpu, "cpuidle/state1/disable", "0\n");
	}
}

static struct rig *begin(void)
{
	struct rig *r = rig_new_by(true, "v0.12.5", true);

	put_unbounded(r);
	put_all(r);
	stop_daemon(r);
	read_machine(r, machine);
	r->profiles = fast;
	start_daemon(r);
	return r;
}

static const char *irq(const struct rig *r, unsigned nr)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, "proc/irq/%u/smp_affinity_list", nr);
	return content(r, name);
}

static bool cpu_is(const struct rig *r, unsigned cpu, const char *file, const char *text)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, CPU "%u/%s", cpu, file);
	return strcmp(content(r, name), text) == 0;
}

static const struct kept_list *kept(const struct rig *r)
{
	return &ledger_view(engine_ledger(r->d.engine))->kept[KEPT_QUIET];
}

static struct status_quiet status(const struct rig *r)
{
	struct status_quiet s = {0};

	assert_true(quiet_status(&r->d, &s));
	return s;
}

static struct box *start_quiet(struct rig *r, unsigned i, unsigned cpus, const char *wish)
{
	r->box[i].wishes_quiet = wish;
	return start_box(r, i, cpus);
}

static void end(struct rig *r, struct box *b)
{
	call(r, NRI_CALL_STOP, b);
	b->c.runs = false;
	wait_until(r, is_quiet);
}

static bool first_is_moved(struct rig *r)
{
	return strcmp(irq(r, 1), "4-15") == 0;
}

static bool two_are_moved(struct rig *r)
{
	return status(r).moved == 2;
}

static bool all_is_as_before(struct rig *r)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(content(r, files[i].name), files[i].content) != 0)
			return false;
	for (unsigned cpu = 0; cpu < 16; cpu++)
		if (!cpu_is(r, cpu, "cpufreq/scaling_governor", "schedutil") ||
			!cpu_is(r, cpu, "cpufreq/scaling_min_freq", "800000") ||
			!cpu_is(r, cpu, "cpufreq/scaling_max_freq", "3000000") ||
			!cpu_is(r, cpu, "cpuidle/state0/disable", "0") ||
			!cpu_is(r, cpu, "cpuidle/state1/disable", "0"))
			return false;
	return kept(r)->nr == 0;
}

static void interrupts_keep_off_cpus_whose_container_wishes_it(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, two_are_moved);
	assert_true(first_is_moved(r));
	assert_string_equal(content(r, DEFAULT), "fff0");
	assert_string_equal(irq(r, 2), "4-15"); /* it had no other CPU */
	assert_string_equal(irq(r, 3), "12-15");
	assert_true(cpu_is(r, 0, "cpufreq/scaling_governor", "schedutil"));
	assert_int_equal(status(r).unmovable, 0);
	end(r, b);
	wait_until(r, all_is_as_before);
	assert_int_equal(status(r).rewritten, 0);
	rig_free(r);
}

static void who_does_not_wish_or_has_no_cpus_of_its_own_changes_nothing(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_quiet(r, 0, 4, NULL);
	(void)start_quiet(r, 1, 0, "irq,frequency=fast");
	pass_rounds(r, &r->box[0]);
	assert_true(all_is_as_before(r));
	rig_free(r);
}

/* The CPUs are held from the start of the pod's sandbox on; nothing runs there yet. */
static void a_container_that_has_not_come_yet_changes_nothing(void **state)
{
	const struct ask part[] = {{.name = "a",
		.cpu_milli = 4000,
		.cpu_limit_milli = 4000,
		.kind = CONTAINER_APP,
		.wishes.quiet = "irq,frequency=fast"}};
	const struct pod pod = {.sandbox_id = "p",
		.uid = "p",
		.name = "p",
		.ns = "default",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = part};
	struct rig *r = begin();
	struct quiet_plan plan;
	struct decision d;

	(void)state;
	engine_run_pod(r->d.engine, 0, &pod, &d);
	assert_true(d.admit);
	assert_non_null(ledger_find_waiting(engine_ledger(r->d.engine), "p", "a"));
	quiet_plan_make(engine_ledger(r->d.engine), &r->d.settings, &plan);
	assert_true(cpuset_empty(&plan.irq));
	assert_true(cpuset_empty(&plan.frequency));
	(void)start_quiet(r, 0, 4, NULL);
	pass_rounds(r, &r->box[0]);
	assert_true(all_is_as_before(r));
	rig_free(r);
}

static bool second_is_off_too(struct rig *r)
{
	return strcmp(irq(r, 1), "8-15") == 0;
}

static bool only_second_is_off(struct rig *r)
{
	return strcmp(irq(r, 1), "0-3,8-15") == 0 && strcmp(irq(r, 2), "0") == 0;
}

static void two_containers_come_and_go(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *a = start_quiet(r, 0, 4, "irq"), *b = start_quiet(r, 1, 4, "irq");
	wait_until(r, second_is_off_too);
	assert_string_equal(content(r, DEFAULT), "ff00");
	end(r, a);
	wait_until(r, only_second_is_off);
	assert_string_equal(content(r, DEFAULT), "ff0f");
	end(r, b);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

/* The kernel's answer for an interrupt that it manages: a file that is sealed. */
static int seal_irq(const struct rig *r, unsigned nr)
{
	char path[PATH_BYTES], sealed[64];
	const int fd = memfd_create("irq", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0-15\n", 5), 5);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
	put_irq(r, nr, "");
	(void)snprintf(path, sizeof path, "%s/proc/irq/%u/smp_affinity_list", r->root, nr);
	(void)snprintf(sealed, sizeof sealed, "/proc/%d/fd/%d", getpid(), fd);
	assert_int_equal(unlink(path) || symlink(sealed, path), 0);
	return fd;
}

static void those_that_the_kernel_manages_are_counted_and_left(void **state)
{
	struct rig *r = begin();
	const int fd = seal_irq(r, 7);

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, two_are_moved);
	assert_true(first_is_moved(r));
	assert_string_equal(irq(r, 7), "0-15");
	assert_null(kept_find(kept(r), "proc/irq/7/smp_affinity_list"));
	assert_int_equal(status(r).unmovable, 1);
	assert_null(status(r).problem);
	end(r, b);
	wait_until(r, all_is_as_before);
	(void)close(fd);
	rig_free(r);
}

/* A look at all of them, from here on: one that comes after the others is moved. */
static bool witness_is_moved(struct rig *r)
{
	return strcmp(irq(r, 99), "0-15") != 0;
}

static void pass_looks(struct rig *r)
{
	for (unsigned i = 0; i < 2; i++) { /* the first one may have been half done */
		put_irq(r, 99, "0-15\n");
		wait_until(r, witness_is_moved);
	}
}

static bool is_moved_back_once(struct rig *r)
{
	return first_is_moved(r) && status(r).rewritten == 1;
}

static bool new_one_is_moved(struct rig *r)
{
	return strcmp(irq(r, 9), "4-6") == 0;
}

static bool only_others_choices_are_left(struct rig *r)
{
	return kept(r)->nr == 0 && strcmp(irq(r, 9), "2-6") == 0;
}

static void what_another_program_sets_is_what_comes_back(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, first_is_moved);
	put_irq(r, 1, "0-15\n"); /* as a balancer does */
	wait_until(r, is_moved_back_once);
	put_irq(r, 1, "8\n"); /* a narrower choice, where nobody minds */
	put_irq(r, 9, "2-6\n"); /* of a device that has come */
	wait_until(r, new_one_is_moved);
	pass_looks(r);
	assert_string_equal(irq(r, 1), "8");
	put_irq(r, 9, "2-3,7\n"); /* now it is another one's: what was there before counts no more */
	pass_looks(r);
	assert_string_equal(irq(r, 9), "7");
	put_irq(r, 9, "2-6\n");
	wait_until(r, new_one_is_moved);
	end(r, b);
	wait_until(r, only_others_choices_are_left);
	assert_string_equal(irq(r, 1), "0-15");
	assert_string_equal(irq(r, 2), "0");
	rig_free(r);
}

static void interrupts_of_a_device_that_is_gone_are_forgotten(void **state)
{
	char path[PATH_BYTES];
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, first_is_moved);
	assert_non_null(kept_find(kept(r), "proc/irq/2/smp_affinity_list"));
	remove_tree(r, "proc/irq/2");
	pass_looks(r);
	assert_null(kept_find(kept(r), "proc/irq/2/smp_affinity_list"));
	end(r, b);
	(void)snprintf(path, sizeof path, "%s/proc/irq/2", r->root);
	assert_int_equal(access(path, F_OK), -1);
	rig_free(r);
}

static bool is_fast(struct rig *r)
{
	return cpu_is(r, 3, "cpufreq/scaling_governor", "performance") &&
	       cpu_is(r, 3, "cpufreq/scaling_min_freq", "2400000") &&
	       cpu_is(r, 3, "cpuidle/state1/disable", "1");
}

static bool is_cool(struct rig *r)
{
	return cpu_is(r, 3, "cpufreq/scaling_max_freq", "800000") &&
	       cpu_is(r, 3, "cpufreq/scaling_governor", "schedutil") &&
	       cpu_is(r, 3, "cpufreq/scaling_min_freq", "800000") &&
	       cpu_is(r, 3, "cpuidle/state1/disable", "0");
}

static void cpus_have_the_profile_that_is_wished_for(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "frequency=fast");
	wait_until(r, is_fast);
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		assert_true(cpu_is(r, cpu, "cpufreq/scaling_governor",
			cpu < 4 ? "performance" : "schedutil"));
		assert_true(cpu_is(r, cpu, "cpufreq/scaling_max_freq", "3000000"));
		assert_true(cpu_is(r, cpu, "cpuidle/state0/disable", "0"));
	}
	assert_string_equal(irq(r, 1), "0-15");
	end(r, b);
	wait_until(r, all_is_as_before);
	b = start_quiet(r, 1, 4, "irq,frequency=cool");
	wait_until(r, is_cool);
	wait_until(r, first_is_moved);
	end(r, b);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool is_fast_but_for_the_clock(struct rig *r)
{
	return cpu_is(r, 3, "cpuidle/state1/disable", "1") &&
	       cpu_is(r, 3, "cpufreq/scaling_governor", "schedutil") &&
	       cpu_is(r, 2, "cpufreq/scaling_governor", "performance");
}

static bool one_shares_its_clock(struct rig *r)
{
	return status(r).clock_shared == 1;
}

static bool none_shares_its_clock(struct rig *r)
{
	return status(r).clock_shared == 0;
}

static bool both_sides_are_fast(struct rig *r)
{
	return is_fast(r) && cpu_is(r, 4, "cpufreq/scaling_governor", "performance");
}

static void a_clock_that_others_share_is_left(void **state)
{
	struct rig *r = begin();

	(void)state;
	put(r, CPU "3/cpufreq/affected_cpus", "3 4\n");
	put(r, CPU "4/cpufreq/affected_cpus", "3 4\n");
	struct box *b = start_quiet(r, 0, 4, "frequency=fast");
	wait_until(r, is_fast_but_for_the_clock);
	assert_true(cpu_is(r, 2, "cpufreq/scaling_governor", "performance"));
	assert_true(cpu_is(r, 3, "cpufreq/scaling_governor", "schedutil"));
	wait_until(r, one_shares_its_clock);
	struct box *other = start_quiet(r, 1, 4, "frequency=fast");
	wait_until(r, both_sides_are_fast);
	wait_until(r, none_shares_its_clock);
	end(r, other);
	wait_until(r, is_fast_but_for_the_clock);
	end(r, b);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool has_a_problem(struct rig *r)
{
	return status(r).problem != NULL;
}

static void what_a_profile_names_and_no_file_has_is_said(void **state)
{
	struct rig *r = begin();

	(void)state;
	remove_tree(r, CPU "0/cpufreq");
	struct box *b = start_quiet(r, 0, 4, "frequency=fast");
	wait_until(r, is_fast);
	wait_until(r, has_a_problem);
	assert_non_null(strstr(status(r).problem, "cpu0/cpufreq/scaling_governor"));
	end(r, b);
	put_cpu(r, 0, "cpufreq/affected_cpus", "0\n");
	put_cpu(r, 0, "cpufreq/scaling_governor", "schedutil\n");
	put_cpu(r, 0, "cpufreq/scaling_min_freq", "800000\n");
	put_cpu(r, 0, "cpufreq/scaling_max_freq", "3000000\n");
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static void a_restart_goes_on_and_mode_release_gives_back(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)start_quiet(r, 0, 4, "irq,frequency=fast");
	wait_until(r, first_is_moved);
	wait_until(r, is_fast);
	stop_daemon(r);
	put_irq(r, 1, "0-15\n"); /* meanwhile */
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, first_is_moved);
	stop_daemon(r);
	read_machine(r, machine);
	r->mode = MODE_RELEASE;
	start_daemon(r);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool cpu_15_is_gone(struct rig *r)
{
	return !cpuset_has(&r->d.topo.cpus, 15);
}

static bool cpu_15_is_there(struct rig *r)
{
	return cpuset_has(&r->d.topo.cpus, 15);
}

/* Interrupt 2 has gone to all other CPUs that were online then. */
static void cpus_that_go_and_come_take_nothing_from_what_comes_back(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, two_are_moved);
	put(r, "sys/devices/system/cpu/online", "0-14\n");
	wait_until(r, cpu_15_is_gone);
	pass_looks(r);
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, cpu_15_is_there);
	pass_looks(r);
	end(r, b);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool cannot_be_read(struct rig *r)
{
	return has_a_problem(r) && kept(r)->nr == 1;
}

static void what_could_not_be_read_at_the_end_comes_back_later(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq");
	wait_until(r, two_are_moved);
	put_irq(r, 2, "nonsense");
	end(r, b);
	wait_until(r, cannot_be_read);
	put_irq(r, 2, "4-15");
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool both_are_fast(struct rig *r)
{
	return cpu_is(r, 2, "cpuidle/state1/disable", "1") &&
	       cpu_is(r, 3, "cpuidle/state1/disable", "1") &&
	       cpu_is(r, 2, "cpufreq/scaling_governor", "performance");
}

static bool cpu_2_is_gone(struct rig *r)
{
	return !cpuset_has(&r->d.topo.cpus, 2);
}

/* CPUs 2 and 3 have one clock: what it was is kept under the first of them. */
static void a_clock_comes_back_though_its_first_cpu_is_offline(void **state)
{
	struct rig *r = begin();

	(void)state;
	put(r, CPU "2/cpufreq/affected_cpus", "2 3\n");
	put(r, CPU "3/cpufreq/affected_cpus", "2 3\n");
	struct box *b = start_quiet(r, 0, 4, "frequency=fast");
	wait_until(r, both_are_fast);
	put(r, CPU "3/cpufreq/affected_cpus", "3\n");
	put(r, "sys/devices/system/cpu/online", "0-1,3-15\n");
	wait_until(r, cpu_2_is_gone);
	end(r, b);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static void what_ended_while_the_daemon_was_away_comes_back(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = start_quiet(r, 0, 4, "irq,frequency=fast");
	wait_until(r, first_is_moved);
	wait_until(r, is_fast);
	stop_daemon(r);
	b->c.runs = false;
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, all_is_as_before);
	rig_free(r);
}

static bool all_are_quiet(struct rig *r)
{
	return first_is_moved(r) && is_fast(r) && strcmp(content(r, DEFAULT), "fff0") == 0 &&
	       strcmp(irq(r, 2), "4-15") == 0;
}

/* In a process of its own: kill -9 before or behind the nth write of such a file. False: there are
 * fewer of them. */
static bool dies_at(struct rig *r, enum fault f, unsigned nth)
{
	char fault[64];
	int status = 0;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)snprintf(fault, sizeof fault, "%s:%u", fault_name(f), nth);
		(void)setenv("NUMAFIT_FAULT", fault, 1);
		fault_look_again();
		read_machine(r, machine);
		start_daemon(r);
		(void)start_quiet(r, 0, 4, "irq,frequency=fast");
		wait_until(r, all_are_quiet);
		end(r, &r->box[0]);
		wait_until(r, all_is_as_before);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0);
	return WIFSIGNALED(status);
}

static void nothing_is_lost_by_a_kill_at_any_write(void **state)
{
	static const enum fault points[] = {
		FAULT_TO_WRITE_TUNABLE, FAULT_TUNABLE_WRITTEN, FAULT_HALF_LINE};
	struct rig *r = begin();
	unsigned deaths = 0;

	(void)state;
	stop_daemon(r);
	for (size_t i = 0; i < sizeof points / sizeof *points; i++)
		for (unsigned nth = 1; dies_at(r, points[i], nth); nth++, deaths++) {
			read_machine(r, machine);
			start_daemon(r); /* the container is gone */
			wait_until(r, all_is_as_before);
			stop_daemon(r);
		}
	assert_true(deaths > 50);
	read_machine(r, machine);
	start_daemon(r);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_keep_off_cpus_whose_container_wishes_it),
		cmocka_unit_test(a_container_that_has_not_come_yet_changes_nothing),
		cmocka_unit_test(who_does_not_wish_or_has_no_cpus_of_its_own_changes_nothing),
		cmocka_unit_test(two_containers_come_and_go),
		cmocka_unit_test(those_that_the_kernel_manages_are_counted_and_left),
		cmocka_unit_test(what_another_program_sets_is_what_comes_back),
		cmocka_unit_test(interrupts_of_a_device_that_is_gone_are_forgotten),
		cmocka_unit_test(cpus_have_the_profile_that_is_wished_for),
		cmocka_unit_test(a_clock_that_others_share_is_left),
		cmocka_unit_test(what_a_profile_names_and_no_file_has_is_said),
		cmocka_unit_test(a_restart_goes_on_and_mode_release_gives_back),
		cmocka_unit_test(what_ended_while_the_daemon_was_away_comes_back),
		cmocka_unit_test(cpus_that_go_and_come_take_nothing_from_what_comes_back),
		cmocka_unit_test(what_could_not_be_read_at_the_end_comes_back_later),
		cmocka_unit_test(a_clock_comes_back_though_its_first_cpu_is_offline),
		cmocka_unit_test(nothing_is_lost_by_a_kill_at_any_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
