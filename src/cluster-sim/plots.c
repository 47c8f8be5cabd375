#include <cluster-sim/plots.h>

#include <math.h>
#include <string.h>

enum {
	PERCENT = 100,
	DECADE = 10,
	LEFT = 60,
	TOP = 72,
	PANEL_WIDTH = 150,
	PANEL_HEIGHT = 110,
	PANEL_GAP = 12,
	ROW_STEP = PANEL_HEIGHT + 48,
	BOTTOM = 36,
	WIDTH_LEAST = 720,
	PAD = 5,       /* between a panel's frame and the lowest and highest values */
	TEXT_GAP = 6,  /* between a text and what it belongs to */
	TEXT_DROP = 4, /* from the middle of a line of text to its foot */
	TEXT_HEIGHT = 16,
	TICKS = 4, /* about so many steps of an axis */
	TICK_HOURS = 6
};

/* What is measured each quarter of an hour. */
static double refused_of(const struct sample *s)
{
	return (double)s->refused;
}

static double waiting_of(const struct sample *s)
{
	return (double)s->waiting;
}

static double fragmentation_of(const struct sample *s)
{
	return s->fragmentation * PERCENT;
}

static double utilisation_of(const struct sample *s)
{
	return s->utilisation * PERCENT;
}

static double moves_of(const struct sample *s)
{
	return (double)s->moves;
}

static const struct measure {
	const char *title;
	double (*of)(const struct sample *s);
	bool at_end; /* the figure in a panel is the last value; else the average of the day */
} measures[] = {
	{"Pods refused by their node, so far", refused_of, true},
	{"Pods that wait", waiting_of, false},
	{"Fragmentation: of the CPUs that nobody asks for, those that pods of 8 CPUs could not have, %",
		fragmentation_of, false},
	{"CPUs that running pods ask for, %", utilisation_of, false},
	{"Containers that nodes have moved, so far", moves_of, true}, /* where one may */
};
enum { NR_MEASURES = sizeof measures / sizeof *measures };

static unsigned count_measures(const struct strategy *const *s, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		if (s[i]->moves)
			return NR_MEASURES;
	return NR_MEASURES - 1;
}

/* From round number to round number, with all values of all strategies between them. */
struct axis {
	double low, high, step;
};

/* 1, 2 or 5 times a power of ten, not below `least`. */
static double round_step(double least)
{
	static const double steps[] = {1, 2, 5, DECADE};
	double power = pow(DECADE, floor(log10(least)));

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
		if (least <= steps[i] * power)
			return steps[i] * power;
	return DECADE * power;
}

static struct axis axis_of(const struct measure *m, const struct outcome *o, unsigned nr)
{
	double least = m->of(&o->sample[0]), most = least;

	for (unsigned i = 0; i < nr; i++)
		for (unsigned k = 0; k < SAMPLES; k++) {
			least = fmin(least, m->of(&o[i].sample[k]));
			most = fmax(most, m->of(&o[i].sample[k]));
		}
	struct axis a = {.step = most > least ? round_step((most - least) / TICKS) : 1};
	a.low = floor(least / a.step) * a.step;
	a.high = fmax(ceil(most / a.step) * a.step, a.low + a.step);
	return a;
}

/* Where a panel is. */
struct place {
	int left, top;
};

static struct place place_of(unsigned measure, unsigned strategy)
{
	return (struct place){
		LEFT + (int)strategy * (PANEL_WIDTH + PANEL_GAP), TOP + (int)measure * ROW_STEP};
}

static double y_of(const struct axis *a, int top, double value)
{
	return top + PAD + (PANEL_HEIGHT - 2 * PAD) * (a->high - value) / (a->high - a->low);
}

static double x_of(int left, unsigned sample)
{
	return left + (double)PANEL_WIDTH * (sample + 1) / SAMPLES;
}

/* Lines across all panels of the row, with their values. */
static void print_row_axis(FILE *out, const struct axis *a, unsigned measure, unsigned nr)
{
	struct place first = place_of(measure, 0), last = place_of(measure, nr - 1);
	int steps = (int)lround((a->high - a->low) / a->step);

	(void)fprintf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT,
		first.top - TEXT_GAP, measures[measure].title);
	for (int i = 0; i <= steps; i++) {
		double value = a->low + i * a->step, y = y_of(a, first.top, value);

		(void)fprintf(out,
			"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>\n"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			LEFT, y, last.left + PANEL_WIDTH, y, LEFT - TEXT_GAP, y + TEXT_DROP, value);
	}
}

