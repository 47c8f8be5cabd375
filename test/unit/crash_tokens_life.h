#ifndef CRASH_TOKENS_LIFE_H
#define CRASH_TOKENS_LIFE_H

#include "crash_tokens_rig.h"

/* What runtime and kubelet do in one life of the daemon, for test_crash_tokens.c. */

/* The runtime's side */

static struct nri_container shown(
	const struct rig *r, const struct pod_here *p, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&p->c, annotation);

	if (r->crash.memory == JOURNAL_ONLY && *p->c.placement) { /* it is the first one */
		c.annotations++;
		c.nr_annotations--;
	}
	return c;
}

static void call(struct rig *r, enum nri_call what, enum step step, const struct pod_here *p)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(r, p, annotation);

	r->step = step;
	fake_runtime_call(&r->crash.runtime, what, &c);
	crash_perhaps_kill(&r->crash);
}

/* What a life does */

/* Healthy tokens that nobody has, from there on upwards, mostly of one NUMA node. */
static struct given choose_tokens(struct rig *r)
{
	unsigned want = 1 + random_below(&r->crash.random, GIVEN_MAX);
	unsigned first = random_below(&r->crash.random, r->kubelet.nr_tokens);
	bool anywhere = random_chance(&r->crash.random, 20);
	struct given g = {0};

	for (unsigned i = first; i < r->kubelet.nr_tokens && g.nr < want; i++) {
		const struct plugin_token *t = &r->kubelet.token[i];

		if (t->healthy && !t->given &&
			(anywhere || t->node == r->kubelet.token[first].node))
			g.token[g.nr++] = i;
		i += anywhere ? random_below(&r->crash.random, GIVEN_MAX) : 0;
	}
	return g;
}

static void allocate(struct rig *r, struct pod_here *p, const struct given *g)
{
	r->asked = p;
	r->wanted = *g;
	r->step = STEP_ALLOCATE;
	crash_kubelet_allocate(&r->kubelet, g);
	crash_perhaps_kill(&r->crash);
}

static bool pods_api_pod(void *ctx, unsigned nr, struct known_pod *out);

static void send_pod(struct rig *r, enum pods_event_type type, const struct pod_here *p)
{
	struct known_pod pod;

	if (pods_api_pod(r, (unsigned)(p - r->pod), &pod))
		crash_kubelet_send(&r->kubelet, type, &pod);
}

static void admit_pod(struct rig *r, struct pod_here *p)
{
	enum pods_event_type type = p->admitted ? PODS_MODIFIED : PODS_ADDED;

	p->admitted = true;
	send_pod(r, type, p);
}

static void create(struct rig *r, struct pod_here *p)
{
	r->asked = p;
	if (!p->sandboxed) {
		call(r, NRI_CALL_RUN_POD, STEP_OTHER, p);
		return;
	}
	p->c.created_ns = ++r->crash.next;
	(void)snprintf(p->c.id, sizeof p->c.id, "c%u", r->crash.next);
	*p->c.cpus = *p->c.mems = *p->c.placement = '\0';
	call(r, NRI_CALL_CREATE, STEP_CREATE, p);
}

static void next_call(struct rig *r);

static void new_pod(struct rig *r, struct pod_here *p)
{
	struct given g = {0};

	*p = (struct pod_here){
		.c.cpu_milli = random_below(&r->crash.random, 4) * FAKE_MILLI_PER_CPU};
	(void)snprintf(p->c.pod, sizeof p->c.pod, "p%u", ++r->crash.next);
	(void)snprintf(p->c.sandbox, sizeof p->c.sandbox, "s%u", r->crash.next);
	if (r->busy_kubelet || random_chance(&r->crash.random, 50))
		g = choose_tokens(r);
	if (!g.nr) {
		admit_pod(r, p);
		next_call(r);
		return;
	}
	p->c.cpu_milli = g.nr * FAKE_MILLI_PER_CPU;
	allocate(r, p, &g);
}

