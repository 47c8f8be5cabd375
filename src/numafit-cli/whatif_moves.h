#ifndef NUMAFIT_CLI_WHATIF_MOVES_H
#define NUMAFIT_CLI_WHATIF_MOVES_H

#include <numafit-cli/journal_fold.h>
#include <numafit/defrag.h>

/* Which running containers would have to be moved so that the pod is admitted on as few NUMA nodes
 * as on an empty machine, with `moves` moves at most. 0, also when there is no such plan; the error
 * of defrag_plan(). */
int whatif_plan_moves(const struct journal_fold *f, const struct settings *s, const struct pod *pod,
	unsigned moves, struct defrag_plan *plan, struct err *e);
/* Print it in words; nothing where the pod needs no move. */
void whatif_print_moves(
	const struct journal_fold *f, unsigned moves, const struct defrag_plan *plan);
/* The same as a JSON object with the member "moves", for the caller to free; NULL: names in the
 * journal are too long. */
char *whatif_moves_members(const struct journal_fold *f, const struct defrag_plan *plan);

#endif
