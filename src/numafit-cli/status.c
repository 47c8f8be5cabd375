#include <numafit-cli/verbs.h>

#include <numafit-cli/ask.h>
#include <numafit-cli/output.h>
#include <numafit-cli/status_source.h>
#include <numafit-cli/status_view.h>
#include <numafit-cli/table.h>
#include <numafit-cli/wording.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <string.h>
#include <numafit/text.h>

enum { COLUMNS = 80 };

struct options {
	struct status_source source;
	const char *ns;
	enum output output;
	bool watch;
};

/* The options of the CPU manager that are on, if any. */
static void print_cpu_options(FILE *to, const struct status *st)
{
	static const char group[] = "cpuManagerPolicyOptions.";
	const char *before = "CPU manager options: ", *after = "";

	for (size_t i = 0; i < st->settings.nr; i++) {
		const struct key_value *s = &st->settings.at[i];

		if (strncmp(s->key, group, sizeof group - 1) != 0 || !text_equal(s->value, "true"))
			continue;
		(void)fprintf(to, "%s%s", before, s->key + sizeof group - 1);
		before = ", ";
		after = "\n";
	}
	(void)fputs(after, to);
}

static void print_kubelet(FILE *to, const struct status_kubelet *k)
{
	if (!k)
		return;
	(void)fprintf(to, "kubelet: device plugin %s", k->device_plugin);
	if (k->tokens)
		(void)fprintf(to,
			", %u of numafit.io/cpu (%u unhealthy), %u given out (%u wait for their "
			"container)",
			k->tokens, k->unhealthy, k->leased, k->waiting);
	(void)fprintf(to, "; PodResources %s; Pods API %s", k->pod_resources, k->pods_api);
	if (k->pods)
		(void)fprintf(
			to, ", %llu pod%s", (unsigned long long)k->pods, text_plural(k->pods));
	(void)putc('\n', to);
}

static void print_pod_facts(FILE *to, const char *source)
{
	static const struct {
		const char *source, *text;
	} texts[] = {
		{"kubelet", "the kubelet's Pods API"},
		{"apiserver", "the API server (podsWatch)"},
		{"sandbox", "their sandboxes' totals alone"},
	};

	for (size_t i = 0; source && i < sizeof texts / sizeof *texts; i++)
		if (text_equal(source, texts[i].source))
			(void)fprintf(to, "pods are known from %s\n", texts[i].text);
}

static void print_claims(FILE *to, const struct status_claims *c)
{
	if (!c)
		return;
	(void)fprintf(to, "devices of claims: %llu known, by %llu ResourceSlice%s (watch %s)",
		(unsigned long long)c->devices, (unsigned long long)c->slices,
		text_plural(c->slices), c->slices_watch);
	if (c->incomplete_pools)
		(void)fprintf(to, "; %llu pool%s of devices not complete yet",
			(unsigned long long)c->incomplete_pools,
			c->incomplete_pools == 1 ? " is" : "s are");
	if (c->unknown[CLAIMS_NOT_SHOWN_YET - 1] + c->unknown[CLAIMS_NOT_PUBLISHED - 1])
		(void)fprintf(to,
			"; containers placed before theirs were shown: %llu; with one of which "
			"nothing says where it is: %llu",
			(unsigned long long)c->unknown[CLAIMS_NOT_SHOWN_YET - 1],
			(unsigned long long)c->unknown[CLAIMS_NOT_PUBLISHED - 1]);
	if (c->waits)
		(void)fprintf(to, "; %llu answer%s waited for them, %llu ms in all",
			(unsigned long long)c->waits, text_plural(c->waits),
			(unsigned long long)(c->waited_ns / NS_PER_MS));
	(void)putc('\n', to);
}

static void print_dra(FILE *to, const struct status_dra *v, size_t nr_shares)
{
	if (!v)
		return;
	(void)fprintf(to,
		"claims of CPUs and memory: %zu held; with the kubelet: %s; ResourceSlice %s",
		nr_shares, v->registration,
		v->slice_current ? "published" : "NOT as it should be, or not known yet");
	if (v->waiting)
		(void)fprintf(to, "; %llu are being prepared", (unsigned long long)v->waiting);
	if (v->failed)
		(void)fprintf(to, "; %llu failed since numafitd started (its log says why)",
			(unsigned long long)v->failed);
	(void)putc('\n', to);
}

