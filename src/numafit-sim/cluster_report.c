#include <numafit-sim/cluster_report.h>

#include <numafit/number.h>

#include <string.h>

enum { PERCENT = 100 };

static double share(unsigned long part, unsigned long of)
{
	return of ? (double)part * PERCENT / (double)of : 0;
}

static double waited_minutes(const struct outcome *o)
{
	enum { MS_PER_MINUTE = 60 * MS_PER_S };

	return o->waited ? o->wait_ms / (double)o->waited / MS_PER_MINUTE : 0;
}

static double placed(const struct outcome *o)
{
	return (double)o->placed;
}
static double refused(const struct outcome *o)
{
	return (double)o->refused;
}
static double refused_pods(const struct outcome *o)
{
	return (double)o->refused_pods;
}
static double waited(const struct outcome *o)
{
	return (double)o->waited;
}
static double never(const struct outcome *o)
{
	return (double)o->never;
}
static double minimal(const struct outcome *o)
{
	return share(o->minimal, o->pinned);
}
static double distance(const struct outcome *o)
{
	return o->containers ? o->distance / (double)o->containers : 0;
}
static double utilisation(const struct outcome *o)
{
	return o->utilisation * PERCENT;
}
static double fragmentation(const struct outcome *o)
{
	return o->fragmentation * PERCENT;
}
static double accepted(const struct outcome *o)
{
	return (double)o->accepted;
}
static double repaired(const struct outcome *o)
{
	return (double)o->repaired;
}
static double rejected(const struct outcome *o)
{
	return (double)o->rejected;
}
static double seconds(const struct outcome *o)
{
	return o->seconds;
}

static const struct {
	const char *name, *help;
	double (*of)(const struct outcome *o);
	int digits; /* behind the point */
} columns[] = {
	{"PLACED", "pods that a node took", placed, 0},
	{"REFUSED",
		"pods that failed on the node they were bound to (TopologyAffinityError, or with\n"
		"            best-effort no memory beside that of others)",
		refused, 0},
	{"PODS", "workloads of which one or more pods were refused", refused_pods, 0},
	{"WAITED", "placed, but not at the first try", waited, 0},
	{"MINUTES", "that these waited, on average", waited_minutes, 1},
	{"NEVER", "still waiting at the end of the day", never, 0},
	{"MINIMAL%",
		"of the placed pods with CPUs or memory of their own: those whose containers lie "
		"on as\n            few NUMA nodes as on an empty node",
		minimal, 2},
	{"DISTANCE", "average distance within the NUMA nodes of a container (10: one NUMA node)",
		distance, 3},
	{"USED%", "CPUs that running pods ask for, of all that pods may have, over the day",
		utilisation, 1},
	{"FRAGM%",
		"of the CPUs that nobody asks for: those that pods of 8 CPUs, each on one NUMA\n"
		"            node, could not have, over the day",
		fragmentation, 1},
	{"ACCEPT", "hints that the node followed", accepted, 0},
	{"REPAIR", "hints in whose place the node found NUMA nodes as good", repaired, 0},
	{"REJECT", "hints that the node dropped", rejected, 0},
	{"SECONDS", "that the simulation took", seconds, 1},
};
enum { NR_COLUMNS = sizeof columns / sizeof *columns, NAME_WIDTH = 16, COUNT_WIDTH = 7 };

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
		fprintf(out, "%-*s", NAME_WIDTH, s[i]->name);
		for (unsigned c = 0; c < NR_COLUMNS; c++)
			fprintf(out, " %*.*f", width(c), columns[c].digits, columns[c].of(&o[i]));
		fputc('\n', out);
	}
}

void cluster_report_help(FILE *out)
{
	for (unsigned c = 0; c < NR_COLUMNS; c++)
		fprintf(out, "  %-9s %s\n", columns[c].name, columns[c].help);
}
