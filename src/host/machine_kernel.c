/* NUMA nodes as the kernel's files have them, joined with what hwloc knows of cores, sockets and
 * caches. */
#include <host/machine_kernel.h>

#include <errno.h>
#include <host/device_memory.h>
#include <host/node_files.h>
#include <string.h>

struct reading {
	const char *root;
	const struct topo *hwloc;
	struct topo *out;
	const struct correction_sink *to;
	struct cpuset online;            /* ids of NUMA nodes, hidden ones included */
	struct cpuset listed[NODES_MAX]; /* CPUs, by dense index */
};

/* Where HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES=0 hides the memory of GPUs. */
static bool is_hidden(const struct reading *r, unsigned id)
{
	const struct node_ids one = {.nr = 1, .id = {(uint16_t)id}};

	return node_index(&r->hwloc->ids, id) < 0 &&
	       !nodeset_empty(device_memory_read(r->root, &one));
}

static int read_memory(struct reading *r, unsigned node, struct err *e)
{
	unsigned id = r->out->ids.id[node];
	uint64_t bytes = 0;
	int rc = node_files_memory(r->root, id, &bytes, e);

	if (rc == -ENOENT && !node_files_may_have_memory(r->root, id))
		rc = 0;
	if (!rc)
		rc = topo_set_memory(r->out, node, 0, bytes, e);
	for (uint64_t left = node_files_page_sizes(r->root, id); !rc && left; left &= left - 1) {
		uint64_t page_bytes = (left & -left) << 10;

		rc = node_files_huge_pages(r->root, id, page_bytes, &bytes, e);
		if (!rc)
			rc = topo_set_memory(r->out, node, page_bytes, bytes, e);
	}
	return rc;
}

static int read_nodes(struct reading *r, struct err *e)
{
	cpuset_each (id, &r->online) {
		if (is_hidden(r, id))
			continue;
		int node = topo_add_node(r->out, id, e);
		int rc = node < 0 ? node : node_files_cpus(r->root, id, &r->listed[node], e);
		if (!rc)
			rc = read_memory(r, (unsigned)node, e);
		if (rc)
			return rc;
	}
	r->out->device_memory = device_memory_read(r->root, &r->out->ids);
	nodeset_each (n, r->hwloc->device_memory) {
		int node = node_index(&r->out->ids, r->hwloc->ids.id[n]);

		if (node >= 0)
			r->out->device_memory =
				nodeset_or(r->out->device_memory, nodeset_of((unsigned)node));
	}
	return 0;
}

/* Whether of two NUMA nodes that list the CPU the first one has it. */
static bool has_rather(const struct reading *r, unsigned cpu, unsigned a, unsigned b)
{
	bool a_linked = node_files_has_link(r->root, r->out->ids.id[a], cpu);
	bool b_linked = node_files_has_link(r->root, r->out->ids.id[b], cpu);

	if (a_linked != b_linked)
		return a_linked;
	return cpuset_count(&r->listed[a]) < cpuset_count(&r->listed[b]);
}

/* The NUMA node that the CPU counts with, -1: none lists it. *twice: several do. */
static int node_of_cpu(const struct reading *r, unsigned cpu, bool *twice)
{
	int found = -1;

	*twice = false;
	for (unsigned n = 0; n < r->out->ids.nr; n++) {
		if (!cpuset_has(&r->listed[n], cpu))
			continue;
		*twice = found >= 0;
		if (found < 0 || has_rather(r, cpu, n, (unsigned)found))
			found = (int)n;
	}
	return found;
}

/* The NUMA node of each CPU that hwloc knows; the rest have none. */
static void place_cpus(const struct reading *r, const struct cpuset *all, int8_t node[CPUSET_BITS])
{
	struct cpuset listed_twice[NODES_MAX] = {0};

	memset(node, -1, CPUSET_BITS);
	cpuset_each (cpu, all) {
		bool twice;

		node[cpu] = (int8_t)node_of_cpu(r, cpu, &twice);
		if (twice)
			cpuset_add(&listed_twice[node[cpu]], cpu);
	}
	for (unsigned n = 0; n < r->out->ids.nr; n++)
		if (!cpuset_empty(&listed_twice[n]))
			correction_send(r->to, &(struct correction){.kind = CORRECTION_LISTED_TWICE,
						       .source = SOURCE_KERNEL,
						       .node = r->out->ids.id[n],
						       .cpus = listed_twice[n]});
}