static void print_confined(FILE *to, const struct status_confined *c)
{
	static const char *const why[NR_CONFINED_BY] = {
		[CONFINED_BY_CGROUP] = "a cgroup above has fewer CPUs (AllowedCPUs or cpuset.cpus)",
		[CONFINED_BY_AFFINITY] = "a CPU affinity, as of a container runtime with "
					 "CPUAffinity in its systemd unit",
		[CONFINED_BY_PROCESS] = "a CPU affinity of their own, as of a program that pins "
					"itself",
	};
	char cpus[CPUSET_TEXT_MAX];

	(void)fprintf(to, "CONFINED: %llu container%s of the pool may not run on all of it: ",
		(unsigned long long)c->containers, text_plural(c->containers));
	wording_print_plain(to, c->example);
	(void)fprintf(to, " on %s only, by %s; see event=pool-confined in the log\n",
		cpuset_format(&c->cpus, cpus, sizeof cpus), why[c->by]);
}

static void print_enforcement(FILE *to, const struct status_pool *p)
{
	bool by_cgroups = text_equal(p->enforced, pool_enforced_words[POOL_BY_CGROUPS]);

	if (by_cgroups)
		(void)fprintf(to, "its containers are kept in it by %llu cgroup%s",
			(unsigned long long)p->cgroups, text_plural(p->cgroups));
	else
		(void)fprintf(to, "its containers are updated one by one%s%s",
			p->why_updates ? ": " : "", p->why_updates ? p->why_updates : "");
	if (p->rewritten)
		(void)fprintf(to, "; other programs have changed these %llu time%s",
			(unsigned long long)p->rewritten, text_plural(p->rewritten));
	if (p->idle)
		(void)fprintf(to, "; %llu CPU%s in no container's cpuset (sharedPoolStep)",
			(unsigned long long)p->idle, p->idle == 1 ? " is" : "s are");
	(void)putc('\n', to);
	if (p->problem)
		(void)fprintf(to, "NOT IN FORCE: %s\n", p->problem);
	for (unsigned i = 0; i < p->nr_confined; i++)
		print_confined(to, &p->confined[i]);
}

static void print_quota(FILE *to, const struct status_quota *q)
{
	if (!q || text_equal(q->use, quota_use_words[QUOTA_KEEP]))
		return;
	(void)fprintf(to, "containers with CPUs of their own have no CFS quota");
	if (q->containers_alone)
		(void)fprintf(to, ", but their pods have: %s", q->containers_alone);
	else
		(void)fprintf(to, ", nor %s %llu of their pods", q->pods == 1 ? "has" : "have",
			(unsigned long long)q->pods);
	if (q->rewritten)
		(void)fprintf(to, "; other programs have set one %llu time%s",
			(unsigned long long)q->rewritten, text_plural(q->rewritten));
	(void)putc('\n', to);
	if (q->problem)
		(void)fprintf(to, "NOT IN FORCE: %s\n", q->problem);
}

static void print_quiet(FILE *to, const struct status_quiet *q)
{
	char irq[CPUSET_TEXT_MAX], frequency[CPUSET_TEXT_MAX];

	if (!q)
		return;
	(void)cpuset_format(&q->irq_cpus, irq, sizeof irq);
	(void)cpuset_format(&q->frequency_cpus, frequency, sizeof frequency);
	(void)fprintf(to, "quiet CPUs: no interrupts on %s", *irq ? irq : "none");
	if (q->moved)
		(void)fprintf(to, " (%llu kept off)", (unsigned long long)q->moved);
	if (q->unmovable)
		(void)fprintf(to, "; the kernel lets %llu interrupt%s come there",
			(unsigned long long)q->unmovable, text_plural(q->unmovable));
	(void)fprintf(to, "; frequency profiles on %s", *frequency ? frequency : "none");
	if (q->clock_shared)
		(void)fprintf(to, ", of which %llu share a clock with others and keep it",
			(unsigned long long)q->clock_shared);
	if (q->rewritten)
		(void)fprintf(to, "; other programs have moved interrupts there %llu time%s",
			(unsigned long long)q->rewritten, text_plural(q->rewritten));
	(void)fprintf(to, "%s\n", q->irqbalance ? "; irqbalance runs" : "");
	if (q->interrupts_not)
		(void)fprintf(to, "NOT IN FORCE: interrupts: %s\n", q->interrupts_not);
	if (q->frequencies_not)
		(void)fprintf(to, "NOT IN FORCE: frequencies: %s\n", q->frequencies_not);
	if (q->problem && !q->interrupts_not && !q->frequencies_not)
		(void)fprintf(to, "NOT IN FORCE: %s\n", q->problem);
}

