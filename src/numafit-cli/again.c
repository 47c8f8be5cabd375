#include <numafit-cli/again.h>

#include <numafit-cli/journal_fold.h>
#include <numafit/mem.h>
#include <numafit/resize.h>
#include <numafit/shares.h>
#include <numafit/text.h>
#include <string.h>

static void decide_container(const struct ledger *l, const struct settings *s,
	const struct record *r, struct arena *a, struct answer *out)
{
	struct budget b = budget_of(s->merge_visit_budget);

	admit(&(struct admit_question){l, s, .container = r->request}, &b, a, &out->decision, NULL);
	answer_follow_with_pool(l, out);
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

	answer_pod(&(struct admit_question){l, s, .pod = pod}, &b, a, out);
}

static void decide_totals(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out)
{
	uint64_t part = r->decision->steps; /* what deciding the whole pod had left it */
	struct budget b = part ? budget_all_of(part) : budget_of(s->merge_visit_budget);

	admit(&(struct admit_question){l, s, .pod = &r->request->pod}, &b, a, &out->decision, NULL);
	out->decision.steps = part;
	answer_follow_with_pool(l, out);
}

void decide_share(const struct ledger *l, const struct settings *s, const struct request *req,
	struct arena *a, struct answer *out)
{
	struct budget b = budget_of(s->merge_visit_budget);
	struct record_part *part = arena_alloc(a, sizeof *part);

	admit(&(struct admit_question){l, s, .container = req}, &b, a, &out->decision, NULL);
	out->record = (struct record){.op = RECORD_REFUSE,
		.container_id = req->container_id,
		.request = req,
		.decision = &out->decision,
		.in_one_line = true};
	if (part && out->decision.admit) {
		out->decision.source = SOURCE_HELD;
		*part = (struct record_part){*req, out->decision};
		out->record.op = RECORD_HOLD;
		out->record.request = NULL;
		out->record.decision = NULL;
		out->record.parts = part;
		out->record.nr_parts = 1;
	}
	answer_follow_with_pool(l, out);
}

/* Whether an entry is in force is up to the daemon's mode, and journals of 0.2.0 do not say it:
 * this is taken as recorded. Who is left as it runs was decided. */
static void take_who_placed(const struct decision *then, struct decision *now)
{
	if (then->admit && now->admit && !decision_is_left(then) && !decision_is_left(now))
		now->placed_by = then->placed_by;
}

static void take_who_placed_parts(const struct record *r, struct arena *a, struct record *again)
{
	const size_t nr = again->nr_parts;
	struct record_part *parts = arena_array(a, nr, sizeof *parts);

	if (!parts) /* the difference shows it */
		return;
	for (size_t i = 0; i < nr; i++) {
		parts[i] = again->parts[i];
		if (i < r->nr_parts)
			take_who_placed(&r->parts[i].decision, &parts[i].decision);
	}
	again->parts = parts;
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
	else if (text_equal(r->cause, "prepare") && held &&
		 !shares_find(l, r->parts[0].request.pod.uid, r->parts[0].request.ask.place))
		decide_share(l, s, &r->parts[0].request, a, out);
	else
		return false;
	if (out->record.parts) {
		take_who_placed_parts(r, a, &out->record);
	} else {
		if (r->decision)
			take_who_placed(r->decision, &out->decision);
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

bool refusal_decide_again(const struct journal_fold *f, const struct record *r, struct arena *a,
	struct refusal_again *out)
{
	const struct ledger *l = engine_ledger(f->engine);
	const struct pod *pod = r->pod ? r->pod : &r->request->pod;
	bool of_pod = text_equal(r->cause, "run-pod");

	out->question = (struct admit_question){l, &f->settings,
		.container = of_pod ? NULL : r->request, .pod = of_pod ? pod : NULL};
	return decide_again(l, &f->settings, r, a, &out->answer) && !out->answer.decision.admit;
}
