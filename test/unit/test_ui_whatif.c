/* The status page's what-if: what may be asked, that the answers are those of any budget, and that
 * a question that takes too many steps is not answered. */
#include <ui/whatif_thread.h>

#include <host/discover.h>
#include <numafit/answer.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

enum { QUESTIONS = 100, NS_PER_S = 1000 * 1000 * 1000, ID_MAX = 16 };

#define GI(n) (UINT64_C(n) << 30)

static void a_query_says_what_is_asked_for_and_nothing_else_is_taken(void **state)
{
	static const struct {
		const char *query;
		int rc;
		struct ui_question want;
	} cases[] = {
		{"cpus=8&memory=16Gi", 0, {8000, 1, {{0, GI(16)}}, 1, QOS_GUARANTEED, false, 0}},
		{"hugepages-1Gi=2Gi&memory=1Gi&hugepages-2Mi=", 0,
			{0, 2, {{GI(1), GI(2)}, {0, GI(1)}}, 1, QOS_GUARANTEED, false, 0}},
		{"cpus=500m&containers=3", 0, {500, 0, {{0}}, 3, QOS_GUARANTEED, false, 0}},
		{"cpus=1&policy=restricted", 0,
			{1000, 0, {{0}}, 1, QOS_GUARANTEED, true, POLICY_RESTRICTED}},
		{"cpus=1&policy=&qos=&memory=", 0, {1000, 0, {{0}}, 1, QOS_GUARANTEED, false, 0}},
		{"&&cpus=1&", 0, {1000, 0, {{0}}, 1, QOS_GUARANTEED, false, 0}},
		{"qos=BestEffort", 0, {0, 0, {{0}}, 1, QOS_BEST_EFFORT, false, 0}},
		{"", -EINVAL, {0}},
		{"qos=Guaranteed", -EINVAL, {0}},
		{"cpus=1&qos=BestEffort", -EINVAL, {0}},
		{"cpus=x", -EINVAL, {0}},
		{"cpus=1&containers=0", -ERANGE, {0}},
		{"cpus=1&containers=17", -ERANGE, {0}},
		{"cpus=1&qos=guaranteed", -EINVAL, {0}},
		{"cpus=1&policy=strict", -EINVAL, {0}},
		{"cpus=1&set=mode", -EINVAL, {0}},
		{"cpus=1&memory=1Gi&memory=1Gi", -EINVAL, {0}},
		{"cpus=1&hugepages-1Gi=1Gi&hugepages-1024Mi=1Gi", -EINVAL, {0}},
		{"cpus=1&hugepages-=1Gi", -EINVAL, {0}},
		{"cpus=1&hugepages-x=1Gi", -EINVAL, {0}},
		{"cpus=1&cpuset=1", -EINVAL, {0}},
		{"hugepages-2Mi=0", -EINVAL, {0}},
		{"cpu=1", -EINVAL, {0}},
		{"cpus=1&memory=1Gi%00", -EINVAL, {0}},
		{"cpus=111111111111111111111111111111111111111111111111111111111111111111", -EINVAL,
			{0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ui_question q = {0};
		struct err e = {0};
		const struct ui_question *want = &cases[i].want;

		if (ui_question_read(cases[i].query, &q, &e) != cases[i].rc)
			fail_msg("%s: %s", cases[i].query, e.text);
		assert_true(q.cpu_milli == want->cpu_milli && q.nr_memory == want->nr_memory &&
			    memcmp(q.memory, want->memory, sizeof q.memory) == 0 &&
			    q.containers == want->containers && q.qos == want->qos &&
			    q.has_policy == want->has_policy && q.policy == want->policy);
		assert_int_equal(!*e.text, !cases[i].rc);
	}
}

static struct topo *machine_named(const char *name)
{
	struct topo *t = calloc(1, sizeof *t);
	struct err e;

	if (machine_load(name, t, NULL, NULL, &e))
		fail_msg("%s", e.text);
	return t;
}

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g;
};

static int record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

/* A node where that many containers ask for one to eight CPUs each. */
static struct node *busy_node(struct topo *t, struct random *r, unsigned nr)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.record = record};
	struct update_list ups = {0};

	n->t = t;
	n->s = settings_of(POLICY_RESTRICTED);
	n->g = engine_new(n->t, &n->s, &hooks);
	for (unsigned i = 0; i < nr; i++) {
		char id[ID_MAX];
		struct decision d;

		(void)snprintf(id, sizeof id, "c%u", i);
		struct request req = ask(id, QOS_GUARANTEED, 1000 * (1 + random_below(r, 8)),
			UINT64_C(128) << (20 + random_below(r, 5)));
		engine_create(n->g, i + 1, &req, &d, &ups);
	}
	vec_fini(&ups);
	return n;
}

