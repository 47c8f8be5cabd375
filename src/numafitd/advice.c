/* What schedulers have left on a pod, in the words of the merge. Whoever can write a pod can write
 * it: it is read, checked, and then only chooses among answers that are equally good. */
#include <daemon-files/config.h>
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

static void log_rejection(const struct pod *pod, const struct advice_found *r)
{
	char name[512], why[2 * sizeof r->why.text];

	if (advice_is_rejection(r->so_far))
		log_line(LOG_INFO, "hint-rejected",
			"namespace=%s pod=%s annotation=%s verdict=%s error=%s", pod->ns,
			log_text(name, sizeof name, pod->name), r->source->key,
			advice_verdict_words[r->so_far], log_text(why, sizeof why, r->why.text));
}

/* CPUs that no container of the pod can have. A hint names CPUs for all containers of a pod: those
 * of its containers that run are none of others. */
static struct cpuset foreign_cpus(const struct daemon *d, const struct pod *pod)
{
	const struct ledger *l = engine_ledger(d->engine);
	struct cpuset had = cpuset_or(ledger_view(l)->held, &ledger_view(l)->left);

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (h->decision.exclusive && text_equal(h->request.pod.uid, pod->uid) &&
			text_equal(h->request.pod.ns, pod->ns) &&
			text_equal(h->request.pod.name, pod->name))
			had = cpuset_minus(had, &h->decision.cpus);
	}
	return cpuset_or(d->settings.reserved_cpus, &had);
}

/* How this node reads the pod's advice; *foreign stays in use. */
static struct advice_reader reader_of(
	const struct daemon *d, const struct pod *pod, struct cpuset *foreign)
{
	*foreign = foreign_cpus(d, pod);
	return (struct advice_reader){
		.settings = &d->settings,
		.order = {d->advice.format, d->advice.nr},
		.facts = {.node = d->node_name,
			.uid = pod->uid,
			.now_ms = loop_wall_ms(),
			.skew_ms = (int64_t)d->settings.advice_skew_ms,
			.generation = d->recorder.generation,
			.t = &d->topo,
			.foreign = foreign},
	};
}

static bool advice_is_on(const struct daemon *d)
{
	return d->settings.mode == MODE_MANAGE && d->settings.advice_mode != ADVICE_OFF;
}

/* Whether the pod is to have a policy of its own, in mode manage. */
static void take_pod_policy(
	const struct daemon *d, const struct advice_reader *r, struct pod *pod, struct arena *a)
{
	pod->has_policy =
		d->settings.mode == MODE_MANAGE && advice_pod_policy(r, pod, a, &pod->policy);
}

void advice_of_container(struct daemon *d, struct request *req, struct arena *a)
{
	struct advice_found found;
	struct arena scratch;
	struct cpuset foreign;

	if (!req->pod.nr_annotations)
		return;
	const struct advice_reader r = reader_of(d, &req->pod, &foreign);
	arena_init(&scratch, ADVICE_ARENA_BYTES);
	if (advice_is_on(d)) {
		advice_look(&r, &req->pod, &scratch, &found);
		req->ask.advice = advice_ask_for(&r, &found, req->ask.name, a);
		/* else held for it, or handed on to it: its advice has been looked at, and may be
		 * too old by now */
		if (!ledger_find_named(engine_ledger(d->engine), req->pod.uid, req->ask.name,
			    req->container_id))
			log_rejection(&req->pod, &found);
	}
	take_pod_policy(d, &r, &req->pod, &scratch);
	arena_fini(&scratch);
}

void advice_of_pod(struct daemon *d, struct pod *pod, struct arena *a)
{
	struct ask *list = arena_array(a, pod->nr, sizeof *list);
	struct advice_found found = {0};
	struct arena scratch;
	struct cpuset foreign;

	if (!pod->nr_annotations || !list)
		return;
	const struct advice_reader r = reader_of(d, pod, &foreign);
	arena_init(&scratch, ADVICE_ARENA_BYTES);
	if (advice_is_on(d))
		advice_look(&r, pod, &scratch, &found);
	log_rejection(pod, &found);
	take_pod_policy(d, &r, pod, &scratch);
	for (size_t i = 0; i < pod->nr; i++) {
		list[i] = pod->container[i];
		list[i].advice = advice_ask_for(&r, &found, list[i].name, a);
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
	d->measured.counters.advice_repaired += v == ADVICE_REPAIRED || v == ADVICE_REPAIRED_CPUS;
	d->measured.counters.advice_rejected += advice_is_rejection(v);
}
