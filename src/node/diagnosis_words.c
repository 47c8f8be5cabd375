/* A diagnosis in words, for the create's error, the pod's event and the command line. */
#include <numafit/diagnosis.h>
#include <numafit/number.h>

#include <stdio.h>
#include <string.h>

enum { BODY_MAX = 2 * DIAGNOSIS_LINE_MAX, TAIL_MAX = 512, PODS_NAMED = 3 };

const char *const refusal_class_texts[NR_REFUSAL_CLASSES] = {
	[REFUSAL_DAEMON] = "numafit itself was in the way",
	[REFUSAL_TOKENS] = "its tokens of numafit.io/cpu do not entitle it to its CPUs",
	[REFUSAL_SHARES] = "what the pod has as one cannot be shared out among its containers",
	[REFUSAL_ABSENT] = "it asks for more than this machine has for containers",
	[REFUSAL_STAYS] = "it runs, and there is not as much for it where it stays",
	[REFUSAL_POOL] = "the containers that share CPUs would be left with too few",
	[REFUSAL_POLICY] = "policy and options would refuse it even if nothing else ran here",
	[REFUSAL_TAKEN] = "this machine has as much, but not enough of it is free",
	[REFUSAL_HINT] = "its scheduler's hint must be followed, and cannot be",
	[REFUSAL_CUT] = "the search for NUMA nodes was cut short by mergeVisitBudget",
	[REFUSAL_POD] = "each of its containers would fit alone, but not all of them together",
	[REFUSAL_NOT_TOGETHER] =
		"as much is free, but not together on NUMA nodes that may serve it",
};

/* Words */

static void add_cpu_count(struct text *t, uint64_t cpus)
{
	text_add(t, "%llu CPU%s", (unsigned long long)cpus, cpus == 1 ? "" : "s");
}

static void add_bytes(struct text *t, uint64_t bytes, uint64_t page_bytes)
{
	char size[TEXT_SIZE_MAX], page[TEXT_SIZE_MAX];

	text_add(t, "%s of ", text_size_rounded(size, bytes));
	if (page_bytes)
		text_add(t, "huge pages of %s", text_size(page, page_bytes));
	else
		text_add(t, "memory");
}

static void add_amount(struct text *t, const struct diagnosis_amount *m, uint64_t amount)
{
	if (m->cpus)
		add_cpu_count(t, amount);
	else
		add_bytes(t, amount, m->page_bytes);
}

void diagnosis_add_ask(struct text *t, const struct ask *ask)
{
	struct memory_ask memory[TOPO_KINDS];
	unsigned nr = ask_memory(ask, memory);

	if (ask->cpu_milli % MILLI_PER_CPU)
		text_add(t, "%llum CPUs", (unsigned long long)ask->cpu_milli);
	else if (ask->cpu_milli)
		add_cpu_count(t, ask->cpu_milli / MILLI_PER_CPU);
	for (unsigned i = 0; i < nr; i++) {
		text_add(t, "%s", i || ask->cpu_milli ? ", " : "");
		add_bytes(t, memory[i].bytes, memory[i].page_bytes);
	}
	if (!ask->cpu_milli && !nr)
		text_add(t, "nothing that is placed");
}

/* "NUMA node 3", "NUMA nodes 0-1" */
static void add_nodes(struct text *t, struct nodeset nodes, const struct admit_question *q)
{
	char list[NODESET_TEXT_MAX];

	text_add(t, "NUMA node%s %s", nodeset_count(nodes) == 1 ? "" : "s",
		nodeset_format(nodes, &ledger_view(q->ledger)->topo->ids, list, sizeof list));
}

static const struct pod *pod_asked_about(const struct admit_question *q)
{
	return q->container ? &q->container->pod : q->pod;
}

static void add_policy(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	text_add(t, "%spolicy %s", pod_asked_about(q)->has_policy ? "the pod's own " : "",
		topology_policy_words[d->policy]);
	if (d->allowed)
		text_add(t, " allows %u NUMA node%s", d->allowed, d->allowed == 1 ? "" : "s");
}

