/* A container's cgroup as a runtime writes it: the first byte chooses the room that it may take. */
#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <host/cgroup.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *in = xcalloc(1, size + 1);
	char path[CGROUP_PATH_MAX];

	if (!size)
		return 0;
	memcpy(in, data + 1, size - 1);
	if (cgroup_path(in, path, 1 + data[0], NULL) == 0)
		assert(*path != '.' && !strstr(path, "/../") && strlen(path) <= data[0]);
	return 0;
}
