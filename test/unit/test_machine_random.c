/* Random machines whose NUMA nodes cross packages, caches and cores: NUMA nodes by threads, by
 * cores, by packages or nested; threads, sparse ids, offline CPUs, NUMA nodes of memory alone,
 * damaged distances. Each is written as the kernel's files and read as numafitd reads its machine;
 * CPUs, memory, huge pages and distances of each NUMA node, cores, sockets and caches have to be as
 * they were written, and corrections as hwloc contradicts them. MACHINES=n and SEED=n choose how
 * many machines and which. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <host/discover.h>
#include <host/hotplug.h>

#include <ftw.h>
#include <limits.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core_random.h"

enum {
	MACHINES = 200,
	CPUS_MAX = 24,
	NODES = 6,
	KIB_PER_GIB = 1 << 20,
	KIB = 1024,
	PAGE_KINDS = 2,
	NR_FDS = 16,
	TEXT_MAX = 4096
};
static const unsigned page_kib[PAGE_KINDS] = {2048, KIB_PER_GIB};

/* What may be wrong with a table of distances. */
enum fault {
	RIGHT,
	NO_FILE,
	ONE_FEWER,
	ONE_MORE,
	A_WORD,
	TOO_SMALL,
	TOO_LARGE,
	BEYOND_64_BITS,
	FARTHER_FROM_SELF,
	FAULTS
};

struct model_cpu {
	unsigned id, core, package, cache;
	int node; /* index; -1: of a NUMA node that is offline */
	bool online;
};

/* A machine as it is written. Cores, packages and caches are known by numbers of their own. */
struct model {
	unsigned nr_cpus, nr_nodes;
	struct model_cpu cpu[CPUS_MAX];
	unsigned node_id[NODES];
	uint64_t memory_kib[NODES], pages[NODES][PAGE_KINDS];
	unsigned distance[NODES][NODES];
	enum fault fault;
	unsigned faulty;                /* the NUMA node whose row has the fault */
	bool caches, lists, has_online; /* files that there are */
};

#define CPUS         "sys/devices/system/cpu/"
#define NODES_FOLDER "sys/devices/system/node/"
static char tree[PATH_MAX / 2];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* FOLDER NUMBER / FILE, valid until the next call: "sys/devices/system/node/node", 3, "cpulist". */
static const char *numbered(const char *folder, unsigned number, const char *file)
{
	static char name[NAME_MAX];

	(void)snprintf(name, sizeof name, "%s%u/%s", folder, number, file);
	return name;
}

static void put(const char *name, const char *content)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s/", tree);

	(void)snprintf(path + len, sizeof path - (size_t)len, "%s", name);
	FILE *f = fopen(path, "w");
	for (char *slash = path + len; !f && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, S_IRWXU);
		*slash = '/';
	}
	f = f ? f : fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void put_number(const char *name, uint64_t number)
{
	char buf[NAME_MAX];

	(void)snprintf(buf, sizeof buf, "%llu\n", (unsigned long long)number);
	put(name, buf);
}

static void put_list(const char *name, const struct cpuset *set)
{
	char list[CPUSET_TEXT_MAX];

	put(name, cpuset_format(set, list, sizeof list));
}

static void put_mask(const char *name, const struct cpuset *set)
{
	char buf[TEXT_MAX];
	struct text t;

	text_init(&t, buf, sizeof buf);
	for (unsigned i = CPUSET_BITS / 32; i-- > 0;)
		text_add(&t, "%s%08x", t.len ? "," : "",
			(unsigned)(set->w[i / 2] >> (i % 2 * 32) & UINT32_MAX));
	text_add(&t, "\n");
	put(name, buf);
}

/* Making */

static void make_nodes(struct random *r, struct model *m)
{
	unsigned id = random_below(r, 2) * random_below(r, 4);

	m->nr_nodes = 1 + random_below(r, NODES);
	for (unsigned n = 0; n < m->nr_nodes;
		n++, id += 1 + random_chance(r, 20) * random_below(r, 100)) {
		m->node_id[n] = id;
		m->memory_kib[n] = random_chance(r, 15)
					   ? 0
					   : (1 + random_below(r, 64)) * (uint64_t)KIB_PER_GIB;
		for (unsigned k = 0; k < PAGE_KINDS; k++)
			m->pages[n][k] = m->memory_kib[n] && random_chance(r, 30)
						 ? random_below(r, 1 + (unsigned)(m->memory_kib[n] /
										  4 / page_kib[k]))
						 : 0;
		for (unsigned to = 0; to < NODES; to++)
			m->distance[n][to] =
				n == to ? DISTANCE_MIN
					: DISTANCE_MIN + 1 +
						  random_below(r, DISTANCE_MAX - DISTANCE_MIN - 1);
	}
	m->fault = random_chance(r, 30) ? (enum fault)random_below(r, FAULTS) : RIGHT;
	m->faulty = random_below(r, m->nr_nodes);
}

