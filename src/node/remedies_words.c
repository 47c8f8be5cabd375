/* Remedies in words. */
#include "diagnosis_words.h"

#include <numafit/number.h>

#include <stdio.h>

enum { PODS_NAMED = 3 };

/* " (8 CPUs, NUMA node 2)" */
static void add_size(
	struct text *t, unsigned cpus, struct nodeset nodes, const struct admit_question *q)
{
	bool on = !nodeset_empty(nodes);

	text_add(t, " (");
	if (cpus)
		words_add_cpus(t, cpus);
	text_add(t, "%s", cpus && on ? ", " : "");
	if (on)
		words_add_nodes(t, nodes, q);
	text_add(t, ")");
}

/* "trainer-3 (8 CPUs, NUMA node 2)"; "infra/trainer-3 (...)" of another namespace. */
static void add_pod(struct text *t, const struct remedy_pod *gone, const struct admit_question *q)
{
	const struct pod *pod = &gone->entry->request.pod;

	if (!text_equal(pod->ns, words_pod(q)->ns))
		text_add(t, "%s/", pod->ns);
	text_add(t, "%s", pod->name);
	add_size(t, gone->cpus, gone->nodes, q);
}

/* Pods that end, as a text shows them: some by name, the unnamed ones of other namespaces as a sum,
 * and the rest as a number. */
struct shown_pods {
	const struct remedy_pod *named[PODS_NAMED];
	unsigned nr_named, nr_unnamed, nr_rest;
	struct remedy_pod sum; /* of the unnamed pods; without an entry */
};

static struct shown_pods show_pods(
	const struct remedy *r, const struct admit_question *q, enum pod_names names)
{
	struct shown_pods s = {.nr_rest = r->nr_pods};

	for (unsigned i = 0; i < r->nr_pods && i < REMEDY_PODS; i++) {
		const struct remedy_pod *p = &r->pod[i];
		bool named = pod_may_name(names, words_pod(q), &p->entry->request.pod);

		if (named && s.nr_named == PODS_NAMED)
			continue;
		s.nr_rest--;
		if (named) {
			s.named[s.nr_named++] = p;
		} else {
			s.nr_unnamed++;
			s.sum.cpus += p->cpus;
			s.sum.nodes = nodeset_or(s.sum.nodes, p->nodes);
		}
	}
	return s;
}

static void add_unnamed(struct text *t, const struct shown_pods *s, const struct admit_question *q)
{
	if (s->nr_unnamed == 1)
		text_add(t, "a pod of another namespace");
	else
		text_add(t, "%u pods of other namespaces", s->nr_unnamed);
	add_size(t, s->sum.cpus, s->sum.nodes, q);
}

/* "when a, b and 3 more end" */
static void add_ends(struct text *t, const struct remedy *r, const struct admit_question *q,
	enum pod_names names)
{
	const struct shown_pods s = show_pods(r, q, names);
	const unsigned last = s.nr_named + !!s.nr_unnamed - !s.nr_rest;

	text_add(t, "%swhen ",
		r->no_hint && r->kind == REMEDY_ENDS ? "without its scheduler's hint and " : "");
	for (unsigned i = 0; i < s.nr_named + !!s.nr_unnamed; i++) {
		text_add(t, "%s", !i ? "" : i == last ? " and " : ", ");
		if (i < s.nr_named)
			add_pod(t, s.named[i], q);
		else
			add_unnamed(t, &s, q);
	}
	if (s.nr_rest)
		text_add(t, " and %u more", s.nr_rest);
	text_add(t, " %s", r->nr_pods == 1 ? "ends" : "end");
}

/* What there is less of. */
static void add_less(struct text *t, const struct remedy *r)
{
	struct ask less = {
		.cpu_milli = r->ask.cpu_milli == r->asked.cpu_milli ? 0 : r->ask.cpu_milli};

	for (unsigned i = 0; i < r->ask.nr_memory; i++)
		if (r->ask.memory[i].bytes !=
			words_bytes_in(&r->asked, r->ask.memory[i].page_bytes))
			less.memory[less.nr_memory++] = r->ask.memory[i];
	text_add(t, "%swith ", r->no_hint ? "without its scheduler's hint and " : "");
	diagnosis_add_ask(t, &less);
	if (r->container)
		text_add(t, " for container %.63s", r->container);
	else if (r->ask.whole_pod)
		text_add(t, " for the pod (spec.resources)");
	if (r->in_place)
		text_add(t, ", resized in place");
}

const char *const remedy_kind_words[NR_REMEDIES] = {
	[REMEDY_ENDS] = "pods-end",
	[REMEDY_LESS] = "ask-for-less",
	[REMEDY_ANEW] = "start-anew",
	[REMEDY_CORES] = "whole-cores",
	[REMEDY_TOKENS] = "tokens",
	[REMEDY_NO_HINT] = "no-hint",
	[REMEDY_NODES_POLICY] = "nodes-policy",
	[REMEDY_MINIMUM] = "pool-minimum",
	[REMEDY_BUDGET] = "visit-budget",
	[REMEDY_SCOPE] = "scope",
	[REMEDY_POLICY] = "policy",
};

