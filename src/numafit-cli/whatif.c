#include <numafit-cli/verbs.h>

#include <codec/advice.h>
#include <codec/wishes.h>
#include <errno.h>
#include <host/discover.h>
#include <io/journal.h>
#include <numafit-cli/again.h>
#include <numafit/cpus.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/mem.h>
#include <numafit/quantity.h>
#include <numafit-cli/output.h>
#include <numafit-cli/pod_file.h>
#include <codec/refusal_line.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/whatif_claim.h>
#include <numafit-cli/whatif_devices.h>
#include <numafit-cli/whatif_print.h>
#include <numafit-cli/whatif_moves.h>
#include <numafit-cli/wording.h>
#include <numafit/text.h>
#include <numafit/number.h>
#include <stdio.h>
#include <string.h>

enum { CONTAINERS_MAX = 256, CONTAINER_NAME_MAX = 24, SAID_MAX = 1024, WISH_KEY_MAX = 128 };
enum { CLAIM_MILLI_MAX = 1 << 30 }; /* more than any machine has */

/* What is asked, and of which node. */
struct question {
	uint64_t cpu_milli, containers, moves;
	enum qos qos;
	unsigned nr_memory;
	struct memory_ask memory[TOPO_KINDS];
	struct assignments sets, wishes;
	struct whatif_devices devices;
	struct whatif_claim claim;
	const char *directory, *machine, *file;
	enum output output;
};

/* The question */

static int read_whatif_cpus(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return quantity_parse_count(value, QUANTITY_MILLI, member, e);
}

static int read_whatif_memory(const struct option_row *o, void *member, char *value, struct err *e)
{
	struct question *q = member;

	(void)o;
	return ask_read_memory(q->memory, &q->nr_memory, 0, value, e);
}

/* "1Gi=2Gi" */
static int read_whatif_pages(const struct option_row *o, void *member, char *value, struct err *e)
{
	struct question *q = member;
	char *size = strchr(value, '=');

	(void)o;
	*size++ = '\0';
	uint64_t page = page_bytes_from_name(value);
	return page ? ask_read_memory(q->memory, &q->nr_memory, page, size, e)
		    : err_set(e, EINVAL, "that is no page size");
}

static int read_whatif_containers(
	const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	int rc = text_u64(value, strlen(value), CONTAINERS_MAX, member, e);
	return rc || *(uint64_t *)member ? rc : err_set(e, EINVAL, "a pod has one at least");
}

static int read_whatif_moves(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	int rc = text_u64(value, strlen(value), DEFRAG_MOVES_MAX, member, e);
	return rc || *(uint64_t *)member ? rc : err_set(e, EINVAL, "1 at least");
}

static int read_whatif_policy(const struct option_row *o, void *member, char *value, struct err *e)
{
	unsigned word;
	int rc = option_word(o, &word, value, e);

	if (!rc)
		*vec_push((struct assignments *)member) =
			(struct key_value){"topologyManagerPolicy", value};
	return rc;
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

	for (size_t i = 0; i < q->sets.nr && !rc; i++) {
		if (!q->machine && is_of_ledger(q->sets.at[i].key))
			rc = err_set(e, EINVAL,
				"%s: it cannot be changed while containers are held; ask for an "
				"empty machine (--machine)",
				q->sets.at[i].key);
		else
			rc = settings_set(s, q->sets.at[i].key, q->sets.at[i].value, e);
	}
	s->merge_visit_budget = MERGE_VISIT_BUDGET_MAX; /* no container waits */
	return rc || !(q->sets.nr || q->machine) ? rc : settings_check(s, t, e);
}

