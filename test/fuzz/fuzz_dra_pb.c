#include <assert.h>
#include <errno.h>
#include <kubelet/dra_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20 };

/* What was read can be written: the claims' names as those of devices. */
static void check_answers(const struct dra_claim_ref *ref, size_t nr, struct arena *a)
{
	struct dra_claim_answer *answer = arena_array(a, nr, sizeof *answer);
	struct dra_device device = {.nr_requests = 1, .nr_cdi = 1};
	struct blob out;

	for (size_t i = 0; answer && i < nr; i++) {
		answer[i].uid = ref[i].uid;
		device.request = device.cdi = &ref[i].name;
		device.pool = ref[i].ns;
		device.device = device.share_id = ref[i].uid;
		if (dra_prepared_encode(&device, 1, i % 2 ? DRA_V1 : DRA_V1BETA1, a,
			    &answer[i].bytes, NULL) < 0)
			return; /* no room */
		assert(dra_prepare_error_encode(ref[i].name, a, &out, NULL) != -EILSEQ);
		assert(dra_unprepare_error_encode(ref[i].name, a, &out, NULL) != -EILSEQ);
	}
	if (answer)
		assert(dra_answers_encode(answer, nr, a, &out, NULL) != -EILSEQ);
}

static void check_health(const struct dra_claim_ref *ref, size_t nr, struct arena *a)
{
	struct dra_health *health = arena_array(a, nr, sizeof *health);
	struct blob out;

	for (size_t i = 0; health && i < nr; i++)
		health[i] = (struct dra_health){
			ref[i].ns, ref[i].uid, i % 2, INT64_MIN, UINT32_MAX, ref[i].name};
	if (health)
		assert(dra_health_encode(health, nr, a, &out, NULL) != -EILSEQ);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dra_claim_ref *ref;
	struct arena a;
	size_t nr;

	arena_init(&a, MEMORY_MAX);
	if (dra_claims_decode((struct blob){data, size}, &a, &ref, &nr, NULL) == 0) {
		assert(nr <= DRA_CLAIMS_MAX);
		bool utf8 = true;

		for (size_t i = 0; i < nr; i++) {
			assert(text_is_utf8(ref[i].uid, strlen(ref[i].uid)));
			utf8 = utf8 && text_is_utf8(ref[i].ns, strlen(ref[i].ns)) &&
			       text_is_utf8(ref[i].name, strlen(ref[i].name));
		}
		if (utf8) {
			check_answers(ref, nr, &a);
			check_health(ref, nr, &a);
		}
	}
	arena_fini(&a);
	return 0;
}