/* How NUMA nodes and caches lie across the rest: by a number of each CPU. */
enum by { BY_THREAD, BY_CORE, BY_PACKAGE, BY_TURNS, BY_CHANCE, WAYS };

static unsigned part_of(struct random *r, const struct model_cpu *c, unsigned i, unsigned parts,
	enum by by, const unsigned chance[CPUS_MAX])
{
	switch (by) {
	case BY_THREAD:
		return i % parts;
	case BY_CORE:
		return c->core % parts;
	case BY_PACKAGE:
		return c->package % parts;
	case BY_TURNS:
		return c->core / 2 % parts;
	case BY_CHANCE:
		return chance[c->core] % parts;
	case WAYS:
		break;
	}
	return random_below(r, parts);
}

static void make_cpus(struct random *r, struct model *m)
{
	unsigned threads = 1U << random_below(r, 3), packages = 1 + random_below(r, 4);
	unsigned cores = 1 + random_below(r, CPUS_MAX / threads), caches = 1 + random_below(r, 4);
	bool neighbours = random_chance(r, 50), by_package = random_chance(r, 50);
	enum by nodes = (enum by)random_below(r, WAYS + 1),
		cache = (enum by)random_below(r, WAYS - 1);
	unsigned chance[CPUS_MAX], id = random_chance(r, 20) * random_below(r, 3);
	bool gaps = random_chance(r, 20);

	for (unsigned i = 0; i < CPUS_MAX; i++)
		chance[i] = random_below(r, NODES);
	m->caches = random_chance(r, 75);
	m->nr_cpus = cores * threads;
	for (unsigned i = 0; i < m->nr_cpus; i++, id += 1 + (gaps ? random_below(r, 5) : 0)) {
		struct model_cpu *c = &m->cpu[i];

		c->id = id;
		c->core = neighbours ? i / threads : i % cores;
		c->package = by_package ? c->core * packages / cores : c->core % packages;
		c->online = !random_chance(r, 8);
		c->node = (int)part_of(r, c, i, m->nr_nodes, nodes, chance);
		if (random_chance(r, 1))
			c->node = -1;
		c->cache =
			cache == BY_THREAD ? c->package : part_of(r, c, i, caches, cache, chance);
	}
	m->cpu[0].online = true;
	m->cpu[0].node = m->cpu[0].node < 0 ? 0 : m->cpu[0].node;
}

/* Sets of the model's CPUs that are online */

enum level { OF_CORE, OF_PACKAGE, OF_CACHE, OF_NODE, LEVELS };

static int number_of(const struct model_cpu *c, enum level level)
{
	const int numbers[LEVELS] = {(int)c->core, (int)c->package, (int)c->cache, c->node};

	return numbers[level];
}

static struct cpuset set_of(const struct model *m, enum level level, int number)
{
	struct cpuset set = {0};

	for (unsigned i = 0; i < m->nr_cpus; i++)
		if (m->cpu[i].online && number_of(&m->cpu[i], level) == number)
			cpuset_add(&set, m->cpu[i].id);
	return set;
}

/* Whether a set of one level and one of the other overlap without one being in the other. */
static bool levels_cross(const struct model *m, enum level one, enum level other)
{
	for (unsigned i = 0; i < m->nr_cpus; i++) {
		struct cpuset a = set_of(m, one, number_of(&m->cpu[i], one));
		struct cpuset b = set_of(m, other, number_of(&m->cpu[i], other));

		if (m->cpu[i].online && number_of(&m->cpu[i], one) >= 0 && !cpuset_within(&a, &b) &&
			!cpuset_within(&b, &a))
			return true;
	}
	return false;
}

static bool cores_are_cut(const struct model *m)
{
	for (unsigned i = 0; i < m->nr_cpus; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct model_cpu *a = &m->cpu[i], *b = &m->cpu[j];

			if (a->online && b->online && a->core == b->core && a->node >= 0 &&
				b->node >= 0 && a->node != b->node)
				return true;
		}
	return false;
}

/* Writing */

/* A link of the kernel's folder of CPUs: to a folder with what several have in common, so that
 * there are few files. */
static void put_link(const char *name, const char *to)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/" CPUS "%s", tree, name);
	assert_int_equal(symlink(to, path), 0);
}

