/* numafit explain and whatif in the words that people read. Journals of made-up nodes, and what is
 * said of them, side by side with test/golden/explain.txt: NUMAFIT_GOLDEN=write writes it anew, to
 * be looked at. */
#include <codec/fields_json.h>
#include <numafit/engine.h>
#include <numafit/resource_claim.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "journal_writer.h"

#define GOLDEN "test/golden/explain.txt"

enum { SECOND = 1000, WORDS_MAX = 16, SAID_MAX = 64 << 10, RUN_MAX = 96 };
static const int64_t noon = 1763726400000; /* 2025-11-21 12:00 UTC */

struct node {
	struct topo *t;
	struct settings s;
	struct writer w;
	int64_t now;
	char dir[RUN_MAX], path[RUN_MAX + 16];
};

static void node_init(struct node *n, enum topology_policy policy)
{
	n->t = machine_of_eight();
	settings_init(&n->s);
	n->s.topology_policy = policy;
	n->s.shared_pool_step = 0;
	n->s.claims = true;
	(void)cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL);
	(void)snprintf(n->dir, sizeof n->dir, "/tmp/numafit-explain.XXXXXX");
	assert_non_null(mkdtemp(n->dir));
	(void)snprintf(n->path, sizeof n->path, "%s/journal", n->dir);
	n->now = noon;
	writer_init(&n->w, n->t, &n->s, n->path);
}

static void node_fini(struct node *n)
{
	char command[RUN_MAX + 16];

	writer_fini(&n->w);
	(void)snprintf(command, sizeof command, "rm -rf %s", n->dir);
	assert_int_equal(system(command), 0);
	free(n->t);
}

static struct request web(const char *id, const char *pod, const char *container, enum qos qos,
	unsigned cpus, unsigned gib)
{
	struct request req = ask(id, qos, cpus * 1000, GIB(gib));

	req.ask.name = container;
	req.pod.sandbox_id = req.pod.uid = req.pod.name = pod;
	return req;
}

static void create(struct node *n, const struct request *req)
{
	struct update_list ups = {0};
	struct decision d;

	engine_create(n->w.engine, n->now += SECOND, (struct request[]){*req}, &d, &ups);
	if (d.admit)
		engine_live(n->w.engine, n->now += SECOND, req, NULL);
	vec_fini(&ups);
}

static void create_one(
	struct node *n, const char *id, const char *pod, enum qos qos, unsigned cpus, unsigned gib)
{
	const struct request req = web(id, pod, "main", qos, cpus, gib);

	create(n, &req);
}

/* said, the run directory's name, another each time, as DIR. */
static void add_without(struct text *to, const char *said, const char *dir)
{
	const char *at;

	for (; dir && (at = strstr(said, dir)); said = at + strlen(dir))
		text_add(to, "%.*sDIR", (int)(at - said), said);
	text_add(to, "%s", said);
}

/* What numafit VERB WORDS... says, DIR in the words being the run directory, beneath the command.
 */
static void say(struct text *to, const char *dir, const struct command *verb, const char *command)
{
	char *argv[WORDS_MAX + 1] = {0}, option[] = "--run-directory", *rest;
	auto_free char *words = xstrdup(command), *where = xstrdup(dir), *said = NULL;
	unsigned nr = 0;

	for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
		assert_true(nr < WORDS_MAX - 2);
		argv[nr++] = w;
	}
	if (dir) {
		argv[nr++] = option;
		argv[nr++] = where;
	}
	int code = run_verb(verb, argv, &said);
	text_add(to, "$ numafit %s\n", command);
	add_without(to, said, dir);
	if (code)
		text_add(to, "(exit code %d)\n", code);
	text_add(to, "\n");
}

