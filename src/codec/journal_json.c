#include <codec/journal_json.h>

#include <codec/fields_json.h>
#include <codec/reasons_json.h>
#include <codec/words.h>
#include <errno.h>
#include <string.h>

enum { FORMAT = 1 };

#define AT(member) offsetof(struct memory_ask, member)
static const struct field ask_rows[] = {
	FIELD("page_bytes", U64, AT(page_bytes)),
	FIELD("bytes", U64, AT(bytes)),
};
static const struct fields ask_fields = FIELDS(ask_rows, struct memory_ask);
#undef AT

#define AT(member) offsetof(struct request, member)
static const struct field request_rows[] = {
	FIELD("container_name", STRING, AT(container_name)),
	FIELD("kind", NAME, AT(kind), .name = container_kind_word, .max = NR_CONTAINER_KINDS),
	FIELD("place", UNSIGNED, AT(place)),
	FIELD("sandbox_id", STRING, AT(pod.sandbox_id)),
	FIELD("pod_uid", STRING, AT(pod.uid)),
	FIELD("pod_namespace", STRING, AT(pod.ns)),
	FIELD("pod_name", STRING, AT(pod.name)),
	FIELD("qos", NAME, AT(pod.qos), .name = qos_word, .max = NR_QOS),
	FIELD("created_at_ns", I64, AT(created_at_ns)),
	FIELD("cpu_milli", U64, AT(cpu_milli)),
	FIELD("cpu_limit_milli", U64, AT(cpu_limit_milli)),
	FIELD("memory", ARRAY, AT(memory), .count = AT(nr_memory), .max = TOPO_KINDS,
		.fields = &ask_fields),
	FIELD("cpus", STRING, AT(cpus)),
	FIELD("mems", STRING, AT(mems)),
};
static const struct fields request_fields = FIELDS(request_rows, struct request);
#undef AT

#define AT(member) offsetof(struct memory_block, member)
static const struct field block_rows[] = {
	FIELD("kind", UNSIGNED, AT(kind), .max = TOPO_KINDS - 1),
	FIELD("nodes", NODES, AT(nodes)),
	FIELD("bytes", U64, AT(bytes)),
};
static const struct fields block_fields = FIELDS(block_rows, struct memory_block);
#undef AT

#define AT(member) offsetof(struct decision, member)
static const struct field decision_rows[] = {
	FIELD("admit", BOOL, AT(admit)),
	FIELD("source", NAME, AT(source), .name = source_word, .max = NR_DECISION_SOURCES),
	FIELD("policy", NAME, AT(policy), .name = policy_word, .max = NR_POLICIES),
	FIELD("exclusive", BOOL, AT(exclusive)),
	FIELD("cpus", CPUS, AT(cpus)),
	FIELD("mems", NODES, AT(mems)),
	FIELD("nodes", NODES, AT(nodes), .has_flag = true, .flag = AT(has_affinity)),
	FIELD("preferred", BOOL, AT(preferred)),
	FIELD("blocks", ARRAY, AT(blocks), .count = AT(nr_blocks), .max = TOPO_KINDS,
		.fields = &block_fields),
	FIELD("reason", STRING, AT(reason), .optional = true),
	FIELD("message", CHARS, AT(message), .max = DECISION_MESSAGE_MAX),
	FIELD("reasons", POINTER, AT(reasons), .optional = true, .fields = &reasons_fields),
};
static const struct fields decision_fields = FIELDS(decision_rows, struct decision);
#undef AT

#define AT(member) offsetof(struct record_part, member)
static const struct field part_rows[] = {
	FIELD("request", OBJECT, AT(request), .fields = &request_fields),
	FIELD("decision", OBJECT, AT(decision), .fields = &decision_fields),
};
static const struct fields part_fields = FIELDS(part_rows, struct record_part);
#undef AT

#define AT(member) offsetof(struct decoded_record, member)
static const struct field record_rows[] = {
	FIELD("seq", U64, AT(record.seq)),
	FIELD("time_ms", I64, AT(record.time_ms)),
	FIELD("op", NAME, AT(record.op), .name = op_word, .max = NR_RECORD_OPS),
	FIELD("cause", STRING, AT(record.cause)),
	FIELD("container_id", STRING, AT(record.container_id)),
	FIELD("request", OBJECT, AT(request), .has_flag = true, .flag = AT(has_request),
		.fields = &request_fields),
	FIELD("decision", OBJECT, AT(decision), .has_flag = true, .flag = AT(has_decision),
		.fields = &decision_fields),
	FIELD("parts", LIST, AT(record.parts), .count = AT(record.nr_parts), .has_flag = true,
		.flag = AT(has_parts), .fields = &part_fields),
	FIELD("pool", CPUS, AT(record.pool)),
};
static const struct fields record_fields = FIELDS(record_rows, struct decoded_record);
#undef AT

