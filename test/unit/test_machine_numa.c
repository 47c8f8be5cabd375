/* libnuma as the second reader of the machine: it remembers which CPUs a NUMA node has, and the
 * sweep reads a machine again whose CPUs have come or gone. A libnuma of one NUMA node, with the
 * memory that the real one has (numa(3), numa_node_to_cpu_update). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <host/machine_numa.h>
#include <numa.h>

static unsigned online, remembered;

int numa_available(void)
{
	return 0;
}

int numa_max_node(void)
{
	return 0;
}

int numa_distance(int from, int to)
{
	(void)from, (void)to;
	return 10;
}

void numa_node_to_cpu_update(void)
{
	remembered = 0;
}

int numa_node_to_cpus(int node, struct bitmask *mask)
{
	(void)node;
	remembered = remembered ? remembered : online;
	(void)numa_bitmask_clearall(mask);
	for (unsigned cpu = 0; cpu < remembered; cpu++)
		(void)numa_bitmask_setbit(mask, cpu);
	return 0;
}

static void cpus_that_come_later_are_seen(void **state)
{
	(void)state;
	(void)numa_bitmask_setbit(numa_nodes_ptr, 0);
	for (online = 2; online <= 8; online *= 2) {
		struct topo t;

		assert_int_equal(machine_from_numa(&t, NULL), 0);
		assert_int_equal(cpuset_count(&t.node[0].cpus), online);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_that_come_later_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
