/* Any sequence of what a cluster learns: what is left in each zone is what its node reports, with
 * what has ended since, less the pods that the report does not contain; whatever authors of pods
 * write into their hints. Who starts anew from what the API server has holds as much, and gives
 * back nothing that it has not seen itself. ROUNDS and SEED choose how many and which. */
#include "sched_cluster_model.h"

static void add(struct left *left, int zone, int64_t cpus)
{
	left->cpus[zone] += cpus;
	left->gib[zone]++;
}

/* To left, what the report has of a pod of that name that has ended. */
static void give_back(struct model *m, unsigned node, unsigned i, struct left *left)
{
	const struct guest *g = &m->guest[i];
	const struct ghost *gone = &m->ghost[node][i];
	bool is_here = g->is_there && g->node == node;

	if (!m->report[node].has[i])
		return;
	if (is_here && gives_back(g) && !is_reported(m, node, g->ended_ms)) {
		add(left, g->zone, g->cpus);
		m->gave_back++;
	}
	if (!is_here && gone->is_there && !is_reported(m, node, gone->ended_ms)) {
		add(left, gone->zone, gone->cpus);
		m->gave_back_gone++;
	}
}

static int64_t at_least_0(int64_t n)
{
	return n < 0 ? 0 : n;
}

static bool fits(const struct left *left, int zone, int64_t cpus)
{
	return left->cpus[zone] >= cpus && left->gib[zone] >= 1;
}

static void take(struct left *left, int zone, int64_t cpus)
{
	left->cpus[zone] = at_least_0(left->cpus[zone] - cpus);
	left->gib[zone] = at_least_0(left->gib[zone] - 1);
}

static void take_greedily(int64_t *of, int64_t n)
{
	for (int z = 0; z < RIG_ZONES; z++) {
		int64_t took = of[z] < n ? of[z] : n;

		of[z] -= took;
		n -= took;
	}
}

/* The lowest zone that has it all; else what there is. */
static void take_somewhere(struct left *left, int64_t cpus)
{
	for (int z = 0; z < RIG_ZONES; z++)
		if (fits(left, z, cpus)) {
			take(left, z, cpus);
			return;
		}
	take_greedily(left->cpus, cpus);
	take_greedily(left->gib, 1);
}

static bool waits(const struct model *m, unsigned node, const struct guest *g)
{
	const struct report_model *r = &m->report[node];

	return g->is_there && g->node == node && !g->ended && !r->has[g - m->guest] &&
	       (g->pending || m->rig.now_ms - g->at_ms < RIG_ASSUME_MS || r->made_ms <= g->at_ms);
}

/* Those that wait, in the order in which they were heard of. */
static unsigned list_waiting(struct model *m, unsigned node, const struct guest *waiting[PODS])
{
	unsigned nr = 0;

	for (unsigned i = 0; i < PODS; i++) {
		unsigned at = nr;

		if (!waits(m, node, &m->guest[i]))
			continue;
		for (; at && waiting[at - 1]->since > m->guest[i].since; at--)
			waiting[at] = waiting[at - 1];
		waiting[at] = &m->guest[i];
		nr++;
	}
	m->waited += nr;
	return nr;
}

static void take_those_that_wait(struct model *m, unsigned node, struct left *left)
{
	const struct guest *waiting[PODS];
	unsigned nr = list_waiting(m, node, waiting);
	bool held[PODS] = {false};

	for (unsigned i = 0; i < nr; i++) {
		held[i] = waiting[i]->zone >= 0 && fits(left, waiting[i]->zone, waiting[i]->cpus);
		if (held[i])
			take(left, waiting[i]->zone, waiting[i]->cpus);
	}
	for (unsigned i = 0; i < nr; i++)
		for (int z = 0; z < RIG_ZONES && !held[i] && !waiting[i]->pending; z++)
			take(left, z, waiting[i]->cpus);
	for (unsigned i = 0; i < nr; i++)
		if (!held[i] && waiting[i]->pending) {
			take_somewhere(left, waiting[i]->cpus);
			m->elsewhere++;
		}
}

/* What is left on a node of ours, by the rule in the header and nothing else. */
static void assert_what_is_left(struct model *m, unsigned node, unsigned long seed)
{
	const struct report_model *r = &m->report[node];
	struct left left;

	for (int z = 0; z < RIG_ZONES; z++)
		left.cpus[z] = left.gib[z] = r->cpus[z];
	for (unsigned i = 0; i < PODS; i++)
		give_back(m, node, i, &left);
	for (unsigned z = 0; z < RIG_ZONES; z++) {
		left.cpus[z] = left.cpus[z] > RIG_CPUS ? RIG_CPUS : left.cpus[z];
		left.gib[z] = left.gib[z] > RIG_CPUS ? RIG_CPUS : left.gib[z];
	}
	take_those_that_wait(m, node, &left);
	for (unsigned z = 0; z < RIG_ZONES; z++) {
		int64_t want = r->is_there ? left.cpus[z] : -1;
		int64_t got = rig_cpus(&m->rig, m->node[node], z);

		if (got != want)
			fail_msg("seed %lu: node %u, zone %u: %lld, not %lld", seed, node, z,
				(long long)got, (long long)want);
	}
}

/* On no node of whatever kind is there more than it reports and those asked for that have ended;
 * nor more than it has. */
