#ifndef NUMAFIT_APISERVER_CLAIM_GET_H
#define NUMAFIT_APISERVER_CLAIM_GET_H

#include <apiserver/api.h>
#include <numafit/resource_claim.h>

/* One GET of a ResourceClaim. */
struct claim_get;

enum claim_got {
	CLAIM_GOT,
	CLAIM_GONE,          /* there is none of that name, or its uid is another */
	CLAIM_NOT_ALLOCATED, /* not yet, or no more */
	CLAIM_NOT_NOW,       /* it may pass: no connection, a busy server; ask again */
	CLAIM_REFUSED,       /* no right to read it, or it cannot be read (claim_json_read()) */
	NR_CLAIM_GOT
};

struct claim_answer {
	enum claim_got got;
	struct resource_claim claim; /* CLAIM_GOT: valid during the callback */
	const char *text;            /* else: why, for a pod's event; never NULL */
	unsigned after_ms;           /* CLAIM_NOT_NOW: not before that, or 0 */
};

/* done() comes once, in a later turn, unless it is cancelled. Strings are copied; uid is checked.
 */
struct claim_get *claim_get(struct api *a, const char *ns, const char *name, const char *uid,
	void *ctx, void (*done)(void *ctx, const struct claim_answer *answer));
/* done() will not be called. NULL is fine; not once done() was called. */
void claim_get_cancel(struct claim_get *g);

#endif
