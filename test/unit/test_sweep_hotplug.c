/* CPUs go offline and come back, while the daemon runs and while it is away. */
#include "sweep_rig.h"

#include <errno.h>
#include <numafitd/machine_read.h>
#include <numafitd/status.h>

static const char without_cpu_1[] = "machine two\n"
				    "offline 1\n"
				    "node 0 memory 8Gi cpus 0-7\n"
				    "node 1 memory 8Gi cpus 8-15 socket 1\n";

static bool is_relocated(struct rig *r)
{
	return r->d.measured.counters.relocated > 0 && all_are_as_held(r);
}

static bool has_all_cpus(struct rig *r)
{
	return r->d.topo.nr_cpus == 16 && all_are_as_held(r);
}

static bool status_has(const struct rig *r, const char *text)
{
	assert_int_equal(setenv("NUMAFIT_FAULT_ROOT", r->root, 1), 0);
	auto_free char *document = status_document(&r->d);

	assert_int_equal(unsetenv("NUMAFIT_FAULT_ROOT"), 0);
	return strstr(document, text) != NULL;
}

static void offline_and_online_cpus_are_followed_without_a_request(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);
	struct decision before = held(r, web)->decision;

	(void)state;
	assert_true(cpuset_has(&before.cpus, 1));
	put(r, "sys/devices/system/cpu/present", "0-15\n");
	assert_false(status_has(r, "\"offline\""));
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	wait_until(r, is_relocated);
	assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), 4);
	assert_false(cpuset_has(&held(r, web)->decision.cpus, 1));
	assert_false(cpuset_has(
		(struct cpuset[]){ledger_cpus_of(engine_ledger(r->d.engine), held(r, log))}, 1));
	assert_int_equal(r->d.measured.counters.drifted, 0);
	assert_true(status_has(r, "\"offline\":\"1\""));
	struct cpuset moved = held(r, web)->decision.cpus;

	/* the journal goes on with it, over a restart */
	assert_int_equal(count_lines(r, "journal.1", "\"cpus\":\"0-3\""), 1);
	assert_int_equal(count_lines(r, "journal", "\"cpus\":\"0-3\""), 0);
	stop_daemon(r);
	read_machine(r, without_cpu_1);
	start_daemon(r);
	assert_true(cpuset_equal(&held(r, web)->decision.cpus, &moved));
	assert_false(is_there(r, "journal.other-machine") || is_there(r, "journal.damaged"));
	set_cpus(r, web, "0-15"); /* where its cgroup is, the journal knows */
	wait_until(r, all_are_as_held);
	assert_int_equal(r->d.measured.counters.drifted, 1);

	/* it has been offline since the start: only discovery knows it */
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, has_all_cpus);
	assert_true(cpuset_has(
		(struct cpuset[]){ledger_cpus_of(engine_ledger(r->d.engine), held(r, log))}, 1));
	rig_free(r);
}

static void corrections_of_a_machine_are_news_once(void **state)
{
	static struct daemon d;
	static struct topo t;

	(void)state;
	assert_true(text_copy(
		d.settings.machine, sizeof d.settings.machine, "test/machines/recorded/kvm-a"));
	assert_int_equal(machine_read(&d, &t, NULL), 1);
	assert_int_equal(d.corrections.nr, 2);
	assert_int_equal(d.corrections.at[1].kind, CORRECTION_CPUS);
	assert_int_equal(machine_read(&d, &t, NULL), 0);
	assert_int_equal(d.corrections.nr, 2);
	assert_true(text_copy(d.settings.machine, sizeof d.settings.machine, "no-such-machine"));
	assert_int_equal(machine_read(&d, &t, NULL), -ENOENT);
	assert_int_equal(d.corrections.nr, 2);
	assert_true(text_copy(d.settings.machine, sizeof d.settings.machine, "sparse-nodes"));
	assert_int_equal(machine_read(&d, &t, NULL), 1);
	assert_int_equal(d.corrections.nr, 0);
	corrections_fini(&d.corrections);
}

static bool is_read_right(struct rig *r)
{
	return cpuset_count(&r->d.topo.node[0].cpus) == 8 &&
	       cpuset_count(&r->d.topo.node[1].cpus) == 8 && all_are_as_held(r);
}