static void assert_no_more_than_there_is(struct model *m, unsigned node, unsigned long seed)
{
	const struct report_model *r = &m->report[node];
	int64_t most = 0, got = 0;

	for (unsigned i = 0; i < PODS; i++) {
		const struct guest *g = &m->guest[i];

		if (r->has[i] && g->is_there && g->node == node && g->ended)
			most += g->cpus;
		else if (r->has[i])
			most += m->ghost[node][i].is_there ? m->ghost[node][i].cpus : 0;
	}
	for (unsigned z = 0; z < RIG_ZONES && r->is_there; z++) {
		int64_t cpus = rig_cpus(&m->rig, m->node[node], z);

		assert_in_range(cpus, 0, RIG_CPUS);
		most += r->cpus[z];
		got += cpus;
	}
	if (got > most)
		fail_msg("seed %lu: node %u: %lld of %lld", seed, node, (long long)got,
			(long long)most);
}

static void assert_all(struct model *m, unsigned long seed)
{
	for (unsigned n = 0; n < OURS; n++)
		assert_what_is_left(m, n, seed);
	for (unsigned n = 0; n < NODES; n++)
		assert_no_more_than_there_is(m, n, seed);
}

/* Who starts now does not know what was changed, nor who has held what: it takes what hints say of
 * pods that no report names, and nothing else. */
static void forget_what_was_seen(struct model *m)
{
	for (unsigned i = 0; i < PODS; i++) {
		struct guest *g = &m->guest[i];
		bool named = m->report[g->node].has[i];

		g->ended_ms = m->rig.now_ms;
		g->was_seen = g->came = false;
		g->named = named;
		g->zone = named || g->ended || g->says < 0 ? SAYS_NOTHING : g->says;
		g->since = i;
	}
	memset(m->ghost, 0, sizeof m->ghost);
	m->next_since = PODS;
}

/* Of a fingerprint it may not know any more that it was right once, or may find out what was not
 * known: that of some of the pods is. */
static void assert_right_after_a_restart(struct model *m, unsigned long seed)
{
	const struct sched_cluster_args args = {.over_reserve = true, .assume_ms = RIG_ASSUME_MS};
	struct sched_cluster *before = m->rig.c;
	int64_t left[NODES][RIG_ZONES];

	for (unsigned i = 0; i < PODS; i++)
		if (m->guest[i].is_assumed) {
			sched_cluster_forget(before, m->guest[i].uid);
			m->guest[i].is_there = m->guest[i].is_assumed = false;
		}
	sched_cluster_expire(before, m->rig.now_ms);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned z = 0; z < RIG_ZONES; z++)
			left[n][z] = rig_cpus(&m->rig, m->node[n], z);
	m->rig.c = sched_cluster_new(&args, &m->rig.names);
	forget_what_was_seen(m);
	if (random_chance(&m->r, 50))
		all_is_listed_anew(m);
	for (unsigned n = 0; n < NODES; n++) {
		rig_node(&m->rig, m->node[n]);
		if (m->report[n].is_there)
			give_report(m, m->rig.c, n);
	}
	all_is_listed_anew(m);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned z = 0; z < RIG_ZONES; z++) {
			int64_t now = rig_cpus(&m->rig, m->node[n], z);

			m->sorts[now == left[n][z]]++;
		}
	assert_all(m, seed);
	sched_cluster_free(before);
}

static void play(struct model *m, unsigned long seed)
{
	struct err e = {0};

	for (unsigned i = 0; i < EVENTS; i++) {
		events[random_below(&m->r, sizeof events / sizeof *events)](m);
		if (sched_cluster_check(m->rig.c, &e))
			fail_msg("seed %lu, event %u: %s", seed, i, e.text);
		if (i % 8)
			continue;
		sched_cluster_expire(m->rig.c, m->rig.now_ms);
		assert_all(m, seed);
		if (random_chance(&m->r, 2))
			assert_right_after_a_restart(m, seed);
	}
	assert_right_after_a_restart(m, seed);
}

static unsigned long number_from(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void free_resources_follow_from_reports_and_pods(void **state)
{
	unsigned long rounds = number_from("ROUNDS", ROUNDS_DEFAULT), from = number_from("SEED", 0);
	const struct sched_cluster_args args = {.over_reserve = true};
	unsigned waited = 0, elsewhere = 0, forged = 0, gave_back = 0, gave_back_gone = 0,
		 sorts[2] = {0};

	(void)state;
	for (unsigned long seed = from; seed < from + rounds; seed++) {
		struct model *m = calloc(1, sizeof *m);

		m->r = (struct random){.state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15)};
		rig_init(&m->rig, &args);
		for (unsigned n = 0; n < NODES; n++) {
			(void)snprintf(m->node[n], sizeof m->node[n], "n%u", n);
			rig_node(&m->rig, m->node[n]);
		}
		for (unsigned i = 0; i < PODS; i++)
			(void)snprintf(m->guest[i].name, sizeof m->guest[i].name, "p%u", i);
		play(m, seed);
		waited += m->waited;
		elsewhere += m->elsewhere;
		forged += m->forged;
		gave_back += m->gave_back;
		gave_back_gone += m->gave_back_gone;
		sorts[0] += m->sorts[0];
		sorts[1] += m->sorts[1];
		rig_fini(&m->rig);
		free(m);
	}
	print_message("%u times a hint was changed, %u times a pod waited, %u times for wherever "
		      "there is room, %u times one that had ended gave back, %u times one that was "
		      "gone; after restarts %u zones are as before, %u are not\n",
		forged, waited, elsewhere, gave_back, gave_back_gone, sorts[1], sorts[0]);
	assert_true(waited > rounds && sorts[1] > rounds && elsewhere > rounds && forged > rounds);
	assert_true(gave_back > rounds / 2 && gave_back_gone > rounds / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_resources_follow_from_reports_and_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
