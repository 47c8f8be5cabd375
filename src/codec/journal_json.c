/* A line of the journal as JSON, both ways: the header, records and their decisions. */
#include <codec/journal_json.h>

#include <codec/fields_json.h>
#include <codec/reasons_json.h>
#include <codec/words.h>
#include <errno.h>
#include <numafit/version.h>
#include <string.h>

enum { FORMAT = 3 };

#define AT(member) offsetof(struct memory_ask, member)
static const struct field memory_ask_rows[] = {
	FIELD("page_bytes", U64, AT(page_bytes)),
	FIELD("bytes", U64, AT(bytes)),
};
static const struct fields memory_ask_fields = FIELDS(memory_ask_rows, struct memory_ask);
#undef AT

#define AT(member) offsetof(struct pod_totals, member)
static const struct field totals_rows[] = {
	FIELD("cpu_milli", U64, AT(cpu_milli)),
	FIELD("memory_bytes", U64, AT(memory_bytes)),
};
static const struct fields totals_fields = FIELDS(totals_rows, struct pod_totals);
#undef AT

#define AT(member) offsetof(struct device, member)
static const struct field device_rows[] = {
	FIELD("id", STRING, AT(id)),
	FIELD("has_topology", BOOL, AT(has_topology)),
	FIELD("placed", BOOL, AT(placed)),
	FIELD("nodes", NODES, AT(nodes)),
	FIELD("healthy", BOOL, AT(healthy)),
};
static const struct fields device_fields = FIELDS(device_rows, struct device);
#undef AT

#define AT(member) offsetof(struct device_resource, member)
static const struct field resource_rows[] = {
	FIELD("name", STRING, AT(name)),
	FIELD("devices", LIST, AT(device), .count = AT(nr), .fields = &device_fields),
};
static const struct fields resource_fields = FIELDS(resource_rows, struct device_resource);
#undef AT

#define AT(member) offsetof(struct device_ask, member)
static const struct field device_ask_rows[] = {
	FIELD("resource", UNSIGNED, AT(resource), .max = POD_DEVICES_MAX - 1),
	FIELD("count", U64, AT(count)),
};
static const struct fields device_ask_fields = FIELDS(device_ask_rows, struct device_ask);
#undef AT

#define AT(member) offsetof(struct advice_ask, member)
static const struct field advice_ask_rows[] = {
	FIELD("so_far", NAME, AT(so_far), .words = advice_verdict_words, .max = NR_ADVICE_VERDICTS),
	FIELD("mode", NAME, AT(mode), .words = advice_mode_words, .max = NR_ADVICE_MODES),
	FIELD("repair", BOOL, AT(repair)),
	FIELD("asked", NODES, AT(asked)),
	FIELD("cpus", CPUS, AT(cpus), .optional = true),
};
static const struct fields advice_ask_fields = FIELDS(advice_ask_rows, struct advice_ask);
#undef AT

#define AT(member) offsetof(struct advice_result, member)
static const struct field hint_rows[] = {
	/* numafit 0.2.0 sets a journal aside that has a verdict which it does not know */
	FIELD("verdict", NAME, AT(verdict), .words = advice_verdict_words,
		.max = NR_ADVICE_VERDICTS, .newer = ADVICE_REPAIRED_CPUS, .older = ADVICE_REPAIRED),
	FIELD("repaired_cpus", WHETHER, AT(verdict), .optional = true, .max = ADVICE_REPAIRED_CPUS),
	FIELD("cause", NAME, AT(cause), .words = advice_verdict_words, .max = NR_ADVICE_VERDICTS),
	FIELD("mode", NAME, AT(mode), .words = advice_mode_words, .max = NR_ADVICE_MODES),
	FIELD("asked", NODES, AT(asked)),
	FIELD("given", NODES, AT(given)),
};
static const struct fields hint_fields = FIELDS(hint_rows, struct advice_result);
#undef AT

/* What is added to an ask has its row here, once: requests and pods both have it. (Its name, kind,
 * CPUs and memory were there before, each at its place in either.) */
