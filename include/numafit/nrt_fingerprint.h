#ifndef NUMAFIT_NRT_FINGERPRINT_H
#define NUMAFIT_NRT_FINGERPRINT_H

#include <numafit/err.h>
#include <stddef.h>
#include <stdint.h>

/* A fingerprint of which pods a node runs, so that a scheduler knows whether a
 * NodeResourceTopology already has in it what it knows of (k8stopologyawareschedwg/podfingerprint,
 * version v001). Only namespace and name go in; the order does not matter, repetition does. */

/* XXH64 of the len bytes at data. */
uint64_t xxh64(const void *data, size_t len, uint64_t seed);
/* That of a text, with seed 0. */
uint64_t xxh64_text(const char *text);

/* One pod's part in it. */
uint64_t fingerprint_pod(const char *ns, const char *name);

enum { FINGERPRINT_TEXT_MAX = 25 };
/* "pfp0v001" and 16 hexadecimal digits of the pods' parts, into text of FINGERPRINT_TEXT_MAX bytes.
 * The parts are used up. Returns text. */
const char *fingerprint_text(char *text, uint64_t *pods, size_t nr);
/* Whether said is the fingerprint of these pods. 0; -EINVAL: it is none; -ENOTSUP: of another
 * version; -ESTALE: of other pods. The parts are used up. */
int fingerprint_check(const char *said, uint64_t *pods, size_t nr, struct err *e);

#endif
