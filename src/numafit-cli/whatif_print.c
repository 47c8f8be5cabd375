#include <numafit-cli/whatif_print.h>

#include <codec/journal_json.h>
#include <io/journal.h>
#include <codec/refusal_line.h>
#include <numafit-cli/table.h>
#include <numafit-cli/wording.h>
#include <numafit/mem.h>
#include <numafit/snapshot.h>
#include <numafit/text.h>

#include <stdio.h>

static unsigned free_cpus_of(const struct snapshot_node *n)
{
	return n->cpus - n->cpus_held - n->cpus_reserved;
}

static void add_node_cells(struct table *t, const struct snapshot_node *was,
	const struct snapshot_node *is, unsigned nr_kinds)
{
	char left[TEXT_SIZE_MAX], before[TEXT_SIZE_MAX];

	if (free_cpus_of(was) == free_cpus_of(is))
		table_add(t, "%u of %u", free_cpus_of(is), is->cpus);
	else
		table_add(t, "%u of %u (was %u)", free_cpus_of(is), is->cpus, free_cpus_of(was));
	for (unsigned k = 0; k < nr_kinds; k++)
		if (was->free[k] == is->free[k])
			table_add(t, "%s", text_size_rounded(left, is->free[k]));
		else
			table_add(t, "%s (was %s)", text_size_rounded(left, is->free[k]),
				text_size_rounded(before, was->free[k]));
}

int whatif_print_left(struct journal_fold *f, const struct answer *a, struct err *e)
{
	enum { OTHER_COLUMNS = 2 };
	struct table t = {.nr_columns = OTHER_COLUMNS + f->topo.nr_kinds};
	auto_free struct snapshot *was = xcalloc(1, sizeof *was), *is = xcalloc(1, sizeof *is);
	char kind[TOPO_NAME_MAX];

	snapshot_take(was, engine_ledger(f->engine), &f->settings);
	int rc = engine_replay(f->engine, &a->record, e);
	if (rc)
		return rc;
	snapshot_take(is, engine_ledger(f->engine), &f->settings);
	(void)puts("\nwhat would be left for containers:");
	table_add(&t, "  NODE");
	table_add(&t, "FREE CPUS");
	for (unsigned k = 0; k < f->topo.nr_kinds; k++)
		table_add(&t, "FREE %s", topo_kind_name(&f->topo, k, kind, sizeof kind));
	nodeset_each (n, f->topo.nodes) {
		table_add(&t, "  %u", f->topo.ids.id[n]);
		add_node_cells(&t, &was->node[n], &is->node[n], f->topo.nr_kinds);
	}
	table_print(&t, stdout);
	table_fini(&t);
	return 0;
}

void whatif_print_head(const struct journal_fold *f, bool empty)
{
	char when[WORDING_TIME_MAX];

	if (empty)
		(void)printf("on machine %s, empty:\n", f->topo.name);
	else if (f->nr_records)
		(void)printf("on machine %s, as numafitd had it at %s:\n", f->topo.name,
			wording_time(f->last_ms, when));
	else
		(void)printf("on machine %s, where numafitd holds nothing:\n", f->topo.name);
}

int whatif_print_record(
	const struct journal_fold *f, const struct answer *a, const char *members, struct err *e)
{
	auto_free char *line = xcalloc(JOURNAL_TEXT_MAX + 1, 1);
	int rc = journal_json_record(&a->record, &f->topo.ids, line, JOURNAL_TEXT_MAX + 1, e);

	if (rc < 0)
		return rc;
	if (members)
		refusal_line_print(stdout, line, members);
	else
		(void)puts(line);
	return 0;
}