static void free_node(struct node *n)
{
	engine_free(n->g);
	free(n->t);
	free(n);
}

static struct ui_question any_question(struct random *r)
{
	return (struct ui_question){.cpu_milli = 1000 * random_below(r, 40),
		.nr_memory = 1,
		.memory = {{0, (uint64_t)(1 + random_below(r, 64)) << (26 + random_below(r, 6))}},
		.containers = 1 + random_below(r, random_chance(r, 50) ? 2 : UI_CONTAINERS_MAX),
		.qos = random_chance(r, 90) ? QOS_GUARANTEED : QOS_BURSTABLE,
		.has_policy = random_chance(r, 50),
		.policy = random_below(r, NR_POLICIES)};
}

/* Whether that pod is admitted when steps are not counted. */
static bool fits(const struct node *n, const struct ui_question *q)
{
	struct ask container[UI_CONTAINERS_MAX] = {0};
	struct pod pod = {.sandbox_id = "w",
		.uid = "w",
		.ns = "w",
		.name = "w",
		.qos = q->qos,
		.nr = q->containers,
		.container = container};
	struct settings s = n->s;
	struct budget b = budget_of(0);
	void *work = calloc(1, ADMIT_ARENA_BYTES);
	struct answer answer;
	struct arena a;

	for (unsigned i = 0; i < q->containers; i++)
		container[i] = (struct ask){.name = "w",
			.cpu_milli = q->cpu_milli,
			.nr_memory = 1,
			.memory = {q->memory[0]}};
	if (q->has_policy)
		s.topology_policy = q->policy;
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	answer_pod(&(struct admit_question){engine_ledger(n->g), &s, .pod = &pod}, &b, &a, &answer);
	free(work);
	return answer.decision.admit;
}

static int64_t nanoseconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

/* How many of the questions were not answered; all others are answered as without a bound, on the
 * node and on a copy of it. */
static unsigned ask_about(struct node *n, struct random *r, unsigned questions, int64_t *copied_ns)
{
	unsigned too_hard = 0;
	struct err e;

	for (unsigned i = 0; i < questions; i++) {
		const struct ui_question q = any_question(r);
		int64_t from = nanoseconds();
		struct engine *copy = engine_copy(n->g, n->t, &n->s, &e);
		int64_t took = nanoseconds() - from;

		assert_non_null(copy);
		*copied_ns = took > *copied_ns ? took : *copied_ns;
		char *answer = ui_whatif(&(struct ui_node){engine_ledger(n->g), &n->s, 1,
						 MERGE_VISIT_BUDGET_MAX, NULL, 0},
			&q, &e);
		char *again = ui_whatif(&(struct ui_node){engine_ledger(copy), &n->s, 1,
						MERGE_VISIT_BUDGET_MAX, NULL, 0},
			&q, &e);
		assert_string_equal(answer ? answer : "", again ? again : "");
		if (answer)
			assert_int_equal(strstr(answer, "\"op\":\"hold\"") != NULL, fits(n, &q));
		else
			assert_int_equal(e.code, EBUSY);
		too_hard += !answer;
		assert_int_equal(ledger_check(engine_ledger(copy), &e), 0);
		engine_free(copy);
		free(answer);
		free(again);
	}
	return too_hard;
}

