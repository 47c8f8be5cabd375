#include <cluster-sim/world_state.h>

#include <numafit/number.h>
#include <numafit/text.h>
#include <sched/sched_place.h>
#include <stdio.h>
#include <time.h>

enum {
	RETRY_FIRST_MS = 10 * MS_PER_S,
	RETRY_MOST_MS = 300 * MS_PER_S,
	ASSUME_MS = 90 * MS_PER_S,
	EXPIRE_EVERY_MS = 15 * MS_PER_S,
	ADVICE_TTL_S = 120,
	PLACES_BYTES_MAX = 1 << 20
};
#define SAMPLE_MS (DAY_MS / SAMPLES)

/* The queue */

static bool event_is_before(const struct event *a, const struct event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->turn < b->turn;
}

void world_put_event(struct world *w, int64_t at_ms, enum event_kind kind, unsigned what)
{
	struct event_queue *q = &w->queue;
	const struct event e = {at_ms, q->turn++, kind, what};
	size_t i = q->nr;

	(void)vec_push(q);
	for (; i && event_is_before(&e, &q->at[(i - 1) / 2]); i = (i - 1) / 2)
		q->at[i] = q->at[(i - 1) / 2];
	q->at[i] = e;
}

/* The next one; there is one. */
static struct event event_queue_take(struct event_queue *q)
{
	const struct event first = q->at[0], last = q->at[--q->nr];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < q->nr; i = child) {
		if (child + 1 < q->nr && event_is_before(&q->at[child + 1], &q->at[child]))
			child++;
		if (!event_is_before(&q->at[child], &last))
			break;
		q->at[i] = q->at[child];
	}
	q->at[i] = last;
	return first;
}

/* The world */

static void init_node(struct world *w, unsigned number)
{
	const struct cluster_machine *m = w->set->machine;
	struct world_node *n = &w->node[number];

	cluster_node_init(&n->is, m, number);
	n->version = 1;
	n->asked[0].resource = RESOURCE_CPU;
	for (unsigned i = 0; i < NR_POD_MEMORIES; i++)
		n->asked[1 + i].resource = m->memory_name[i];
	n->containers_as_one = (struct sched_container){
		.name = "all", .kind = CONTAINER_APP, .requests = {n->asked, POD_RESOURCES}};
	n->pods_as_one = (struct sched_pod){.ns = "",
		.name = "",
		.uid = "",
		.qos = QOS_BURSTABLE,
		.container = &n->containers_as_one,
		.nr_containers = 1};
	n->seen = (struct sched_node){.name = n->is.name, .pods = &n->pods_as_one, .nr_pods = 1};
}

/* What a node has for pods is the same for all. */
static void set_allocatable(struct world *w)
{
	unsigned nr = w->set->options->nr_nodes;
	const struct amounts all =
		cluster_node_allocatable(&w->node[0].is, w->set->machine, &w->work);

	w->allocatable = xcalloc(all.nr, sizeof *w->allocatable);
	memcpy(w->allocatable, all.at, all.nr * sizeof *all.at);
	for (unsigned i = 0; i < nr; i++)
		w->node[i].seen.allocatable = (struct amounts){w->allocatable, all.nr};
	w->cpus_milli = quantity_milli(*amounts_find(&all, RESOURCE_CPU)) * nr;
}

static void report_world_node(struct world *w, unsigned node)
{
	struct world_node *n = &w->node[node];
	struct sched_report r;

	n->report_due = false;
	cluster_node_report(&n->is, w->set->machine, &w->work, &r);
	sched_cluster_put_report(w->cluster, n->is.name, &r, w->now_ms);
}

