#ifndef SCHED_CLUSTER_MODEL_H
#define SCHED_CLUSTER_MODEL_H

#include "cluster_rig.h"
#include "core_random.h"

#include <stdlib.h>

/* What the API server has, as the random events of test_sched_cluster_random.c change it, beside
 * clusters that learn of them. */

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

/* What a hint says: a zone, or one of these. */
enum { SAYS_NOTHING = -1, SAYS_TOO_MUCH = -2, SAYS_TOO_LITTLE = -3 };

/* What the API server has. */
struct guest {
	bool is_there, is_assumed;
	char name[NAME_MAX_HERE], uid[UID_MAX_HERE]; /* names come again, uids do not */
	unsigned node;
	int says;
	int64_t cpus, at_ms, ended_ms;
	bool pending, ended;
	/* And what whoever follows it all may believe. */
	int zone; /* or SAYS_NOTHING */
	bool was_seen, named, came;
	unsigned since; /* it was heard of in this order */
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
	unsigned next_life, next_since;
	unsigned waited, elsewhere, forged, gave_back, gave_back_gone, sorts[2];
};

struct left {
	int64_t cpus[RIG_ZONES], gib[RIG_ZONES];
};

/* In every zone as much as it asks for at all, or some of that alone. */
static void say_wrong(struct rig_pod *p, const struct guest *g)
{
	size_t nr = 0;

	for (unsigned z = 0; z < RIG_ZONES && g->says == SAYS_TOO_MUCH; z++)
		for (unsigned i = 0; i < 2; i++)
			p->claims[nr++] =
				(struct sched_taken){z, p->asks[i].resource, p->asks[i].q, "main"};
	if (g->says == SAYS_TOO_LITTLE)
		p->claims[nr++] =
			(struct sched_taken){0, RESOURCE_MEMORY, quantity_of(RIG_GIB), "main"};
	p->bound.taken = p->claims;
	p->bound.nr_taken = nr;
	p->bound.ours = true;
}

static void with_bound(
	struct model *m, struct sched_cluster *c, const struct guest *g, bool seen, bool assume)
{
	struct rig_pod p;

	rig_pod(&p, g->name, m->node[g->node], g->cpus, g->says);
	if (g->says < SAYS_NOTHING)
		say_wrong(&p, g);
	p.pod.uid = g->uid;
	p.bound.seen_bound = seen;
	p.bound.pending = g->pending;
	p.bound.ended = g->ended;
	p.bound.bound_ms = g->at_ms;
	if (assume)
		sched_cluster_assume(c, &p.bound, m->rig.now_ms);
	else
		sched_cluster_put_pod(c, &p.bound, m->rig.now_ms);
}

static void give_report(struct model *m, struct sched_cluster *c, unsigned node)
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
	bool is_advised = random_chance(&m->r, 80);
	g->is_there = true;
	g->is_assumed = is_advised && random_chance(&m->r, 60);
	g->node = random_below(&m->r, NODES);
	g->says = g->zone = is_advised ? (int)random_below(&m->r, RIG_ZONES) : SAYS_NOTHING;
	g->cpus = 1 + random_below(&m->r, 6);
	g->at_ms = m->rig.now_ms;
	g->pending = true;
	g->ended = g->came = false;
	g->was_seen = true;
	g->named = m->report[g->node].has[g - m->guest];
	g->since = m->next_since++;
	m->ghost[g->node][g - m->guest].is_there = false; /* of one name there is one */
	with_bound(m, m->rig.c, g, true, g->is_assumed);
}

/* With the rights to one's own pod, at any time. */
static void a_advice_is_changed(struct model *m)
{
	struct guest *g = any_guest(m);

	if (!g->is_there)
		return;
	g->says = (int)random_below(&m->r, RIG_ZONES - SAYS_TOO_LITTLE) + SAYS_TOO_LITTLE;
	m->forged++;
	if (!g->is_assumed)
		with_bound(m, m->rig.c, g, random_chance(&m->r, 50), false);
}

static void end(const struct model *m, struct guest *g)
{
	if (g->ended)
		return;
	g->ended = true;
	g->pending = false;
	g->ended_ms = m->rig.now_ms;
}

/* A binding that nobody has seen, and that says something else than was assumed, is another one's.
 */
static void is_bound_for_good(struct guest *g)
{
	if (g->is_assumed && g->says != g->zone)
		g->zone = SAYS_NOTHING;
	g->is_assumed = false;
}

static void a_pod_is_heard_of(struct model *m)
{
	struct guest *g = any_guest(m);

	if (!g->is_there)
		return;
	is_bound_for_good(g);
	g->pending = g->pending && random_chance(&m->r, 50);
	if (random_chance(&m->r, 15))
		end(m, g);
	with_bound(m, m->rig.c, g, false, false);
}

static void a_binding_fails(struct model *m)
{
	struct guest *g = any_guest(m);

	sched_cluster_forget(m->rig.c, g->uid);
	if (g->is_assumed)
		g->is_there = g->is_assumed = false;
}

/* Whether a report has come when the end of a pod should have been in it. */
static bool is_reported(const struct model *m, unsigned node, int64_t ended_ms)
{
	return m->rig.now_ms - ended_ms >= RIG_ASSUME_MS && m->report[node].made_ms > ended_ms;
}

/* It lay where whoever has bound it said, and the report means this one. */
static bool gives_back(const struct guest *g)
{
	return g->ended && g->was_seen && g->came && g->zone >= 0;
}

static void leave(struct model *m, struct guest *g)
{
	size_t i = (size_t)(g - m->guest);

	if (g->is_there && gives_back(g) && m->report[g->node].has[i])
		m->ghost[g->node][i] = (struct ghost){
			.is_there = !is_reported(m, g->node, g->ended_ms),
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
	is_bound_for_good(g);
	end(m, g);
	with_bound(m, m->rig.c, g, false, false);
	sched_cluster_remove_pod(m->rig.c, g->uid);
	leave(m, g);
}

static void note_name(struct guest *g, bool named, bool is_news)
{
	g->came |= named && !g->named && is_news;
	g->named = named;
	if (named && !g->was_seen)
		g->zone = SAYS_NOTHING;
}

static void a_node_reports(struct model *m)
{
	unsigned node = random_below(&m->r, NODES);
	struct report_model *r = &m->report[node];
	bool is_first = !r->is_there;

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
	for (unsigned i = 0; i < PODS; i++)
		if (m->guest[i].is_there && m->guest[i].node == node)
			note_name(&m->guest[i], r->has[i], !is_first);
	give_report(m, m->rig.c, node);
}

static void a_report_comes_again(struct model *m)
{
	unsigned node = random_below(&m->r, NODES);

	if (m->report[node].is_there)
		give_report(m, m->rig.c, node);
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
			with_bound(m, c, &m->guest[i], true, false);
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
	a_advice_is_changed, a_advice_is_changed, a_pod_is_heard_of, a_pod_is_heard_of,
	a_pod_is_heard_of, a_binding_fails, a_pod_goes, a_pod_ends_and_goes, a_node_reports,
	a_node_reports, a_report_comes_again, time_goes_by, time_goes_by, all_is_listed_anew,
	a_pod_goes_unseen, a_report_is_deleted};

#endif
