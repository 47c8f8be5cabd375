/* The one way in: what is known of a container, of a pod, or of a pod's sums; then hints, merge,
 * verdict and allocation (admission.c), on books that the ledger lends; then the answer. Refusals
 * carry the kubelet's reason and message, so that dashboards know them. */
#include <numafit/admit.h>

#include "spread.h"

#include <numafit/admission.h>
#include <numafit/leases.h>
#include <numafit/number.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Facts */

/* All that is known before anything is merged. */
struct facts {
	struct pod pod;
	struct ask ask; /* of a container whose pod's others are not known: the pod has it alone */
	const struct lease_claim *tokens; /* that it has come for; NULL: none */
	unsigned share_on[NODES_MAX];     /* of a claim's share: its CPUs, all on one NUMA node */
	bool settled;                     /* the pod's first container has settled where it is: */
	struct hint affinity;
};

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
		rc = leases_examine(ledger_view(l)->leases, req->allocated, &user,
			request_exclusive_cpus(req), c, e);
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
	rc = leases_wait_for(ledger_view(l)->leases, tokens, &user, e);
	if (rc < 0)
		return err_add(e, rc, "annotation numafit.io/allocated");
	if (rc || req->owner != TOKENS_NOT_SHOWN_YET)
		return 0;
	return err_set(e, EAGAIN,
		"annotation numafit.io/allocated: the kubelet's PodResources has not shown yet "
		"whose these tokens are; the kubelet tries again");
}

/* False: the container is refused. *claim is for the tokens, if it has come for some. */
static bool know_tokens(const struct admit_question *q, struct facts *f, struct lease_claim *claim,
	struct decision *d)
{
	struct err e;

	if (!admit_has_tokens(q->settings, q->container))
		return true;
	if (admit_tokens(q->ledger, q->container, claim, &e) == 0) {
		f->tokens = claim;
		f->ask.cpus_on = claim->on;
		return true;
	}
	(void)decision_refuse(d, REFUSED_FOR_TOKENS, "UnexpectedAdmissionError", "%s", e.text);
	return false;
}

/* Any entry of the pod that is supposed to be there, or NULL. */
static const struct holding *find_supposed_of_pod(const struct admit_question *q, const char *uid)
{
	if (!*uid || q->suppose.empty)
		return NULL;
	if (!q->suppose.gone)
		return ledger_find_of_pod(q->ledger, uid);
	for (size_t i = 0; i < ledger_count(q->ledger); i++)
		if (!q->suppose.gone[i] &&
			text_equal(ledger_at(q->ledger, i)->request.pod.uid, uid))
			return ledger_at(q->ledger, i);
	return NULL;
}

/* False: the container is refused for a wish that cannot be read. */
static bool know_wishes(const struct ask *c, struct decision *d)
{
	if (c->odd_wish)
		(void)decision_refuse(
			d, REFUSED_FOR_WISH, "UnexpectedAdmissionError", "%s", c->odd_wish);
	return !c->odd_wish;
}

/* A container whose pod's others are not known. False: it is refused. */
static bool know_container(const struct admit_question *q, struct facts *f,
	struct lease_claim *claim, struct decision *d)
{
	const struct holding *first = NULL;

	f->ask = q->container->ask;
	f->pod = q->container->pod;
	f->pod.own = NULL; /* it was to be shared out as its sandbox started */
	f->pod.nr = 1;
	f->pod.container = &f->ask;
	f->ask.nr_devices = (unsigned)f->pod.nr_attached;
	for (unsigned r = 0; r < f->pod.nr_attached; r++)
		f->ask.device[r] = (struct device_ask){r, f->pod.attached[r].nr};
	if (q->settings->topology_scope == SCOPE_POD)
		first = find_supposed_of_pod(q, f->pod.uid);
	f->settled = first;
	if (first)
		f->affinity = (struct hint){
			.mask = first->decision.nodes,
			.any = !first->decision.has_affinity,
			.preferred = first->decision.preferred,
		};
	if (q->suppose.settled) {
		f->settled = true;
		f->affinity = *q->suppose.settled;
	}
	d->apart = q->container->apart;
	if (!nodeset_empty(f->ask.share_of)) {
		f->share_on[nodeset_next(f->ask.share_of, 0)] =
			(unsigned)(f->ask.cpu_milli / MILLI_PER_CPU);
		f->ask.cpus_on = f->share_on;
	}
	return know_wishes(&f->ask, d) && know_tokens(q, f, claim, d);
}

