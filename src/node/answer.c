#include <numafit/answer.h>

void answer_follow_with_pool(const struct ledger *l, struct answer *out)
{
	struct record *r = &out->record;
	bool one = out->decision.admit && out->decision.exclusive;
	struct cpuset own = one ? out->decision.cpus : (struct cpuset){0};

	for (size_t i = 0; i < r->nr_parts; i++)
		if (r->parts[i].decision.exclusive)
			own = cpuset_or(own, &r->parts[i].decision.cpus);
	r->pool = one || r->nr_parts ? ledger_pool_without(l, &own) : ledger_view(l)->pool;
}

/* Containers without CPUs of their own have the pool. */
static void give_pool(struct record_part *parts, size_t nr, const struct cpuset *pool)
{
	for (size_t i = 0; i < nr; i++)
		if (!parts[i].decision.exclusive)
			parts[i].decision.cpus = *pool;
}

void answer_pod(
	const struct admit_question *q, struct budget *b, struct arena *a, struct answer *out)
{
	struct record_part *parts = NULL;
	struct decision *decisions;
	size_t nr = 0;

	admit(q, b, a, &out->decision, &decisions);
	if (out->decision.admit && decisions) {
		nr = admit_nr_parts(q->pod, decisions);
		parts = arena_array(a, nr, sizeof *parts);
	}
	if (parts)
		record_parts(q->pod, decisions, nr, parts);
	out->record = (struct record){
		.op = parts ? RECORD_HOLD : RECORD_REFUSE,
		.container_id = q->pod->sandbox_id,
		.decision = parts ? NULL : &out->decision,
		.pod = q->pod,
		.parts = parts,
		.nr_parts = parts ? nr : 0,
	};
	answer_follow_with_pool(q->ledger, out);
	give_pool(parts, out->record.nr_parts, &out->record.pool);
}