/* Of the CPU's core, as hwloc has it, the first CPU that is on the same NUMA node. */
static unsigned core_on_node(const struct reading *r, unsigned cpu, const int8_t node[CPUSET_BITS])
{
	const struct topo_cpu *of = r->hwloc->cpu;
	unsigned first = cpu;

	for (unsigned other = of[cpu].core; other < cpu; other++)
		if (cpuset_has(&r->out->cpus, other) && of[other].core == of[cpu].core &&
			node[other] == node[cpu]) {
			first = other;
			break;
		}
	return first;
}

/* The kubelet's cores end at their NUMA node, too: cadvisor goes through the CPUs of each NUMA
 * node. */
static void note_cut_cores(
	const struct reading *r, const struct cpuset *all, const int8_t node[CPUSET_BITS])
{
	struct correction cut = {.kind = CORRECTION_CORES, .source = SOURCE_HWLOC};
	struct cpuset seen_cores = {0}, cut_cores = {0};
	int8_t node_of[CPUSET_BITS]; /* of the core's first CPU that has a NUMA node */

	cpuset_each (cpu, all) {
		unsigned core = r->hwloc->cpu[cpu].core;

		if (node[cpu] < 0)
			continue;
		if (!cpuset_has(&seen_cores, core))
			node_of[core] = node[cpu];
		else if (node_of[core] != node[cpu])
			cpuset_add(&cut_cores, core);
		cpuset_add(&seen_cores, core);
	}
	cpuset_each (cpu, all)
		if (node[cpu] >= 0 && cpuset_has(&cut_cores, r->hwloc->cpu[cpu].core))
			cpuset_add(&cut.cpus, cpu);
	if (!cpuset_empty(&cut.cpus))
		correction_send(r->to, &cut);
}

static int add_cpus(struct reading *r, struct err *e)
{
	struct cpuset all = cpuset_or(r->hwloc->cpus, &r->hwloc->nodeless);
	int8_t node[CPUSET_BITS];
	int rc = 0;

	place_cpus(r, &all, node);
	note_cut_cores(r, &all, node);
	cpuset_each (cpu, &all) {
		const struct topo_cpu *c = &r->hwloc->cpu[cpu];

		if (node[cpu] < 0)
			cpuset_add(&r->out->nodeless, cpu);
		else if (!rc)
			rc = topo_add_cpu(r->out, cpu, (unsigned)node[cpu],
				core_on_node(r, cpu, node), c->socket, c->uncore, e);
	}
	return rc;
}

/* The index of a NUMA node's id in the order of all that are online. */
static unsigned place_in_row(const struct reading *r, unsigned id)
{
	unsigned at = 0;

	cpuset_each (other, &r->online)
		at += other < id;
	return at;
}

/* The NUMA node's row, by dense indexes; false: the row cannot be used, *fault says why. */
static bool read_row(
	const struct reading *r, unsigned node, uint64_t row[NODES_MAX], struct correction *fault)
{
	const struct node_ids *ids = &r->out->ids;
	uint64_t all[CPUSET_BITS];
	unsigned online = cpuset_count(&r->online);
	int nr = node_files_distances(r->root, ids->id[node], all, CPUSET_BITS, NULL);

	*fault = (struct correction){.source = SOURCE_KERNEL, .node = ids->id[node]};
	if (nr <= 0) {
		fault->kind = CORRECTION_NO_DISTANCES;
		return false;
	}
	if ((unsigned)nr != online) {
		fault->kind = CORRECTION_DISTANCE_COUNT;
		fault->value = (unsigned)nr;
		fault->their_value = online;
		return false;
	}
	for (unsigned to = 0; to < ids->nr; to++)
		row[to] = all[place_in_row(r, ids->id[to])];
	for (unsigned to = 0; to < ids->nr; to++) {
		fault->to = ids->id[to];
		fault->value = row[to];
		fault->kind = CORRECTION_DISTANCE_RANGE;
		if (row[to] < DISTANCE_MIN || row[to] > DISTANCE_MAX)
			return false;
		fault->value = row[node];
		fault->their_value = row[to];
		fault->kind = CORRECTION_DISTANCE_FROM_SELF;
		if (row[to] < row[node])
			return false;
	}
	return true;
}