static void write_cache(const struct model *m, const struct model_cpu *c)
{
	struct cpuset cache = set_of(m, OF_CACHE, (int)c->cache);

	put(numbered(CPUS "cache", c->cache, "level"), "3\n");
	put(numbered(CPUS "cache", c->cache, "type"), "Unified\n");
	put(numbered(CPUS "cache", c->cache, "size"), "32768K\n");
	put(numbered(CPUS "cache", c->cache, "id"), "0\n");
	put_mask(numbered(CPUS "cache", c->cache, "shared_cpu_map"), &cache);
}

static void write_core(const struct model *m, const struct model_cpu *c)
{
	struct cpuset core = set_of(m, OF_CORE, (int)c->core),
		      package = set_of(m, OF_PACKAGE, (int)c->package);
	char link[NAME_MAX], to[NAME_MAX];

	put_mask(numbered(CPUS "core", c->core, "topology/core_cpus"), &core);
	put_mask(numbered(CPUS "core", c->core, "topology/package_cpus"), &package);
	put_number(numbered(CPUS "core", c->core, "topology/core_id"), c->core);
	put_number(numbered(CPUS "core", c->core, "topology/physical_package_id"), c->package);
	put(numbered(CPUS "core", c->core, "cache/note"), "none\n");
	(void)snprintf(link, sizeof link, "core%u/cache/index3", c->core);
	(void)snprintf(to, sizeof to, "../../cache%u", c->cache);
	if (m->caches)
		put_link(link, to);
}

static void write_cpus(const struct model *m)
{
	struct cpuset cores = {0}, caches = {0};

	for (unsigned i = 0; i < m->nr_cpus; i++) {
		const struct model_cpu *c = &m->cpu[i];
		char link[NAME_MAX], to[NAME_MAX];

		if (!c->online) {
			put(numbered(CPUS "cpu", c->id, "online"), "0\n");
			continue;
		}
		if (!cpuset_has(&cores, c->core))
			write_core(m, c);
		if (m->caches && !cpuset_has(&caches, c->cache))
			write_cache(m, c);
		cpuset_add(&cores, c->core);
		cpuset_add(&caches, c->cache);
		(void)snprintf(link, sizeof link, "cpu%u", c->id);
		(void)snprintf(to, sizeof to, "core%u", c->core);
		put_link(link, to);
	}
}

static void write_distances(const struct model *m, unsigned n)
{
	static const char *const faults[FAULTS] = {[A_WORD] = "far",
		[BEYOND_64_BITS] = "99999999999999999999",
		[TOO_SMALL] = "0",
		[TOO_LARGE] = "255"};
	enum fault fault = n == m->faulty ? m->fault : RIGHT;
	unsigned nr = m->nr_nodes - (fault == ONE_FEWER) + (fault == ONE_MORE);
	unsigned other = m->nr_nodes - 1 - (n == m->nr_nodes - 1);
	char buf[TEXT_MAX];
	struct text t;

	text_init(&t, buf, sizeof buf);
	for (unsigned to = 0; to < nr; to++) {
		unsigned distance = to < m->nr_nodes ? m->distance[n][to] : DISTANCE_MAX;

		text_add(&t, "%s", to ? " " : "");
		if (to == other && faults[fault])
			text_add(&t, "%s", faults[fault]);
		else
			text_add(&t, "%u",
				to == n && fault == FARTHER_FROM_SELF ? DISTANCE_MAX : distance);
	}
	text_add(&t, "\n");
	if (fault != NO_FILE)
		put(numbered(NODES_FOLDER "node", m->node_id[n], "distance"), buf);
}

static void write_node(const struct model *m, unsigned n)
{
	struct cpuset cpus = set_of(m, OF_NODE, (int)n);
	unsigned id = m->node_id[n];
	char buf[NAME_MAX];

	if (m->lists)
		put_list(numbered(NODES_FOLDER "node", id, "cpulist"), &cpus);
	put_mask(numbered(NODES_FOLDER "node", id, "cpumap"), &cpus);
	(void)snprintf(buf, sizeof buf,
		"Node %u MemTotal:       %llu kB\nNode %u MemFree:        0 kB\n", id,
		(unsigned long long)m->memory_kib[n], id);
	put(numbered(NODES_FOLDER "node", id, "meminfo"), buf);
	put_number(numbered(NODES_FOLDER "node", id, "hugepages/hugepages-2048kB/nr_hugepages"),
		m->pages[n][0]);
	put_number(numbered(NODES_FOLDER "node", id, "hugepages/hugepages-1048576kB/nr_hugepages"),
		m->pages[n][1]);
	write_distances(m, n);
}

