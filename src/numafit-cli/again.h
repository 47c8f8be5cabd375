#ifndef NUMAFIT_CLI_AGAIN_H
#define NUMAFIT_CLI_AGAIN_H

#include <numafit/admit.h>
#include <numafit/answer.h>
#include <numafit/engine.h>

/* Deciding outside of the daemon, from a ledger as it was or is. Nothing is changed. */

/* Decide what was decided in *r once more, from the ledger and settings that it was decided from:
 * *out is what the record should have been. False: it was not decided there (taken over, handed
 * on, given back, carried over from an earlier journal). Working memory from *a, a fixed arena of
 * ADMIT_ARENA_BYTES like the daemon's. */
bool decide_again(const struct ledger *l, const struct settings *s, const struct record *r,
	struct arena *a, struct answer *out);

/* A refusal that is in the journal, and what it was decided on. */
struct refusal_again {
	struct admit_question question; /* on the node as it was, for diagnose() */
	struct answer answer;
};
/* Decide a record that refuses once more, with the ledger as it is in *f now: *out, which points
 * into *f and *r, can be asked why. False: it cannot be decided again, or is admitted, as another
 * numafit had decided. Working memory as for decide_again(). */
struct journal_fold;
bool refusal_decide_again(const struct journal_fold *f, const struct record *r, struct arena *a,
	struct refusal_again *out);

/* Decide the pod, all of whose containers are known, as a whole. *out is a HOLD with a part for
 * each of them, or a REFUSE without a request. */
void decide_pod(const struct ledger *l, const struct settings *s, const struct pod *pod,
	struct arena *a, struct answer *out);

/* Decide a share of a claim (share_request()) that is not held. *out is a HOLD, or a REFUSE with
 * the request. */
void decide_share(const struct ledger *l, const struct settings *s, const struct request *req,
	struct arena *a, struct answer *out);

#endif