static void start_plugin(struct world *w)
{
	static const struct sched_cluster_args args = {
		.over_reserve = true, .foreign = FOREIGN_PODS_NONE, .assume_ms = ASSUME_MS};

	if (!w->strategy->asks_plugin)
		return;
	strategy_profile(w->strategy, &w->profile);
	w->cluster = sched_cluster_new(&args, &w->set->machine->names);
	w->avoid = sched_avoid_new();
	for (unsigned i = 0; i < w->set->options->nr_nodes; i++) {
		struct sched_node empty = w->node[i].seen;

		empty.nr_pods = 0;
		sched_cluster_put_node(w->cluster, &empty);
		report_world_node(w, i);
	}
}

static void world_init(struct world *w)
{
	const struct world_setting *set = w->set;
	unsigned nr = set->options->nr_nodes;

	cluster_work_init(&w->work);
	w->node = xcalloc(nr, sizeof *w->node);
	w->fitting = xcalloc(nr, sizeof *w->fitting);
	w->candidate = xcalloc(nr, sizeof *w->candidate);
	w->score = xcalloc(nr, sizeof *w->score);
	w->answer = xcalloc(set->trace->shapes.nr * nr, sizeof *w->answer);
	if (w->strategy->moves)
		w->no_plan = xcalloc(set->trace->shapes.nr * nr, sizeof *w->no_plan);
	for (unsigned i = 0; i < nr; i++)
		init_node(w, i);
	set_allocatable(w);
	start_plugin(w);
	w->pod = xcalloc(set->trace->pods.nr, sizeof *w->pod);
	for (unsigned i = 0; i < set->trace->pods.nr; i++) {
		const struct trace_pod *p = &set->trace->pods.at[i];

		w->pod[i].is.shape = &set->trace->shapes.at[p->shape];
		w->pod[i].delay_ms = RETRY_FIRST_MS;
		(void)snprintf(w->pod[i].workload, WORKLOAD_MAX, "p%u", i);
		(void)snprintf(w->pod[i].is.uid, POD_UID_MAX, "p%u-0", i);
		world_put_event(w, p->at_ms, EVENT_TRY, i);
	}
	for (unsigned i = 0; i < SAMPLES; i++)
		world_put_event(w, (i + 1) * SAMPLE_MS - 1, EVENT_SAMPLE, i);
}

static void world_fini(struct world *w)
{
	sched_cluster_free(w->cluster);
	sched_avoid_free(w->avoid);
	for (unsigned i = 0; i < w->set->options->nr_nodes; i++) {
		node_moves_fini(&w->node[i].moves);
		cluster_node_fini(&w->node[i].is);
	}
	free(w->node);
	free(w->allocatable);
	free(w->pod);
	free(w->fitting);
	free(w->candidate);
	free(w->score);
	free(w->answer);
	free(w->no_plan);
	vec_fini(&w->queue);
	cluster_work_fini(&w->work);
}

/* Pods */

/* A node has changed: its report follows. */
static void note_change(struct world *w, unsigned node)
{
	struct world_node *n = &w->node[node];

	if (!w->cluster || n->report_due)
		return;
	n->report_due = true;
	world_put_event(w, w->now_ms + w->set->options->report_delay_ms, EVENT_REPORT, node);
}

void world_account_pod(struct world *w, unsigned node, const struct pod_shape *s, bool join)
{
	struct quantity (*put)(struct quantity, struct quantity) =
		join ? quantity_add : quantity_sub;
	struct world_node *n = &w->node[node];
	uint64_t milli = s->cpu_milli * s->nr_containers;
	const struct quantity cpu = {(int64_t)(milli / QUANTITY_MILLIS),
		(uint32_t)(milli % QUANTITY_MILLIS) * QUANTITY_NANOS_OF_MILLI};

	n->asked[0].q = put(n->asked[0].q, cpu);
	for (unsigned i = 0; i < NR_POD_MEMORIES; i++)
		n->asked[1 + i].q = put(
			n->asked[1 + i].q, quantity_of((int64_t)(s->bytes[i] * s->nr_containers)));
	n->version++;
	n->nr_pods += join ? 1 : -1U;
	w->cpus_used_milli += join ? (int64_t)milli : -(int64_t)milli;
}

