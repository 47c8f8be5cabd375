#ifndef NUMAFIT_CODEC_ADVICE_JSON_H
#define NUMAFIT_CODEC_ADVICE_JSON_H

#include <codec/advice.h>

/* Our own advice, the value of numafit.io/numa-hint:
 * {"v":1,"node":"worker-0","uid":"b6d1...","gen":4711,"pfp":"pfp0v0...","at":1755655641250,"ttl":120,
 *  "mode":"prefer","scope":"container",
 *  "containers":{"pg":{"numa":"0-1","dist":1550,"res":[{"node":0,"resources":{"cpu":"4"}}]}}}
 * v, node, uid, at (ms since the epoch), ttl (s) and containers must be there. A key that is not
 * one of these is refused, as a misspelt "mode" must not turn require into prefer: more keys need
 * another v. advice_read() reads it. */

/* *h, whose format is not looked at, as text; the caller frees. Reading it gives the same advice.
 * 0; -EINVAL: reading would refuse it, the text says why; -E2BIG: longer than ADVICE_TEXT_MAX. */
int advice_json_write(const struct advice *h, const struct topo *t, char **out, struct err *e);

#endif