static void write_machine(const struct model *m)
{
	struct cpuset online = {0}, ids = {0};

	for (unsigned i = 0; i < m->nr_cpus; i++)
		if (m->cpu[i].online)
			cpuset_add(&online, m->cpu[i].id);
	put_list(CPUS "online", &online);
	write_cpus(m);
	for (unsigned n = 0; n < m->nr_nodes; n++) {
		cpuset_add(&ids, m->node_id[n]);
		write_node(m, n);
	}
	if (m->has_online)
		put_list(NODES_FOLDER "online", &ids);
	put("proc/meminfo", "MemTotal: 1048576 kB\nHugepagesize: 2048 kB\n");
}

/* Looking */

static void nodes_are_as_written(const struct model *m, const struct topo *t)
{
	bool table = m->fault == RIGHT || m->nr_nodes == 1;

	assert_int_equal(t->ids.nr, m->nr_nodes);
	for (unsigned n = 0; n < m->nr_nodes; n++) {
		struct cpuset cpus = set_of(m, OF_NODE, (int)n);

		assert_int_equal(t->ids.id[n], m->node_id[n]);
		assert_true(cpuset_equal(&t->node[n].cpus, &cpus));
		assert_int_equal(t->node[n].memory[0], m->memory_kib[n] * KIB);
		for (unsigned k = 0; k < PAGE_KINDS; k++) {
			uint64_t bytes = (uint64_t)page_kib[k] * KIB;
			int kind = topo_kind_of_page(t, bytes);

			assert_true(kind > 0);
			assert_int_equal(t->node[n].memory[kind], m->pages[n][k] * bytes);
		}
		for (unsigned to = 0; to < m->nr_nodes; to++)
			if (table && m->fault == RIGHT)
				assert_int_equal(t->distance[n][to], m->distance[n][to]);
			else if (!table)
				assert_int_equal(t->distance[n][to], n == to ? 10 : 20);
	}
}

/* Two CPUs share a part if and only if the model says so. */
static void cpus_are_as_written(const struct model *m, const struct topo *t)
{
	struct cpuset nodeless = set_of(m, OF_NODE, -1);

	assert_true(cpuset_equal(&t->nodeless, &nodeless));
	for (unsigned i = 0; i < m->nr_cpus; i++)
		for (unsigned j = 0; j <= i; j++) {
			const struct model_cpu *a = &m->cpu[i], *b = &m->cpu[j];
			const struct topo_cpu *x = &t->cpu[a->id], *y = &t->cpu[b->id];

			if (!a->online || !b->online || a->node < 0 || b->node < 0)
				continue;
			assert_int_equal(
				x->core == y->core, a->core == b->core && a->node == b->node);
			assert_int_equal(x->socket == y->socket, a->package == b->package);
			assert_int_equal(x->uncore == y->uncore,
				m->caches ? a->cache == b->cache : a->package == b->package);
		}
}

static void hotplug_sees_the_same(const struct topo *t)
{
	static struct hotplug now;

	now = (struct hotplug){.isolated = t->isolated, .device_memory = t->device_memory};
	assert_int_equal(hotplug_read_cpus(tree, &now.online, NULL), 0);
	nodeset_each (n, t->nodes)
		assert_int_equal(hotplug_read_node(tree, t, n, &now, NULL), 0);
	assert_false(hotplug_differs(t, &now));
	assert_false(hotplug_contradicts(t, &now));
}

static unsigned count_of(const struct corrections *found, enum correction_kind kind)
{
	unsigned nr = 0;

	for (size_t i = 0; i < found->nr; i++)
		nr += found->at[i].kind == kind;
	return nr;
}

