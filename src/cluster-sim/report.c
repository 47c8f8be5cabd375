/* What came of a day, for people: a table. */
#include <cluster-sim/report.h>

#include <numafit/number.h>
#include <string.h>

enum { PERCENT = 100 };
#define GI ((double)(UINT64_C(1) << 30))

static const struct {
	const char *name, *help;
	int digits; /* behind the point */
} columns[] = {
	{"PLACED", "pods that a node took", 0},
	{"REFUSED",
		"pods that failed on the node they were bound to (TopologyAffinityError, or with\n"
		"            best-effort no memory beside that of others)",
		0},
	{"PODS", "workloads of which one or more pods were refused", 0},
	{"WAITED", "placed, but not at once", 0},
	{"MINUTES", "that these waited, on average", 1},
	{"NEVER", "still waiting at the end of the day", 0},
	{"MINIMAL%",
		"of the placed pods with CPUs or memory of their own: those whose containers lie "
		"on as\n            few NUMA nodes as on an empty node",
		2},
	{"DISTANCE", "average distance within the NUMA nodes of a container (10: one NUMA node)",
		3},
	{"USED%", "CPUs that running pods ask for, of all that pods may have, over the day", 1},
	{"FRAGM%",
		"of the CPUs that nobody asks for: those that pods of 8 CPUs, each on one NUMA\n"
		"            node, could not have, over the day",
		1},
	{"ACCEPT", "hints that the node followed", 0},
	{"REPAIR", "hints in whose place the node found NUMA nodes as good", 0},
	{"REJECT", "hints that the node dropped", 0},
	{"AVOIDED", "refusals avoided: pods that a node took once it had moved others", 0},
	{"NARROWED",
		"likewise, pods that it would have put on more NUMA nodes than on an empty node",
		0},
	{"MOVES", "of containers to other NUMA nodes", 0},
	{"MOVED", "memory of these, GiB", 1},
	{"MOVING", "seconds that these took, one after another", 0},
	{"SECONDS", "that the simulation took", 1},
};
enum { NR_COLUMNS = sizeof columns / sizeof *columns, NAME_WIDTH = 16, COUNT_WIDTH = 7 };

/* What stands in each column. */
static void outcome_figures(const struct outcome *o, double figure[NR_COLUMNS])
{
	enum { MS_PER_MINUTE = 60 * MS_PER_S };
	double minutes = o->waited ? o->wait_ms / (double)o->waited / MS_PER_MINUTE : 0;
	double minimal = o->pinned ? (double)o->minimal * PERCENT / (double)o->pinned : 0;
	double distance = o->containers ? o->distance / (double)o->containers : 0;

	const double all[NR_COLUMNS] = {(double)o->placed, (double)o->refused,
		(double)o->refused_pods, (double)o->waited, minutes, (double)o->never, minimal,
		distance, o->utilisation * PERCENT, o->fragmentation * PERCENT, (double)o->accepted,
		(double)o->repaired, (double)o->rejected, (double)o->avoided, (double)o->narrowed,
		(double)o->moves, (double)o->bytes_moved / GI, o->moving_ms / MS_PER_S, o->seconds};

	memcpy(figure, all, sizeof all);
}

/* Wide enough for the name and for counts below ten millions. */
static int width(unsigned column)
{
	int name = (int)strlen(columns[column].name);

	return name < COUNT_WIDTH ? COUNT_WIDTH : name;
}

void cluster_report_print(
	FILE *out, const struct strategy *const *s, const struct outcome *o, unsigned nr)
{
	fprintf(out, "%-*s", NAME_WIDTH, "STRATEGY");
	for (unsigned c = 0; c < NR_COLUMNS; c++)
		fprintf(out, " %*s", width(c), columns[c].name);
	fputc('\n', out);
	for (unsigned i = 0; i < nr; i++) {
		double figure[NR_COLUMNS];

		outcome_figures(&o[i], figure);
		fprintf(out, "%-*s", NAME_WIDTH, s[i]->name);
		for (unsigned c = 0; c < NR_COLUMNS; c++)
			fprintf(out, " %*.*f", width(c), columns[c].digits, figure[c]);
		fputc('\n', out);
	}
}

void cluster_report_help(FILE *out)
{
	for (unsigned c = 0; c < NR_COLUMNS; c++)
		fprintf(out, "  %-9s %s\n", columns[c].name, columns[c].help);
}
