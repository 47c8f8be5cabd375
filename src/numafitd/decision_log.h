#ifndef NUMAFIT_NUMAFITD_DECISION_LOG_H
#define NUMAFIT_NUMAFITD_DECISION_LOG_H

#include <numafit/engine.h>

struct daemon;

/* "cpu:1/1 memory:2/1": of each resource the fewest NUMA nodes with enough free
 * now, and the fewest that could have enough; "-" when no number of nodes has enough now. */
enum { HINTS_TEXT_MAX = 512 };
const char *hints_text(const struct decision *dec, char buf[HINTS_TEXT_MAX]);
/* Keep it for the status page, where there is one. */
void note_recent(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why);
/* Log it, and keep it. why: what the runtime was answered to a refusal, or "". */
void log_decision(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why, size_t nr_updates, uint64_t took_ns);
/* The engine's done hook: counts and logs what happened on the engine's own account. */
void log_record(void *ctx, const struct record *r);
/* An event of a part that speaks with somebody else; bad: somebody must act. */
void log_event(void *ctx, bool bad, const char *event, const char *text);

#endif
