/* numafit replay: what an engine has decided and written down is decided the same from its journal.
 * Random events, REPLAY_EVENTS of them for each combination; SEED chooses which. */
#include <codec/fields_json.h>
#include <numafit/admit.h>
#include <numafit/engine.h>
#include <numafit/version.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "journal_writer.h"

enum { PODS = 12, PARTS = 3, ID_MAX = 24, EVENTS = 400, ROTATE_PERCENT = 2 };

static const char *const names[PARTS] = {"first", "main", "side"};

/* A pod and the ids that its containers have now; "" where none runs. */
struct guest {
	bool there;
	char uid[ID_MAX], id[PARTS][ID_MAX];
	struct pod pod;
	struct ask part[PARTS], own;
};

struct world {
	struct topo *t;
	struct settings s;
	struct writer w;
	struct random random;
	struct guest guest[PODS];
	unsigned next, now;
	char dir[64], path[96];
};

static unsigned below(struct world *x, unsigned nr)
{
	return random_below(&x->random, nr);
}

static struct request request_of(struct guest *p, unsigned i)
{
	struct request req = {
		.container_id = p->id[i],
		.ask.name = names[i],
		.pod = pod_identity(&p->pod),
		.ask.cpu_milli = p->part[i].cpu_milli,
		.ask.cpu_limit_milli = p->part[i].cpu_milli,
		.cpus = "",
		.mems = "",
	};

	req.pod.pod_level = false; /* no runtime says so */
	req.ask.nr_memory = ask_memory(&p->part[i], req.ask.memory);
	if (p->pod.qos != QOS_GUARANTEED)
		req.ask.nr_memory = 0;
	return req;
}

static struct ask any_ask(struct world *x, unsigned i)
{
	struct ask c = {
		.name = names[i],
		.kind = i ? CONTAINER_APP : below(x, NR_CONTAINER_KINDS),
		.cpu_milli = below(x, 4) ? 1000 * below(x, 9) : below(x, 4000),
		.nr_memory = 1 + below(x, 2),
		.memory = {{0, GIB(below(x, 30))}, {GIB(1), GIB(below(x, 4))}},
	};

	return c;
}

/* The sandbox starts: sometimes its containers are known, sometimes their sums, sometimes nothing.
 */
static void run_pod(struct world *x, struct guest *p)
{
	struct decision d;

	memset(p, 0, sizeof *p);
	(void)snprintf(p->uid, sizeof p->uid, "u%u", ++x->next);
	for (unsigned i = 0; i < PARTS; i++)
		p->part[i] = any_ask(x, i);
	p->own = (struct ask){.name = "", .guaranteed = true, .whole_pod = true};
	p->own.cpu_milli = 1000 * (4 + below(x, 12));
	p->own.nr_memory = 1;
	p->own.memory[0] = (struct memory_ask){0, GIB(80)};
	p->pod = (struct pod){.sandbox_id = p->uid,
		.uid = p->uid,
		.ns = "default",
		.name = p->uid,
		.qos = below(x, 4) ? QOS_GUARANTEED : below(x, NR_QOS)};
	if (below(x, 3) == 0) {
		p->pod.nr = PARTS;
		p->pod.container = p->part;
		p->pod.pod_level = below(x, 3) == 0;
		p->pod.own = p->pod.pod_level ? &p->own : NULL;
		for (unsigned i = 0; i < PARTS && p->pod.own; i++)
			p->part[i].guaranteed = below(x, 2);
		pod_obey_gate(&x->s, &p->pod, p->part);
	}
	if (below(x, 2))
		p->pod.totals = (struct pod_totals){true, 1000 * below(x, 20), GIB(below(x, 500))};
	engine_run_pod(x->w.engine, ++x->now, &p->pod, &d);
	p->there = d.admit;
}