/* Its tokens are the kubelet's again, whether the daemon hears of the pod's end or not. */
static void forget_pod(struct rig *r, struct pod_here *p)
{
	send_pod(r, PODS_DELETED, p);
	for (unsigned i = 0; i < p->given.nr; i++)
		r->kubelet.token[p->given.token[i]].given = false;
	*p = (struct pod_here){0};
}

/* What we have of the pod was its init container; the one that stays has its tokens, and perhaps
 * one more. */
static void allocate_for_next_container(struct rig *r, struct pod_here *p)
{
	struct given g = p->given;
	unsigned last = g.token[g.nr - 1] + 1;

	if (g.nr < GIVEN_MAX && last < r->kubelet.nr_tokens && r->kubelet.token[last].healthy &&
		!r->kubelet.token[last].given)
		g.token[g.nr++] = last;
	allocate(r, p, &g);
}

static void go_on_with_idle(struct rig *r, struct pod_here *p)
{
	struct pod_here gone = *p;

	if (has_tokens(p) && !p->sandboxed &&
		(r->busy_kubelet || random_chance(&r->crash.random, 25))) {
		allocate_for_next_container(r, p);
	} else if (random_chance(&r->crash.random, 70)) {
		create(r, p);
	} else {
		forget_pod(r, p);
		call(r, NRI_CALL_REMOVE_POD, STEP_OTHER, &gone);
	}
}

static void go_on_with_running(struct rig *r, struct pod_here *p)
{
	if (random_chance(&r->crash.random, 30)) {
		call(r, NRI_CALL_POST_START, STEP_OTHER, p);
		return;
	}
	p->c.runs = false; /* its process has ended, whether the daemon hears of it or not */
	if (random_chance(&r->crash.random, 30))
		create(r, p); /* and nobody says so */
	else
		call(r, NRI_CALL_STOP, STEP_OTHER, p);
}

/* One that the kubelet can allocate something for. */
static bool is_on_its_way_in(const struct pod_here *p)
{
	return !p->admitted || (has_tokens(p) && !p->sandboxed);
}

static struct pod_here *choose_pod(struct rig *r)
{
	unsigned first = random_below(&r->crash.random, PODS);

	for (unsigned i = first; r->busy_kubelet && i < first + PODS; i++)
		if (is_on_its_way_in(&r->pod[i % PODS]))
			return &r->pod[i % PODS];
	return &r->pod[first];
}

static void next_call(struct rig *r)
{
	struct pod_here *p;

	if (!r->crash.calls || r->crash.dead || !r->settled)
		return;
	p = choose_pod(r);
	if (!p->admitted)
		new_pod(r, p);
	else if (p->c.runs)
		go_on_with_running(r, p);
	else
		go_on_with_idle(r, p);
}

/* Whether the daemon knows of all tokens that are given out: with its journal from the beginning,
 * else once it has seen PodResources. */
static bool all_tokens_are_leased(struct rig *r)
{
	struct tokenset given = tokens_of_pods(r, false), leased, claimed;
	struct journal_fold f;
	bool all = true;

	crash_read_journal(&r->crash, &f);
	leases_tokens(ledger_view(engine_ledger(f.engine))->leases, &leased, &claimed);
	tokenset_each (k, &given)
		all = all && tokenset_has(&leased, k);
	journal_fold_fini(&f);
	return all;
}

/* A life's own steps begin when both the runtime and the kubelet have the daemon again. */
static void perhaps_settled(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead || r->settled || !r->synchronized || !r->kubelet.listed)
		return;
	if (!all_tokens_are_leased(r)) {
		if (r->crash.memory != ANNOTATIONS_ONLY)
			fail_msg("tokens that were given out are not in the journal");
		loop_timer_set(r->look, LOOK_AGAIN_MS);
		return;
	}
	r->settled = true;
	next_call(r);
}

#endif