static void print_unused_cpus(FILE *to, const struct status *st)
{
	char buf[UNUSED_TEXT_MAX];
	struct text t;

	for (unsigned i = 0; text_init(&t, buf, sizeof buf), status_unused_cpus(st, i, &t); i++)
		if (t.len)
			(void)fprintf(to, "%s\n", buf);
}

static void print_identity(FILE *to, const struct status *st)
{
	char up[UPTIME_TEXT_MAX];

	if (status_disconnected(st))
		(void)fprintf(to, "%s\n\n", status_disconnected(st));
	(void)fprintf(to, "numafitd %s on machine %s, up %s\n", st->info.version, st->machine,
		uptime_text(st->info.uptime_ms, up));
	(void)fprintf(to, "mode %s, policy %s, scope %s, prefer-closest-numa-nodes %s\n",
		status_setting(st, "mode"), status_setting(st, "topologyManagerPolicy"),
		status_setting(st, "topologyManagerScope"),
		status_setting(st, "topologyManagerPolicyOptions.prefer-closest-numa-nodes"));
	print_cpu_options(to, st);
}

static void print_connections(FILE *to, const struct status *st)
{
	const struct status_config *config = st->info.config;

	if (config && config->refused)
		(void)fprintf(to, "config: what %s says is not in force: %s\n", config->file,
			config->refused);
	if (config && config->restart)
		(void)fprintf(to, "config: waits for a restart of numafitd: %s\n", config->restart);
	if (config && config->waits_ms)
		(void)fprintf(to, "config: what %s says is put in force in %llu s (rolloutDelay)\n",
			config->file,
			(unsigned long long)(config->waits_ms + MS_PER_S - 1) / MS_PER_S);
	(void)fprintf(to, "runtime %s: %s\n", *st->info.runtime ? st->info.runtime : "unknown",
		st->info.connection);
	if (st->info.journal)
		(void)fprintf(to, "journal: it cannot be written, new containers are refused: %s\n",
			st->info.journal);
	if (st->info.journal_writers)
		(void)fprintf(to,
			"journal: others than numafitd could have written the journal: %s\n",
			st->info.journal_writers);
	print_kubelet(to, st->info.kubelet);
	print_pod_facts(to, st->info.pod_facts);
	print_claims(to, st->info.claims);
	print_dra(to, st->info.dra, st->nr_shares);
	if (st->info.apiserver && st->info.apiserver->unusable)
		(void)fprintf(to, "API server: the credentials for it cannot be used: %s\n",
			st->info.apiserver->unusable);
}

static void print_counters(FILE *to, const struct status_counters *c)
{
	(void)fprintf(to,
		"containers: %llu created, %llu refused, %llu adopted, %llu moved, %llu released, "
		"since numafitd started\n",
		(unsigned long long)c->creates, (unsigned long long)c->refused,
		(unsigned long long)c->adopted, (unsigned long long)c->updates,
		(unsigned long long)c->released);
	if (c->refused)
		(void)fputs(
			"numafit refusals lists what was refused, also before that, and resizes\n",
			to);
	if (c->cut_short)
		(void)fprintf(to,
			"%llu decided with what was found when mergeVisitBudget ran out\n",
			(unsigned long long)c->cut_short);
	if (c->advice_accepted + c->advice_repaired + c->advice_rejected)
		(void)fprintf(to,
			"schedulers' hints: %llu accepted, %llu repaired, %llu rejected\n",
			(unsigned long long)c->advice_accepted,
			(unsigned long long)c->advice_repaired,
			(unsigned long long)c->advice_rejected);
	if (c->compared)
		(void)fprintf(to, "shadow: %llu compared with the kubelet's choice, %llu differ\n",
			(unsigned long long)c->compared, (unsigned long long)c->disagreed);
}

