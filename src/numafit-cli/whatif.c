#include <numafit-cli/verbs.h>

#include <errno.h>
#include <getopt.h>
#include <host/discover.h>
#include <io/journal.h>
#include <numafit-cli/again.h>
#include <numafit/cpus.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/mem.h>
#include <numafit/quantity.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/table.h>
#include <numafit-cli/wording.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"usage: numafit whatif [--cpus N] [--memory SIZE] [--hugepages-PAGE SIZE ...]\n"
	"                      [--qos CLASS] [--containers N] [--policy POLICY] [--set KEY=VALUE "
	"...]\n"
	"                      [--run-directory DIR | --machine MACHINE] [--json]\n"
	"\n"
	"Would a pod that asks for this fit on the node as it is now, and where would it go? What\n"
	"numafitd holds is read from its journal; the daemon is not asked and nothing is changed.\n"
	"\n"
	"  --cpus N             CPUs of each container (8, 500m)\n"
	"  --memory SIZE        memory of each container (16Gi)\n"
	"  --hugepages-PAGE SIZE  huge pages of each, such as --hugepages-1Gi 4Gi\n"
	"  --qos CLASS          Guaranteed (default), Burstable or BestEffort\n"
	"  --containers N       a pod of so many of these containers (default 1)\n"
	"  --policy POLICY      another topologyManagerPolicy than numafitd's\n"
	"  --set KEY=VALUE      another value of any setting that decides where containers go\n"
	"  --run-directory DIR  numafitd's (default " RUN_DIRECTORY ")\n"
	"  --machine MACHINE    an empty machine instead, as for numafit topology\n"
	"  --json               the answer as a record of the journal\n"
	"  --help               this text\n"
	"\n"
	"Exit code: 0 it fits; 1 it would be refused; 2 the question or the journal cannot be "
	"read.\n";

enum { CONTAINERS_MAX = 256, CONTAINER_NAME_MAX = 24, SETS_MAX = 64 };
#define HUGEPAGES "hugepages-"

/* What is asked, and of which node. */
struct question {
	uint64_t cpu_milli, containers;
	enum qos qos;
	unsigned nr_memory;
	struct memory_ask memory[TOPO_KINDS];
	unsigned nr_sets;
	struct key_value sets[SETS_MAX];
	const char *directory, *machine;
	bool json;
};

/* The question */

static int add_memory_asked(
	struct question *q, uint64_t page_bytes, const char *value, struct err *e)
{
	uint64_t bytes;
	int rc = quantity_parse_count(value, QUANTITY_WHOLE, &bytes, e);

	for (unsigned i = 0; i < q->nr_memory && !rc; i++)
		if (q->memory[i].page_bytes == page_bytes)
			rc = err_set(e, EINVAL, "it is there twice");
	if (!rc && q->nr_memory == TOPO_KINDS)
		rc = err_set(e, E2BIG, "more than %d kinds of memory", TOPO_KINDS);
	if (!rc)
		q->memory[q->nr_memory++] = (struct memory_ask){page_bytes, bytes};
	return rc;
}

static int read_whatif_qos(struct question *q, const char *value, struct err *e)
{
	int qos = qos_from_name(value);

	if (qos < 0)
		return err_set(
			e, EINVAL, "\"%s\" is not Guaranteed, Burstable or BestEffort", value);
	q->qos = (enum qos)qos;
	return 0;
}

static int add_set(struct question *q, const char *key, const char *value, struct err *e)
{
	if (q->nr_sets == SETS_MAX)
		return err_set(e, E2BIG, "more than %d settings", SETS_MAX);
	q->sets[q->nr_sets++] = (struct key_value){key, value};
	return 0;
}

static int split_set(struct question *q, char *assignment, struct err *e)
{
	char *value = strchr(assignment, '=');

	if (!value)
		return err_set(e, EINVAL, "\"%s\": KEY=VALUE is expected", assignment);
	*value++ = '\0';
	return add_set(q, assignment, value, e);
}

