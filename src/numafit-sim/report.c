#include <numafit-sim/report.h>

#include <codec/fields.h>
#include <numafit-sim/node.h>
#include <numafit/text.h>
#include <string.h>

enum { TENTHS = 10 };

static const char *cpu_text(char buf[CPU_TEXT_MAX], uint64_t milli)
{
	bool whole = milli % MILLI_PER_CPU == 0;

	if (!milli)
		return strcpy(buf, "-");
	snprintf(buf, CPU_TEXT_MAX, "%llu%s",
		(unsigned long long)(whole ? milli / MILLI_PER_CPU : milli), whole ? "" : "m");
	return buf;
}

static const char *memory_text(char buf[MEMORY_TEXT_MAX], const struct asked *a)
{
	char size[TEXT_SIZE_MAX];
	struct text t;

	text_init(&t, buf, MEMORY_TEXT_MAX);
	if (a->memory_bytes)
		text_add(&t, "%s", text_size(size, a->memory_bytes));
	for (unsigned i = 0; i < a->nr_hugepages; i++) {
		const struct memory_ask *ask = &a->hugepages[i];

		text_add(&t, "%s%llux%s", t.len ? "+" : "",
			(unsigned long long)(ask->bytes / ask->page_bytes),
			text_size(size, ask->page_bytes));
	}
	return t.len ? buf : strcpy(buf, "-");
}

const char *distance_text(char buf[DISTANCE_TEXT_MAX], const struct topo *t, struct nodeset nodes)
{
	uint64_t sum = topo_distance_sum(t, nodes), pairs = nodeset_count(nodes);

	if (!pairs)
		return strcpy(buf, "-");
	pairs *= pairs;
	/* to the nearest tenth */
	uint64_t tenths = (sum * TENTHS * 2 + pairs) / (pairs * 2);

	snprintf(buf, DISTANCE_TEXT_MAX, tenths % TENTHS ? "%u.%u" : "%u",
		(unsigned)(tenths / TENTHS), (unsigned)(tenths % TENTHS));
	return buf;
}

/* One line as data: what both forms are printed from. */
struct row {
	const char *event, *ns, *pod, *container, *qos;
	char cpu[CPU_TEXT_MAX], memory[MEMORY_TEXT_MAX], distance[DISTANCE_TEXT_MAX];
	bool admitted, exclusive, preferred;
	struct cpuset cpus;
	struct nodeset mems, nodes;
	unsigned updates;
	const char *devices;                /* or NULL */
	const char *advice_asked, *verdict; /* of a scheduler's advice, or NULL */
	const char *message;
};

static void row_fill(
	struct row *row, const struct report *r, const struct container *c, const char *event)
{
	*row = (struct row){
		.event = event,
		.ns = c->ns,
		.pod = c->pod,
		.container = c->name,
		.qos = qos_words[c->asked.qos],
		.admitted = c->state == CONTAINER_RUNNING,
		.exclusive = container_exclusive(c),
		.preferred = c->placed && c->says.preferred,
		.cpus = c->now.cpus,
		.mems = c->now.mems,
		.nodes = container_nodes(r->node->topo, c),
	};
	if (c->state == CONTAINER_REFUSED) {
		row->cpus = (struct cpuset){0};
		row->mems = row->nodes = (struct nodeset){0};
	}
	cpu_text(row->cpu, c->asked.cpu_milli);
	memory_text(row->memory, &c->asked);
	distance_text(row->distance, r->node->topo, row->nodes);
}

#define AT(member) offsetof(struct row, member)
static const struct field row_fields[] = {
	FIELD("event", STRING, AT(event)),
	FIELD("namespace", STRING, AT(ns)),
	FIELD("pod", STRING, AT(pod)),
	FIELD("container", STRING, AT(container)),
	FIELD("qos", STRING, AT(qos)),
	FIELD("cpu", CHARS, AT(cpu), .max = CPU_TEXT_MAX),
	FIELD("memory", CHARS, AT(memory), .max = MEMORY_TEXT_MAX),
	FIELD("admitted", BOOL, AT(admitted)),
	FIELD("exclusive", BOOL, AT(exclusive)),
	FIELD("cpus", CPUS, AT(cpus)),
	FIELD("mems", NODES, AT(mems)),
	FIELD("nodes", NODES, AT(nodes)),
	FIELD("distance", CHARS, AT(distance), .max = DISTANCE_TEXT_MAX),
	FIELD("preferred", BOOL, AT(preferred)),
	FIELD("updates", UNSIGNED, AT(updates)),
	FIELD("devices", STRING, AT(devices), .optional = true),
	FIELD("hintAsked", STRING, AT(advice_asked), .optional = true),
	FIELD("hintVerdict", STRING, AT(verdict), .optional = true),
	FIELD("message", STRING, AT(message), .optional = true),
};
static const struct fields row_json = FIELDS(row_fields, struct row);