/* -1: go on; else the exit code. */
static int empty_machine(const struct call *c, const struct question *q, struct journal_fold *f)
{
	const struct engine_hooks none = {0};
	struct correction_lines notes = {stderr, "numafit whatif: "};
	struct settings *s = &f->settings;
	struct err e;

	if (machine_load(q->machine, &f->topo, print_correction, &notes, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	settings_init(s);
	if (apply_sets(q, s, &f->topo, &e))
		return call_misused(c, "%s", e.text);
	unsigned reserved = settings_reserved_cpu_count(s);
	if (reserved && cpuset_empty(&s->reserved_cpus) &&
		cpus_reserve(&f->topo, &s->cpu_options, reserved, &s->reserved_cpus, &e))
		return call_misused(c, "%s", e.text);
	f->engine = engine_new(&f->topo, s, &none);
	return -1;
}

/* The node into *f and the settings to decide with into *s. -1: go on; else the exit code. */
static int load_node(
	const struct call *c, const struct question *q, struct journal_fold *f, struct settings *s)
{
	char path[RUN_PATH_MAX];
	const char *directory = q->directory ? q->directory : RUN_DIRECTORY;
	struct err e;
	int code;

	if (q->machine) {
		code = empty_machine(c, q, f);
		*s = f->settings;
		return code;
	}
	if (journal_fold(f, journal_path(directory, NULL, path), NULL, NULL, &e)) {
		(void)call_fail(c, EXIT_CANNOT, &e);
		advise_on_journal(stderr, c->command->name, directory, &e);
		return EXIT_CANNOT;
	}
	*s = f->settings;
	return apply_sets(q, s, &f->topo, &e) ? call_misused(c, "%s", e.text) : -1;
}

/* The answer */

/* The pod in question: a file's, or of containers that are alike. */
struct imagined {
	struct pod pod;
	struct pod_file file;
	struct arena annotations; /* what those of the file say */
	struct whatif_given given;
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

static void print_workload(const struct workload *w)
{
	(void)printf("%s ", w->kind);
	wording_print_plain(stdout, w->name);
	if (w->replicas > 1)
		(void)printf(", one of its %llu pods", (unsigned long long)w->replicas);
	(void)puts(":");
}

/* numafit refuses no pod for memory that it does not set aside; a scheduler does. */
static void print_what_no_scheduler_sends(const struct journal_fold *f, const struct pod *pod)
{
	const struct memory_ask has = {0, topo_memory_of(&f->topo, f->topo.nodes, 0)};
	const struct ask machine = {.cpu_milli = f->topo.nr_cpus * (uint64_t)MILLI_PER_CPU,
		.nr_memory = 1,
		.memory = {has}};
	const struct pod_resource memory = {.kind = POD_BYTES};
	const struct ask asked = pod_ask(pod);
	char said[SAID_MAX];
	struct text t;

	if (asked.cpu_milli <= machine.cpu_milli && pod_needs_at_once(pod, memory) <= has.bytes)
		return;
	text_init(&t, said, sizeof said);
	text_add(&t, "note: it asks for ");
	diagnosis_add_ask(&t, &asked);
	text_add(&t, ", and this machine has ");
	diagnosis_add_ask(&t, &machine);
	(void)printf("%s: no scheduler sends it here\n", said);
}

static void print_own_policy(const struct scene *scene, const struct pod *pod)
{
	if (pod->has_policy)
		wording_print(scene->to, "policy", "%s, the pod's own (the node's is %s)",
			topology_policy_words[pod->policy],
			topology_policy_words[scene->s->topology_policy]);
}

static int print_words(struct journal_fold *f, const struct question *q, const struct settings *s,
	const struct imagined *x, const struct answer *a, struct err *e)
{
	const struct scene scene = {
		stdout, &f->topo, s, .pool = &a->record.pool, .wide = q->output == OUTPUT_WIDE};
	const struct admit_question asked = {engine_ledger(f->engine), s, .pod = &x->pod};
	struct diagnosis why;

	whatif_print_head(f, q->machine);
	if (q->file)
		print_workload(&x->file.workload);
	if (!a->decision.admit) {
		(void)puts("it would be refused");
		diagnose_with_remedies(&asked, &a->decision, REMEDIES_THOROUGHLY, NULL, &why);
		const struct request first = request_of_part(&x->pod, 0);
		if (x->pod.nr > 1)
			wording_print_pod(&scene, &x->pod);
		else
			wording_print_request(&scene, &first);
		if (x->pod.nr == 1 && x->pod.attached)
			wording_print_devices_of(&scene, &x->pod, x->pod.container);
		print_own_policy(&scene, &x->pod);
		wording_print_refusal(&scene, &a->decision, &why, &asked);
		wording_print_reasons(&scene, &a->decision, a->decision.reasons);
		return 0;
	}
	for (size_t i = 0; i < a->record.nr_parts; i++) {
		const struct record_part *part = &a->record.parts[i];

		(void)printf("%s would be %s\n",
			part->request.ask.whole_pod ? "the pod as one"
			: a->record.nr_parts > 1    ? part->request.ask.name
						    : "it",
			wording_verdict(&part->decision));
		wording_print_request(&scene, &part->request);
		if (i < x->pod.nr && x->pod.attached)
			wording_print_devices_of(&scene, &x->pod, &x->pod.container[i]);
		print_own_policy(&scene, &x->pod);
		wording_print_grant(&scene, &part->request, &part->decision);
		wording_print_reasons(&scene, &part->decision, part->decision.reasons);
	}
	print_what_no_scheduler_sends(f, &x->pod);
	return whatif_print_left(f, a, e);
}

static int print_record(const struct journal_fold *f, const struct settings *s,
	const struct imagined *x, const struct moves *m, const struct answer *a, struct err *e)
{
	const struct admit_question asked = {engine_ledger(f->engine), s, .pod = &x->pod};
	auto_free char *members = NULL, *moves = NULL;
	struct diagnosis why;

	if (!a->decision.admit) {
		diagnose_with_remedies(&asked, &a->decision, REMEDIES_THOROUGHLY, NULL, &why);
		members = refusal_members(&asked, &a->decision, &why);
	}
	moves = m ? moves_json_format(m) : NULL;
	auto_free char *both = members && moves ? refusal_line_join(members, moves) : NULL;
	return whatif_print_record(f, a, both ? both : members ? members : moves, e);
}

/* They are the file's reader's, or ours, and no one else uses them by now. */
static struct ask *containers_of(const struct pod *pod)
{
	return (struct ask *)(uintptr_t)pod->container;
}

/* A file's pod is decided as numafitd would; its annotations are taken as if they were written for
 * it, here and now. */
static void obey_settings_and_annotations(
	const struct journal_fold *f, const struct settings *s, struct imagined *x)
{
	struct ask *containers = containers_of(&x->pod);
	const struct ledger_view *view = ledger_view(engine_ledger(f->engine));
	const struct cpuset had = cpuset_or(view->held, &view->left);
	const struct cpuset foreign = cpuset_or(s->reserved_cpus, &had);
	enum advice_format order[NR_ADVICE_FORMATS];
	struct advice_reader reader = {
		.settings = s, .facts = {.any_origin = true, .t = &f->topo, .foreign = &foreign}};
	struct advice_found found = {0};

	pod_obey_gate(s, &x->pod, containers);
	reader.order.format = order;
	reader.order.nr = (unsigned)advice_order_parse(s->advice_order, order, NULL);
	if (s->advice_mode != ADVICE_OFF)
		advice_look(&reader, &x->pod, &x->annotations, &found);
	if (advice_is_rejection(found.so_far))
		(void)fprintf(stderr, "numafit whatif: note: %s: %s\n", found.source->key,
			found.why.text);
	if (!s->advice_policy && pod_annotation(&x->pod, ADVICE_POLICY_KEY))
		(void)fprintf(stderr,
			"numafit whatif: note: %s is not looked at: schedulerHint.podPolicy is "
			"false\n",
			ADVICE_POLICY_KEY);
	x->pod.has_policy = advice_pod_policy(&reader, &x->pod, &x->annotations, &x->pod.policy);
	for (size_t i = 0; i < x->pod.nr; i++)
		containers[i].advice =
			advice_ask_for(&reader, &found, containers[i].name, &x->annotations);
}

/* The file's annotations, and those of --wish. false: there is no room for them. */
static bool add_wishes(const struct question *q, struct imagined *x)
{
	const size_t had = x->pod.nr_annotations;
	struct key_value *all = arena_array(&x->annotations, had + q->wishes.nr, sizeof *all);

	for (size_t i = 0; all && i < had; i++)
		all[i] = x->pod.annotations[i];
	for (size_t i = 0; all && i < q->wishes.nr; i++) {
		const char *name = q->wishes.at[i].key;
		char key[WISH_KEY_MAX];

		(void)snprintf(key, sizeof key, "numafit.io/%s", name);
		all[had + i] = (struct key_value){
			arena_strdup(&x->annotations, key), q->wishes.at[i].value};
		if (!all[had + i].key)
			return false;
	}
	x->pod.annotations = all;
	x->pod.nr_annotations = had + q->wishes.nr;
	return all;
}

/* What the author wishes for, as numafitd would obey it. */
static void obey_wishes(const struct journal_fold *f, const struct settings *s, struct imagined *x)
{
	struct ask *containers = containers_of(&x->pod);
	const struct wishes_reader reader = {s, &f->topo.ids, s->topology_scope == SCOPE_POD};
	struct wishes_ignored ignored = {0};
	const char *noted = NULL;

	for (size_t i = 0; i < x->pod.nr; i++) {
		wishes_take(&reader, &x->pod, &containers[i], &x->annotations, &ignored);
		if (ignored.annotation && ignored.annotation != noted)
			(void)fprintf(stderr,
				"numafit whatif: note: %s is not looked at: podWishes.allowed does not "
				"allow it\n",
				ignored.annotation);
		noted = ignored.annotation;
		if (ignored.odd)
			(void)fprintf(stderr, "numafit whatif: note: %s\n", ignored.odd);
	}
	const char *of_none = wishes_of_no_container(&x->pod, &x->annotations);
	if (of_none)
		(void)fprintf(stderr, "numafit whatif: note: %s\n", of_none);
}

static int answer_whatif(const struct call *c, const struct question *q, struct journal_fold *f)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	auto_free struct imagined *x = xcalloc(1, sizeof *x);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	auto_free struct whatif_moves *plan = xcalloc(1, sizeof *plan);
	struct answer answer;
	struct arena a;
	struct err e;
	int code = load_node(c, q, f, s);

	if (code >= 0)
		return code;
	if (!q->file)
		imagine_pod(q, x);
	else if ((code = pod_file_read(c, q->file, &x->file)) >= 0)
		return code;
	else
		x->pod = x->file.workload.pod;
	arena_init(&x->annotations, ADVICE_ARENA_BYTES);
	if (q->file)
		obey_settings_and_annotations(f, s, x);
	if (add_wishes(q, x))
		obey_wishes(f, s, x);
	if (whatif_devices_give(&q->devices, !q->file, &f->topo, &x->pod, containers_of(&x->pod),
		    &x->given, &e)) {
		code = call_misused(c, "%s", e.text);
		goto out;
	}
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	decide_pod(engine_ledger(f->engine), s, &x->pod, &a, &answer);
	answer.record.cause = "whatif";
	answer.record.time_ms = f->last_ms;
	int rc = q->moves ? whatif_plan_moves(
				    f, s, &x->pod, (unsigned)q->moves, WHATIF_TRIALS_MAX, plan, &e)
			  : 0;
	if (!rc)
		rc = q->output == OUTPUT_JSON
			     ? print_record(f, s, x, q->moves ? &plan->moves : NULL, &answer, &e)
			     : print_words(f, q, s, x, &answer, &e);
	if (!rc && q->moves && q->output != OUTPUT_JSON)
		whatif_print_moves(&plan->moves, (unsigned)q->moves);
	code = answer.decision.admit ? EXIT_DONE : EXIT_NO;
	if (rc)
		code = call_fail(c, EXIT_CANNOT, &e);
out:
	whatif_given_fini(&x->given);
	arena_fini(&x->annotations);
	if (q->file)
		pod_file_fini(&x->file);
	return code;
}

/* What is asked for, as a claim's share; -EINVAL: no claim asks for that. */
static int share_of_question(const struct question *q, struct claim_share *share, struct err *e)
{
	if (q->containers != 1 || q->qos != QOS_GUARANTEED || q->file || q->wishes.nr ||
		q->devices.nr || q->moves)
		return err_set(e, EINVAL,
			"--claim is not about a pod: it goes with --cpus, "
			"--memory, --hugepages-PAGE, --numa-node and "
			"--whole-cores");
	if (!q->cpu_milli || q->cpu_milli % MILLI_PER_CPU || q->cpu_milli > CLAIM_MILLI_MAX)
		return err_set(e, EINVAL, "--claim: its --cpus are whole, and one at least");
	*share = (struct claim_share){.request = "",
		.pool = "",
		.cpus = q->cpu_milli / MILLI_PER_CPU,
		.whole_cores = q->claim.whole_cores};
	for (unsigned i = 0; i < q->nr_memory; i++)
		if (q->memory[i].bytes)
			share->memory[share->nr_memory++] = q->memory[i];
	return 0;
}

static int answer_claim(const struct call *c, const struct question *q, struct journal_fold *f)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	struct claim_share share;
	struct err e;

	if (share_of_question(q, &share, &e))
		return call_misused(c, "%s", e.text);
	int code = load_node(c, q, f, s);
	return code >= 0 ? code
			 : whatif_claim_answer(
				   c, &q->claim, &share, f, s, q->output, q->machine != NULL);
}

static bool asks_for_anything(const struct question *q)
{
	return q->cpu_milli || q->nr_memory || q->containers != 1 || q->qos != QOS_GUARANTEED;
}

static int check_question(const struct call *c, const struct question *q)
{
	if (q->machine && q->directory)
		return call_misused(c, "--machine and --run-directory exclude each other");
	if (!q->claim.asked && (q->claim.has_node || q->claim.whole_cores))
		return call_misused(c, "--numa-node and --whole-cores go with --claim; a pod has "
				       "the wish --wish cores=whole");
	if (q->file && asks_for_anything(q))
		return call_misused(c, "-f goes without options that say what is asked for");
	/* no spec makes a pod Guaranteed that asks for nothing */
	if (!q->file && !q->cpu_milli && !q->nr_memory && q->qos == QOS_GUARANTEED)
		return call_misused(c, "say what is asked for: --cpus, --memory or -f FILE");
	return -1;
}

static int run_whatif(const struct call *c)
{
	struct question q = {.containers = 1, .output = OUTPUT_TEXT};
	auto_free struct journal_fold *f = xcalloc(1, sizeof *f);
	int code = call_read(c, &q);

	if (code < 0)
		code = check_question(c, &q);
	if (code < 0)
		code = q.claim.asked ? answer_claim(c, &q, f) : answer_whatif(c, &q, f);
	journal_fold_fini(f);
	vec_fini(&q.sets);
	vec_fini(&q.wishes);
	vec_fini(&q.devices);
	return code;
}

#define AT(member) offsetof(struct question, member)
static const struct option_row rows[] = {
	{.name = "cpus",
		.value = "N",
		.help = "CPUs of each container (8, 500m)",
		.read = read_whatif_cpus,
		.at = AT(cpu_milli)},
	{.name = "memory",
		.value = "SIZE",
		.help = "memory of each container (16Gi)",
		.read = read_whatif_memory},
	{.name = "hugepages-",
		.rest = "PAGE",
		.value = "SIZE",
		.help = "huge pages of each, such as --hugepages-1Gi 4Gi",
		.read = read_whatif_pages,
		.repeats = true},
	{.name = "qos",
		.value = "Guaranteed|Burstable|BestEffort",
		.help = "the pod's class (default Guaranteed)",
		.read = option_word,
		.at = AT(qos),
		.completes = COMPLETE_WORDS},
	{.name = "containers",
		.value = "N",
		.help = "a pod of so many of these containers (default 1)",
		.read = read_whatif_containers,
		.at = AT(containers)},
	{.name = "device",
		.value = "NAME/nodeLIST",
		.help = "a device that each container has been given already, as through a claim "
			"(DRA): gpu.example.com/node2 is one on NUMA node 2, and node0-1,4 one that is "
			"equally near to each of these NUMA nodes; with -f those with claims have it",
		.read = whatif_device_read,
		.at = AT(devices),
		.repeats = true},
	{.letter = 'p',
		.name = "policy",
		.value = "none|best-effort|restricted|single-numa-node",
		.help = "another topologyManagerPolicy than numafitd's",
		.read = read_whatif_policy,
		.at = AT(sets),
		.completes = COMPLETE_WORDS},
	{.letter = 's',
		.name = "set",
		.value = "KEY=VALUE",
		.help = "another value of any setting that decides where containers go",
		.read = option_assignment,
		.at = AT(sets),
		.completes = COMPLETE_SETTING,
		.repeats = true},
	{.letter = 'w',
		.name = "wish",
		.value = "NAME=VALUE",
		.help = "an annotation numafit.io/NAME of the pod, such as cores=whole; the settings say "
			"which ones count (podWishes.allowed)",
		.read = option_assignment,
		.at = AT(wishes),
		.repeats = true},
	{.name = "moves",
		.value = "N",
		.help = "also which running containers would have to be moved, so many at most (1 to "
			"8), for the pod to have as few NUMA nodes as on an empty machine: the fewest "
			"bytes of memory, then CPUs",
		.read = read_whatif_moves,
		.at = AT(moves)},
	{.name = "claim",
		.help = "instead of a pod a ResourceClaim of the class numafit.io: on which NUMA "
			"nodes it would be prepared, in the order in which a scheduler takes them",
		.read = option_flag,
		.at = AT(claim.asked)},
	{.name = "numa-node",
		.value = "N",
		.help = "the claim is of that NUMA node",
		.read = whatif_claim_read_node,
		.at = AT(claim)},
	{.name = "whole-cores",
		.help = "the claim is of the class numafit.io-whole-cores",
		.read = option_flag,
		.at = AT(claim.whole_cores)},
	{.letter = 'f',
		.name = "filename",
		.value = "FILE",
		.help = "instead of these a pod as for kubectl, YAML or JSON, or a Deployment or "
			"another object with a pod's template; - is the standard input. Its scheduler's "
			"hint, topology policy and wishes are taken as numafitd takes them",
		.read = option_text,
		.at = AT(file),
		.completes = COMPLETE_FILE},
	OUTPUT_ROWS(struct question, "text|wide|json"),
	RUN_DIRECTORY_ROW(struct question),
	{.name = "machine",
		.value = "MACHINE",
		.help = "an empty machine instead, as for numafit topology",
		.read = option_text,
		.at = AT(machine),
		.completes = COMPLETE_FILE},
	{0},
};

const struct command verb_whatif = {
	.name = "whatif",
	.summary = "ask whether a pod or a claim would fit now, and where",
	.about =
		"Would a pod that asks for this, or a ResourceClaim (--claim), fit on the node as it "
		"is now, and where would it go? What numafitd holds is read from its journal; the "
		"daemon is not asked and nothing is changed. With -o wide also what each of a "
		"pod's resources has to choose from; with -o json the answer as a record of the journal; one that "
		"refuses has class, why, help and remedies besides, and with --moves each has moves. Of a claim -o json has a record "
		"for each NUMA node; one that refuses has why besides. Of devices those of --device "
		"are looked at: which ones the kubelet would take is its own choice.",
	.options = rows,
	.examples = {{"numafit whatif --cpus 8 --memory 16Gi", "a Guaranteed pod of one container"},
		{"numafit whatif -f deployment.yaml", "one of a Deployment's pods"},
		{"numafit whatif --cpus 8 --policy restricted --device gpu.example.com/node2",
			"beside a GPU that a claim has come to, and if the policy were another one"},
		{"numafit whatif --machine kep3545-8 --cpus 4 --hugepages-1Gi 2Gi",
			"on an empty machine instead of this node"},
		{"numafit whatif --claim --cpus 8 --memory 16Gi",
			"a claim, on each NUMA node of this node"}},
	.exits = {[EXIT_DONE] = "it fits; a claim: on one NUMA node at least",
		[EXIT_NO] = "it would be refused",
		[EXIT_CANNOT] = "there is no journal, or it cannot be read"},
	.run = run_whatif,
};