static int read_whatif_option(struct question *q, int c, char *value, struct err *e)
{
	switch (c) {
	case 'c':
		return quantity_parse_count(value, QUANTITY_MILLI, &q->cpu_milli, e);
	case 'm':
		return add_memory_asked(q, 0, value, e);
	case 'q':
		return read_whatif_qos(q, value, e);
	case 'n':
		return text_u64(value, strlen(value), CONTAINERS_MAX, &q->containers, e);
	case 'p':
		return add_set(q, "topologyManagerPolicy", value, e);
	case 's':
		return split_set(q, value, e);
	case 'd':
		q->directory = value;
		return 0;
	case 'M':
		q->machine = value;
		return 0;
	default:
		q->json = true;
		return 0;
	}
}

/* --hugepages-2Mi SIZE and --hugepages-2Mi=SIZE: any page size, so getopt cannot know them. They
 * are taken out of argv. 0, or -errno. */
static int take_hugepage_options(struct question *q, int *argc, char **argv, struct err *e)
{
	int left = 1, rc = 0;

	for (int i = 1; i < *argc && !rc; i++) {
		char *name = argv[i], *value = strchr(name, '=');

		if (strncmp(name, "--" HUGEPAGES, sizeof "--" HUGEPAGES - 1) != 0) {
			argv[left++] = name;
			continue;
		}
		if (value)
			*value++ = '\0';
		else
			value = ++i < *argc ? argv[i] : NULL;
		uint64_t page = page_bytes_from_name(name + sizeof "--" HUGEPAGES - 1);
		if (!page)
			rc = err_set(e, EINVAL, "that is no page size");
		else if (!value)
			rc = err_set(e, EINVAL, "a size is expected");
		else
			rc = add_memory_asked(q, page, value, e);
		if (rc)
			(void)err_add(e, rc, "%s", name);
	}
	*argc = left;
	argv[left] = NULL;
	return rc;
}

