/* Finds the scheduler's hint among a pod's annotations, whichever scheduler has written the
 * hint. */
#include <codec/advice.h>

#include <codec/advice_parts.h>
#include <errno.h>
#include <numafit/settings.h>

static const struct advice_source sources[] = {
	ADVICE_OWN_SOURCE,
	{ADVICE_POLICY_KEY, ADVICE_NUMAFIT, ADVICE_ABOUT_POLICY, ADVICE_TEXT, advice_policy_read},
	{"scheduling.koordinator.sh/resource-status", ADVICE_KOORDINATOR, ADVICE_ABOUT_NODES,
		ADVICE_OBJECT, advice_koordinator_status_read},
	{"scheduling.koordinator.sh/resource-spec", ADVICE_KOORDINATOR, ADVICE_ABOUT_CPUS,
		ADVICE_OBJECT, advice_koordinator_spec_read},
	{"katalyst.kubewharf.io/numa_bind_result", ADVICE_KATALYST, ADVICE_ABOUT_NODES, ADVICE_TEXT,
		advice_katalyst_read},
	{"volcano.sh/topology-decision", ADVICE_VOLCANO, ADVICE_ABOUT_NODES, ADVICE_OBJECT,
		advice_volcano_read},
	{"volcano.sh/numa-topology-policy", ADVICE_VOLCANO, ADVICE_ABOUT_POLICY, ADVICE_TEXT,
		advice_policy_read},
	{"topology.crane.io/topology-result", ADVICE_CRANE, ADVICE_ABOUT_NODES, ADVICE_LIST,
		advice_crane_read},
	{"godel.bytedance.com/micro-topology", ADVICE_GODEL, ADVICE_ABOUT_NODES, ADVICE_TEXT,
		advice_godel_read},
};
enum { NR_SOURCES = sizeof sources / sizeof *sources };

const struct advice_source *advice_source_of(const char *key)
{
	for (unsigned i = 0; i < NR_SOURCES; i++)
		if (text_equal(sources[i].key, key))
			return &sources[i];
	return NULL;
}

enum advice_verdict advice_read_verdict(int rc)
{
	if (!rc)
		return ADVICE_NONE;
	return rc == -ENOTSUP ? ADVICE_REJECTED_VERSION : ADVICE_REJECTED_FORMAT;
}

int advice_find(const struct pod *pod, enum advice_about about, const struct advice_order *order,
	const struct advice_context *c, const struct advice_source **source, struct advice *out,
	struct err *e)
{
	unsigned nr = order->format ? order->nr : NR_ADVICE_FORMATS;

	for (unsigned i = 0; i < nr * NR_SOURCES; i++) {
		unsigned place = i / NR_SOURCES;
		enum advice_format format =
			order->format ? order->format[place] : (enum advice_format)place;
		const struct advice_source *s = &sources[i % NR_SOURCES];
		const char *text = s->format == format && s->about == about
					   ? pod_annotation(pod, s->key)
					   : NULL;
		struct advice h = {0};
		int rc = text ? advice_read(s, text, c, &h, e) : 0;

		if (!rc && !h.nr_containers && !h.has_policy && !h.cpus_required &&
			!h.cpus_preferred && !h.apart)
			continue; /* it is not there, or says nothing */
		if (source)
			*source = s;
		if (rc)
			return rc;
		*out = h;
		return 1;
	}
	return 0;
}

void advice_look(const struct advice_reader *r, const struct pod *pod, struct arena *a,
	struct advice_found *out)
{
	const struct advice_context c = {r->facts.t, a};

	*out = (struct advice_found){.mode = r->settings->advice_mode};
	int rc = advice_find(
		pod, ADVICE_ABOUT_NODES, &r->order, &c, &out->source, &out->advice, &out->why);
	out->has = rc != 0;
	if (rc > 0) {
		out->so_far = advice_check(&out->advice, &r->facts, &out->why);
		out->mode = advice_mode_of(r->settings->advice_mode, out->advice.mode);
	} else if (rc < 0) {
		out->so_far = advice_read_verdict(rc);
	}
}

const struct advice_ask *advice_ask_for(const struct advice_reader *r, const struct advice_found *f,
	const char *container, struct arena *a)
{
	bool whole = r->settings->topology_scope == SCOPE_POD;
	const struct advice_container *c = NULL;
	struct advice_ask *ask;

	if (!f->has || f->so_far == ADVICE_NONE)
		return NULL;
	bool read = f->advice.nr_containers > 0;
	if (read)
		c = whole ? advice_for_pod(&f->advice) : advice_for(&f->advice, container);
	if (read && !c && !whole) /* it speaks of others */
		return NULL;
	ask = arena_alloc(a, sizeof *ask);
	if (!ask)
		return NULL;
	*ask = (struct advice_ask){
		.so_far = f->so_far, .mode = f->mode, .repair = r->settings->advice_repair};
	if (f->advice.cpus)
		ask->cpus = *f->advice.cpus;
	if (c)
		ask->asked = c->nodes;
	else if (read && !advice_is_rejection(f->so_far))
		ask->so_far = ADVICE_REJECTED_POLICY; /* its containers go apart */
	return ask;
}

bool advice_pod_policy(const struct advice_reader *r, const struct pod *pod, struct arena *a,
	enum topology_policy *policy)
{
	const enum topology_policy of_node = r->settings->topology_policy;
	const struct advice_context c = {r->facts.t, a};
	const struct advice_source *source;
	struct advice advice;
	struct err e;

	if (!r->settings->advice_policy ||
		advice_find(pod, ADVICE_ABOUT_POLICY, &r->order, &c, &source, &advice, &e) <= 0 ||
		!advice.has_policy)
		return false;
	*policy = advice_policy_of(of_node, advice.policy);
	return *policy != of_node;
}
