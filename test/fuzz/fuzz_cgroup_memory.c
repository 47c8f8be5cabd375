/* What a kernel says of a cgroup's memory by NUMA node: the first byte chooses the file. */
#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <errno.h>
#include <host/cgroup_memory.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct node_ids ids = {.nr = 4, .id = {0, 1, 8, NODE_ID_MAX}};
	static const struct cgroup_memory none;
	struct cgroup_memory m = none;

	if (!size)
		return 0;
	int rc = (data[0] & 1 ? cgroup_memory_parse_huge : cgroup_memory_parse)(
		(const char *)data + 1, size - 1, &ids, &m, NULL);
	assert(rc == 0 || (rc == -EINVAL && memcmp(&m, &none, sizeof m) == 0));
	struct cgroup_memory_sum all = cgroup_memory_on(&m, nodeset_first(NODES_MAX)), sum = {0};
	for (unsigned n = 0; n < NODES_MAX; n++) {
		struct cgroup_memory_sum one = cgroup_memory_on(&m, nodeset_of(n));

		assert(n < ids.nr || (!one.in_use && !one.moves && !one.huge && !one.kernel));
		sum.in_use += one.in_use;
		sum.kernel += one.kernel;
		assert(sum.in_use >= one.in_use && sum.kernel >= one.kernel);
	}
	assert(sum.in_use == all.in_use && sum.kernel == all.kernel);
	return 0;
}