/* All distances, or none: the kernel does not use a table of the firmware that has one fault,
 * either (slit_valid() of drivers/acpi/numa/srat.c). */
static int read_distances(const struct reading *r, struct err *e)
{
	uint64_t table[NODES_MAX][NODES_MAX];
	struct correction fault;
	int rc = 0;

	for (unsigned from = 0; from < r->out->ids.nr; from++)
		if (!read_row(r, from, table[from], &fault)) {
			if (r->out->ids.nr > 1)
				correction_send(r->to, &fault);
			return 0;
		}
	for (unsigned from = 0; from < r->out->ids.nr; from++)
		for (unsigned to = 0; !rc && to < r->out->ids.nr; to++)
			rc = topo_set_distance(r->out, from, to, (unsigned)table[from][to], e);
	return rc;
}

/* Differences */

static void compare_nodes(const struct topo *t, unsigned n, const struct topo *theirs, unsigned m,
	enum machine_source source, const struct correction_sink *to)
{
	const struct topo_node *mine = &t->node[n], *other = &theirs->node[m];
	struct correction c = {.kind = CORRECTION_CPUS,
		.source = source,
		.node = t->ids.id[n],
		.cpus = mine->cpus,
		.theirs = other->cpus};

	if (!cpuset_equal(&mine->cpus, &other->cpus))
		correction_send(to, &c);
	c = (struct correction){.kind = CORRECTION_MEMORY,
		.source = source,
		.node = t->ids.id[n],
		.value = mine->memory[0],
		.their_value = other->memory[0]};
	if (topo_memory_of(theirs, nodeset_first(theirs->ids.nr), 0) && c.value != c.their_value)
		correction_send(to, &c);
}

/* The first distance from node n that differs. */
static void compare_distances(const struct topo *t, unsigned n, const struct topo *theirs,
	unsigned m, enum machine_source source, const struct correction_sink *to)
{
	for (unsigned k = 0; k < t->ids.nr; k++) {
		int other = node_index(&theirs->ids, t->ids.id[k]);

		if (other < 0 || t->distance[n][k] == theirs->distance[m][other])
			continue;
		correction_send(to, &(struct correction){.kind = CORRECTION_DISTANCE,
					    .source = source,
					    .node = t->ids.id[n],
					    .to = t->ids.id[k],
					    .value = t->distance[n][k],
					    .their_value = theirs->distance[m][other]});
		return;
	}
}

void machine_compare(const struct topo *t, const struct topo *theirs, enum machine_source source,
	const struct correction_sink *to)
{
	for (unsigned n = 0; n < t->ids.nr; n++) {
		int other = node_index(&theirs->ids, t->ids.id[n]);

		if (other < 0) {
			correction_send(to, &(struct correction){.kind = CORRECTION_NODE_MISSING,
						    .source = source,
						    .node = t->ids.id[n],
						    .cpus = t->node[n].cpus});
			continue;
		}
		compare_nodes(t, n, theirs, (unsigned)other, source, to);
		if (t->has_distances && theirs->has_distances)
			compare_distances(t, n, theirs, (unsigned)other, source, to);
	}
	for (unsigned m = 0; m < theirs->ids.nr; m++)
		if (node_index(&t->ids, theirs->ids.id[m]) < 0)
			correction_send(to, &(struct correction){.kind = CORRECTION_NODE_EXTRA,
						    .source = source,
						    .node = theirs->ids.id[m]});
}

int machine_from_kernel(const char *root, const struct topo *hwloc, struct topo *out,
	const struct correction_sink *to, struct err *e)
{
	struct reading r = {.root = root, .hwloc = hwloc, .out = out, .to = to};
	int rc = node_files_online(root, &r.online, e);

	if (rc == -ENOENT) {
		*out = *hwloc;
		return 0;
	}
	out->this_machine = hwloc->this_machine;
	out->isolated = hwloc->isolated;
	if (!rc)
		rc = read_nodes(&r, e);
	if (!rc)
		rc = add_cpus(&r, e);
	if (!rc)
		rc = read_distances(&r, e);
	if (!rc)
		machine_compare(out, hwloc, SOURCE_HWLOC, to);
	if (rc == -ENOENT) /* a file of a NUMA node; "no such machine" would be something else */
		rc = err_add(e, -EINVAL, "NUMA nodes");
	return rc;
}
