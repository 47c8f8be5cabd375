/* The kubelet's side of the ledger: which tokens it has given out, and who still comes for them. */
#include "engine_state.h"

enum { MISSED_MS = 60 * 1000 }; /* a kubelet that has started shows its pods before */

static int change(struct engine *g, int64_t now_ms, enum record_op op, const struct lease *lease,
	bool must, struct err *e)
{
	struct record r = engine_record_of(g, now_ms, op, "kubelet", "");

	r.lease = lease;
	return engine_change(g, &r, must, e);
}

/* Names ascend with the time, and are not to be guessed: who comes with one has been given it. */
static int64_t name_at(const struct engine *g, int64_t now_ms)
{
	enum { NONCE_BITS = 20 };
	const uint32_t mask = (UINT32_C(1) << NONCE_BITS) - 1;

	if (!g->hooks.nonce || now_ms < 0 || now_ms > INT64_MAX >> NONCE_BITS)
		return now_ms;
	return now_ms << NONCE_BITS | (g->hooks.nonce(g->hooks.ctx) & mask);
}

int engine_allocate(struct engine *g, int64_t now_ms, const struct tokenset *tokens,
	char *annotation, struct err *e)
{
	const struct leases *leases = ledger_view(g->ledger)->leases;
	struct lease lease = {.tokens = *tokens};
	int rc = leases_may_allocate(leases, name_at(g, now_ms), tokens, &lease.name, e);

	if (!rc)
		rc = ledger_may_promise(g->ledger, tokens, e);
	if (!rc)
		rc = change(g, now_ms, RECORD_ALLOCATE, &lease, false, e);
	if (!rc)
		(void)lease_annotation(
			leases_latest(leases, tokens), tokens, &g->t->ids, annotation);
	return rc;
}

/* A container that runs has that decision from now on. */
static void enter_again(struct engine *g, int64_t now_ms, const char *cause,
	const struct holding *h, struct decision *d)
{
	auto_free char *id = xstrdup(h->request.container_id); /* outlives the entry */
	struct request req = engine_request_of(g, h, id);
	bool misplaced = h->misplaced;

	engine_settle(g, now_ms, cause, &req, d, true);
	ledger_set_misplaced(g->ledger, id, misplaced);
}

/* What a container that runs could not claim before: nobody knew of its tokens. */
static void claim_tokens_late(struct engine *g, int64_t now_ms, const struct holding *h)
{
	struct request req = h->request;
	struct decision d = h->decision;
	struct lease_user user;
	struct lease_claim c;

	req.owner = engine_token_owner(g, &req);
	if (h->state != HOLDING_LIVE || d.lease || !d.exclusive || d.source == SOURCE_HELD ||
		!admit_has_tokens(g->s, &req) || lease_user_of(&req, &user, NULL) < 0 ||
		leases_examine(ledger_view(g->ledger)->leases, req.allocated, &user,
			LEASE_ANY_NUMBER, &c, NULL) < 0 ||
		admit_token_owner(g->ledger, &req, &c.tokens, NULL) < 0 ||
		tokenset_count(&c.tokens) < request_exclusive_cpus(&req)) /* it may have fewer */
		return;
	d.lease = c.name;
	d.source = SOURCE_ADOPTED;
	enter_again(g, now_ms, "claim", h, &d);
}

/* What a container claimed that was found running before PodResources showed it, and is
 * another's: it keeps its CPUs, and the tokens wait for whose they are. */
static void withdraw_forged(struct engine *g, int64_t now_ms, const struct holding *h)
{
	struct request req = h->request;
	struct decision d = h->decision;

	if (!d.lease || d.source != SOURCE_ADOPTED ||
		engine_token_owner(g, &req) != TOKENS_ANOTHERS)
		return;
	d.lease = 0;
	enter_again(g, now_ms, "withdrawn", h, &d);
}

static struct tokenset in_both(const struct tokenset *a, const struct tokenset *b)
{
	struct tokenset both = {0};

	tokenset_each (k, a)
		if (tokenset_has(b, k))
			tokenset_add(&both, k);
	return both;
}

/* A kubelet that has just started shows nobody until it has heard of its pods: only what it has not
 * shown for a while in any answer is not there. */
static void note_missed(struct engine *g, int64_t now_ms, const struct tokenset *shown)
{
	struct tokenset leased, claimed, absent = {0};

	leases_tokens(ledger_view(g->ledger)->leases, &leased, &claimed);
	tokenset_each (k, &leased)
		if (!tokenset_has(shown, k))
			tokenset_add(&absent, k);
	g->missed = in_both(&g->missed, &absent);
	g->missed_before = in_both(&g->missed_before, &absent);
	int64_t ago_ms = now_ms - g->missed_since_ms; /* below 0: the clock was set back */
	if (g->missed_since_ms && ago_ms >= 0 && ago_ms < MISSED_MS)
		return;
	g->missed_before = g->missed;
	g->missed = absent;
	g->missed_since_ms = now_ms;
}

static unsigned give_up_stale(struct engine *g, int64_t now_ms, const struct tokenset *shown)
{
	struct lease stale = {.tokens = leases_stale(ledger_view(g->ledger)->leases, now_ms,
				      (int64_t)g->s->reclaim_after_ms, shown)};

	stale.tokens = in_both(&stale.tokens, &g->missed_before);
	unsigned nr = tokenset_count(&stale.tokens);

	return nr && change(g, now_ms, RECORD_GIVE_UP, &stale, false, NULL) == 0 ? nr : 0;
}

unsigned engine_see_tokens(struct engine *g, int64_t now_ms, const struct tokenset *shown)
{
	const struct leases *leases = ledger_view(g->ledger)->leases;
	struct lease news = {.tokens = leases_news(leases, shown)};

	if (tokenset_count(&news.tokens) && leases_may_adopt(leases, &news.tokens, NULL) == 0)
		(void)change(g, now_ms, RECORD_SHOWN, &news, false, NULL);
	for (size_t i = 0; i < ledger_count(g->ledger); i++)
		withdraw_forged(g, now_ms, ledger_at(g->ledger, i));
	for (size_t i = 0; i < ledger_count(g->ledger); i++)
		claim_tokens_late(g, now_ms, ledger_at(g->ledger, i));
	note_missed(g, now_ms, shown);
	return give_up_stale(g, now_ms, shown);
}

void engine_pod_is_gone(struct engine *g, int64_t now_ms, const char *cause, const char *pod_uid)
{
	struct record r = engine_record_of(g, now_ms, RECORD_POD_GONE, cause, pod_uid);

	if (*pod_uid && leases_has_pod(ledger_view(g->ledger)->leases, pod_uid) &&
		!ledger_find_of_pod(g->ledger, pod_uid))
		(void)engine_change(g, &r, true, NULL);
}