static void create(struct world *x, struct guest *p, unsigned i)
{
	struct update_list ups = {0};
	struct decision d;

	if (*p->id[i] && below(x, 2)) /* it crashed, and no event was sent */
		engine_release(x->w.engine, ++x->now, "stop", p->id[i], &ups);
	if (below(x, 8) == 0)
		p->part[i] = any_ask(x, i); /* its predecessor asked for something else */
	(void)snprintf(p->id[i], sizeof p->id[i], "c%u", ++x->next);
	struct request req = request_of(p, i);
	engine_create(x->w.engine, ++x->now, &req, &d, &ups);
	if (!d.admit)
		p->id[i][0] = '\0';
	else if (below(x, 4))
		engine_live(x->w.engine, ++x->now, &req, NULL);
	vec_fini(&ups);
}

static void change(struct world *x, struct guest *p, unsigned i)
{
	struct update_list ups = {0};
	struct decision d;

	p->part[i].cpu_milli = 1000 * below(x, 12);
	if (below(x, 2))
		p->part[i].memory[0].bytes = GIB(1 + below(x, 30));
	struct request req = request_of(p, i);
	(void)engine_update(x->w.engine, ++x->now, &req, &d, &ups);
	vec_fini(&ups);
}

static void stop(struct world *x, struct guest *p, unsigned i)
{
	struct update_list ups = {0};

	engine_release(x->w.engine, ++x->now, "stop", p->id[i], &ups);
	p->id[i][0] = '\0';
	vec_fini(&ups);
}

/* The daemon was away: what runs is reported, and something that it has never seen. */
static void synchronize(struct world *x)
{
	struct request list[PODS * PARTS + 1];
	const struct placement *placed[PODS * PARTS + 1] = {0};
	const char *sandboxes[PODS];
	struct inventory what = {.requests = list, .placed = placed, .sandbox_ids = sandboxes};
	struct update_list ups = {0};
	char id[ID_MAX];

	for (unsigned p = 0; p < PODS; p++) {
		if (!x->guest[p].there)
			continue;
		sandboxes[what.nr_sandboxes++] = x->guest[p].uid;
		for (unsigned i = 0; i < PARTS; i++)
			if (*x->guest[p].id[i])
				list[what.nr++] = request_of(&x->guest[p], i);
	}
	(void)snprintf(id, sizeof id, "c%u", ++x->next);
	list[what.nr] = ask(id, QOS_GUARANTEED, 1000 * below(x, 6), GIB(1));
	list[what.nr++].created_at_ns = x->next;
	engine_synchronize(x->w.engine, ++x->now, &what, &ups);
	vec_fini(&ups);
}

static void one_event(struct world *x)
{
	struct guest *p = &x->guest[below(x, PODS)];
	unsigned i = below(x, PARTS);

	if (!p->there)
		run_pod(x, p);
	else if (below(x, 60) == 0)
		synchronize(x);
	else if (below(x, 60) == 0)
		(void)engine_expire(x->w.engine, ++x->now);
	else if (below(x, 8) == 0) {
		engine_release_pod(x->w.engine, ++x->now, "pod-gone",
			&(struct pod){.sandbox_id = p->uid, .uid = ""});
		memset(p, 0, sizeof *p);
	} else if (!*p->id[i] || below(x, 6) == 0)
		create(x, p, i);
	else if (below(x, 2))
		change(x, p, i);
	else
		stop(x, p, i);
}

static struct world *world_new(
	enum topology_policy policy, enum topology_scope scope, uint64_t seed)
{
	struct world *x = xcalloc(1, sizeof *x);

