#include <codec/moves_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>

enum { MOVES_JSON_MAX = 64 << 10 };

const char *const move_state_words[NR_MOVE_STATES] = {
	"planned", "moving", "moved", "undone", "gone"};
const char *const moves_state_words[NR_MOVES_STATES] = {"planned", "moving", "done", "failed"};

#define AT(member) offsetof(struct move_line, member)
static const struct field move_rows[] = {
	FIELD("namespace", STRING, AT(ns)),
	FIELD("pod", STRING, AT(pod)),
	FIELD("container", STRING, AT(container)),
	FIELD("id", STRING, AT(id)),
	FIELD("memory", U64, AT(bytes)),
	FIELD("from_cpus", CPUS, AT(from_cpus)),
	FIELD("from_nodes", STRING, AT(from_nodes)),
	FIELD("to_cpus", CPUS, AT(to_cpus)),
	FIELD("to_nodes", STRING, AT(to_nodes)),
	FIELD("milliseconds", U64, AT(ms), .optional = true),
	FIELD("memory_moved", U64, AT(moved), .optional = true),
	FIELD("state", NAME, AT(state), .optional = true, .words = move_state_words,
		.max = NR_MOVE_STATES),
	FIELD("why", STRING, AT(why), .optional = true),
};
static const struct fields move_fields = FIELDS(move_rows, struct move_line);
#undef AT

#define AT(member) offsetof(struct moves, member)
static const struct field moves_rows[] = {
	FIELD("found", BOOL, AT(found)),
	FIELD("cut", BOOL, AT(cut)),
	FIELD("state", NAME, AT(state), .optional = true, .words = moves_state_words,
		.max = NR_MOVES_STATES),
	FIELD("pod", STRING, AT(pod), .optional = true),
	FIELD("cannot", STRING, AT(cannot), .optional = true),
	FIELD("not_preferred", U64, AT(not_preferred), .optional = true),
	FIELD("not_preferred_then", U64, AT(not_preferred_then), .optional = true),
	FIELD("memory", U64, AT(bytes)),
	FIELD("milliseconds", U64, AT(ms), .optional = true),
	FIELD("cpus", UNSIGNED, AT(cpus)),
	FIELD("list", ARRAY, AT(at), .count = AT(nr), .max = DEFRAG_MOVES_MAX,
		.fields = &move_fields),
};
const struct fields moves_fields = FIELDS(moves_rows, struct moves);
#undef AT

/* An object of its own, so that it can be a member of others. */
struct moves_document {
	const char *error;
	bool has_moves;
	struct moves moves;
};
#define AT(member) offsetof(struct moves_document, member)
static const struct field document_rows[] = {
	FIELD("error", STRING, AT(error), .optional = true),
	FIELD("moves", OBJECT, AT(moves), .has_flag = true, .flag = AT(has_moves),
		.fields = &moves_fields),
};
#undef AT
static const struct fields document_fields = FIELDS(document_rows, struct moves_document);

static struct move_line moves_line_of(
	const struct topo *t, const struct defrag_move *m, struct move_nodes *words)
{
	const struct request *r = &m->from->request;

	return (struct move_line){
		.ns = r->pod.ns,
		.pod = r->pod.name,
		.container = r->ask.name,
		.id = r->container_id,
		.bytes = m->cost.bytes,
		.from_cpus = m->from->decision.cpus,
		.to_cpus = m->to.cpus,
		.from_nodes = nodeset_format(decision_nodes_used(t, &m->from->decision), &t->ids,
			words->from, sizeof words->from),
		.to_nodes = nodeset_format(
			decision_nodes_used(t, &m->to), &t->ids, words->to, sizeof words->to),
	};
}

void moves_of_plan(const struct topo *t, const struct defrag_plan *plan,
	struct move_nodes words[DEFRAG_MOVES_MAX], struct moves *out)
{
	*out = (struct moves){
		.found = plan->found,
		.cut = plan->cut,
		.not_preferred = plan->not_preferred_before,
		.not_preferred_then = plan->not_preferred_after,
		.bytes = plan->cost.bytes,
		.cpus = plan->cost.cpus,
		.nr = plan->nr,
	};
	for (unsigned i = 0; i < plan->nr; i++)
		out->at[i] = moves_line_of(t, &plan->move[i], &words[i]);
}

static char *format_document(const struct moves_document *x)
{
	auto_free char *buf = xcalloc(MOVES_JSON_MAX, 1);
	struct text t;

	text_init(&t, buf, MOVES_JSON_MAX);
	fields_write(&t, &document_fields, x, NULL);
	return t.cut ? NULL : steal(buf);
}

char *moves_json_format(const struct moves *m)
{
	auto_free struct moves_document *x = xcalloc(1, sizeof *x);

	x->has_moves = true;
	x->moves = *m;
	return format_document(x);
}

char *moves_json_error(const char *why)
{
	return format_document(&(struct moves_document){.error = why});
}

int moves_json_parse(
	const char *text, size_t len, struct arena *a, struct moves *out, struct err *e)
{
	auto_free struct moves_document *x = xcalloc(1, sizeof *x);
	int rc = fields_parse(
		text, len, &document_fields, x, &(struct fields_context){.arena = a}, e);

	if (rc)
		return rc;
	if (x->error)
		return err_set(e, EREMOTEIO, "%s", x->error);
	if (!x->has_moves)
		return err_set(e, EINVAL, "moves is missing");
	*out = x->moves;
	return 0;
}