static void corrections_are_right(
	const struct model *m, const struct topo *t, const struct corrections *found)
{
	static const enum correction_kind of_fault[FAULTS] = {[NO_FILE] = CORRECTION_NO_DISTANCES,
		[ONE_FEWER] = CORRECTION_DISTANCE_COUNT,
		[ONE_MORE] = CORRECTION_DISTANCE_COUNT,
		[A_WORD] = CORRECTION_NO_DISTANCES,
		[TOO_SMALL] = CORRECTION_DISTANCE_RANGE,
		[TOO_LARGE] = CORRECTION_DISTANCE_RANGE,
		[BEYOND_64_BITS] = CORRECTION_NO_DISTANCES,
		[FARTHER_FROM_SELF] = CORRECTION_DISTANCE_FROM_SELF};
	bool faulty = m->fault != RIGHT && m->nr_nodes > 1;
	unsigned dropped =
		count_of(found, CORRECTION_CACHES) + count_of(found, CORRECTION_PACKAGES);
	bool caches_cross = m->caches && levels_cross(m, OF_CACHE, OF_PACKAGE);
	/* hwloc gives a NUMA node of memory alone the CPUs near it, sometimes before the NUMA node
	 * that has them */
	bool nested = nodeset_equal(t->nodes, t->nodes_with_cpus) &&
		      !levels_cross(m, OF_NODE, OF_CORE) && !levels_cross(m, OF_NODE, OF_PACKAGE) &&
		      !(m->caches && levels_cross(m, OF_NODE, OF_CACHE));

	if (faulty) {
		assert_int_equal(count_of(found, of_fault[m->fault]), 1);
		assert_int_equal(found->at[found->nr - 1 - count_of(found, CORRECTION_CPUS)].node,
			m->node_id[m->faulty]);
	}
	assert_int_equal(count_of(found, CORRECTION_CORES), cores_are_cut(m));
	/* of two that cross hwloc drops the one that hwloc reads later */
	assert_int_equal(dropped > 0, caches_cross);
	if (nested)
		assert_int_equal(found->nr, faulty + dropped + cores_are_cut(m));
	for (size_t i = 0; i < found->nr; i++) {
		const struct correction *c = &found->at[i];
		char text[CORRECTION_TEXT_MAX];

		assert_true(strlen(correction_text(c, text)) < CORRECTION_TEXT_MAX - 1);
		if (c->kind != CORRECTION_CPUS)
			continue;
		int n = node_index(&t->ids, c->node);
		assert_true(n >= 0 && cpuset_equal(&c->cpus, &t->node[n].cpus));
		assert_false(cpuset_equal(&c->cpus, &c->theirs));
	}
}

static struct {
	uint64_t seed;
	unsigned machine; /* that is played */
	bool done;
	unsigned crossing, nesting, faulty, cut, cached;
} seen;

static void play(struct random *r)
{
	struct corrections found = {0};
	struct model m = {.lists = random_chance(r, 80), .has_online = random_chance(r, 90)};
	struct topo t;
	struct err e = {0};

	make_nodes(r, &m);
	make_cpus(r, &m);
	write_machine(&m);
	if (machine_load(tree, &t, corrections_add, &found, &e))
		fail_msg("%s", e.text);
	nodes_are_as_written(&m, &t);
	cpus_are_as_written(&m, &t);
	hotplug_sees_the_same(&t);
	corrections_are_right(&m, &t, &found);
	seen.crossing += count_of(&found, CORRECTION_CPUS) > 0;
	seen.nesting += found.nr == 0;
	seen.faulty += m.fault != RIGHT;
	seen.cut += count_of(&found, CORRECTION_CORES) > 0;
	seen.cached += count_of(&found, CORRECTION_CACHES) > 0;
	corrections_fini(&found);
	assert_int_equal(nftw(tree, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(mkdir(tree, S_IRWXU), 0);
}

static void each_numa_node_is_as_the_kernels_files_have_it(void **state)
{
	const char *machines = getenv("MACHINES"), *from = getenv("SEED"), *tmp = getenv("TMPDIR");
	unsigned nr = machines ? (unsigned)strtoul(machines, NULL, 10) : MACHINES;
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;

	(void)state;
	(void)snprintf(tree, sizeof tree, "%s/numafit-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(tree));
	seen.seed = seed;
	for (unsigned i = 0; i < nr; i++) {
		struct random r = {(seed << 32) + i + 1};

		seen.machine = i;

		for (unsigned k = 0; k < 8; k++)
			(void)random_next(&r);
		play(&r);
	}
	assert_int_equal(nftw(tree, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
	seen.done = true;
	print_message(
		"%u machines: %u cross, %u nest, %u with damaged distances, %u with cut cores, %u with caches "
		"across packages\n",
		nr, seen.crossing, seen.nesting, seen.faulty, seen.cut, seen.cached);
	assert_true(nr < MACHINES ||
		    (seen.crossing > nr / 4 && seen.nesting > nr / 20 && seen.faulty > nr / 10 &&
			    seen.cut > nr / 20 && seen.cached > nr / 20));
}

/* The machine at which the case failed; its files are left. */
static int name_machine(void **state)
{
	(void)state;
	if (!seen.done)
		print_message("# SEED=%llu, machine %u, in %s\n", (unsigned long long)seen.seed,
			seen.machine, tree);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			each_numa_node_is_as_the_kernels_files_have_it, name_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