/* Numbers */

/* "10 of 62 CPUs are free on this node": what there is less of than is asked for. */
static void add_not_free(struct text *t, const struct diagnosis *d)
{
	const char *between = "";

	for (unsigned i = 0; i < d->nr; i++) {
		const struct diagnosis_amount *m = &d->of[i];
		char size[TEXT_SIZE_MAX];

		if (m->asked <= m->free)
			continue;
		text_add(t, "%s", between);
		if (m->cpus)
			text_add(t, "%llu of ", (unsigned long long)m->free);
		else
			text_add(t, "%s of ", text_size_rounded(size, m->free));
		add_amount(t, m, m->exists);
		between = ", ";
	}
	text_add(t, " are free on this node%s", d->resize ? ", with what it has itself" : "");
}

/* "this node has 62 CPUs for containers, no huge pages of 2Mi" */
static void add_absent(struct text *t, const struct diagnosis *d)
{
	const char *between = "this node has ";
	bool some = false;

	for (unsigned i = 0; i < d->nr; i++) {
		const struct diagnosis_amount *m = &d->of[i];
		char page[TEXT_SIZE_MAX];

		if (m->asked <= m->exists)
			continue;
		text_add(t, "%s", between);
		if (m->exists || !m->page_bytes)
			add_amount(t, m, m->exists);
		else
			text_add(t, "no huge pages of %s", text_size(page, m->page_bytes));
		some = some || m->exists;
		between = ", ";
	}
	text_add(t, "%s", some ? " for containers" : "");
}

/* "10 CPUs, 96Gi of memory" */
static void add_amounts(
	struct text *t, const struct diagnosis *d, const uint64_t amount[], bool without_cpus)
{
	const char *between = "";

	for (unsigned i = 0; i < d->nr; i++) {
		if (d->of[i].cpus && without_cpus)
			continue;
		text_add(t, "%s", between);
		add_amount(t, &d->of[i], amount[i]);
		between = ", ";
	}
}

/* "it stays on NUMA node 2, which has 10 CPUs, 96Gi of memory for it"; or each amount where it has
 * it now. */
static void add_where_it_runs(
	struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const struct diagnosis_place *p = d->free.at;
	bool together = true;

	for (unsigned i = 1; i < d->free.nr; i++)
		together = together && nodeset_equal(p[i].nodes, p[0].nodes);
	text_add(t, together ? "it stays on " : "it stays where it runs: for it there are ");
	if (together) {
		add_nodes(t, p[0].nodes, q);
		text_add(t, ", which %s ", nodeset_count(p[0].nodes) == 1 ? "has" : "have");
	}
	for (unsigned i = 0; i < d->free.nr; i++) {
		text_add(t, "%s", i ? ", " : "");
		add_amount(t, &d->of[i], p[i].has[i]);
		if (!together && !nodeset_empty(p[i].nodes)) {
			text_add(t, " on ");
			add_nodes(t, p[i].nodes, q);
		}
	}
	text_add(t, "%s", together ? " for it" : "");
}

/* "NUMA node 2 has most free: 10 CPUs, 96Gi of memory" */
static void add_most_free(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const struct diagnosis_places *p = &d->free;

	if (d->resize) {
		add_where_it_runs(t, d, q);
		return;
	}
	if (d->has_tokens)
		text_add(t, "its numafit.io/cpu are of ");
	else if (p->nr > 1)
		text_add(t, "no NUMA node has all of it free: ");
	for (unsigned i = 0; i < p->nr; i++) {
		bool one = nodeset_count(p->at[i].nodes) == 1;

		text_add(t, "%s", i ? "; " : "");
		add_nodes(t, p->at[i].nodes, q);
		if (d->has_tokens)
			text_add(t, ", which %s free ", one ? "has" : "have");
		else if (p->nr > 1)
			text_add(t, " has ");
		else if (p->has_most)
			text_add(t, " %s most free: ", one ? "has" : "have");
		else
			text_add(t, " %s nearest, with ", one ? "comes" : "come");
		add_amounts(t, d, p->at[i].has, d->has_tokens);
	}
	text_add(t, "%s", p->nr > 1 || p->has_most || d->has_tokens ? "" : " free");
}

