#ifndef NUMAFIT_TEST_CORE_UNEVEN_H
#define NUMAFIT_TEST_CORE_UNEVEN_H

#include "core_random.h"

#include <numafit/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Machines whose NUMA nodes have unequal memory, and pods at random that ask for it: what makes the
 * search for NUMA nodes hard. */

enum { UNEVEN_CONTAINERS = 40, UNEVEN_NAME_MAX = 16 };

struct uneven {
	struct random r;
	struct topo t;
	struct settings s;
	uint64_t seq;
	struct engine *g;
	struct ask container[UNEVEN_CONTAINERS];
	struct pod pod;
	char name[UNEVEN_CONTAINERS][UNEVEN_NAME_MAX], uid[UNEVEN_NAME_MAX];
	unsigned nr_pods;
};

static inline uint64_t uneven_mib(uint64_t n)
{
	return n << 20;
}

static inline unsigned uneven_flat(unsigned i, unsigned j)
{
	return i == j ? 10 : 20;
}
static inline unsigned uneven_sockets(unsigned i, unsigned j)
{
	return i == j ? 10 : i / 4 == j / 4 ? 12 : 32;
}
static inline unsigned uneven_tree(unsigned i, unsigned j)
{
	return i == j ? 10 : i / 2 == j / 2 ? 16 : i / 8 == j / 8 ? 18 : i / 32 == j / 32 ? 25 : 28;
}
static inline unsigned uneven_cube(unsigned i, unsigned j)
{
	unsigned hops = (unsigned)__builtin_popcount((i / 4) ^ (j / 4));

	return i == j ? 10 : hops ? 20 + 4 * hops : 16;
}

/* The memory of a node: one of eight sizes, or any. */
static inline uint64_t uneven_memory(struct random *r, bool any)
{
	static const unsigned mib[] = {8000, 9000, 10000, 11000, 12000, 13001, 14007, 15013};

	return uneven_mib(any ? 4000 + random_below(r, 12000) : mib[random_below(r, 8)]);
}

/* nr nodes of 2 to 14 CPUs; with huge pages some nodes have pages of 2 MiB, of 1 GiB, or both. */
static inline void uneven_machine(struct uneven *u, unsigned nr, bool huge_pages)
{
	static unsigned (*const shapes[])(unsigned, unsigned) = {
		uneven_flat, uneven_sockets, uneven_tree, uneven_cube};
	unsigned (*distance)(unsigned, unsigned) = shapes[random_below(&u->r, 4)];
	bool any = random_chance(&u->r, 50), same_cpus = random_chance(&u->r, 50);
	unsigned kinds = huge_pages ? random_below(&u->r, 3) + 1 : 0, id = 0;

	topo_init(&u->t, "uneven");
	for (unsigned n = 0; n < nr; n++)
		(void)topo_add_node(&u->t, n, NULL);
	for (unsigned n = 0; n < nr; n++) {
		unsigned cpus = same_cpus ? 8 : 2 + random_below(&u->r, 13);

		for (unsigned c = 0; c < cpus; c++, id++)
			(void)topo_add_cpu(&u->t, id, n, id, n / 4, n, NULL);
		(void)topo_set_memory(&u->t, n, 0, uneven_memory(&u->r, any), NULL);
		if (kinds & 1)
			(void)topo_set_memory(
				&u->t, n, 2 << 20, uneven_mib(2) * random_below(&u->r, 800), NULL);
		if (kinds & 2)
			(void)topo_set_memory(
				&u->t, n, 1 << 30, uneven_mib(1024) * random_below(&u->r, 3), NULL);
		for (unsigned m = 0; m < nr; m++)
			(void)topo_set_distance(&u->t, n, m, distance(n, m), NULL);
	}
	if (topo_seal(&u->t, NULL))
		abort();
}

static inline int uneven_record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx;
	(void)r;
	(void)e;
	return 0;
}

/* On the machine as it is: an empty node with the default settings but for what is given. */
static inline void uneven_begin(
	struct uneven *u, enum topology_policy policy, enum topology_scope scope, bool closest)
{
	const struct engine_hooks hooks = {.ctx = u, .record = uneven_record};

