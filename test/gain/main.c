#include "arms.h"
#include "run.h"
#include "size.h"

#include <codec/fields_json.h>
#include <command/command.h>
#include <errno.h>
#include <host/discover.h>
#include <inttypes.h>
#include <math.h>
#include <numafit/number.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define SECONDS_DEFAULT 2.0
#define SECONDS_QUICK   0.05
enum { RUNS_DEFAULT = 5, SECONDS_MAX = 600, CPUS_MAX = CPUSET_BITS, FAILED_BY_SIGNAL = 128 };

struct arguments {
	struct gain gain;
	unsigned seconds;
	const char *only, *svg, *json;
	bool quick, plan, no_cgroups, kubelet_lifts;
};

static int read_number(const char *value, unsigned max, unsigned *out, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), max, &number, e);

	if (!rc && !number)
		rc = err_set(e, ERANGE, "0 is too few");
	if (!rc)
		*out = (unsigned)number;
	return rc;
}

static int read_seconds(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return read_number(value, SECONDS_MAX, member, e);
}

static int read_runs(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return read_number(value, RUNS_MAX, member, e);
}

static int read_cpus(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return read_number(value, CPUS_MAX, member, e);
}

static int read_memory(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return quantity_parse_count(value, QUANTITY_WHOLE, member, e);
}

#define AT(member) offsetof(struct arguments, member)
static const struct option_row rows[] = {
	{.name = "seconds",
		.value = "N",
		.help = "of each measurement (default 2)",
		.read = read_seconds,
		.at = AT(seconds)},
	{.name = "runs",
		.value = "N",
		.help = "of each load in each arm (default 5; differences are named from 4 on)",
		.read = read_runs,
		.at = AT(gain.runs)},
	{.name = "memory",
		.value = "SIZE",
		.help = "of a measurement, as 4Gi; at most a quarter of what a NUMA node has free",
		.read = read_memory,
		.at = AT(gain.bytes)},
	{.name = "cpus",
		.value = "N",
		.help = "of the container (default three quarters of a NUMA node's)",
		.read = read_cpus,
		.at = AT(gain.ask_cpus)},
	{.name = "held",
		.value = "N",
		.help = "CPUs that another container has before (default half a NUMA node's, where "
			"there are several nodes)",
		.read = read_cpus,
		.at = AT(gain.held_cpus)},
	{.name = "alone",
		.help = "no other container has CPUs before",
		.read = option_flag,
		.at = AT(gain.alone)},
	{.name = "only",
		.value = "LIST",
		.help = "of triad,chase,loop,redis",
		.read = option_text,
		.at = AT(only)},
	{.name = "json",
		.value = "FILE",
		.help = "write all values there",
		.read = option_text,
		.at = AT(json),
		.completes = COMPLETE_FILE},
	{.name = "svg",
		.value = "FILE",
		.help = "draw bars there",
		.read = option_text,
		.at = AT(svg),
		.completes = COMPLETE_FILE},
	{.name = "plan",
		.help = "print what would run where, and end",
		.read = option_flag,
		.at = AT(plan)},
	{.name = "kubelet-lifts",
		.help = "static's quota is lifted, too, as kubelets do since 1.33",
		.read = option_flag,
		.at = AT(kubelet_lifts)},
	{.name = "machine",
		.value = "NAME",
		.help = "with --plan: of that machine, as for numafit topology",
		.read = option_text,
		.at = AT(gain.machine),
		.completes = COMPLETE_FILE},
	{.name = "no-cgroups",
		.help = "CPUs by affinity and memory by policy, as without root: no quota",
		.read = option_flag,
		.at = AT(no_cgroups)},
	{.name = "quick",
		.help = "a try that measures nothing: one run of 50 ms with 8Mi",
		.read = option_flag,
		.at = AT(quick)},
	{0},
};

/* What will happen */

static unsigned nr_measurements(const struct gain *g)
{
	unsigned loads = 0, arms = 0;

	for (unsigned i = 0; i < NR_LOADS; i++)
		loads += g->runs_load[i];
	for (unsigned i = 0; i < NR_ARMS; i++)
		arms += g->arm[i].there;
	return loads * arms * g->runs;
}

static void print_arms(const struct gain *g)
{
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

	(void)printf("\n  %-20s  %-24s  %-12s  %s\n", "arm", "CPUs", "memory nodes", "CFS quota");
	for (unsigned i = 0; i < NR_ARMS; i++) {
		const struct arm *a = &g->arm[i];

		if (!a->there)
			continue;
		(void)printf("  %-20s  %-24s  %-12s  %s\n", arm_titles[i],
			cpuset_format(&a->cpus, cpus, sizeof cpus),
			nodeset_format(a->mems, &g->topo->ids, mems, sizeof mems),
			!g->cgroups ? "none"
			: a->quota  ? "kept"
				    : "lifted");
	}
}