static bool differ_in_nodes(const struct diagnosis *d)
{
	bool differ = false;

	for (unsigned i = 1; i < d->nr; i++)
		differ = differ || d->of[i].nodes != d->of[0].nodes;
	return differ;
}

/* full-pcpus-only, and a container that asks for a part of a core. */
static void add_broken_cores(
	struct text *t, const struct decision *refused, const struct admit_question *q)
{
	const struct topo *topo = ledger_view(q->ledger)->topo;
	const struct ask *one = q->container ? &q->container->ask : refused->in_the_way;

	if (one)
		text_add(t,
			"full-pcpus-only gives out whole cores, of %u CPUs each, and %llu CPUs "
			"are not a number of these",
			topo->nr_cpus / topo->nr_cores,
			(unsigned long long)one->cpu_milli / MILLI_PER_CPU);
	else
		text_add(t, "%s", refused->message);
}

static void add_never(struct text *t, const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q)
{
	if (refused->reason && text_equal(refused->reason, "SMTAlignmentError")) {
		add_broken_cores(t, refused, q);
		return;
	}
	add_policy(t, d, q);
	if (d->policy == POLICY_RESTRICTED && differ_in_nodes(d)) {
		text_add(t, " wants each part on as few NUMA nodes as can have it, and all parts "
			    "on the same ones:");
		for (unsigned i = 0; i < d->nr; i++) {
			text_add(t, "%s ", i ? "," : "");
			add_amount(t, &d->of[i], d->of[i].asked);
			text_add(t, "%s %u", i ? "" : " need", d->of[i].nodes);
		}
		return;
	}
	if (d->empty.nr == 1)
		text_add(t, "; one NUMA node has, if nothing runs there, ");
	else
		text_add(t, "; no NUMA node has all of it, even if nothing runs there: ");
	for (unsigned i = 0; i < d->empty.nr; i++) {
		if (d->empty.nr > 1) {
			text_add(t, "%s", i ? "; " : "");
			add_nodes(t, d->empty.at[i].nodes, q);
			text_add(t, " has ");
		}
		add_amounts(t, d, d->empty.at[i].has, false);
	}
}

static void add_apart(struct text *t, const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q)
{
	if (refused->reason && text_equal(refused->reason, "SMTAlignmentError"))
		text_add(t, "too few whole cores are free (full-pcpus-only); ");
	add_most_free(t, d, q);
	text_add(t, "; ");
	add_policy(t, d, q);
	if (d->policy <= POLICY_BEST_EFFORT)
		text_add(t,
			"; memory of several NUMA nodes goes to one container only where no other "
			"container has memory of one of them alone");
}

void diagnosis_add_numbers(struct text *t, const struct diagnosis *d,
	const struct decision *refused, const struct admit_question *q)
{
	switch (d->class) {
	case REFUSAL_ABSENT:
		add_absent(t, d);
		return;
	case REFUSAL_TAKEN:
		add_not_free(t, d);
		return;
	case REFUSAL_STAYS:
		add_where_it_runs(t, d, q);
		if (refused->cause == REFUSED_BESIDE_CPUS)
			text_add(t, "; with CPUs of other NUMA nodes policy %s would not admit it",
				topology_policy_words[d->policy]);
		return;
	case REFUSAL_POOL:
		add_cpu_count(t, d->of[0].free);
		text_add(t, " are free, and sharedPoolMinimum keeps %u CPU%s shared",
			settings_pool_minimum(q->settings),
			settings_pool_minimum(q->settings) == 1 ? "" : "s");
		return;
	case REFUSAL_POLICY:
		add_never(t, d, refused, q);
		return;
	case REFUSAL_POD:
		text_add(t, "each of its %u containers would fit alone, but not together; ",
			d->nr_containers);
		add_apart(t, d, refused, q);
		return;
	case REFUSAL_NOT_TOGETHER:
		add_apart(t, d, refused, q);
		return;
	case REFUSAL_CUT:
		text_add(t, "the search for NUMA nodes ended after mergeVisitBudget %llu; ",
			(unsigned long long)q->settings->merge_visit_budget);
		add_apart(t, d, refused, q);
		return;
	case REFUSAL_SHARES:
		if (d->resize)
			break;
		text_add(t, "the containers that ask for CPUs or memory of their own leave too "
			    "little of the pod's (spec.resources) to the others");
		return;
	case REFUSAL_DAEMON:
	case REFUSAL_TOKENS:
	case REFUSAL_HINT:
	case NR_REFUSAL_CLASSES:
		break;
	}
	text_add(t, "%s", refused->message);
}