static void print_cpus(FILE *to, const struct status *st)
{
	char list[CPUSET_TEXT_MAX];

	(void)fprintf(to, "shared pool: CPUs %s", cpuset_format(&st->pool, list, sizeof list));
	(void)fprintf(to, "; reserved: %s",
		cpuset_empty(&st->reserved) ? "none"
					    : cpuset_format(&st->reserved, list, sizeof list));
	if (!cpuset_empty(&st->isolated))
		(void)fprintf(
			to, "; isolated: %s", cpuset_format(&st->isolated, list, sizeof list));
	(void)putc('\n', to);
	print_unused_cpus(to, st);
}

static void print_fragmentation(FILE *to, const struct status_fragmentation *f)
{
	char ratio[FRAGMENTATION_TEXT_MAX], memory[TEXT_SIZE_MAX];

	if (!f)
		return;
	(void)fprintf(to,
		"fragmentation %s: %llu CPU%s free, a container on one NUMA node can have %llu "
		"of them",
		node_fragmentation_text(ratio, f->ratio_milli), (unsigned long long)f->free_cpus,
		f->free_cpus == 1 ? " is" : "s are", (unsigned long long)f->largest_cpus);
	if (f->largest_cpus < f->possible_cpus)
		(void)fprintf(
			to, " (%llu if they lay together)", (unsigned long long)f->possible_cpus);
	(void)fprintf(to, "; at most %s of memory are free on one NUMA node",
		text_size_rounded(memory, f->largest_memory));
	if (f->not_preferred)
		(void)fprintf(to, "; %u of the containers with own CPUs %s on too many NUMA nodes",
			f->not_preferred, f->not_preferred == 1 ? "is" : "are");
	(void)putc('\n', to);
}

/* The moves that were made last, or are under way. */
static void print_moves(FILE *to, const struct moves *m)
{
	unsigned done = 0;

	if (!m)
		return;
	for (unsigned i = 0; i < m->nr; i++)
		done += m->at[i].state == MOVE_DONE;
	(void)fprintf(to, "moves of running containers: %u of %u made", done, m->nr);
	for (unsigned i = 0; i < m->nr; i++) {
		const struct move_line *one = &m->at[i];

		if (one->state == MOVE_UNDER_WAY || one->why)
			(void)fprintf(to, "; %s/%s/%s is %s to NUMA node %s%s%s", one->ns, one->pod,
				one->container,
				one->state == MOVE_UNDER_WAY ? "on its way" : "not moved",
				one->to_nodes, one->why ? ": " : "", one->why ? one->why : "");
	}
	(void)putc('\n', to);
}

static void print_status_head(FILE *to, const struct status *st)
{
	print_identity(to, st);
	print_connections(to, st);
	print_counters(to, &st->info.counters);
	print_cpus(to, st);
	if (st->info.enforcement)
		print_enforcement(to, st->info.enforcement);
	print_quota(to, st->info.quota);
	print_quiet(to, st->info.quiet);
	print_fragmentation(to, st->fragmentation);
	print_moves(to, st->info.moves);
	(void)putc('\n', to);
}

static const char *const node_titles[] = {"NODE", "CPUS", "EXCLUSIVE", "RESERVED", "FREE", "POOL"};
enum { NR_NODE_TITLES = sizeof node_titles / sizeof *node_titles, NODE_RESERVED = 3 };

static void add_memory_cell(struct table *t, const struct status_node *n, size_t kind)
{
	char free_text[TEXT_SIZE_MAX], all_text[TEXT_SIZE_MAX];

	if (kind >= n->nr_memory)
		table_add(t, "-");
	else if (n->device_memory && !n->memory[kind].allocatable)
		table_add(t, "a device's");
	else
		table_add(t, "%s of %s", text_size_rounded(free_text, n->memory[kind].free),
			text_size_rounded(all_text, n->memory[kind].allocatable));
}

