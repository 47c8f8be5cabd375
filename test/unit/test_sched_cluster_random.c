/* Any sequence of what a cluster is told: what is left in each zone is what its node reports, with
 * what has ended since, less the pods that the report does not contain; and who starts anew from
 * what the API server has comes to the same, but for those that are gone from there. ROUNDS and
 * SEED choose how many and which. */
#include "cluster_rig.h"
#include "core_random.h"

#include <stdlib.h>

enum {
	ROUNDS_DEFAULT = 400,
	EVENTS = 300,
	NODES = 6,
	OURS = 4, /* of them, the first ones are numafitd's */
	PODS = 40,
	NAME_MAX_HERE = 8,
	UID_MAX_HERE = 24,
	STEP_MS = 7000
};

/* What the API server has. */
struct guest {
	bool is_there, is_assumed, is_hinted;
	char name[NAME_MAX_HERE], uid[UID_MAX_HERE]; /* names come again, uids do not */
	unsigned node;
	int zone;
	int64_t cpus, at_ms, ended_ms;
	bool pending, ended;
};
/* One that has ended and is gone, but may be in its node's report. */
struct ghost {
	bool is_there;
	int zone;
	int64_t cpus, ended_ms;
};
struct report_model {
	bool is_there;
	uint64_t generation;
	int64_t cpus[RIG_ZONES], made_ms;
	bool has[PODS];
};
struct model {
	struct random r;
	struct rig rig;
	struct guest guest[PODS];
	struct ghost ghost[NODES][PODS]; /* by the guest that it was */
	struct report_model report[NODES];
	char node[NODES][NAME_MAX_HERE];
	uint64_t next_generation;
	unsigned next_life;
	unsigned waited, gave_back, gave_back_gone, sorts[2];
};

static void with_bound(struct model *m, struct sched_cluster *c, const struct guest *g, bool assume)
{
	struct rig_pod p;

	rig_pod(&p, g->name, m->node[g->node], g->cpus, g->is_hinted ? g->zone : -1);
	p.pod.uid = g->uid;
	p.bound.pending = g->pending;
	p.bound.ended = g->ended;
	p.bound.bound_ms = g->at_ms;
	if (assume)
		sched_cluster_assume(c, &p.bound, m->rig.now_ms);
	else
		sched_cluster_put_pod(c, &p.bound, m->rig.now_ms);
}

static void tell_report(struct model *m, struct sched_cluster *c, unsigned node)
{
	const struct report_model *r = &m->report[node];
	struct sched_topology *t = rig_topology("restricted", r->cpus);
	char text[FINGERPRINT_TEXT_MAX];
	uint64_t part[PODS];
	size_t nr = 0;

	for (unsigned i = 0; i < PODS; i++)
		if (r->has[i])
			part[nr++] = rig_part(m->guest[i].name);
	struct sched_report report = {.topology = t, .made_ms = r->made_ms};
	if (node < OURS) {
		report.generation = r->generation;
		report.pod = part;
		report.nr_pods = nr;
		report.names_pods = true;
	} else {
		sched_topology_attribute(
			t, "nodeTopologyPodsFingerprint", fingerprint_text(text, part, nr));
	}
	sched_cluster_put_report(c, m->node[node], &report, m->rig.now_ms);
}

/* Events */

static struct guest *any_guest(struct model *m)
{
	return &m->guest[random_below(&m->r, PODS)];
}

static void a_pod_is_bound(struct model *m)
{
	struct guest *g = any_guest(m);

	if (g->is_there)
		return;
	(void)snprintf(g->uid, sizeof g->uid, "%s-%u", g->name, m->next_life++);
	g->is_there = true;
	g->is_hinted = random_chance(&m->r, 80);
	g->is_assumed = g->is_hinted && random_chance(&m->r, 60);
	g->node = random_below(&m->r, NODES);
	g->zone = (int)random_below(&m->r, RIG_ZONES);
	g->cpus = 1 + random_below(&m->r, 6);
	g->at_ms = m->rig.now_ms;
	g->pending = true;
	g->ended = false;
	m->ghost[g->node][g - m->guest].is_there = false; /* of one name there is one */
	with_bound(m, m->rig.c, g, g->is_assumed);
}

static void end(const struct model *m, struct guest *g)
{
	if (g->ended)
		return;
	g->ended = true;
	g->pending = false;
	g->ended_ms = m->rig.now_ms;
}

static void a_pod_is_heard_of(struct model *m)
{
	struct guest *g = any_guest(m);

	if (!g->is_there)
		return;
	g->is_assumed = false;
	g->pending = g->pending && random_chance(&m->r, 50);
	if (random_chance(&m->r, 15))
		end(m, g);
	with_bound(m, m->rig.c, g, false);
}