static void try_later(struct world *w, unsigned pod)
{
	struct world_pod *p = &w->pod[pod];

	world_put_event(w, w->now_ms + p->delay_ms, EVENT_TRY, pod);
	p->delay_ms = p->delay_ms * 2 < RETRY_MOST_MS ? p->delay_ms * 2 : RETRY_MOST_MS;
}

static void world_pod_started(struct world *w, unsigned pod, const struct node_answer *answer)
{
	const struct trace_pod *t = &w->set->trace->pods.at[pod];
	struct world_pod *p = &w->pod[pod];

	w->out->placed++;
	if (w->now_ms > t->at_ms) {
		w->out->waited++;
		w->out->wait_ms += (double)(w->now_ms - t->at_ms);
	}
	world_count_nodes(w, pod, answer);
	if (w->avoid && p->refused)
		sched_avoid_took(w->avoid, p->workload, w->node[p->node].is.name);
	world_account_pod(w, p->node, p->is.shape, true);
	world_put_event(w, w->now_ms + t->life_ms, EVENT_END, pod);
	note_change(w, p->node);
}

/* It has failed, and its controller makes another one. */
static void world_pod_refused(struct world *w, unsigned pod)
{
	struct world_pod *p = &w->pod[pod];

	w->out->refused++;
	w->out->refused_pods += !p->refused;
	p->refused = true;
	if (w->cluster) {
		sched_avoid_refused(
			w->avoid, p->workload, w->node[p->node].is.name, p->is.uid, w->now_ms);
		sched_cluster_remove_pod(w->cluster, p->is.uid);
	}
	(void)snprintf(p->is.uid, POD_UID_MAX, "%s-%u", p->workload, ++p->nr_tries);
	try_later(w, pod);
}

/* The binding, as all see it. */
static void bind_pod(struct world *w, const struct world_pod *p, const struct seen_pod *seen,
	const struct sched_placement *where, struct arena *a)
{
	struct sched_bound b = {.pod = &seen->is, .node = w->node[p->node].is.name, .ours = true};

	b.taken = sched_placement_taken(where, NULL, a, &b.nr_taken);
	if (!b.nr_taken)
		b.taken = NULL;
	sched_cluster_assume(w->cluster, &b, w->now_ms);
	sched_cluster_put_pod(w->cluster, &b, w->now_ms);
}

/* What the annotation would say. False: there is none. */
static bool world_advice_write(const struct world *w, const struct world_pod *p,
	const struct sched_placement *where, struct arena *a, struct advice *h)
{
	struct advice_container *list = arena_array(a, where->nr, sizeof *list);
	const char *node = w->node[p->node].is.name;

	if (!where->nr || !list)
		return false;
	for (unsigned i = 0; i < where->nr; i++) /* zones are listed by dense index */
		list[i] = (struct advice_container){.name = where->place[i].container,
			.nodes = {where->place[i].zones},
			.distance_x100 = where->place[i].distance_x100};
	*h = (struct advice){.version = ADVICE_VERSION,
		.node = node,
		.uid = p->is.uid,
		.generation = sched_cluster_generation(w->cluster, node),
		.at_ms = w->now_ms,
		.ttl_s = ADVICE_TTL_S,
		.mode = ADVICE_PREFER,
		.scope = where->scope,
		.nr_containers = where->nr,
		.container = list};
	return true;
}

bool world_run_pod(
	struct world *w, unsigned pod, const struct advice *hint, struct node_answer *answer)
{
	struct world_pod *p = &w->pod[pod];

	cluster_node_run(
		&w->node[p->node].is, w->set->machine, &p->is, hint, w->now_ms, &w->work, answer);
	if (hint) {
		const enum advice_verdict v = answer->advice;

		w->out->accepted += v == ADVICE_ACCEPTED || v == ADVICE_ACCEPTED_STALE;
		w->out->repaired += v == ADVICE_REPAIRED || v == ADVICE_REPAIRED_CPUS;
		w->out->rejected += advice_is_rejection(v);
	}
	if (answer->admit)
		world_pod_started(w, pod, answer);
	else
		world_pod_refused(w, pod);
	return answer->admit;
}

