#include <numafit-cli/verbs.h>

#include <codec/config_yaml.h>
#include <codec/flat_yaml.h>
#include <codec/status_json.h>
#include <errno.h>
#include <io/file.h>
#include <numafit-cli/ask.h>
#include <numafit-cli/output.h>
#include <numafit-cli/run_directory.h>
#include <numafit/mem.h>
#include <numafit-cli/table.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { SOCKET_PATH_MAX = SETTINGS_PATH_MAX + 16, UPTIME_TEXT_MAX = 32 };

struct options {
	const char *socket, *config, *directory, *ns;
	enum output output;
	bool watch;
};

static int read_status_config(const char *path, struct settings *s, struct err *e)
{
	struct config_sections sections;
	size_t len;
	auto_free char *text = NULL;
	int rc = file_read_waiting(path, FLAT_YAML_BYTES_MAX, &text, &len, e);

	if (rc)
		return rc;
	/* no section has a runDirectory: it is the same for every node */
	rc = config_yaml_read(s, text, len, NULL, &sections, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

static int socket_path(const struct options *o, char *buf, size_t cap, struct err *e)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	struct text t;

	settings_init(s);
	int rc = o->config ? read_status_config(o->config, s, e) : 0;
	text_init(&t, buf, cap);
	if (o->socket)
		text_add(&t, "%s", o->socket);
	else
		text_add(&t, "%s/numafitd.sock", o->directory ? o->directory : s->run_directory);
	return t.cut ? err_set(e, ENAMETOOLONG, "the socket's path is longer than %zu bytes",
			       cap - 1)
		     : rc;
}

static const char *setting_value(const struct status *st, const char *key)
{
	for (size_t i = 0; i < st->settings.nr; i++)
		if (text_equal(st->settings.at[i].key, key))
			return st->settings.at[i].value;
	return "?";
}

static const char *uptime_text(uint64_t ms, char *buf, size_t cap)
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
	unsigned i = 0;
	struct text t;

	text_init(&t, buf, cap);
	while (i < 2 && ms < units[i].ms)
		i++;
	/* the two largest units say enough */
	for (unsigned last = i + 1; i <= last; ms %= units[i++].ms)
		text_add(&t, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].unit);
	return buf;
}

/* The options of the CPU manager that are on, if any. */
static void print_cpu_options(const struct status *st)
{
	static const char group[] = "cpuManagerPolicyOptions.";
	const char *before = "CPU manager options: ", *after = "";

	for (size_t i = 0; i < st->settings.nr; i++) {
		const struct key_value *s = &st->settings.at[i];

		if (strncmp(s->key, group, sizeof group - 1) != 0 || !text_equal(s->value, "true"))
			continue;
		(void)printf("%s%s", before, s->key + sizeof group - 1);
		before = ", ";
		after = "\n";
	}
	(void)fputs(after, stdout);
}

static void print_kubelet(const struct status_kubelet *k)
{
	if (!k)
		return;
	(void)printf("kubelet: device plugin %s", k->device_plugin);
	if (k->tokens)
		(void)printf(
			", %u of numafit.io/cpu (%u unhealthy), %u given out (%u wait for their "
			"container)",
			k->tokens, k->unhealthy, k->leased, k->waiting);
	(void)printf("; PodResources %s; Pods API %s", k->pod_resources, k->pods_api);
	if (k->pods)
		(void)printf(", %llu pods", (unsigned long long)k->pods);
	(void)putchar('\n');
}

static void print_pod_facts(const char *source)
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
			(void)printf("pods are known from %s\n", texts[i].text);
}

static void print_claims(const struct status_claims *c)
{
	if (!c)
		return;
	(void)printf("devices of claims: %llu known, by %llu ResourceSlices (watch %s)",
		(unsigned long long)c->devices, (unsigned long long)c->slices, c->slices_watch);
	if (c->incomplete_pools)
		(void)printf("; of %llu pools not all have come",
			(unsigned long long)c->incomplete_pools);
	if (c->unknown[CLAIMS_NOT_SHOWN_YET - 1] + c->unknown[CLAIMS_NOT_PUBLISHED - 1])
		(void)printf("; %llu containers were placed before theirs were shown, %llu had one "
			     "of which nothing says where it is",
			(unsigned long long)c->unknown[CLAIMS_NOT_SHOWN_YET - 1],
			(unsigned long long)c->unknown[CLAIMS_NOT_PUBLISHED - 1]);
	if (c->waits)
		(void)printf("; %llu answers waited for them, %llu ms in all",
			(unsigned long long)c->waits, (unsigned long long)(c->waited_ns / NS_PER_MS));
	(void)putchar('\n');
}