static void print_panel_frame(FILE *out, struct place at, bool has_hours)
{
	(void)fprintf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
		"stroke=\"#888\"/>\n",
		at.left, at.top, PANEL_WIDTH, PANEL_HEIGHT);
	for (int hour = 0; hour <= DAY_HOURS; hour += TICK_HOURS) {
		int x = at.left + PANEL_WIDTH * hour / DAY_HOURS;

		(void)fprintf(out,
			"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#888\"/>\n", x,
			at.top + PANEL_HEIGHT, x, at.top + PANEL_HEIGHT + TEXT_DROP);
		if (has_hours && hour < DAY_HOURS)
			(void)fprintf(out,
				"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d:00</text>\n", x,
				at.top + PANEL_HEIGHT + TEXT_HEIGHT, hour);
	}
}

/* Between the least and the most of all strategies, for comparison. */
static void print_range(FILE *out, const struct axis *a, const struct measure *m, struct place at,
	const struct outcome *o, unsigned nr)
{
	(void)fputs("<polygon fill=\"#eeeeee\" points=\"", out);
	for (unsigned k = 0; k < 2 * SAMPLES; k++) {
		bool back = k >= SAMPLES;
		unsigned sample = back ? 2 * SAMPLES - 1 - k : k;
		double value = m->of(&o->sample[sample]);

		for (unsigned i = 1; i < nr; i++) {
			double other = m->of(&o[i].sample[sample]);

			value = back ? fmin(value, other) : fmax(value, other);
		}
		(void)fprintf(out, "%s%.1f,%.1f", k ? " " : "", x_of(at.left, sample),
			y_of(a, at.top, value));
	}
	(void)fputs("\"/>\n", out);
}

static double figure_of(const struct measure *m, const struct outcome *o)
{
	double sum = 0;

	for (unsigned k = 0; k < SAMPLES; k++)
		sum += m->of(&o->sample[k]);
	return m->at_end ? m->of(&o->sample[SAMPLES - 1]) : sum / SAMPLES;
}

static void print_curve(FILE *out, const struct axis *a, const struct measure *m, struct place at,
	const struct strategy *s, const struct outcome *o)
{
	(void)fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"",
		s->colour);
	for (unsigned k = 0; k < SAMPLES; k++)
		(void)fprintf(out, "%s%.1f,%.1f", k ? " " : "", x_of(at.left, k),
			y_of(a, at.top, m->of(&o->sample[k])));
	(void)fprintf(out,
		"\"><title>%s</title></polyline>\n"
		"<text x=\"%d\" y=\"%d\" fill=\"%s\">%.*f</text>\n",
		s->name, at.left + TEXT_GAP, at.top + TEXT_HEIGHT, s->colour, m->at_end ? 0 : 1,
		figure_of(m, o));
}

static void print_row(FILE *out, unsigned measure, bool is_last, const struct strategy *const *s,
	const struct outcome *o, unsigned nr)
{
	const struct measure *m = &measures[measure];
	const struct axis a = axis_of(m, o, nr);

	for (unsigned i = 0; i < nr; i++)
		print_range(out, &a, m, place_of(measure, i), o, nr);
	print_row_axis(out, &a, measure, nr);
	for (unsigned i = 0; i < nr; i++) {
		print_panel_frame(out, place_of(measure, i), is_last);
		print_curve(out, &a, m, place_of(measure, i), s[i], &o[i]);
	}
}

void cluster_svg_print(FILE *out, const char *title, const struct strategy *const *s,
	const struct outcome *o, unsigned nr)
{
	const unsigned rows = count_measures(s, nr);
	int width = place_of(0, nr).left + PANEL_GAP, height = TOP + (int)rows * ROW_STEP;

	width = width > WIDTH_LEAST ? width : WIDTH_LEAST;
	(void)fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"18\" font-size=\"15\">%s</text>\n",
		width, height, width, height, width, height, LEFT, title);
	for (unsigned i = 0; i < nr; i++)
		(void)fprintf(out,
			"<text x=\"%d\" y=\"%d\" fill=\"%s\" font-size=\"13\" "
			"font-weight=\"bold\">%s</text>\n",
			place_of(0, i).left, TOP - TEXT_GAP - 2 * TEXT_HEIGHT, s[i]->colour,
			s[i]->name);
	for (unsigned m = 0; m < rows; m++)
		print_row(out, m, m + 1 == rows, s, o, nr);
	(void)fprintf(out,
		"<text x=\"%d\" y=\"%d\" fill=\"#666\">Number: all refusals, all moves; else the average of the day. Grey: from the "
		"least to the most of all strategies."
		"</text>\n</svg>\n",
		LEFT, height - TEXT_GAP);
}