/* The poll comes before the next round: what is written here is what that one reads. */
static bool has_come_amid(struct rig *r)
{
	if (r->d.topo.nr_cpus == 16)
		write_file(r, "machine", machine);
	return r->d.topo.nr_cpus == 16;
}

/* CPUs that come and go change /sys file by file. */
static void a_machine_read_during_a_change_is_read_again(void **state)
{
	static const char amid[] = "machine two\n"
				   "node 0 memory 8Gi cpus 0-7,10-15\n"
				   "node 1 memory 8Gi cpus 8-9 socket 1\n";
	struct rig *r = rig_new(true, "v0.12.5");

	(void)state;
	stop_daemon(r); /* it starts while they come */
	read_machine(r, amid);
	assert_false(is_read_right(r));
	start_daemon(r);
	wait_until(r, is_read_right);

	/* it reads wrongly for longer, and the nodes' own lists show it */
	put(r, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node0/cpulist", "0-7\n");
	put(r, "sys/devices/system/node/node1/cpulist", "8-15\n");
	stop_daemon(r);
	read_machine(r, amid);
	write_file(r, "machine", amid);
	start_daemon(r);
	pass_rounds(r, start_box(r, 0, 4));
	assert_false(is_read_right(r));
	write_file(r, "machine", machine);
	wait_until(r, is_read_right);

	/* one that was never seen comes, and discovery reads too early */
	stop_daemon(r);
	read_machine(r, without_cpu_1);
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	write_file(r, "machine", without_cpu_1);
	start_daemon(r);
	pass_rounds(r, start_box(r, 1, 4));
	write_file(r, "machine", amid);
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, has_come_amid);
	wait_until(r, is_read_right);
	rig_free(r);
}

/* A node that comes is for the next start; what goes meanwhile is followed all the same. */
static void cpus_are_followed_although_the_machine_has_a_new_node(void **state)
{
	static const char more[] = "machine two\n"
				   "node 0 memory 8Gi cpus 0-7\n"
				   "node 1 memory 8Gi cpus 8-15 socket 1\n"
				   "node 2 memory 8Gi\n";
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web;

	(void)state;
	stop_daemon(r);
	read_machine(r, machine);
	write_file(r, "machine", more);
	start_daemon(r);
	web = start_box(r, 0, 4);
	assert_true(cpuset_has(&held(r, web)->decision.cpus, 1));
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	wait_until(r, is_relocated);
	rig_free(r);
}

static void a_cpu_that_goes_offline_while_the_daemon_is_away_keeps_the_journal_valid(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	assert_true(cpuset_has(&held(r, web)->decision.cpus, 1));
	stop_daemon(r);
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	read_machine(r, without_cpu_1);
	start_daemon(r);
	assert_false(is_there(r, "journal.other-machine") || is_there(r, "journal.damaged"));
	assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), 4);
	assert_false(cpuset_has(&held(r, web)->decision.cpus, 1));
	assert_int_equal(held(r, web)->decision.source, SOURCE_DECIDED);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static void the_journal_of_another_machine_is_set_aside(void **state)
{
	static const char other[] = "machine two\nnode 0 memory 8Gi cpus 0-15\n";
	struct rig *r = rig_new(true, "v0.12.5");

	(void)state;
	(void)start_box(r, 0, 4);
	stop_daemon(r);
	read_machine(r, other);
	r->d.topo.this_machine = false;
	r->box[0].c.runs = false;
	start_daemon(r);
	assert_true(is_there(r, "journal.other-machine"));
	assert_null(r->d.follow.sweep); /* and its cgroups are not here */
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offline_and_online_cpus_are_followed_without_a_request),
		cmocka_unit_test(
			a_cpu_that_goes_offline_while_the_daemon_is_away_keeps_the_journal_valid),
		cmocka_unit_test(corrections_of_a_machine_are_news_once),
		cmocka_unit_test(a_machine_read_during_a_change_is_read_again),
		cmocka_unit_test(cpus_are_followed_although_the_machine_has_a_new_node),
		cmocka_unit_test(the_journal_of_another_machine_is_set_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