/* A restricted node: accepted, refused, inherited, adopted, resized, whole pods. */
static void run_restricted(struct node *n)
{
	const struct ask parts[] = {
		{.name = "prepare", .kind = CONTAINER_INIT, .cpu_milli = 1000},
		{.name = "serve", .cpu_milli = 4000, .nr_memory = 1, .memory = {{0, GIB(8)}}},
	};
	const struct ask wide[] = {
		{.name = "train", .cpu_milli = 16000, .nr_memory = 1, .memory = {{0, GIB(16)}}}};
	struct pod pod = {.sandbox_id = "sandbox-1",
		.uid = "model",
		.ns = "default",
		.name = "model",
		.nr = 2,
		.container = parts};
	struct request serve = web("5e47e001", "model", "serve", QOS_GUARANTEED, 4, 8);
	struct request runs = web("cafe0001", "legacy", "main", QOS_GUARANTEED, 2, 1);
	struct request again = web("db000002", "db", "main", QOS_GUARANTEED, 6, 40);
	struct request grown = web("db000002", "db", "main", QOS_GUARANTEED, 30, 40);
	const struct placement own = {.exclusive = true, .preferred = true};
	struct update_list ups = {0};
	struct decision d;

	create_one(n, "f00d0001", "logs", QOS_BEST_EFFORT, 0, 0);
	create_one(n, "db000001", "db", QOS_GUARANTEED, 6, 40);
	runs.cpus = "60-61";
	runs.mems = "7";
	engine_live(n->w.engine, n->now += SECOND, &runs, &own);
	engine_run_pod(n->w.engine, n->now += SECOND, &pod, &d);
	create(n, &serve);
	for (unsigned i = 2; i < 7; i++)
		create_one(n, (char[]){'w', '0', '0', '0', (char)('0' + i), '\0'},
			(char[]){'w', 'o', 'r', 'k', '-', (char)('0' + i), '\0'}, QOS_GUARANTEED, 5,
			20);
	create_one(n, "b1600001", "big", QOS_GUARANTEED, 8, 16);
	create_one(n, "b1600002", "huge", QOS_GUARANTEED, 60, 16);
	create(n, &again);
	(void)engine_update(n->w.engine, n->now += SECOND, &grown, &d, &ups);
	engine_release(n->w.engine, n->now += SECOND, "stop", "w0006", &ups);
	pod.sandbox_id = "sandbox-2";
	pod.uid = pod.name = "giant";
	pod.nr = 1;
	pod.container = wide;
	engine_run_pod(n->w.engine, n->now += SECOND, &pod, &d);
	vec_fini(&ups);
}

static void explain_restricted(struct text *said)
{
	struct node n;

	node_init(&n, POLICY_RESTRICTED);
	run_restricted(&n);
	say(said, n.dir, &verb_explain, "explain logs");
	say(said, n.dir, &verb_explain, "explain work-2");
	say(said, n.dir, &verb_explain, "explain -o wide work-2");
	say(said, n.dir, &verb_explain, "explain default/big/main");
	say(said, n.dir, &verb_explain, "explain huge");
	say(said, n.dir, &verb_explain, "explain -o json huge");
	say(said, n.dir, &verb_explain, "explain cafe0001");
	say(said, n.dir, &verb_explain, "explain db/main");
	say(said, n.dir, &verb_explain, "explain work-6");
	say(said, n.dir, &verb_explain, "explain -o wide model");
	say(said, n.dir, &verb_explain, "explain giant");
	say(said, n.dir, &verb_explain, "explain nobody");
	say(said, n.dir, &verb_whatif, "whatif --cpus 2 --memory 4Gi -o wide");
	say(said, n.dir, &verb_whatif, "whatif --cpus 8 --memory 16Gi");
	say(said, n.dir, &verb_whatif, "whatif --cpus 8 --memory 16Gi --policy best-effort");
	say(said, n.dir, &verb_whatif, "whatif --json --cpus 500m --qos Burstable");
	writer_start_journal(&n.w, n.path, n.now += SECOND);
	text_add(said, "After the journal was started anew:\n\n");
	say(said, n.dir, &verb_explain, "explain work-2");
	say(said, n.dir, &verb_explain, "explain --json work-2");
	node_fini(&n);
}