static void a_binding_fails(struct model *m)
{
	struct guest *g = any_guest(m);

	sched_cluster_forget(m->rig.c, g->uid);
	if (g->is_assumed)
		g->is_there = g->is_assumed = false;
}

/* Whether a report has come when the end of a pod should have been in it. */
static bool is_told(const struct model *m, unsigned node, int64_t ended_ms)
{
	return m->rig.now_ms - ended_ms >= RIG_ASSUME_MS && m->report[node].made_ms > ended_ms;
}

static void leave(struct model *m, struct guest *g)
{
	size_t i = (size_t)(g - m->guest);

	if (g->is_there && g->ended && g->is_hinted && m->report[g->node].has[i])
		m->ghost[g->node][i] = (struct ghost){
			.is_there = !is_told(m, g->node, g->ended_ms),
			.zone = g->zone,
			.cpus = g->cpus,
			.ended_ms = g->ended_ms,
		};
	g->is_there = g->is_assumed = false;
}

static void a_pod_goes(struct model *m)
{
	struct guest *g = any_guest(m);

	sched_cluster_remove_pod(m->rig.c, g->uid);
	leave(m, g);
}

static void a_pod_ends_and_goes(struct model *m)
{
	struct guest *g = any_guest(m);

	if (!g->is_there)
		return;
	g->is_assumed = false;
	end(m, g);
	with_bound(m, m->rig.c, g, false);
	sched_cluster_remove_pod(m->rig.c, g->uid);
	leave(m, g);
}

static void a_node_reports(struct model *m)
{
	unsigned node = random_below(&m->r, NODES);
	struct report_model *r = &m->report[node];

	*r = (struct report_model){
		.is_there = true, .generation = ++m->next_generation, .made_ms = m->rig.now_ms};
	for (unsigned z = 0; z < RIG_ZONES; z++)
		r->cpus[z] = random_below(&m->r, RIG_CPUS + 1);
	for (unsigned i = 0; i < PODS; i++) {
		const struct guest *g = &m->guest[i];
		bool is_here = g->is_there && g->node == node && !g->is_assumed;

		if (is_here)
			r->has[i] = random_chance(&m->r, g->ended ? 50 : 85);
		else
			r->has[i] = m->ghost[node][i].is_there && random_chance(&m->r, 50);
		m->ghost[node][i].is_there &= r->has[i];
	}
	tell_report(m, m->rig.c, node);
}

static void a_report_comes_again(struct model *m)
{
	unsigned node = random_below(&m->r, NODES);

	if (m->report[node].is_there)
		tell_report(m, m->rig.c, node);
}

static void time_goes_by(struct model *m)
{
	m->rig.now_ms += random_below(&m->r, 3 * STEP_MS);
	sched_cluster_expire(m->rig.c, m->rig.now_ms);
	for (unsigned i = 0; i < PODS; i++) {
		struct guest *g = &m->guest[i];

		if (g->is_assumed && m->rig.now_ms - g->at_ms >= RIG_ASSUME_MS)
			g->is_there = g->is_assumed = false;
	}
}

static void all_is_listed_anew(struct model *m)
{
	struct sched_cluster *c = m->rig.c;

	sched_cluster_begin(c, CLUSTER_PODS);
	for (unsigned i = 0; i < PODS; i++)
		if (m->guest[i].is_there && !m->guest[i].is_assumed)
			with_bound(m, c, &m->guest[i], false);
	sched_cluster_sweep(c, CLUSTER_PODS);
}

static void a_pod_goes_unseen(struct model *m)
{
	struct guest *g = any_guest(m);

	if (!g->is_assumed)
		leave(m, g);
	all_is_listed_anew(m);
}

static void a_report_is_deleted(struct model *m)
{
	unsigned node = random_below(&m->r, NODES);

	sched_cluster_remove_report(m->rig.c, m->node[node]);
	m->report[node] = (struct report_model){0};
	memset(m->ghost[node], 0, sizeof m->ghost[node]);
}

static void (*const events[])(struct model *m) = {a_pod_is_bound, a_pod_is_bound, a_pod_is_bound,
	a_pod_is_heard_of, a_pod_is_heard_of, a_pod_is_heard_of, a_binding_fails, a_pod_goes,
	a_pod_ends_and_goes, a_node_reports, a_node_reports, a_report_comes_again, time_goes_by,
	time_goes_by, all_is_listed_anew, a_pod_goes_unseen, a_report_is_deleted};

/* To left, what the report has of a pod of that name that has ended. */
static void give_back(struct model *m, unsigned node, unsigned i, int64_t left[RIG_ZONES])
{
	const struct guest *g = &m->guest[i];
	const struct ghost *gone = &m->ghost[node][i];
	bool is_here = g->is_there && g->node == node;

	if (!m->report[node].has[i])
		return;
	if (is_here && g->ended && g->is_hinted && !is_told(m, node, g->ended_ms)) {
		left[g->zone] += g->cpus;
		m->gave_back++;
	}
	if (!is_here && gone->is_there && !is_told(m, node, gone->ended_ms)) {
		left[gone->zone] += gone->cpus;
		m->gave_back_gone++;
	}
}

