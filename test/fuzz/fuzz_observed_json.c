#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <apiserver/observed_json.h>
#include <ctype.h>
#include <jansson.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STRING_MAX = 256, ZONES = 2, ID_STEP = 9 };

struct input {
	char resource[STRING_MAX], uid[STRING_MAX];
	uint64_t amount;
};

/* The bytes as two strings, one behind the NUL of the other, and a number for amounts. */
static void split(struct input *in, const uint8_t *data, size_t size)
{
	char *to[] = {in->resource, in->uid};

	memcpy(&in->amount, data, size < sizeof in->amount ? size : sizeof in->amount);
	for (unsigned i = 0; i < 2; i++) {
		size_t len = strnlen((const char *)data, size);

		memcpy(to[i], data, len < STRING_MAX ? len : STRING_MAX - 1);
		data += len < size ? len + 1 : len;
		size -= len < size ? len + 1 : len;
	}
}

static void make_observed(const struct input *in, struct topo *t, struct observed_devices *devices,
	struct observed *o)
{
	topo_init(t, "fuzz");
	for (unsigned n = 0; n < ZONES; n++) {
		(void)topo_add_node(t, n * ID_STEP, NULL);
		(void)topo_add_cpu(t, n, n, n, 0, 0, NULL);
	}
	(void)topo_seal(t, NULL);
	*devices = (struct observed_devices){in->resource, {0, (unsigned)in->amount}};
	*o = (struct observed){.topo = t, .devices = devices, .nr_devices = 1};
	for (unsigned c = 0; c < ZONES; c++)
		if (in->amount >> c & 1)
			cpuset_add(&o->cpus, c);
	o->bytes[0][1] = in->amount;
}

/* A zone of the report, and amounts that Kubernetes reads as whole numbers. */
static void check_zone(const json_t *zone)
{
	const char *name = json_string_value(json_object_get(zone, "zone")), *resource;
	json_t *value;

	assert(text_equal(name, "node-0") || text_equal(name, "node-1"));
	assert(json_object_size(json_object_get(zone, "amount")) > 0);
	json_object_foreach(json_object_get(zone, "amount"), resource, value)
	{
		const char *amount = json_string_value(value);

		assert(amount && *amount && *amount != '0');
		assert(strspn(amount, "0123456789") == strlen(amount));
	}
}

/* Whatever a resource and a uid are called, what is written is of KAI's form. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct observed_devices devices;
	static struct observed o;
	static struct topo t;
	struct input in = {0};
	size_t i;
	json_t *zone;

	split(&in, data, size);
	make_observed(&in, &t, &devices, &o);
	char *value = observed_json_write(&o);
	assert(!value == cpuset_empty(&o.cpus));
	json_t *zones = value ? json_loads(value, 0, NULL) : json_array();
	assert(json_is_array(zones));
	json_array_foreach(zones, i, zone) check_zone(zone);
	char *patch = observed_json_patch(in.uid, value);
	assert(!patch == !text_is_utf8(in.uid, strlen(in.uid)));
	json_t *read = patch ? json_loads(patch, 0, NULL) : NULL;
	const json_t *metadata = json_object_get(read, "metadata");
	assert(!patch || text_equal(json_string_value(json_object_get(metadata, "uid")), in.uid));
	json_decref(read);
	json_decref(zones);
	free(patch);
	free(value);
	return 0;
}
