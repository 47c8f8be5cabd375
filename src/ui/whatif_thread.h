#ifndef NUMAFIT_UI_WHATIF_THREAD_H
#define NUMAFIT_UI_WHATIF_THREAD_H

#include <io/loop.h>
#include <numafit/engine.h>
#include <ui/whatif.h>

/* Questions of the status page, answered on a thread of their own: containers do not wait for them.
 * The loop's part is to copy the node's state, which the thread owns from then on, and to hear of
 * the answer. One question at a time. */
struct whatif_thread;

/* answered() is called on the loop, once for each question that was taken: with the answer, which
 * it frees, or with NULL and why there is none. */
struct whatif_thread *whatif_thread_new(
	struct loop *l, void (*answered)(void *ctx, char *answer, const struct err *e), void *ctx);
/* Before loop_free(). It waits for the question that is being answered, which is not answered then.
 * NULL is fine. */
void whatif_thread_free(struct whatif_thread *w);

/* Ask it of the node as it is now. 0; -EAGAIN with text: another one is being answered; -E2BIG:
 * more containers than WHATIF_ENTRIES_MAX are held here, to copy them takes longer than some 3 ms;
 * or the error of engine_copy(). */
enum { WHATIF_ENTRIES_MAX = 1024 };
int whatif_thread_ask(struct whatif_thread *w, struct engine *g, const struct settings *s,
	const struct ui_question *q, struct err *e);

#endif
