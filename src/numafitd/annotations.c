/* What pods have of NUMA nodes, by the ledger -> the annotation on each of them. */
#include "cluster_state.h"
#include "decision_log.h"
#include "services.h"

#include <apiserver/observed_json.h>
#include <io/log.h>
#include <numafit/text.h>

/* Containers of a pod come one after the other, and so do several pods: all of that is one look, as
 * often as KAI's exporter looks. */
enum { SETTLE_MS = 1000, OBSERVED_BYTES = 4 << 20 };

static const char advice[] =
	"add deploy/components/observed-placement, or set observedPlacement: off";

/* The value that the pod should have; NULL: none. False: it cannot be said now, as its devices are
 * not known yet: without them KAI would count them as free. */
static bool annotations_observe(
	const struct cluster *c, const struct known_pod *known, struct observed *o, char **value)
{
	struct arena a;
	int rc = 0;

	*value = NULL;
	if (cpuset_empty(&o->cpus))
		return true;
	arena_init(&a, OBSERVED_BYTES);
	if (known->nr_resources)
		rc = services_observe(c->d, o, &a);
	if (!rc)
		*value = observed_json_write(o);
	arena_fini(&a);
	return !rc;
}

static void annotate_pod(struct cluster *c, struct observed *o)
{
	const struct known_pod *known = api_pods_find(c->d->api_pods, o->pod->uid);
	auto_free char *value = NULL;

	if (!known || known->ended || !text_equal(known->pod.ns, o->pod->ns) ||
		!text_equal(known->pod.name, o->pod->name))
		return;
	if (annotations_observe(c, known, o, &value))
		annotator_want(c->annotator,
			&(struct annotator_pod){
				.uid = o->pod->uid,
				.ns = o->pod->ns,
				.name = o->pod->name,
				.is_mirror = known->owner == POD_OWNER_NODE,
				.on_pod = pod_annotation(&known->pod, OBSERVED_ANNOTATION),
			},
			value);
	else
		annotator_keep(c->annotator, o->pod->uid);
}

static void look_at_pods(void *ctx)
{
	static struct observed o; /* of the loop's thread, and large */
	struct cluster *c = ctx;
	size_t i = 0;

	c->will_observe = false;
	annotator_begin(c->annotator);
	while (observed_next(&o, engine_ledger(c->d->engine), &i))
		annotate_pod(c, &o);
	annotator_end(c->annotator);
}

void annotations_changed(struct cluster *c)
{
	if (!c->annotator || c->will_observe)
		return;
	c->will_observe = true;
	loop_timer_set(c->observe, SETTLE_MS);
}

void annotations_start(struct cluster *c)
{
	const struct settings *s = &c->d->settings;

	if (s->observed_placement != OBSERVED_KAI || s->mode != MODE_MANAGE || !c->d->api_pods)
		return;
	c->observe = loop_timer_new(c->d->loop, look_at_pods, c);
	c->annotator =
		annotator_new(c->d->loop, c->api, &(struct annotator_options){.advice = advice},
			&(struct annotator_handler){c, log_event});
	annotations_changed(c);
}

void annotations_stop(struct cluster *c)
{
	annotator_close(steal(c->annotator));
	if (c->observe)
		loop_timer_close(steal(c->observe));
	c->will_observe = false;
}

void annotations_settings_changed(struct cluster *c)
{
	if (c->d->settings.observed_placement == OBSERVED_OFF)
		annotations_stop(c);
	else if (!c->annotator)
		annotations_start(c);
}
