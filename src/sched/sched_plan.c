#include <numafit/sched_plan.h>

#include <sched/sched_place.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

/* One of the profile's plugins, made ready for the pod. */
struct used {
	const struct sched_use *use;
	struct nrt_args nrt;
	struct nrt_ask *ask;
};

enum { PLAN_STEPS = 1 << 24, PLAN_PARTS = 256 };

struct sched_plan {
	const struct sched_profile *profile;
	const struct sched_pod *pod;
	const struct resource_table *names;
	struct used used[SCHED_USES_MAX];
	bool about_numa;
	struct budget budget; /* for all nodes */
	struct sched_walk *walk;
	struct {
		VEC(int64_t);
	} raw;
};

/* What a plugin says. Without a member it has no say in that. */
struct sched_plugin {
	const char *name;
	bool wants_numatopology;
	void (*begin)(const struct sched_plan *p, struct used *u);
	enum sched_code (*filter)(const struct sched_plan *p, const struct used *u,
		const struct sched_candidate *c, const char **why);
	bool (*scores)(const struct sched_plan *p); /* NULL: any pod */
	int64_t (*score)(
		const struct sched_plan *p, const struct used *u, const struct sched_candidate *c);
	void (*normalise)(const struct used *u, int64_t *score, size_t nr);
};

/* NodeResourceTopologyMatch */

static void match_begin(const struct sched_plan *p, struct used *u)
{
	u->nrt = u->use->args.nrt;
	u->nrt.discard_reserved = true; /* so that match_node() may say that it is stale */
	u->ask = nrt_ask_new(p->pod, &u->nrt, p->names);
}

static struct sched_node match_node(const struct sched_candidate *c)
{
	struct sched_node node = *c->node;

	node.nr_pods = c->stale;
	return node;
}

static enum sched_code match_filter(const struct sched_plan *p, const struct used *u,
	const struct sched_candidate *c, const char **why)
{
	const struct sched_node node = match_node(c);
	enum nrt_reason reason = nrt_filter(u->ask, &node);

	(void)p;
	*why = nrt_reason_texts[reason];
	return reason == NRT_FITS ? SCHED_SUCCESS : SCHED_UNSCHEDULABLE;
}

static int64_t match_score(
	const struct sched_plan *p, const struct used *u, const struct sched_candidate *c)
{
	const struct sched_node node = match_node(c);

	(void)p;
	return nrt_score(u->ask, &node);
}

/* numa-aware */

/* Its words name policies of nodes; those here are alike on all of them. */
static const char *volcano_reason(const char *why)
{
	static const struct {
		const char *begins, *reason;
	} rows[] = {
		{"numa info is empty", "numa info is empty"},
		{"cpu manager policy", "cpu manager policy isn't static"},
		{"task topology policy", "task topology policy is different from the node's"},
		{"cpu allocatable map", "cpu allocatable map is empty"},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (text_behind(why, rows[i].begins))
			return rows[i].reason;
	return "container cannot be assigned by numa";
}

/* What Volcano calls an error is not one: another node may do. */
static enum sched_code volcano_filter(const struct sched_plan *p, const struct used *u,
	const struct sched_candidate *c, const char **why)
{
	struct volcano_answer answer;

	(void)u;
	volcano_predicate(c->volcano, p->pod, &answer, NULL);
	if (answer.code == SCHED_SUCCESS)
		return SCHED_SUCCESS;
	*why = volcano_reason(answer.why);
	return answer.code == SCHED_ERROR ? SCHED_UNRESOLVABLE : answer.code;
}

static bool volcano_has_a_say(const struct sched_plan *p)
{
	return volcano_scores(p->pod);
}

static int64_t volcano_count(
	const struct sched_plan *p, const struct used *u, const struct sched_candidate *c)
{
	struct volcano_answer answer;

	(void)u;
	volcano_predicate(c->volcano, p->pod, &answer, NULL);
	return nodeset_count(answer.nodes);
}

static void volcano_normalise(const struct used *u, int64_t *score, size_t nr)
{
	(void)u;
	volcano_score(score, nr, 1);
}

/* GenericNodeResources */

static int64_t generic_score(
	const struct sched_plan *p, const struct used *u, const struct sched_candidate *c)
{
	const struct fit_view v = {p->names, c->node, p->pod};

	return generic_raw(&u->use->args.generic, &v, NULL);
}

static void generic_compare(const struct used *u, int64_t *score, size_t nr)
{
	if (!generic_is_final(&u->use->args.generic))
		generic_normalise(score, nr);
}

/* The table */

static const struct sched_plugin plugins[] = {
	{.name = "NodeResourceTopologyMatch",
		.begin = match_begin,
		.filter = match_filter,
		.score = match_score},
	{.name = "numa-aware",
		.wants_numatopology = true,
		.filter = volcano_filter,
		.scores = volcano_has_a_say,
		.score = volcano_count,
		.normalise = volcano_normalise},
	{.name = "GenericNodeResources", .score = generic_score, .normalise = generic_compare},
};
enum { NR_PLUGINS = sizeof plugins / sizeof *plugins };

const struct sched_plugin *sched_plugin_at(unsigned i)
{
	return i < NR_PLUGINS ? &plugins[i] : NULL;
}

const struct sched_plugin *sched_plugin_find(const char *name)
{
	for (unsigned i = 0; i < NR_PLUGINS; i++)
		if (!strcmp(plugins[i].name, name))
			return &plugins[i];
	return NULL;
}

const char *sched_plugin_name(const struct sched_plugin *p)
{
	return p->name;
}

bool sched_plugin_wants_numatopology(const struct sched_plugin *p)
{
	return p->wants_numatopology;
}

/* The plan */

struct sched_plan *sched_plan_new(const struct sched_profile *profile, const struct sched_pod *pod,
	const struct resource_table *names)
{
	struct sched_plan *p = xcalloc(1, sizeof *p);

	p->profile = profile;
	p->pod = pod;
	p->names = names;
	p->about_numa = sched_pod_is_about_numa(pod, names);
	p->budget = budget_of(PLAN_STEPS);
	p->walk = sched_walk_new(pod, names);
	for (unsigned i = 0; i < profile->nr; i++) {
		p->used[i].use = &profile->use[i];
		if (profile->use[i].plugin->begin)
			profile->use[i].plugin->begin(p, &p->used[i]);
	}
	return p;
}

void sched_plan_free(struct sched_plan *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->profile->nr; i++)
		nrt_ask_free(p->used[i].ask);
	sched_walk_free(p->walk);
	vec_fini(&p->raw);
	free(p);
}