/* numafit.io/cpu must equal cpu: the scheduler counts both, and a pod with more CPUs than tokens
 * would get CPUs whose tokens another pod has. False: no container asks for tokens. */
static bool judge_tokens(const struct pod *pod, struct decision *d)
{
	bool asks = false;

	d->admit = true;
	for (unsigned i = 0; i < pod->nr && d->admit; i++) {
		const struct ask *c = &pod->container[i];
		unsigned cpus = pod_exclusive_cpus(pod, i);

		asks = asks || c->tokens;
		if (!c->tokens || c->tokens == cpus)
			continue;
		(void)decision_refuse(d, REFUSED_FOR_TOKENS, "UnexpectedAdmissionError",
			"container %.63s of a %s pod asks for %llu of numafit.io/cpu and %u CPU%s "
			"of its own: the two must be the same, in a Guaranteed pod",
			c->name, qos_words[pod->qos], (unsigned long long)c->tokens, cpus,
			text_plural(cpus));
	}
	return asks;
}

/* Books */

/* As if those entries were not there. */
static void suppose_gone(const struct admit_question *q, struct books *b)
{
	const struct ledger_view *now = ledger_view(q->ledger);
	struct cpuset held = {0}, left = {0};

	for (size_t i = 0; i < ledger_count(q->ledger); i++) {
		const struct decision *d = &ledger_at(q->ledger, i)->decision;

		if (!decision_is_booked(d))
			continue; /* booked with what it is part of */
		if (q->suppose.gone[i]) {
			memory_release(&b->memory, d->blocks, d->nr_blocks);
			continue;
		}
		held = d->exclusive ? cpuset_or(held, &d->cpus) : held;
		left = cpuset_or(left, &d->left_on);
	}
	b->shared = ledger_all_cpus(q->ledger);
	b->shared = cpuset_minus(b->shared, &held);
	left = cpuset_minus(now->left, &left);
	b->promised = cpuset_minus(b->promised, &left);
}

static void suppose_empty(const struct admit_question *q, struct books *b)
{
	bool keep_groups = b->memory.keep_groups;

	memory_init(&b->memory, b->t, b->s);
	b->memory.keep_groups = keep_groups;
	b->shared = ledger_all_cpus(q->ledger);
	b->promised = (struct cpuset){0};
}

/* What nobody holds, by the ledger, with the CPUs of its own tokens: a copy to decide on. NULL: the
 * arena's limit is reached. */
static struct books *books_of(
	const struct admit_question *q, const struct facts *f, struct arena *a)
{
	const struct ledger *l = q->ledger;
	const struct settings *s = q->settings;
	struct books *b = arena_alloc(a, sizeof *b);
	const struct cpuset all = ledger_all_cpus(l), shareable = ledger_shareable_cpus(l);
	unsigned cpus = 0;

	if (!b)
		return NULL;
	b->resource = f->pod.attached; /* given already: nobody else holds anything of them */
	b->nr_resources = (unsigned)f->pod.nr_attached;
	for (size_t r = 0; r < b->nr_resources; r++) {
		b->held[r] = arena_array(a, b->resource[r].nr, sizeof *b->held[r]);
		if (!b->held[r])
			return NULL;
	}
	if (f->pod.own)
		cpus = qos_exclusive_cpus(f->pod.qos, f->pod.own->cpu_milli);
	for (unsigned i = 0; i < f->pod.nr && !cpus; i++)
		cpus = pod_exclusive_cpus(&f->pod, i);
	if (cpus)
		b->promised = ledger_promised_cpus(l, f->tokens ? &f->tokens->tokens : NULL);
	b->t = ledger_view(l)->topo;
	b->s = s;
	b->reserved = s->reserved_cpus;
	b->shared = cpuset_minus(all, &ledger_view(l)->held);
	b->unshared = cpuset_minus(all, &shareable);
	b->keep_shared = q->suppose.any_pool ? 0 : settings_pool_minimum(s);
	b->memory.keep_groups = ledger_view(l)->memory.keep_groups;
	memcpy(b->memory.node, ledger_view(l)->memory.node, b->t->ids.nr * sizeof *b->memory.node);
	if (q->suppose.gone)
		suppose_gone(q, b);
	if (q->suppose.empty)
		suppose_empty(q, b);
	return b;
}

