#include <assert.h>
#include <kubelet/device_plugin_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20 };

static void check_ids(const struct device_ids *ids)
{
	assert(ids->nr <= DEVICE_PLUGIN_IDS_MAX);
	for (size_t i = 0; i < ids->nr; i++)
		assert(ids->id[i] && text_is_utf8(ids->id[i], strlen(ids->id[i])));
}

/* What was read can be written: the lists of an Allocate are an answer to GetPreferredAllocation,
 * and that answer has the form of the request. */
static void check_again(const struct allocate_request *in, struct arena *a)
{
	struct allocate_request again;
	struct blob out;

	if (preferred_response_encode(in->container, in->nr, a, &out, NULL) < 0 ||
		allocate_request_decode(out, a, &again, NULL) < 0)
		return; /* no room */
	assert(again.nr == in->nr);
	for (size_t i = 0; i < in->nr; i++) {
		assert(again.container[i].nr == in->container[i].nr);
		for (size_t k = 0; k < in->container[i].nr; k++)
			assert(text_equal(again.container[i].id[k], in->container[i].id[k]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct preferred_request preferred;
	struct allocate_request allocate;
	struct device_ids ids;
	struct arena a;

	arena_init(&a, MEMORY_MAX);
	if (pre_start_request_decode(in, &a, &ids, NULL) == 0)
		check_ids(&ids);
	if (preferred_request_decode(in, &a, &preferred, NULL) == 0)
		for (size_t i = 0; i < preferred.nr; i++) {
			check_ids(&preferred.container[i].available);
			check_ids(&preferred.container[i].must_include);
			assert(preferred.container[i].size <= INT32_MAX);
		}
	if (allocate_request_decode(in, &a, &allocate, NULL) == 0) {
		for (size_t i = 0; i < allocate.nr; i++)
			check_ids(&allocate.container[i]);
		check_again(&allocate, &a);
	}
	arena_fini(&a);
	return 0;
}
