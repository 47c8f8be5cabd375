#include <codec/placement_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <string.h>

enum { VERSION = 1 };

struct annotation {
	unsigned version;
	struct placement placement;
};

#define AT(member) offsetof(struct annotation, member)
static const struct field annotation_rows[] = {
	FIELD("v", UNSIGNED, AT(version)),
	FIELD("policy", NAME, AT(placement.policy), .words = topology_policy_words,
		.max = NR_POLICIES),
	FIELD("exclusive", BOOL, AT(placement.exclusive)),
	FIELD("cpus", CPUS, AT(placement.cpus)),
	FIELD("mems", NODES, AT(placement.mems)),
	FIELD("nodes", NODES, AT(placement.nodes), .has_flag = true,
		.flag = AT(placement.has_nodes)),
	FIELD("preferred", BOOL, AT(placement.preferred)),
	FIELD("hint", NAME, AT(placement.advice), .has_flag = true,
		.flag = AT(placement.has_advice), .words = advice_verdict_words,
		.max = NR_ADVICE_VERDICTS),
	FIELD("wishes", STRING, AT(placement.wishes), .optional = true),
};
static const struct fields annotation_fields = FIELDS(annotation_rows, struct annotation);
/* All but the last one. */
static const struct fields fields_read_back = {
	.row = annotation_rows,
	.nr = sizeof annotation_rows / sizeof *annotation_rows - 1,
	.size = sizeof(struct annotation)};

const char *placement_json_format(
	const struct placement *p, const struct node_ids *ids, char *buf, size_t cap)
{
	struct annotation a = {.version = VERSION, .placement = *p};
	struct text t;

	text_init(&t, buf, cap);
	fields_write(&t, &annotation_fields, &a, ids);
	return buf;
}

int placement_json_parse(
	const char *text, const struct node_ids *ids, struct placement *out, struct err *e)
{
	size_t len = strnlen(text, PLACEMENT_READ_MAX + 1);
	struct annotation a = {0};

	if (len > PLACEMENT_READ_MAX)
		return err_set(e, E2BIG, "is longer than %d bytes", PLACEMENT_READ_MAX);
	int rc = fields_parse(
		text, len, &fields_read_back, &a, &(struct fields_context){.ids = ids}, e);
	if (rc)
		return rc;
	if (a.version != VERSION)
		return err_set(
			e, EINVAL, "v: version %u is not known, only %d", a.version, VERSION);
	*out = a.placement;
	return 0;
}