/* Remedies */

/* "trainer-3 (8 CPUs, NUMA node 2)", of another namespace with that before it */
static void add_pod(struct text *t, const struct remedy_pod *gone, const struct admit_question *q)
{
	const struct pod *pod = &gone->entry->request.pod;
	const struct pod *own = pod_asked_about(q);
	bool on = !nodeset_empty(gone->nodes);

	if (!text_equal(pod->ns, own->ns))
		text_add(t, "%s/", pod->ns);
	text_add(t, "%s (", pod->name);
	if (gone->cpus)
		add_cpu_count(t, gone->cpus);
	text_add(t, "%s", gone->cpus && on ? ", " : "");
	if (on)
		add_nodes(t, gone->nodes, q);
	text_add(t, ")");
}

/* "when a, b and 3 more end" */
static void add_ends(struct text *t, const struct remedy *r, const struct admit_question *q)
{
	unsigned named = r->nr_pods < PODS_NAMED ? r->nr_pods : PODS_NAMED;

	text_add(t, "%swhen ",
		r->no_hint && r->kind == REMEDY_ENDS ? "without its scheduler's hint and " : "");
	for (unsigned i = 0; i < named; i++) {
		text_add(t, "%s", !i ? "" : i + 1 == r->nr_pods ? " and " : ", ");
		add_pod(t, &r->pod[i], q);
	}
	if (r->nr_pods > named)
		text_add(t, " and %u more", r->nr_pods - named);
	text_add(t, " %s", r->nr_pods == 1 ? "ends" : "end");
}

static uint64_t bytes_in(const struct ask *ask, uint64_t page_bytes)
{
	for (unsigned i = 0; i < ask->nr_memory; i++)
		if (ask->memory[i].page_bytes == page_bytes)
			return ask->memory[i].bytes;
	return 0;
}

