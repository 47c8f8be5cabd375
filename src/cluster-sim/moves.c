#include <cluster-sim/moves.h>

#include <assert.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>

enum { MS_PER_MINUTE = 60 * MS_PER_S, PERCENT = 100 };
#define GI (UINT64_C(1) << 30)

void move_limits_init(struct move_limits *l)
{
	*l = (struct move_limits){
		.moves = 3,
		.per_hour = 12,
		.bytes_per_minute = 8 * GI,
		.interval_ms = 10 * MS_PER_MINUTE,
		.movable_percent = PERCENT,
		.bytes_per_s = 1000000000,
		.trials = 500,
	};
}

bool pod_is_movable(const struct move_limits *l, const char *uid)
{
	enum { HALF_BITS = 32 };
	uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */

	for (; *uid; uid++)
		hash = (hash ^ (unsigned char)*uid) * UINT64_C(0x100000001B3);
	return (hash >> HALF_BITS) % PERCENT < l->movable_percent;
}

/* The limits */

/* What may be moved now. */
struct allowance {
	const struct move_limits *limits;
	const struct topo *topo;
	const struct node_moves *moves;
	int64_t now_ms;
	unsigned nr;
	uint64_t bytes;
};

/* What no limit asks for any more. */
static void forget_old_moves(struct node_moves *v, const struct move_limits *l, int64_t now_ms)
{
	const int64_t longest = l->interval_ms > MS_PER_HOUR ? l->interval_ms : MS_PER_HOUR;

	while (v->log.nr && v->log.at[0].at_ms <= now_ms - longest)
		vec_remove(&v->log, 0);
}

static struct allowance allowance_of(const struct node_moves *v, const struct move_limits *l,
	const struct topo *t, int64_t now_ms)
{
	struct allowance a = {l, t, v, now_ms, l->per_hour, l->bytes_per_minute};

	for (size_t i = 0; i < v->log.nr; i++) {
		const struct move_note *note = &v->log.at[i];

		a.nr -= note->at_ms > now_ms - MS_PER_HOUR;
		if (note->at_ms > now_ms - MS_PER_MINUTE)
			a.bytes -= note->bytes;
	}
	a.nr = a.nr < l->moves ? a.nr : l->moves;
	return a;
}

static bool was_just_moved(const struct allowance *a, const struct request *r)
{
	for (size_t i = 0; i < a->moves->log.nr; i++) {
		const struct move_note *note = &a->moves->log.at[i];

		if (note->at_ms > a->now_ms - a->limits->interval_ms &&
			strcmp(note->uid, r->pod.uid) == 0 &&
			strcmp(note->container, r->ask.name) == 0)
			return true;
	}
	return false;
}

/* One that is on several NUMA nodes might be sent to one of these, and cannot hold CPUs twice. */
static bool is_allowed_to_move(void *ctx, const struct holding *h)
{
	const struct allowance *a = ctx;

	return pod_is_movable(a->limits, h->request.pod.uid) &&
	       decision_booked_bytes(&h->decision) <= a->bytes && !was_just_moved(a, &h->request) &&
	       nodeset_count(decision_nodes_used(a->topo, &h->decision)) == 1;
}

/* The plan */

/* What the node's ledger has, for defrag_plan(): of containers that run, and do not wait to come
 * as here. */
static struct engine *engine_of_node(const struct cluster_node *n, const struct cluster_machine *m)
{
	const struct engine_hooks none = {0}; /* what is only entered needs no hook */
	struct engine *g = engine_new(&m->topo, &m->settings, &none);
	struct record r = {
		.op = RECORD_GRANT, .cause = "plan", .pool = ledger_view(n->ledger)->pool};
	int rc = 0;

	for (size_t i = 0; i < ledger_count(n->ledger) && !rc; i++) {
		const struct holding *h = ledger_at(n->ledger, i);
		struct decision d = ledger_decision_of(n->ledger, h);

		d.source = SOURCE_DECIDED;
		r.container_id = h->request.container_id;
		r.request = &h->request;
		r.decision = &d;
		rc = engine_replay(g, &r, NULL);
	}
	assert(!rc);
	return g;
}

static void note_move(struct node_moves *v, const struct node_move *m)
{
	struct move_note *note = vec_push(&v->log);

	*note = (struct move_note){.at_ms = m->at_ms, .bytes = m->bytes};
	memcpy(note->uid, m->uid, sizeof note->uid);
	memcpy(note->container, m->container, sizeof note->container);
}

static void keep_plan(struct node_moves *v, const struct defrag_plan *plan,
	const struct move_limits *l, int64_t now_ms)
{
	v->plan = xcalloc(plan->nr, sizeof *v->plan);
	v->nr = plan->nr;
	v->next = 0;
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *from = &plan->move[i];
		struct node_move *to = &v->plan[i];
		double ms = (double)from->cost.bytes * MS_PER_S / (double)l->bytes_per_s;

		(void)text_copy(to->uid, sizeof to->uid, from->from->request.pod.uid);
		(void)text_copy(to->container, sizeof to->container, from->from->request.ask.name);
		to->to = from->to;
		to->bytes = from->cost.bytes;
		to->at_ms = now_ms;
		to->lasts_ms = (int64_t)ms + 1;
		now_ms += to->lasts_ms;
		note_move(v, to);
	}
}

