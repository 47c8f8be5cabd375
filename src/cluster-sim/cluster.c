#include <cluster-sim/cluster.h>

#include <errno.h>
#include <io/file.h>
#include <cluster-sim/plots.h>
#include <cluster-sim/report.h>
#include <numafit/text.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	NODES_OF_CLUSTER_MAX = 20000,
	NUMA_MAX = 32,
	PERCENT = 100,
	TRACE_BYTES_MAX = 256 << 20,
	PODS_A_NODE = 20
};

void cluster_options_init(struct cluster_options *o)
{
	*o = (struct cluster_options){
		.seed = 1,
		.load_percent = 85,
		.policy = POLICY_RESTRICTED,
		.world = {.weight = 10, .report_delay_ms = 300},
	};
	move_limits_init(&o->world.moves);
	o->nr_strategies = (unsigned)strategy_list("all", o->strategy, NULL);
}

int cluster_size_parse(struct cluster_options *o, const char *text, struct err *e)
{
	size_t nodes = strcspn(text, "x");
	uint64_t nr_nodes, nr_numa;

	if (!text[nodes])
		return err_set(e, EINVAL, "\"%s\": NODESxNUMA is expected, as 5000x8", text);
	int rc = text_u64(text, nodes, NODES_OF_CLUSTER_MAX, &nr_nodes, e);
	if (!rc)
		rc = text_u64(text + nodes + 1, strlen(text + nodes + 1), NUMA_MAX, &nr_numa, e);
	if (rc)
		return rc;
	if (!nr_nodes || !nr_numa)
		return err_set(e, EINVAL, "\"%s\": there is nothing", text);
	o->nr_nodes = (unsigned)nr_nodes;
	o->nr_numa = (unsigned)nr_numa;
	return 0;
}

/* The day */

static int get_trace(const struct cluster_options *o, const struct cluster_machine *m,
	struct cluster_trace *t, struct err *e)
{
	unsigned cpus = m->topo.nr_cpus - cpuset_count(&m->settings.reserved_cpus);
	bool one_node = o->policy == POLICY_SINGLE_NUMA_NODE; /* a larger container never fits */
	const struct trace_plan plan = {
		.nr_pods = o->nr_pods ? o->nr_pods : o->nr_nodes * PODS_A_NODE,
		.seed = o->seed,
		.cpus = (double)cpus * o->nr_nodes * o->load_percent / PERCENT,
		.cpu_milli_max = (one_node ? m->topo.nr_cpus / o->nr_numa : m->topo.nr_cpus) *
				 QUANTITY_MILLIS,
	};

	if (!o->trace) {
		cluster_trace_make(t, &plan);
		return 0;
	}
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read_waiting(o->trace, TRACE_BYTES_MAX, &text, &len, e);
	if (rc)
		return rc;
	rc = cluster_trace_read(t, text, len, e);
	return rc ? err_add(e, rc, "%s", o->trace) : 0;
}

/* The strategies, several at a time: a world shares nothing with another one. */

struct run {
	const struct cluster_options *o;
	struct world_setting set;
	struct outcome outcome[STRATEGIES_MAX];
	bool one_line;           /* progress is one line of a terminal */
	pthread_mutex_t lock;    /* of what follows */
	unsigned next, nr_hours; /* hours of all days that are over */
	int rc;
	struct err *e;
};

enum { PROGRESS_WIDTH = 72 };

static void print_progress(void *ctx, const struct strategy *s, unsigned hour)
{
	struct run *r = ctx;
	unsigned all = r->o->nr_strategies * DAY_HOURS;
	char line[PROGRESS_WIDTH + 1];

	if (!r->one_line) {
		(void)fprintf(stderr, "numafit-sim: %s: %u:00\n", s->name, hour);
		return;
	}
	(void)pthread_mutex_lock(&r->lock);
	(void)snprintf(line, sizeof line, "numafit-sim: %3u %%, %s: %u:00",
		++r->nr_hours * PERCENT / all, s->name, hour);
	(void)dprintf(STDERR_FILENO, "\r%-*s", PROGRESS_WIDTH, line);
	(void)pthread_mutex_unlock(&r->lock);
}