#define ASK_ROWS                                                                                   \
	{.key = "guaranteed",                                                                      \
		.type = FIELD_BOOL,                                                                \
		.at = ASK_AT + offsetof(struct ask, guaranteed),                                   \
		.optional = true},                                                                 \
		{.key = "whole_pod",                                                               \
			.type = FIELD_BOOL,                                                        \
			.at = ASK_AT + offsetof(struct ask, whole_pod),                            \
			.optional = true},                                                         \
		{.key = "share_of",                                                                \
			.type = FIELD_NODES,                                                       \
			.at = ASK_AT + offsetof(struct ask, share_of),                             \
			.optional = true},                                                         \
		{.key = "has_devices",                                                             \
			.type = FIELD_BOOL,                                                        \
			.at = ASK_AT + offsetof(struct ask, has_devices),                          \
			.optional = true},                                                         \
		{.key = "devices_shown",                                                           \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, devices),                              \
			.optional = true,                                                          \
			.words = devices_shown_words,                                              \
			.max = NR_DEVICES_SHOWN},                                                  \
		{.key = "wish_nodes",                                                              \
			.type = FIELD_BOOL,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes_nodes),                         \
			.optional = true},                                                         \
		{.key = "wish_movable",                                                            \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.movable),                       \
			.optional = true,                                                          \
			.words = wish_movable_words,                                               \
			.max = NR_WISH_MOVABLE},                                                   \
		{.key = "wish_cpus",                                                               \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.cpus),                          \
			.optional = true,                                                          \
			.words = wish_cpus_words,                                                  \
			.max = NR_WISH_CPUS},                                                      \
		{.key = "wish_cores",                                                              \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.cores),                         \
			.optional = true,                                                          \
			.words = wish_cores_words,                                                 \
			.max = NR_WISH_CORES},                                                     \
		{.key = "wish_isolated",                                                           \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.isolated),                      \
			.optional = true,                                                          \
			.words = wish_isolated_words,                                              \
			.max = NR_WISH_ISOLATED},                                                  \
		{.key = "wish_spread",                                                             \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.spread),                        \
			.optional = true,                                                          \
			.words = wish_spread_words,                                                \
			.max = NR_WISH_SPREADS},                                                   \
		{.key = "wish_memory_policy",                                                      \
			.type = FIELD_NAME,                                                        \
			.at = ASK_AT + offsetof(struct ask, wishes.memory),                        \
			.optional = true,                                                          \
			.words = wish_memory_words,                                                \
			.max = NR_WISH_MEMORIES},                                                  \
		{.key = "wish_rdt_class",                                                          \
			.type = FIELD_CHARS,                                                       \
			.at = ASK_AT + offsetof(struct ask, wishes.rdt_class),                     \
			.max = WISH_CLASS_MAX,                                                     \
			.optional = true},                                                         \
		{.key = "wish_blockio_class",                                                      \
			.type = FIELD_CHARS,                                                       \
			.at = ASK_AT + offsetof(struct ask, wishes.blockio_class),                 \
			.max = WISH_CLASS_MAX,                                                     \
			.optional = true},                                                         \
		{.key = "wish_quiet",                                                              \
			.type = FIELD_CHARS,                                                       \
			.at = ASK_AT + offsetof(struct ask, wishes.quiet),                         \
			.max = WISH_QUIET_MAX,                                                     \
			.optional = true},                                                         \
		{.key = "odd_wish",                                                                \
			.type = FIELD_STRING,                                                      \
			.at = ASK_AT + offsetof(struct ask, odd_wish),                             \
			.optional = true},                                                         \
	{                                                                                          \
		.key = "hint", .type = FIELD_POINTER, .at = ASK_AT + offsetof(struct ask, advice), \
		.optional = true, .fields = &advice_ask_fields                                     \
	}

