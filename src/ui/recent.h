#ifndef NUMAFIT_UI_RECENT_H
#define NUMAFIT_UI_RECENT_H

#include <numafit/decision.h>
#include <numafit/request.h>

/* The last decisions, for the status page: kept in memory, from the daemon's start on. */

enum { RECENT_MAX = 50 };
struct recent;

struct recent *recent_new(void);
void recent_free(struct recent *r);

/* A decision was made at that time for that cause ("create"); why: the line that a refusal was
 * answered with, or "". All is copied; names that are longer than Kubernetes allows are cut. */
struct recent_note {
	int64_t time_ms;
	const char *cause, *why;
};
void recent_add(struct recent *r, const struct recent_note *n, const struct request *req,
	const struct decision *d);

/* All of them as a JSON document, the newest first; the caller frees. ids name the NUMA nodes. */
char *recent_json(const struct recent *r, const struct node_ids *ids);

#endif