const struct books *admit_books(const struct admit_question *q, struct arena *a)
{
	struct decision ignored = {0};
	struct lease_claim claim;
	struct facts f = {0};

	if (q->container)
		(void)know_container(q, &f, &claim, &ignored);
	else
		f.pod = *q->pod;
	return books_of(q, &f, a);
}

/* Answers */

static void admit_refuse(struct decision *d, const struct refusal *why)
{
	d->admit = false;
	d->cause = why->cause;
	d->reason = decision_reason(why->reason);
	assert(d->reason);
	d->cut_short = why->cut_short;
	d->reasons = why->reasons;
	d->advice = why->advice;
	(void)text_copy(d->message, sizeof d->message, why->message);
}

static const struct refusal no_room = {
	.reason = "UnexpectedAdmissionError",
	.message = "Allocate failed due to the decision needing more working memory than there is, "
		   "which is unexpected",
	.of_pod = true,
	.cause = REFUSED_FOR_ROOM,
};

static void leave_alone(struct decision *d)
{
	d->placed_by = PLACED_LEFT;
	(void)text_copy(d->message, sizeof d->message,
		"left to itself: its namespace's section of the settings has cpus: untouched, and "
		"force");
}

/* What a container, or a pod that has its own resources as one, was given, as its answer. ask: of a
 * container. */
static void fill(const struct ledger *l, const struct ask *ask, const struct grant *of,
	const struct memory_container *memory, struct decision *d)
{
	const struct ledger_view *now = ledger_view(l);
	const bool exclusive = !cpuset_empty(&of->cpus);

	*d = (struct decision){
		.admit = true,
		.policy = of->policy,
		.advice = of->advice,
		.exclusive = exclusive,
		.cpus = exclusive ? of->cpus : ledger_common_cpus(l, &ask->wishes, &now->pool),
		.mems = nodeset_empty(of->mems) ? now->memory.usable : of->mems,
		.has_affinity = !of->affinity.any,
		.nodes = of->affinity.mask,
		.preferred = of->affinity.preferred,
		.nr_blocks = memory->nr_blocks,
		.cut_short = of->cut_short,
		.reasons = of->reasons,
	};
	memcpy(d->blocks, memory->blocks, sizeof d->blocks);
	if (of->cut_short)
		(void)text_copy(d->message, sizeof d->message,
			"the search for NUMA nodes was cut short by mergeVisitBudget: the best "
			"found is used");
	if (!exclusive && ask->wishes.cpus == WISH_CPUS_UNBOUNDED)
		leave_alone(d);
}

/* Each container's part, and behind them what the pod has as one, if it does. */
static void fill_parts(const struct ledger *l, const struct pod *pod, const struct grants *g,
	struct decision *parts)
{
	struct spread_load load = {0};
	struct grant of_pod = g->of[0];
	const struct memory_container *memory = &g->pod_memory;
	bool within = g->as_one && (!cpuset_empty(&g->pod_cpus) || memory->nr_blocks);

	for (unsigned i = 0; i < g->nr; i++) {
		fill(l, &pod->container[i], &g->of[i], &g->memory[i], &parts[i]);
		parts[i].source = SOURCE_HELD;
		parts[i].within_pod = within;
		spread_over_pool(l, &pod->container[i], &load, &parts[i]);
	}
	if (!within)
		return;
	of_pod.cpus = g->pod_cpus;
	of_pod.mems = (struct nodeset){0};
	for (unsigned i = 0; i < memory->nr_blocks; i++)
		of_pod.mems = nodeset_or(of_pod.mems, memory->blocks[i].nodes);
	fill(l, pod->own, &of_pod, memory, &parts[g->nr]);
	parts[g->nr].source = SOURCE_HELD;
}

size_t admit_nr_parts(const struct pod *pod, const struct decision *parts)
{
	return pod->nr + (pod->nr && parts[0].within_pod);
}

