#include <stddef.h>
#include <stdint.h>

#include <apiserver/slice_write_json.h>
#include <codec/api_json.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

/* What was read can be written, and is the same when it is read again. */
static void check_same(const struct slice_written *s, const struct slice_head *head)
{
	static struct slice_written again;
	const struct slice_to_write w = {.name = head->name,
		.node_name = head->node_name,
		.node_uid = s->owner_uid,
		.generation = head->generation,
		.resource_version = head->version,
		.nr = s->nr,
		.node = s->node};
	auto_free char *text = slice_write_json(&w);
	struct json_t *v = NULL;

	CHECK(text && api_json_parse(text, strlen(text), &v, NULL) == 0);
	int rc = slice_written_read(v, &again, NULL);
	for (size_t i = 0; i < s->nr; i++) {
		struct slice_node node = slice_node_writable(&s->node[i]);

		CHECK(rc == 0 && again.nr == s->nr && slice_node_equal(&node, &again.node[i]));
	}
	CHECK(text_equal(again.owner_uid, s->owner_uid));
	api_json_free(v);
}

/* The bytes as names: whatever they are, an object of these names is JSON or is not written. */
static void check_names(const uint8_t *data, size_t size)
{
	static const struct slice_node node = {.cpus = 1, .closed = true};
	char name[SLICE_OBJECT_NAME_MAX], bytes[2 * SLICE_OBJECT_NAME_MAX] = "";
	size_t len = size < sizeof bytes ? size : sizeof bytes - 1;

	memcpy(bytes, data, len);
	const struct slice_to_write w = {.name = slice_object_name(name, bytes),
		.node_name = bytes,
		.node_uid = bytes,
		.nr = 1,
		.node = &node};
	auto_free char *text = slice_write_json(&w);
	CHECK(strlen(name) < SLICE_OBJECT_NAME_MAX);
	CHECK(!text == !text_is_utf8(bytes, strlen(bytes)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct slice_written s;
	struct slice_head head;
	struct json_t *v = NULL;
	struct err e = {0};

	check_names(data, size);
	if (api_json_parse((const char *)data, size, &v, &e))
		return 0;
	slice_head_read(v, &head);
	CHECK(head.name && head.version && head.driver && head.node_name && head.pool);
	if (slice_written_read(v, &s, &e) < 0)
		CHECK(e.code && e.text[0]);
	else
		check_same(&s, &head);
	api_json_free(v);
	return 0;
}
