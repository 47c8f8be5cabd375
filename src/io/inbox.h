#ifndef NUMAFIT_IO_INBOX_H
#define NUMAFIT_IO_INBOX_H

#include <io/loop.h>

/* From any thread to the loop: a bounded queue, with the only lock of the program. An open inbox
 * keeps loop_run() running. */
struct inbox;

/* came() is called on the loop's thread for each item, in the order of the puts. At most capacity
 * items wait; in one turn of the loop no more than that are handled. */
struct inbox *inbox_new(
	struct loop *l, size_t capacity, void (*came)(void *ctx, void *what, int value), void *ctx);
/* Any thread: queue an item, waiting for room while the inbox is full (which the loop's own thread
 * would do for ever). */
void inbox_put(struct inbox *in, void *what, int value);
/* The loop's thread, for a caller that must not return before something came: wait for up to
 * timeout_ms until there are items, handle them. How many that were; 0: time is up. */
size_t inbox_wait(struct inbox *in, unsigned timeout_ms);
/* The loop's thread, when nobody puts any more and before loop_free(): what still waits is dropped,
 * came() is not called again. NULL is fine. */
void inbox_close(struct inbox *in);

#endif