/* What the answer for a lone container says beside what it gives. */
static void finish_container(
	const struct admit_question *q, const struct facts *f, struct decision *d)
{
	const char *assumed = "";
	char said[DECISION_MESSAGE_MAX];
	struct text t;

	/* the runtime shows one container at a time: which others come, it does not say */
	if (q->container->pod.pod_level && q->settings->gates.pod_level_resource_managers &&
		!q->container->ask.guaranteed)
		assumed = "its pod has resources of its own, or may have, and was not known as its "
			  "sandbox started: it shares the node's CPUs (podsAPI.enabled or "
			  "podsWatch.enabled lets numafitd know pods; create this one again)";
	else if (q->settings->topology_scope == SCOPE_POD && !*d->message) {
		if (f->settled)
			assumed = "aligned with the pod's first container";
		else if (f->pod.totals.known)
			assumed = "assumed: the pod needs at once what its sandbox sums up";
		else
			assumed = "assumed: this container stands for its pod, whose sandbox has "
				  "no sums";
	}
	(void)text_copy(said, sizeof said, *assumed ? assumed : d->message);
	d->apart = q->container->apart;
	/* what was left out comes before all else that is to be said of it */
	const char *const texts[] = {
		pod_apart_texts[d->apart], claims_known_texts[q->container->claims], said};
	text_init(&t, d->message, sizeof d->message);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		text_add(&t, "%s%s", t.len && *texts[i] ? "; " : "", texts[i]);
	if (!f->tokens)
		return;
	d->lease = f->tokens->name;
	d->nodes = d->has_affinity ? nodeset_or(d->nodes, f->tokens->nodes) : f->tokens->nodes;
	d->has_affinity = true;
}

/* Only sums are known */

/* CPUs are not looked at: any of them may be for the shared pool. Where a pod is aligned as a whole
 * the merge for its memory alone says whether it is refused: with CPUs it can only be more so. */
static void judge_sums(
	const struct admit_question *q, struct budget *b, struct arena *a, struct decision *d)
{
	const struct settings *s = q->settings;
	uint64_t need = q->pod->totals.known ? q->pod->totals.memory_bytes : 0, left = 0;
	const struct facts f = {.pod = *q->pod};
	const struct request as_one = {
		.container_id = q->pod->sandbox_id,
		.ask.name = "",
		.pod = *q->pod,
		.ask.nr_memory = 1,
		.ask.memory = {{0, need}},
	};

	d->admit = true;
	if (!need || q->pod->qos != QOS_GUARANTEED || s->memory_manager_policy != MANAGER_STATIC)
		return;
	if (find_supposed_of_pod(q, q->pod->uid)) /* part of it is what the pod has */
		return;
	if (pod_is_aligned_as_one(s, q->pod)) {
		const struct admit_question one = {
			q->ledger, s, .container = &as_one, .suppose = q->suppose};

		admit(&one, b, a, d, NULL);
		return;
	}
	const struct books *books = books_of(q, &f, a);
	if (!books) {
		admit_refuse(d, &no_room);
		return;
	}
	nodeset_each (n, books->t->nodes)
		left += books->memory.node[n].free[0];
	if (need > left)
		(void)decision_refuse(d, REFUSED_ON_BOOKS, "UnexpectedAdmissionError",
			"the pod's containers sum up to %llu bytes of memory, %llu are free",
			(unsigned long long)need, (unsigned long long)left);
}

/* The way */

/* Who may have isolated CPUs is tried from the strictest answer on: containers that do not wish for
 * them get them last, and those that would like them get others rather than none. */
static enum isolated_use strictest_use(const struct topo *t, const struct pod *pod)
{
	const struct cpuset there = cpuset_and(t->isolated, &t->cpus);
	bool any = pod->own;

	for (unsigned i = 0; i < pod->nr; i++) {
		any = any || pod_exclusive_cpus(pod, i);
		if (pod->container[i].wishes.isolated == WISH_ISOLATED_PREFER)
			return cpuset_empty(&there) ? ISOLATED_FOR_ALL : ISOLATED_FOR_WHO_WISHES;
	}
	return cpuset_empty(&there) || !any ? ISOLATED_FOR_ALL : ISOLATED_FOR_NOBODY;
}