/* The summary: the report's own counters. */
static const struct field end_fields[] = {
	FIELD("placed", UNSIGNED, offsetof(struct report, placed)),
	FIELD("refused", UNSIGNED, offsetof(struct report, refused)),
	FIELD("oneNode", UNSIGNED, offsetof(struct report, one_node)),
	FIELD("nearest", UNSIGNED, offsetof(struct report, nearest)),
	FIELD("farther", UNSIGNED, offsetof(struct report, farther)),
	FIELD("anyNode", UNSIGNED, offsetof(struct report, any_node)),
	FIELD("updatesRefused", UNSIGNED, offsetof(struct report, updates_refused)),
	FIELD("updates", UNSIGNED, offsetof(struct report, updates)),
};
static const struct fields end_json = FIELDS(end_fields, struct report);

enum { JSON_LINE_MAX = 32 << 10 };

static void print_report_json(const struct report *r, const struct fields *f, const void *from)
{
	char line[JSON_LINE_MAX];
	struct text t;

	text_init(&t, line, sizeof line);
	fields_write(&t, f, from, &r->node->topo->ids);
	fprintf(r->out, "%s\n", line);
}

/* The table's columns, 100 wide with the blanks between; the first ones have what was asked for. */
enum column { NAME, QOS, CPU, MEMORY, CPUS, NODES, MEMS, DISTANCE, PREFERRED, MOVED, NR_COLUMNS };
static const struct {
	const char *title;
	int width;
} columns[NR_COLUMNS] = {
	[NAME] = {"POD/CONTAINER", 23},
	[QOS] = {"QOS", 10},
	[CPU] = {"CPU", 5},
	[MEMORY] = {"MEMORY", 12},
	[CPUS] = {"GIVEN CPUS", 18},
	[NODES] = {"NODES", 5},
	[MEMS] = {"MEMS", 5},
	[DISTANCE] = {"DIST", 4},
	[PREFERRED] = {"PREF", 4},
	[MOVED] = {"MOVED", 0},
};

enum { LINE_TEXT_MAX = CPUSET_TEXT_MAX + 1024 };
struct line {
	struct text t;
	char buf[LINE_TEXT_MAX];
};

static void line_put(struct line *l, enum column c, const char *text)
{
	if (c == NAME)
		text_init(&l->t, l->buf, sizeof l->buf);
	text_add(&l->t, "%-*s ", columns[c].width, text);
}

static void line_put_asked(struct line *l, const struct row *row)
{
	char name[2 * SIM_NAME_MAX];

	snprintf(name, sizeof name, "%s/%s", row->pod, row->container);
	line_put(l, NAME, name);
	line_put(l, QOS, row->qos);
	line_put(l, CPU, row->cpu);
	line_put(l, MEMORY, row->memory);
}

static void line_put_given(struct line *l, const struct row *row, const struct node_ids *ids)
{
	bool aligned = !nodeset_empty(row->nodes);
	char cpus[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX], moved[TEXT_SIZE_MAX] = "";

	if (row->exclusive)
		cpuset_format(&row->cpus, cpus, sizeof cpus);
	else
		snprintf(cpus, sizeof cpus, "shared (%u)", cpuset_count(&row->cpus));
	if (row->updates)
		snprintf(moved, sizeof moved, "%u", row->updates);
	line_put(l, CPUS, cpus);
	line_put(l, NODES, aligned ? nodeset_format(row->nodes, ids, nodes, sizeof nodes) : "-");
	line_put(l, MEMS, nodeset_format(row->mems, ids, nodes, sizeof nodes));
	line_put(l, DISTANCE, row->distance);
	line_put(l, PREFERRED, !aligned ? "-" : row->preferred ? "yes" : "no");
	line_put(l, MOVED, moved);
}

static void print_report_line(FILE *out, const struct line *l)
{
	size_t len = l->t.len;

	while (len && l->buf[len - 1] == ' ')
		len--;
	fprintf(out, "%.*s\n", (int)len, l->buf);
}

/* The rest of the line: text, broken at blanks so that it keeps right of what was asked. */
static void line_put_message(struct line *l, const char *text)
{
	int from = 0;

	for (enum column c = NAME; c < CPUS; c++)
		from += columns[c].width + 1;
	size_t room = (size_t)(PICTURE_WIDTH - from);

	while (strlen(text) > room) {
		size_t cut = room;

		while (cut && text[cut] != ' ')
			cut--;
		cut = cut ? cut : room;
		text_add(&l->t, "%.*s\n%*s", (int)cut, text, from, "");
		text += cut + (text[cut] == ' ');
	}
	text_add(&l->t, "%s", text);
}