struct header_line {
	unsigned format;
	struct journal_header header;
};

#define AT(member) offsetof(struct header_line, member)
static const struct field header_rows[] = {
	FIELD("journal", UNSIGNED, AT(format)),
	FIELD("version", STRING, AT(header.version)),
	FIELD("boot_id", STRING, AT(header.boot_id)),
	FIELD("machine", STRING, AT(header.machine)),
	FIELD("fingerprint", U32, AT(header.fingerprint)),
	FIELD("settings", MAP, AT(header.settings.at), .count = AT(header.settings.nr)),
};
static const struct fields header_fields = FIELDS(header_rows, struct header_line);
#undef AT

static int line_length(const struct text *t, struct err *e)
{
	if (t->cut)
		return err_set(
			e, EMSGSIZE, "the journal's line is longer than %zu bytes", t->cap - 1);
	return (int)t->len;
}

int journal_json_header(const struct journal_header *h, char *buf, size_t cap, struct err *e)
{
	struct header_line line = {.format = FORMAT, .header = *h};
	struct text t;

	text_init(&t, buf, cap);
	fields_write(&t, &header_fields, &line, NULL);
	return line_length(&t, e);
}

int journal_json_parse_header(
	const char *text, size_t len, struct arena *a, struct journal_header *out, struct err *e)
{
	struct header_line line = {0};
	int rc = fields_parse(
		text, len, &header_fields, &line, &(struct fields_context){.arena = a}, e);

	if (rc)
		return rc;
	if (line.format != FORMAT)
		return err_set(
			e, EINVAL, "journal: format %u is not known, only %d", line.format, FORMAT);
	*out = line.header;
	return 0;
}

int journal_json_record(
	const struct record *r, const struct node_ids *ids, char *buf, size_t cap, struct err *e)
{
	struct decoded_record line = {
		.record = *r,
		.has_request = r->request,
		.has_decision = r->decision,
		.has_parts = r->parts,
	};
	struct text t;

	if (r->request)
		line.request = *r->request;
	if (r->decision)
		line.decision = *r->decision;
	text_init(&t, buf, cap);
	fields_write(&t, &record_fields, &line, ids);
	return line_length(&t, e);
}

static int check_reason(struct decision *d, struct err *e)
{
	const char *reason = d->reason;

	d->reason = reason ? decision_reason(reason) : NULL;
	if (reason && !d->reason)
		return err_set(e, EINVAL, "decision: reason: there is no \"%.64s\"", reason);
	return 0;
}

static int check_parts(const struct decoded_record *d, struct err *e)
{
	if (d->has_parts != (d->record.op == RECORD_HOLD))
		return err_set(e, EINVAL, "op: \"%s\" %s parts", record_op_name(d->record.op),
			d->has_parts ? "does not have" : "has");
	for (size_t i = 0; i < d->record.nr_parts; i++) {
		const struct decision *part = &d->record.parts[i].decision;

		if (!part->admit || part->source != SOURCE_HELD || part->reason)
			return err_set(e, EINVAL, "parts: element %zu is not held", i);
	}
	return 0;
}

/* What the types do not say: which records carry a decision, and which one. */
static int check_record(struct decoded_record *d, struct err *e)
{
	bool decided = d->record.op == RECORD_GRANT || d->record.op == RECORD_REFUSE;

	if (d->has_request != decided || d->has_decision != decided)
		return err_set(e, EINVAL, "op: \"%s\" %s a request and a decision",
			record_op_name(d->record.op), decided ? "has" : "does not have");
	if (decided && d->decision.admit != (d->record.op == RECORD_GRANT))
		return err_set(e, EINVAL, "decision: admit contradicts op \"%s\"",
			record_op_name(d->record.op));
	int rc = check_reason(&d->decision, e);
	return rc ? rc : check_parts(d, e);
}

int journal_json_parse(const char *text, size_t len, const struct node_ids *ids, struct arena *a,
	struct decoded_record *out, struct err *e)
{
	struct decoded_record d = {0};
	int rc = fields_parse(text, len, &record_fields, &d, &(struct fields_context){ids, a}, e);

	if (!rc)
		rc = check_record(&d, e);
	if (rc)
		return rc;
	*out = d;
	out->request.container_id = d.record.container_id;
	out->record.request = d.has_request ? &out->request : NULL;
	out->record.decision = d.has_decision ? &out->decision : NULL;
	return 0;
}
