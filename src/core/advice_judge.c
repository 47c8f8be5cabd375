/* Advice against the answer that admission gave without it. */
#include <numafit/advice.h>

/* What the families say of one set of NUMA nodes. */
struct standing {
	bool matters;        /* some resource is bound to NUMA nodes at all */
	const char *lacking; /* the first one that the set has not enough of; NULL: fits */
	bool preferred;
};

static struct standing standing_of(const struct advice_merge *m, struct nodeset mask)
{
	struct standing s = {.preferred = true};

	for (size_t i = 0; i < m->nr; i++) {
		const struct family *f = &m->family[i];

		if (f->kind == FAMILY_ANY)
			continue;
		s.matters = true;
		if (f->kind == FAMILY_NONE || !family_has(f, mask)) {
			s.lacking = s.lacking ? s.lacking : f->resource;
			s.preferred = false;
		} else {
			s.preferred = s.preferred && family_prefers(f, mask);
		}
	}
	return s;
}

/* Why the asked set cannot stand for the given one; ADVICE_NONE: it can. So can a set that is
 * better than the given one, which only a search that was cut short has missed. */
static enum advice_verdict cause_of(const struct advice_merge *m, const struct hint_space *space,
	const struct standing *s, const struct advice_ruling *r)
{
	if (s->lacking) /* best-effort goes on with such a set all the same */
		return ADVICE_REJECTED_NOT_FIT;
	if (m->without.admit && nodeset_equal(r->asked, r->given))
		return ADVICE_NONE;
	if (!m->without.admit || m->policy == POLICY_NONE ||
		(m->policy == POLICY_SINGLE_NUMA_NODE && nodeset_count(r->asked) != 1))
		return ADVICE_REJECTED_POLICY;
	if (nodeset_count(r->asked) > nodeset_count(r->given))
		return ADVICE_REJECTED_NOT_NARROWEST;
	if (m->without.affinity.preferred && !s->preferred)
		return ADVICE_REJECTED_POLICY;
	if (hint_compare_fit(space, r->asked, r->given) > 0)
		return ADVICE_REJECTED_FARTHER;
	return ADVICE_NONE;
}

/* Whether the given set, which is not the one asked for, is as good a one: no larger, and no
 * farther apart on the average, which is the sum over the square of the size. */
static bool may_repair(const struct advice_merge *m, const struct hint_space *space,
	const struct advice_terms *terms, const struct advice_ruling *r)
{
	uint64_t given = nodeset_count(r->given), asked = nodeset_count(r->asked);

	return terms->repair && !advice_is_rejection(terms->so_far) &&
	       terms->mode != ADVICE_REQUIRE && m->without.admit &&
	       !nodeset_equal(r->given, r->asked) && given <= asked &&
	       hint_distance_sum(space, r->given) * asked * asked <=
		       hint_distance_sum(space, r->asked) * given * given;
}

void advice_judge(const struct advice_merge *m, struct nodeset asked,
	const struct advice_terms *terms, struct advice_ruling *out)
{
	const struct hint_space space = policy_space(m->policy, m->space);
	const struct standing standing = standing_of(m, asked);
	const struct hint *without = &m->without.affinity;

	*out = (struct advice_ruling){.asked = asked, .answer = m->without};
	out->given = without->any ? space.all : without->mask;
	if (advice_is_rejection(terms->so_far))
		out->cause = terms->so_far;
	else if (!standing.matters)
		return;
	else
		out->cause = nodeset_within(terms->fixed, asked)
				     ? cause_of(m, &space, &standing, out)
				     : ADVICE_REJECTED_FOREIGN_CPUSET;
	if (!out->cause && (without->any || !nodeset_equal(asked, without->mask)))
		out->cause = terms->overruled;
	if (out->cause == ADVICE_REJECTED_NOT_FIT && standing.lacking)
		(void)text_copy(out->lacking, sizeof out->lacking, standing.lacking);
	if (!out->cause) {
		out->verdict = terms->so_far;
		if (!nodeset_equal(out->asked, out->given))
			out->answer.affinity =
				(struct hint){.mask = asked, .preferred = standing.preferred};
		out->given = asked;
		return;
	}
	out->verdict = may_repair(m, &space, terms, out) ? ADVICE_REPAIRED : out->cause;
	out->refuse = terms->mode == ADVICE_REQUIRE;
	if (out->refuse || !m->without.admit)
		out->given = (struct nodeset){0};
}

static const char *const cause_words[NR_ADVICE_VERDICTS] = {
	[ADVICE_REJECTED_FORMAT] = "it cannot be read",
	[ADVICE_REJECTED_VERSION] = "its version is not known",
	[ADVICE_REJECTED_UID] = "it was written for another pod",
	[ADVICE_REJECTED_NODE] = "it was written for another node",
	[ADVICE_REJECTED_CLOCK] = "it was made in the future",
	[ADVICE_REJECTED_EXPIRED] = "it is too old",
	[ADVICE_REJECTED_NUMA] = "the machine has no such NUMA node",
	[ADVICE_REJECTED_NOT_FIT] = "there is not enough there",
	[ADVICE_REJECTED_NOT_NARROWEST] = "fewer NUMA nodes are enough",
	[ADVICE_REJECTED_FARTHER] = "others are closer to each other",
	[ADVICE_REJECTED_POLICY] = "the topology policy does not choose them",
	[ADVICE_REJECTED_FOREIGN_CPUSET] = "its CPUs are not the container's to have",
};

void advice_explain(const struct advice_ruling *r, const struct node_ids *ids, struct text *t)
{
	char asked[NODESET_TEXT_MAX], given[NODESET_TEXT_MAX];

	if (!nodeset_empty(r->asked))
		text_add(t, "asked for NUMA nodes %s, ",
			nodeset_format(r->asked, ids, asked, sizeof asked));
	text_add(t, "given %s",
		nodeset_empty(r->given) ? "none"
					: nodeset_format(r->given, ids, given, sizeof given));
	if (r->verdict == ADVICE_REPAIRED_CPUS)
		text_add(t, ": other CPUs of them than it names");
	else if (r->verdict == ADVICE_ACCEPTED_STALE)
		text_add(t, ": the node has changed since, they still fit");
	else if (r->lacking[0])
		text_add(t, ": there is not enough of %s on them", r->lacking);
	else if (r->cause)
		text_add(t, ": %s", cause_words[r->cause]);
	else if (r->verdict == ADVICE_NONE)
		text_add(t, ": nothing of it is bound to NUMA nodes");
}
