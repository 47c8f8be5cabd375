#include <ui/machine.h>

#include <numafit/mem.h>
#include <ui/document.h>

enum { DISTANCES_MAX = NODES_MAX * 4 };

struct machine_core {
	struct cpuset cpus;
};

struct machine_node {
	unsigned id, socket;   /* the socket of all its CPUs, if has_socket */
	struct cpuset sockets; /* of its CPUs, if they are on several; else empty */
	bool has_socket, device_memory;
	char distances[DISTANCES_MAX]; /* "10 16 16": to each NUMA node */
	const struct machine_core *core;
	size_t nr_cores;
};

struct machine {
	const char *name;
	unsigned sockets, cores, cpus;
	bool has_distances;
	const struct machine_node *node;
	size_t nr_nodes;
};

#define AT(member) offsetof(struct machine_core, member)
static const struct field core_rows[] = {FIELD("cpus", CPUS, AT(cpus))};
static const struct fields core_fields = FIELDS(core_rows, struct machine_core);
#undef AT

#define AT(member) offsetof(struct machine_node, member)
static const struct field node_rows[] = {
	FIELD("id", UNSIGNED, AT(id)),
	FIELD("socket", UNSIGNED, AT(socket), .has_flag = true, .flag = AT(has_socket)),
	FIELD("sockets", CPUS, AT(sockets), .optional = true),
	FIELD("device_memory", BOOL, AT(device_memory), .optional = true),
	FIELD("distances", CHARS, AT(distances), .max = DISTANCES_MAX),
	FIELD("cores", LIST, AT(core), .count = AT(nr_cores), .fields = &core_fields),
};
static const struct fields node_fields = FIELDS(node_rows, struct machine_node);
#undef AT

#define AT(member) offsetof(struct machine, member)
static const struct field machine_rows[] = {
	FIELD("name", STRING, AT(name)),
	FIELD("sockets", UNSIGNED, AT(sockets)),
	FIELD("cores", UNSIGNED, AT(cores)),
	FIELD("cpus", UNSIGNED, AT(cpus)),
	FIELD("has_distances", BOOL, AT(has_distances)),
	FIELD("nodes", LIST, AT(node), .count = AT(nr_nodes), .fields = &node_fields),
};
static const struct fields machine_fields = FIELDS(machine_rows, struct machine);
#undef AT

/* The cores of the CPUs into `to`, by their lowest CPU. Returns their number. */
static size_t list_cores(const struct topo *t, const struct cpuset *cpus, struct machine_core *to)
{
	size_t nr = 0;

	cpuset_each (cpu, cpus) {
		if (t->cpu[cpu].core != cpu)
			continue;
		for (unsigned c = cpu; c < CPUSET_BITS; c = t->next_thread[c])
			cpuset_add(&to[nr].cpus, c);
		nr++;
	}
	return nr;
}

static void add_distances(const struct topo *t, unsigned from, char text[DISTANCES_MAX])
{
	struct text out;

	text_init(&out, text, DISTANCES_MAX);
	nodeset_each (to, t->nodes)
		text_add(&out, out.len ? " %u" : "%u", t->distance[from][to]);
}

char *ui_machine_json(const struct topo *t)
{
	auto_free struct machine_node *nodes = xcalloc(NODES_MAX, sizeof *nodes);
	auto_free struct machine_core *cores = xcalloc(t->nr_cores, sizeof *cores);
	const struct machine m = {t->name, t->nr_sockets, t->nr_cores, t->nr_cpus, t->has_distances,
		nodes, t->ids.nr};
	size_t nr = 0;

	nodeset_each (n, t->nodes) {
		const struct cpuset *cpus = &t->node[n].cpus;

		const struct cpuset sockets = topo_sockets_of(t, cpus);

		nodes[n] = (struct machine_node){.id = t->ids.id[n],
			.has_socket = cpuset_count(&sockets) == 1,
			.device_memory = nodeset_has(t->device_memory, n),
			.core = cores + nr};
		if (nodes[n].has_socket)
			nodes[n].socket = cpuset_next(&sockets, 0);
		else
			nodes[n].sockets = sockets;
		nodes[n].nr_cores = list_cores(t, cpus, cores + nr);
		nr += nodes[n].nr_cores;
		add_distances(t, n, nodes[n].distances);
	}
	return ui_document(&machine_fields, &m, &t->ids);
}
