#include <stddef.h>
#include <stdint.h>

#include <daemon-files/kubelet_config_yaml.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read has names; an error has a text and leaves what was there alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct report_policy before;
	struct report_policy p = before;
	struct err e = {0};

	if (kubelet_config_yaml_read((const char *)data, size, &p, &e) < 0) {
		if (!e.code || !e.text[0] || memcmp(&p, &before, sizeof p) != 0)
			abort();
		return 0;
	}
	if (!topology_policy_words[p.policy] || !topology_scope_words[p.scope] ||
		p.strategy > ALLOCATION_LEAST || p.cpu_manager > MANAGER_STATIC)
		abort();
	return 0;
}
