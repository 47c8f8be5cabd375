#include <numafit/request.h>

#include "core_machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SHARES_MAX = 262144, PERIOD_US = 100000 };

/* pkg/kubelet/cm/helpers_linux.go, MilliCPUToShares */
static uint64_t shares_of(uint64_t milli)
{
	uint64_t shares = milli * 1024 / 1000;

	return shares < 2 ? 2 : shares > SHARES_MAX ? SHARES_MAX : shares;
}

static struct linux_resources cpu_resources(uint64_t shares, int64_t quota, uint64_t period)
{
	return (struct linux_resources){
		.has_shares = true,
		.cpu_shares = shares,
		.has_quota = true,
		.cpu_quota = quota,
		.has_period = true,
		.cpu_period = period,
	};
}

static void whole_cpus_come_back_from_shares(void **state)
{
	(void)state;
	for (uint64_t cpus = 1; cpus <= 256; cpus++) {
		struct linux_resources r = {
			.has_shares = true, .cpu_shares = shares_of(cpus * 1000)};

		assert_int_equal(cpu_milli_from_shares(&r), cpus * 1000);
	}
}

/* Shares are coarser than thousandths, so one is lost at times; what must never happen is that
 * parts of a CPU turn into whole ones, which would be pinned. */
static void parts_of_a_cpu_stay_parts(void **state)
{
	(void)state;
	for (uint64_t milli = 3; milli <= 256000; milli++) {
		struct linux_resources r = {.has_shares = true, .cpu_shares = shares_of(milli)};
		uint64_t back = cpu_milli_from_shares(&r);

		assert_true(back == milli || back == milli - 1);
		assert_int_equal(back % 1000 == 0, milli % 1000 == 0);
	}
}

