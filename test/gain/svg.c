#include "gain.h"

#include <math.h>
#include <stdio.h>

/* A panel for each figure: a bar for each arm up to its median, a line from the smallest to the
 * largest run, and an axis from 0 to the next round number above the largest run. */

enum { WIDTH = 760, LEFT = 170, RIGHT = 110, BAR = 18, STEP = 26, HEAD = 34, FOOT = 44, TOP = 56 };
enum { TICKS = 4, PLOT = WIDTH - LEFT - RIGHT };

static const char style[] =
	"<style>text{font:13px sans-serif;fill:#222}.t{font-weight:bold}.s{fill:#555;font-size:12px}"
	"rect{fill:#9aa7b4}rect.numafit{fill:#1f6fb2}line{stroke:#bbb}line.r{stroke:#222;stroke-width:1.5}"
	"</style>\n";

/* The smallest of 1, 2, 4, 5, 8 times a power of ten that is not below the value: four ticks of it
 * are short. */
static double round_up(double value)
{
	static const double steps[] = {1, 2, 4, 6, 8, 10};
	double power = value > 0 ? pow(10, floor(log10(value))) : 1;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] * power >= value)
			return steps[i] * power;
	return 10 * power;
}

static unsigned nr_arms(const struct gain *g)
{
	unsigned nr = 0;

	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		nr += g->arm[arm].there;
	return nr;
}

static double largest(const struct gain *g, unsigned load, unsigned f)
{
	double max = 0;

	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		max = fmax(max, gain_spread(g, load, arm, f).max);
	return round_up(max);
}

static void draw_axis(FILE *to, double top, double bottom, double max)
{
	for (int i = 0; i <= TICKS; i++) {
		double x = LEFT + (double)PLOT * i / TICKS;

		(void)fprintf(
			to, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>", x, top, x, bottom);
		(void)fprintf(to,
			"<text class='s' x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n", x,
			bottom + 15, max * i / TICKS);
	}
}

static void draw_bar(const struct gain *g, FILE *to, unsigned load, unsigned arm, unsigned f,
	double y, double max)
{
	struct spread s = gain_spread(g, load, arm, f);
	double scale = PLOT / max, middle = y + BAR / 2.0;
	char number[NUMBER_TEXT_MAX];

	(void)fprintf(to, "<text x='%d' y='%.1f' text-anchor='end'>%s</text>", LEFT - 8, middle + 4,
		arm_titles[arm]);
	if (!s.n)
		return;
	(void)fprintf(to, "<rect class='%s' x='%d' y='%.1f' width='%.1f' height='%d'/>",
		arm_names[arm], LEFT, y, s.median * scale, BAR);
	(void)fprintf(to, "<line class='r' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>",
		LEFT + s.min * scale, middle, LEFT + s.max * scale, middle);
	for (unsigned end = 0; end < 2; end++)
		(void)fprintf(to, "<line class='r' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>",
			LEFT + (end ? s.max : s.min) * scale, middle - 4,
			LEFT + (end ? s.max : s.min) * scale, middle + 4);
	(void)fprintf(to, "<text x='%d' y='%.1f'>%s</text>\n", WIDTH - RIGHT + 12, middle + 4,
		number_text(number, s.median));
}

/* Returns where the next one begins. */
static double draw_panel(const struct gain *g, FILE *to, unsigned load, unsigned f, double y)
{
	const struct figure_kind *k = &load_kinds[load].figure[f];
	double max = largest(g, load, f), bars = y + HEAD, bottom = bars + STEP * nr_arms(g);

	(void)fprintf(to, "<text class='t' x='%d' y='%.1f'>%s, %s</text>", LEFT, y + 16,
		load_kinds[load].name, k->name);
	(void)fprintf(to,
		"<text class='s' x='%d' y='%.1f' text-anchor='end'>%s (%s is better)</text>\n",
		WIDTH - RIGHT, y + 16, k->unit, k->more ? "more" : "less");
	draw_axis(to, bars - 4, bottom, max);
	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		if (g->arm[arm].there) {
			draw_bar(g, to, load, arm, f, bars, max);
			bars += STEP;
		}
	return bottom + FOOT;
}

void gain_draw(const struct gain *g, FILE *to)
{
	unsigned panels = 0;
	double y = TOP;

	for (unsigned load = 0; load < NR_LOADS; load++)
		panels += g->runs_load[load] ? load_kinds[load].nr_figures : 0;
	double height = TOP + panels * (HEAD + STEP * nr_arms(g) + FOOT);
	(void)fprintf(to,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%.0f' viewBox='0 0 %d %.0f'>\n",
		WIDTH, height, WIDTH, height);
	(void)fputs(style, to);
	(void)fprintf(to, "<path d='M0 0h%dv%.0fH0z' fill='#fff'/>\n", WIDTH, height);
	(void)fprintf(to,
		"<text class='t' x='16' y='24'>%u CPU%s of %u on %u NUMA node%s: medians of %u runs; "
		"the line is from the smallest run to the largest</text>\n",
		g->ask_cpus, g->ask_cpus == 1 ? "" : "s", g->topo->nr_cpus, g->topo->ids.nr,
		g->topo->ids.nr == 1 ? "" : "s", g->runs);
	for (unsigned load = 0; load < NR_LOADS; load++)
		for (unsigned f = 0; g->runs_load[load] && f < load_kinds[load].nr_figures; f++)
			y = draw_panel(g, to, load, f, y);
	(void)fputs("</svg>\n", to);
}
