#include <numafit-cli/whatif_moves.h>

#include <codec/moves_json.h>
#include <numafit-cli/wording.h>
#include <numafit/mem.h>
#include <numafit/text.h>

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

char *whatif_moves_members(const struct journal_fold *f, const struct defrag_plan *plan)
{
	struct move_nodes words[DEFRAG_MOVES_MAX];
	auto_free struct moves *x = xcalloc(1, sizeof *x);

	*x = (struct moves){.found = plan->found,
		.cut = plan->cut,
		.bytes = plan->cost.bytes,
		.cpus = plan->cost.cpus,
		.nr = plan->nr};
	for (unsigned i = 0; i < plan->nr; i++)
		x->at[i] = moves_line_of(&f->topo, &plan->move[i], &words[i]);
	return moves_json_format(x);
}