static void explain_spilled(struct text *said)
{
	struct node n;

	node_init(&n, POLICY_BEST_EFFORT);
	for (unsigned i = 0; i < 8; i++)
		create_one(&n, (char[]){'w', '0', '0', '0', (char)('0' + i), '\0'},
			(char[]){'w', 'o', 'r', 'k', '-', (char)('0' + i), '\0'}, QOS_GUARANTEED, 5,
			20);
	create_one(&n, "b1600001", "wide", QOS_GUARANTEED, 4, 8);
	say(said, n.dir, &verb_explain, "explain -o wide wide");
	node_fini(&n);
}

static void create_advised(
	struct node *n, const char *pod, unsigned cpus, const struct advice_ask *advice)
{
	struct request req = web(pod, pod, "main", QOS_GUARANTEED, cpus, 8);

	req.ask.advice = advice;
	create(n, &req);
}

/* What schedulers have asked for. */
static void explain_advised(struct text *said)
{
	const struct advice_ask fifth = {ADVICE_ACCEPTED, ADVICE_PREFER, true, {1 << 5}, {{0}}},
				stale = {ADVICE_ACCEPTED_STALE, ADVICE_REQUIRE, true, {1 << 5},
					{{0}}},
				must = {ADVICE_ACCEPTED, ADVICE_REQUIRE, true, {1 << 5}, {{0}}},
				pair = {ADVICE_ACCEPTED, ADVICE_PREFER, false, {3 << 6}, {{0}}},
				unread = {ADVICE_REJECTED_FORMAT, ADVICE_PREFER, true, {0}, {{0}}};
	struct node n;

	node_init(&n, POLICY_RESTRICTED);
	create_advised(&n, "good", 4, &fifth);
	create_advised(&n, "stale", 4, &stale);
	create_advised(&n, "taken", 4, &fifth);
	create_advised(&n, "must", 4, &must);
	create_advised(&n, "wide", 4, &pair);
	create_advised(&n, "garbled", 1, &unread);
	say(said, n.dir, &verb_explain, "explain good");
	say(said, n.dir, &verb_explain, "explain stale");
	say(said, n.dir, &verb_explain, "explain taken");
	say(said, n.dir, &verb_explain, "explain must");
	say(said, n.dir, &verb_explain, "explain wide");
	say(said, n.dir, &verb_explain, "explain garbled");
	node_fini(&n);
}

/* A claim has most of NUMA node 1, and a pod some of NUMA node 2. */
static void whatif_claims(struct text *said)
{
	const struct claim_share share = {.request = "r",
		.pool = "n1",
		.device = "numa1",
		.cpus = 6,
		.nr_memory = 1,
		.memory = {{0, GIB(40)}}};
	const struct resource_claim claim = {
		.uid = "11111111-2222", .ns = "default", .name = "cpus", .nr = 1, .share = &share};
	const struct advice_ask second = {ADVICE_ACCEPTED, ADVICE_REQUIRE, true, {1 << 2}, {{0}}};
	struct node n;
	struct decision d;

	node_init(&n, POLICY_RESTRICTED);
	assert_int_equal(engine_prepare(n.w.engine, n.now += SECOND, &claim, &d, NULL), 0);
	create_advised(&n, "web", 2, &second);
	say(said, n.dir, &verb_explain, "explain cpus");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 4 --memory 8Gi");
	say(said, n.dir, &verb_whatif,
		"whatif --claim --cpus 4 --memory 8Gi --set claims.order=least-allocated "
		"--set claims.capacity=share --set claims.share=50");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 2 --memory 4Gi --numa-node 1");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 4 --numa-node 1");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 4 --numa-node 1 -o json");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 2 --numa-node 1 -o json");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 3 --numa-node 3 --whole-cores");
	say(said, n.dir, &verb_whatif, "whatif --claim --cpus 9");
	node_fini(&n);
}

static void explain_trouble(struct text *said)
{
	say(said, NULL, &verb_explain, "explain web --run-directory /nowhere/numafit");
	say(said, NULL, &verb_whatif, "whatif --cpus x");
	say(said, NULL, &verb_whatif, "whatif --hugepages-2X 2Gi");
	say(said, NULL, &verb_whatif,
		"whatif --machine test/machines/kep3545-4.machine --cpus 4 --hugepages-1Gi 2Gi "
		"--containers 2");
	say(said, NULL, &verb_whatif, "whatif --claim --cpus 1500m");
	say(said, NULL, &verb_whatif, "whatif --claim --memory 1Gi");
	say(said, NULL, &verb_whatif, "whatif --claim --cpus 2 --containers 2");
	say(said, NULL, &verb_whatif, "whatif --cpus 2 --numa-node 1");
	say(said, NULL, &verb_whatif,
		"whatif --machine test/machines/kep3545-4.machine --claim --cpus 2 --numa-node 4");
}

