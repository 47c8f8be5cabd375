#include "gain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *const arm_names[NR_ARMS] = {"unpinned", "static", "numafit", "far"};
const char *const arm_titles[NR_ARMS] = {
	"no pinning", "static, as a kubelet", "numafit", "worst: memory far"};

const struct load_kind load_kinds[NR_LOADS] = {
	[LOAD_TRIAD] = {"triad",
		"a[i] = b[i] + s * c[i], each thread on memory that it touched first",
		{{"bandwidth", "GB/s", true}}, 1},
	[LOAD_CHASE] = {"chase", "each read waits for the one before, all threads on one heap",
		{{"one read", "ns", false}}, 1},
	[LOAD_LOOP] = {"loop",
		"longest gap of a thread that reads the clock, in each millisecond, beside a busy pool",
		{{"p50", "us", false}, {"p99", "us", false}, {"p99.9", "us", false},
			{"max", "us", false}},
		4},
	[LOAD_REDIS] = {"redis", "GET of random keys, by redis-benchmark from the pool's CPUs",
		{{"rate", "requests/s", true}, {"p99", "ms", false}}, 2},
};

void gain_note(struct gain *g, const char *fmt, ...)
{
	va_list args;

	if (g->nr_notes == NOTES_MAX)
		return;
	va_start(args, fmt);
	(void)vsnprintf(g->note[g->nr_notes++], NOTE_TEXT_MAX, fmt, args);
	va_end(args);
}

struct spread gain_spread(const struct gain *g, enum load_id load, enum arm_id arm, unsigned figure)
{
	const struct outcome *o = &g->of[load][arm];

	return spread_of(o->value[figure], o->nr);
}

static void print_row(const struct gain *g, FILE *to, unsigned load, unsigned arm, unsigned f)
{
	const struct outcome *o = &g->of[load][arm];
	struct spread s = gain_spread(g, load, arm, f), ours = gain_spread(g, load, ARM_NUMAFIT, f);
	char median[NUMBER_TEXT_MAX], min[NUMBER_TEXT_MAX], max[NUMBER_TEXT_MAX];
	char verdict[VERDICT_TEXT_MAX] = "", range[2 * NUMBER_TEXT_MAX + 4];
	char stopped[NUMBER_TEXT_MAX] = "-", remote[NUMBER_TEXT_MAX] = "-";

	if (!s.n) {
		(void)fprintf(to, "  %-20s  %9s\n", arm_titles[arm], "-");
		return;
	}
	if (arm != ARM_NUMAFIT)
		(void)verdict_text(verdict, &ours, &s, load_kinds[load].figure[f].more);
	if (g->cgroups)
		(void)snprintf(stopped, sizeof stopped, "%" PRIu64, o->throttled);
	if (o->nr_remote)
		(void)snprintf(remote, sizeof remote, "%.0f %%", o->remote / o->nr_remote * 100);
	(void)snprintf(
		range, sizeof range, "%s .. %s", number_text(min, s.min), number_text(max, s.max));
	(void)fprintf(to, "  %-20s  %9s  %-21s  %7s  %6s  %s\n", arm_titles[arm],
		number_text(median, s.median), range, stopped, remote, verdict);
}

static void print_figure(const struct gain *g, FILE *to, unsigned load, unsigned f)
{
	const struct figure_kind *k = &load_kinds[load].figure[f];

	(void)fprintf(to, "\n%s, %s, %s (%s is better)\n", load_kinds[load].name, k->name, k->unit,
		k->more ? "more" : "less");
	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		if (g->arm[arm].there)
			print_row(g, to, load, arm, f);
}

/* What follows from the table. */

