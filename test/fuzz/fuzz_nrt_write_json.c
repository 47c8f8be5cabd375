#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/fields_json.h>
#include <codec/nrt_json.h>
#include <codec/nrt_write_json.h>
#include <jansson.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 1 << 20, NAMES = 3 };

/* The bytes as strings, one behind each NUL, and a number for amounts. */
struct input {
	char *name[NAMES];
	uint64_t amount;
};

static void split(struct input *in, const uint8_t *data, size_t size, struct arena *a)
{
	memcpy(&in->amount, data, size < sizeof in->amount ? size : sizeof in->amount);
	for (unsigned i = 0; i < NAMES; i++) {
		size_t len = strnlen((const char *)data, size);

		in->name[i] = arena_strndup(a, (const char *)data, len);
		data += len < size ? len + 1 : len;
		size -= len < size ? len + 1 : len;
	}
}

static void make_report(
	const struct input *in, struct topo *t, struct report_resource *resource, struct report *r)
{
	topo_init(t, "fuzz");
	(void)topo_add_node(t, 0, NULL);
	(void)topo_add_node(t, 9, NULL);
	(void)topo_add_cpu(t, 0, 0, 0, 0, 0, NULL);
	(void)topo_seal(t, NULL);
	*resource = (struct report_resource){
		in->name[2], {{in->amount, in->amount / 2, 1}, {0, 0, in->amount >> 1}}};
	*r = (struct report){.node_name = in->name[0],
		.node_uid = in->name[1],
		.topo = t,
		.has_policy = true,
		.resource = resource,
		.nr_resources = 1};
}

/* Whatever the names and amounts, our own reader takes what is written. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct report_resource resource;
	static struct report r;
	static struct topo t;
	struct sched_topology *read = NULL;
	struct resource_table names;
	struct input in = {0};
	struct arena a;
	json_t *v;

	arena_init(&a, MEMORY_MAX);
	split(&in, data, size, &a);
	if (!in.name[0] || !in.name[1] || !in.name[2]) {
		arena_fini(&a);
		return 0;
	}
	make_report(&in, &t, &resource, &r);
	char *text = nrt_json_write(&r, &(const struct nrt_write_options){.beat = in.amount});
	assert(text || !text_is_utf8(in.name[0], strlen(in.name[0])) ||
		!text_is_utf8(in.name[1], strlen(in.name[1])));
	if (text) {
		resource_table_init(&names);
		assert(json_parse(text, strlen(text), &v, NULL) == 0);
		assert(nrt_json_read(v, &(const struct sched_reader){&names, &a}, &read, NULL) ==
			0);
		assert(read->nr_zones == 2);
		if (text_is_utf8(in.name[2], strlen(in.name[2])))
			assert(read->resources.nr == 1);
		sched_topology_free(read);
		resource_table_fini(&names);
		json_decref(v);
	}
	free(text);
	arena_fini(&a);
	return 0;
}