bool node_moves_plan(struct node_moves *v, const struct cluster_node *n,
	const struct cluster_machine *m, const struct move_limits *l, const struct cluster_pod *pod,
	int64_t now_ms)
{
	struct asked_pod asked = {0};
	struct defrag_plan plan;
	struct err e = {0};

	assert(!v->plan);
	forget_old_moves(v, l, now_ms);
	struct allowance left = allowance_of(v, l, &m->topo, now_ms);
	if (!left.nr)
		return false;
	asked_pod_init(&asked, pod);
	struct engine *g = engine_of_node(n, m);
	const struct defrag_question q = {.engine = g,
		.topo = &m->topo,
		.settings = &m->settings,
		.pod = &asked.is,
		.moves = left.nr,
		.trials = l->trials,
		.may_move = is_allowed_to_move,
		.ctx = &left};
	int rc = defrag_plan(&q, &plan, &e);
	assert(!rc);
	bool found = plan.found && plan.nr && plan.cost.bytes <= left.bytes;
	if (found)
		keep_plan(v, &plan, l, now_ms);
	engine_free(g);
	return found;
}

/* The moves */

/* While a container moves, its new place is that of a pod of this name. */
enum { ARRIVING_UID_MAX = POD_UID_MAX + 4 };

static void name_arriving(char name[ARRIVING_UID_MAX], const char *uid)
{
	(void)snprintf(name, ARRIVING_UID_MAX, "to:%s", uid);
}

static const struct holding *find_arriving(const struct ledger *l, const struct node_move *m)
{
	char uid[ARRIVING_UID_MAX];

	name_arriving(uid, m->uid);
	return ledger_find_waiting(l, uid, m->container);
}

/* Moves that have not begun are none. */
static void plan_is_over(struct node_moves *v)
{
	if (v->plan)
		v->log.nr -= v->nr - v->next;
	free(v->plan);
	v->plan = NULL;
}

void node_moves_fini(struct node_moves *v)
{
	plan_is_over(v);
	vec_fini(&v->log);
}

/* Whether the ledger has room for the request with that decision beside all that it holds now; then
 * it is held. */
static bool hold_beside(struct cluster_node *n, const struct request *req, const struct decision *d)
{
	const struct cpuset pool = ledger_pool_without(n->ledger, &d->cpus);

	if (ledger_may_hold(n->ledger, req, d, NULL) || ledger_set_pool(n->ledger, &pool, NULL))
		return false;
	ledger_hold(n->ledger, req, d);
	n->generation++;
	return true;
}

const struct node_move *node_moves_begin(struct node_moves *v, struct cluster_node *n)
{
	struct node_move *m = v->plan && v->next < v->nr ? &v->plan[v->next] : NULL;
	const struct holding *h = m ? ledger_find_waiting(n->ledger, m->uid, m->container) : NULL;
	char uid[ARRIVING_UID_MAX];

	if (h) {
		struct request arriving = h->request;

		name_arriving(uid, m->uid);
		arriving.pod.uid = uid;
		m->to.source = h->decision.source;
		if (hold_beside(n, &arriving, &m->to)) {
			v->next++;
			return m;
		}
	}
	plan_is_over(v);
	return NULL;
}

/* Out of the ledger, and its CPUs are idle. */
static void let_go(struct cluster_node *n, const struct holding *h)
{
	auto_free char *id = xstrdup(h->request.container_id);

	(void)ledger_release(n->ledger, id);
}

void node_moves_end(struct node_moves *v, struct cluster_node *n)
{
	const struct node_move *m = &v->plan[v->next - 1];
	const struct holding *old = ledger_find_waiting(n->ledger, m->uid, m->container);
	const struct holding *arriving = find_arriving(n->ledger, m);

	if (!old || !arriving)
		return;
	const struct cpuset released = ledger_released_by(n->ledger, old);
	const struct cpuset pool = ledger_pool_grown(n->ledger, &released);
	struct request req = old->request; /* the entry's strings go with it */
	const char **text[HOLDING_STRINGS];

	holding_strings(&req, text);
	for (unsigned i = 0; i < HOLDING_STRINGS; i++)
		*text[i] = *text[i] ? xstrdup(*text[i]) : NULL;
	let_go(n, arriving);
	let_go(n, old);
	ledger_hold(n->ledger, &req, &m->to);
	int rc = ledger_set_pool(n->ledger, &pool, NULL);
	assert(!rc);
	n->generation++;
	for (unsigned i = 0; i < HOLDING_STRINGS; i++)
		free((void *)(uintptr_t)*text[i]);
}

void node_moves_stop(struct node_moves *v, struct cluster_node *n, const char *uid)
{
	char arriving[ARRIVING_UID_MAX];

	if (!v->plan)
		return;
	name_arriving(arriving, uid);
	if (ledger_find_of_pod(n->ledger, arriving))
		cluster_node_stop(n, arriving);
}
