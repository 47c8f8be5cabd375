#include <stddef.h>
#include <stdint.h>

#include <codec/api_json.h>
#include <codec/slice_json.h>
#include <numafit/mem.h>
#include <numafit/nodeset.h>
#include <numafit/text.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_slice(const struct slice *s)
{
	CHECK(*s->name && *s->driver && *s->pool && s->nr_slices && s->nr <= SLICE_DEVICES_MAX);
	for (size_t i = 0; i < s->nr; i++) {
		const struct node_id_list nodes = s->device[i].nodes;

		for (size_t k = 0; k < nodes.nr; k++)
			CHECK(nodes.id[k] >= 0 && nodes.id[k] <= NODE_ID_MAX &&
				(!k || nodes.id[k - 1] < nodes.id[k]));
		CHECK(*s->device[i].name && s->device[i].nodes.nr <= NODES_MAX);
		CHECK(!s->device[i].nodes.nr || !s->device[i].bus);
		CHECK(!s->device[i].bus || *s->device[i].bus);
	}
}

/* A slice that was read is kept as it was read: it counts once its pool is complete, does so when
 * it is deleted, and comes back as the same. */
static void check_slice_store(struct slice *s)
{
	struct slice_store *store = slice_store_new();
	bool whole = s->nr_slices == 1;

	CHECK(slice_store_put(store, s, NULL) == whole);
	CHECK(slice_store_put(store, s, NULL) == 0);
	CHECK(!slice_store_remove(store, s->name) && !slice_store_remove(store, s->name));
	for (size_t i = 0; i < s->nr; i++) {
		const struct slice_device *d = &s->device[i];
		const struct slice_device *kept =
			slice_store_find(store, s->driver, s->pool, d->name);

		CHECK(!kept == !whole);
		CHECK(!kept || (node_id_list_equal(kept->nodes, d->nodes) &&
				       text_equal(kept->bus, d->bus)));
	}
	CHECK(slice_store_count(store).devices == (whole ? s->nr : 0));
	s->nr_slices = 1;
	CHECK(slice_store_put(store, s, NULL) == 1);
	slice_store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_t *v = NULL;
	struct slice slice;
	struct err e = {0};
	struct arena a;

	if (api_json_parse((const char *)data, size, &v, &e))
		return 0;
	arena_init(&a, SLICE_BYTES_MAX);
	if (slice_json_read(v, &a, &slice, &e) < 0) {
		CHECK(e.code && e.text[0]);
	} else {
		check_slice(&slice);
		check_slice_store(&slice);
	}
	arena_fini(&a);
	api_json_free(v);
	return 0;
}