static void print_report_row(struct report *r, struct row *row, const char *message)
{
	row->message = message;
	r->updates += row->updates;
	if (r->json) {
		print_report_json(r, &row_json, row);
	} else {
		struct line l;

		line_put_asked(&l, row);
		if (message)
			line_put_message(&l, message);
		else
			line_put_given(&l, row, &r->node->topo->ids);
		print_report_line(r->out, &l);
	}
	fflush(r->out);
}

void report_begin(struct report *r)
{
	struct line l;

	if (r->json)
		return;
	for (enum column c = NAME; c < NR_COLUMNS; c++)
		line_put(&l, c, columns[c].title);
	print_report_line(r->out, &l);
}

/* Count how well it was placed. */
static void count_placement(struct report *r, struct nodeset nodes)
{
	r->placed++;
	if (nodeset_empty(nodes))
		r->any_node++;
	else if (nodeset_count(nodes) == 1)
		r->one_node++;
	else if (nodes_are_nearest(r->node->topo, nodes))
		r->nearest++;
	else
		r->farther++;
}

enum { MESSAGE_MAX = 1024 };

void report_create(struct report *r, const struct container *c, const char *refusal, unsigned moved)
{
	char message[MESSAGE_MAX];
	struct row row;

	row_fill(&row, r, c, trace_op_name(TRACE_CREATE));
	row.updates = moved;
	row.advice_asked = c->advised.asked;
	row.verdict = c->advised.verdict;
	if (refusal) {
		r->refused++;
		snprintf(message, sizeof message, "refused: %s", refusal);
		print_report_row(r, &row, message);
		return;
	}
	count_placement(r, row.nodes);
	row.devices = c->devices;
	print_report_row(r, &row, NULL);
	if (c->devices && !r->json)
		fprintf(r->out, "  with %s\n", c->devices);
	fflush(r->out);
}

void report_update(struct report *r, const struct container *c, const char *refusal, unsigned moved)
{
	char message[MESSAGE_MAX], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct text t;
	struct row row;

	row_fill(&row, r, c, trace_op_name(TRACE_UPDATE));
	row.admitted = !refusal;
	row.updates = moved;
	r->updates_refused += refusal != NULL;
	text_init(&t, message, sizeof message);
	if (refusal)
		text_add(&t, "update refused: %s", refusal);
	else
		text_add(&t, "updated: cpus %s, mems %s in force",
			cpuset_format(&c->now.cpus, cpus, sizeof cpus),
			nodeset_format(c->now.mems, &r->node->topo->ids, mems, sizeof mems));
	print_report_row(r, &row, message);
}

void report_stop(struct report *r, const struct container *c, const char *how, unsigned moved)
{
	char message[MESSAGE_MAX];
	struct text t;
	struct row row;

	row_fill(&row, r, c, trace_op_name(TRACE_STOP));
	row.updates = moved;
	text_init(&t, message, sizeof message);
	text_add(&t, "%s", how);
	if (moved)
		text_add(&t, ", %u running container%s moved", moved, text_plural(moved));
	print_report_row(r, &row, message);
}

struct restart {
	const char *event;
	unsigned containers, updates;
};
static const struct field restart_fields[] = {
	FIELD("event", STRING, offsetof(struct restart, event)),
	FIELD("containers", UNSIGNED, offsetof(struct restart, containers)),
	FIELD("updates", UNSIGNED, offsetof(struct restart, updates)),
};
static const struct fields restart_json = FIELDS(restart_fields, struct restart);

void report_restart(struct report *r, unsigned nr, unsigned moved)
{
	struct restart row = {trace_op_name(TRACE_RESTART_RUNTIME), nr, moved};

	r->updates += moved;
	if (r->json)
		print_report_json(r, &restart_json, &row);
	else
		fprintf(r->out,
			"-- the runtime came back: %u running container%s listed, %u set anew\n",
			nr, text_plural(nr), moved);
	fflush(r->out);
}

void report_restart_kubelet(struct report *r)
{
	if (r->json)
		fprintf(r->out, "{\"event\":\"%s\"}\n", trace_op_name(TRACE_RESTART_KUBELET));
	else
		fprintf(r->out, "-- the kubelet came back\n");
	fflush(r->out);
}

void report_end(struct report *r)
{
	if (r->json) {
		print_report_json(r, &end_json, r);
		return;
	}
	fputc('\n', r->out);
	picture_draw(r->out, r->node);
	advised_print(r->out, r->node);
	fprintf(r->out,
		"\n%u container%s created: %u placed (%u on one NUMA node, %u on nearest ones, "
		"%u farther apart, %u on any), %u refused\n",
		r->placed + r->refused, text_plural(r->placed + r->refused), r->placed, r->one_node,
		r->nearest, r->farther, r->any_node, r->refused);
	fprintf(r->out,
		"%u update%s refused; running containers were given another cpuset %u time%s; no "
		"CPU given twice\n",
		r->updates_refused, text_plural(r->updates_refused), r->updates,
		text_plural(r->updates));
}
