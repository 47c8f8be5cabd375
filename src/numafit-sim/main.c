#include <numafit-sim/trace_yaml.h>
#include <errno.h>
#include <getopt.h>
#include <host/discover.h>
#include <io/file.h>
#include <numafit-sim/cluster.h>
#include <numafit-sim/play.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum exit_code { EXIT_DONE, EXIT_WRONG, EXIT_USAGE };
enum {
	WAIT_MAX_S = 3600,
	WAIT_DEFAULT_MS = 10 * MS_PER_S,
	TRACE_BYTES_MAX = 1 << 20,
	NUMBER_MAX = 10000000
};

struct arguments {
	const char *machine, *trace, *node_name;
	struct play_options play;
	struct cluster_options cluster;
	struct cpuset reserved;
	bool json, help;
};

static int read_string_argument(void *member, const char *value, struct err *e)
{
	(void)e;
	*(const char **)member = value;
	return 0;
}

static int read_flag(void *member, const char *value, struct err *e)
{
	(void)value, (void)e;
	*(bool *)member = true;
	return 0;
}

static int read_seconds_argument(void *member, const char *value, struct err *e)
{
	uint64_t seconds;
	int rc = text_u64(value, strlen(value), WAIT_MAX_S, &seconds, e);

	if (!rc)
		*(unsigned *)member = (unsigned)seconds * MS_PER_S;
	return rc;
}

static int read_cpus_argument(void *member, const char *value, struct err *e)
{
	return cpuset_parse(member, value, strlen(value), e);
}

static int read_number_argument(void *member, const char *value, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), NUMBER_MAX, &number, e);

	if (!rc)
		*(unsigned *)member = (unsigned)number;
	return rc;
}

static int read_percent(void *member, const char *value, struct err *e)
{
	enum { PERCENT_MAX = 100 };
	unsigned number;
	int rc = read_number_argument(&number, value, e);

	if (!rc && number > PERCENT_MAX)
		return err_set(e, ERANGE, "%u is more than %d", number, PERCENT_MAX);
	if (!rc)
		*(unsigned *)member = number;
	return rc;
}

static int read_seed(void *member, const char *value, struct err *e)
{
	return text_u64(value, strlen(value), UINT64_MAX, member, e);
}

static int read_delay(void *member, const char *value, struct err *e)
{
	unsigned ms;
	int rc = read_number_argument(&ms, value, e);

	if (!rc)
		*(int64_t *)member = ms;
	return rc;
}

static int read_policy_argument(void *member, const char *value, struct err *e)
{
	int policy = topology_policy_from_name(value);

	if (policy < 0)
		return err_set(e, EINVAL, "\"%s\" is no policy", value);
	*(enum topology_policy *)member = (enum topology_policy)policy;
	return 0;
}

static int read_size(void *member, const char *value, struct err *e)
{
	return cluster_size_parse(member, value, e);
}

static int read_strategies(void *member, const char *value, struct err *e)
{
	struct cluster_options *o = member;
	int nr = strategy_list(value, o->strategy, e);

	if (nr >= 0)
		o->nr_strategies = (unsigned)nr;
	return nr < 0 ? nr : 0;
}

#define AT(member) offsetof(struct arguments, member)
static const struct {
	const char *name, *value, *help; /* value: what it is called; NULL: takes none */
	size_t at;
	int (*read)(void *member, const char *value, struct err *e);
} options[] = {
	{"socket", "PATH", "listen there for the daemon, as a runtime does", AT(play.socket),
		read_string_argument},
	{"machine", "NAME", "the machine to be: a name, a path or \"this\", as for numafitd",
		AT(machine), read_string_argument},
	{"trace", "FILE", "what to do, step by step", AT(trace), read_string_argument},
	{"wait", "SECONDS", "for the daemon to come (default 10)", AT(play.wait_ms),
		read_seconds_argument},
	{"reserved", "CPUS", "the daemon's reservedSystemCPUs, to draw and to check them",
		AT(reserved), read_cpus_argument},
	{"kubelet", "DIR", "be a kubelet too, with that root directory", AT(play.kubelet_root),
		read_string_argument},
	{"node-name", "NAME", "the daemon's nodeName, for hints (default numafit-sim)",
		AT(node_name), read_string_argument},
	{"state-change", NULL, "send events as NRI before 0.12 does", AT(play.state_change),
		read_flag},
	{"forget", NULL,
		"report containers as they were created after restart-runtime, as CRI-O does",
		AT(play.forgets), read_flag},
	{"json", NULL, "print lines of JSON instead of a table", AT(json), read_flag},
	{"cluster", "NxM", "instead: a day of N nodes with M NUMA nodes each, as data", AT(cluster),
		read_size},
	{"pods", "N", "of the cluster's day (default 20 for each node)", AT(cluster.nr_pods),
		read_number_argument},
	{"seed", "N", "another day (default 1)", AT(cluster.seed), read_seed},
	{"load", "PERCENT", "of the CPUs that the day's pods would have (default 85)",
		AT(cluster.load_percent), read_percent},
	{"strategies", "LIST", "how nodes are chosen, as \"stock,least-numa-nodes\" (default all)",
		AT(cluster), read_strategies},
	{"policy", "POLICY", "the nodes' topologyManagerPolicy (default restricted)",
		AT(cluster.policy), read_policy_argument},
	{"percentage", "PERCENT", "percentageOfNodesToScore (default 0: as kube-scheduler)",
		AT(cluster.world.percent_to_score), read_percent},
	{"weight", "N", "of the extender's score (default 10; the stock ones have 1)",
		AT(cluster.world.weight), read_percent},
	{"delay", "MS", "from a change of a node to its report (default 300)",
		AT(cluster.world.report_delay_ms), read_delay},
	{"jobs", "N", "strategies at the same time (default: processors)", AT(cluster.jobs),
		read_number_argument},
	{"svg", "FILE", "plot the cluster's day", AT(cluster.svg), read_string_argument},
	{"table", NULL, "and print the table, too", AT(cluster.table), read_flag},
	{"help", NULL, "print this", AT(help), read_flag},
};
enum { NR_OPTIONS = sizeof options / sizeof *options };

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: numafit-sim --socket PATH --machine NAME --trace FILE [options]\n"
		"       numafit-sim --cluster NxM [--trace FILE] [options]\n"
		"Play a container runtime and a kubelet for numafitd, on any machine. Or simulate "
		"a day of a\nwhole cluster: what comes of each way to choose nodes for pods. Its "
		"trace has a line for each\npod: SECONDS LIFETIME FAMILY QOS CONTAINERS CPU MEMORY "
		"[HUGEPAGES-2Mi [HUGEPAGES-1Gi]]\n\n");
	for (unsigned i = 0; i < NR_OPTIONS; i++)
		fprintf(out, "  --%-12s %-8s %s\n", options[i].name,
			options[i].value ? options[i].value : "", options[i].help);
	cluster_help(out);
	fprintf(out,
		"LeastAllocated, MostAllocated and BalancedAllocation score nodes with "
		"single-numa-node alone, as the\nreleased plugin: with other policies they "
		"filter and leave hints.\n"
		"\nExit status: 0 done; 1 the daemon did not come, broke the protocol, or two "
		"containers have a CPU\nthat is one's own; 2 wrong usage, machine or trace.\n");
}

