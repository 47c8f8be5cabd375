#include <ui/whatif.h>

#include <assert.h>
#include <numafit/mem.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A question that is taken is within the bounds that whatif.h names; one that is not says why. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *query = xcalloc(size + 1, 1);
	struct ui_question q = {0};
	struct err e = {0};

	memcpy(query, data, size);
	if (ui_question_read(query, &q, &e)) {
		assert(e.code && *e.text);
		return 0;
	}
	assert(q.containers >= 1 && q.containers <= UI_CONTAINERS_MAX);
	assert(q.qos < NR_QOS && q.nr_memory <= TOPO_KINDS);
	assert(!q.has_policy || q.policy < NR_POLICIES);
	for (unsigned i = 0; i < q.nr_memory; i++)
		for (unsigned k = 0; k < i; k++)
			assert(q.memory[i].page_bytes != q.memory[k].page_bytes);
	return 0;
}