/* What is left on a node of ours, by the rule in the header and nothing else. */
static void assert_what_is_left(struct model *m, unsigned node, unsigned long seed)
{
	const struct report_model *r = &m->report[node];
	int64_t left[RIG_ZONES] = {r->cpus[0], r->cpus[1]};

	for (unsigned i = 0; i < PODS; i++)
		give_back(m, node, i, left);
	for (unsigned z = 0; z < RIG_ZONES; z++)
		left[z] = left[z] > RIG_CPUS ? RIG_CPUS : left[z];
	for (unsigned i = 0; i < PODS; i++) {
		const struct guest *g = &m->guest[i];
		bool waits = g->is_there && g->node == node && !g->ended && !r->has[i];

		if (waits && !g->pending && m->rig.now_ms - g->at_ms >= RIG_ASSUME_MS &&
			r->made_ms > g->at_ms)
			waits = false;
		m->waited += waits;
		for (int z = 0; z < RIG_ZONES && waits; z++)
			if (!g->is_hinted || g->zone == z)
				left[z] -= g->cpus;
	}
	for (unsigned z = 0; z < RIG_ZONES; z++) {
		int64_t want = !r->is_there ? -1 : left[z] < 0 ? 0 : left[z];
		int64_t got = rig_cpus(&m->rig, m->node[node], z);

		if (got != want)
			fail_msg("seed %lu: node %u, zone %u: %lld, not %lld", seed, node, z,
				(long long)got, (long long)want);
	}
}

/* Who starts now sees pods that are bound, and their hints; and that some have ended, if not when.
 * Of those that are gone he sees nothing. Of a fingerprint he may not know any
 * more that it was right once, or may find out what was not known: that of some of the pods is. */
static void assert_same_after_a_restart(struct model *m, unsigned long seed)
{
	const struct sched_cluster_args args = {.over_reserve = true, .assume_ms = RIG_ASSUME_MS};
	struct sched_cluster *before = m->rig.c;
	int64_t left[NODES][RIG_ZONES];

	for (unsigned i = 0; i < PODS; i++) {
		if (m->guest[i].is_assumed) {
			sched_cluster_forget(before, m->guest[i].uid);
			m->guest[i].is_there = m->guest[i].is_assumed = false;
		}
		m->guest[i].ended_ms = m->rig.now_ms;
	}
	memset(m->ghost, 0, sizeof m->ghost);
	sched_cluster_expire(before, m->rig.now_ms);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned z = 0; z < RIG_ZONES; z++)
			left[n][z] = rig_cpus(&m->rig, m->node[n], z);
	m->rig.c = sched_cluster_new(&args, &m->rig.names);
	if (random_chance(&m->r, 50))
		all_is_listed_anew(m);
	for (unsigned n = 0; n < NODES; n++) {
		rig_node(&m->rig, m->node[n]);
		if (m->report[n].is_there)
			tell_report(m, m->rig.c, n);
	}
	all_is_listed_anew(m);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned z = 0; z < RIG_ZONES; z++) {
			int64_t now = rig_cpus(&m->rig, m->node[n], z);

			m->sorts[now == left[n][z]]++;
		}
	for (unsigned n = 0; n < OURS; n++)
		assert_what_is_left(m, n, seed);
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
		for (unsigned n = 0; n < OURS; n++)
			assert_what_is_left(m, n, seed);
	}
	assert_same_after_a_restart(m, seed);
}

static unsigned long number_from(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void what_is_left_follows_from_reports_and_pods(void **state)
{
	unsigned long rounds = number_from("ROUNDS", ROUNDS_DEFAULT), from = number_from("SEED", 0);
	const struct sched_cluster_args args = {.over_reserve = true};
	unsigned waited = 0, gave_back = 0, gave_back_gone = 0, sorts[2] = {0};

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
		gave_back += m->gave_back;
		gave_back_gone += m->gave_back_gone;
		sorts[0] += m->sorts[0];
		sorts[1] += m->sorts[1];
		rig_fini(&m->rig);
		free(m);
	}
	print_message("%u times a pod waited, %u times one that had ended gave back, %u times one "
		      "that was gone; after restarts %u zones are as before, %u are not\n",
		waited, gave_back, gave_back_gone, sorts[1], sorts[0]);
	assert_true(waited > rounds && sorts[1] > rounds);
	assert_true(gave_back > rounds && gave_back_gone > rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_follows_from_reports_and_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