static unsigned print_verdicts(const struct gain *g, FILE *to, enum verdict wanted, unsigned arm)
{
	char text[VERDICT_TEXT_MAX];
	unsigned nr = 0;

	for (unsigned load = 0; load < NR_LOADS; load++)
		for (unsigned f = 0; f < load_kinds[load].nr_figures; f++) {
			const struct figure_kind *k = &load_kinds[load].figure[f];
			struct spread ours = gain_spread(g, load, ARM_NUMAFIT, f),
				      theirs = gain_spread(g, load, arm, f);

			if (!ours.n || verdict_of(&ours, &theirs, k->more) != wanted)
				continue;
			(void)fprintf(to, "%s%s, %s: %s", nr++ ? "; " : "", load_kinds[load].name,
				k->name, verdict_text(text, &ours, &theirs, k->more));
		}
	return nr;
}

static void print_against(const struct gain *g, FILE *to, unsigned arm)
{
	(void)fprintf(to, "  numafit against \"%s\": ", arm_titles[arm]);
	unsigned nr = print_verdicts(g, to, VERDICT_BETTER, arm);

	(void)fputs(nr ? "; " : "", to);
	unsigned worse = print_verdicts(g, to, VERDICT_WORSE, arm);
	(void)fputs(nr + worse == 0 ? "nothing differs by more than the runs of one arm do.\n"
		    : worse         ? ".\n"
				    : "nothing was worse.\n",
		to);
}

static uint64_t throttled_in(const struct gain *g, unsigned arm)
{
	uint64_t sum = 0;

	for (unsigned load = 0; load < NR_LOADS; load++)
		sum += g->of[load][arm].throttled;
	return sum;
}

static void print_nodes(const struct gain *g, FILE *to)
{
	const struct arm *kubelets = &g->arm[ARM_STATIC], *ours = &g->arm[ARM_NUMAFIT];

	if (g->topo->ids.nr == 1)
		(void)fputs(
			"  This machine has one NUMA node: all memory is equally far, so where memory is "
			"has nothing to gain here.\n  What can differ is throttling, and who "
			"else runs on the container's CPUs.\n",
			to);
	else if (cpuset_equal(&kubelets->cpus, &ours->cpus))
		(void)fputs(
			"  static and numafit have the same CPUs here: they differ by the memory "
			"nodes and the quota alone.\n",
			to);
}

static void print_throttling(const struct gain *g, FILE *to)
{
	if (!g->cgroups) {
		(void)fputs("  Throttling was not measured: there was no quota.\n", to);
		return;
	}
	(void)fputs("  Stopped for the CFS quota:", to);
	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		if (g->arm[arm].there)
			(void)fprintf(to, "%s %s %" PRIu64 " times", arm ? "," : "",
				arm_titles[arm], throttled_in(g, arm));
	(void)fputs(".\n", to);
	if (g->arm[ARM_STATIC].quota)
		(void)fputs(
			"  static has its quota, as with a kubelet before 1.33; later ones lift "
			"it as well (--kubelet-lifts).\n",
			to);
}

static void print_words(const struct gain *g, FILE *to)
{
	(void)fputs("\nSummary\n", to);
	print_nodes(g, to);
	print_throttling(g, to);
	if (g->runs < VERDICT_RUNS)
		(void)fprintf(to, "  Fewer than %d runs: nothing is said of differences.\n",
			VERDICT_RUNS);
	else
		for (unsigned arm = 0; arm < NR_ARMS; arm++)
			if (arm != ARM_NUMAFIT && g->arm[arm].there)
				print_against(g, to, arm);
}

void gain_print(const struct gain *g, FILE *to)
{
	(void)fprintf(to, "\n  %-20s  %9s  %-21s  %7s  %6s  %s\n", "arm", "median",
		"smallest .. largest", "stopped", "remote", "numafit against it");
	for (unsigned load = 0; load < NR_LOADS; load++)
		for (unsigned f = 0; g->runs_load[load] && f < load_kinds[load].nr_figures; f++)
			print_figure(g, to, load, f);
	print_words(g, to);
	for (unsigned i = 0; i < g->nr_notes; i++)
		(void)fprintf(to, "  note: %s\n", g->note[i]);
}