static void add_node_row(struct table *t, const struct status_node *n, size_t nr_kinds)
{
	const unsigned figures[NR_NODE_TITLES] = {n->id, n->cpus, n->cpus_held, n->cpus_reserved,
		n->cpus - n->cpus_held - n->cpus_reserved, n->cpus_pool};
	bool together = strchr(n->memory_group, ',') || strchr(n->memory_group, '-');

	for (size_t i = 0; i < NR_NODE_TITLES; i++)
		table_add(t, "%u", figures[i]);
	for (size_t k = 0; k < nr_kinds; k++)
		add_memory_cell(t, n, k);
	table_add(t, "%s", together ? n->memory_group : "-");
}

/* Every node has the kinds of memory that the first one has: they are the machine's. */
static bool print_status_nodes(FILE *to, const struct status *st, int width)
{
	size_t nr_kinds = st->nr_nodes ? st->nodes[0].nr_memory : 0;
	struct table_column columns[NR_NODE_TITLES + TOPO_KINDS + 1] = {0};
	struct table t = {.columns = columns, .width = width};

	nr_kinds = nr_kinds < TOPO_KINDS ? nr_kinds : TOPO_KINDS;
	t.nr_columns = NR_NODE_TITLES + nr_kinds + 1;
	for (size_t i = 0; i < NR_NODE_TITLES; i++)
		table_add(&t, "%s", node_titles[i]);
	for (size_t k = 0; k < nr_kinds; k++) {
		table_add(&t, "FREE %s", st->nodes[0].memory[k].type);
		columns[NR_NODE_TITLES + k].drop = k ? (unsigned)(nr_kinds - k) : 0;
	}
	table_add(&t, "TOGETHER WITH");
	columns[t.nr_columns - 1].drop = TOPO_KINDS;
	columns[NODE_RESERVED].drop = TOPO_KINDS + 1;
	for (const struct status_node *n = st->nodes; n < st->nodes + st->nr_nodes; n++)
		add_node_row(&t, n, nr_kinds);
	bool less = table_print(&t, to);
	table_fini(&t);
	return less;
}

/* Claims hold CPUs whether containers run on them or not. */
static bool print_shares(FILE *to, const struct status *st, const struct options *o, int width)
{
	static const char *const titles[] = {"CLAIM", "SHARE", "NODE", "CPUS", "CONTAINERS"};
	static const struct table_column columns[] = {
		{.least = 20, .in_middle = true}, {.least = 10}, {0}, {.least = 10}, {.drop = 1}};
	struct table t = {
		.nr_columns = sizeof titles / sizeof *titles, .columns = columns, .width = width};

	for (size_t i = 0; i < t.nr_columns; i++)
		table_add(&t, "%s", titles[i]);
	for (const struct status_share *s = st->shares; s < st->shares + st->nr_shares; s++) {
		if (o->ns && !text_equal(o->ns, s->ns))
			continue;
		table_add(&t, "%s/%s", s->ns, s->claim);
		table_add(&t, "%s", s->place);
		table_add(&t, "%s", s->node);
		table_add(&t, "%s", s->cpus);
		table_add(&t, "%llu", (unsigned long long)s->containers);
	}
	bool any = t.cells.nr > t.nr_columns;
	if (any)
		(void)putc('\n', to);
	bool less = any && table_print(&t, to);
	table_fini(&t);
	return less;
}

static void add_container_row(struct table *t, const struct status_container *c)
{
	const char *const cells[] = {qos_words[c->qos], *c->cpus ? c->cpus : "any",
		status_own_words(c), c->mems, c->nodes ? c->nodes : "any",
		c->preferred ? "yes" : "no", decision_source_words[c->source],
		c->wishes ? c->wishes : "-", c->id};

	table_add(t, "%s/%s/%s", c->ns, c->pod, c->container);
	for (size_t i = 0; i + 1 < t->nr_columns; i++)
		table_add(t, "%s", cells[i]);
}

