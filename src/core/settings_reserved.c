#include <core/settings_row.h>

#include <errno.h>
#include <numafit/quantity.h>
#include <string.h>

/* reservedMemory, the one setting that is a list. */

static int parse_reserved(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	(void)out;
	return err_set(e, EINVAL, "a list is expected, not \"%.*s\"", SETTING_SHOWN, value);
}

/* As the kubelet's --reserved-memory has it: "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi". */
static void print_reserved(const struct row *row, const void *in, struct text *to)
{
	const struct reserved_memory *r = in;
	char size[TEXT_SIZE_MAX];

	(void)row;
	for (unsigned i = 0; i < RESERVED_MEMORY_MAX && *r[i].type; i++) {
		if (i && r[i].entry == r[i - 1].entry)
			text_add(to, ",");
		else
			text_add(to, "%s%u:", i ? ";" : "", r[i].node_id);
		text_add(to, "%s=%s", r[i].type, text_size(size, r[i].bytes));
	}
}

const struct kind kind_reserved = {parse_reserved, print_reserved,
	.type = "list of {numaNode, limits: {memory or hugepages-SIZE: quantity}}"};

/* reservedMemory.ENTRY.numaNode and reservedMemory.ENTRY.limits.TYPE: one struct for each type of
 * each entry; one without type holds the node of an entry whose limits are still to come. */

static struct reserved_memory *find_reserved(struct settings *s, unsigned entry, const char *type)
{
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].entry == entry &&
			(!type || text_equal(s->reserved_memory[i].type, type)))
			return &s->reserved_memory[i];
	return NULL;
}

/* A new one for the entry, at *added; the next entry may begin, no gap. */
static int add_reserved(
	struct settings *s, unsigned entry, struct reserved_memory **added, struct err *e)
{
	const struct reserved_memory *sibling = find_reserved(s, entry, NULL);

	if (entry && !find_reserved(s, entry - 1, NULL))
		return err_set(e, EINVAL, "entry %u is missing", entry - 1);
	if (s->nr_reserved_memory == RESERVED_MEMORY_MAX)
		return err_set(e, ERANGE, "more than %d amounts", RESERVED_MEMORY_MAX);
	struct reserved_memory *r = &s->reserved_memory[s->nr_reserved_memory++];

	*r = (struct reserved_memory){.entry = entry};
	if (sibling) {
		r->has_node = sibling->has_node;
		r->node_id = sibling->node_id;
	}
	*added = r;
	return 0;
}

static int set_reserved_node(struct settings *s, unsigned entry, const char *value, struct err *e)
{
	uint64_t id;
	int rc = text_u64(value, strlen(value), NODE_ID_MAX, &id, NULL);

	if (rc < 0)
		return err_set(e, -rc, "\"%.*s\" is not the number of a NUMA node, 0 to %d",
			SETTING_SHOWN, value, NODE_ID_MAX);
	struct reserved_memory *r = find_reserved(s, entry, NULL);

	rc = r ? 0 : add_reserved(s, entry, &r, e);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].entry == entry) {
			s->reserved_memory[i].has_node = true;
			s->reserved_memory[i].node_id = (unsigned)id;
		}
	return 0;
}

#define HUGEPAGES "hugepages-"

/* The type as the machine names it: "hugepages-1024Mi" are its hugepages-1Gi. */
static int reserved_type(const char *name, struct text *type, struct err *e)
{
	char size[TEXT_SIZE_MAX];
	uint64_t page_bytes = 0;

	if (text_equal(name, "memory")) {
		text_add(type, "%s", name);
		return 0;
	}
	const char *page = text_behind(name, HUGEPAGES);
	if (!page || quantity_parse_count(page, QUANTITY_WHOLE, &page_bytes, NULL) < 0 ||
		!page_bytes)
		return err_set(
			e, EINVAL, "\"%.*s\" is not memory or hugepages-SIZE", SETTING_SHOWN, name);
	text_add(type, HUGEPAGES "%s", text_size(size, page_bytes));
	return 0;
}

static int set_reserved_limit(
	struct settings *s, unsigned entry, const char *name, const char *value, struct err *e)
{
	char type[sizeof s->reserved_memory->type];
	struct text t;
	uint64_t bytes = 0;

	text_init(&t, type, sizeof type);
	int rc = reserved_type(name, &t, e);

	if (rc < 0)
		return rc;
	rc = quantity_parse_count(value, QUANTITY_WHOLE, &bytes, NULL);
	if (rc < 0 || !bytes)
		return err_set(e, rc == -ERANGE ? ERANGE : EINVAL,
			"\"%.*s\" is not a quantity above 0", SETTING_SHOWN, value);
	struct reserved_memory *r = find_reserved(s, entry, type);

	r = r ? r : find_reserved(s, entry, "");
	rc = r ? 0 : add_reserved(s, entry, &r, e);
	if (rc < 0)
		return rc;
	(void)text_copy(r->type, sizeof r->type, type);
	r->bytes = bytes;
	return 0;
}

int reserved_set(struct settings *s, const char *key, const char *value, struct err *e)
{
	unsigned entry = 0;
	const char *rest = row_entry(key, RESERVED, RESERVED_MEMORY_MAX, &entry), *type;

	if (!rest)
		return err_set(
			e, EINVAL, "a list of at most %d entries is expected", RESERVED_MEMORY_MAX);
	if (text_equal(rest, ".numaNode"))
		return set_reserved_node(s, entry, value, e);
	type = text_behind(rest, ".limits.");
	if (type)
		return set_reserved_limit(s, entry, type, value, e);
	return err_set(e, ENOENT, "an entry has numaNode and limits.TYPE");
}

bool reserved_is_group(const char *key)
{
	unsigned entry;
	const char *rest = row_entry(key, RESERVED, RESERVED_MEMORY_MAX, &entry);

	return text_equal(key, RESERVED) ||
	       (rest && (text_equal(rest, "") || text_equal(rest, ".limits")));
}
