/* Settings that are accepted, and change no decision beside the others. */
#include <numafit/admit.h>

#include "core_machine.h"
#include "core_random.h"
#include "settings_cases.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 4, CONTAINERS = 400 };

/* What is set beside an idle setting, that setting itself, and what gives it a meaning. */
static const struct idle_case {
	const char *key, *value;
	const char *beside[PAIRS_MAX][2], *meaning[PAIRS_MAX][2];
} cases[] = {
	{"topologyManagerScope", "pod", {{"topologyManagerPolicy", "none"}},
		{{"topologyManagerPolicy", "restricted"}}},
	{TOPOLOGY "prefer-closest-numa-nodes", "true", {{"topologyManagerPolicy", "none"}},
		{{"topologyManagerPolicy", "best-effort"}}},
	{TOPOLOGY "prefer-closest-numa-nodes", "true",
		{{"topologyManagerPolicy", "single-numa-node"}},
		{{"topologyManagerPolicy", "restricted"}}},
	{TOPOLOGY "max-allowable-numa-nodes", "8", {{"topologyManagerPolicy", "none"}},
		{{"topologyManagerPolicy", "best-effort"}}},
	{TOPOLOGY "numa-allocation-strategy", "most-allocated",
		{{"topologyManagerPolicy", "none"},
			{"featureGates.TopologyManagerPolicyAlphaOptions", "true"}},
		{{"topologyManagerPolicy", "best-effort"}}},
	{CPU "align-by-socket", "true",
		{{"topologyManagerPolicy", "none"},
			{"featureGates.CPUManagerPolicyAlphaOptions", "true"}},
		{{"topologyManagerPolicy", "best-effort"}}},
	{CPU "align-by-socket", "true",
		{{"topologyManagerPolicy", "none"}, {"kubernetesVersion", "1.36"},
			{CPU "distribute-cpus-across-numa", "true"},
			{"featureGates.CPUManagerPolicyAlphaOptions", "true"}},
		{{"kubernetesVersion", "1.37"}}},
	{CPU "strict-cpu-reservation", "true", {{"topologyManagerPolicy", "restricted"}},
		{{"reservedSystemCPUs", "0"}}},
	{"systemReserved.cpu", "5", {{"reservedSystemCPUs", "0"}}, {{"reservedSystemCPUs", ""}}},
	{"kubeReserved.cpu", "5", {{"reservedSystemCPUs", "0"}}, {{"reservedSystemCPUs", ""}}},
	{"featureGates.TopologyManagerPolicyBetaOptions", "false",
		{{"topologyManagerPolicy", "restricted"}},
		{{"featureGates.TopologyManagerPolicyBetaOptions", "true"}}},
};
enum { NR_CASES = sizeof cases / sizeof *cases };

static void set_pairs(struct settings *s, const char *const pairs[PAIRS_MAX][2])
{
	for (unsigned i = 0; i < PAIRS_MAX && pairs[i][0]; i++)
		set_all(s, &pairs[i], 1);
}

static bool is_found(const struct settings *s, const char *key)
{
	struct idle_setting found[IDLE_SETTINGS_MAX];
	unsigned nr = settings_idle(s, found), here = 0;

	for (unsigned i = 0; i < nr; i++) {
		here += strcmp(found[i].key, key) == 0;
		assert_true(*found[i].why);
	}
	return here == 1;
}

static void each_is_found_until_another_setting_gives_it_a_meaning(void **state)
{
	struct idle_setting found[IDLE_SETTINGS_MAX];
	struct settings s = defaults();

	(void)state;
	assert_int_equal(settings_idle(&s, found), 0);
	for (unsigned i = 0; i < NR_CASES; i++) {
		const char *const self[][2] = {{cases[i].key, cases[i].value}};

		s = defaults();
		set_pairs(&s, cases[i].beside);
		assert_false(is_found(&s, cases[i].key));
		set_all(&s, self, 1);
		if (settings_check(&s, NULL, &(struct err){0}) || !is_found(&s, cases[i].key))
			fail_msg("case %u, %s", i, cases[i].key);
		set_pairs(&s, cases[i].meaning);
		if (is_found(&s, cases[i].key))
			fail_msg("case %u, %s: it has a meaning now", i, cases[i].key);
	}
}

/* A ledger, and what it is asked. */
struct side {
	struct settings s;
	struct ledger *l;
	char work[ADMIT_ARENA_BYTES];
};

static struct decision answer_of(struct side *side, const struct request *req)
{
	struct budget b = budget_of(side->s.merge_visit_budget);
	struct decision d;
	struct arena a;

	arena_init_fixed(&a, side->work, sizeof side->work);
	admit(&(struct admit_question){side->l, &side->s, .container = req}, &b, &a, &d, NULL);
	if (d.admit) {
		struct cpuset pool = d.exclusive ? ledger_pool_without(side->l, &d.cpus)
						 : ledger_view(side->l)->pool;

		assert_int_equal(ledger_set_pool(side->l, &pool, NULL), 0);
		ledger_commit(side->l, req, &d);
	}
	return d;
}

static void each_leaves_every_decision_as_it_is(void **state)
{
	struct side *side[2] = {calloc(1, sizeof **side), calloc(1, sizeof **side)};
	struct topo *t = machine_of_eight();
	struct random r = {.state = 7};
	unsigned admitted = 0;

	(void)state;
	for (unsigned i = 0; i < NR_CASES; i++) {
		const char *const self[][2] = {{cases[i].key, cases[i].value}};

		for (unsigned k = 0; k < 2; k++) {
			side[k]->s = defaults();
			set_pairs(&side[k]->s, cases[i].beside);
			if (k)
				set_all(&side[k]->s, self, 1);
			side[k]->l = ledger_new(t, &side[k]->s);
		}
		for (unsigned n = 0; n < CONTAINERS / NR_CASES; n++) {
			char id[16];

			(void)snprintf(id, sizeof id, "c%u", n);
			struct request req = ask(id, QOS_GUARANTEED,
				1000 * (1 + random_below(&r, 14)), GIB(1 + random_below(&r, 50)));
			struct decision a = answer_of(side[0], &req), b = answer_of(side[1], &req);

			if (a.admit != b.admit || !cpuset_equal(&a.cpus, &b.cpus) ||
				!nodeset_equal(a.mems, b.mems) || a.preferred != b.preferred)
				fail_msg("case %u, %s: %s is decided otherwise", i, cases[i].key,
					id);
			admitted += a.admit;
		}
		ledger_free(side[0]->l);
		ledger_free(side[1]->l);
	}
	assert_true(admitted > CONTAINERS / 4);
	free(side[0]);
	free(side[1]);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_until_another_setting_gives_it_a_meaning),
		cmocka_unit_test(each_leaves_every_decision_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