#define AT(member) offsetof(struct ask, member)
#define ASK_AT     0
static const struct field container_rows[] = {
	FIELD("name", STRING, AT(name)),
	FIELD("kind", NAME, AT(kind), .words = container_kind_words, .max = NR_CONTAINER_KINDS),
	FIELD("cpu_milli", U64, AT(cpu_milli)),
	FIELD("memory", ARRAY, AT(memory), .count = AT(nr_memory), .max = TOPO_KINDS,
		.fields = &memory_ask_fields),
	FIELD("devices", ARRAY, AT(device), .count = AT(nr_devices), .max = POD_DEVICES_MAX,
		.optional = true, .fields = &device_ask_fields),
	FIELD("tokens", U64, AT(tokens), .optional = true),
	ASK_ROWS,
};
const struct fields journal_ask_fields = FIELDS(container_rows, struct ask);
#undef ASK_AT
#undef AT

#define AT(member) offsetof(struct pod, member)
static const struct field pod_rows[] = {
	FIELD("policy", NAME, AT(policy), .has_flag = true, .flag = AT(has_policy),
		.words = topology_policy_words, .max = NR_POLICIES),
	FIELD("pod_level", BOOL, AT(pod_level)),
	FIELD("at_least", OBJECT, AT(totals), .has_flag = true, .flag = AT(totals.known),
		.fields = &totals_fields),
	FIELD("containers", LIST, AT(container), .count = AT(nr), .fields = &journal_ask_fields),
	FIELD("own", POINTER, AT(own), .optional = true, .fields = &journal_ask_fields),
	FIELD("attached", LIST, AT(attached), .count = AT(nr_attached), .optional = true,
		.fields = &resource_fields),
};
static const struct fields pod_fields = FIELDS(pod_rows, struct pod);
#undef AT

#define AT(member) offsetof(struct request, member)
#define ASK_AT     offsetof(struct request, ask)
static const struct field request_rows[] = {
	FIELD("container_name", STRING, AT(ask.name)),
	FIELD("kind", NAME, AT(ask.kind), .words = container_kind_words, .max = NR_CONTAINER_KINDS),
	FIELD("place", UNSIGNED, AT(ask.place)),
	FIELD("sandbox_id", STRING, AT(pod.sandbox_id)),
	FIELD("pod_uid", STRING, AT(pod.uid)),
	FIELD("pod_namespace", STRING, AT(pod.ns)),
	FIELD("pod_name", STRING, AT(pod.name)),
	FIELD("qos", NAME, AT(pod.qos), .words = qos_words, .max = NR_QOS),
	FIELD("totals", OBJECT, AT(pod.totals), .has_flag = true, .flag = AT(pod.totals.known),
		.fields = &totals_fields),
	FIELD("pod_level", BOOL, AT(pod.pod_level), .optional = true),
	FIELD("created_at_ns", I64, AT(created_at_ns)),
	FIELD("cpu_milli", U64, AT(ask.cpu_milli)),
	FIELD("cpu_limit_milli", U64, AT(ask.cpu_limit_milli)),
	FIELD("memory", ARRAY, AT(ask.memory), .count = AT(ask.nr_memory), .max = TOPO_KINDS,
		.fields = &memory_ask_fields),
	FIELD("cpus", STRING, AT(cpus)),
	FIELD("mems", STRING, AT(mems)),
	FIELD("cgroup", STRING, AT(cgroup), .optional = true),
	FIELD("no_memory_policy", BOOL, AT(no_memory_policy), .optional = true),
	FIELD("allocated", STRING, AT(allocated), .optional = true),
	FIELD("owner", NAME, AT(owner), .optional = true, .words = token_owner_words,
		.max = NR_TOKEN_OWNERS),
	FIELD("shares", STRING, AT(shares), .optional = true),
	FIELD("for_pods", STRING, AT(for_pods), .optional = true),
	FIELD("for_many", BOOL, AT(for_many), .optional = true),
	FIELD("for_one_pod", BOOL, AT(for_one_pod), .optional = true),
	FIELD("claims", NAME, AT(claims), .optional = true, .words = claims_known_words,
		.max = NR_CLAIMS_KNOWN),
	FIELD("apart", NAME, AT(apart), .optional = true, .words = pod_apart_words,
		.max = NR_POD_APARTS),
	ASK_ROWS,
	FIELD("policy", NAME, AT(pod.policy), .has_flag = true, .flag = AT(pod.has_policy),
		.words = topology_policy_words, .max = NR_POLICIES),
	FIELD("attached", LIST, AT(pod.attached), .count = AT(pod.nr_attached), .optional = true,
		.fields = &resource_fields),
};
static const struct fields request_fields = FIELDS(request_rows, struct request);
#undef ASK_AT
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
	FIELD("source", NAME, AT(source), .words = decision_source_words,
		.max = NR_DECISION_SOURCES),
	FIELD("policy", NAME, AT(policy), .words = topology_policy_words, .max = NR_POLICIES),
	FIELD("exclusive", BOOL, AT(exclusive)),
	FIELD("cpus", CPUS, AT(cpus)),
	FIELD("spread", NODES, AT(spread), .optional = true),
	FIELD("mems", NODES, AT(mems)),
	FIELD("nodes", NODES, AT(nodes), .has_flag = true, .flag = AT(has_affinity)),
	FIELD("preferred", BOOL, AT(preferred)),
	FIELD("blocks", ARRAY, AT(blocks), .count = AT(nr_blocks), .max = TOPO_KINDS,
		.fields = &block_fields),
	FIELD("hint", OBJECT, AT(advice), .has_flag = true, .flag = AT(advice.looked_at),
		.fields = &hint_fields),
	FIELD("placed_by", NAME, AT(placed_by), .optional = true, .words = placed_by_words,
		.max = NR_PLACED_BY),
	/* for a numafit that knows no other of these words, and from one */
	FIELD("left", WHETHER, AT(placed_by), .optional = true, .max = PLACED_LEFT),
	FIELD("left_on", CPUS, AT(left_on), .optional = true),
	FIELD("within_pod", BOOL, AT(within_pod), .optional = true),
	FIELD("within_claims", BOOL, AT(within_claims), .optional = true),
	FIELD("lost_cpus", BOOL, AT(lost_cpus), .optional = true),
	FIELD("moved_ms", I64, AT(moved_ms), .optional = true),
	FIELD("apart", NAME, AT(apart), .optional = true, .words = pod_apart_words,
		.max = NR_POD_APARTS),
	FIELD("lease", U64, AT(lease), .optional = true),
	FIELD("reason", STRING, AT(reason), .optional = true),
	FIELD("message", CHARS, AT(message), .max = DECISION_MESSAGE_MAX),
	FIELD("cut_short", BOOL, AT(cut_short), .optional = true),
	FIELD("steps", U64, AT(steps), .optional = true),
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

