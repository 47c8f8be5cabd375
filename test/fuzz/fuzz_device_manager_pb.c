#include <assert.h>
#include <kubelet/device_manager_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20 };

static void check_text(const char *s)
{
	assert(s && text_is_utf8(s, strlen(s)));
}

/* What was read can be written, and is the same then. */
static void check_list(const struct plugin_device *list, size_t nr, struct arena *a)
{
	struct plugin_device *again;
	struct blob out;
	size_t nr_again;

	for (size_t i = 0; i < nr; i++)
		check_text(list[i].id);
	if (device_list_encode(list, nr, a, &out, NULL) < 0 ||
		device_list_decode(out, a, &again, &nr_again, NULL) < 0)
		return; /* no room */
	assert(nr_again == nr);
	for (size_t i = 0; i < nr; i++)
		assert(text_equal(again[i].id, list[i].id) && again[i].node == list[i].node &&
			again[i].healthy == list[i].healthy);
}

static void check_preferred(const struct device_ids *container, size_t nr, struct arena *a)
{
	const struct allocate_request request = {container, nr};
	struct blob out;

	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < container[i].nr; k++)
			check_text(container[i].id[k]);
	(void)allocate_request_encode(&request, a, &out, NULL);
	for (size_t i = 0; i < nr; i++)
		(void)pre_start_request_encode(&container[i], a, &out, NULL);
}

static void check_allocated(const struct allocate_answer *container, size_t nr, struct arena *a)
{
	struct blob out;

	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < container[i].nr_annotations; k++) {
			check_text(container[i].annotation[k].key);
			check_text(container[i].annotation[k].value);
		}
	(void)allocate_response_encode(container, nr, a, &out, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	const struct allocate_answer *allocated;
	const struct device_ids *preferred;
	struct plugin_registration r;
	struct device_plugin_options options;
	struct plugin_device *list;
	struct arena a;
	size_t nr;

	arena_init(&a, MEMORY_MAX);
	if (registration_decode(in, &a, &r, NULL) == 0) {
		check_text(r.endpoint);
		check_text(r.resource);
	}
	(void)device_plugin_options_decode(in, &a, &options, NULL);
	if (device_list_decode(in, &a, &list, &nr, NULL) == 0)
		check_list(list, nr, &a);
	if (preferred_response_decode(in, &a, &preferred, &nr, NULL) == 0)
		check_preferred(preferred, nr, &a);
	if (allocate_response_decode(in, &a, &allocated, &nr, NULL) == 0)
		check_allocated(allocated, nr, &a);
	arena_fini(&a);
	return 0;
}
