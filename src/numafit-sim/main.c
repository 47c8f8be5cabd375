#include <numafit-sim/trace_yaml.h>
#include <errno.h>
#include <command/command.h>
#include <host/discover.h>
#include <io/file.h>
#include <cluster-sim/cluster.h>
#include <numafit-sim/play.h>
#include <numafit/number.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
	bool json;
};

static int read_seconds_argument(
	const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t seconds;
	int rc = text_u64(value, strlen(value), WAIT_MAX_S, &seconds, e);

	(void)o;
	if (!rc)
		*(unsigned *)member = (unsigned)seconds * MS_PER_S;
	return rc;
}

static int read_cpus_argument(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return cpuset_parse(member, value, strlen(value), e);
}

static int read_number_argument(
	const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), NUMBER_MAX, &number, e);

	(void)o;
	if (!rc)
		*(unsigned *)member = (unsigned)number;
	return rc;
}

static int read_percent(const struct option_row *o, void *member, char *value, struct err *e)
{
	enum { PERCENT_MAX = 100 };
	unsigned number;
	int rc = read_number_argument(o, &number, value, e);

	if (!rc && number > PERCENT_MAX)
		return err_set(e, ERANGE, "%u is more than %d", number, PERCENT_MAX);
	if (!rc)
		*(unsigned *)member = number;
	return rc;
}

static int read_seed(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return text_u64(value, strlen(value), UINT64_MAX, member, e);
}

static int read_delay(const struct option_row *o, void *member, char *value, struct err *e)
{
	unsigned ms;
	int rc = read_number_argument(o, &ms, value, e);

	if (!rc)
		*(int64_t *)member = ms;
	return rc;
}

static int read_moves(const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), DEFRAG_MOVES_MAX, &number, e);

	(void)o;
	if (!rc)
		*(unsigned *)member = (unsigned)number;
	return rc;
}

static int read_interval(const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t seconds;
	int rc = text_u64(value, strlen(value), MOVE_INTERVAL_MAX_S, &seconds, e);

	(void)o;
	if (!rc)
		*(int64_t *)member = (int64_t)seconds * MS_PER_S;
	return rc;
}

static int read_bytes(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return quantity_parse_count(value, QUANTITY_WHOLE, member, e);
}

static int read_rate(const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t bytes;
	int rc = read_bytes(o, &bytes, value, e);

	if (!rc && !bytes)
		return err_set(e, ERANGE, "nothing would ever be moved");
	if (!rc)
		*(uint64_t *)member = bytes;
	return rc;
}

static int read_policy_argument(
	const struct option_row *o, void *member, char *value, struct err *e)
{
	unsigned word;
	int rc = option_word(o, &word, value, e);

	if (!rc)
		*(enum topology_policy *)member =
			(enum topology_policy)text_index(topology_policy_words, NR_POLICIES, value);
	return rc;
}

static int read_size(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return cluster_size_parse(member, value, e);
}

static int read_strategies(const struct option_row *o, void *member, char *value, struct err *e)
{
	struct cluster_options *cluster = member;
	int nr = strategy_list(value, cluster->strategy, e);

	(void)o;
	if (nr >= 0)
		cluster->nr_strategies = (unsigned)nr;
	return nr < 0 ? nr : 0;
}