static void an_answer_is_the_one_that_any_budget_gives(void **state)
{
	static const char *const machines[] = {"kep3545-8", "altix-64", "snc4-2s", "laptop"};
	struct random r = {11};

	(void)state;
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		int64_t copied_ns = 0;
		struct node *n = busy_node(machine_named(machines[i]), &r, 40);
		unsigned too_hard = ask_about(n, &r, QUESTIONS, &copied_ns);

		print_message("%s: a copy took %lld us at most, %u of %d were not answered\n",
			machines[i], (long long)(copied_ns / 1000), too_hard, QUESTIONS);
		assert_int_equal(too_hard, 0);
		free_node(n);
	}
}

/* 64 NUMA nodes of which no two have as much memory: sets of them that add up to an amount are
 * many. */
static struct topo *uneven_64(void)
{
	struct topo *t = calloc(1, sizeof *t);

	topo_init(t, "uneven");
	for (unsigned i = 0; i < NODES_MAX; i++)
		(void)topo_add_node(t, i, NULL);
	for (unsigned i = 0; i < NODES_MAX; i++) {
		for (unsigned c = 0; c < 4; c++)
			(void)topo_add_cpu(t, 4 * i + c, i, 4 * i + c, i / 4, i, NULL);
		(void)topo_set_memory(t, i, 0,
			(UINT64_C(1) << 32) + i * i * UINT64_C(7654321) / 4096 * 4096, NULL);
		for (unsigned k = 0; k < NODES_MAX; k++)
			(void)topo_set_distance(
				t, i, k, i == k ? 10 : 12 + (i * k + i + k) % 30, NULL);
	}
	if (topo_seal(t, NULL))
		fail_msg("no machine");
	return t;
}

static void a_question_that_takes_too_many_steps_says_so(void **state)
{
	const struct ui_question q = {
		.cpu_milli = 1000 * 30, .nr_memory = 1, .memory = {{0, GI(32)}}, .containers = 5};
	struct random r = {12};
	struct node *n = busy_node(uneven_64(), &r, 30);
	const struct ui_node few_steps = {engine_ledger(n->g), &n->s, 1, 100, NULL, 0};
	struct err e = {0};

	(void)state;
	assert_null(ui_whatif(&few_steps, &q, &e));
	assert_int_equal(e.code, EBUSY);
	assert_non_null(strstr(e.text, "numafit whatif"));
	free_node(n);
}

static void a_refusal_says_why_and_what_would_help(void **state)
{
	const struct ui_question q = {.cpu_milli = 12000,
		.nr_memory = 1,
		.memory = {{0, 1 << 20}},
		.containers = 1,
		.has_policy = true,
		.policy = POLICY_SINGLE_NUMA_NODE};
	struct random r = {13};
	struct node *n = busy_node(machine_named("kep3545-8"), &r, 60);
	const struct ui_node node = {
		engine_ledger(n->g), &n->s, 1, MERGE_VISIT_BUDGET_MAX, NULL, 0};
	char *answer = ui_whatif(&node, &q, NULL);

	(void)state;
	assert_non_null(answer);
	assert_non_null(strstr(answer, "\"op\":\"refuse\""));
	assert_non_null(strstr(answer, "\"class\":\""));
	assert_non_null(strstr(answer, "\"why\":\""));
	assert_non_null(strstr(answer, "\"help\":\""));
	assert_non_null(strstr(answer, "\"remedies\":["));
	free(answer);
	free_node(n);
}

static void huge_pages_come_from_where_there_are_any(void **state)
{
	static const struct {
		const char *query, *in_answer;
	} cases[] = {
		{"cpus=2&memory=1Gi&hugepages-1Gi=2Gi", "\"op\":\"hold\""},
		{"cpus=2&memory=1Gi&hugepages-1Gi=2Gi", "\"hugepages-1Gi\""},
		{"cpus=2&memory=1Gi&hugepages-1Gi=500Gi", "\"op\":\"refuse\""},
		{"cpus=2&memory=1Gi&hugepages-16Gi=16Gi", "\"op\":\"refuse\""},
	};
	struct random r = {14};
	struct node *n = busy_node(machine_named("kep3545-8"), &r, 0);
	const struct ui_node node = {
		engine_ledger(n->g), &n->s, 1, MERGE_VISIT_BUDGET_MAX, NULL, 0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ui_question q;
		struct err e = {0};

		assert_int_equal(ui_question_read(cases[i].query, &q, &e), 0);
		char *answer = ui_whatif(&node, &q, &e);
		if (!answer || !strstr(answer, cases[i].in_answer))
			fail_msg("%s: %s %s", cases[i].query, answer ? answer : "", e.text);
		free(answer);
	}
	free_node(n);
}

