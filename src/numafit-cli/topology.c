#include <numafit-cli/verbs.h>

#include <codec/machine_text.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <numafit-cli/output.h>
#include <numafit-cli/table.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

struct options {
	const char *machine, *average;
	bool export;
};

static const struct option_row rows[] = {
	{.name = "machine",
		.value = "MACHINE",
		.help = "this (the default), a name (kep3545-8), or a path with a '/': our text, an "
			"hwloc .xml, a tree of hwloc-gather-topology",
		.read = option_text,
		.at = offsetof(struct options, machine),
		.completes = COMPLETE_FILE},
	{.name = "average",
		.value = "NODES",
		.help = "only the average distance of these nodes (0,2-3), each to every one of them "
			"and to itself",
		.read = option_text,
		.at = offsetof(struct options, average)},
	{.name = "export",
		.help = "the machine as text, to be kept as NAME.machine",
		.read = option_flag,
		.at = offsetof(struct options, export)},
	{0},
};

static void print_corrections(const struct corrections *found, FILE *to, const char *before)
{
	struct correction_lines lines = {to, before};

	for (size_t i = 0; i < found->nr; i++)
		print_correction(&lines, &found->at[i]);
}

/* The fewest decimals that are exact, or one where three are not enough. */
static int print_average(const struct topo *t, struct nodeset nodes)
{
	enum { EXACT_DECIMALS = 3, BASE = 10 };
	uint64_t n = nodeset_count(nodes), sum = topo_distance_sum(t, nodes);
	int decimals = 0;

	while (decimals <= EXACT_DECIMALS && sum % (n * n)) {
		sum *= BASE;
		decimals++;
	}
	if (decimals > EXACT_DECIMALS)
		decimals = 1;
	(void)printf("%.*f\n", decimals, topo_distance_average(t, nodes));
	return EXIT_DONE;
}

static int average_distance(const struct call *c, const struct topo *t,
	const struct corrections *found, const char *list)
{
	struct nodeset nodes;
	struct err e = {0};

	if (nodeset_parse(&nodes, &t->ids, list, strlen(list), &e))
		return call_misused(c, "--average %s: %s", list, e.text);
	if (nodeset_empty(nodes))
		return call_misused(c, "--average needs at least one NUMA node");
	print_corrections(found, stderr, "numafit topology: ");
	return print_average(t, nodes);
}

static int export_machine(const struct topo *t, const struct corrections *found)
{
	auto_free char *buf = xcalloc(MACHINE_TEXT_MAX, 1);
	struct text out;

	text_init(&out, buf, MACHINE_TEXT_MAX);
	machine_text_write(t, &out);
	print_corrections(found, stdout, "# ");
	(void)fputs(buf, stdout);
	return EXIT_DONE;
}

static void add_cpu_cells(struct table *tab, const struct topo *t, const struct cpuset *cpus)
{
	char list[CPUSET_TEXT_MAX];

	if (cpuset_empty(cpus)) {
		table_add(tab, "-");
		table_add(tab, "-");
		return;
	}
	const struct cpuset sockets = topo_sockets_of(t, cpus);
	table_add(tab, "%s", cpuset_format(&sockets, list, sizeof list));
	table_add(tab, "%s", cpuset_format(cpus, list, sizeof list));
}

static void print_topology_nodes(const struct topo *t)
{
	enum { OTHER_COLUMNS = 3 }; /* beside the kinds of memory */
	bool has_devices = !nodeset_empty(t->device_memory);
	struct table tab = {.nr_columns = OTHER_COLUMNS + has_devices + t->nr_kinds};
	char size[TEXT_SIZE_MAX], kind[TOPO_NAME_MAX];

	table_add(&tab, "node");
	for (unsigned k = 0; k < t->nr_kinds; k++)
		table_add(&tab, "%s", topo_kind_name(t, k, kind, sizeof kind));
	table_add(&tab, "socket");
	table_add(&tab, "cpus");
	if (has_devices)
		table_add(&tab, "memory of");
	nodeset_each (n, t->nodes) {
		table_add(&tab, "%u", t->ids.id[n]);
		for (unsigned k = 0; k < t->nr_kinds; k++)
			table_add(&tab, "%s", text_size_rounded(size, t->node[n].memory[k]));
		add_cpu_cells(&tab, t, &t->node[n].cpus);
		if (has_devices)
			table_add(&tab, "%s", nodeset_has(t->device_memory, n) ? "a device" : "-");
	}
	table_print(&tab, stdout);
	table_fini(&tab);
}

static void print_distances(const struct topo *t)
{
	struct table tab = {.nr_columns = 1 + t->ids.nr};

	table_add(&tab, "distance");
	nodeset_each (to, t->nodes)
		table_add(&tab, "%u", t->ids.id[to]);
	nodeset_each (from, t->nodes) {
		table_add(&tab, "%u", t->ids.id[from]);
		nodeset_each (to, t->nodes)
			table_add(&tab, "%u", t->distance[from][to]);
	}
	table_print(&tab, stdout);
	table_fini(&tab);
}

static int show_topology(const struct topo *t, const struct corrections *found)
{
	char list[CPUSET_TEXT_MAX];

	(void)printf("machine %s: NUMA nodes %u, sockets %u, cores %u, CPUs %u", t->name, t->ids.nr,
		t->nr_sockets, t->nr_cores, t->nr_cpus);
	(void)printf(", last-level caches %u\n\n", t->nr_uncores);
	print_topology_nodes(t);
	if (!cpuset_empty(&t->nodeless))
		(void)printf("\nCPUs %s belong to no NUMA node that is online: no container gets "
			     "them\n",
			cpuset_format(&t->nodeless, list, sizeof list));
	(void)printf("\n");
	print_distances(t);
	if (found->nr)
		(void)printf("\n");
	print_corrections(found, stdout, "");
	return EXIT_DONE;
}

static int run_topology(const struct call *c)
{
	struct options o = {.machine = "this"};
	struct corrections found = {0};
	struct topo t;
	struct err e = {0};
	int code = call_read(c, &o);

	if (code >= 0)
		return code;
	if (o.average && o.export)
		return call_misused(c, "--average and --export exclude each other");
	if (machine_load(o.machine, &t, corrections_add, &found, &e))
		code = call_fail(c, EXIT_CANNOT, &e);
	else if (o.average)
		code = average_distance(c, &t, &found, o.average);
	else
		code = o.export ? export_machine(&t, &found) : show_topology(&t, &found);
	corrections_fini(&found);
	return code;
}

const struct command verb_topology = {
	.name = "topology",
	.summary = "show a machine: NUMA nodes, CPUs, memory, distances",
	.about =
		"Show a machine's NUMA nodes: CPUs, sockets, memory, huge pages and distances; on "
		"a machine that has such, which nodes are the memory of a device (a GPU). NUMA nodes "
		"are as the kernel's files have them (/sys/devices/system/node); a line \"corrected\" "
		"says where hwloc has them otherwise, a line \"doubtful\" what an XML leaves open.",
	.options = rows,
	.examples = {{"numafit topology", "the NUMA nodes of this machine"},
		{"numafit topology --machine kep3545-8 --average 0,2-3",
			"how far these nodes of a recorded machine are from each other"}},
	.run = run_topology,
};
