#ifndef NUMAFIT_ANSWER_H
#define NUMAFIT_ANSWER_H

#include <numafit/admit.h>
#include <numafit/budget.h>
#include <numafit/engine.h>

/* What a decision would come to, without changing anything: for questions about a node. */

/* The record that a decision would make. parts live in the arena of the call. */
struct answer {
	struct record record; /* GRANT and HOLD: it may be entered with engine_replay() */
	struct decision decision;
};

/* Decide q->pod, all of whose containers are known, as a whole; the searches spend *b, working
 * memory comes from *a, as for admit(). *out is a HOLD with a part for each of them, or a REFUSE
 * without a request. */
void answer_pod(
	const struct admit_question *q, struct budget *b, struct arena *a, struct answer *out);

/* Set the shared pool of out->record: it moves out of the way of what *out gives. */
void answer_follow_with_pool(const struct ledger *l, struct answer *out);

#endif