static void print_plan(const struct gain *g)
{
	enum { AROUND_S = 1 }; /* to fill memory, to start and end processes */
	char reserved[CPUSET_TEXT_MAX], size[TEXT_SIZE_MAX];
	unsigned nr = nr_measurements(g);

	(void)printf("A container that asks for %u of the machine's %u CPUs, on %u NUMA node%s.\n",
		g->ask_cpus, g->topo->nr_cpus, g->topo->ids.nr, g->topo->ids.nr == 1 ? "" : "s");
	if (g->held_cpus)
		(void)printf("Another one has %u CPUs before it comes; it does nothing.\n",
			g->held_cpus);
	(void)printf("CPUs %s are the system's.\n",
		cpuset_format(&g->reserved, reserved, sizeof reserved));
	print_arms(g);
	(void)printf("\nThis keeps up to all CPUs busy and takes %s of memory, for some %.0f s (%u "
		     "measurements of %g s).\n",
		text_size(size, g->bytes), nr * (g->seconds + AROUND_S), nr, g->seconds);
	(void)printf("%s\n", g->cgroups ? "Cgroups: numafit-gain.PID, removed at the end and at ^C."
					: "No cgroup is made.");
	for (unsigned i = 0; i < NR_LOADS; i++)
		if (g->runs_load[i])
			(void)printf("  %-6s  %s\n", load_kinds[i].name, load_kinds[i].what);
	for (unsigned i = 0; i < g->nr_notes; i++)
		(void)printf("  note: %s\n", g->note[i]);
	(void)fflush(stdout);
}

/* What else makes figures say less than they seem to. */
static void note_surroundings(struct gain *g)
{
	double load = 0;
	int balancing = 0;
	FILE *f = fopen("/proc/loadavg", "r");

	if (f && fscanf(f, "%lf", &load) == 1 && load > 1)
		gain_note(g,
			"the load average was %.1f before: what else runs here makes ranges wide",
			load);
	if (f)
		(void)fclose(f);
	f = fopen("/proc/sys/kernel/numa_balancing", "r");
	if (f && fscanf(f, "%d", &balancing) == 1 && balancing)
		gain_note(
			g, "kernel.numa_balancing is on: the kernel moves pages after the threads");
	if (f)
		(void)fclose(f);
}

/* The measurements */

static void keep_sample(struct gain *g, enum load_id load, enum arm_id arm, const struct sample *s)
{
	struct outcome *o = &g->of[load][arm];

	if (!s->done) {
		gain_note(g, "%s, %s: a run failed: %.120s", load_kinds[load].name, arm_titles[arm],
			s->why[0] ? s->why : "no reason was left");
		return;
	}
	for (unsigned f = 0; f < load_kinds[load].nr_figures; f++)
		o->value[f][o->nr] = s->value[f];
	o->nr++;
	if (s->has_remote) {
		o->remote += s->remote;
		o->nr_remote++;
	}
	memcpy(o->pages, s->pages, sizeof o->pages);
}

static void measure_once(struct run *r, enum load_id load, enum arm_id arm)
{
	struct gain *g = r->g;
	uint64_t before = place_throttled(r->place);

	run_measure(r, load, &g->arm[arm]);
	uint64_t after = place_throttled(r->place);

	g->of[load][arm].throttled += after > before ? after - before : 0;
	if (!run_stopped())
		keep_sample(g, load, arm, r->shared);
}

/* Arms one after another in each round, and another one first each time: what warms up or comes
 * and goes on the machine meets all of them. */
static void measure_all(struct run *r)
{
	struct gain *g = r->g;

	for (unsigned run = 0; run < g->runs; run++)
		for (unsigned load = 0; load < NR_LOADS; load++)
			for (unsigned i = 0; g->runs_load[load] && i < NR_ARMS; i++) {
				unsigned arm = (i + run) % NR_ARMS;

				if (run_stopped() || !g->arm[arm].there)
					continue;
				(void)fprintf(stderr, "run %u of %u: %s, %s\n", run + 1, g->runs,
					load_kinds[load].name, arm_titles[arm]);
				measure_once(r, load, arm);
			}
}

static int write_file(const char *path, const struct gain *g, bool svg, struct err *e)
{
	auto_free char *json = svg ? NULL : gain_json(g);
	FILE *f = fopen(path, "w");

	if (!f)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (svg)
		gain_draw(g, f);
	else
		(void)fprintf(f, "%s\n", json);
	return fclose(f) ? err_set(e, errno, "%s: %s", path, strerror(errno)) : 0;
}

