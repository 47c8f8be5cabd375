#include <numafit/advice.h>
#include <numafit/number.h>

#include <errno.h>
#include <string.h>

const char *const advice_format_words[NR_ADVICE_FORMATS] = {
	[ADVICE_NUMAFIT] = "numafit",
	[ADVICE_KOORDINATOR] = "koordinator",
	[ADVICE_KATALYST] = "katalyst",
	[ADVICE_VOLCANO] = "volcano",
	[ADVICE_CRANE] = "crane",
	[ADVICE_GODEL] = "godel",
};

int advice_order_parse(
	const char *order, enum advice_format format[NR_ADVICE_FORMATS], struct err *e)
{
	bool has[NR_ADVICE_FORMATS] = {false};
	unsigned nr = 0;

	while (*order) {
		size_t len = strcspn(order, ", ");
		char word[ADVICE_ORDER_MAX] = "";

		memcpy(word, order, len < sizeof word ? len : sizeof word - 1);
		order += len;
		order += strspn(order, ", ");
		int f = text_index(advice_format_words, NR_ADVICE_FORMATS, word);
		if (f < 0 || has[f])
			return err_set(e, EINVAL,
				"schedulerHint.order: \"%s\" %s numafit, koordinator, katalyst, "
				"volcano, crane, godel",
				word, f < 0 ? "is none of" : "is there twice; it takes each once:");
		has[f] = true;
		format[nr++] = (enum advice_format)f;
	}
	return (int)nr;
}

const char *const advice_mode_words[NR_ADVICE_MODES] = {"off", "prefer", "require"};

enum advice_mode advice_mode_of(enum advice_mode node, enum advice_mode asked)
{
	return node != ADVICE_OFF && asked > node ? asked : node;
}

enum topology_policy advice_policy_of(enum topology_policy node, enum topology_policy asked)
{
	return asked > node ? asked : node; /* their order is that of strictness */
}

const char *const advice_verdict_words[NR_ADVICE_VERDICTS] = {
	[ADVICE_NONE] = "none",
	[ADVICE_ACCEPTED] = "accepted",
	[ADVICE_ACCEPTED_STALE] = "accepted-stale",
	[ADVICE_REPAIRED] = "repaired",
	[ADVICE_REPAIRED_CPUS] = "repaired:cpus",
	[ADVICE_REJECTED_FORMAT] = "rejected:format",
	[ADVICE_REJECTED_VERSION] = "rejected:version",
	[ADVICE_REJECTED_UID] = "rejected:uid",
	[ADVICE_REJECTED_NODE] = "rejected:node",
	[ADVICE_REJECTED_CLOCK] = "rejected:clock",
	[ADVICE_REJECTED_EXPIRED] = "rejected:expired",
	[ADVICE_REJECTED_NUMA] = "rejected:numa",
	[ADVICE_REJECTED_NOT_FIT] = "rejected:not-fit",
	[ADVICE_REJECTED_NOT_NARROWEST] = "rejected:not-narrowest",
	[ADVICE_REJECTED_FARTHER] = "rejected:farther",
	[ADVICE_REJECTED_POLICY] = "rejected:policy",
	[ADVICE_REJECTED_FOREIGN_CPUSET] = "rejected:foreign-cpuset",
};

const struct advice_container *advice_for(const struct advice *h, const char *name)
{
	const struct advice_container *any = NULL;

	for (size_t i = 0; i < h->nr_containers; i++) {
		if (text_equal(h->container[i].name, name))
			return &h->container[i];
		if (text_equal(h->container[i].name, "*"))
			any = &h->container[i];
	}
	return any;
}

const struct advice_container *advice_for_pod(const struct advice *h)
{
	bool alike = h->nr_containers > 0;

	for (size_t i = 0; i < h->nr_containers; i++) {
		if (text_equal(h->container[i].name, "*"))
			return &h->container[i];
		alike = alike && nodeset_equal(h->container[i].nodes, h->container[0].nodes);
	}
	return alike ? h->container : NULL;
}

/* What advice says of itself; what a form does not say is not checked. ADVICE_NONE: it may count.
 */