static void clear_progress(const struct run *r)
{
	if (r->one_line)
		(void)dprintf(STDERR_FILENO, "\r%*s\r", PROGRESS_WIDTH, "");
}

static void *work(void *ctx)
{
	struct run *r = ctx;

	for (;;) {
		struct err e = {0};

		(void)pthread_mutex_lock(&r->lock);
		unsigned i = r->next++;
		(void)pthread_mutex_unlock(&r->lock);
		if (i >= r->o->nr_strategies)
			return NULL;
		int rc = world_run(&r->set, r->o->strategy[i], &r->outcome[i], &e);
		(void)pthread_mutex_lock(&r->lock);
		if (rc && !r->rc) {
			r->rc = rc;
			*r->e = e;
		}
		(void)pthread_mutex_unlock(&r->lock);
	}
}

static int run_all(struct run *r)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned jobs = r->o->jobs ? r->o->jobs : (unsigned)(processors > 0 ? processors : 1);
	pthread_t thread[STRATEGIES_MAX];
	unsigned started = 0;

	if (jobs > r->o->nr_strategies)
		jobs = r->o->nr_strategies;
	while (started + 1 < jobs && !pthread_create(&thread[started], NULL, work, r))
		started++;
	(void)work(r);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(thread[i], NULL);
	return r->rc ? 1 : 0;
}

/* What came of it */

static int write_svg(const struct run *r, struct err *e)
{
	const struct cluster_options *o = r->o;
	FILE *f = fopen(o->svg, "w");
	char title[160];

	if (!f)
		return err_set(e, errno, "%s: %s", o->svg, strerror(errno));
	(void)snprintf(title, sizeof title,
		"%zu pod%s in a day on %u node%s of %u NUMA node%s, policy %s",
		r->set.trace->pods.nr, text_plural(r->set.trace->pods.nr), o->nr_nodes,
		text_plural(o->nr_nodes), o->nr_numa, text_plural(o->nr_numa),
		topology_policy_words[o->policy]);
	cluster_svg_print(f, title, o->strategy, r->outcome, o->nr_strategies);
	int broken = ferror(f);

	return fclose(f) || broken ? err_set(e, EIO, "%s: it cannot be written", o->svg) : 0;
}

int cluster_run(const struct cluster_options *given, struct err *e)
{
	struct cluster_options o = *given;
	auto_free struct cluster_machine *m = xcalloc(1, sizeof *m);
	struct cluster_trace trace;

	o.world.nr_nodes = o.nr_nodes;
	int rc = cluster_machine_init(m, o.nr_numa, o.policy, e);
	if (rc)
		return rc;
	rc = get_trace(&o, m, &trace, e);
	if (rc) {
		resource_table_fini(&m->names);
		return rc;
	}
	struct shape_facts *facts = shape_facts_new(&trace, m);
	auto_free struct run *r = xcalloc(1, sizeof *r);
	*r = (struct run){.o = &o,
		.set = {.options = &o.world,
			.machine = m,
			.trace = &trace,
			.facts = facts,
			.progress = print_progress,
			.progress_ctx = r},
		.one_line = isatty(STDERR_FILENO),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.e = e};
	rc = run_all(r);
	clear_progress(r);
	if (!rc && (o.table || !o.svg))
		cluster_report_print(stdout, o.strategy, r->outcome, o.nr_strategies);
	if (!rc && o.svg)
		rc = write_svg(r, e);
	free(facts);
	cluster_trace_fini(&trace);
	resource_table_fini(&m->names);
	return rc;
}

void cluster_help(FILE *out)
{
	struct cluster_options all;

	cluster_options_init(&all);
	fprintf(out, "\nStrategies of --cluster:\n");
	for (unsigned i = 0; i < all.nr_strategies; i++)
		fprintf(out, "  %-16s %s\n", all.strategy[i]->name, all.strategy[i]->help);
	fprintf(out, "Columns of its table:\n");
	cluster_report_help(out);
}