/* What there is less of. */
static void add_less(struct text *t, const struct remedy *r)
{
	struct ask less = {
		.cpu_milli = r->ask.cpu_milli == r->asked.cpu_milli ? 0 : r->ask.cpu_milli};

	for (unsigned i = 0; i < r->ask.nr_memory; i++)
		if (r->ask.memory[i].bytes != bytes_in(&r->asked, r->ask.memory[i].page_bytes))
			less.memory[less.nr_memory++] = r->ask.memory[i];
	text_add(t, "%swith ", r->no_hint ? "without its scheduler's hint and " : "");
	diagnosis_add_ask(t, &less);
	if (r->container)
		text_add(t, " for container %.63s", r->container);
	else if (r->ask.whole_pod)
		text_add(t, " for the pod (spec.resources)");
	if (r->in_place)
		text_add(t, " where it runs");
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

void diagnosis_add_remedy(struct text *t, const struct remedy *r, const struct admit_question *q)
{
	char value[REMEDY_VALUE_MAX];
	struct key_value setting;

	switch (r->kind) {
	case REMEDY_ENDS:
		add_ends(t, r, q);
		return;
	case REMEDY_LESS:
		add_less(t, r);
		if (r->nr_pods) {
			text_add(t, " ");
			add_ends(t, r, q);
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
		add_nodes(t, r->nodes, q);
	}
}

/* Another node helps only where this one has too little. */
static void add_no_remedy(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const char *anew = d->resize ? "Started anew, it" : "It";

	if (d->class == REFUSAL_TOKENS && d->resize)
		text_add(t, "Make the pod anew, with as many of numafit.io/cpu as CPUs");
	else if (d->class == REFUSAL_TOKENS && q->container)
		text_add(t, "Fits when the pod is made anew, with tokens of its own");
	else if (d->class == REFUSAL_TOKENS)
		text_add(
			t, "Ask for whole CPUs in a Guaranteed pod, or for none of numafit.io/cpu");
	else if (d->class == REFUSAL_SHARES && d->resize)
		text_add(t, "Make the pod anew");
	else if (d->class == REFUSAL_POLICY || d->class == REFUSAL_SHARES)
		text_add(t, "%s fits on no node like this one: nothing that was tried would help",
			anew);
	else
		text_add(t, "%s needs another node", anew);
}

void diagnosis_add_remedies(
	struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const struct remedy *first = d->remedy;
	/* a container that runs stays where it is: what was decided again is that it comes anew */
	bool anew =
		d->resize && !(d->nr_remedies && (first->kind == REMEDY_ANEW || first->in_place));

	if (d->class == REFUSAL_DAEMON)
		text_add(t, "See the log of numafitd on this node");
	else if (!d->nr_remedies)
		add_no_remedy(t, d, q);
	else
		text_add(t, anew ? "Started anew, it fits " : "Fits ");
	for (unsigned i = 0; i < d->nr_remedies; i++) {
		text_add(t, "%s", i ? ", or " : "");
		diagnosis_add_remedy(t, &d->remedy[i], q);
	}
}

/* The line */

static void add_subject(
	struct text *t, const struct decision *refused, const struct admit_question *q)
{
	const struct ask *one = q->container ? &q->container->ask : refused->in_the_way;

	if (one) {
		text_add(t, "container %.63s (", one->name);
		diagnosis_add_ask(t, one);
		text_add(t, ")");
	}
	if (q->container || (one && q->pod->nr == 1))
		return;
	const struct ask sum = q->pod->own ? *q->pod->own : pod_ask(q->pod);
	text_add(t, "%spod %.63s (", one ? " of " : "", q->pod->name);
	if (q->pod->nr > 1)
		text_add(t, "%zu containers: ", q->pod->nr);
	diagnosis_add_ask(t, &sum);
	text_add(t, ")");
}

/* The text, or as many whole words of it as fit into so many bytes, and "...". */
static void cut_between_words(char *text, size_t bytes)
{
	static const char dots[] = " ...";
	size_t at = bytes > sizeof dots ? bytes - sizeof dots : 0;

	if (strlen(text) < bytes)
		return;
	while (at > 0 && text[at] != ' ')
		at--;
	(void)text_copy(text + at, sizeof dots, dots);
}

const char *diagnosis_line(const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q, bool with_remedies, char *buf, size_t cap)
{
	const struct pod *pod = pod_asked_about(q);
	char body[BODY_MAX], tail[TAIL_MAX];
	struct text t, end;

	text_init(&end, tail, sizeof tail);
	text_add(&end, " (%s", refused->reason ? refused->reason : "refused");
	if (refused->advice.looked_at)
		text_add(&end, "; policy %s; scheduler's hint %s", topology_policy_words[d->policy],
			advice_verdict_words[refused->advice.verdict]);
	if (with_remedies)
		text_add(&end, "; numafit explain %.63s/%.253s", pod->ns, pod->name);
	text_add(&end, ")");
	text_init(&t, body, sizeof body);
	text_add(&t, "numafit: cannot %s ", d->resize ? "resize" : "place");
	add_subject(&t, refused, q);
	text_add(&t, ": ");
	diagnosis_add_numbers(&t, d, refused, q);
	text_add(&t, ".");
	if (with_remedies) {
		text_add(&t, " ");
		diagnosis_add_remedies(&t, d, q);
		text_add(&t, ".");
	}
	cut_between_words(body, cap > end.len ? cap - end.len : 0);
	text_init(&t, buf, cap);
	text_add(&t, "%s%s", body, tail);
	return buf;
}