/* The thread */

struct asker {
	struct loop *loop;
	struct whatif_thread *thread;
	unsigned nr_answers, nr_errors;
};

static void on_answer(void *ctx, char *answer, const struct err *e)
{
	struct asker *a = ctx;

	a->nr_answers += answer != NULL;
	a->nr_errors += !answer && e->code;
	free(answer);
	loop_stop(a->loop);
}

static struct asker asker_new(void)
{
	return (struct asker){.loop = loop_new()};
}

static void asker_fini(struct asker *a)
{
	whatif_thread_free(a->thread);
	loop_free(a->loop);
}

static void the_thread_answers_one_question_at_a_time(void **state)
{
	const struct ui_question q = {.cpu_milli = 4000, .containers = 1, .qos = QOS_GUARANTEED};
	struct topo *t = machine_named("kep3545-8");
	struct random r = {1};
	struct node *n = busy_node(t, &r, 4);
	struct asker a = asker_new();
	struct err e;

	(void)state;
	a.thread = whatif_thread_new(a.loop, on_answer, &a);
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(whatif_thread_ask(a.thread, n->g, &n->s, &q, &e), 0);
		assert_int_equal(whatif_thread_ask(a.thread, n->g, &n->s, &q, &e), -EAGAIN);
		loop_run(a.loop);
		assert_int_equal(a.nr_answers, i);
	}
	/* what is being answered when it ends is for nobody */
	assert_int_equal(whatif_thread_ask(a.thread, n->g, &n->s, &q, &e), 0);
	asker_fini(&a);
	assert_int_equal(a.nr_answers + a.nr_errors, 2);
	free_node(n);
}

static void what_is_too_large_to_be_copied_is_not_asked_about(void **state)
{
	const struct ui_question q = {.cpu_milli = 1000, .containers = 1, .qos = QOS_GUARANTEED};
	struct topo *t = machine_named("kep3545-8");
	struct random r = {1};
	struct node *n = busy_node(t, &r, 0);
	struct asker a = asker_new();
	struct update_list ups = {0};
	struct err e;

	(void)state;
	a.thread = whatif_thread_new(a.loop, on_answer, &a);
	for (unsigned i = 0; i <= WHATIF_ENTRIES_MAX; i++) {
		char id[ID_MAX];
		struct decision d;

		(void)snprintf(id, sizeof id, "c%u", i);
		struct request req = ask(id, QOS_BEST_EFFORT, 0, 0);
		engine_create(n->g, i + 1, &req, &d, &ups);
	}
	assert_int_equal(whatif_thread_ask(a.thread, n->g, &n->s, &q, &e), -E2BIG);
	engine_forget(n->g, 0, "remove", "c0");
	assert_int_equal(whatif_thread_ask(a.thread, n->g, &n->s, &q, &e), 0);
	loop_run(a.loop);
	assert_int_equal(a.nr_answers, 1);
	asker_fini(&a);
	vec_fini(&ups);
	free_node(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_says_what_is_asked_for_and_nothing_else_is_taken),
		cmocka_unit_test(an_answer_is_the_one_that_any_budget_gives),
		cmocka_unit_test(a_question_that_takes_too_many_steps_says_so),
		cmocka_unit_test(a_refusal_says_why_and_what_would_help),
		cmocka_unit_test(huge_pages_come_from_where_there_are_any),
		cmocka_unit_test(the_thread_answers_one_question_at_a_time),
		cmocka_unit_test(what_is_too_large_to_be_copied_is_not_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