	x->random.state = seed;
	x->t = machine_of_eight();
	settings_init(&x->s);
	x->s.topology_policy = policy;
	x->s.topology_scope = scope;
	x->s.prefer_closest_numa_nodes = below(x, 2);
	x->s.options_given = 0;
	x->s.shared_pool_step = below(x, 9);
	x->s.gates.pod_level_resource_managers = below(x, 4);
	(void)cpuset_parse(&x->s.reserved_cpus, "0,32", 4, NULL);
	(void)snprintf(x->dir, sizeof x->dir, "/tmp/numafit-replay.XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	(void)snprintf(x->path, sizeof x->path, "%s/journal", x->dir);
	writer_init(&x->w, x->t, &x->s, x->path);
	return x;
}

static void world_free(struct world *x)
{
	char command[128];

	writer_fini(&x->w);
	(void)snprintf(command, sizeof command, "rm -rf %s", x->dir);
	assert_int_equal(system(command), 0);
	free(x->t);
	free(x);
}

static unsigned decided_of(const char *printed)
{
	const char *last = strstr(printed, " decided again");
	unsigned nr = 0, unit = 1;

	assert_non_null(last);
	for (; last > printed && last[-1] >= '0' && last[-1] <= '9'; last--, unit *= 10)
		nr += unit * (unsigned)(last[-1] - '0');
	return nr;
}

/* No difference in the file; returns how many decisions were compared. */
static unsigned assert_replays(const char *path)
{
	char name[96], *argv[] = {(char[]){"replay"}, name, NULL};
	auto_free char *printed = NULL;

	(void)text_copy(name, sizeof name, path);
	if (run_verb(&verb_replay, argv, &printed))
		fail_msg("%s", printed);
	assert_non_null(strstr(printed, " 0 differ\n"));
	return decided_of(printed);
}

static void events_and_replays(
	enum topology_policy policy, enum topology_scope scope, enum mode mode)
{
	const char *events_text = getenv("REPLAY_EVENTS"), *seed_text = getenv("SEED");
	unsigned events = events_text ? (unsigned)atoi(events_text) : EVENTS, decided = 0;
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20261121;
	struct world *x = world_new(policy, scope, seed);

	print_message("mode %s, policy %s, scope %s, seed %llu\n", mode_words[mode],
		topology_policy_words[policy], topology_scope_words[scope],
		(unsigned long long)seed);
	x->s.mode = mode;
	writer_start_journal(&x->w, x->path, ++x->now);
	for (unsigned i = 0; i < events; i++) {
		one_event(x);
		if (random_chance(&x->random, ROTATE_PERCENT)) {
			decided += assert_replays(x->path);
			writer_start_journal(&x->w, x->path, ++x->now);
		}
	}
	decided += assert_replays(x->path);
	assert_true(decided > events / 8);
	world_free(x);
}

static void every_decision_of_random_events_is_made_again(void **state)
{
	(void)state;
	for (enum topology_policy p = 0; p < NR_POLICIES; p++) {
		events_and_replays(p, SCOPE_CONTAINER, MODE_MANAGE);
		events_and_replays(p, SCOPE_POD, MODE_MANAGE);
	}
}

/* There the entries say that they are in force nowhere, which no decision says. */
static void likewise_of_a_mode_that_places_nothing(void **state)
{
	(void)state;
	events_and_replays(POLICY_RESTRICTED, SCOPE_CONTAINER, MODE_SHADOW);
	events_and_replays(POLICY_RESTRICTED, SCOPE_POD, MODE_SHADOW);
}

/* A journal that does not say how cores counted is of 0.2.0, by which a container could shrink by a
 * part of a core. */
static void a_journal_is_decided_by_the_rule_for_cores_of_its_time(void **state)
{
	(void)state;
	for (enum core_rule rule = 0; rule < NR_CORE_RULES; rule++) {
		struct world *x = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 1);
		struct request req = ask("c", QOS_GUARANTEED, 4000, GIB(1));
		struct update_list ups = {0};
		struct decision d;

		assert_int_equal(settings_set(&x->s, "cpuManagerPolicyOptions.full-pcpus-only",
					 "true", NULL),
			0);
		x->s.cpu_options.core_rule = rule;
		writer_start_journal(&x->w, x->path, ++x->now);
		engine_create(x->w.engine, ++x->now, &req, &d, &ups);
		assert_true(d.admit);
		engine_live(x->w.engine, ++x->now, &req, NULL);
		req.ask.cpu_milli = req.ask.cpu_limit_milli = 3000;
		(void)engine_update(x->w.engine, ++x->now, &req, &d, &ups);
		assert_int_equal(d.admit, rule == CORES_BY_AVERAGE);
		assert_true(assert_replays(x->path) >= 2);
		vec_fini(&ups);
		world_free(x);
	}
}

/* Journals that were tampered with: each line that was changed has a right checksum again. */
struct tampering {
	const char *from, *to;
	struct journal *out;
	unsigned nr_changed;
};