static void try_to_place_pod(struct world *w, unsigned pod)
{
	struct world_pod *p = &w->pod[pod];
	struct sched_placement where;
	struct node_answer answer;
	struct seen_pod seen;
	struct advice hint;
	struct arena a;

	arena_init(&a, PLACES_BYTES_MAX);
	seen_pod_init(&seen, w, pod);
	int node = world_choose(w, p, &seen, &a, &where);
	if (node < 0) {
		try_later(w, pod);
	} else {
		p->node = (unsigned)node;
		if (w->cluster)
			bind_pod(w, p, &seen, &where, &a);
		bool advised = w->cluster && world_advice_write(w, p, &where, &a, &hint);
		if (!world_make_room(w, pod))
			(void)world_run_pod(w, pod, advised ? &hint : NULL, &answer);
	}
	arena_fini(&a);
}

static void end_pod(struct world *w, unsigned pod)
{
	struct world_pod *p = &w->pod[pod];

	cluster_node_stop(&w->node[p->node].is, p->is.uid);
	node_moves_stop(&w->node[p->node].moves, &w->node[p->node].is, p->is.uid);
	world_account_pod(w, p->node, p->is.shape, false);
	w->nr_ended++;
	if (w->cluster)
		sched_cluster_remove_pod(w->cluster, p->is.uid);
	note_change(w, p->node);
}

static double clock_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / NS_PER_S;
}

/* The events */

static void (*const happen[NR_EVENT_KINDS])(struct world *w, unsigned what) = {
	[EVENT_TRY] = try_to_place_pod,
	[EVENT_END] = end_pod,
	[EVENT_REPORT] = report_world_node,
	[EVENT_SAMPLE] = world_take_sample,
	[EVENT_MOVED] = world_node_moved,
};

static void live_through_day(struct world *w)
{
	int64_t expire_ms = 0;

	while (w->queue.nr && w->queue.at[0].at_ms < DAY_MS && !w->rc) {
		const struct event e = event_queue_take(&w->queue);

		w->now_ms = e.at_ms;
		if (w->cluster && w->now_ms >= expire_ms) {
			sched_cluster_expire(w->cluster, w->now_ms);
			expire_ms = w->now_ms + EXPIRE_EVERY_MS;
		}
		happen[e.kind](w, e.what);
	}
	w->out->arrived = w->set->trace->pods.nr;
	w->out->never = w->out->arrived - w->out->placed;
}

int world_run(const struct world_setting *set, const struct strategy *s, struct outcome *out,
	struct err *e)
{
	double begin = clock_seconds();
	struct world w = {.set = set, .strategy = s, .out = out, .e = e};

	*out = (struct outcome){0};
	world_init(&w);
	live_through_day(&w);
	out->seconds = clock_seconds() - begin;
	int rc = w.rc ? w.rc : world_check(&w, e);
	world_fini(&w);
	return rc;
}

struct shape_facts *shape_facts_new(const struct cluster_trace *t, const struct cluster_machine *m)
{
	struct shape_facts *list = xcalloc(t->shapes.nr, sizeof *list);
	struct cluster_work work;

	cluster_work_init(&work);
	for (size_t i = 0; i < t->shapes.nr; i++) {
		const struct cluster_pod pod = {&t->shapes.at[i], "alone"};
		struct node_answer answer;
		struct cluster_node n = {0};

		cluster_node_init(&n, m, 0);
		cluster_node_run(&n, m, &pod, NULL, 0, &work, &answer);
		for (unsigned c = 0; answer.admit && c < answer.nr; c++)
			list[i].nodes[c] = nodeset_count(answer.on[c]);
		cluster_node_fini(&n);
	}
	cluster_work_fini(&work);
	return list;
}
