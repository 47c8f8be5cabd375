#include <numafit-cli/again.h>

#include <numafit/mem.h>
#include <numafit/resize.h>
#include <numafit/text.h>
#include <string.h>

/* The shared pool moves out of the way of what is given; a container without CPUs of its own gets
 * it. */
static void follow_with_pool(const struct ledger *l, struct answer *out)
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
	follow_with_pool(l, out);
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
	follow_with_pool(l, out);
	for (size_t i = 0; i < out->record.nr_parts; i++)
		if (!parts[i].decision.exclusive)
			parts[i].decision.cpus = out->record.pool;
}

static void decide_totals(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	uint64_t part = r->decision->steps; /* what deciding the whole pod had left it */
	struct budget b = part ? budget_all_of(part) : budget_of(s->merge_visit_budget);

	admit(&(struct admit_question){l, s, .pod = &r->request->pod}, &b, a, &out->decision, NULL);
	out->decision.steps = part;
	follow_with_pool(l, out);
}

bool decide_again(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	bool created = text_equal(r->cause, "create") || text_equal(r->cause, "shadow");
	bool refused = r->op == RECORD_REFUSE, granted = r->op == RECORD_GRANT;
	bool held = r->op == RECORD_HOLD && r->nr_parts;

	*out = (struct answer){.record = *r};
	if (created && (refused || (granted && r->decision->source == SOURCE_DECIDED)))
		decide_container(l, s, r, a, out);
	else if (text_equal(r->cause, "resize") && (refused || granted))
		decide_resize(l, s, r, a, out);
	else if (text_equal(r->cause, "run-pod") && r->pod && (refused || held))
		decide_pod(l, s, r->pod, a, out);
	else if (text_equal(r->cause, "run-pod") && refused && !r->pod)
		decide_totals(l, s, r, a, out);
	else
		return false;
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
