/* Affinities of interrupts and what a profile sets, as texts of the kernel's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <host/cpufreq.h>
#include <host/irq.h>
#include <numafit/quiet.h>
#include <numafit/text.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST TUNABLE_IRQS "/5/smp_affinity_list"

static struct cpuset cpus(const char *list)
{
	struct cpuset s = {0};

	assert_int_equal(cpuset_parse(&s, list, strlen(list), NULL), 0);
	return s;
}

static void a_mask_is_read_and_written_as_the_kernel_has_it(void **state)
{
	static const struct {
		const char *mask, *list;
	} table[] = {
		{"0", ""},
		{"1", "0"},
		{"ff", "0-7"},
		{"80000000", "31"},
		{"1,00000000", "32"},
		{"ffffffff,ffffffff", "0-63"},
		{"a0,00000001,00000000", "32,69,71"},
	};
	char text[IRQ_TEXT_MAX];
	struct cpuset found;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct cpuset want = cpus(table[i].list);

		assert_int_equal(irq_parse(IRQ_DEFAULT, table[i].mask, &found, NULL), 0);
		assert_true(cpuset_equal(&found, &want));
		assert_string_equal(irq_format(IRQ_DEFAULT, &want, text), table[i].mask);
		assert_string_equal(irq_format(LIST, &want, text), table[i].list);
	}
	/* with the zeros in front that some kernels print */
	const struct cpuset want = cpus("4-7");
	assert_int_equal(irq_parse(IRQ_DEFAULT, "00000000,000000F0", &found, NULL), 0);
	assert_true(cpuset_equal(&found, &want));
}

static void what_is_no_affinity_is_an_error(void **state)
{
	static const struct {
		const char *file, *text;
		int rc;
	} table[] = {
		{IRQ_DEFAULT, "", -EINVAL},
		{IRQ_DEFAULT, "0x1", -EINVAL},
		{IRQ_DEFAULT, "g", -EINVAL},
		{LIST, "0-", -EINVAL},
		{LIST, "99999", -ERANGE},
	};
	char beyond[2 * CPUSET_BITS] = "1";
	struct cpuset found = {0};
	char file[TUNABLE_FILE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_int_equal(
			irq_parse(table[i].file, table[i].text, &found, NULL), table[i].rc);
	memset(beyond + 1, '0', CPUSET_BITS / 4);
	assert_int_equal(irq_parse(IRQ_DEFAULT, beyond, &found, NULL), -ERANGE);
	*beyond = '0'; /* zeros are no CPU */
	assert_int_equal(irq_parse(IRQ_DEFAULT, beyond, &found, NULL), 0);
	assert_true(irq_file("123", file));
	assert_string_equal(file, "proc/irq/123/smp_affinity_list");
	assert_false(irq_file("", file));
	assert_false(irq_file("..", file));
	assert_false(irq_file("1x", file));
	assert_false(irq_file("12345678901", file));
}

static void an_interrupt_goes_where_no_quiet_cpu_is(void **state)
{
	static const struct {
		const char *was, *quiet, *online, *want;
	} table[] = {
		{"0-15", "4-7", "0-15", "0-3,8-15"},
		{"0-15", "", "0-15", "0-15"},
		{"4", "4-7", "0-15", "0-3,8-15"}, /* nothing of its own is left */
		{"3,4", "4-7", "0-2,4-15", "0-2,8-15"}, /* 3 is offline */
		{"3,4,8", "4-7", "0-2,4-15", "3,8"},
		{"4", "0-15", "0-15", "4"}, /* there is no other CPU */
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct cpuset was = cpus(table[i].was), quiet = cpus(table[i].quiet),
				    online = cpus(table[i].online), want = cpus(table[i].want);
		const struct cpuset found = quiet_affinity(&was, &quiet, &online);

		assert_true(cpuset_equal(&found, &want));
	}
}

/* A tree */

static char root[] = "/tmp/numafit-tunable-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *at = strchr(path + sizeof root, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int make_tree(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	put("proc/irq/default_smp_affinity", "ff\n");
	put("proc/irq/5/smp_affinity_list", "0-7\n");
	put("sys/devices/system/cpu/cpu4/cpufreq/affected_cpus", "4 5\n");
	put("sys/devices/system/cpu/cpu4/cpufreq/scaling_governor", "schedutil\n");
	put("sys/devices/system/cpu/cpu4/cpuidle/state0/latency", "0\n");
	put("sys/devices/system/cpu/cpu4/cpuidle/state1/latency", "2\n");
	put("sys/devices/system/cpu/cpu4/cpuidle/state2/latency", "133\n");
	return 0;
}