static void shares_and_quota_become_thousandths_of_a_cpu(void **state)
{
	static const struct {
		uint64_t shares;
		int64_t quota;
		uint64_t period, milli, limit;
	} cases[] = {
		{0, 0, 0, 0, 0},
		{1, 0, 0, 0, 0},
		{2, 0, PERIOD_US, 0, 0},
		{3, 0, PERIOD_US, 3, 0},
		{1024, -1, PERIOD_US, 1000, 0},
		{1024, 0, PERIOD_US, 1000, 0},
		{1024, PERIOD_US, 0, 1000, 0},
		{1024, 4 * PERIOD_US, PERIOD_US, 1000, 4000},
		{1024, 25000, 50000, 1000, 500},
		{1024, 1000, PERIOD_US, 1000, 10}, /* the kubelet's smallest quota */
		{1024, 333, 1000, 1000, 333},
		{1024, 3335, 10000, 1000, 334}, /* rounded to the nearest */
		{2, 4 * PERIOD_US, PERIOD_US, 0, 4000},
		/* at the clamp and beyond it the quota knows better */
		{SHARES_MAX, 300 * PERIOD_US, PERIOD_US, 300000, 300000},
		{SHARES_MAX, 256 * PERIOD_US, PERIOD_US, 256000, 256000},
		{SHARES_MAX, -1, PERIOD_US, 256000, 0},
		{SHARES_MAX, 0, PERIOD_US, 256000, 0},
		{SHARES_MAX - 1, 300 * PERIOD_US, PERIOD_US, 255999, 300000},
		{UINT64_MAX, 0, PERIOD_US, UINT64_C(18014398509481983999), 0},
		{1024, INT64_MAX, 1, 1000, UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct linux_resources r =
			cpu_resources(cases[i].shares, cases[i].quota, cases[i].period);
		struct request req = {.ask.nr_memory = 5};

		assert_int_equal(request_from_resources(&req, &r, NULL), 0);
		assert_int_equal(req.ask.cpu_milli, cases[i].milli);
		assert_int_equal(req.ask.cpu_limit_milli, cases[i].limit);
		assert_int_equal(req.ask.nr_memory, 0);
	}
}

static void values_that_are_not_given_are_not_used(void **state)
{
	struct linux_resources r = cpu_resources(SHARES_MAX, 300 * PERIOD_US, PERIOD_US);

	(void)state;
	r.has_quota = false;
	assert_int_equal(cpu_milli_from_shares(&r), 256000);
	r.has_quota = true;
	r.has_period = false;
	assert_int_equal(cpu_milli_from_shares(&r), 256000);
	r.has_shares = false;
	assert_int_equal(cpu_milli_from_shares(&r), 0);
}

static void only_a_guaranteed_pods_limit_is_its_memory_request(void **state)
{
	static const struct {
		enum qos qos;
		bool has;
		int64_t limit;
		unsigned nr;
	} cases[] = {
		{QOS_GUARANTEED, true, 1 << 30, 1},
		{QOS_GUARANTEED, true, 0, 0},
		{QOS_GUARANTEED, true, -1, 0},
		{QOS_GUARANTEED, true, INT64_MAX, 1},
		{QOS_GUARANTEED, false, 1 << 30, 0},
		{QOS_BURSTABLE, true, 1 << 30, 0},
		{QOS_BEST_EFFORT, true, 1 << 30, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct linux_resources r = {
			.has_memory_limit = cases[i].has, .memory_limit = cases[i].limit};
		struct request req = {.pod.qos = cases[i].qos};

		assert_int_equal(request_from_resources(&req, &r, NULL), 0);
		assert_int_equal(req.ask.nr_memory, cases[i].nr);
		assert_int_equal(request_pins_memory(&req), cases[i].nr > 0);
		if (cases[i].nr)
			assert_int_equal(req.ask.memory[0].bytes, cases[i].limit);
	}
}

static void memory_comes_first_then_huge_pages_by_size(void **state)
{
	static const struct memory_ask want[] = {{0, GIB(8)}, {2 << 20, GIB(1)}, {GIB(1), GIB(2)}};
	struct linux_resources r = {
		.has_memory_limit = true,
		.memory_limit = (int64_t)GIB(8),
		.nr_hugepages = 4,
		.hugepages = {{GIB(1), GIB(2)}, {64 << 10, 0}, {2 << 20, GIB(9)},
			{2 << 20, GIB(1)}},
	};
	struct request req = {.pod.qos = QOS_GUARANTEED};

	(void)state;
	assert_int_equal(request_from_resources(&req, &r, NULL), 0);
	assert_int_equal(req.ask.nr_memory,
		COUNT(want)); /* nothing of a size that is not asked for; the last of two counts */
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(req.ask.memory[i].page_bytes, want[i].page_bytes);
		assert_int_equal(req.ask.memory[i].bytes, want[i].bytes);
	}
}

static void more_page_sizes_than_a_machine_may_have_are_refused(void **state)
{
	struct linux_resources r = {
		.has_memory_limit = true, .memory_limit = 1, .nr_hugepages = TOPO_KINDS};
	struct request req = {.pod.qos = QOS_GUARANTEED};
	struct err e;

	(void)state;
	for (unsigned i = 0; i < TOPO_KINDS; i++)
		r.hugepages[i] = (struct memory_ask){4096u << (TOPO_KINDS - i), 1};
	assert_int_equal(request_from_resources(&req, &r, &e), -E2BIG);
	assert_string_equal(e.text, "more than 8 kinds of memory");
	r.nr_hugepages--;
	assert_int_equal(request_from_resources(&req, &r, NULL), 0);
	for (unsigned i = 1; i < req.ask.nr_memory; i++)
		assert_true(req.ask.memory[i - 1].page_bytes < req.ask.memory[i].page_bytes);
}

static void page_sizes_have_two_spellings(void **state)
{
	static const struct {
		const char *in;
		uint64_t want;
	} cases[] = {
		{"2MB", 2 << 20},
		{"1GB", GIB(1)},
		{"64KB", 64 << 10},
		{"16GB", GIB(16)},
		{"512MB", 512 << 20},
		{"9MB", 9 << 20},
		{"2Mi", 2 << 20},
		{"1Gi", GIB(1)},
		{"64Ki", 64 << 10},
		{"", 0},
		{"B", 0},
		{"MB", 0},
		{"2", 0},
		{"2B", 0},
		{"2XB", 0},
		{"-2MB", 0},
		{"+2MB", 0},
		{" 2MB", 0},
		{"2MBB", 0},
		{"2MiB", 0},
		{"0MB", 0},
		{"9999999999999GB", 0},
		{"00000000000000000000000000000000000000000002MB", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (page_bytes_from_name(cases[i].in) != cases[i].want)
			fail_msg("\"%s\": %llu", cases[i].in,
				(unsigned long long)page_bytes_from_name(cases[i].in));
}

static void only_guaranteed_whole_cpus_are_exclusive(void **state)
{
	static const struct {
		enum qos qos;
		uint64_t milli;
		unsigned want;
	} cases[] = {
		{QOS_GUARANTEED, 0, 0},
		{QOS_GUARANTEED, 999, 0},
		{QOS_GUARANTEED, 1000, 1},
		{QOS_GUARANTEED, 1001, 0},
		{QOS_GUARANTEED, 1500, 0},
		{QOS_GUARANTEED, 64000, 64},
		{QOS_BURSTABLE, 2000, 0},
		{QOS_BEST_EFFORT, 2000, 0},
		{QOS_GUARANTEED, UINT64_C(5000000000000), UINT32_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct request req = ask("x", cases[i].qos, 0, 0);

		req.ask.cpu_milli = cases[i].milli;
		assert_int_equal(request_exclusive_cpus(&req), cases[i].want);
	}
}

static void memory_is_pinned_for_guaranteed_pods_only(void **state)
{
	struct request req = ask("x", QOS_GUARANTEED, 0, GIB(1));

	(void)state;
	assert_true(request_pins_memory(&req));
	req.pod.qos = QOS_BURSTABLE;
	assert_false(request_pins_memory(&req));
	req = ask("x", QOS_GUARANTEED, 1000, 0);
	assert_false(request_pins_memory(&req));
}

static void limits_in_force_may_be_rounded(void **state)
{
	enum { MIB = 1 << 20 };
	static const struct {
		uint64_t cpu_milli, bytes; /* asked for */
		int64_t quota, memory;     /* in force; 0: no limit */
		bool want;
	} cases[] = {
		{4000, 64 * MIB, 400000, 64 * MIB, true},
		{4000, 64 * MIB, 600000, 64 * MIB, false},
		{4000, 64 * MIB, 400000, 96 * MIB, false},
		{4000, 64 * MIB, 0, 0, true},
		{1999, 64 * MIB, 200000, 64 * MIB, true}, /* by systemd */
		{2000, 64 * MIB, 199900, 64 * MIB, false},
		{1990, 64 * MIB, 200000, 64 * MIB, false},
		{4000, 64 * MIB + 1, 400000, 64 * MIB, true}, /* by the kernel */
		{4000, 64 * MIB, 400000, 64 * MIB + 4096, false},
		{4000, 64 * MIB + 65536, 400000, 64 * MIB, false},
		{4000, 0, 400000, 64 * MIB, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct request req =
			ask("c", QOS_GUARANTEED, (unsigned)cases[i].cpu_milli, cases[i].bytes);
		const struct linux_resources in_force = {
			.has_quota = cases[i].quota,
			.cpu_quota = cases[i].quota,
			.has_period = cases[i].quota,
			.cpu_period = PERIOD_US,
			.has_memory_limit = cases[i].memory,
			.memory_limit = cases[i].memory,
		};

		req.ask.cpu_limit_milli = req.ask.cpu_milli;
		if (request_has_limits(&req, &in_force) != cases[i].want)
			fail_msg("case %zu", i);
	}
}

static void limits_in_force_become_the_request(void **state)
{
	struct request req = ask("c", QOS_GUARANTEED, 4000, GIB(1));
	struct linux_resources in_force = {0};

	(void)state;
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){2 << 20, 8 << 20};
	request_take_limits(&req, &in_force); /* none */
	assert_int_equal(req.ask.cpu_milli, 4000);
	assert_int_equal(req.ask.memory[0].bytes, GIB(1));
	in_force = cpu_resources(0, 150000, PERIOD_US);
	in_force.has_memory_limit = true;
	in_force.memory_limit = GIB(3);
	request_take_limits(&req, &in_force);
	assert_int_equal(req.ask.cpu_milli, 1500);
	assert_int_equal(req.ask.cpu_limit_milli, 1500);
	assert_int_equal(req.ask.nr_memory, 2);
	assert_int_equal(req.ask.memory[0].bytes, GIB(3));
	assert_int_equal(req.ask.memory[1].bytes, 8 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_cpus_come_back_from_shares),
		cmocka_unit_test(parts_of_a_cpu_stay_parts),
		cmocka_unit_test(shares_and_quota_become_thousandths_of_a_cpu),
		cmocka_unit_test(values_that_are_not_given_are_not_used),
		cmocka_unit_test(only_a_guaranteed_pods_limit_is_its_memory_request),
		cmocka_unit_test(memory_comes_first_then_huge_pages_by_size),
		cmocka_unit_test(more_page_sizes_than_a_machine_may_have_are_refused),
		cmocka_unit_test(page_sizes_have_two_spellings),
		cmocka_unit_test(only_guaranteed_whole_cpus_are_exclusive),
		cmocka_unit_test(memory_is_pinned_for_guaranteed_pods_only),
		cmocka_unit_test(limits_in_force_may_be_rounded),
		cmocka_unit_test(limits_in_force_become_the_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
