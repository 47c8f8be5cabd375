/* What schedulers have left on a pod, in the words of the merge. Whoever can write a pod can write
 * it: it is read, checked, and then only chooses among answers that are equally good. */
#include "config.h"
#include "daemon.h"

#include <codec/advice.h>
#include <io/log.h>
#include <numafit/text.h>

#include <stdlib.h>
#include <string.h>

static int read_order(struct daemon *d, struct err *e)
{
	int nr = advice_order_parse(d->settings.advice_order, d->advice.format, e);

	if (nr < 0)
		return nr;
	d->advice.nr = (unsigned)nr;
	return 0;
}

int advice_start(struct daemon *d, struct err *e)
{
	if (*d->settings.node_name)
		(void)text_copy(d->node_name, sizeof d->node_name, d->settings.node_name);
	else
		config_usual_name(d->node_name);
	return read_order(d, e);
}

void advice_settings_changed(struct daemon *d)
{
	(void)read_order(d, NULL); /* settings_check() has read it before */
}

/* A pod's advice, as far as it can be judged before the merge. */
struct reading {
	bool has;
	enum advice_verdict so_far;
	enum advice_mode mode;
	struct advice advice;
	const struct advice_source *source;
	struct err why; /* of a rejection */
};

static void log_rejection(const struct pod *pod, const struct reading *r)
{
	char name[512], why[2 * sizeof r->why.text];

	if (advice_is_rejection(r->so_far))
		log_line(LOG_INFO, "hint-rejected",
			"namespace=%s pod=%s annotation=%s verdict=%s error=%s", pod->ns,
			log_text(name, sizeof name, pod->name), r->source->key,
			advice_verdict_words[r->so_far], log_text(why, sizeof why, r->why.text));
}

/* CPUs that no newcomer can have. */
static struct cpuset foreign_cpus(const struct daemon *d)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct cpuset had = cpuset_or(ledger_view(l)->held, &ledger_view(l)->left);

	return cpuset_or(d->settings.reserved_cpus, &had);
}

static struct reading read_advice(const struct daemon *d, const struct pod *pod, struct arena *a)
{
	const struct advice_order order = {d->advice.format, d->advice.nr};
	const struct advice_context c = {&d->topo, a};
	const struct cpuset foreign = foreign_cpus(d);
	const struct advice_facts facts = {
		.node = d->node_name,
		.uid = pod->uid,
		.now_ms = loop_wall_ms(),
		.skew_ms = (int64_t)d->settings.advice_skew_ms,
		.generation = d->recorder.generation,
		.t = &d->topo,
		.foreign = &foreign,
	};
	struct reading r = {.mode = d->settings.advice_mode};
	int rc = advice_find(pod, ADVICE_ABOUT_NODES, &order, &c, &r.source, &r.advice, &r.why);

	r.has = rc != 0;
	if (rc > 0) {
		r.so_far = advice_check(&r.advice, &facts, &r.why);
		r.mode = advice_mode_of(d->settings.advice_mode, r.advice.mode);
	} else if (rc < 0) {
		r.so_far = advice_read_verdict(rc);
	}
	return r;
}

static bool advice_is_on(const struct daemon *d)
{
	return d->settings.mode == MODE_MANAGE && d->settings.advice_mode != ADVICE_OFF;
}

/* What it says of that container, from *a; NULL: nothing. */
static const struct advice_ask *advice_ask_of(
	const struct daemon *d, const struct reading *r, const char *container, struct arena *a)
{
	bool whole = d->settings.topology_scope == SCOPE_POD;
	const struct advice_container *c = NULL;
	struct advice_ask *ask;

	if (!r->has || r->so_far == ADVICE_NONE)
		return NULL;
	bool read = r->advice.nr_containers > 0;
	if (read)
		c = whole ? advice_for_pod(&r->advice) : advice_for(&r->advice, container);
	if (read && !c && !whole) /* it speaks of others */
		return NULL;
	ask = arena_alloc(a, sizeof *ask);
	if (!ask)
		return NULL;
	*ask = (struct advice_ask){
		.so_far = r->so_far, .mode = r->mode, .repair = d->settings.advice_repair};
	if (c)
		ask->asked = c->nodes;
	else if (read && !advice_is_rejection(r->so_far))
		ask->so_far = ADVICE_REJECTED_POLICY; /* its containers go apart */
	return ask;
}

/* False: it asks for none, or may not. */
static bool read_pod_policy(const struct daemon *d, const struct pod *pod, struct arena *a,
	enum topology_policy *policy)
{
	const struct advice_order order = {d->advice.format, d->advice.nr};
	const struct advice_context c = {&d->topo, a};
	const struct advice_source *source;
	struct advice advice;
	struct err e;

	if (d->settings.mode != MODE_MANAGE || !d->settings.advice_policy ||
		advice_find(pod, ADVICE_ABOUT_POLICY, &order, &c, &source, &advice, &e) <= 0 ||
		!advice.has_policy)
		return false;
	*policy = advice_policy_of(d->settings.topology_policy, advice.policy);
	return *policy != d->settings.topology_policy;
}

void advice_of_container(struct daemon *d, struct request *req, struct arena *a)
{
	struct arena scratch;

	if (!req->pod.nr_annotations)
		return;
	arena_init(&scratch, ADVICE_ARENA_BYTES);
	if (advice_is_on(d)) {
		struct reading r = read_advice(d, &req->pod, &scratch);

		req->ask.advice = advice_ask_of(d, &r, req->ask.name, a);
		/* else held for it, or handed on to it: its advice has been looked at, and may be
		 * too old by now */
		if (!ledger_find_named(engine_ledger(d->engine), req->pod.uid, req->ask.name,
			    req->container_id))
			log_rejection(&req->pod, &r);
	}
	req->pod.has_policy = read_pod_policy(d, &req->pod, &scratch, &req->pod.policy);
	arena_fini(&scratch);
}

void advice_of_pod(struct daemon *d, struct pod *pod, struct arena *a)
{
	struct ask *list = arena_array(a, pod->nr, sizeof *list);
	struct reading r = {0};
	struct arena scratch;

	if (!pod->nr_annotations || !list)
		return;
	arena_init(&scratch, ADVICE_ARENA_BYTES);
	if (advice_is_on(d))
		r = read_advice(d, pod, &scratch);
	log_rejection(pod, &r);
	pod->has_policy = read_pod_policy(d, pod, &scratch, &pod->policy);
	for (size_t i = 0; i < pod->nr; i++) {
		list[i] = pod->container[i];
		list[i].advice = advice_ask_of(d, &r, list[i].name, a);
	}
	pod->container = list;
	arena_fini(&scratch);
}

void advice_count(struct daemon *d, const struct decision *dec)
{
	enum advice_verdict v = dec->advice.verdict;

	if (dec->source == SOURCE_INHERITED) /* counted when its predecessor came */
		return;
	d->measured.metrics.advice[v] += dec->advice.looked_at;
	d->measured.counters.advice_accepted += v == ADVICE_ACCEPTED || v == ADVICE_ACCEPTED_STALE;
	d->measured.counters.advice_repaired += v == ADVICE_REPAIRED;
	d->measured.counters.advice_rejected += advice_is_rejection(v);
}
