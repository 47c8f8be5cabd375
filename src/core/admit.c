/* One container, or a pod whose spec is known, decided from the ledger. Refusals carry the
 * kubelet's reason and message, so that dashboards know them. */
#include <numafit/admit.h>

#include <numafit/admission.h>
#include <numafit/leases.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

static void refuse(struct decision *d, const struct refusal *why)
{
	d->admit = false;
	d->reason = decision_reason(why->reason);
	d->cut_short = why->cut_short;
	d->reasons = why->reasons;
	d->advice = why->advice;
	(void)text_copy(d->message, sizeof d->message, why->message);
}

/* A pod's containers share its events, and those of its sandbox name none of them. */
static void refuse_pod(struct decision *d, const struct pod *pod, const struct refusal *why)
{
	struct text t;

	refuse(d, why);
	if (why->of_pod)
		return;
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "container %.63s: %s", pod->container[why->place].name, why->message);
}

static void refuse_for_room(struct decision *d)
{
	d->reason = decision_reason("UnexpectedAdmissionError");
	(void)text_copy(d->message, sizeof d->message,
		"Allocate failed due to the decision needing more working memory than there is, "
		"which is unexpected");
}

static void note(struct decision *d, const char *text)
{
	(void)text_copy(d->message, sizeof d->message, text);
}

/* The resources that were given already: nobody else holds anything of them. */
static bool lend_attached(
	struct books *b, const struct device_resource *attached, size_t nr, struct arena *a)
{
	b->resource = attached;
	b->nr_resources = (unsigned)nr;
	for (size_t r = 0; r < nr; r++) {
		b->held[r] = arena_array(a, attached[r].nr, sizeof *b->held[r]);
		if (!b->held[r])
			return false;
	}
	return true;
}

static bool asks_for_cpus(const struct pod *pod)
{
	for (unsigned i = 0; i < pod->nr; i++)
		if (pod_exclusive_cpus(pod, i))
			return true;
	return false;
}

/* What nobody holds, by the ledger, but for whom the tokens are: a copy to decide on. NULL: the
 * arena's limit is reached. */
static struct books *books_of(const struct ledger *l, const struct settings *s,
	const struct pod *pod, const struct tokenset *tokens, struct arena *a)
{
	struct books *b = arena_alloc(a, sizeof *b);
	struct cpuset shareable = ledger_shareable_cpus(l);

	if (!b || !lend_attached(b, pod->attached, pod->nr_attached, a))
		return NULL;
	if (asks_for_cpus(pod))
		b->promised = ledger_promised_cpus(l, tokens);
	b->t = ledger_topo(l);
	b->s = s;
	b->reserved = s->reserved_cpus;
	b->shared = cpuset_minus(shareable, ledger_held_cpus(l));
	b->keep_shared = settings_pool_minimum(s);
	b->memory.keep_groups = ledger_memory(l)->keep_groups;
	memcpy(b->memory.node, ledger_memory(l)->node, b->t->ids.nr * sizeof *b->memory.node);
	return b;
}

/* What the container of that place was given, as its answer. */
static void fill(const struct ledger *l, const struct grants *g, unsigned place, struct decision *d)
{
	const struct grant *of = &g->of[place];
	const struct memory_container *memory = &g->memory[place];

	*d = (struct decision){
		.admit = true,
		.policy = of->policy,
		.advice = of->advice,
		.exclusive = !cpuset_empty(&of->cpus),
		.cpus = cpuset_empty(&of->cpus) ? *ledger_pool(l) : of->cpus,
		.mems = nodeset_empty(of->mems) ? ledger_memory(l)->usable : of->mems,
		.has_affinity = !of->affinity.any,
		.nodes = of->affinity.mask,
		.preferred = of->affinity.preferred,
		.nr_blocks = memory->nr_blocks,
		.cut_short = of->cut_short,
		.reasons = of->reasons,
	};
	memcpy(d->blocks, memory->blocks, sizeof d->blocks);
	if (of->cut_short)
		note(d, "the search for NUMA nodes was cut short by mergeVisitBudget: the best "
			"found is used");
}

/* In pod scope the pod's first container has settled it. */
static bool settled_by_its_pod(const struct ledger *l, const struct settings *s,
	const struct request *req, struct hint *affinity)
{
	bool of_pod = s->topology_scope == SCOPE_POD && *req->pod.uid;
	const struct holding *h = of_pod ? ledger_find_of_pod(l, req->pod.uid) : NULL;

	if (h)
		*affinity = (struct hint){
			.mask = h->decision.nodes,
			.any = !h->decision.has_affinity,
			.preferred = h->decision.preferred,
		};
	return h;
}

