#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <numafit-extender/extender_yaml.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A config that is taken can be printed, and has a plugin; one that is not has a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct extender_config c;
	struct extender_doc doc;
	struct err e = {0};

	if (extender_yaml_read((const char *)data, size, &c, &e)) {
		assert(e.code && e.text[0]);
		return 0;
	}
	assert(c.profile.nr && c.profile.nr <= SCHED_USES_MAX);
	for (unsigned i = 0; i < c.profile.nr; i++)
		assert(c.profile.use[i].plugin && c.profile.use[i].weight >= 1 &&
			c.profile.use[i].weight <= SCHED_WEIGHT_MAX);
	for (unsigned i = 0; extender_doc(&c, i, &doc); i++)
		assert(strlen(doc.value) < sizeof doc.value);
	extender_config_fini(&c);
	return 0;
}