static void print_dra(const struct status_dra *v, size_t nr_shares)
{
	if (!v)
		return;
	(void)printf("claims of CPUs and memory: %zu held; with the kubelet: %s; ResourceSlice %s",
		nr_shares, v->registration,
		v->slice_current ? "published" : "NOT as it should be, or not known yet");
	if (v->waiting)
		(void)printf("; %llu are being prepared", (unsigned long long)v->waiting);
	if (v->failed)
		(void)printf("; %llu failed since numafitd started (its log says why)",
			(unsigned long long)v->failed);
	(void)putchar('\n');
}

static void print_enforcement(const struct status_pool *p)
{
	bool by_cgroups = text_equal(p->enforced, pool_enforced_words[POOL_BY_CGROUPS]);

	if (by_cgroups)
		(void)printf("its containers are kept in it by %llu cgroup%s",
			(unsigned long long)p->cgroups, p->cgroups == 1 ? "" : "s");
	else
		(void)printf("its containers are updated one by one%s%s",
			p->why_updates ? ": " : "", p->why_updates ? p->why_updates : "");
	if (p->rewritten)
		(void)printf("; other programs have changed these %llu times",
			(unsigned long long)p->rewritten);
	if (p->idle)
		(void)printf("; %llu CPUs are in no container's cpuset (sharedPoolStep)",
			(unsigned long long)p->idle);
	(void)puts("");
	if (p->problem)
		(void)printf("NOT IN FORCE: %s\n", p->problem);
}

static void print_quota(const struct status_quota *q)
{
	if (!q || text_equal(q->use, quota_use_words[QUOTA_KEEP]))
		return;
	(void)printf("containers with CPUs of their own have no CFS quota");
	if (q->containers_alone)
		(void)printf(", but their pods have: %s", q->containers_alone);
	else
		(void)printf(", nor %s %llu of their pods", q->pods == 1 ? "has" : "have",
			(unsigned long long)q->pods);
	if (q->rewritten)
		(void)printf("; other programs have set one %llu times",
			(unsigned long long)q->rewritten);
	(void)puts("");
	if (q->problem)
		(void)printf("NOT IN FORCE: %s\n", q->problem);
}

static void print_quiet(const struct status_quiet *q)
{
	char irq[CPUSET_TEXT_MAX], frequency[CPUSET_TEXT_MAX];

	if (!q)
		return;
	(void)cpuset_format(&q->irq_cpus, irq, sizeof irq);
	(void)cpuset_format(&q->frequency_cpus, frequency, sizeof frequency);
	(void)printf("quiet CPUs: no interrupts on %s", *irq ? irq : "none");
	if (q->moved)
		(void)printf(" (%llu kept off)", (unsigned long long)q->moved);
	if (q->unmovable)
		(void)printf("; the kernel lets %llu interrupts come there",
			(unsigned long long)q->unmovable);
	(void)printf("; frequency profiles on %s", *frequency ? frequency : "none");
	if (q->clock_shared)
		(void)printf(", of which %llu share a clock with others and keep it",
			(unsigned long long)q->clock_shared);
	if (q->rewritten)
		(void)printf("; other programs have moved interrupts there %llu times",
			(unsigned long long)q->rewritten);
	(void)printf("%s\n", q->irqbalance ? "; irqbalance runs" : "");
	if (q->interrupts_not)
		(void)printf("NOT IN FORCE: interrupts: %s\n", q->interrupts_not);
	if (q->frequencies_not)
		(void)printf("NOT IN FORCE: frequencies: %s\n", q->frequencies_not);
	if (q->problem && !q->interrupts_not && !q->frequencies_not)
		(void)printf("NOT IN FORCE: %s\n", q->problem);
}

