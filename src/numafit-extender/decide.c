/* What kube-scheduler asks: which nodes do, which is best, on which preemption would help. */
#include "extender.h"

#include <codec/api_json.h>
#include <errno.h>
#include <numafit/text.h>
#include <string.h>

static const char being_bound[] = "the pod may be bound to another node already";
static const char avoided[] = "the node refused this workload a short while ago";

void question_fini(struct question *a)
{
	sched_plan_free(a->plan);
	arena_fini(&a->arena);
}

struct json_t *decide_known_pod(const struct extender *x, const char *uid)
{
	struct json_t *pod = unbound_find(x->unbound, uid);

	return pod ? pod : kept_pod(x->kept, uid);
}

int decide_is_named(struct json_t *known, const char *ns, const char *name, struct err *e)
{
	struct api_meta meta;

	api_json_meta(known, &meta);
	if (text_equal(meta.ns, ns) && text_equal(meta.name, name))
		return 0;
	return err_set(
		e, EINVAL, "%s is pod %s/%s, not %s/%s", meta.uid, meta.ns, meta.name, ns, name);
}

int question_of_known(struct question *a, struct extender *x, struct json_t *pod, struct err *e)
{
	arena_init(&a->arena, EXTENDER_POD_BYTES_MAX);
	a->plan = NULL;
	int rc = extender_pod_json_read(pod, &(struct sched_reader){&x->config.names, &a->arena},
		&x->every_node, &a->pod, e);
	if (rc) {
		question_fini(a);
		return err_add(e, rc, "Pod");
	}
	a->plan = sched_plan_new(&x->config.profile, &a->pod.pod, &x->config.names);
	return 0;
}

int question_init(struct question *a, struct extender *x, struct json_t *pod, struct err *e)
{
	int rc = question_of_known(a, x, pod, e);
	struct json_t *known = rc ? NULL : decide_known_pod(x, a->pod.pod.uid);

	if (!known)
		return rc;
	rc = decide_is_named(known, a->pod.pod.ns, a->pod.pod.name, e);
	api_json_free(known);
	if (!rc)
		return 0;
	question_fini(a);
	return err_add(e, rc, "Pod");
}

bool decide_candidate(
	struct extender *x, const char *name, struct sched_node *node, struct sched_candidate *out)
{
	const struct sched_candidate *known = sched_cluster_find(x->cluster, name);

	*node = (struct sched_node){.name = name};
	*out = known ? *known : (struct sched_candidate){.node = node};
	if (x->config.stale == STALE_PASS)
		out->stale = false;
	return known;
}

static bool is_avoided(
	const struct extender *x, const struct question *a, const char *node, int64_t now_ms)
{
	return x->config.avoid && sched_avoid_is(x->avoid, a->pod.workload, node, now_ms);
}

static struct extender_verdict judge_node(
	struct extender *x, const struct question *a, const char *name, int64_t now_ms)
{
	struct sched_candidate c;
	struct sched_node node;
	const char *why = "";

	if (is_avoided(x, a, name, now_ms))
		return (struct extender_verdict){.why = avoided, .unresolvable = true};
	(void)decide_candidate(x, name, &node, &c);
	enum sched_code code = sched_plan_filter(a->plan, &c, &why);
	if (code == SCHED_SUCCESS)
		return (struct extender_verdict){0};
	return (struct extender_verdict){why, code == SCHED_UNRESOLVABLE};
}

/* A pod that counts on a node, as its binding may have happened, is asked about again: its room
 * there is its own, and it goes nowhere else, nor does anybody make room for it. */
static struct extender_verdict judge_for_bound(const char *bound_to, const char *name)
{
	if (text_equal(name, bound_to))
		return (struct extender_verdict){0};
	return (struct extender_verdict){.why = being_bound, .unresolvable = true};
}

uint64_t decide_zones(const struct sched_candidate *c, const struct sched_placement *p)
{
	uint64_t places = 0, zones = 0;

	for (unsigned i = 0; i < p->nr; i++)
		places |= p->place[i].zones;
	for (unsigned z = 0; z < c->node->topology->nr_zones; z++)
		if (places >> z & 1)
			zones |= UINT64_C(1) << c->node->topology->zone_id[z];
	return zones;
}

/* The zones that the pod would take on the node, for the time when it is bound. */
static struct kept_node keep_node(
	struct extender *x, const struct question *a, const char *name, int64_t score)
{
	struct kept_node kept = {.node = kept_node_name(name), .score = (unsigned)score};
	struct sched_placement p;
	struct sched_candidate c;
	struct sched_node node;
	struct arena arena;

	arena_init(&arena, EXTENDER_POD_BYTES_MAX);
	if (decide_candidate(x, name, &node, &c) && sched_plan_place(a->plan, &c, &arena, &p))
		kept.zones = decide_zones(&c, &p);
	arena_fini(&arena);
	return kept;
}

/* Filter */