static enum advice_verdict check_origin(
	const struct advice *h, const struct advice_facts *facts, struct err *e)
{
	if (h->format == ADVICE_NUMAFIT && h->version != ADVICE_VERSION) {
		(void)err_set(
			e, ENOTSUP, "version %u is not known, only %d", h->version, ADVICE_VERSION);
		return ADVICE_REJECTED_VERSION;
	}
	if (facts->any_origin)
		return ADVICE_NONE;
	if (h->uid && !text_equal(h->uid, facts->uid)) {
		(void)err_set(e, EINVAL,
			"it was written for the pod with uid \"%.64s\", this one has \"%.64s\"",
			h->uid, facts->uid ? facts->uid : "");
		return ADVICE_REJECTED_UID;
	}
	if (h->node && !text_equal(h->node, facts->node)) {
		(void)err_set(e, EINVAL, "it was written for node \"%.64s\", this is \"%.64s\"",
			h->node, facts->node ? facts->node : "");
		return ADVICE_REJECTED_NODE;
	}
	/* differences, for no sum of an annotation's number is sure not to overflow */
	if (h->at_ms > facts->now_ms && h->at_ms && h->at_ms - facts->now_ms > facts->skew_ms) {
		(void)err_set(e, EINVAL,
			"it was made %lld ms from now, clocks may differ by %lld ms",
			(long long)(h->at_ms - facts->now_ms), (long long)facts->skew_ms);
		return ADVICE_REJECTED_CLOCK;
	}
	if (h->at_ms < facts->now_ms && h->at_ms &&
		facts->now_ms - h->at_ms > (int64_t)h->ttl_s * MS_PER_S) {
		(void)err_set(e, EINVAL, "it was made %lld ms ago and was good for %u s",
			(long long)(facts->now_ms - h->at_ms), h->ttl_s);
		return ADVICE_REJECTED_EXPIRED;
	}
	return ADVICE_NONE;
}

/* The places that advice names. ADVICE_NONE: the pod can have them. */
static enum advice_verdict check_places(
	const struct advice *h, const struct advice_facts *facts, struct err *e)
{
	char list[CPUSET_TEXT_MAX];
	struct cpuset wrong;

	for (size_t i = 0; i < h->nr_containers; i++) {
		const struct advice_container *c = &h->container[i];

		if (c->has_unknown)
			(void)err_set(e, EINVAL, "container \"%.64s\": there is no NUMA node %u",
				c->name, c->unknown_id);
		else if (!nodeset_within(c->nodes, facts->t->nodes))
			(void)err_set(e, EINVAL,
				"container \"%.64s\": a NUMA node that the machine lacks", c->name);
		else
			continue;
		return ADVICE_REJECTED_NUMA;
	}
	if (!h->cpus)
		return ADVICE_NONE;
	wrong = cpuset_minus(*h->cpus, &facts->t->cpus);
	if (!cpuset_empty(&wrong)) {
		(void)err_set(e, EINVAL, "the machine lacks CPUs %s",
			cpuset_format(&wrong, list, sizeof list));
		return ADVICE_REJECTED_FOREIGN_CPUSET;
	}
	if (facts->foreign)
		wrong = cpuset_and(*h->cpus, facts->foreign);
	if (cpuset_empty(&wrong))
		return ADVICE_NONE;
	(void)err_set(e, EINVAL, "CPUs %s are reserved or another container's",
		cpuset_format(&wrong, list, sizeof list));
	return ADVICE_REJECTED_FOREIGN_CPUSET;
}

enum advice_verdict advice_check(
	const struct advice *h, const struct advice_facts *facts, struct err *e)
{
	bool stale;

	if (!h->nr_containers)
		return ADVICE_NONE;
	enum advice_verdict wrong = check_origin(h, facts, e);
	if (!wrong)
		wrong = check_places(h, facts, e);
	if (wrong)
		return wrong;
	if (h->generation && facts->generation)
		/* one that went back is another one too: the daemon has counted from the start */
		stale = h->generation != facts->generation;
	else
		stale = h->fingerprint && facts->fingerprint &&
			!text_equal(h->fingerprint, facts->fingerprint);
	return stale ? ADVICE_ACCEPTED_STALE : ADVICE_ACCEPTED;
}