static void print_status_head(const struct status *st)
{
	const struct status_counters *c = &st->info.counters;
	const struct status_config *config = st->info.config;
	char list[CPUSET_TEXT_MAX], up[UPTIME_TEXT_MAX];

	(void)printf("numafitd %s on machine %s, up %s\n", st->info.version, st->machine,
		uptime_text(st->info.uptime_ms, up, sizeof up));
	(void)printf("mode %s, policy %s, scope %s, prefer-closest-numa-nodes %s\n",
		setting_value(st, "mode"), setting_value(st, "topologyManagerPolicy"),
		setting_value(st, "topologyManagerScope"),
		setting_value(st, "topologyManagerPolicyOptions.prefer-closest-numa-nodes"));
	print_cpu_options(st);
	if (config && config->refused)
		(void)printf("config: what %s says is not in force: %s\n", config->file,
			config->refused);
	if (config && config->restart)
		(void)printf("config: waits for a restart of numafitd: %s\n", config->restart);
	(void)printf("runtime %s: %s\n", *st->info.runtime ? st->info.runtime : "unknown",
		st->info.connection);
	if (st->info.journal)
		(void)printf("journal: it cannot be written, new containers are refused: %s\n",
			st->info.journal);
	print_kubelet(st->info.kubelet);
	print_pod_facts(st->info.pod_facts);
	print_claims(st->info.claims);
	print_dra(st->info.dra, st->nr_shares);
	if (st->info.apiserver && st->info.apiserver->unusable)
		(void)printf("API server: the credentials for it cannot be used: %s\n",
			st->info.apiserver->unusable);
	(void)printf(
		"containers: %llu created, %llu refused, %llu adopted, %llu moved, %llu released, "
		"since numafitd started\n",
		(unsigned long long)c->creates, (unsigned long long)c->refused,
		(unsigned long long)c->adopted, (unsigned long long)c->updates,
		(unsigned long long)c->released);
	if (c->refused)
		(void)puts(
			"numafit refusals lists what was refused, also before that, and resizes");
	if (c->cut_short)
		(void)printf("%llu decided with what was found when mergeVisitBudget ran out\n",
			(unsigned long long)c->cut_short);
	if (c->advice_accepted + c->advice_repaired + c->advice_rejected)
		(void)printf("schedulers' hints: %llu accepted, %llu repaired, %llu rejected\n",
			(unsigned long long)c->advice_accepted,
			(unsigned long long)c->advice_repaired,
			(unsigned long long)c->advice_rejected);
	if (c->compared)
		(void)printf("shadow: %llu compared with the kubelet's choice, %llu differ\n",
			(unsigned long long)c->compared, (unsigned long long)c->disagreed);
	(void)printf("shared pool: CPUs %s", cpuset_format(&st->pool, list, sizeof list));
	(void)printf("; reserved: %s", cpuset_empty(&st->reserved)
					       ? "none"
					       : cpuset_format(&st->reserved, list, sizeof list));
	if (!cpuset_empty(&st->isolated))
		(void)printf("; isolated: %s", cpuset_format(&st->isolated, list, sizeof list));
	(void)puts("");
	if (st->info.enforcement)
		print_enforcement(st->info.enforcement);
	print_quota(st->info.quota);
	print_quiet(st->info.quiet);
	(void)puts("");
}

/* Every node has the kinds of memory that the first one has: they are the machine's. */
static void print_status_nodes(const struct status *st)
{
	size_t nr_kinds = st->nr_nodes ? st->nodes[0].nr_memory : 0;
	static const char *const titles[] = {
		"NODE", "CPUS", "EXCLUSIVE", "RESERVED", "FREE", "POOL"};
	enum { NR_TITLES = sizeof titles / sizeof *titles };
	struct table t = {.nr_columns = NR_TITLES + 1 + nr_kinds};
	char free_text[TEXT_SIZE_MAX], all_text[TEXT_SIZE_MAX];

	for (size_t i = 0; i < NR_TITLES; i++)
		table_add(&t, "%s", titles[i]);
	for (size_t k = 0; k < nr_kinds; k++)
		table_add(&t, "FREE %s", st->nodes[0].memory[k].type);
	table_add(&t, "TOGETHER WITH");
	for (const struct status_node *n = st->nodes; n < st->nodes + st->nr_nodes; n++) {
		table_add(&t, "%u", n->id);
		table_add(&t, "%u", n->cpus);
		table_add(&t, "%u", n->cpus_held);
		table_add(&t, "%u", n->cpus_reserved);
		table_add(&t, "%u", n->cpus - n->cpus_held - n->cpus_reserved);
		table_add(&t, "%u", n->cpus_pool);
		for (size_t k = 0; k < nr_kinds; k++)
			if (k < n->nr_memory && n->device_memory && !n->memory[k].allocatable)
				table_add(&t, "a device's");
			else if (k < n->nr_memory)
				table_add(&t, "%s of %s",
					text_size_rounded(free_text, n->memory[k].free),
					text_size_rounded(all_text, n->memory[k].allocatable));
			else
				table_add(&t, "-");
		table_add(&t, "%s",
			strchr(n->memory_group, ',') || strchr(n->memory_group, '-')
				? n->memory_group
				: "-");
	}
	table_print(&t, stdout);
	table_fini(&t);
}

/* Claims hold CPUs whether containers run on them or not. */
static void print_shares(const struct status *st, const struct options *o)
{
	static const char *const titles[] = {"CLAIM", "SHARE", "NODE", "CPUS", "CONTAINERS"};
	struct table t = {.nr_columns = sizeof titles / sizeof *titles};
	bool any = false;

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
		any = true;
	}
	if (any) {
		(void)putchar('\n');
		table_print(&t, stdout);
	}
	table_fini(&t);
}

