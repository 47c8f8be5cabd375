#include <host/machine_numa.h>

#include <errno.h>
#include <numa.h>
#include <stdarg.h>
#include <stdio.h>

static int numa_add_cpus(struct topo *t, unsigned node, struct bitmask *mask, struct err *e)
{
	unsigned id = t->ids.id[node];
	int rc = 0;

	if (numa_node_to_cpus((int)id, mask) < 0)
		return err_set(e, EIO, "libnuma does not know the CPUs of NUMA node %u", id);
	for (unsigned cpu = 0; rc == 0 && cpu < mask->size; cpu++)
		if (numa_bitmask_isbitset(mask, cpu))
			rc = topo_add_cpu(t, cpu, node, 0, 0, 0, e);
	return rc;
}

/* A distance of 0: libnuma found no table; topo_seal() knows what to assume then. */
static int numa_add_distances(struct topo *t, struct err *e)
{
	int rc = 0;

	for (unsigned from = 0; from < t->ids.nr; from++)
		for (unsigned to = 0; rc == 0 && to < t->ids.nr; to++) {
			int distance = numa_distance(t->ids.id[from], t->ids.id[to]);

			if (distance > 0)
				rc = topo_set_distance(t, from, to, (unsigned)distance, e);
		}
	return rc;
}

int machine_from_numa(struct topo *t, struct err *e)
{
	int rc = 0;

	topo_init(t, "libnuma");
	if (numa_available() < 0)
		return err_set(e, ENOSYS, "libnuma: no NUMA calls here");
	struct bitmask *mask = numa_allocate_cpumask();
	for (unsigned id = 0; rc >= 0 && id <= (unsigned)numa_max_node(); id++) {
		if (!numa_bitmask_isbitset(numa_nodes_ptr, id))
			continue;
		rc = topo_add_node(t, id, e);
		if (rc >= 0)
			rc = numa_add_cpus(t, (unsigned)rc, mask, e);
	}
	numa_bitmask_free(mask);
	return rc < 0 ? rc : numa_add_distances(t, e);
}

static bool same_nodes(const struct topo *a, const struct topo *b)
{
	for (unsigned n = 0; n < a->ids.nr && n < b->ids.nr; n++)
		if (a->ids.id[n] != b->ids.id[n])
			return false;
	return a->ids.nr == b->ids.nr;
}

void machine_borrow_distances(struct topo *t, const struct topo *numa)
{
	if (t->has_distances || !numa->has_distances || !same_nodes(t, numa))
		return;
	for (unsigned from = 0; from < t->ids.nr; from++)
		for (unsigned to = 0; to < t->ids.nr; to++)
			t->distance[from][to] = numa->distance[from][to];
	t->has_distances = true;
}

struct notes {
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

enum { NOTE_MAX = 240, LIST_MAX = 80 };

__attribute__((format(printf, 2, 3))) static void note_difference(
	const struct notes *to, const char *fmt, ...)
{
	char line[NOTE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	to->note(to->ctx, line);
}

/* The nodes of a that b does not have. */
static void compare_nodes(const struct topo *a, const char *has, const struct topo *b,
	const char *lacks, const struct notes *to)
{
	for (unsigned n = 0; n < a->ids.nr; n++)
		if (node_index(&b->ids, a->ids.id[n]) < 0)
			note_difference(to, "NUMA node %u: %s has it, %s does not", a->ids.id[n],
				has, lacks);
}

static void compare_node(
	const struct topo *a, unsigned i, const struct topo *b, unsigned j, const struct notes *to)
{
	const struct cpuset *mine = &a->node[i].cpus, *theirs = &b->node[j].cpus;
	char one[CPUSET_TEXT_MAX], two[CPUSET_TEXT_MAX];

	if (cpuset_equal(mine, theirs))
		return;
	note_difference(to, "NUMA node %u: hwloc has CPUs %.*s, libnuma %.*s", a->ids.id[i],
		LIST_MAX, cpuset_format(mine, one, sizeof one), LIST_MAX,
		cpuset_format(theirs, two, sizeof two));
}

static void compare_distances(
	const struct topo *a, unsigned from, const struct topo *b, const struct notes *to)
{
	int other_from = node_index(&b->ids, a->ids.id[from]);

	for (unsigned n = 0; n < a->ids.nr; n++) {
		int other = node_index(&b->ids, a->ids.id[n]);

		if (other < 0 || a->distance[from][n] == b->distance[other_from][other])
			continue;
		note_difference(to, "distance from NUMA node %u to %u: hwloc has %u, libnuma %u",
			a->ids.id[from], a->ids.id[n], a->distance[from][n],
			b->distance[other_from][other]);
	}
}

void machine_compare(const struct topo *hwloc, const struct topo *numa,
	void (*note)(void *ctx, const char *text), void *ctx)
{
	const struct notes to = {note, ctx};

	compare_nodes(hwloc, "hwloc", numa, "libnuma", &to);
	compare_nodes(numa, "libnuma", hwloc, "hwloc", &to);
	for (unsigned n = 0; n < hwloc->ids.nr; n++) {
		int other = node_index(&numa->ids, hwloc->ids.id[n]);

		if (other < 0)
			continue;
		compare_node(hwloc, n, numa, (unsigned)other, &to);
		if (hwloc->has_distances && numa->has_distances)
			compare_distances(hwloc, n, numa, &to);
	}
}