static int report(const struct call *c, const struct arguments *a)
{
	struct err e;

	gain_print(&a->gain, stdout);
	if ((a->json && write_file(a->json, &a->gain, false, &e)) ||
		(a->svg && write_file(a->svg, &a->gain, true, &e)))
		return call_fail(c, EXIT_CANNOT, &e);
	for (unsigned load = 0; load < NR_LOADS; load++)
		for (unsigned arm = 0; arm < NR_ARMS; arm++)
			if (a->gain.runs_load[load] && a->gain.arm[arm].there &&
				a->gain.of[load][arm].nr < a->gain.runs)
				return EXIT_CANNOT;
	return EXIT_DONE;
}

/* -1: go on. */
static int prepare(const struct call *c, struct arguments *a, struct topo *t)
{
	struct gain *g = &a->gain;
	struct err e;

	if (!a->plan && strcmp(g->machine, "this") != 0)
		return call_misused(c, "--machine goes with --plan");
	if (machine_load(g->machine, t, NULL, NULL, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	g->topo = t;
	g->seconds = a->quick ? SECONDS_QUICK : a->seconds;
	g->runs = a->quick ? 1 : g->runs;
	arms_size(g);
	uint64_t bytes = g->bytes;
	g->bytes = bytes ? bytes : 1;
	if (arms_decide(g, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	g->arm[ARM_STATIC].quota = !a->kubelet_lifts;
	g->bytes = bytes;
	if (t->this_machine)
		size_memory(g, a->quick);
	return -1;
}

static int choose_loads(const struct call *c, struct arguments *a)
{
	struct gain *g = &a->gain;
	char list[NOTE_TEXT_MAX], *save = NULL;

	for (unsigned i = 0; i < NR_LOADS; i++)
		g->runs_load[i] = !a->only;
	(void)text_copy(list, sizeof list, a->only);
	for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		unsigned i = 0;

		while (i < NR_LOADS && strcmp(load_kinds[i].name, w) != 0)
			i++;
		if (i == NR_LOADS)
			return call_misused(
				c, "--only: \"%s\" is none of triad,chase,loop,redis", w);
		g->runs_load[i] = true;
	}
	if (g->runs_load[LOAD_REDIS] && !redis_is_there()) {
		g->runs_load[LOAD_REDIS] = false;
		gain_note(g, "left out: redis, as the package redis-tools is not there");
	}
	return -1;
}

static int run_prepared(const struct call *c, struct arguments *a)
{
	struct place place = {0};
	struct run r = {.g = &a->gain, .place = &place};

	r.shared = mmap(
		NULL, sizeof *r.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.shared == MAP_FAILED)
		return EXIT_CANNOT;
	note_surroundings(&a->gain);
	run_watch_signals();
	place_init(&place, &a->gain, !a->no_cgroups, a->plan);
	print_plan(&a->gain);
	if (!a->plan)
		measure_all(&r);
	if (!a->plan)
		place_fini(&place);
	if (run_stopped())
		return FAILED_BY_SIGNAL + run_stopped();
	return a->plan ? EXIT_DONE : report(c, a);
}

static int run_gain(const struct call *c)
{
	static struct arguments a = {.seconds = (unsigned)SECONDS_DEFAULT,
		.gain.runs = RUNS_DEFAULT,
		.gain.machine = "this"};
	static struct topo topo;
	int code = call_read(c, &a);

	code = code >= 0 ? code : choose_loads(c, &a);
	code = code >= 0 ? code : prepare(c, &a, &topo);
	return code >= 0 ? code : run_prepared(c, &a);
}

static const struct command gain_command = {
	.summary = "measure what placing a container on NUMA nodes gains on this machine",
	.about =
		"Runs loads in a container that is placed in several ways (arms), one after another, "
		"and compares. What numafit's arm has is what its engine decides for this machine.",
	.options = rows,
	.examples = {{"gain --plan", "print what would run where"},
		{"gain --plan --machine epyc-nps2", "and on another machine"},
		{"gain --seconds 5 --runs 10 --svg gain.svg", "for narrower ranges"}},
	.exits = {[EXIT_CANNOT] = "a run failed, or the container does not fit on this machine"},
	.run = run_gain,
};
static const struct command *const commands[] = {&gain_command};
static const struct program program = {
	.name = "gain",
	.summary = "measure what placing a container on NUMA nodes gains on this machine",
	.about = "make gain builds and runs it.",
	.man = 1,
	.commands = commands,
	.nr = 1,
};

int main(int argc, char **argv)
{
	json_seed();
	return program_run(&program, argc, argv);
}
