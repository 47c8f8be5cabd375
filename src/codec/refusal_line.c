#include <codec/refusal_line.h>

#include <assert.h>
#include <codec/journal_json.h>
#include <numafit/mem.h>
#include <string.h>

enum { MEMBERS_MAX = 64 << 10, SAID_MAX = 4 << 10 };

/* A pod that a remedy lets end. */
struct pod_line {
	const char *ns, *name, *uid;
	uint64_t cpus;
	struct nodeset nodes;
};

#define AT(member) offsetof(struct pod_line, member)
static const struct field pod_rows[] = {
	FIELD("namespace", STRING, AT(ns)),
	FIELD("name", STRING, AT(name)),
	FIELD("uid", STRING, AT(uid)),
	FIELD("cpus", U64, AT(cpus)),
	FIELD("nodes", NODES, AT(nodes)),
};
static const struct fields pod_fields = FIELDS(pod_rows, struct pod_line);
#undef AT

struct remedy_line {
	enum remedy_kind kind;
	char text[SAID_MAX];
	uint64_t nr_pods; /* that end; the first ones of them: */
	unsigned nr_named;
	struct pod_line pod[REMEDY_PODS];
	const char *container;
	const struct ask *ask;
	uint64_t tokens;
	bool has_setting, has_nodes;
	struct key_value setting;
	const struct key_value *settings;
	size_t nr_settings;
	char value[REMEDY_VALUE_MAX];
	struct nodeset nodes;
};

#define AT(member) offsetof(struct remedy_line, member)
static const struct field remedy_rows[] = {
	FIELD("kind", NAME, AT(kind), .words = remedy_kind_words, .max = NR_REMEDIES),
	FIELD("text", CHARS, AT(text), .max = SAID_MAX),
	FIELD("nr_pods", U64, AT(nr_pods), .optional = true),
	FIELD("pods", ARRAY, AT(pod), .count = AT(nr_named), .max = REMEDY_PODS, .optional = true,
		.fields = &pod_fields),
	FIELD("container", STRING, AT(container), .optional = true),
	FIELD("ask", POINTER, AT(ask), .optional = true, .fields = &journal_ask_fields),
	FIELD("tokens", U64, AT(tokens), .optional = true),
	FIELD("settings", MAP, AT(settings), .count = AT(nr_settings), .has_flag = true,
		.flag = AT(has_setting)),
	FIELD("nodes", NODES, AT(nodes), .has_flag = true, .flag = AT(has_nodes)),
};
static const struct fields remedy_fields = FIELDS(remedy_rows, struct remedy_line);
#undef AT

struct refusal_line {
	const char *class, *why, *help;
	unsigned nr_remedies;
	struct remedy_line remedy[DIAGNOSIS_REMEDIES];
	bool left_out;
};

#define AT(member) offsetof(struct refusal_line, member)
static const struct field refusal_rows[] = {
	FIELD("class", STRING, AT(class), .optional = true),
	FIELD("why", STRING, AT(why)),
	FIELD("help", STRING, AT(help), .optional = true),
	FIELD("remedies", ARRAY, AT(remedy), .count = AT(nr_remedies), .max = DIAGNOSIS_REMEDIES,
		.fields = &remedy_fields),
	FIELD("remedies_left_out", BOOL, AT(left_out), .optional = true),
};
static const struct fields refusal_fields = FIELDS(refusal_rows, struct refusal_line);
#undef AT

static void remedy_line_init(
	struct remedy_line *to, const struct remedy *r, const struct admit_question *q)
{
	unsigned named = r->nr_pods < REMEDY_PODS ? r->nr_pods : REMEDY_PODS;
	struct text t;

	*to = (struct remedy_line){.kind = r->kind,
		.nr_pods = r->nr_pods,
		.nr_named = named,
		.container = r->container,
		.ask = r->kind == REMEDY_LESS ? &r->ask : NULL,
		.tokens = r->kind == REMEDY_TOKENS ? r->value : 0,
		.nr_settings = 1,
		.nodes = r->nodes,
		.has_nodes = !nodeset_empty(r->nodes)};
	to->settings = &to->setting;
	to->has_setting = remedy_setting(r, &to->setting, to->value);
	for (unsigned i = 0; i < named; i++) {
		const struct pod *pod = &r->pod[i].entry->request.pod;

		to->pod[i] = (struct pod_line){
			pod->ns, pod->name, pod->uid, r->pod[i].cpus, r->pod[i].nodes};
	}
	text_init(&t, to->text, sizeof to->text);
	diagnosis_add_remedy(&t, r, q, POD_NAMES_ALL);
}

/* Names of pods may be of any size in a journal that is not ours: where they do not fit, the
 * texts of the remedies are in `help`. */
static char *members_of(struct refusal_line *x, const struct node_ids *ids)
{
	auto_free char *buf = xcalloc(MEMBERS_MAX, 1);
	struct text t;

	text_init(&t, buf, MEMBERS_MAX);
	fields_write(&t, &refusal_fields, x, ids);
	if (t.cut) {
		x->nr_remedies = 0;
		text_init(&t, buf, MEMBERS_MAX);
		fields_write(&t, &refusal_fields, x, ids);
	}
	assert(!t.cut);
	return xstrdup(buf);
}

char *refusal_members(
	const struct admit_question *q, const struct decision *refused, const struct diagnosis *why)
{
	auto_free struct refusal_line *x = xcalloc(1, sizeof *x);
	char said[SAID_MAX], help[SAID_MAX];
	struct text t;

	*x = (struct refusal_line){.class = refusal_class_words[why->class],
		.why = said,
		.help = help,
		.nr_remedies = why->nr_remedies,
		.left_out = why->remedies_left_out};
	text_init(&t, said, sizeof said);
	diagnosis_add_numbers(&t, why, refused, q);
	text_init(&t, help, sizeof help);
	diagnosis_add_remedies(&t, why, q, POD_NAMES_ALL);
	for (unsigned i = 0; i < why->nr_remedies; i++)
		remedy_line_init(&x->remedy[i], &why->remedy[i], q);
	return members_of(x, &ledger_view(q->ledger)->topo->ids);
}

char *refusal_members_recorded(const struct decision *refused)
{
	auto_free struct refusal_line *x = xcalloc(1, sizeof *x);

	x->why = refused->message;

	return members_of(x, NULL);
}

char *refusal_line_join(const char *line, const char *members)
{
	const size_t len = strlen(line), cap = len + strlen(members) + 1;
	char *both = xcalloc(cap, 1);

	assert(len && line[len - 1] == '}');
	(void)snprintf(both, cap, "%.*s,%s", (int)(len - 1), line, members + 1);
	return both;
}

void refusal_line_print(FILE *to, const char *line, const char *members)
{
	auto_free char *both = refusal_line_join(line, members);

	(void)fprintf(to, "%s\n", both);
}