static void write_golden(const char *said)
{
	FILE *f = fopen(GOLDEN, "we");

	assert_non_null(f);
	assert_true(fputs(said, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void each_decision_is_explained_in_fixed_words(void **state)
{
	auto_free char *buf = xcalloc(SAID_MAX, 1), *wanted = xcalloc(SAID_MAX, 1);
	const char *write = getenv("NUMAFIT_GOLDEN");
	struct text said;

	(void)state;
	text_init(&said, buf, SAID_MAX);
	explain_restricted(&said);
	explain_spilled(&said);
	explain_advised(&said);
	whatif_claims(&said);
	explain_trouble(&said);
	assert_false(said.cut);
	if (write && *write)
		write_golden(buf);
	FILE *f = fopen(GOLDEN, "re");
	assert_non_null(f);
	assert_true(fread(wanted, 1, SAID_MAX - 1, f) > 0);
	(void)fclose(f);
	for (const char *a = wanted, *b = buf; *a || *b;) {
		size_t x = strcspn(a, "\n"), y = strcspn(b, "\n");

		if (x != y || strncmp(a, b, x) != 0)
			fail_msg("wanted: %.*s\n   got: %.*s", (int)x, a, (int)y, b);
		a += x + (a[x] == '\n');
		b += y + (b[y] == '\n');
	}
}

/* What explain says about journals that numafitd could not use. */
static void explain_names_a_journal_that_was_set_aside(void **state)
{
	struct node n;
	char aside[RUN_MAX + 32], command[4 * RUN_MAX];
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;

	(void)state;
	node_init(&n, POLICY_NONE);
	(void)snprintf(aside, sizeof aside, "%s.damaged", n.path);
	(void)snprintf(command, sizeof command, "cp %s %s", n.path, aside);
	assert_int_equal(system(command), 0);
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain web");
	assert_non_null(strstr(buf, "numafitd has set DIR/journal.damaged aside: "));
	assert_non_null(strstr(buf, "(exit code 1)"));
	node_fini(&n);
}

static bool says(const char *buf, const char *what)
{
	return strstr(buf, what) != NULL;
}

static unsigned times_said(const char *buf, const char *what)
{
	unsigned nr = 0;

	for (; (buf = strstr(buf, what)); buf += strlen(what))
		nr++;
	return nr;
}

static void an_empty_journal_is_said_to_name_no_container(void **state)
{
	struct node n;
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;

	(void)state;
	node_init(&n, POLICY_NONE);
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain --list");
	assert_true(
		says(buf, "numafit explain: the journal in DIR names no container\n(exit code 1)"));
	create_one(&n, "c1", "web", QOS_GUARANTEED, 2, 1);
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain --list -n shop");
	assert_true(says(buf, "the journal in DIR names no container in namespace shop\n"));
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain --list");
	assert_string_equal(buf, "$ numafit explain --list\ndefault/web/main\n\n");
	node_fini(&n);
}

static void a_name_that_two_pods_had_is_suggested_and_listed_once(void **state)
{
	struct node n;
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;
	struct update_list ups = {0};

	(void)state;
	node_init(&n, POLICY_NONE);
	for (unsigned i = 0; i < 3; i++) {
		struct request req = web((char[]){'c', (char)('0' + i), '\0'}, "inference", "main",
			QOS_GUARANTEED, 2, 1);

		req.pod.sandbox_id = req.pod.uid = (char[]){'u', (char)('0' + i), '\0'};
		create(&n, &req);
		engine_release(n.w.engine, n.now += SECOND, "stop", req.container_id, &ups);
	}
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain inferense");
	assert_true(says(buf, "Did you mean default/inference/main?\n"));
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain --list");
	assert_int_equal(times_said(buf, "default/inference/main\n"), 1);
	vec_fini(&ups);
	node_fini(&n);
}

static void of_many_devices_the_first_are_named_and_the_others_counted(void **state)
{
	enum { DEVICES = 64 };
	struct device device[DEVICES];
	char id[DEVICES][16];
	struct device_resource gpus = {.name = "nvidia.com/gpu", .device = device, .nr = DEVICES};
	struct node n;
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;

	(void)state;
	for (unsigned i = 0; i < DEVICES; i++) {
		(void)snprintf(id[i], sizeof id[i], "gpu%u", i);
		device[i] = (struct device){.id = id[i],
			.has_topology = true,
			.placed = true,
			.nodes = nodeset_of(i % 2),
			.healthy = true};
	}
	node_init(&n, POLICY_BEST_EFFORT);
	struct request req = web("c1", "train", "main", QOS_GUARANTEED, 2, 1);
	req.pod.attached = &gpus;
	req.pod.nr_attached = 1;
	create(&n, &req);
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain train");
	assert_true(
		says(buf, "gpu0, gpu1, gpu2, gpu3 and 60 more (nvidia.com/gpu) on NUMA nodes 0-1"));
	assert_false(says(buf, "gpu4"));
	node_fini(&n);
}

static void a_container_of_the_pool_is_not_said_to_have_all_on_one_numa_node(void **state)
{
	struct node n;
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;

	(void)state;
	node_init(&n, POLICY_RESTRICTED);
	struct request req = web("c1", "proxy", "main", QOS_GUARANTEED, 2, 8);
	req.ask.cpu_milli = 2500;
	create(&n, &req);
	text_init(&said, buf, SAID_MAX);
	say(&said, n.dir, &verb_explain, "explain proxy");
	assert_true(says(buf, "none of its own: it runs in the shared pool"));
	assert_true(says(buf, "preferred: its memory is on as few NUMA nodes as if nothing"));
	assert_false(says(buf, "all of it together"));
	node_fini(&n);
}

/* What --set sharedPoolMinimum=VALUE has a pod of all CPUs refused with. */
static void ask_for_all_cpus(struct text *said, const char *value)
{
	char command[SAID_MAX / 64];

	(void)snprintf(command, sizeof command,
		"whatif --machine test/machines/kep3545-4.machine --set reservedSystemCPUs=0 "
		"--set cpuManagerPolicyOptions.strict-cpu-reservation=true "
		"--set sharedPoolMinimum=%s --cpus 63 -o json",
		value);
	say(said, NULL, &verb_whatif, command);
}

static void a_refusal_says_what_the_pool_keeps_when_its_minimum_is_0(void **state)
{
	auto_free char *buf = xcalloc(SAID_MAX, 1);
	struct text said;

	(void)state;
	text_init(&said, buf, SAID_MAX);
	ask_for_all_cpus(&said, "0");
	assert_true(says(buf, "the shared pool always keeps 1 CPU (sharedPoolMinimum is 0)"));
	assert_true(says(buf, "left with 0 CPUs, and always keeps 1 (sharedPoolMinimum is 0)"));
	assert_false(says(buf, "sharedPoolMinimum is 1"));
	text_init(&said, buf, SAID_MAX);
	ask_for_all_cpus(&said, "2");
	assert_true(says(buf, "sharedPoolMinimum keeps 2 CPUs shared"));
	assert_true(says(buf, "left with 0 CPUs, sharedPoolMinimum is 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_decision_is_explained_in_fixed_words),
		cmocka_unit_test(explain_names_a_journal_that_was_set_aside),
		cmocka_unit_test(an_empty_journal_is_said_to_name_no_container),
		cmocka_unit_test(a_name_that_two_pods_had_is_suggested_and_listed_once),
		cmocka_unit_test(of_many_devices_the_first_are_named_and_the_others_counted),
		cmocka_unit_test(a_container_of_the_pool_is_not_said_to_have_all_on_one_numa_node),
		cmocka_unit_test(a_refusal_says_what_the_pool_keeps_when_its_minimum_is_0),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