static enum isolated_use next_use(enum isolated_use use)
{
	return use == ISOLATED_FOR_WHO_WISHES ? ISOLATED_FOR_NOBODY : ISOLATED_FOR_ALL;
}

static int admit_on_books(const struct admit_question *q, const struct facts *f,
	struct budget *budget, struct arena *a, struct grants *g, struct refusal *why)
{
	const struct hint *settled = f->settled ? &f->affinity : NULL;
	enum isolated_use use = strictest_use(ledger_view(q->ledger)->topo, &f->pod);

	for (;; use = next_use(use)) {
		struct books *b = books_of(q, f, a);

		*why = no_room;
		if (!b)
			return -EPERM;
		b->isolated = use;
		if (!admission(b, &f->pod, settled, budget, a, g, why))
			return 0;
		if (use == ISOLATED_FOR_ALL)
			return -EPERM;
	}
}

static void admit_pod(const struct admit_question *q, struct budget *budget, struct arena *a,
	struct decision *d, struct decision **parts)
{
	assert(parts);
	struct decision *given = arena_array(a, q->pod->nr + 1, sizeof *given);
	struct refusal why = no_room;
	struct facts f = {.pod = *q->pod};
	struct grants g;

	for (size_t i = 0; i < q->pod->nr; i++)
		if (!know_wishes(&q->pod->container[i], d)) {
			d->in_the_way = &q->pod->container[i];
			return;
		}
	f.pod.totals.known = false; /* they are rounded, and the containers are known */
	if (q->settings->device_plugin && judge_tokens(q->pod, d))
		return; /* there is nothing to give */
	if (!given || admit_on_books(q, &f, budget, a, &g, &why)) {
		admit_refuse(d, &why);
		d->apart = why.cause == REFUSED_FOR_ROOM ? POD_APART_TOO_LARGE : POD_APART_NOT;
		if (why.of_pod)
			return;
		d->in_the_way = &q->pod->container[why.place];
		/* the events are the pod's, and none of them names a container */
		(void)decision_refuse(d, d->cause, why.reason, "container %.63s: %s",
			q->pod->container[why.place].name, why.message);
		return;
	}
	fill_parts(q->ledger, q->pod, &g, given);
	d->admit = true;
	d->cut_short = budget->cut;
	*parts = given;
}

static void admit_container(
	const struct admit_question *q, struct budget *budget, struct arena *a, struct decision *d)
{
	struct facts f = {0};
	struct spread_load load = {0};
	struct lease_claim claim;
	struct refusal why;
	struct grants g;

	if (!know_container(q, &f, &claim, d))
		return;
	if (admit_on_books(q, &f, budget, a, &g, &why)) {
		admit_refuse(d, &why);
		return;
	}
	fill(q->ledger, &f.ask, g.of, g.memory, d);
	spread_over_pool(q->ledger, &f.ask, &load, d);
	finish_container(q, &f, d);
}

/* A scheduler has chosen the NUMA node: all of it lies there, whatever the node's policy is for
 * others. */
static void admit_share(
	const struct admit_question *q, struct budget *budget, struct arena *a, struct decision *d)
{
	struct settings strict = *q->settings;
	struct admit_question on_one_node = *q;

	strict.cpu_manager_policy = MANAGER_STATIC;
	strict.memory_manager_policy = MANAGER_STATIC;
	strict.topology_policy = POLICY_SINGLE_NUMA_NODE;
	strict.topology_scope = SCOPE_CONTAINER;
	on_one_node.settings = &strict;
	admit_container(&on_one_node, budget, a, d);
}

void admit(const struct admit_question *q, struct budget *budget, struct arena *a,
	struct decision *d, struct decision **parts)
{
	const struct pod *pod = q->container ? &q->container->pod : q->pod;

	assert(a->fixed);
	*d = (struct decision){.policy = pod_policy(q->settings, pod)};
	if (parts)
		*parts = NULL;
	if (q->container && q->container->shares)
		shares_decide(q->ledger, q->container, d);
	else if (q->container && !nodeset_empty(q->container->ask.share_of))
		admit_share(q, budget, a, d);
	else if (q->container)
		admit_container(q, budget, a, d);
	else if (pod->container)
		admit_pod(q, budget, a, d, parts);
	else
		judge_sums(q, budget, a, d);
}
