#include <assert.h>
#include <nri/nri_runtime_pb.h>
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

static void check_answer(const struct nri_answer *answer)
{
	check_text(answer->cpus);
	check_text(answer->mems);
	for (size_t i = 0; i < answer->nr_annotations; i++)
		check_text(answer->annotations[i].value);
	for (size_t i = 0; i < answer->nr_updates; i++)
		check_text(answer->updates[i].container_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct nri_answer answer;
	const char *name, *index;
	struct arena a;
	uint32_t events;
	bool more;

	arena_init(&a, MEMORY_MAX);
	if (nri_registration_decode(in, &a, &name, &index, NULL) == 0)
		check_text(name);
	(void)nri_events_decode(in, &a, &events, NULL);
	if (nri_created_decode(in, &a, &answer, NULL) == 0)
		check_answer(&answer);
	if (nri_synchronized_decode(in, &a, &answer, &more, NULL) == 0)
		check_answer(&answer);
	if (nri_updates_decode(in, &a, &answer, NULL) == 0)
		check_answer(&answer);
	arena_fini(&a);
	return 0;
}