#define AT(member) offsetof(struct kept_note, member)
static const struct field quota_rows[] = {
	FIELD("cgroup", STRING, AT(place)),
	FIELD("was", STRING, AT(was)),
};
static const struct fields quota_fields = FIELDS(quota_rows, struct kept_note);
static const struct field quiet_rows[] = {
	FIELD("was", STRING, AT(was)),
};
static const struct fields quiet_fields = FIELDS(quiet_rows, struct kept_note);
#undef AT

#define AT(member) offsetof(struct lease_user, member)
static const struct field user_rows[] = {
	FIELD("container_id", CHARS, AT(container_id), .max = LEASE_ID_MAX),
	FIELD("container_name", CHARS, AT(container_name), .max = LEASE_NAME_MAX),
	FIELD("pod_uid", CHARS, AT(pod_uid), .max = LEASE_ID_MAX),
	FIELD("pod_namespace", CHARS, AT(pod_ns), .max = LEASE_NAME_MAX),
	FIELD("pod_name", CHARS, AT(pod_name), .max = LEASE_NAME_MAX),
};
static const struct fields user_fields = FIELDS(user_rows, struct lease_user);
#undef AT

#define AT(member) offsetof(struct lease, member)
static const struct field lease_rows[] = {
	FIELD("name", U64, AT(name)),
	FIELD("tokens", TOKENS, AT(tokens)),
	FIELD("since_ms", I64, AT(since_ms)),
	FIELD("claimed", BOOL, AT(claimed)),
	FIELD("shown", BOOL, AT(shown)),
	FIELD("user", OBJECT, AT(user), .fields = &user_fields),
};
static const struct fields lease_fields = FIELDS(lease_rows, struct lease);
#undef AT