bool remedy_setting(const struct remedy *r, struct key_value *out, char value[REMEDY_VALUE_MAX])
{
	static const struct {
		const char *key;
		const char *const *words; /* of its values; NULL: they are numbers */
	} settings[NR_REMEDIES] = {
		[REMEDY_MINIMUM] = {"sharedPoolMinimum", NULL},
		[REMEDY_BUDGET] = {"mergeVisitBudget", NULL},
		[REMEDY_SCOPE] = {"topologyManagerScope", topology_scope_words},
		[REMEDY_POLICY] = {"topologyManagerPolicy", topology_policy_words},
	};
	const char *const *words = settings[r->kind].words;

	(void)snprintf(value, REMEDY_VALUE_MAX, "%llu", (unsigned long long)r->value);
	*out = (struct key_value){settings[r->kind].key, words ? words[r->value] : value};
	return out->key;
}

void diagnosis_add_remedy(struct text *t, const struct remedy *r, const struct admit_question *q,
	enum pod_names names)
{
	char value[REMEDY_VALUE_MAX];
	struct key_value setting;

	switch (r->kind) {
	case REMEDY_ENDS:
		add_ends(t, r, q, names);
		return;
	case REMEDY_LESS:
		add_less(t, r);
		if (r->nr_pods) {
			text_add(t, " ");
			add_ends(t, r, q, names);
		}
		return;
	case REMEDY_ANEW:
		text_add(t, "when it is started anew");
		break;
	case REMEDY_CORES:
		if (r->ask.cpu_milli)
			add_less(t, r);
		else
			text_add(t, "with whole cores, a multiple of %llu CPUs, for each container",
				(unsigned long long)r->value);
		break;
	case REMEDY_TOKENS:
		if (!r->value) {
			text_add(t, "without numafit.io/cpu");
			return;
		}
		text_add(t, "with %llu of numafit.io/cpu", (unsigned long long)r->value);
		if (r->container)
			text_add(t, " for container %.63s", r->container);
		return;
	case REMEDY_NO_HINT:
		text_add(t,
			"without its scheduler's hint (such as numafit.io/numa-hint), or with %s",
			q->settings->advice_mode == ADVICE_REQUIRE
				? "schedulerHint.mode prefer on this node"
				: "\"mode\":\"prefer\" in it");
		break;
	case REMEDY_NODES_POLICY:
		text_add(t, "without a topology policy of its own (numafit.io/topology-policy)");
		break;
	case REMEDY_MINIMUM:
	case REMEDY_BUDGET:
	case REMEDY_SCOPE:
	case REMEDY_POLICY:
		(void)remedy_setting(r, &setting, value);
		text_add(t, "with %s %s", setting.key, setting.value);
		break;
	case NR_REMEDIES:
		return;
	}
	if (r->fewer_pods)
		text_add(t, ", when fewer pods run here");
	else if (!nodeset_empty(r->nodes)) {
		text_add(t, ", on ");
		words_add_nodes(t, r->nodes, q);
	}
}

/* Another node helps only where this one has too little. */
static void add_no_remedy(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const char *anew = d->resize ? "Started anew, it" : "It";

	if (d->class == REFUSAL_TOKENS && d->resize)
		text_add(t,
			"Its CPUs are as many as its numafit.io/cpu: create the pod again with more, or fewer");
	else if (d->class == REFUSAL_TOKENS && q->container)
		text_add(t, "Fits when the pod is created again, with tokens of its own");
	else if (d->class == REFUSAL_TOKENS)
		text_add(
			t, "Ask for whole CPUs in a Guaranteed pod, or for none of numafit.io/cpu");
	else if (d->class == REFUSAL_CLAIM)
		text_add(t, "The kubelet tries again; if it stays so, create the pod again");
	else if (d->class == REFUSAL_WISH)
		text_add(t, "Correct the annotation, and create the pod again");
	else if (d->class == REFUSAL_SHARES && d->resize)
		text_add(t, "Create the pod again");
	else if (d->class == REFUSAL_POLICY || d->class == REFUSAL_SHARES)
		text_add(t, "%s fits on no node like this one: nothing that was tried would help",
			anew);
	else
		text_add(t, "%s needs another node", anew);
}

void diagnosis_add_remedies(struct text *t, const struct diagnosis *d,
	const struct admit_question *q, enum pod_names names)
{
	const struct remedy *first = d->remedy;
	/* a container that runs stays where it is: what was decided again is that it comes anew */
	bool anew =
		d->resize && !(d->nr_remedies && (first->kind == REMEDY_ANEW || first->in_place));

	if (d->class == REFUSAL_DAEMON)
		text_add(t, "See the log of numafitd on this node");
	else if (!d->nr_remedies && d->remedies_left_out)
		text_add(t,
			"What would help was not looked for to the end, as this answer is about "
			"many refusals: ask numafit explain for this pod alone");
	else if (!d->nr_remedies)
		add_no_remedy(t, d, q);
	else
		text_add(t, anew ? "Started anew, it fits " : "Fits ");
	for (unsigned i = 0; i < d->nr_remedies; i++) {
		text_add(t, "%s", i ? ", or " : "");
		diagnosis_add_remedy(t, &d->remedy[i], q, names);
	}
}
