#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <numafit-extender/extender_yaml.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With a list of all mistakes the same ones are wrong, and what was right is there until it ends.
 */
static void read_to_the_end(const uint8_t *data, size_t size, bool wrong)
{
	struct extender_config c;
	struct mistakes all = {0};
	struct err e = {0};

	assert((extender_yaml_read((const char *)data, size, &c, &all, &e) != 0) == wrong);
	assert((all.found.nr != 0) == wrong && all.found.nr <= MISTAKES_MAX);
	extender_config_fini(&c);
	mistakes_fini(&all);
}

/* A config that is taken can be printed, and has a plugin; one that is not has a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct extender_config c;
	struct extender_doc doc;
	struct err e = {0};

	if (extender_yaml_read((const char *)data, size, &c, NULL, &e)) {
		assert(e.code && e.text[0]);
		read_to_the_end(data, size, true);
		return 0;
	}
	read_to_the_end(data, size, false);
	assert(c.profile.nr && c.profile.nr <= SCHED_USES_MAX);
	for (unsigned i = 0; i < c.profile.nr; i++)
		assert(c.profile.use[i].plugin && c.profile.use[i].weight >= 1 &&
			c.profile.use[i].weight <= SCHED_WEIGHT_MAX);
	for (unsigned i = 0; extender_doc(&c, i, &doc); i++)
		assert(strlen(doc.value) < sizeof doc.value);
	extender_config_fini(&c);
	return 0;
}