char *decide_filter(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e)
{
	struct extender_args args;
	struct question a;
	size_t fitting = 0, last = 0;
	int64_t now_ms = loop_wall_ms();

	if (extender_args_read(r->body, r->len, &args, e))
		return NULL;
	if (question_init(&a, x, args.pod, e)) {
		extender_args_fini(&args);
		return NULL;
	}
	auto_free struct extender_verdict *v = xcalloc(args.nr + 1, sizeof *v);
	const char *bound_to = sched_cluster_assumed_on(x->cluster, a.pod.pod.uid);
	for (size_t i = 0; i < args.nr; i++) {
		const char *name = args.node[i].name;

		v[i] = bound_to ? judge_for_bound(bound_to, name) : judge_node(x, &a, name, now_ms);
		fitting += !v[i].why;
		last = v[i].why ? last : i;
	}
	x->measured.nodes_asked[VERB_FILTER] += args.nr;
	x->measured.nodes_refused += args.nr - fitting;
	out->nowhere = args.nr && !fitting;
	(void)text_copy(out->uid, sizeof out->uid, a.pod.pod.uid);
	(void)text_copy(out->ns, sizeof out->ns, a.pod.pod.ns);
	(void)text_copy(out->pod, sizeof out->pod, a.pod.pod.name);
	/* with one node left the scheduler does not ask which is the best */
	struct kept_node kept = {0};
	if (fitting == 1 && !bound_to)
		kept = keep_node(x, &a, args.node[last].name, 0);
	kept_put(x->kept, a.pod.pod.uid, args.pod, &kept, fitting == 1 && !bound_to, now_ms);
	char *text = extender_filter_write(&args, v, &out->len);
	question_fini(&a);
	extender_args_fini(&args);
	return text;
}

/* Prioritize */

/* The lowest score of the KEPT_NODES_MAX best. */
static int64_t worth_keeping(const int64_t *score, size_t nr)
{
	size_t with[SCHED_SCORE_MAX + 1] = {0}, better = 0;
	int64_t s = SCHED_SCORE_MAX;

	for (size_t i = 0; i < nr; i++)
		with[score[i]]++;
	for (; s > 0 && better + with[s] < KEPT_NODES_MAX; s--)
		better += with[s];
	return s;
}

/* Of many that are alike the first ones. */
static void keep_best(struct extender *x, const struct question *a,
	const struct extender_args *args, const int64_t *score)
{
	struct kept_node best[KEPT_NODES_MAX];
	int64_t least = worth_keeping(score, args->nr);
	size_t nr = 0;

	for (unsigned equal = 0; equal < 2; equal++)
		for (size_t i = 0; i < args->nr && nr < KEPT_NODES_MAX; i++)
			if (equal ? score[i] == least : score[i] > least)
				best[nr++] = keep_node(x, a, args->node[i].name, score[i]);
	kept_put(x->kept, a->pod.pod.uid, args->pod, best, nr, loop_wall_ms());
}

char *decide_prioritize(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e)
{
	struct extender_args args;
	struct question a;

	if (extender_args_read(r->body, r->len, &args, e))
		return NULL;
	if (question_init(&a, x, args.pod, e)) {
		extender_args_fini(&args);
		return NULL;
	}
	auto_free struct sched_candidate *c = xcalloc(args.nr + 1, sizeof *c);
	auto_free struct sched_node *node = xcalloc(args.nr + 1, sizeof *node);
	auto_free int64_t *score = xcalloc(args.nr + 1, sizeof *score);
	for (size_t i = 0; i < args.nr; i++)
		(void)decide_candidate(x, args.node[i].name, &node[i], &c[i]);
	sched_plan_score(a.plan, c, args.nr, score);
	keep_best(x, &a, &args, score);
	for (size_t i = 0; i < args.nr; i++)
		score[i] = score[i] * (int64_t)x->config.score_max / SCHED_SCORE_MAX;
	x->measured.nodes_asked[VERB_PRIORITIZE] += args.nr;
	char *text = extender_scores_write(&args, score, &out->len);
	question_fini(&a);
	extender_args_fini(&args);
	return text;
}

/* Preempt: a node that would still not do is none to make room on. */

static bool preemption_would_help(struct extender *x, const struct question *a,
	const struct extender_victims *v, int64_t now_ms)
{
	const struct sched_candidate *known = sched_cluster_find(x->cluster, v->node);

	if (!v->nr || is_avoided(x, a, v->node, now_ms))
		return false;
	if (!known || (known->stale && x->config.stale == STALE_PASS))
		return true;
	return sched_cluster_fits_without(x->cluster, a->plan, v->node, v->uid, v->nr);
}

char *decide_preempt(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e)
{
	struct extender_preempt p;
	struct question a;
	int64_t now_ms = loop_wall_ms();

	if (extender_preempt_read(r->body, r->len, &p, e))
		return NULL;
	if (question_init(&a, x, p.pod, e)) {
		extender_preempt_fini(&p);
		return NULL;
	}
	bool counts = sched_cluster_assumed_on(x->cluster, a.pod.pod.uid); /* it may be bound */
	for (size_t i = 0; i < p.nr; i++)
		p.at[i].dropped = counts || !preemption_would_help(x, &a, &p.at[i], now_ms);
	x->measured.nodes_asked[VERB_PREEMPT] += p.nr;
	char *text = extender_preempt_write(&p, &out->len);
	question_fini(&a);
	extender_preempt_fini(&p);
	return text;
}
