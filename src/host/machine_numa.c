#include <host/machine_numa.h>

#include <errno.h>
#include <numa.h>

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
	numa_node_to_cpu_update(); /* CPUs may have come or gone since the last call */
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
