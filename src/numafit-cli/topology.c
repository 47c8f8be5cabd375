#include <numafit-cli/verbs.h>

#include <codec/machine_text.h>
#include <getopt.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <numafit-cli/table.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"usage: numafit topology [--machine MACHINE] [--average NODES | --export]\n"
	"\n"
	"Show a machine's NUMA nodes: CPUs, sockets, memory, huge pages and distances;\n"
	"on a machine that has such, which nodes are the memory of a device (a GPU).\n"
	"\n"
	"  --machine MACHINE  this (the default), a name (kep3545-8), or a path with a '/':\n"
	"                     our text, an hwloc .xml, a tree of hwloc-gather-topology\n"
	"  --average NODES    only the average distance of these nodes (0,2-3), each to\n"
	"                     every one of them and to itself\n"
	"  --export           the machine as text, to be kept as NAME.machine\n"
	"  --help             this text\n";

struct options {
	const char *machine, *average;
	bool export;
};

enum { OPT_MACHINE = 'm', OPT_AVERAGE = 'a', OPT_EXPORT = 'e', OPT_HELP = 'h' };
static const struct option long_options[] = {
	{"machine", required_argument, NULL, OPT_MACHINE},
	{"average", required_argument, NULL, OPT_AVERAGE},
	{"export", no_argument, NULL, OPT_EXPORT},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static int topology_usage_error(const char *why)
{
	(void)fprintf(stderr, "numafit topology: %s\n", why);
	return EXIT_USAGE;
}

/* The options; or -1 when the verb is done with *code already. */
static int read_topology_options(int argc, char **argv, struct options *o, int *code)
{
	int c;

	*o = (struct options){.machine = "this"};
	*code = EXIT_USAGE;
	optind = 0; /* main() used getopt before: 0 makes glibc start over */
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		switch (c) {
		case OPT_MACHINE:
			o->machine = optarg;
			break;
		case OPT_AVERAGE:
			o->average = optarg;
			break;
		case OPT_EXPORT:
			o->export = true;
			break;
		case OPT_HELP:
			(void)fputs(help, stdout);
			*code = EXIT_DONE;
			return -1;
		default:
			return -1; /* getopt_long() has said what is wrong */
		}
	if (optind < argc) {
		(void)topology_usage_error("it takes no arguments, only options");
		return -1;
	}
	if (o->average && o->export) {
		(void)topology_usage_error("--average and --export exclude each other");
		return -1;
	}
	return 0;
}

static void print_topology_note(void *ctx, const char *text)
{
	(void)ctx;
	(void)fprintf(stderr, "numafit topology: note: %s\n", text);
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

static int average_distance(const struct topo *t, const char *list)
{
	struct nodeset nodes;
	struct err e = {0};

	if (nodeset_parse(&nodes, &t->ids, list, strlen(list), &e)) {
		(void)err_add(&e, 0, "--average %s", list);
		return topology_usage_error(e.text);
	}
	if (nodeset_empty(nodes))
		return topology_usage_error("--average needs at least one NUMA node");
	return print_average(t, nodes);
}

static int export_machine(const struct topo *t)
{
	auto_free char *buf = xcalloc(MACHINE_TEXT_MAX, 1);
	struct text out;

	text_init(&out, buf, MACHINE_TEXT_MAX);
	machine_text_write(t, &out);
	(void)fputs(buf, stdout);
	return EXIT_DONE;
}

static void add_cpu_cells(struct table *tab, const struct topo *t, const struct cpuset *cpus)
{
	char list[CPUSET_TEXT_MAX];
	struct cpuset sockets = {0};

	if (cpuset_empty(cpus)) {
		table_add(tab, "-");
		table_add(tab, "-");
		return;
	}
	cpuset_each (cpu, cpus)
		cpuset_add(&sockets, t->cpu[cpu].socket);
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
			table_add(&tab, "%s", text_size(size, t->node[n].memory[k]));
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

static int show_topology(const struct topo *t)
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
	return EXIT_DONE;
}

int verb_topology(int argc, char **argv)
{
	struct options o;
	struct topo t;
	struct err e = {0};
	int code;

	if (read_topology_options(argc, argv, &o, &code))
		return code;
	if (machine_load(o.machine, &t, print_topology_note, NULL, &e)) {
		(void)fprintf(stderr, "numafit topology: %s\n", e.text);
		return EXIT_FAILED;
	}
	if (o.average)
		return average_distance(&t, o.average);
	return o.export ? export_machine(&t) : show_topology(&t);
}
