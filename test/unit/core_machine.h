#ifndef NUMAFIT_TEST_CORE_MACHINE_H
#define NUMAFIT_TEST_CORE_MACHINE_H

#include <numafit/request.h>
#include <numafit/settings.h>
#include <numafit/topo.h>

#include <stdlib.h>
#include <string.h>

/* Machines and requests for tests of the core, built without any codec. */

#define GIB(n) ((uint64_t)(n) << 30)

/* KEP-3545's eight nodes: two sockets of four, each node 4 cores of 2 threads (CPUs 4n..4n+3 and
 * 32 above), 64 GiB of which 8 are huge pages of 1 GiB. */
static inline struct topo *machine_of_eight(void)
{
	static const uint8_t near[4][4] = {
		{10, 11, 12, 12}, {11, 10, 12, 12}, {12, 12, 10, 11}, {12, 12, 11, 10}};
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "eight");
	for (unsigned n = 0; n < 8; n++)
		(void)topo_add_node(t, n, NULL);
	for (unsigned n = 0; n < 8; n++) {
		for (unsigned c = 0; c < 4; c++) {
			(void)topo_add_cpu(t, 4 * n + c, n, 4 * n + c, n / 4, n, NULL);
			(void)topo_add_cpu(t, 32 + 4 * n + c, n, 4 * n + c, n / 4, n, NULL);
		}
		(void)topo_set_memory(t, n, 0, GIB(64), NULL);
		(void)topo_set_memory(t, n, GIB(1), GIB(8), NULL);
		for (unsigned m = 0; m < 8; m++)
			(void)topo_set_distance(
				t, n, m, n / 4 == m / 4 ? near[n % 4][m % 4] : 30, NULL);
	}
	if (topo_seal(t, NULL))
		abort();
	return t;
}

/* The machine without those CPUs, and with half the memory of some NUMA nodes. */
static inline struct topo *machine_without(
	const struct topo *full, const struct cpuset *offline, struct nodeset halved)
{
	struct topo *t = malloc(sizeof *t);
	struct cpuset online = cpuset_minus(full->cpus, offline);

	topo_init(t, full->name);
	for (unsigned n = 0; n < full->ids.nr; n++)
		(void)topo_add_node(t, full->ids.id[n], NULL);
	cpuset_each (cpu, &online) {
		const struct topo_cpu *c = &full->cpu[cpu];

		(void)topo_add_cpu(t, cpu, c->node, c->core, c->socket, c->uncore, NULL);
	}
	for (unsigned n = 0; n < full->ids.nr; n++) {
		for (unsigned k = 0; k < full->nr_kinds; k++)
			(void)topo_set_memory(t, n, full->page_bytes[k],
				full->node[n].memory[k] / (nodeset_has(halved, n) ? 2 : 1), NULL);
		for (unsigned m = 0; m < full->ids.nr; m++)
			(void)topo_set_distance(t, n, m, full->distance[n][m], NULL);
	}
	if (topo_seal(t, NULL))
		abort();
	return t;
}

/* The eight nodes and two GPUs, whose memory is nodes 8 and 9: 128 GiB each. */
static inline struct topo *machine_with_gpus(void)
{
	struct topo *eight = machine_of_eight(), *t = malloc(sizeof *t);

	topo_init(t, "gpus");
	for (unsigned n = 0; n < 10; n++)
		(void)topo_add_node(t, n, NULL);
	cpuset_each (cpu, &eight->cpus) {
		const struct topo_cpu *c = &eight->cpu[cpu];

		(void)topo_add_cpu(t, cpu, c->node, c->core, c->socket, c->uncore, NULL);
	}
	for (unsigned n = 0; n < 10; n++) {
		(void)topo_set_memory(t, n, 0, n < 8 ? GIB(64) : GIB(128), NULL);
		if (n >= 8)
			(void)topo_set_device_memory(t, n, NULL);
		for (unsigned m = 0; m < 10; m++)
			(void)topo_set_distance(t, n, m,
				n < 8 && m < 8 ? eight->distance[n][m]
				: n == m       ? 10
					       : 80,
				NULL);
	}
	if (topo_seal(t, NULL))
		abort();
	free(eight);
	return t;
}

static inline struct settings settings_of(enum topology_policy policy)
{
	struct settings s = {
		.mode = MODE_MANAGE,
		.topology_policy = policy,
		.cpu_manager_policy = MANAGER_STATIC,
		.memory_manager_policy = MANAGER_STATIC,
		.shared_pool_minimum = 1,
		.cpu_options.core_rule = CORES_WHOLE,
	};

	return s;
}

static inline struct request ask(const char *id, enum qos qos, unsigned cpu_milli, uint64_t memory)
{
	struct request r = {
		.container_id = id,
		.ask.name = "main",
		.pod = {.sandbox_id = id, .uid = id, .ns = "default", .name = id, .qos = qos},
		.ask.cpu_milli = cpu_milli,
		.cpus = "",
		.mems = "",
	};

	if (memory && qos == QOS_GUARANTEED)
		r.ask.memory[r.ask.nr_memory++] = (struct memory_ask){0, memory};
	return r;
}

#endif
