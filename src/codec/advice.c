#include <codec/advice.h>

#include <codec/advice_json.h>
#include <codec/advice_parts.h>
#include <errno.h>
#include <string.h>

static const struct advice_source sources[] = {
	{ADVICE_KEY, ADVICE_NUMAFIT, ADVICE_ABOUT_NODES, advice_json_read},
	{ADVICE_POLICY_KEY, ADVICE_NUMAFIT, ADVICE_ABOUT_POLICY, advice_policy_read},
	{"scheduling.koordinator.sh/resource-status", ADVICE_KOORDINATOR, ADVICE_ABOUT_NODES,
		advice_koordinator_status_read},
	{"scheduling.koordinator.sh/resource-spec", ADVICE_KOORDINATOR, ADVICE_ABOUT_CPUS,
		advice_koordinator_spec_read},
	{"katalyst.kubewharf.io/numa_bind_result", ADVICE_KATALYST, ADVICE_ABOUT_NODES,
		advice_katalyst_read},
	{"volcano.sh/topology-decision", ADVICE_VOLCANO, ADVICE_ABOUT_NODES, advice_volcano_read},
	{"volcano.sh/numa-topology-policy", ADVICE_VOLCANO, ADVICE_ABOUT_POLICY,
		advice_policy_read},
	{"topology.crane.io/topology-result", ADVICE_CRANE, ADVICE_ABOUT_NODES, advice_crane_read},
	{"godel.bytedance.com/micro-topology", ADVICE_GODEL, ADVICE_ABOUT_NODES, advice_godel_read},
};
enum { NR_SOURCES = sizeof sources / sizeof *sources };

const struct advice_source *advice_source_at(unsigned i)
{
	return i < NR_SOURCES ? &sources[i] : NULL;
}

const struct advice_source *advice_source_of(const char *key)
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
		if (depth > ADVICE_DEPTH_MAX)
			return true;
	}
	return false;
}

int advice_read(const struct advice_source *source, const char *text,
	const struct advice_context *c, struct advice *out, struct err *e)
{
	struct advice h = {.format = source->format};

	if (strnlen(text, ADVICE_TEXT_MAX + 1) > ADVICE_TEXT_MAX)
		return err_set(e, E2BIG, "is longer than %d bytes", ADVICE_TEXT_MAX);
	if (nests_too_deep(text))
		return err_set(e, EINVAL, "nests deeper than %d levels", ADVICE_DEPTH_MAX);
	int rc = source->read(text, c, &h, e);
	if (!rc)
		*out = h;
	return rc;
}

enum advice_verdict advice_read_verdict(int rc)
{
	if (!rc)
		return ADVICE_NONE;
	return rc == -ENOTSUP ? ADVICE_REJECTED_VERSION : ADVICE_REJECTED_FORMAT;
}

static bool says(const struct advice *h, enum advice_about about)
{
	switch (about) {
	case ADVICE_ABOUT_NODES:
		return h->nr_containers > 0;
	case ADVICE_ABOUT_POLICY:
		return h->has_policy;
	case ADVICE_ABOUT_CPUS:
		break;
	}
	return h->cpus_required || h->cpus_preferred || h->apart;
}

static int try_source(const struct advice_source *s, const struct pod *pod,
	const struct advice_context *c, struct advice *out, struct err *e)
{
	const char *text = pod_annotation(pod, s->key);
	struct advice h = {0};

	if (!text)
		return 0;
	int rc = advice_read(s, text, c, &h, e);
	if (rc)
		return err_add(e, rc, "%s", s->key);
	if (!says(&h, s->about))
		return 0;
	*out = h;
	return 1;
}

int advice_find(const struct pod *pod, enum advice_about about, const struct advice_order *order,
	const struct advice_context *c, const struct advice_source **source, struct advice *out,
	struct err *e)
{
	unsigned nr = order->format ? order->nr : NR_ADVICE_FORMATS;

	for (unsigned f = 0; f < nr; f++) {
		enum advice_format format =
			order->format ? order->format[f] : (enum advice_format)f;

		for (unsigned i = 0; i < NR_SOURCES; i++) {
			const struct advice_source *s = &sources[i];
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