static bool print_containers(FILE *to, const struct status *st, const struct options *o, int width)
{
	static const char *const titles[] = {"CONTAINER", "QOS", "CPUS", "OWN", "MEMS", "AFFINITY",
		"PREFERRED", "SOURCE", "WISHES", "ID"};
	enum { NR_TITLES = sizeof titles / sizeof *titles, NR_WIDE_ONLY = 2 };
	static const struct table_column columns[NR_TITLES] = {{.least = 20, .in_middle = true},
		{.drop = 3}, {.enough = 24, .least = 10}, {0}, {.least = 5}, {.drop = 4},
		{.drop = 2}, {.drop = 1}};
	struct table t = {.nr_columns = NR_TITLES - (width ? NR_WIDE_ONLY : 0),
		.columns = columns,
		.width = width};
	auto_free const struct status_container **list = NULL;
	size_t nr = status_containers_by_name(st, o->ns, &list);

	for (size_t i = 0; i < t.nr_columns; i++)
		table_add(&t, "%s", titles[i]);
	for (size_t i = 0; i < nr; i++)
		add_container_row(&t, list[i]);
	(void)putc('\n', to);
	bool less = nr && table_print(&t, to);
	if (!nr)
		(void)fprintf(to, "no containers%s%s\n", o->ns ? " in namespace " : "",
			o->ns ? o->ns : "");
	table_fini(&t);
	return less;
}

/* Into memory first: what of it is to be broken into lines, and made safe for a terminal, is all
 * the same then. */
static void print_for_people(const struct status *st, const struct options *o)
{
	int width = o->output == OUTPUT_WIDE ? 0 : COLUMNS;
	auto_free char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return;
	print_status_head(to, st);
	bool less = print_status_nodes(to, st, width);
	less = print_containers(to, st, o, width) || less;
	less = print_shares(to, st, o, width) || less;
	if (less)
		(void)fputs("\n-o wide shows what does not fit into this width\n", to);
	if (!fclose(to))
		print_lines(stdout, text, width);
}

static int print_status(const char *document, size_t len, const struct options *o, struct err *e)
{
	struct status st;
	struct arena a;

	arena_init(&a, STATUS_JSON_MAX);
	int rc = status_json_parse(document, len, &a, &st, e);
	if (rc) {
		(void)err_add(e, rc, "the daemon's answer is no status document");
	} else if (o->output == OUTPUT_JSON) {
		(void)puts(document);
	} else {
		print_for_people(&st, o);
	}
	arena_fini(&a);
	return rc;
}

static int ask_status(const char *path, const struct options *o, struct err *e)
{
	auto_free char *document = NULL;
	size_t len;
	int rc = ask_daemon(path, "status", &document, &len, e);

	if (!rc && o->watch && o->output != OUTPUT_JSON)
		screen_clear();
	return rc ? rc : print_status(document, len, o, e);
}

static int run_status(const struct call *c)
{
	struct options o = {.output = OUTPUT_TABLE};
	struct err e = {0};
	char path[STATUS_PATH_MAX];
	int code = call_read(c, &o);

	if (code < 0)
		code = status_source_path(c, &o.source, path);
	if (code >= 0)
		return code;
	do {
		if (ask_status(path, &o, &e))
			return status_source_fail(c, &e);
	} while (o.watch && watch_wait());
	return EXIT_DONE;
}

static const struct option_row rows[] = {
	OUTPUT_ROWS(struct options, "table|wide|json"),
	NAMESPACE_ROW(struct options),
	WATCH_ROW(struct options, "print it again every two seconds, until it is interrupted"),
	STATUS_SOURCE_ROWS(struct options),
	{0},
};

const struct command verb_status = {
	.name = "status",
	.summary = "show what the daemon on this node holds and has done",
	.about =
		"Show what numafitd on this node does: policy, NUMA nodes, containers by name, in 80 "
		"columns. With -o wide nothing is left out or cut; with -o json the whole is one "
		"document, whatever the namespace.",
	.options = rows,
	.examples = {{"numafit status", "policy, NUMA nodes and containers of this node"},
		{"numafit status -n inference -w", "one namespace's containers, again and again"},
		{"kubectl -n numafit-system exec ds/numafitd -- numafit status -o json",
			"for a program, from a pod of the daemon's"}},
	.exits = {[EXIT_CANNOT] = "no daemon answers"},
	.run = run_status,
};
