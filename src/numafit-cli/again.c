#include <numafit-cli/again.h>

#include <numafit/mem.h>
#include <numafit/resize.h>
#include <numafit/text.h>
#include <string.h>

/* The shared pool moves out of the way of what is given; who has no CPUs of its own gets it. */
static void settle(const struct ledger *l, struct answer *out)
{
	struct record *r = &out->record;
	bool one = out->decision.admit && out->decision.exclusive;
	struct cpuset own = one ? out->decision.cpus : (struct cpuset){0};

	for (size_t i = 0; i < r->nr_parts; i++)
		if (r->parts[i].decision.exclusive)
			own = cpuset_or(own, &r->parts[i].decision.cpus);
	r->pool = one || r->nr_parts ? ledger_pool_without(l, &own) : ledger_view(l)->pool;
}

static void decide_container(const struct ledger *l, const struct settings *s,
	const struct record *r, struct arena *a, struct answer *out)
{
	struct budget b = budget_of(s->merge_visit_budget);

	admit(&(struct admit_question){l, s, .container = r->request}, &b, a, &out->decision, NULL);
	settle(l, out);
}

/* How the pool follows depends on what the container had: it is taken as recorded. */
static void decide_resize(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	const struct holding *h = ledger_find(l, r->container_id);
	uint64_t part = r->decision->steps; /* what others of its event had left it */
	struct budget b = part ? budget_all_of(part) : budget_of(s->merge_visit_budget);

	if (!h) { /* no container, no resize: the difference shows it */
		memset(&out->decision, 0, sizeof out->decision);
		return;
	}
	resize(l, s, h, r->request, &b, a, &out->decision);
	out->decision.steps = part;
	if (out->decision.admit && !out->decision.exclusive)
		out->decision.cpus = r->pool;
}

void decide_pod(const struct ledger *l, const struct settings *s, const struct pod *pod,
	struct arena *a, struct answer *out)
{
	struct budget b = budget_of(s->merge_visit_budget);
	struct record_part *parts = NULL;
	struct decision *decisions;

	admit(&(struct admit_question){l, s, .pod = pod}, &b, a, &out->decision, &decisions);
	if (out->decision.admit && decisions)
		parts = arena_array(a, pod->nr, sizeof *parts);
	for (size_t i = 0; parts && i < pod->nr; i++)
		parts[i] = (struct record_part){request_of_part(pod, i), decisions[i]};
	out->record = (struct record){
		.op = parts ? RECORD_HOLD : RECORD_REFUSE,
		.container_id = pod->sandbox_id,
		.decision = parts ? NULL : &out->decision,
		.pod = pod,
		.parts = parts,
		.nr_parts = parts ? pod->nr : 0,
	};
	settle(l, out);
	for (size_t i = 0; i < out->record.nr_parts; i++)
		if (!parts[i].decision.exclusive)
			parts[i].decision.cpus = out->record.pool;
}

static void decide_whole_pod(const struct ledger *l, const struct settings *s,
	const struct record *r, struct arena *a, struct answer *out)
{
	decide_pod(l, s, r->pod, a, out);
}

static void decide_totals(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	uint64_t part = r->decision->steps; /* what deciding the whole pod had left it */
	struct budget b = part ? budget_all_of(part) : budget_of(s->merge_visit_budget);

	admit(&(struct admit_question){l, s, .pod = &r->request->pod}, &b, a, &out->decision, NULL);
	out->decision.steps = part;
	settle(l, out);
}

static bool was_decided(const struct record *r)
{
	return r->op == RECORD_REFUSE ||
	       (r->op == RECORD_GRANT && r->decision->source == SOURCE_DECIDED);
}

static bool was_resized(const struct record *r)
{
	return r->op == RECORD_REFUSE || r->op == RECORD_GRANT;
}

static bool was_whole_pod(const struct record *r)
{
	if (r->op == RECORD_HOLD)
		return r->nr_parts && r->pod;
	return r->op == RECORD_REFUSE && r->pod;
}

static bool was_totals(const struct record *r)
{
	return r->op == RECORD_REFUSE && !r->pod;
}

/* What is decided at which event, and how. */
static const struct way {
	const char *cause;
	bool (*applies)(const struct record *r);
	void (*decide)(const struct ledger *l, const struct settings *s, const struct record *r,
		struct arena *a, struct answer *out);
} ways[] = {
	{"create", was_decided, decide_container},
	{"shadow", was_decided, decide_container},
	{"resize", was_resized, decide_resize},
	{"run-pod", was_whole_pod, decide_whole_pod},
	{"run-pod", was_totals, decide_totals},
};

bool decide_again(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (!text_equal(r->cause, ways[i].cause) || !ways[i].applies(r))
			continue;
		*out = (struct answer){.record = *r};
		ways[i].decide(l, s, r, a, out);
		if (!out->record.parts) {
			out->record.op = out->decision.admit ? RECORD_GRANT : RECORD_REFUSE;
			out->record.decision = &out->decision;
		}
		out->record.seq = r->seq;
		out->record.time_ms = r->time_ms;
		out->record.cause = r->cause;
		out->record.container_id = r->container_id;
		out->record.request = r->request;
		return true;
	}
	return false;
}