#define AT(member) offsetof(struct arguments, member)
static const struct option_row rows[] = {
	{.name = "socket",
		.value = "PATH",
		.help = "listen there for the daemon, as a runtime does",
		.read = option_text,
		.at = AT(play.socket),
		.completes = COMPLETE_FILE},
	{.name = "machine",
		.value = "NAME",
		.help = "the machine to be: a name, a path or \"this\", as for numafitd",
		.read = option_text,
		.at = AT(machine),
		.completes = COMPLETE_FILE},
	{.name = "trace",
		.value = "FILE",
		.help = "what to do, step by step",
		.read = option_text,
		.at = AT(trace),
		.completes = COMPLETE_FILE},
	{.name = "wait",
		.value = "SECONDS",
		.help = "for the daemon to come (default 10)",
		.read = read_seconds_argument,
		.at = AT(play.wait_ms)},
	{.name = "reserved",
		.value = "CPUS",
		.help = "the daemon's reservedSystemCPUs, to draw and to check them",
		.read = read_cpus_argument,
		.at = AT(reserved)},
	{.name = "kubelet",
		.value = "DIR",
		.help = "be a kubelet too, with that root directory",
		.read = option_text,
		.at = AT(play.kubelet_root),
		.completes = COMPLETE_DIRECTORY},
	{.name = "node-name",
		.value = "NAME",
		.help = "the daemon's nodeName, for hints (default numafit-sim)",
		.read = option_text,
		.at = AT(node_name)},
	{.name = "state-change",
		.help = "send events as NRI before 0.12 does",
		.read = option_flag,
		.at = AT(play.state_change)},
	{.name = "forget",
		.help = "report containers as they were created after restart-runtime, as CRI-O does",
		.read = option_flag,
		.at = AT(play.forgets)},
	{.name = "json",
		.help = "print lines of JSON instead of a table",
		.read = option_flag,
		.at = AT(json)},
	{.name = "cluster",
		.value = "NxM",
		.help = "instead: a day of N nodes with M NUMA nodes each, as data",
		.read = read_size,
		.at = AT(cluster)},
	{.name = "pods",
		.value = "N",
		.help = "of the cluster's day (default 20 for each node)",
		.read = read_number_argument,
		.at = AT(cluster.nr_pods)},
	{.name = "seed",
		.value = "N",
		.help = "another day (default 1)",
		.read = read_seed,
		.at = AT(cluster.seed)},
	{.name = "load",
		.value = "PERCENT",
		.help = "of the CPUs that the day's pods would have (default 85)",
		.read = read_percent,
		.at = AT(cluster.load_percent)},
	{.name = "strategies",
		.value = "LIST",
		.help = "how nodes are chosen, as \"stock,least-numa-nodes\" (default all)",
		.read = read_strategies,
		.at = AT(cluster)},
	{.name = "policy",
		.value = "none|best-effort|restricted|single-numa-node",
		.help = "the nodes' topologyManagerPolicy (default restricted)",
		.read = read_policy_argument,
		.at = AT(cluster.policy),
		.completes = COMPLETE_WORDS},
	{.name = "percentage",
		.value = "PERCENT",
		.help = "percentageOfNodesToScore (default 0: as kube-scheduler)",
		.read = read_percent,
		.at = AT(cluster.world.percent_to_score)},
	{.name = "weight",
		.value = "N",
		.help = "of the extender's score (default 10; the stock ones have 1)",
		.read = read_percent,
		.at = AT(cluster.world.weight)},
	{.name = "delay",
		.value = "MS",
		.help = "from a change of a node to its report (default 300)",
		.read = read_delay,
		.at = AT(cluster.world.report_delay_ms)},
	{.name = "moves",
		.value = "N",
		.help = "of a plan of stock-moves and packed-moves, up to 8 (default 3)",
		.read = read_moves,
		.at = AT(cluster.world.moves.moves)},
	{.name = "moves-per-hour",
		.value = "N",
		.help = "of a node (default 12)",
		.read = read_number_argument,
		.at = AT(cluster.world.moves.per_hour)},
	{.name = "move-bytes",
		.value = "BYTES",
		.help = "of memory that a node moves in a minute; containers with more stay where they are (default 8Gi)",
		.read = read_bytes,
		.at = AT(cluster.world.moves.bytes_per_minute)},
	{.name = "move-interval",
		.value = "SECONDS",
		.help = "between two moves of one container (default 600)",
		.read = read_interval,
		.at = AT(cluster.world.moves.interval_ms)},
	{.name = "move-rate",
		.value = "BYTES",
		.help = "of memory that is moved in a second (default 1G)",
		.read = read_rate,
		.at = AT(cluster.world.moves.bytes_per_s)},
	{.name = "move-trials",
		.value = "N",
		.help = "states that a plan may look at (default 500)",
		.read = read_number_argument,
		.at = AT(cluster.world.moves.trials)},
	{.name = "movable",
		.value = "PERCENT",
		.help = "of the pods that may be moved (default 100)",
		.read = read_percent,
		.at = AT(cluster.world.moves.movable_percent)},
	{.name = "jobs",
		.value = "N",
		.help = "strategies at the same time (default: processors)",
		.read = read_number_argument,
		.at = AT(cluster.jobs)},
	{.name = "svg",
		.value = "FILE",
		.help = "plot the cluster's day",
		.read = option_text,
		.at = AT(cluster.svg),
		.completes = COMPLETE_FILE},
	{.name = "table",
		.help = "and print the table, too",
		.read = option_flag,
		.at = AT(cluster.table)},
	{0},
};
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

static void print_machine_note(void *ctx, const struct correction *c)
{
	char text[CORRECTION_TEXT_MAX];

	(void)ctx;
	(void)fprintf(stderr, "numafit-sim: %s\n", correction_text(c, text));
}

/* What a trace has that it must not have is as wrong as an option. */
static enum exit_code code_of_input(int rc)
{
	return rc == -EINVAL || rc == -ERANGE || rc == -E2BIG || rc == -ENODATA ? EXIT_USAGE
										: EXIT_CANNOT;
}