static int copy_line(void *ctx, char *text, size_t len, struct err *e)
{
	static char changed[JOURNAL_LINE_MAX];
	struct tampering *x = ctx;
	char *at = x->nr_changed ? NULL : strstr(text, x->from);
	struct text t;

	if (!at)
		return journal_append(x->out, text, len, e);
	text_init(&t, changed, sizeof changed);
	text_add(&t, "%.*s%s%s", (int)(at - text), text, x->to, at + strlen(x->from));
	x->nr_changed++;
	return journal_append(x->out, t.at, t.len, e);
}

static const struct {
	const char *from, *to;
	int code;
	const char *says;
} changed[] = {
	{"\"cpus\":\"1-2,33-34\"", "\"cpus\":\"1-3,33-34\"", 1,
		"decision.cpus: wanted \"1-3,33-34\", got \"1-2,33-34\""},
	{"\"nodes\":\"0\",\"preferred\":true", "\"nodes\":\"1\",\"preferred\":true", 1,
		"seq 1: decision.nodes: wanted \"1\", got \"0\""},
	{"\"smallest\":1", "\"smallest\":2", 1,
		"seq 1: decision.reasons.resources[0].smallest: wanted 2, got 1"},
	{"\"exclusive\":true", "\"exclusive\":tru", EXIT_CANNOT, "line 3: not JSON"},
	{"uncore 7", "uncore 6", EXIT_CANNOT, "it is not the machine of the fingerprint"},
	{"\"journal\":3", "\"journal\":4", EXIT_CANNOT,
		"it has format 4, numafit " NUMAFIT_VERSION " reads format 3 only"},
	{"node 7 ", "nude 7 ", EXIT_CANNOT, "line 1: "},
	{"\"seq\":1,", "\"seq\":01,", EXIT_CANNOT, "line 3: not JSON"},
};

static void a_decision_that_was_tampered_with_is_found(void **state)
{
	struct world *x = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 1);
	struct request req = ask("c1", QOS_GUARANTEED, 4000, GIB(4));
	struct update_list ups = {0};
	struct decision d;
	char other[128], *argv[] = {(char[]){"replay"}, other, NULL};

	(void)state;
	engine_create(x->w.engine, 1, &req, &d, &ups);
	assert_true(d.admit);
	assert_int_equal(assert_replays(x->path), 1);
	(void)snprintf(other, sizeof other, "%s/other", x->dir);
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
		struct tampering t = {
			changed[i].from, changed[i].to, journal_create(other, NULL), 0};
		auto_free char *printed = NULL;

		assert_int_equal(journal_read(x->path, copy_line, &t, NULL), 3);
		assert_int_equal(t.nr_changed, 1);
		assert_int_equal(journal_publish(t.out, NULL), 0);
		journal_close(t.out);
		int code = run_verb(&verb_replay, argv, &printed);
		if (code != changed[i].code || !strstr(printed, changed[i].says))
			fail_msg("%s -> %s: exit code %d, %s", changed[i].from, changed[i].to, code,
				printed);
	}
	vec_fini(&ups);
	world_free(x);
}

static void an_unreadable_trace_is_reported(void **state)
{
	char *argv[] = {(char[]){"replay"}, (char[]){"/nowhere/journal"}, NULL};
	char *folder[] = {(char[]){"replay"}, (char[]){"/tmp"}, NULL};
	auto_free char *printed = NULL, *of_folder = NULL;

	(void)state;
	assert_int_equal(run_verb(&verb_replay, argv, &printed), EXIT_CANNOT);
	assert_string_equal(printed, "numafit replay: /nowhere/journal: there is no journal\n");
	assert_int_equal(run_verb(&verb_replay, folder, &of_folder), EXIT_CANNOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_decision_of_random_events_is_made_again),
		cmocka_unit_test(likewise_of_a_mode_that_places_nothing),
		cmocka_unit_test(a_journal_is_decided_by_the_rule_for_cores_of_its_time),
		cmocka_unit_test(a_decision_that_was_tampered_with_is_found),
		cmocka_unit_test(an_unreadable_trace_is_reported),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