static int remove_tree(void **state)
{
	char command[sizeof root + sizeof "rm -r "];

	(void)state;
	(void)snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

static void files_are_found_where_a_container_has_them(void **state)
{
	struct tunables t;
	struct err irqs, of_cpus, e;
	char text[64];

	(void)state;
	tunables_find(root, &t, &irqs, &of_cpus);
	assert_int_equal(irqs.code, 0);
	assert_int_equal(of_cpus.code, 0);
	assert_int_equal(tunable_read(&t, LIST, text, sizeof text, &e), 0);
	assert_string_equal(text, "0-7");
	put("host/proc/irq/5/smp_affinity_list", "0-3\n");
	put("host/proc/irq/default_smp_affinity", "ff\n");
	tunables_find(root, &t, &irqs, &of_cpus);
	assert_int_equal(tunable_read(&t, LIST, text, sizeof text, &e), 0);
	assert_string_equal(text, "0-3");
	assert_int_equal(tunable_write(&t, LIST, "0-1", &e), 0);
	assert_int_equal(tunable_read(&t, LIST, text, sizeof text, &e), 0);
	assert_string_equal(text, "0-1");
	assert_int_equal(tunable_read(&t, "proc/irq/6/smp_affinity_list", text, sizeof text, &e), -ENOENT);
	tunables_find("/nowhere", &t, &irqs, &of_cpus);
	assert_int_equal(irqs.code, ENOENT);
	assert_string_equal(irqs.text, "/nowhere/proc/irq: there is none");
	assert_int_equal(tunable_read(&t, LIST, text, sizeof text, &e), -ENOENT);
}

/* A journal that somebody has forged. */
static void no_other_file_is_ever_opened(void **state)
{
	static const char *const files[] = {"etc/passwd", "/etc/passwd", "proc/irq/../../etc/passwd",
		"sys/devices/system/cpu/../../../kernel/mm/ksm/run", "proc/irqs", "proc/irq", ""};
	struct err irqs, of_cpus, e;
	struct tunables t;
	char text[64];

	(void)state;
	tunables_find(root, &t, &irqs, &of_cpus);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		assert_int_equal(tunable_read(&t, files[i], text, sizeof text, &e), -EINVAL);
		assert_int_equal(tunable_write(&t, files[i], "0", &e), -EINVAL);
	}
}

static void a_profile_sets_what_it_names(void **state)
{
	static const char *const want[] = {"performance", "2400000", "1200000", "performance", "", "", "1"};
	const struct frequency_profile fast = {.governor = "performance",
		.energy_performance = "performance", .min_mhz = 1200, .max_mhz = 2400,
		.limits_idle = true, .idle_latency_us = 2};
	struct cpu_value values[CPU_VALUES_MAX];
	struct err irqs, of_cpus;
	struct tunables t;

	(void)state;
	tunables_find(root, &t, &irqs, &of_cpus);
	assert_int_equal(cpufreq_values(&t, 4, &fast, values), 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(values[i].want, want[i]);
		assert_int_equal(values[i].of_clock, i < 4);
	}
	assert_string_equal(
		values[0].file, "sys/devices/system/cpu/cpu4/cpufreq/scaling_governor");
	assert_string_equal(values[6].file, "sys/devices/system/cpu/cpu4/cpuidle/state2/disable");
	assert_int_equal(cpufreq_values(&t, 4, NULL, values), 7);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(values[i].want, "");
}

static void cpus_that_share_a_clock_are_known(void **state)
{
	const struct cpuset both = cpus("4-5"), alone = cpus("6");
	struct err irqs, of_cpus;
	struct tunables t;
	struct cpuset found;

	(void)state;
	tunables_find(root, &t, &irqs, &of_cpus);
	assert_int_equal(cpufreq_together(&t, 4, &found, NULL), 0);
	assert_true(cpuset_equal(&found, &both));
	assert_int_equal(cpufreq_together(&t, 6, &found, NULL), 0);
	assert_true(cpuset_equal(&found, &alone));
	char all[8 * CPUSET_BITS] = "";
	for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu++)
		(void)snprintf(all + strlen(all), sizeof all - strlen(all), "%u ", cpu);
	put("sys/devices/system/cpu/cpu7/cpufreq/affected_cpus", all);
	assert_int_equal(cpufreq_together(&t, 7, &found, NULL), 0);
	assert_int_equal(cpuset_count(&found), CPUSET_BITS);
	memset(all, '1', sizeof all - 1); /* nobody knows */
	put("sys/devices/system/cpu/cpu7/cpufreq/affected_cpus", all);
	assert_int_equal(cpufreq_together(&t, 7, &found, NULL), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mask_is_read_and_written_as_the_kernel_has_it),
		cmocka_unit_test(what_is_no_affinity_is_an_error),
		cmocka_unit_test(an_interrupt_goes_where_no_quiet_cpu_is),
		cmocka_unit_test(files_are_found_where_a_container_has_them),
		cmocka_unit_test(no_other_file_is_ever_opened),
		cmocka_unit_test(a_profile_sets_what_it_names),
		cmocka_unit_test(cpus_that_share_a_clock_are_known),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
