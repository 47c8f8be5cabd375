#include <numafit-cli/whatif_moves.h>

#include <numafit-cli/wording.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <stdio.h>
#include <string.h>

static void print_set(const struct cpuset *cpus, const char *nodes)
{
	char list[CPUSET_TEXT_MAX];

	(void)printf("CPUs %s on NUMA node%s %s\n", cpuset_format(cpus, list, sizeof list),
		strpbrk(nodes, ",-") ? "s" : "", nodes);
}

void moves_print_name(const struct move_line *m)
{
	wording_print_plain(stdout, m->ns);
	(void)putchar('/');
	wording_print_plain(stdout, m->pod);
	(void)putchar('/');
	wording_print_plain(stdout, m->container);
}

void moves_print_time(uint64_t ms)
{
	const unsigned long long tenths = number_max((ms + MS_PER_S / 20) / (MS_PER_S / 10), 1);

	(void)printf("%llu.%llu s", tenths / 10, tenths % 10);
}

void moves_print_list(const struct moves *m)
{
	char bytes[TEXT_SIZE_MAX];

	for (unsigned i = 0; i < m->nr; i++) {
		const struct move_line *one = &m->at[i];

		(void)printf("  %u. ", i + 1);
		moves_print_name(one);
		(void)printf(", %s of memory", text_size_rounded(bytes, one->bytes));
		if (one->ms && one->state == MOVE_PLANNED) {
			(void)printf(", some ");
			moves_print_time(one->ms);
		}
		if (one->state != MOVE_PLANNED)
			(void)printf(": %s", move_state_words[one->state]);
		if (one->state == MOVE_DONE) {
			(void)printf(" in ");
			moves_print_time(one->ms);
		}
		if (one->why) {
			(void)printf(": ");
			wording_print_plain(stdout, one->why);
		}
		(void)printf("\n     from ");
		print_set(&one->from_cpus, one->from_nodes);
		(void)printf("     to   ");
		print_set(&one->to_cpus, one->to_nodes);
	}
}

int whatif_plan_moves(const struct journal_fold *f, const struct settings *s, const struct pod *pod,
	unsigned most, uint64_t trials, struct whatif_moves *out, struct err *e)
{
	const struct defrag_question q = {.engine = f->engine,
		.topo = &f->topo,
		.settings = s,
		.pod = pod,
		.moves = most,
		.trials = trials};
	const struct defrag_plan *plan = &out->plan;
	int rc = defrag_plan(&q, &out->plan, e);

	if (rc)
		return rc;
	moves_of_plan(&f->topo, plan, out->words, &out->moves);
	return 0;
}

void whatif_print_moves(const struct moves *m, unsigned most)
{
	char bytes[TEXT_SIZE_MAX];

	if (!m->found)
		(void)printf("\nno %u move%s of running containers would make room for it%s\n",
			most, text_plural(most), m->cut ? ", as far as was looked" : "");
	if (!m->found || !m->nr)
		return;
	(void)printf("\nit would have as few NUMA nodes as on an empty machine after %u move%s "
		     "(%s of memory, %u CPU%s%s):\n",
		m->nr, text_plural(m->nr), text_size(bytes, m->bytes), m->cpus,
		text_plural(m->cpus), m->cut ? "; there may be a cheaper way" : "");
	moves_print_list(m);
	(void)puts("numafit defrag --apply makes such moves, where containers can be moved");
}
