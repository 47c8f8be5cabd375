#include <codec/hints.h>

#include <codec/hint_json.h>
#include <codec/hint_parts.h>
#include <errno.h>
#include <string.h>

static const struct hint_source sources[] = {
	{HINT_KEY, SCHED_HINT_NUMAFIT, HINT_ABOUT_NODES, hint_json_read},
	{HINT_POLICY_KEY, SCHED_HINT_NUMAFIT, HINT_ABOUT_POLICY, hint_policy_read},
	{"scheduling.koordinator.sh/resource-status", SCHED_HINT_KOORDINATOR, HINT_ABOUT_NODES,
		hint_koordinator_status_read},
	{"scheduling.koordinator.sh/resource-spec", SCHED_HINT_KOORDINATOR, HINT_ABOUT_CPUS,
		hint_koordinator_spec_read},
	{"katalyst.kubewharf.io/numa_bind_result", SCHED_HINT_KATALYST, HINT_ABOUT_NODES,
		hint_katalyst_read},
	{"volcano.sh/topology-decision", SCHED_HINT_VOLCANO, HINT_ABOUT_NODES, hint_volcano_read},
	{"volcano.sh/numa-topology-policy", SCHED_HINT_VOLCANO, HINT_ABOUT_POLICY,
		hint_policy_read},
	{"topology.crane.io/topology-result", SCHED_HINT_CRANE, HINT_ABOUT_NODES, hint_crane_read},
	{"godel.bytedance.com/micro-topology", SCHED_HINT_GODEL, HINT_ABOUT_NODES, hint_godel_read},
};
enum { NR_SOURCES = sizeof sources / sizeof *sources };

const struct hint_source *hint_source_at(unsigned i)
{
	return i < NR_SOURCES ? &sources[i] : NULL;
}

const struct hint_source *hint_source_of(const char *key)
{
	for (unsigned i = 0; i < NR_SOURCES; i++)
		if (text_equal(sources[i].key, key))
			return &sources[i];
	return NULL;
}

/* Whether brackets nest deeper than any form needs, before a parser recurses into them. In text
 * that is not JSON there are none that matter. */
static bool nests_too_deep(const char *text)
{
	unsigned depth = 0;
	bool quoted = false;

	for (; *text; text++) {
		if (quoted && *text == '\\' && text[1])
			text++;
		else if (*text == '"')
			quoted = !quoted;
		else if (!quoted && (*text == '{' || *text == '['))
			depth++;
		else if (!quoted && depth && (*text == '}' || *text == ']'))
			depth--;
		if (depth > HINT_DEPTH_MAX)
			return true;
	}
	return false;
}

int hint_read(const struct hint_source *source, const char *text, const struct hint_context *c,
	struct sched_hint *out, struct err *e)
{
	struct sched_hint h = {.format = source->format};

	if (strnlen(text, HINT_TEXT_MAX + 1) > HINT_TEXT_MAX)
		return err_set(e, E2BIG, "is longer than %d bytes", HINT_TEXT_MAX);
	if (nests_too_deep(text))
		return err_set(e, EINVAL, "nests deeper than %d levels", HINT_DEPTH_MAX);
	int rc = source->read(text, c, &h, e);
	if (!rc)
		*out = h;
	return rc;
}

enum sched_hint_verdict hint_read_verdict(int rc)
{
	if (!rc)
		return SCHED_HINT_NONE;
	return rc == -ENOTSUP ? SCHED_HINT_REJECTED_VERSION : SCHED_HINT_REJECTED_FORMAT;
}

static bool says(const struct sched_hint *h, enum hint_about about)
{
	switch (about) {
	case HINT_ABOUT_NODES:
		return h->nr_containers > 0;
	case HINT_ABOUT_POLICY:
		return h->has_policy;
	case HINT_ABOUT_CPUS:
		break;
	}
	return h->cpus_required || h->cpus_preferred || h->apart;
}

static int try_source(const struct hint_source *s, const struct pod *pod,
	const struct hint_context *c, struct sched_hint *out, struct err *e)
{
	const char *text = pod_annotation(pod, s->key);
	struct sched_hint h = {0};

	if (!text)
		return 0;
	int rc = hint_read(s, text, c, &h, e);
	if (rc)
		return err_add(e, rc, "%s", s->key);
	if (!says(&h, s->about))
		return 0;
	*out = h;
	return 1;
}

int hint_find(const struct pod *pod, enum hint_about about, const struct hint_order *order,
	const struct hint_context *c, const struct hint_source **source, struct sched_hint *out,
	struct err *e)
{
	unsigned nr = order->format ? order->nr : NR_SCHED_HINT_FORMATS;

	for (unsigned f = 0; f < nr; f++) {
		enum sched_hint_format format =
			order->format ? order->format[f] : (enum sched_hint_format)f;

		for (unsigned i = 0; i < NR_SOURCES; i++) {
			const struct hint_source *s = &sources[i];
			int rc = s->format == format && s->about == about
					 ? try_source(s, pod, c, out, e)
					 : 0;

			if (rc && source)
				*source = s;
			if (rc)
				return rc;
		}
	}
	return 0;
}
