/* What came of a day, for people: a table, and plots. */
#include <cluster-sim/report.h>

#include <math.h>
#include <numafit/number.h>
#include <string.h>

enum { PERCENT = 100 };

/* The table */

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
	{"WAITED", "placed, but not at the first try", 0},
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
		(double)o->repaired, (double)o->rejected, o->seconds};

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
/* The plots */

enum {
	WIDTH = 900,
	HEIGHT = 640,
	LEFT = 80,
	PLOT_WIDTH = 620,
	PLOT_HEIGHT = 230,
	FIRST_TOP = 50,
	SECOND_TOP = 360,
	LEGEND_LEFT = 720,
	LEGEND_STEP = 22,
	TEXT_GAP = 8,  /* between a text and what it belongs to */
	TEXT_DROP = 4, /* from the middle of a line of text to its foot */
	TEXT_HEIGHT = 18,
	LEGEND_WIDTH = 24,
	TICKS = 4,
	TICK_HOURS = 3
};

/* One of the two plots. */
struct plot {
	const char *title;
	double (*of)(const struct sample *s);
	int top;
	double most; /* at its upper end */
};

static double refused_of(const struct sample *s)
{
	return (double)s->refused;
}

static double percent_of(const struct sample *s)
{
	return s->utilisation * PERCENT;
}

/* 1, 2 or 5 times a power of ten, or four times that: ticks are round numbers. */
static double round_above(double most)
{
	enum { DECADE = 10 };
	static const double steps[] = {4, 8, 20, 40};
	double power = most > TICKS ? pow(DECADE, floor(log10(most / TICKS))) : 1;

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
		if (most <= steps[i] * power)
			return steps[i] * power;
	return most;
}

static double most_of_samples(
	double (*of)(const struct sample *s), const struct outcome *o, unsigned nr)
{
	double most = 0;

	for (unsigned i = 0; i < nr; i++)
		for (unsigned k = 0; k < SAMPLES; k++)
			most = fmax(most, of(&o[i].sample[k]));
	return most;
}

static void print_svg_axes(FILE *out, const struct plot *p)
{
	fprintf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT,
		p->top - TEXT_GAP, p->title);
	for (int i = 0; i <= TICKS; i++) {
		int y = p->top + PLOT_HEIGHT - PLOT_HEIGHT * i / TICKS;

		fprintf(out,
			"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%g</text>\n",
			LEFT, y, LEFT + PLOT_WIDTH, y, LEFT - TEXT_GAP, y + TEXT_DROP,
			p->most * i / TICKS);
	}
	for (int hour = 0; hour <= DAY_HOURS; hour += TICK_HOURS)
		fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d:00</text>\n",
			LEFT + PLOT_WIDTH * hour / DAY_HOURS, p->top + PLOT_HEIGHT + TEXT_HEIGHT,
			hour);
	fprintf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
		"stroke=\"#333\"/>\n",
		LEFT, p->top, PLOT_WIDTH, PLOT_HEIGHT);
}

static void print_polyline(
	FILE *out, const struct plot *p, const struct strategy *s, const struct outcome *o)
{
	fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
		s->colour);
	for (unsigned k = 0; k < SAMPLES; k++)
		fprintf(out, "%s%.1f,%.1f", k ? " " : "",
			LEFT + (double)PLOT_WIDTH * (k + 1) / SAMPLES,
			p->top + PLOT_HEIGHT * (1 - p->of(&o->sample[k]) / p->most));
	fprintf(out, "\"><title>%s</title></polyline>\n", s->name);
}

static void print_svg_legend(FILE *out, const struct strategy *s, unsigned i)
{
	int y = FIRST_TOP + TEXT_GAP + LEGEND_STEP * (int)i;

	fprintf(out,
		"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" "
		"stroke-width=\"3\"/>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
		LEGEND_LEFT, y, LEGEND_LEFT + LEGEND_WIDTH, y, s->colour,
		LEGEND_LEFT + LEGEND_WIDTH + TEXT_GAP, y + TEXT_DROP, s->name);
}

void cluster_svg_print(FILE *out, const char *title, const struct strategy *const *s,
	const struct outcome *o, unsigned nr)
{
	const struct plot plots[] = {
		{"Pods refused by their node, so far", refused_of, FIRST_TOP,
			round_above(most_of_samples(refused_of, o, nr))},
		{"CPUs asked for by running pods, %", percent_of, SECOND_TOP, PERCENT},
	};

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\" font-size=\"15\">%s</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, title);
	for (unsigned p = 0; p < sizeof plots / sizeof *plots; p++) {
		print_svg_axes(out, &plots[p]);
		for (unsigned i = 0; i < nr; i++)
			print_polyline(out, &plots[p], s[i], &o[i]);
	}
	for (unsigned i = 0; i < nr; i++)
		print_svg_legend(out, s[i], i);
	fputs("</svg>\n", out);
}