#define AT(member) offsetof(struct defrag_figure, member)
static const struct field figure_rows[] = {
	FIELD("id", STRING, AT(container_id)),
	FIELD("memory", U64, AT(bytes)),
};
static const struct fields figure_fields = FIELDS(figure_rows, struct defrag_figure);
#undef AT

#define AT(member) offsetof(struct move_basis, member)
static const struct field basis_rows[] = {
	FIELD("moves", UNSIGNED, AT(moves), .max = DEFRAG_MOVES_MAX),
	FIELD("trials", U64, AT(trials)),
	FIELD("figures", LIST, AT(figures), .count = AT(nr_figures), .fields = &figure_fields),
};
static const struct fields basis_fields = FIELDS(basis_rows, struct move_basis);
#undef AT

/* A record, and what of it the table cannot reach. */
struct record_line {
	struct decoded_record of;
	bool has_pod, has_basis;
	struct pod pod;
};

#define AT(member) offsetof(struct record_line, member)
static const struct field record_rows[] = {
	FIELD("seq", U64, AT(of.record.seq)),
	FIELD("time_ms", I64, AT(of.record.time_ms)),
	FIELD("op", NAME, AT(of.record.op), .words = record_op_words, .max = NR_RECORD_OPS),
	FIELD("cause", STRING, AT(of.record.cause)),
	FIELD("container_id", STRING, AT(of.record.container_id)),
	FIELD("request", OBJECT, AT(of.request), .has_flag = true, .flag = AT(of.has_request),
		.fields = &request_fields),
	FIELD("decision", OBJECT, AT(of.decision), .has_flag = true, .flag = AT(of.has_decision),
		.fields = &decision_fields),
	FIELD("parts", LIST, AT(of.record.parts), .count = AT(of.record.nr_parts), .has_flag = true,
		.flag = AT(of.has_parts), .fields = &part_fields),
	FIELD("lease", POINTER, AT(of.record.lease), .optional = true, .fields = &lease_fields),
	FIELD("quota", POINTER, AT(of.record.quota), .optional = true, .fields = &quota_fields),
	FIELD("quiet", POINTER, AT(of.record.quiet), .optional = true, .fields = &quiet_fields),
	FIELD("basis", OBJECT, AT(of.basis), .has_flag = true, .flag = AT(has_basis),
		.fields = &basis_fields),
	FIELD("pod", OBJECT, AT(pod), .has_flag = true, .flag = AT(has_pod), .fields = &pod_fields),
	FIELD("pool", CPUS, AT(of.record.pool)),
};
static const struct fields record_fields = FIELDS(record_rows, struct record_line);
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
	FIELD("fingerprint", UNSIGNED, AT(header.fingerprint)),
	FIELD("says_placed_by", BOOL, AT(header.says_placed_by), .optional = true),
	FIELD("settings", MAP, AT(header.settings.at), .count = AT(header.settings.nr)),
	FIELD("core_rule", NAME, AT(header.core_rule), .optional = true, .words = core_rule_words,
		.max = NR_CORE_RULES),
	FIELD("topology", STRING, AT(header.topology)),
};
static const struct fields header_fields = FIELDS(header_rows, struct header_line);
#undef AT

/* Returns its length, or -EMSGSIZE. */
static int journal_json_line(char *buf, size_t cap, const struct fields *f, const void *line,
	const struct node_ids *ids, struct err *e)
{
	struct text t;

	text_init(&t, buf, cap);
	fields_write(&t, f, line, ids);
	if (t.cut)
		return err_set(e, EMSGSIZE, "the journal's line is longer than %zu bytes", cap - 1);
	return (int)t.len;
}

int journal_json_header(const struct journal_header *h, char *buf, size_t cap, struct err *e)
{
	struct header_line line = {.format = FORMAT, .header = *h};

	return journal_json_line(buf, cap, &header_fields, &line, NULL, e);
}