static int run_simulator(const struct call *c, const struct arguments *a, const struct topo *t,
	const struct trace *trace)
{
	struct sim_node node;
	struct err e = {0};

	sim_node_init(&node, t);
	node.reserved = a->reserved;
	node.name = a->node_name;
	struct report report = {.out = stdout, .json = a->json, .node = &node};
	int rc = play(trace, &node, &report, &a->play, &e);

	sim_node_fini(&node);
	if (rc == -EINVAL || rc == -EPROTO || rc == -ECONNRESET || rc == -ETIMEDOUT)
		return call_fail(c, EXIT_NO, &e);
	return rc ? call_fail(c, EXIT_CANNOT, &e) : EXIT_DONE;
}

static int run_cluster(const struct call *c, struct arguments *a)
{
	struct err e = {0};

	a->cluster.trace = a->trace;
	int rc = cluster_run(&a->cluster, &e);

	return rc ? call_fail(c, rc > 0 ? EXIT_NO : code_of_input(rc), &e) : EXIT_DONE;
}

static int run_arguments(const struct call *c, struct arguments *a)
{
	static struct topo topo;
	struct trace trace;
	struct err e = {0};

	if (a->cluster.nr_nodes && (a->play.socket || a->machine || a->json))
		return call_misused(c, "--cluster goes without --socket, --machine and --json");
	if (!a->cluster.nr_nodes && (!a->play.socket || !a->machine || !a->trace))
		return call_misused(c, "--socket, --machine and --trace are needed, or --cluster");
	if (a->cluster.nr_nodes)
		return run_cluster(c, a);
	int rc = machine_load(a->machine, &topo, print_machine_note, NULL, &e);
	if (!rc)
		rc = read_trace(a->trace, &trace, &e);
	if (rc)
		return call_fail(c, code_of_input(rc), &e);
	int code =
		trace.has_kubelet && !a->play.kubelet_root
			? call_misused(c, "%s: the trace is of a kubelet: --kubelet DIR is needed",
				  a->trace)
			: run_simulator(c, a, &topo, &trace);
	trace_fini(&trace);
	return code;
}

static int run_numafit_sim(const struct call *c)
{
	struct arguments a = {.play.wait_ms = WAIT_DEFAULT_MS, .node_name = "numafit-sim"};

	cluster_options_init(&a.cluster);
	int code = call_read(c, &a);
	return code >= 0 ? code : run_arguments(c, &a);
}

static void print_indented(FILE *out, const char *text)
{
	for (const char *end; *text; text = end + 1) {
		end = strchr(text, '\n');
		(void)fprintf(out, "  %.*s\n", (int)(end - text), text);
	}
}

static void print_more(FILE *out)
{
	(void)fputs(
		"\nA trace of one node is YAML, and has what a kubelet does, step by step:\n", out);
	print_indented(out, trace_yaml_example);
	cluster_help(out);
}

static const struct command numafit_sim = {
	.about =
		"Play a container runtime and a kubelet for numafitd, on any machine. Or simulate a day "
		"of a whole cluster: what comes of each way to choose nodes for pods. Its trace has a "
		"line for each pod: SECONDS LIFETIME FAMILY QOS CONTAINERS CPU MEMORY [HUGEPAGES-2Mi "
		"[HUGEPAGES-1Gi]]\n"
		"\n"
		"LeastAllocated, MostAllocated and BalancedAllocation score nodes with single-numa-node "
		"alone, as the released plugin: with other policies they filter and leave hints.",
	.forms = {"--socket PATH --machine NAME --trace FILE [OPTIONS]",
		"--cluster NxM [--trace FILE] [OPTIONS]"},
	.options = rows,
	.examples = {{"numafit-sim --socket /tmp/nri.sock --machine kep3545-8 --trace demo.yaml",
			     "play a trace for a numafitd whose nri.socketPath that is"},
		{"numafit-sim --cluster 20x4 --policy single-numa-node",
			"a day of 20 nodes with 4 NUMA nodes each"}},
	.exits = {[EXIT_NO] =
			  "the daemon did not come, broke the protocol, or two containers have a "
			  "CPU that is one's own",
		[EXIT_USAGE] = "wrong usage, machine or trace",
		[EXIT_CANNOT] = "the machine or the trace cannot be read"},
	.more = print_more,
	.run = run_numafit_sim,
};

static const struct command *const commands[] = {&numafit_sim};

static const struct section sections[] = {
	{"SEE ALSO", "numafitd(8), numafit(1)"},
	{0},
};

static const struct program program = {
	.name = "numafit-sim",
	.man = 1,
	.summary = "play a container runtime, a kubelet or a cluster for numafit",
	.commands = commands,
	.nr = 1,
	.sections = sections,
};

int main(int argc, char **argv)
{
	return program_run(&program, argc, argv);
}
