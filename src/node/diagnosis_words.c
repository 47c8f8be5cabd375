/* A diagnosis in words, for the create's error, the pod's event and the command line. */
#include "diagnosis_words.h"

#include <numafit/number.h>

#include <stdio.h>
#include <string.h>
#include <numafit/text.h>

enum { BODY_MAX = 2 * DIAGNOSIS_LINE_MAX, TAIL_MAX = 512 };

const char *const refusal_class_texts[NR_REFUSAL_CLASSES] = {
	[REFUSAL_DAEMON] = "numafit itself was in the way",
	[REFUSAL_TOKENS] = "its tokens of numafit.io/cpu do not entitle it to its CPUs",
	[REFUSAL_CLAIM] = "it comes with a ResourceClaim that it cannot use",
	[REFUSAL_WISH] = "a wish in its pod's annotations cannot be read",
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

void words_add_cpus(struct text *t, uint64_t cpus)
{
	text_add(t, "%llu CPU%s", (unsigned long long)cpus, text_plural(cpus));
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
		words_add_cpus(t, amount);
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
		words_add_cpus(t, ask->cpu_milli / MILLI_PER_CPU);
	for (unsigned i = 0; i < nr; i++) {
		text_add(t, "%s", i || ask->cpu_milli ? ", " : "");
		add_bytes(t, memory[i].bytes, memory[i].page_bytes);
	}
	if (!ask->cpu_milli && !nr)
		text_add(t, "nothing that is placed");
}

/* "NUMA node 3", "NUMA nodes 0-1" */
void words_add_nodes(struct text *t, struct nodeset nodes, const struct admit_question *q)
{
	char list[NODESET_TEXT_MAX];

	text_add(t, "NUMA node%s %s", text_plural(nodeset_count(nodes)),
		nodeset_format(nodes, &ledger_view(q->ledger)->topo->ids, list, sizeof list));
}

const struct pod *words_pod(const struct admit_question *q)
{
	return q->container ? &q->container->pod : q->pod;
}

static void add_policy(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	text_add(t, "%spolicy %s", words_pod(q)->has_policy ? "the pod's own " : "",
		topology_policy_words[d->policy]);
	if (d->allowed)
		text_add(t, " allows %u NUMA node%s", d->allowed, text_plural(d->allowed));
}

/* Numbers */

/* Of the CPUs that are there, or free, not all are for one container alone. */
static void add_kept(struct text *t, const struct admit_question *q, unsigned cpus)
{
	const bool asked_for = q->settings->shared_pool_minimum;

	text_add(t, asked_for ? "sharedPoolMinimum keeps " : "the shared pool always keeps ");
	words_add_cpus(t, cpus);
	text_add(t, asked_for ? " shared" : " (sharedPoolMinimum is 0)");
}

static void add_kept_behind(struct text *t, const struct admit_question *q, unsigned cpus)
{
	text_add(t, "%s", cpus ? "; " : "");
	if (cpus)
		add_kept(t, q, cpus);
}

/* "10 of 62 CPUs are free on this node": what there is less of than is asked for. */
static void add_not_free(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const char *between = "";
	unsigned kept = 0;

	for (unsigned i = 0; i < d->nr; i++) {
		const struct diagnosis_amount *m = &d->of[i];
		char size[TEXT_SIZE_MAX];

		if (m->asked + (m->cpus ? d->kept : 0) <= m->free)
			continue;
		text_add(t, "%s", between);
		if (m->cpus)
			text_add(t, "%llu of ", (unsigned long long)m->free);
		else
			text_add(t, "%s of ", text_size_rounded(size, m->free));
		add_amount(t, m, m->exists);
		kept = m->cpus ? d->kept : kept;
		between = ", ";
	}
	text_add(t, " are free on this node%s", d->resize ? ", with what it has itself" : "");
	add_kept_behind(t, q, kept);
}

/* "this node has 62 CPUs for containers, no huge pages of 2Mi" */
static void add_absent(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const char *between = "this node has ";
	unsigned kept = 0;
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
		kept = m->cpus ? d->kept : kept;
		some = some || m->exists;
		between = ", ";
	}
	text_add(t, "%s", some ? " for containers" : "");
	add_kept_behind(t, q, kept);
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

/* "its memory stays on NUMA node 2, where it can have 96Gi of memory" */
static void add_memory_stays(
	struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const char *between = "its memory stays where it is: ";

	for (unsigned i = 0; i < d->free.nr; i++) {
		const struct diagnosis_place *p = &d->free.at[i];

		if (d->of[i].cpus || d->of[i].asked <= p->has[i])
			continue;
		text_add(t, "%s", between);
		add_amount(t, &d->of[i], p->has[i]);
		text_add(t, " for it");
		if (!nodeset_empty(p->nodes)) {
			text_add(t, " on ");
			words_add_nodes(t, p->nodes, q);
		}
		between = ", ";
	}
}

/* "it keeps its CPUs: 6 for it on NUMA node 2, and policy restricted does not admit 8 CPUs with
 * those of other NUMA nodes" */
static void add_cpus_stay(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const struct diagnosis_place *p = &d->free.at[0];

	text_add(t, "it keeps its CPUs: ");
	add_amount(t, &d->of[0], p->has[0]);
	text_add(t, " for it on ");
	words_add_nodes(t, p->nodes, q);
	text_add(t, ", and policy %s does not admit ", topology_policy_words[d->policy]);
	add_amount(t, &d->of[0], d->of[0].asked);
	text_add(t, " with those of other NUMA nodes");
}

/* "NUMA node 2 has most free: 10 CPUs, 96Gi of memory" */
static void add_most_free(struct text *t, const struct diagnosis *d, const struct admit_question *q)
{
	const struct diagnosis_places *p = &d->free;

	if (d->has_tokens)
		text_add(t, "its numafit.io/cpu are of ");
	else if (p->nr > 1)
		text_add(t, "no NUMA node has all of it free: ");
	for (unsigned i = 0; i < p->nr; i++) {
		bool one = nodeset_count(p->at[i].nodes) == 1;

		text_add(t, "%s", i ? "; " : "");
		words_add_nodes(t, p->at[i].nodes, q);
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

/* The container that cannot be placed, if it is one of them. */
static const struct ask *ask_in_the_way(
	const struct decision *refused, const struct admit_question *q)
{
	return q->container ? &q->container->ask : refused->in_the_way;
}

/* Cores that containers can be given, whatever runs now. */
static struct core_stock cores_of_node(const struct admit_question *q)
{
	const struct topo *topo = ledger_view(q->ledger)->topo;
	const struct cpuset all = cpuset_minus(topo->cpus, &q->settings->reserved_cpus);

	return cores_among(topo, &all);
}

static bool have_unequal_cores(const struct admit_question *q)
{
	return q->settings->cpu_options.core_rule == CORES_WHOLE &&
	       cores_differ(ledger_view(q->ledger)->topo);
}

/* Whether no cores of the node have exactly so many CPUs. */
static bool breaks_cores(const struct admit_question *q, unsigned cpus)
{
	const struct topo *topo = ledger_view(q->ledger)->topo;
	const struct core_stock all = cores_of_node(q);
	struct core_need need = {0};

	if (!have_unequal_cores(q))
		return cpus % (topo->nr_cpus / topo->nr_cores);
	core_need_add(&need, cpus);
	return cpus && !cores_have(&all, &need);
}

/* full-pcpus-only, and a container that asks for a part of a core. */
static bool has_broken_cores(const struct decision *refused, const struct admit_question *q)
{
	const struct ask *one = ask_in_the_way(refused, q);

	if (!one || !wishes_whole_cores(&one->wishes, &q->settings->cpu_options))
		return refused->reason && text_equal(refused->reason, "SMTAlignmentError");
	return breaks_cores(q, ask_exclusive_cpus(one, words_pod(q)->qos, words_pod(q)->pod_level));
}

/* What asks for whole cores. */
static const char *whole_cores_word(const struct ask *one)
{
	if (!one || !one->wishes.cores)
		return "full-pcpus-only";
	return nodeset_empty(one->share_of) ? "the wish numafit.io/cores" : "parameter wholeCores";
}

static void add_broken_cores(
	struct text *t, const struct decision *refused, const struct admit_question *q)
{
	const struct topo *topo = ledger_view(q->ledger)->topo;
	const struct ask *one = ask_in_the_way(refused, q);
	const struct core_stock all = cores_of_node(q);
	const char *between = "";

	if (!one) {
		text_add(t, "%s", refused->message);
		return;
	}
	const uint64_t cpus = one->cpu_milli / MILLI_PER_CPU;
	text_add(t, "%s gives out whole cores, ", whole_cores_word(one));
	if (!have_unequal_cores(q)) {
		text_add(t, "of %u CPUs each, and %llu CPU%s %s not a number of these",
			topo->nr_cpus / topo->nr_cores, (unsigned long long)cpus, text_plural(cpus),
			cpus == 1 ? "is" : "are");
		return;
	}
	text_add(t, "of which this node has ");
	for (unsigned size = CORE_SIZE_MAX; size; size--)
		if (all.of[size]) {
			text_add(t, "%s%u of %u CPU%s", between, all.of[size], size,
				text_plural(size));
			between = ", ";
		}
	text_add(t, ", and no number of them has exactly %llu CPU%s", (unsigned long long)cpus,
		text_plural(cpus));
}

/* As much is there, but not for this container: init containers have run before it. */
static void add_taken_over(
	struct text *t, const struct decision *refused, const struct admit_question *q)
{
	const struct ask *one = ask_in_the_way(refused, q);
	bool after_init = false;

	for (size_t i = 0; !q->container && i < q->pod->nr; i++)
		after_init = after_init || q->pod->container[i].kind == CONTAINER_INIT;
	if (one && after_init)
		text_add(t,
			"; container %.63s first takes what init containers of the pod leave, "
			"and the rest does not lie on the same NUMA nodes",
			one->name);
	else
		text_add(t, ": %s", refused->message);
}

static void add_never(struct text *t, const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q)
{
	if (has_broken_cores(refused, q)) {
		add_broken_cores(t, refused, q);
		return;
	}
	add_policy(t, d, q);
	if (diagnosis_has_all(d, &d->empty.at[0])) {
		add_taken_over(t, refused, q);
		return;
	}
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
			words_add_nodes(t, d->empty.at[i].nodes, q);
			text_add(t, " has ");
		}
		add_amounts(t, d, d->empty.at[i].has, false);
	}
}

static void add_apart(struct text *t, const struct diagnosis *d, const struct decision *refused,
	const struct admit_question *q)
{
	const struct ask *one = ask_in_the_way(refused, q);
	const uint64_t cpus = one ? one->cpu_milli / MILLI_PER_CPU : 0;
	bool smt = refused->reason && text_equal(refused->reason, "SMTAlignmentError");

	if (smt && cpus && have_unequal_cores(q))
		text_add(t,
			"%s gives out whole cores, and no free ones have exactly %llu CPU%s together; ",
			whole_cores_word(one), (unsigned long long)cpus, text_plural(cpus));
	else if (smt)
		text_add(t, "too few whole cores are free (%s); ", whole_cores_word(one));
	add_most_free(t, d, q);
	text_add(t, "; ");
	add_policy(t, d, q);
	if (d->policy <= POLICY_BEST_EFFORT)
		text_add(t,
			"; memory of several NUMA nodes goes to one container only where no other "
			"container has memory of one of them alone");
}

uint64_t words_bytes_in(const struct ask *ask, uint64_t page_bytes)
{
	for (unsigned i = 0; i < ask->nr_memory; i++)
		if (ask->memory[i].page_bytes == page_bytes)
			return ask->memory[i].bytes;
	return 0;
}

/* Of what the pod has as one: what its containers have for themselves as long as it runs, or as its
 * largest init container. */
static void add_shares(struct text *t, const struct admit_question *q)
{
	const struct pod *pod = q->pod;
	struct ask sum = {.nr_memory = 1}, most = {.nr_memory = 1};
	bool shared = false;

	for (size_t i = 0; i < pod->nr; i++) {
		const struct ask *c = &pod->container[i];
		struct ask *to = c->kind == CONTAINER_INIT ? &most : &sum;

		shared = shared || !c->guaranteed;
		if (!c->guaranteed)
			continue;
		bool init = c->kind == CONTAINER_INIT;
		to->cpu_milli = init ? number_max(to->cpu_milli, c->cpu_milli)
				     : to->cpu_milli + c->cpu_milli;
		to->memory[0].bytes = init ? number_max(to->memory[0].bytes, words_bytes_in(c, 0))
					   : to->memory[0].bytes + words_bytes_in(c, 0);
	}
	sum.cpu_milli = number_max(sum.cpu_milli, most.cpu_milli);
	sum.memory[0].bytes = number_max(sum.memory[0].bytes, most.memory[0].bytes);
	text_add(t, "of the pod's ");
	diagnosis_add_ask(t, pod->own);
	text_add(t, " (spec.resources) containers ask for ");
	diagnosis_add_ask(t, &sum);
	text_add(t, " of their own%s",
		shared ? ", and others need some CPUs and memory to share" : "");
}

void diagnosis_add_numbers(struct text *t, const struct diagnosis *d,
	const struct decision *refused, const struct admit_question *q)
{
	switch (d->class) {
	case REFUSAL_ABSENT:
		add_absent(t, d, q);
		return;
	case REFUSAL_TAKEN:
		add_not_free(t, d, q);
		return;
	case REFUSAL_STAYS:
		if (refused->cause == REFUSED_BESIDE_CPUS)
			add_cpus_stay(t, d, q);
		else
			add_memory_stays(t, d, q);
		return;
	case REFUSAL_POOL:
		words_add_cpus(t, d->of[0].free);
		text_add(t, " are free, and ");
		add_kept(t, q, settings_pool_minimum(q->settings));
		text_add(t, "%s",
			d->of[0].asked + d->kept <= d->of[0].free
				? "; what init containers had, later ones cannot have all of"
				: "");
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
		add_shares(t, q);
		return;
	case REFUSAL_DAEMON:
	case REFUSAL_TOKENS:
	case REFUSAL_CLAIM:
	case REFUSAL_WISH:
	case REFUSAL_HINT:
	case NR_REFUSAL_CLASSES:
		break;
	}
	text_add(t, "%s", refused->message);
}

/* The line */

static void add_subject(
	struct text *t, const struct decision *refused, const struct admit_question *q)
{
	const struct ask *one = q->container ? &q->container->ask : refused->in_the_way;

	if (one && !nodeset_empty(one->share_of)) {
		text_add(t, "a claim on ");
		words_add_nodes(t, one->share_of, q);
	} else if (one) {
		text_add(t, "container %.63s", one->name);
	}
	if (one && refused->cause != REFUSED_FOR_CLAIM) {
		text_add(t, " (");
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
	const struct pod *pod = words_pod(q);
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
		diagnosis_add_remedies(&t, d, q, q->settings->pod_names);
		text_add(&t, ".");
	}
	cut_between_words(body, cap > end.len ? cap - end.len : 0);
	text_init(&t, buf, cap);
	text_add(&t, "%s%s", body, tail);
	return buf;
}