int journal_json_parse_header(
	const char *text, size_t len, struct arena *a, struct journal_header *out, struct err *e)
{
	struct header_line line = {0};
	int rc = fields_parse(
		text, len, &header_fields, &line, &(struct fields_context){.arena = a}, e);

	/* the format is read before what it decides on is looked for */
	if (line.format && line.format != FORMAT)
		return err_set(e, ENOTSUP,
			"it has format %u, numafit " NUMAFIT_VERSION " reads format %d only",
			line.format, FORMAT);
	if (rc)
		return rc;
	*out = line.header;
	return 0;
}

int journal_json_record(
	const struct record *r, const struct node_ids *ids, char *buf, size_t cap, struct err *e)
{
	struct record_line line = {
		.of = {.record = *r,
			.has_request = r->request,
			.has_decision = r->decision,
			.has_parts = r->parts},
		.has_pod = r->pod,
		.has_basis = r->basis,
	};

	if (r->request)
		line.of.request = *r->request;
	if (r->decision)
		line.of.decision = *r->decision;
	if (r->pod)
		line.pod = *r->pod;
	if (r->basis)
		line.of.basis = *r->basis;
	line.pod.totals.known = false; /* its containers are there */
	return journal_json_line(buf, cap, &record_fields, &line, ids, e);
}

int journal_json_refused(const struct request *container, const struct pod *pod,
	const struct node_ids *ids, char *buf, size_t cap, struct err *e)
{
	static const struct decision refused;
	const struct request whole = {.container_id = "",
		.ask = pod_ask(pod),
		.pod = pod_identity(pod),
		.cpus = "",
		.mems = ""};
	const struct record r = {.op = RECORD_REFUSE,
		.cause = "",
		.container_id = "",
		.request = container ? container : &whole,
		.decision = &refused,
		.pod = container ? NULL : pod};

	return journal_json_record(&r, ids, buf, cap, e);
}

/* Before there were the flags, a line said this in its message alone. A line that has them has
 * these texts only beside them, so that looking for the texts in every line finds nothing else. */
static void read_flags_of_old_decision(struct decision *d)
{
	static const char left[] = "left as it ran: onAdopt is leave",
			  lost[] = "CPUs are offline: ";

	if (!d->admit)
		return;
	if (text_equal(d->message, left))
		d->placed_by = PLACED_LEFT;
	d->lost_cpus = d->lost_cpus || strncmp(d->message, lost, sizeof lost - 1) == 0;
}