/* 0: go on; 1: it was --help; -errno. */
static int read_question(int argc, char **argv, struct question *q, struct err *e)
{
	static const struct option options[] = {{"cpus", required_argument, NULL, 'c'},
		{"memory", required_argument, NULL, 'm'}, {"qos", required_argument, NULL, 'q'},
		{"containers", required_argument, NULL, 'n'},
		{"policy", required_argument, NULL, 'p'}, {"set", required_argument, NULL, 's'},
		{"run-directory", required_argument, NULL, 'd'},
		{"machine", required_argument, NULL, 'M'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c, which = 0, rc = take_hugepage_options(q, &argc, argv, e);

	optind = 0; /* main() hands on its own arguments: start over */
	while (!rc && (c = getopt_long(argc, argv, "", options, &which)) != -1) {
		if (c == 'h')
			return 1;
		if (c == '?')
			return err_set(e, EINVAL, "see numafit whatif --help");
		rc = read_whatif_option(q, c, optarg, e);
		if (rc)
			return err_add(e, rc, "--%s", options[which].name);
	}
	if (rc)
		return rc;
	if (optind < argc)
		return err_set(e, EINVAL, "\"%s\" is not an option", argv[optind]);
	if (q->machine && q->directory)
		return err_set(e, EINVAL, "--machine and --run-directory exclude each other");
	if (!q->containers)
		return err_set(e, EINVAL, "--containers: a pod has one at least");
	return 0;
}

/* The node */

/* What the ledger was built with cannot be imagined away. */
static bool is_of_ledger(const char *key)
{
	static const char *const kinds[] = {"reserved", "systemReserved", "kubeReserved",
		"deviceMemory", "cpuManagerPolicyOptions.strict-cpu-reservation", "machine",
		"runDirectory"};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strncmp(key, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

static int apply_sets(
	const struct question *q, struct settings *s, const struct topo *t, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < q->nr_sets && !rc; i++) {
		if (!q->machine && is_of_ledger(q->sets[i].key))
			rc = err_set(e, EINVAL,
				"%s: it cannot be changed while containers are held; ask for an "
				"empty machine (--machine)",
				q->sets[i].key);
		else
			rc = settings_set(s, q->sets[i].key, q->sets[i].value, e);
	}
	s->merge_visit_budget = MERGE_VISIT_BUDGET_MAX; /* no container waits */
	return rc || !(q->nr_sets || q->machine) ? rc : settings_check(s, t, e);
}

static int empty_machine(const struct question *q, struct journal_fold *f, struct err *e)
{
	const struct engine_hooks none = {0};
	struct settings *s = &f->settings;
	int rc = machine_load(q->machine, &f->topo, NULL, NULL, e);

	settings_init(s);
	if (!rc)
		rc = apply_sets(q, s, &f->topo, e);
	if (rc)
		return rc;
	unsigned reserved = settings_reserved_cpu_count(s);
	if (reserved && cpuset_empty(&s->reserved_cpus))
		rc = cpus_reserve(&f->topo, &s->cpu_options, reserved, &s->reserved_cpus, e);
	f->engine = engine_new(&f->topo, s, &none);
	return rc;
}

/* The node into *f and the settings to decide with into *s. */
static int load_node(
	const struct question *q, struct journal_fold *f, struct settings *s, struct err *e)
{
	char path[RUN_PATH_MAX];
	const char *directory = q->directory ? q->directory : RUN_DIRECTORY;
	int rc;

	if (q->machine) {
		rc = empty_machine(q, f, e);
		*s = f->settings;
		return rc;
	}
	rc = journal_fold(f, journal_path(directory, NULL, path), NULL, NULL, e);
	if (rc) {
		(void)fprintf(stderr, "numafit whatif: %s\n", e->text);
		advise_on_journal(stderr, directory, e);
		e->text[0] = '\0'; /* said */
		return rc;
	}
	*s = f->settings;
	return apply_sets(q, s, &f->topo, e);
}

/* The answer */

/* The pod in question, its containers alike. */
struct imagined {
	struct pod pod;
	struct ask container[CONTAINERS_MAX];
	char name[CONTAINERS_MAX][CONTAINER_NAME_MAX];
};

static void imagine_pod(const struct question *q, struct imagined *x)
{
	struct ask one = {.cpu_milli = q->cpu_milli, .nr_memory = q->nr_memory};

	memcpy(one.memory, q->memory, sizeof one.memory);
	x->pod = (struct pod){.sandbox_id = "whatif",
		.uid = "whatif",
		.ns = "whatif",
		.name = "whatif",
		.qos = q->qos,
		.nr = (size_t)q->containers,
		.container = x->container};
	for (unsigned i = 0; i < x->pod.nr; i++) {
		(void)snprintf(x->name[i], sizeof x->name[i], "container-%u", i);
		x->container[i] = one;
		x->container[i].name = x->name[i];
	}
}

static unsigned free_cpus_of(const struct snapshot_node *n)
{
	return n->cpus - n->cpus_held - n->cpus_reserved;
}

static void add_node_cells(struct table *t, const struct snapshot_node *was,
	const struct snapshot_node *is, unsigned nr_kinds)
{
	char left[TEXT_SIZE_MAX], before[TEXT_SIZE_MAX];

	if (free_cpus_of(was) == free_cpus_of(is))
		table_add(t, "%u of %u", free_cpus_of(is), is->cpus);
	else
		table_add(t, "%u of %u (was %u)", free_cpus_of(is), is->cpus, free_cpus_of(was));
	for (unsigned k = 0; k < nr_kinds; k++)
		if (was->free[k] == is->free[k])
			table_add(t, "%s", text_size(left, is->free[k]));
		else
			table_add(t, "%s (was %s)", text_size(left, is->free[k]),
				text_size(before, was->free[k]));
}

/* What would be left on each NUMA node. */
static int print_left(struct journal_fold *f, const struct answer *a, struct err *e)
{
	enum { OTHER_COLUMNS = 2 };
	struct table t = {.nr_columns = OTHER_COLUMNS + f->topo.nr_kinds};
	auto_free struct snapshot *was = xcalloc(1, sizeof *was), *is = xcalloc(1, sizeof *is);
	char kind[TOPO_NAME_MAX];

	snapshot_take(was, engine_ledger(f->engine), &f->settings);
	int rc = engine_replay(f->engine, &a->record, e);
	if (rc)
		return rc;
	snapshot_take(is, engine_ledger(f->engine), &f->settings);
	(void)puts("\nwhat would be left for containers:");
	table_add(&t, "  NODE");
	table_add(&t, "FREE CPUS");
	for (unsigned k = 0; k < f->topo.nr_kinds; k++)
		table_add(&t, "FREE %s", topo_kind_name(&f->topo, k, kind, sizeof kind));
	nodeset_each (n, f->topo.nodes) {
		table_add(&t, "  %u", f->topo.ids.id[n]);
		add_node_cells(&t, &was->node[n], &is->node[n], f->topo.nr_kinds);
	}
	table_print(&t, stdout);
	table_fini(&t);
	return 0;
}

static void print_whatif_head(const struct journal_fold *f, const struct question *q)
{
	char when[WORDING_TIME_MAX];

	if (q->machine)
		(void)printf("on machine %s, empty:\n", f->topo.name);
	else if (f->nr_records)
		(void)printf("on machine %s, as numafitd had it at %s:\n", f->topo.name,
			wording_time(f->last_ms, when));
	else
		(void)printf("on machine %s, where numafitd holds nothing:\n", f->topo.name);
}

static int print_words(struct journal_fold *f, const struct question *q, const struct settings *s,
	const struct imagined *x, const struct answer *a, struct err *e)
{
	const struct scene scene = {stdout, &f->topo, s};
	auto_free struct snapshot *now = xcalloc(1, sizeof *now);

	print_whatif_head(f, q);
	if (!a->decision.admit) {
		(void)puts("it would be refused");
		snapshot_take(now, engine_ledger(f->engine), &f->settings);
		const struct request first = request_of_part(&x->pod, 0);
		wording_print_request(&scene, &first);
		wording_print_refusal(&scene, &a->decision, now);
		wording_print_reasons(&scene, &a->decision, a->decision.reasons);
		return 0;
	}
	for (size_t i = 0; i < a->record.nr_parts; i++) {
		const struct record_part *part = &a->record.parts[i];

		(void)printf("%s would be %s\n", a->record.nr_parts > 1 ? x->name[i] : "it",
			wording_verdict(&part->decision));
		wording_print_request(&scene, &part->request);
		wording_print_grant(&scene, &part->decision);
		wording_print_reasons(&scene, &part->decision, part->decision.reasons);
	}
	return print_left(f, a, e);
}

static int answer_whatif(
	const struct question *q, struct journal_fold *f, bool *fits, struct err *e)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	auto_free struct imagined *x = xcalloc(1, sizeof *x);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct answer answer;
	struct arena a;
	int rc = load_node(q, f, s, e);

	if (rc)
		return rc;
	imagine_pod(q, x);
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	decide_pod(engine_ledger(f->engine), s, &x->pod, &a, &answer);
	answer.record.cause = "whatif";
	answer.record.time_ms = f->last_ms;
	*fits = answer.decision.admit;
	if (!q->json)
		return print_words(f, q, s, x, &answer, e);
	auto_free char *line = xcalloc(JOURNAL_TEXT_MAX + 1, 1);
	rc = journal_json_record(&answer.record, &f->topo.ids, line, JOURNAL_TEXT_MAX + 1, e);
	if (rc > 0)
		(void)puts(line);
	return rc < 0 ? rc : 0;
}

int verb_whatif(int argc, char **argv)
{
	struct question q = {.containers = 1};
	auto_free struct journal_fold *f = xcalloc(1, sizeof *f);
	bool fits = false;
	struct err e = {0};
	int rc = read_question(argc, argv, &q, &e);

	if (rc > 0) {
		(void)fputs(help, stdout);
		return EXIT_DONE;
	}
	if (!rc)
		rc = answer_whatif(&q, f, &fits, &e);
	journal_fold_fini(f);
	if (rc && *e.text)
		(void)fprintf(stderr, "numafit whatif: %s\n", e.text);
	if (rc)
		return EXIT_USAGE;
	return fits ? EXIT_DONE : EXIT_FAILED;
}