static int parse_arguments(struct arguments *a, int argc, char **argv, struct err *e)
{
	struct option longs[NR_OPTIONS + 1] = {{0}};
	int at, c;

	for (unsigned i = 0; i < NR_OPTIONS; i++)
		longs[i] = (struct option){options[i].name,
			options[i].value ? required_argument : no_argument, NULL, 0};
	while ((c = getopt_long(argc, argv, "", longs, &at)) == 0) {
		int rc = options[at].read((char *)a + options[at].at, optarg, e);

		if (rc)
			return err_add(e, rc, "--%s", options[at].name);
	}
	if (c != -1)
		return err_set(e, EINVAL, "see numafit-sim --help");
	if (a->help)
		return 0;
	if (optind < argc)
		return err_set(
			e, EINVAL, "%s: not an option; see numafit-sim --help", argv[optind]);
	if (a->cluster.nr_nodes && (a->play.socket || a->machine || a->json))
		return err_set(e, EINVAL, "--cluster goes without --socket, --machine and --json");
	if (!a->cluster.nr_nodes && (!a->play.socket || !a->machine || !a->trace))
		return err_set(e, EINVAL,
			"--socket, --machine and --trace are needed, or --cluster; see "
			"numafit-sim --help");
	return 0;
}

static int read_trace(const char *path, struct trace *t, struct err *e)
{
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read_waiting(path, TRACE_BYTES_MAX, &text, &len, e);

	if (rc)
		return rc;
	rc = trace_yaml_read(t, text, len, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

static void print_machine_note(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "numafit-sim: %s\n", text);
}

static int complain(const struct err *e, enum exit_code code)
{
	fprintf(stderr, "numafit-sim: %s\n", e->text);
	return code;
}

static int run_simulator(const struct arguments *a, const struct topo *t, const struct trace *trace)
{
	struct sim_node node;
	struct err e = {0};

	sim_node_init(&node, t);
	node.reserved = a->reserved;
	node.name = a->node_name;
	struct report report = {.out = stdout, .json = a->json, .node = &node};
	int rc = play(trace, &node, &report, &a->play, &e);

	sim_node_fini(&node);
	return rc ? complain(&e, EXIT_WRONG) : EXIT_DONE;
}

static int run_cluster(struct arguments *a)
{
	struct err e = {0};

	a->cluster.trace = a->trace;
	int rc = cluster_run(&a->cluster, &e);

	if (rc)
		return complain(&e, rc < 0 ? EXIT_USAGE : EXIT_WRONG);
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct arguments a = {.play.wait_ms = WAIT_DEFAULT_MS, .node_name = "numafit-sim"};
	static struct topo topo;
	struct trace trace;
	struct err e = {0};

	cluster_options_init(&a.cluster);
	if (parse_arguments(&a, argc, argv, &e) < 0)
		return complain(&e, EXIT_USAGE);
	if (a.help) {
		print_help(stdout);
		return EXIT_DONE;
	}
	if (a.cluster.nr_nodes)
		return run_cluster(&a);
	if (machine_load(a.machine, &topo, print_machine_note, NULL, &e) < 0 ||
		read_trace(a.trace, &trace, &e) < 0)
		return complain(&e, EXIT_USAGE);
	if (trace.has_kubelet && !a.play.kubelet_root)
		err_set(&e, EINVAL, "%s: the trace is of a kubelet: --kubelet DIR is needed",
			a.trace);
	int code = e.code ? complain(&e, EXIT_USAGE) : run_simulator(&a, &topo, &trace);

	trace_fini(&trace);
	return code;
}