static int check_parts(const struct decoded_record *d, struct err *e)
{
	if (d->has_parts != (d->record.op == RECORD_HOLD))
		return err_set(e, EINVAL, "op: \"%s\" %s parts", record_op_words[d->record.op],
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
	enum record_op op = d->record.op;
	bool decided = op == RECORD_GRANT || op == RECORD_REFUSE, moves = op == RECORD_MOVE;
	bool leased = op == RECORD_ALLOCATE || op == RECORD_SHOWN || op == RECORD_GIVE_UP ||
		      op == RECORD_LEASE;
	const char *reason = d->decision.reason;

	if (d->has_request != decided || d->has_decision != (decided || moves))
		return err_set(e, EINVAL, "op: \"%s\" %s", record_op_words[op],
			decided ? "has a request and a decision"
			: moves ? "has a decision and no request"
				: "does not have a request and a decision");
	if ((decided || moves) && d->decision.admit != (op != RECORD_REFUSE))
		return err_set(
			e, EINVAL, "decision: admit contradicts op \"%s\"", record_op_words[op]);
	d->decision.reason = reason ? decision_reason(reason) : NULL;
	if (reason && !d->decision.reason)
		return err_set(e, EINVAL, "decision: reason: there is no \"%.64s\"", reason);
	if ((d->record.lease != NULL) != leased)
		return err_set(e, EINVAL, "op: \"%s\" %s a lease", record_op_words[op],
			leased ? "has" : "does not have");
	if ((d->record.quota != NULL) != (op == RECORD_QUOTA))
		return err_set(e, EINVAL, "op: \"%s\" %s a quota", record_op_words[op],
			op == RECORD_QUOTA ? "has" : "does not have");
	if ((d->record.quiet != NULL) != (op == RECORD_QUIET))
		return err_set(e, EINVAL, "op: \"%s\" %s what was kept", record_op_words[op],
			op == RECORD_QUIET ? "has" : "does not have");
	return check_parts(d, e);
}

static int check_attached(size_t nr, struct err *e)
{
	return nr > POD_DEVICES_MAX
		       ? err_set(e, E2BIG, "attached: %zu resources, at most %d can be", nr,
				 POD_DEVICES_MAX)
		       : 0;
}

static int check_pod(const struct record_line *line, struct err *e)
{
	const struct record *r = &line->of.record;

	if (r->op != RECORD_HOLD && r->op != RECORD_REFUSE && r->op != RECORD_MOVE)
		return err_set(e, EINVAL, "op: \"%s\" does not have a pod", record_op_words[r->op]);
	size_t nr = r->op == RECORD_HOLD && r->nr_parts
			    ? line->pod.nr + r->parts[0].request.ask.whole_pod
			    : line->pod.nr;

	if (r->op == RECORD_HOLD && nr != r->nr_parts)
		return err_set(
			e, EINVAL, "pod: %zu containers for %zu parts", line->pod.nr, r->nr_parts);
	if (line->pod.nr > UINT32_MAX)
		return err_set(e, ERANGE, "pod: %zu containers", line->pod.nr);
	for (size_t i = 0; i < line->pod.nr; i++)
		for (unsigned j = 0; j < line->pod.container[i].nr_devices; j++)
			if (line->pod.container[i].device[j].resource >= line->pod.nr_attached)
				return err_set(e, EINVAL,
					"pod: container %zu asks for a resource that is not there",
					i);
	return check_attached(line->pod.nr_attached, e);
}

int journal_json_parse(const char *text, size_t len, const struct node_ids *ids, struct arena *a,
	struct decoded_record *out, struct err *e)
{
	struct record_line line = {0};
	int rc = fields_parse(text, len, &record_fields, &line,
		&(struct fields_context){.ids = ids, .arena = a}, e);

	if (!rc)
		rc = check_record(&line.of, e);
	if (!rc)
		rc = check_attached(line.of.request.pod.nr_attached, e);
	if (!rc && line.has_pod)
		rc = check_pod(&line, e);
	if (!rc && line.has_basis && line.of.record.op != RECORD_MOVE)
		rc = err_set(e, EINVAL, "op: \"%s\" does not have a basis",
			record_op_words[line.of.record.op]);
	if (rc)
		return rc;
	struct record_part *part = (void *)(uintptr_t)line.of.record.parts; /* the arena's */
	read_flags_of_old_decision(&line.of.decision);
	for (size_t i = 0; i < line.of.record.nr_parts; i++)
		read_flags_of_old_decision(&part[i].decision);
	*out = line.of;
	out->request.container_id = out->record.container_id;
	out->record.request = out->has_request ? &out->request : NULL;
	out->record.decision = out->has_decision ? &out->decision : NULL;
	const bool moves = line.has_basis && line.has_pod;
	out->record.basis = line.has_basis ? &out->basis : NULL;
	if (!line.has_pod || !(out->has_request || out->record.nr_parts || moves))
		return 0;
	out->pod = line.pod;
	out->basis.pod = moves ? &out->pod : NULL;
	/* which pod it is stands in the request, or in that of each part; the one that moves make
	 * room for has no name */
	static const struct pod nameless = {
		.sandbox_id = "", .uid = "", .ns = "", .name = "", .qos = QOS_GUARANTEED};
	const struct pod *named = moves              ? &nameless
				  : out->has_request ? &out->request.pod
						     : &part[0].request.pod;
	out->pod.sandbox_id = named->sandbox_id;
	out->pod.uid = named->uid;
	out->pod.ns = named->ns;
	out->pod.name = named->name;
	out->pod.qos = named->qos;
	out->pod.totals = named->totals;
	out->record.pod = &out->pod;
	return 0;
}
