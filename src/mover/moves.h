#ifndef NUMAFIT_MOVER_MOVES_H
#define NUMAFIT_MOVER_MOVES_H

#include <mover/mover.h>
#include <numafit/admit.h>

struct moves_asker;

/* Room by moving (defragment.*): who asks for plans, and what becomes of them. numafit defrag asks
 * on the daemon's socket; where a pod was refused the plan is said, and in mode auto made. */

struct moves_world {
	struct mover_world mover;
	const struct settings *settings; /* borrowed; as they are by now */
	/* Moves that would help, in words for the author of the pod that was refused. */
	void (*advise)(void *ctx, const struct pod *pod, const char *words);
};
struct moves_asker *moves_new(const struct moves_world *w);
/* Before loop_free(). NULL is fine. */
void moves_free(struct moves_asker *x);
struct mover *moves_mover(struct moves_asker *x);

/* The container, or the pod, of *q was refused, and that was answered. */
void moves_note_refused(struct moves_asker *x, const struct admit_question *q);

/* A question of the socket, without its newline and "defrag ":
 *
 * show             | the moves that were made last, or are under way
 * plan N [RECORD]  | a plan of at most N moves: for what the record says (as the journal has a pod
 *                  | that is refused), else for containers that are not preferred
 * apply N [RECORD] | the same, and it is made; the operator alone asks for that
 *
 * One question waits while a plan is made that nobody waits for: for a refused pod, or for an asker
 * that is gone. answered() is called with the document, perhaps before this returns, once, unless
 * the asker is forgotten before. 0; or -errno with text, and it is not called: -EAGAIN where
 * another question is being answered, or waits. */
int moves_ask(struct moves_asker *x, const char *question,
	void (*answered)(void *asker, const char *document), void *asker, struct err *e);
/* The asker is gone: it is not answered any more, and what it asked to be made is not, if that has
 * not begun. */
void moves_forget(struct moves_asker *x, const void *asker);

#endif