/* The runtime shows one container at a time: which others come, and of what kind, it does not say.
 */
static void note_assumption(
	const struct settings *s, const struct request *req, bool settled, struct decision *d)
{
	if (s->topology_scope != SCOPE_POD || *d->message)
		return;
	if (settled)
		note(d, "aligned with the pod's first container");
	else if (req->pod.totals.known)
		note(d, "assumed: the pod needs at once what its sandbox sums up");
	else
		note(d, "assumed: this container stands for its pod, whose sandbox tells no sums");
}

/* Before all else that is to be said of it. */
static void note_apart(enum pod_apart why, struct decision *d)
{
	char said[DECISION_MESSAGE_MAX];
	struct text t;

	d->apart = why;
	if (!why)
		return;
	(void)text_copy(said, sizeof said, d->message);
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "%s%s%s", pod_apart_text(why), *said ? "; " : "", said);
}

/* What the container was given by others goes into its ask. */
static void ask_for_attached(const struct pod *pod, struct ask *ask)
{
	ask->nr_devices = (unsigned)pod->nr_attached;
	for (unsigned r = 0; r < pod->nr_attached; r++)
		ask->device[r] = (struct device_ask){r, pod->attached[r].nr};
}

bool admit_has_tokens(const struct settings *s, const struct request *req)
{
	return s->device_plugin && req->allocated;
}

int admit_tokens(
	const struct ledger *l, const struct request *req, struct lease_claim *c, struct err *e)
{
	struct lease_user user;
	int rc = lease_user_of(req, &user, e);

	if (!rc)
		rc = leases_examine(
			ledger_leases(l), req->allocated, &user, request_exclusive_cpus(req), c, e);
	return rc ? rc : admit_token_owner(l, req, &c->tokens, e);
}

int admit_token_owner(const struct ledger *l, const struct request *req,
	const struct tokenset *tokens, struct err *e)
{
	struct lease_user user;
	int rc = lease_user_of(req, &user, e);

	if (rc || req->owner == TOKENS_OWN)
		return rc;
	if (req->owner == TOKENS_ANOTHERS)
		return err_set(e, EPERM,
			"annotation numafit.io/allocated: the kubelet's PodResources shows that "
			"these tokens are another container's");
	rc = leases_wait_for(ledger_leases(l), tokens, &user, e);
	if (rc < 0)
		return err_add(e, rc, "annotation numafit.io/allocated");
	if (rc || req->owner != TOKENS_NOT_SHOWN_YET)
		return 0;
	return err_set(e, EAGAIN,
		"annotation numafit.io/allocated: the kubelet's PodResources has not shown yet "
		"whose these tokens are; the kubelet tries again");
}

/* The tokens that the container has come for; it has none when it is refused. */
static bool claim_tokens(const struct ledger *l, const struct settings *s,
	const struct request *req, struct lease_claim *c, struct decision *d)
{
	struct err e;

	c->name = 0;
	if (!admit_has_tokens(s, req) || admit_tokens(l, req, c, &e) == 0)
		return true;
	d->reason = decision_reason("UnexpectedAdmissionError");
	(void)text_copy(d->message, sizeof d->message, e.text);
	return false;
}

void admit(const struct ledger *l, const struct settings *s, const struct request *req,
	struct budget *budget, struct arena *a, struct decision *d)
{
	struct ask ask = req->ask;
	struct pod pod = req->pod; /* as far as it is known: this container */
	struct lease_claim tokens;
	struct hint affinity;
	struct refusal why;
	struct grants g;

	assert(a->fixed);
	memset(d, 0, sizeof *d);
	d->apart = req->apart;
	d->policy = req->pod.has_policy ? req->pod.policy : s->topology_policy;
	pod.container = &ask;
	pod.nr = 1;
	pod.pod_level = false; /* no runtime says so */
	ask_for_attached(&pod, &ask);
	if (!claim_tokens(l, s, req, &tokens, d))
		return;
	ask.cpus_on = tokens.name ? tokens.on : NULL;
	struct books *b = books_of(l, s, &pod, tokens.name ? &tokens.tokens : NULL, a);
	if (!b) {
		refuse_for_room(d);
		return;
	}
	bool settled = settled_by_its_pod(l, s, req, &affinity);
	if (admission(b, &pod, settled ? &affinity : NULL, budget, a, &g, &why))
		refuse(d, &why);
	else
		fill(l, &g, 0, d);
	if (d->admit)
		note_assumption(s, req, settled, d);
	if (d->admit)
		note_apart(req->apart, d);
	if (d->admit && tokens.name) {
		d->lease = tokens.name;
		d->nodes = d->has_affinity ? nodeset_or(d->nodes, tokens.nodes) : tokens.nodes;
		d->has_affinity = true;
	}
}

