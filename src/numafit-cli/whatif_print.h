#ifndef NUMAFIT_CLI_WHATIF_PRINT_H
#define NUMAFIT_CLI_WHATIF_PRINT_H

#include <numafit-cli/again.h>
#include <numafit-cli/journal_fold.h>

/* What answers about pods and about claims have in common. All is printed to the standard output.
 */

/* Which node it is, as of when. */
void whatif_print_head(const struct journal_fold *f, bool empty);
/* What would be left on each NUMA node: the answer, which admits, is entered into *f's ledger. */
int whatif_print_left(struct journal_fold *f, const struct answer *a, struct err *e);
/* The answer as a record of the journal; members: of a refusal (refusal_line.h), else NULL. */
int whatif_print_record(
	const struct journal_fold *f, const struct answer *a, const char *members, struct err *e);

#endif
