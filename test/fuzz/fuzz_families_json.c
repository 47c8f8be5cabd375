#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/families_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 16 << 20 };

/* A question that can be read has an answer, which names no node but the machine's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct families_question q;
	struct policy_answer answer;
	json_t *item = NULL;
	struct arena a;
	struct err e = {0};

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = json_is_object(item) ? families_json_read(item, &a, &q, &e) : 1;
	if (rc < 0 && !e.text[0])
		abort();
	if (!rc) {
		const struct hint_space space = policy_question_space(&q.put_to);

		if (!policy_merge_families(q.put_to.policy, &space, q.families, q.nr_families,
			    &(struct budget){.endless = true}, &a, &answer) &&
			!answer.affinity.any && !nodeset_within(answer.affinity.mask, space.all))
			abort();
	}
	arena_fini(&a);
	json_decref(item);
	return 0;
}