static bool asks_for_tokens(const struct pod *pod)
{
	for (unsigned i = 0; i < pod->nr; i++)
		if (pod->container[i].tokens)
			return true;
	return false;
}

/* The scheduler sells CPUs and tokens: who asks for more of the one than of the other would get
 * what somebody else was sold. */
static void judge_tokens(const struct pod *pod, struct decision *d)
{
	struct text t;

	d->admit = true;
	for (unsigned i = 0; i < pod->nr && d->admit; i++) {
		const struct ask *c = &pod->container[i];
		unsigned cpus = pod_exclusive_cpus(pod, i);

		if (!c->tokens || c->tokens == cpus)
			continue;
		d->admit = false;
		d->reason = decision_reason("UnexpectedAdmissionError");
		text_init(&t, d->message, sizeof d->message);
		text_add(&t,
			"container %.63s of a %s pod asks for %llu of numafit.io/cpu and %u CPUs "
			"of "
			"its own: the two must be the same, in a Guaranteed pod",
			c->name, qos_name(pod->qos), (unsigned long long)c->tokens, cpus);
	}
}

void admit_pod(const struct ledger *l, const struct settings *s, const struct pod *pod,
	struct budget *budget, struct arena *a, struct decision *whole, struct decision **parts)
{
	struct pod asked = *pod;
	struct refusal why;
	struct grants g;

	assert(a->fixed && pod->container);
	asked.totals.known = false; /* they are rounded, and the containers are known */
	memset(whole, 0, sizeof *whole);
	whole->policy = pod->has_policy ? pod->policy : s->topology_policy;
	*parts = NULL;
	if (s->device_plugin && asks_for_tokens(pod)) {
		judge_tokens(pod, whole);
		return;
	}
	*parts = arena_array(a, pod->nr, sizeof **parts);
	struct books *b = books_of(l, s, &asked, NULL, a);
	if (!b || !*parts) {
		refuse_for_room(whole);
		whole->apart = POD_APART_TOO_LARGE;
		return;
	}
	if (admission(b, &asked, NULL, budget, a, &g, &why)) {
		refuse_pod(whole, pod, &why);
		whole->apart = why.no_room ? POD_APART_TOO_LARGE : POD_APART_NOT;
		return;
	}
	whole->cut_short = budget->cut;
	whole->admit = true;
	for (unsigned c = 0; c < g.nr; c++) {
		fill(l, &g, c, &(*parts)[c]);
		(*parts)[c].source = SOURCE_HELD;
	}
}

static uint64_t free_memory(const struct ledger *l)
{
	uint64_t bytes = 0;

	nodeset_each (n, ledger_topo(l)->nodes)
		bytes += ledger_memory(l)->node[n].free[0];
	return bytes;
}

/* Whether the merge for the pod's memory alone is refused: with CPUs it can only be more so. */
static void admit_memory_of_pod(const struct ledger *l, const struct settings *s,
	const struct pod *pod, struct budget *b, struct arena *a, struct decision *d)
{
	const struct request as_one = {
		.container_id = pod->sandbox_id,
		.ask.name = "",
		.pod = *pod,
		.ask.nr_memory = 1,
		.ask.memory = {{0, pod->totals.memory_bytes}},
	};

	admit(l, s, &as_one, b, a, d);
}

void admit_totals(const struct ledger *l, const struct settings *s, const struct pod *pod,
	struct budget *b, struct arena *a, struct decision *d)
{
	uint64_t need = pod->totals.known ? pod->totals.memory_bytes : 0;
	struct text t;

	*d = (struct decision){.admit = true, .policy = s->topology_policy};
	if (!need || pod->qos != QOS_GUARANTEED || s->memory_manager_policy != MANAGER_STATIC)
		return;
	if (ledger_find_of_pod(l, pod->uid)) /* started anew: part of it is what the pod has */
		return;
	if (s->topology_scope == SCOPE_POD && s->topology_policy != POLICY_NONE) {
		admit_memory_of_pod(l, s, pod, b, a, d);
		return;
	}
	if (need <= free_memory(l))
		return;
	d->admit = false;
	d->reason = decision_reason("UnexpectedAdmissionError");
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "the pod's containers sum up to %llu bytes of memory, %llu are free",
		(unsigned long long)need, (unsigned long long)free_memory(l));
}