	settings_init(&u->s);
	u->s.topology_policy = policy;
	u->s.topology_scope = scope;
	u->s.prefer_closest_numa_nodes = closest;
	u->s.max_allowable_numa_nodes = 0;
	u->g = engine_new(&u->t, &u->s, &hooks);
}

static inline void uneven_end(struct uneven *u)
{
	engine_free(u->g);
	u->g = NULL;
}

/* 1 GiB to that many bytes, small ones as often as large ones. */
static inline uint64_t uneven_bytes(struct random *r, uint64_t most)
{
	uint64_t least = uneven_mib(1024), bytes = most;

	for (unsigned halvings = random_below(r, 6); halvings; halvings--)
		bytes /= 2;
	bytes -= bytes / 2 * random_below(r, 100) / 100;
	return bytes < least ? least : bytes;
}

/* Begin a pod of that many containers, without any of them yet. */
static inline void uneven_pod(struct uneven *u, unsigned nr)
{
	(void)snprintf(u->uid, sizeof u->uid, "pod%u", u->nr_pods++);
	memset(u->container, 0, sizeof u->container);
	for (unsigned i = 0; i < nr; i++) {
		(void)snprintf(u->name[i], sizeof u->name[i], "c%u", i);
		u->container[i].name = u->name[i];
	}
	u->pod = (struct pod){.sandbox_id = u->uid,
		.uid = u->uid,
		.ns = "default",
		.name = u->uid,
		.qos = QOS_GUARANTEED,
		.nr = nr,
		.container = u->container};
}

static inline void uneven_add_memory(struct ask *c, uint64_t page_bytes, uint64_t bytes)
{
	c->memory[c->nr_memory++] = (struct memory_ask){page_bytes, bytes};
}

/* 1 to 40 containers: one hard one, or many that share up to 90 % of the machine, init containers
 * and sidecars among them. */
static inline void uneven_random_pod(struct uneven *u)
{
	struct random *r = &u->r;
	unsigned nr = random_chance(r, 40) ? 1 : 1 + random_below(r, UNEVEN_CONTAINERS);
	uint64_t all = topo_memory_of(&u->t, u->t.nodes, 0) / 10 * 9;
	uint64_t total = uneven_bytes(r, all),
		 cpus = u->t.nr_cpus * (random_below(r, 90) + 1) / 100;
	unsigned nr_init = nr > 1 ? random_below(r, nr) : 0;
	bool pages = random_chance(r, 50);

	uneven_pod(u, nr);
	for (unsigned i = 0; i < nr; i++) {
		struct ask *c = &u->container[i];
		unsigned share = 1 + random_below(r, nr - nr_init);

		c->kind = i >= nr_init           ? CONTAINER_APP
			  : random_chance(r, 20) ? CONTAINER_SIDECAR
						 : CONTAINER_INIT;
		c->cpu_milli = 1000 * (1 + random_below(r, 1 + (unsigned)cpus / share));
		if (c->kind == CONTAINER_SIDECAR)
			share = nr;
		uneven_add_memory(c, 0, uneven_bytes(r, total / share));
		for (unsigned k = 1; pages && k < u->t.nr_kinds; k++) {
			uint64_t page = u->t.page_bytes[k];
			uint64_t most = topo_memory_of(&u->t, u->t.nodes, k) / share / page;

			if (most && random_chance(r, 70))
				uneven_add_memory(
					c, page, page * (1 + random_next(r) % most * 9 / 10));
		}
	}
}

/* A container of which its pod's spec says nothing. */
static inline struct request uneven_request(const struct uneven *u, unsigned i)
{
	struct request req = {
		.container_id = u->uid,
		.ask.name = u->name[i],
		.pod = u->pod,
		.ask.cpu_milli = u->container[i].cpu_milli,
		.cpus = "",
		.mems = "",
	};

	req.pod = pod_identity(&u->pod);
	req.ask.nr_memory = ask_memory(&u->container[i], req.ask.memory);
	return req;
}

#endif
