#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/words.h>
#include <numafit/mem.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 4 << 20, ARENA_BYTES = 1 << 18, NR_ELEMENTS = 4, NR_CHARS = 8 };

struct element {
	int64_t i64;
	char chars[NR_CHARS];
};
struct all {
	bool yes, has_nodes;
	unsigned number, nr_array;
	uint32_t u32;
	uint64_t u64;
	const char *string, *maybe;
	unsigned qos;
	struct cpuset cpus;
	struct nodeset nodes;
	struct element object, array[NR_ELEMENTS], *list;
	size_t nr_list;
	struct word_list map;
};

static const struct field element_rows[] = {
	FIELD("i", I64, offsetof(struct element, i64)),
	FIELD("c", CHARS, offsetof(struct element, chars), .max = NR_CHARS),
};
static const struct fields element = FIELDS(element_rows, struct element);

#define AT(member) offsetof(struct all, member)
static const struct field all_rows[] = {
	FIELD("b", BOOL, AT(yes), .optional = true),
	FIELD("n", UNSIGNED, AT(number), .optional = true),
	FIELD("w", UNSIGNED, AT(u32), .optional = true),
	FIELD("u", U64, AT(u64), .optional = true),
	FIELD("s", STRING, AT(string)),
	FIELD("m", STRING, AT(maybe), .optional = true),
	FIELD("q", NAME, AT(qos), .words = qos_words, .max = NR_QOS, .optional = true),
	FIELD("cpus", CPUS, AT(cpus), .optional = true),
	FIELD("nodes", NODES, AT(nodes), .has_flag = true, .flag = AT(has_nodes)),
	FIELD("o", OBJECT, AT(object), .fields = &element, .optional = true),
	FIELD("a", ARRAY, AT(array), .count = AT(nr_array), .max = NR_ELEMENTS, .fields = &element,
		.optional = true),
	FIELD("l", LIST, AT(list), .count = AT(nr_list), .fields = &element, .optional = true),
	FIELD("p", MAP, AT(map.at), .count = AT(map.nr), .optional = true),
};
static const struct fields all = FIELDS(all_rows, struct all);

/* Every type of field: what is accepted comes out in one form, which reads back as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct node_ids ids = {.nr = 3, .id = {0, 8, 255}};
	static char once[TEXT_BYTES], twice[TEXT_BYTES];
	struct fields_context c = {.ids = &ids};
	struct all x = {0}, y = {0};
	struct arena a, b;
	struct text t;
	struct err e = {0};

	arena_init(&a, ARENA_BYTES);
	arena_init(&b, 2 * ARENA_BYTES);
	c.arena = &a;
	if (fields_parse((const char *)data, size, &all, &x, &c, &e)) {
		if (!e.code || !e.text[0])
			abort();
	} else {
		text_init(&t, once, sizeof once);
		fields_write(&t, &all, &x, &ids);
		c.arena = &b;
		if (t.cut || fields_parse(once, t.len, &all, &y, &c, &e))
			abort();
		text_init(&t, twice, sizeof twice);
		fields_write(&t, &all, &y, &ids);
		if (strcmp(once, twice) != 0)
			abort();
	}
	arena_fini(&a);
	arena_fini(&b);
	return 0;
}
