#ifndef NUMAFIT_KUBELET_DRA_PB_H
#define NUMAFIT_KUBELET_DRA_PB_H

#include <codec/blob.h>
#include <kubelet/dra_plugin.h>
#include <numafit/err.h>

/* The messages of the kubelet's DRA plugin API as a driver reads and writes them. All that is
 * decoded lives in the arena, and so do the bytes of what is encoded. The decoder returns 0, or
 * with text -EBADMSG (no such message, or more than the arena holds) or -E2BIG. Encoders return 0,
 * or with text -EILSEQ (a string is not UTF-8: Go would refuse the whole answer), -ENOMEM,
 * -EMSGSIZE (more than the kubelet takes). */

#define DRA_PLUGIN_PATH(version, method)                                                           \
	"/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/" method
#define DRA_HEALTH_PATH(version) "/" version ".DRAResourceHealth/NodeWatchResources"

enum { DRA_MESSAGE_MAX = 4 << 20 /* the kubelet has grpc-go's default */ };
enum dra_version { DRA_V1BETA1, DRA_V1 };

/* The claims of NodePrepareResources or of NodeUnprepareResources, as they came: nothing of them is
 * checked, and of their texts the uid alone is known to be UTF-8, as it is the key of the answer.
 * -E2BIG: more than DRA_CLAIMS_MAX. */
int dra_claims_decode(struct blob message, struct arena *a, const struct dra_claim_ref **out,
	size_t *nr, struct err *e);

/* What is said of one claim: it is prepared, unprepared, or why it is not. */
int dra_prepared_encode(const struct dra_device *device, size_t nr, enum dra_version version,
	struct arena *a, struct blob *out, struct err *e);
int dra_prepare_error_encode(const char *text, struct arena *a, struct blob *out, struct err *e);
int dra_unprepare_error_encode(const char *text, struct arena *a, struct blob *out, struct err *e);

/* The answer to a call, of the bytes above; each uid once. A claim that is unprepared is the empty
 * message. */
struct dra_claim_answer {
	const char *uid;
	struct blob bytes;
};
int dra_answers_encode(const struct dra_claim_answer *answer, size_t nr, struct arena *a,
	struct blob *out, struct err *e);

/* A message of NodeWatchResources. */
int dra_health_encode(const struct dra_health *device, size_t nr, struct arena *a, struct blob *out,
	struct err *e);

#endif