/* However many nodes there are, they are looked at within the scheduler's patience, and none of
 * them takes more than a small part of that. */
static enum sched_walk_answer walk_node(
	struct sched_plan *p, const struct sched_topology *t, bool closest)
{
	struct budget part = budget_part(&p->budget, 1, PLAN_PARTS);
	enum sched_walk_answer answer = sched_walk(p->walk, t, closest, &part);

	budget_return(&p->budget, &part);
	return answer;
}

/* What the node would refuse with TopologyAffinityError. */
static enum sched_code restricted_filter(
	struct sched_plan *p, const struct sched_candidate *c, const char **why)
{
	static const struct {
		enum sched_code code;
		const char *why;
	} answers[] = {
		[WALK_FITS] = {SCHED_SUCCESS, ""},
		[WALK_NO_ROOM] = {SCHED_UNSCHEDULABLE, "cannot align within as few NUMA nodes as "
						       "policy restricted asks for"},
		[WALK_NEVER] = {SCHED_UNRESOLVABLE, "can never be aligned as policy restricted "
						    "asks for"},
	};
	const struct sched_topology *t = c->node->topology;

	if (!p->profile->check_restricted || !p->about_numa || c->stale || !t ||
		t->policy != POLICY_RESTRICTED)
		return SCHED_SUCCESS;
	enum sched_walk_answer answer = walk_node(p, t, false);
	*why = answers[answer].why;
	return answers[answer].code;
}

enum sched_code sched_plan_filter(
	struct sched_plan *p, const struct sched_candidate *c, const char **why)
{
	*why = "";
	for (unsigned i = 0; i < p->profile->nr; i++) {
		const struct sched_plugin *plugin = p->profile->use[i].plugin;
		enum sched_code code =
			plugin->filter ? plugin->filter(p, &p->used[i], c, why) : SCHED_SUCCESS;

		if (code != SCHED_SUCCESS)
			return code;
	}
	return restricted_filter(p, c, why);
}

/* A plugin's arithmetic is the released one's, which has no limits of its own for odd amounts;
 * those who take a score from here count by it. */
static int64_t within_scores(int64_t score)
{
	return score < 0 ? 0 : score > SCHED_SCORE_MAX ? SCHED_SCORE_MAX : score;
}

void sched_plan_score(
	struct sched_plan *p, const struct sched_candidate *c, size_t nr, int64_t *score)
{
	int64_t weights = 0;

	while (p->raw.nr < nr)
		(void)vec_push(&p->raw);
	int64_t *raw = p->raw.at;
	memset(score, 0, nr * sizeof *score);
	for (unsigned i = 0; i < p->profile->nr && nr; i++) {
		const struct used *u = &p->used[i];
		const struct sched_plugin *plugin = u->use->plugin;

		if (plugin->scores && !plugin->scores(p))
			continue;
		for (size_t n = 0; n < nr; n++)
			raw[n] = plugin->score(p, u, &c[n]);
		if (plugin->normalise)
			plugin->normalise(u, raw, nr);
		for (size_t n = 0; n < nr; n++)
			score[n] += within_scores(raw[n]) * u->use->weight;
		weights += u->use->weight;
	}
	for (size_t n = 0; n < nr && weights; n++)
		score[n] /= weights;
}

/* Where it would lie */

static bool put_place(const struct sched_plan *p, const struct sched_topology *t,
	unsigned container, struct arena *a, struct sched_place *out)
{
	unsigned nr = sched_walk_amounts(p->walk, container, NULL);
	struct sched_place_amount *amount = arena_array(a, nr, sizeof *amount);

	if (!amount)
		return false;
	*out = (struct sched_place){
		.container = t->scope == SCOPE_POD ? "*" : p->pod->container[container].name,
		.zones = sched_walk_zones(p->walk, container),
		.amount = amount,
		.nr_amounts = sched_walk_amounts(p->walk, container, amount),
	};
	out->distance_x100 = sched_walk_distance(t, out->zones);
	return true;
}

bool sched_plan_place(struct sched_plan *p, const struct sched_candidate *c, struct arena *a,
	struct sched_placement *out)
{
	const struct sched_topology *t = c->node->topology;
	struct sched_placement found = {0};

	/* with policy none a node gives no container NUMA nodes of its own */
	if (!p->about_numa || c->stale || !t || t->policy == POLICY_NONE)
		return false;
	/* those that are closest may leave nothing to the containers behind them */
	if (walk_node(p, t, true) && walk_node(p, t, false))
		return false;
	unsigned nr = t->scope == SCOPE_POD ? 1 : p->pod->nr_containers;
	struct sched_place *place = arena_array(a, nr, sizeof *place);
	if (!place)
		return false;
	for (unsigned i = 0; i < nr; i++)
		if (sched_walk_zones(p->walk, i) && !put_place(p, t, i, a, &place[found.nr++]))
			return false;
	found.scope = t->scope;
	found.place = place;
	*out = found;
	return found.nr > 0;
}
