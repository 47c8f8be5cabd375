#ifndef NUMAFIT_CLI_WHATIF_MOVES_H
#define NUMAFIT_CLI_WHATIF_MOVES_H

#include <codec/moves_json.h>
#include <numafit-cli/journal_fold.h>

/* Moves of running containers that make room, as `numafit whatif` plans them from a journal, and as
 * `numafit defrag` has them from the daemon. */

/* A plan with the words of its moves. */
struct whatif_moves {
	struct moves moves;
	struct defrag_plan plan;
	struct move_nodes words[DEFRAG_MOVES_MAX];
};

/* Which running containers would have to be moved so that the pod is admitted on as few NUMA nodes
 * as on an empty machine, with `most` moves and so many trials at most. 0, also when there is no
 * such plan; the error of defrag_plan(). */
int whatif_plan_moves(const struct journal_fold *f, const struct settings *s, const struct pod *pod,
	unsigned most, uint64_t trials, struct whatif_moves *out, struct err *e);
enum { WHATIF_TRIALS_MAX = 20000 }; /* of one question: some seconds on a large machine */
/* Print it in words; nothing where the pod needs no move. */
void whatif_print_moves(const struct moves *m, unsigned most);

/* The moves alone, numbered, each with what became of it. */
void moves_print_list(const struct moves *m);
/* "3.2 s"; a tenth of a second at least. */
void moves_print_time(uint64_t ms);
/* "default/web/main" */
void moves_print_name(const struct move_line *m);

#endif
