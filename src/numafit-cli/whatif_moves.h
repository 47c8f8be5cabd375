#ifndef NUMAFIT_CLI_WHATIF_MOVES_H
#define NUMAFIT_CLI_WHATIF_MOVES_H

#include <numafit-cli/journal_fold.h>

/* Print which running containers would have to be moved so that the pod is admitted on as few NUMA
 * nodes as on an empty machine, with `moves` moves at most. Whether that can be; false with *e
 * (code 0: there is no such plan, which is printed). */
bool whatif_print_moves(const struct journal_fold *f, const struct settings *s,
	const struct pod *pod, unsigned moves, struct err *e);

#endif
