#include <numafit-cli/whatif_moves.h>

#include <codec/fields.h>
#include <numafit-cli/wording.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <stddef.h>
#include <stdio.h>

enum { TRIALS_MAX = 20000, /* some seconds on a large machine */ MEMBERS_MAX = 64 << 10 };

static void print_set(const struct journal_fold *f, const struct decision *d)
{
	char cpus[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX];

	(void)printf("CPUs %s on NUMA node%s %s", cpuset_format(&d->cpus, cpus, sizeof cpus),
		nodeset_count(decision_nodes_used(&f->topo, d)) == 1 ? "" : "s",
		nodeset_format(
			decision_nodes_used(&f->topo, d), &f->topo.ids, nodes, sizeof nodes));
}

static void print_move(const struct journal_fold *f, unsigned nr, const struct defrag_move *m)
{
	const struct request *r = &m->from->request;
	char bytes[TEXT_SIZE_MAX];

	(void)printf("  %u. ", nr);
	wording_print_plain(stdout, r->pod.ns);
	(void)putchar('/');
	wording_print_plain(stdout, r->pod.name);
	(void)putchar('/');
	wording_print_plain(stdout, r->ask.name);
	(void)printf(", %s of memory\n     from ", text_size(bytes, m->cost.bytes));
	print_set(f, &m->from->decision);
	(void)printf("\n     to   ");
	print_set(f, &m->to);
	(void)putchar('\n');
}

int whatif_plan_moves(const struct journal_fold *f, const struct settings *s, const struct pod *pod,
	unsigned moves, struct defrag_plan *plan, struct err *e)
{
	const struct defrag_question q = {.engine = f->engine,
		.topo = &f->topo,
		.settings = s,
		.pod = pod,
		.moves = moves,
		.trials = TRIALS_MAX};

	return defrag_plan(&q, plan, e);
}

void whatif_print_moves(
	const struct journal_fold *f, unsigned moves, const struct defrag_plan *plan)
{
	char bytes[TEXT_SIZE_MAX];

	if (!plan->found)
		(void)printf("\nno %u move%s of running containers would make room for it%s\n",
			moves, moves == 1 ? "" : "s", plan->cut ? ", as far as was looked" : "");
	if (!plan->found || !plan->nr)
		return;
	(void)printf("\nit would have as few NUMA nodes as on an empty machine after %u move%s "
		     "(%s of memory, %u CPUs%s):\n",
		plan->nr, plan->nr == 1 ? "" : "s", text_size(bytes, plan->cost.bytes),
		plan->cost.cpus, plan->cut ? "; there may be a cheaper way" : "");
	for (unsigned i = 0; i < plan->nr; i++)
		print_move(f, i + 1, &plan->move[i]);
	(void)puts("numafit moves no running container: whoever can, ends these and creates them "
		   "again there");
}

/* For programs */

struct move_line {
	const char *ns, *pod, *container, *id;
	uint64_t bytes;
	struct cpuset from_cpus, to_cpus;
	struct nodeset from_nodes, to_nodes;
};
struct moves_line {
	bool found, cut;
	uint64_t bytes;
	unsigned cpus, nr;
	struct move_line at[DEFRAG_MOVES_MAX];
};
struct moves_document {
	struct moves_line moves;
};

#define AT(member) offsetof(struct move_line, member)
static const struct field move_rows[] = {
	FIELD("namespace", STRING, AT(ns)),
	FIELD("pod", STRING, AT(pod)),
	FIELD("container", STRING, AT(container)),
	FIELD("id", STRING, AT(id)),
	FIELD("memory", U64, AT(bytes)),
	FIELD("from_cpus", CPUS, AT(from_cpus)),
	FIELD("from_nodes", NODES, AT(from_nodes)),
	FIELD("to_cpus", CPUS, AT(to_cpus)),
	FIELD("to_nodes", NODES, AT(to_nodes)),
};
static const struct fields move_fields = FIELDS(move_rows, struct move_line);
#undef AT
#define AT(member) offsetof(struct moves_line, member)
static const struct field moves_rows[] = {
	FIELD("found", BOOL, AT(found)),
	FIELD("cut", BOOL, AT(cut)),
	FIELD("memory", U64, AT(bytes)),
	FIELD("cpus", UNSIGNED, AT(cpus)),
	FIELD("list", ARRAY, AT(at), .count = AT(nr), .max = DEFRAG_MOVES_MAX,
		.fields = &move_fields),
};
static const struct fields moves_fields = FIELDS(moves_rows, struct moves_line);
#undef AT
static const struct field document_rows[] = {
	FIELD("moves", OBJECT, offsetof(struct moves_document, moves), .fields = &moves_fields),
};
static const struct fields document_fields = FIELDS(document_rows, struct moves_document);

char *whatif_moves_members(const struct journal_fold *f, const struct defrag_plan *plan)
{
	auto_free char *buf = xcalloc(MEMBERS_MAX, 1);
	struct moves_document x = {{.found = plan->found,
		.cut = plan->cut,
		.bytes = plan->cost.bytes,
		.cpus = plan->cost.cpus,
		.nr = plan->nr}};
	struct text t;

	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];
		const struct request *r = &m->from->request;

		x.moves.at[i] = (struct move_line){r->pod.ns, r->pod.name, r->ask.name,
			r->container_id, m->cost.bytes, m->from->decision.cpus, m->to.cpus,
			decision_nodes_used(&f->topo, &m->from->decision),
			decision_nodes_used(&f->topo, &m->to)};
	}
	text_init(&t, buf, MEMBERS_MAX);
	fields_write(&t, &document_fields, &x, &f->topo.ids);
	return t.cut ? NULL : steal(buf);
}
