/* numafit refusals and explain on a journal with many refusals: remedies of all of them are looked
 * for within one budget, which the JSON says where remedies were left out for it. */
#include <codec/fields_json.h>
#include <numafit/engine.h>
#include <numafit/number.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "journal_writer.h"

enum {
	NODES = 8,
	CPUS_PER_NODE = 64,
	CONTAINERS = 120,
	REFUSALS = 300,
	NAME_BYTES = 32,
	CPU_SECONDS_MAX = 15, /* without a budget for all of them: 40 */
};
static const char left_out[] = "\"remedies_left_out\":true";

static struct topo *machine_of_512(void)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "large");
	for (unsigned n = 0; n < NODES; n++)
		(void)topo_add_node(t, n, NULL);
	for (unsigned cpu = 0; cpu < NODES * CPUS_PER_NODE; cpu++)
		(void)topo_add_cpu(t, cpu, cpu / CPUS_PER_NODE, cpu,
			cpu / (NODES / 2 * CPUS_PER_NODE), cpu / CPUS_PER_NODE, NULL);
	for (unsigned n = 0; n < NODES; n++)
		(void)topo_set_memory(t, n, 0, GIB(256), NULL);
	if (topo_seal(t, NULL))
		abort();
	return t;
}

struct crowd {
	struct topo *t;
	struct settings s;
	struct writer w;
	int64_t now;
	char dir[64], path[96];
};

static void create_pod(struct crowd *x, const char *kind, unsigned i, unsigned cpus, unsigned gib)
{
	char name[NAME_BYTES];
	struct request req = ask(name, QOS_GUARANTEED, cpus * 1000, GIB(gib));
	struct update_list ups = {0};
	struct decision d;

	(void)snprintf(name, sizeof name, "%s-%u", kind, i);
	req.ask.name = "main";
	req.pod.sandbox_id = req.pod.uid = req.pod.name = name;
	engine_create(x->w.engine, x->now += MS_PER_S, &req, &d, &ups);
	if (d.admit)
		engine_live(x->w.engine, x->now += MS_PER_S, &req, NULL);
	assert_int_equal(d.admit, text_equal(kind, "web"));
	vec_fini(&ups);
}

/* A node that runs CONTAINERS pods and has refused so many, for which nothing would help. */
static void crowd_init(struct crowd *x, unsigned refusals)
{
	*x = (struct crowd){.t = machine_of_512(), .now = 1763726400000};
	settings_init(&x->s);
	x->s.topology_policy = POLICY_SINGLE_NUMA_NODE;
	x->s.shared_pool_step = 0;
	(void)cpuset_parse(&x->s.reserved_cpus, "0", 1, NULL);
	(void)snprintf(x->dir, sizeof x->dir, "/tmp/numafit-refusals.XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	(void)snprintf(x->path, sizeof x->path, "%s/journal", x->dir);
	writer_init(&x->w, x->t, &x->s, x->path);
	for (unsigned i = 0; i < CONTAINERS; i++)
		create_pod(x, "web", i, 4, 4);
	for (unsigned i = 0; i < refusals; i++)
		create_pod(x, "big", i, 60, 300);
}

static void crowd_fini(struct crowd *x)
{
	writer_fini(&x->w);
	assert_int_equal(remove(x->path), 0);
	assert_int_equal(remove(x->dir), 0);
	free(x->t);
}

/* What the verb prints with these words, within CPU_SECONDS_MAX; the caller frees. */
static char *ask_verb(struct crowd *x, const struct command *verb, const char *a, const char *b)
{
	auto_free char *first = xstrdup(a), *second = xstrdup(b ? b : "");
	char *words[] = {(char[]){"verb"}, (char[]){"--run-directory"}, x->dir, first,
		b ? second : NULL, NULL};
	struct rusage before, after;
	char *said;

	(void)getrusage(RUSAGE_CHILDREN, &before);
	assert_int_equal(run_verb(verb, words, &said), 0);
	(void)getrusage(RUSAGE_CHILDREN, &after);
	assert_true(after.ru_utime.tv_sec - before.ru_utime.tv_sec < CPU_SECONDS_MAX);
	return said;
}

static unsigned count(const char *said, const char *what)
{
	unsigned nr = 0;

	for (; (said = strstr(said, what)); said += strlen(what))
		nr++;
	return nr;
}

static const char *line_of(const char *said, const char *pod)
{
	char member[NAME_BYTES * 2];

	(void)snprintf(member, sizeof member, "\"pod_name\":\"%s\"", pod);
	const char *at = strstr(said, member);
	assert_non_null(at);
	while (at > said && at[-1] != '\n')
		at--;
	return at;
}

static bool has(const char *line, const char *what)
{
	const char *at = strstr(line, what);

	return at && at < line + strcspn(line, "\n");
}

static void many_refusals_as_json_share_one_budget_for_remedies(void **state)
{
	struct crowd x;

	(void)state;
	crowd_init(&x, REFUSALS);
	auto_free char *said = ask_verb(&x, &verb_refusals, "-o", "json");
	assert_int_equal(count(said, "\"op\":\"refuse\""), REFUSALS);
	assert_int_equal(count(said, ",\"class\":\"policy\",\"why\":\""), REFUSALS);
	unsigned nr = count(said, left_out);
	assert_in_range(nr, REFUSALS / 4, REFUSALS - 48);
	assert_int_equal(count(said, "\"help\":\"What would help was not looked for"), nr);
	assert_true(has(line_of(said, "big-200"), left_out));
	assert_true(has(line_of(said, "big-299"),
		"\"help\":\"It fits on no node like this one: nothing that was tried would help\""));
	auto_free char *table = ask_verb(&x, &verb_refusals, "-o", "table");
	assert_int_equal(count(table, "default/big-"), REFUSALS);
	crowd_fini(&x);
}

static void few_refusals_as_json_have_all_their_remedies(void **state)
{
	struct crowd x;

	(void)state;
	crowd_init(&x, 20);
	auto_free char *said = ask_verb(&x, &verb_refusals, "-o", "json");
	assert_int_equal(count(said, "\"op\":\"refuse\""), 20);
	assert_null(strstr(said, left_out));
	crowd_fini(&x);
}

static void explaining_many_refusals_shares_one_budget_for_remedies(void **state)
{
	struct crowd x;

	(void)state;
	crowd_init(&x, REFUSALS);
	auto_free char *all = ask_verb(&x, &verb_explain, "--json", "big");
	assert_int_equal(count(all, "\"op\":\"refuse\""), REFUSALS);
	assert_true(has(line_of(all, "big-200"), left_out));
	auto_free char *said = ask_verb(&x, &verb_explain, "--json", "big-200");
	assert_int_equal(count(said, "\"op\":\"refuse\""), 1);
	assert_null(strstr(said, left_out));
	crowd_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_refusals_as_json_share_one_budget_for_remedies),
		cmocka_unit_test(few_refusals_as_json_have_all_their_remedies),
		cmocka_unit_test(explaining_many_refusals_shares_one_budget_for_remedies),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