static const char *own_words(const struct status_container *c)
{
	if (c->left)
		return "left";
	return c->exclusive ? "yes" : c->shares_in_pod ? "its pod's" : "shared";
}

static void print_containers(const struct status *st, const struct options *o)
{
	static const char *const titles[] = {
		"CONTAINER", "QOS", "CPUS", "OWN", "MEMS", "AFFINITY", "PREFERRED", "SOURCE",
		"WISHES", "ID"};
	struct table t = {.nr_columns = sizeof titles / sizeof *titles};
	bool any = false;

	t.nr_columns -= o->output == OUTPUT_WIDE ? 0 : 2;
	for (size_t i = 0; i < t.nr_columns; i++)
		table_add(&t, "%s", titles[i]);
	for (const struct status_container *c = st->containers;
		c < st->containers + st->nr_containers; c++) {
		if (o->ns && !text_equal(o->ns, c->ns))
			continue;
		any = true;
		table_add(&t, "%s/%s/%s", c->ns, c->pod, c->container);
		table_add(&t, "%s", qos_words[c->qos]);
		table_add(&t, "%s", *c->cpus ? c->cpus : "any");
		table_add(&t, "%s", own_words(c));
		table_add(&t, "%s", c->mems);
		table_add(&t, "%s", c->nodes ? c->nodes : "any");
		table_add(&t, "%s", c->preferred ? "yes" : "no");
		table_add(&t, "%s", decision_source_words[c->source]);
		if (o->output != OUTPUT_WIDE)
			continue;
		table_add(&t, "%s", c->wishes ? c->wishes : "-");
		table_add(&t, "%s", c->id);
	}
	(void)putchar('\n');
	if (any)
		table_print(&t, stdout);
	else
		(void)printf(
			"no containers%s%s\n", o->ns ? " in namespace " : "", o->ns ? o->ns : "");
	table_fini(&t);
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
		print_status_head(&st);
		print_status_nodes(&st);
		print_containers(&st, o);
		print_shares(&st, o);
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

static int status_error(const struct call *c, const struct err *e)
{
	(void)call_fail(c, EXIT_CANNOT, e);
	if (e->code != ENOENT && e->code != ECONNREFUSED && e->code != EACCES)
		return EXIT_CANNOT;
	(void)fputs(
		"Check that numafitd runs on this node, that you may open its socket (root may), and "
		"that\nits runDirectory is the one above (--run-directory DIR, --socket PATH or "
		"--config FILE\nname another). ",
		stderr);
	advise_kubectl(stderr, c->command->name);
	return EXIT_CANNOT;
}

static int run_status(const struct call *c)
{
	struct options o = {.output = OUTPUT_TABLE};
	struct err e = {0};
	char path[SOCKET_PATH_MAX];
	int code = call_read(c, &o);

	if (code >= 0)
		return code;
	if ((o.socket != NULL) + (o.config != NULL) + (o.directory != NULL) > 1)
		return call_misused(c, "--run-directory, --socket and --config exclude each other");
	if (socket_path(&o, path, sizeof path, &e))
		return status_error(c, &e);
	do {
		if (ask_status(path, &o, &e))
			return status_error(c, &e);
	} while (o.watch && watch_wait());
	return EXIT_DONE;
}

static const struct option_row rows[] = {
	OUTPUT_ROWS(struct options, "table|wide|json"),
	NAMESPACE_ROW(struct options),
	WATCH_ROW(struct options, "print it again every two seconds, until it is interrupted"),
	RUN_DIRECTORY_ROW(struct options),
	{.name = "socket",
		.value = "PATH",
		.help = "the daemon's socket (default " RUN_DIRECTORY "/numafitd.sock)",
		.read = option_text,
		.at = offsetof(struct options, socket),
		.completes = COMPLETE_FILE},
	{.letter = 'c',
		.name = "config",
		.value = "FILE",
		.help = "the daemon's config file, which may name another runDirectory",
		.read = option_text,
		.at = offsetof(struct options, config),
		.completes = COMPLETE_FILE},
	{0},
};

const struct command verb_status = {
	.name = "status",
	.summary = "show what the daemon on this node holds and has done",
	.about =
		"Show what numafitd on this node does: policy, NUMA nodes, containers. With -o json "
		"the whole as one document, whatever the namespace.",
	.options = rows,
	.examples = {{"numafit status", "policy, NUMA nodes and containers of this node"},
		{"numafit status -n inference -w", "one namespace's containers, again and again"},
		{"kubectl -n numafit-system exec ds/numafitd -- numafit status -o json",
			"for a program, from a pod of the daemon's"}},
	.exits = {[EXIT_CANNOT] = "no daemon answers"},
	.run = run_status,
};
